// Encodings as they stand in TTGIR.
//
//   #blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
//   %1 = ... : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
//
// Read are the spellings of Triton 2.1 to 3.6: dialects ttg and ttng, before 3.2 triton_gpu and triton_nvidia_gpu;
// CGALayout or the three lists CTAsPerCGA, CTASplitNum, CTAOrder; kinds and parameters that have changed their names.
// Scales in registers and in shared memory, which TTGIR has no attribute for, are #sonde.scale_op and
// #sonde.scale_shared.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "layout/encoding.h"

namespace sonde::layout {

using EncodingPointer = std::shared_ptr<const Encoding>;

// What `#name` stands for, by name without the '#'.
using AliasTable = std::map<std::string, EncodingPointer, std::less<>>;

// Attributes inside attributes, by name or in place.
inline constexpr uint32_t kMaxNesting = 32;

struct AttributeError {
  size_t offset = 0;  // in bytes, in the text that was to be read
  std::string text;   // what was expected there
};

// The encoding that `text` is, "#name" of the table or "#dialect.kind<...>"; spaces may stand around it. nullptr with
// `error` set where it is none. Parameters are checked for their form, against each other only by encoding_layout.
// [any; the table is not changed]
EncodingPointer parse_attribute(std::string_view text, const AliasTable &aliases, AttributeError &error);

// The same at the beginning of `text`, which may go on; `length` is then what was read.
EncodingPointer parse_attribute_at(std::string_view text, const AliasTable &aliases, AttributeError &error,
                                   size_t &length);

// The attribute, with its parents in place, in the newest spelling; parse_attribute reads it back to an equal
// encoding.
std::string attribute_text(const Encoding &encoding);

// An attribute of a layout in a module's text.
struct FoundAttribute {
  size_t offset = 0;         // of its '#', in bytes from the beginning of the module
  size_t length = 0;         // 0 where it could not be read
  std::string alias;         // of "#alias = #ttg..."; empty where the attribute stands in a type or an operation
  EncodingPointer encoding;  // nullptr: `error` says why, with its offset in the module
  AttributeError error;
};

struct ModuleAttributes {
  AliasTable aliases;  // at the end of the text
  std::vector<FoundAttribute> found;
  size_t unparsed = 0;
};

// Every attribute of a layout that a module in MLIR's textual form defines or has in place, in order; parents in place
// belong to their attribute and are not found again. Comments and strings are passed over, and so are memory spaces
// and the attributes of other dialects. Aliases count from their definition on, so that texts of several modules work.
// Takes time linear in the text.
ModuleAttributes scan_attributes(std::string_view module);

}  // namespace sonde::layout
