// Text that may hold any bytes, made fit for files and terminals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::report {

inline constexpr uint32_t kReplacement = 0xFFFD;

struct CodePoint {
  uint32_t value;  // kReplacement where the bytes are not UTF-8
  uint32_t bytes;  // how many it stands for, at least 1
  bool valid;
};

// The code point at `position`, which lies inside `text`. Bytes that are not UTF-8 are taken by maximal subparts
// (Unicode 15, section 3.9, "U+FFFD Substitution of Maximal Subparts").
CodePoint decode_utf8(std::string_view text, size_t position);

// `text` with every ill-formed sequence replaced by U+FFFD.
std::string to_valid_utf8(std::string_view text);

// Cells that a terminal uses: 0 for marks that combine, 2 for East Asian wide characters, otherwise 1.
uint32_t display_width(uint32_t code_point);
size_t display_width(std::string_view text);

// `text` for a terminal: valid UTF-8, and everything that could steer the terminal or the direction of writing made
// visible: \x1b, \n, \u{202e}.
std::string printable(std::string_view text);

// At most `width` cells of valid UTF-8 text, the middle replaced by an ellipsis.
std::string shorten_middle(std::string_view text, size_t width);

// `text` followed, or preceded, by spaces up to `width` cells.
std::string pad_right(std::string_view text, size_t width);
std::string pad_left(std::string_view text, size_t width);

void append_utf8(std::string &text, uint32_t code_point);

}  // namespace sonde::report
