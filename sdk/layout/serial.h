// Layouts as JSON and as bytes, both read back to equal layouts.
//
// JSON: {"in": [["register", [[0, 1], [1, 0]]], ["lane", []]], "out": [["dim0", 2], ["dim1", 2]], "offset": [0, 1]};
// the offset may be left out where it is 0. A size of 2^64 is the text "2^64".
//
// Bytes, little-endian: "SNDL", u8 version = 1, u8 in dims, u8 out dims, u8 0; a dim: u8 bits, u8 length, name; padding
// to 8; u64 columns, one for each in bit; u64 offset; u64 hash of the layout.
#pragma once

#include <cstddef>

#include "layout/layout.h"

namespace sonde::layout {

std::string to_json(const Layout &layout);
const Layout *from_json(Arena &arena, std::string_view text);  // kParse with the place, kInvalid, kUnsupported

std::vector<uint8_t> to_bytes(const Layout &layout);
const Layout *from_bytes(Arena &arena, std::span<const uint8_t> bytes);  // kCorrupt

}  // namespace sonde::layout
