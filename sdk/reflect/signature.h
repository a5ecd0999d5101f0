// Signatures of published functions, parsed and prepared for calls.
//
//   signature = result '(' [ 'v' | parameter { parameter } ] ')'
//   result    = 'e' | 'v' | scalar | handle
//   parameter = scalar | handle | view | 'c' | '&' ( 'q' | 'Q' | 'd' | 's' )
//   scalar    = 'i' | 'I' | 'q' | 'Q' | 'd' | 's'
//   view      = 'y' | 'L' | 'D'
//   handle    = 'h' ( 'S' | 'T' | 'C' | 'R' | '{' name '}' )        name: a-z 0-9 _ . , at most 63 characters
//
// A parameter is one to three arguments of the C function: a view is pointer and count, a callback is function, user
// and drop_user.
#pragma once

#include <ffi.h>
#include <sonde/reflect.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "reflect/shapes.h"

namespace sonde::reflect {

inline constexpr uint32_t kMaxParameters = 16;
inline constexpr uint32_t kMaxArguments = 3 * kMaxParameters;  // of the C function

struct Parameter {
  char code = 'v';  // the letter; of an out parameter the letter after '&'
  bool is_out = false;
  uint32_t kind = SONDE_VALUE_NONE;
  std::string handle;  // "S", "T", "C", "R" or "{name}"; empty otherwise
  uint64_t handle_number = 0;
};

// Number of a handle's name, never 0: FNV-1a of its letters. Carried in `count` of a HANDLE value.
uint64_t handle_number(std::string_view name);

// Parsed and prepared; immutable and alive for the life of the process.
struct Signature {
  std::string text;
  Parameter result;
  std::vector<Parameter> parameters;
  uint32_t in_count = 0;            // parameters that a caller gives
  uint32_t out_count = 0;           // results that come back: out parameters, and the function's result unless e or v
  std::string shape;                // of the C function, see shapes.h
  Trampoline trampoline = nullptr;  // nullptr: through libffi
  uint32_t argument_count = 0;      // of the C function
  ffi_type *types[kMaxArguments] = {};
  mutable ffi_cif cif = {};  // libffi reads it through a pointer to non-const
};

// Parses without preparing. The error names the position, counted from 1.
Result<std::unique_ptr<Signature>> parse(std::string_view text);

// The prepared signature of a text; the same text gives the same object. [any]
Result<const Signature *> prepare(std::string_view text);

}  // namespace sonde::reflect
