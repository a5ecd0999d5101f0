// Compiled calls for the common shapes of published functions; the others go through libffi.
//
// A shape is the C function's type in letters: result, then its arguments in parentheses. i I q Q are int32_t,
// uint32_t, int64_t and uint64_t, d is double, p any pointer, v (result) nothing. Benchmark: tests/bench/lua_call.cpp.
#pragma once

#include <sonde/base.h>

#include <cstdint>
#include <string_view>

namespace sonde::reflect {

// Calls `function` with one 8-byte slot an argument; a narrower value lies in the slot's first bytes. Returns the
// result's bits, widened by its sign.
using Trampoline = uint64_t (*)(sonde_function_t function, const uint64_t *slots);

// nullptr: none is compiled for this shape.
Trampoline find_trampoline(std::string_view shape);

// Shapes with a compiled call, ended by an empty one; for tests.
const std::string_view *compiled_shapes();

}  // namespace sonde::reflect
