// Which parameters the attribute of each kind of encoding has; for attribute*.cpp only.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "layout/encoding.h"

namespace sonde::layout::attribute {

// What has no member of its own type in Encoding.
enum class Special : uint8_t {
  kParent,
  kCtasPerCga,
  kCtaSplitNum,
  kCtaOrder,
  kCgaLayout,
  kCtaLayout,         // {register = [...], warp = [...]} of WMMA
  kBlockRepOrder,     // kThenMn or mnThenK
  kVersion,           // 3, formerly 3.0
  kNonKDim,           // formerly, of MFMA: M = N
  kElementType,       // formerly, of MFMA: only f64 makes a difference
  kHasLeadingOffset,  // formerly, of shared memory: what is NVMMA shared today
  kUnpacked,          // formerly, of tensor memory: no part of the map
  kSplitM,            // formerly, of tensor memory
  kSplitN,
};

using Target = std::variant<std::vector<uint64_t> Encoding::*, std::vector<uint32_t> Encoding::*, uint32_t Encoding::*,
                            uint64_t Encoding::*, bool Encoding::*, Bases Encoding::*, Special>;

enum class Presence : uint8_t {
  kRequired,  // and always printed
  kShown,     // may be missing, always printed
  kOptional,  // printed where it differs from an encoding's default
  kFormer,    // read, never printed
};

struct Field {
  std::string_view key;
  Target target;
  Presence presence;
};

std::span<const Field> fields_of(EncodingKind kind);

// "blocked", or a former name, "shared"; nullopt for anything else.
std::optional<EncodingKind> kind_of(std::string_view name);

// Of a parameter or a kind; of an alias or a dialect, in which MLIR allows more.
inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
inline bool is_name_letter(char c) { return is_letter(c) || c == '$' || c == '-'; }

// The dialect that the newest spelling has.
std::string_view dialect_of(EncodingKind kind);

// Whether attributes of a dialect may be layouts at all.
bool is_layout_dialect(std::string_view dialect);

// shared_memory and tensor_memory: where a value lies, not how.
bool is_memory_space(std::string_view name);

// The parameters stand in <...> without braces.
bool has_bare_parameters(EncodingKind kind);

}  // namespace sonde::layout::attribute
