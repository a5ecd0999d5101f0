#include "report/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace sonde::report {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Blocks of marks that take no cell of their own, and invisible format characters.
constexpr std::array kZeroWidth = {
    Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD}, Range{0x0610, 0x061A}, Range{0x064B, 0x065F},
    Range{0x0900, 0x0902}, Range{0x0941, 0x0948}, Range{0x0E31, 0x0E31}, Range{0x0E34, 0x0E3A}, Range{0x0E47, 0x0E4E},
    Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF}, Range{0x200B, 0x200F}, Range{0x202A, 0x202E}, Range{0x2060, 0x206F},
    Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F}, Range{0xFEFF, 0xFEFF}, Range{0xE0100, 0xE01EF},
};

// East Asian wide and full-width blocks, and pictographs.
constexpr std::array kDoubleWidth = {
    Range{0x1100, 0x115F},   Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},   Range{0x3400, 0x4DBF},
    Range{0x4E00, 0x9FFF},   Range{0xA000, 0xA4CF},   Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},
    Range{0xF900, 0xFAFF},   Range{0xFE10, 0xFE19},   Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},
    Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F}, Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF},
    Range{0x20000, 0x3FFFD},
};

template <size_t Count>
bool is_in(const std::array<Range, Count> &ranges, uint32_t code_point) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code_point,
                                      [](uint32_t value, const Range &range) { return value < range.first; });
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

bool is_control(uint32_t code_point) { return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0); }

bool changes_direction(uint32_t code_point) {
  return code_point == 0x200E || code_point == 0x200F || (code_point >= 0x202A && code_point <= 0x202E) ||
         (code_point >= 0x2066 && code_point <= 0x2069) || code_point == 0x2028 || code_point == 0x2029;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t position) {
  const auto byte = [&](size_t index) { return static_cast<uint8_t>(text[index]); };
  const uint8_t lead = byte(position);
  if (lead < 0x80) return {lead, 1, true};

  // Table 3-7 of the Unicode standard: the second byte's range depends on the lead; the others are 80..BF.
  uint32_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  uint32_t value = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    value = lead & 0x1Fu;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    value = lead & 0x0Fu;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    value = lead & 0x07u;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {kReplacement, 1, false};
  }
  for (uint32_t index = 1; index < length; ++index) {
    if (position + index >= text.size()) return {kReplacement, index, false};
    const uint8_t next = byte(position + index);
    if (next < low || next > high) return {kReplacement, index, false};
    value = value << 6 | (next & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {value, length, true};
}

void append_utf8(std::string &text, uint32_t code_point) {
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += static_cast<char>(0xC0 | code_point >> 6);
    text += static_cast<char>(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    text += static_cast<char>(0xE0 | code_point >> 12);
    text += static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code_point & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | code_point >> 18);
    text += static_cast<char>(0x80 | (code_point >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code_point & 0x3F));
  }
}

std::string to_valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const CodePoint point = decode_utf8(text, position);
    if (point.valid) {
      valid.append(text.substr(position, point.bytes));
    } else {
      append_utf8(valid, kReplacement);
    }
    position += point.bytes;
  }
  return valid;
}

uint32_t display_width(uint32_t code_point) {
  if (code_point < 0x300) return code_point < 0x20 ? 0 : 1;
  if (is_in(kZeroWidth, code_point)) return 0;
  return is_in(kDoubleWidth, code_point) ? 2 : 1;
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t position = 0; position < text.size();) {
    const CodePoint point = decode_utf8(text, position);
    width += display_width(point.value);
    position += point.bytes;
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const CodePoint point = decode_utf8(text, position);
    position += point.bytes;
    if (point.value == '\n') {
      shown += "\\n";
    } else if (point.value == '\t') {
      shown += "\\t";
    } else if (point.value == '\r') {
      shown += "\\r";
    } else if (is_control(point.value)) {
      shown += fmt::format("\\x{:02x}", point.value);
    } else if (changes_direction(point.value)) {
      shown += fmt::format("\\u{{{:x}}}", point.value);
    } else {
      append_utf8(shown, point.value);
    }
  }
  return shown;
}

std::string shorten_middle(std::string_view text, size_t width) {
  constexpr std::string_view kEllipsis = "…";
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  // The begin of a name says more than its end: it gets the larger half.
  const size_t tail_width = (width - 1) / 2;
  const size_t head_width = width - 1 - tail_width;

  size_t head_end = 0;
  for (size_t used = 0; head_end < text.size();) {
    const CodePoint point = decode_utf8(text, head_end);
    used += display_width(point.value);
    if (used > head_width) break;
    head_end += point.bytes;
  }
  // Starts of the code points, to walk back from the end.
  std::vector<size_t> starts;
  for (size_t position = head_end; position < text.size(); position += decode_utf8(text, position).bytes) {
    starts.push_back(position);
  }
  size_t tail_begin = text.size();
  size_t used = 0;
  while (!starts.empty()) {
    const uint32_t cells = display_width(decode_utf8(text, starts.back()).value);
    if (used + cells > tail_width) break;
    used += cells;
    tail_begin = starts.back();
    starts.pop_back();
  }
  std::string shortened(text.substr(0, head_end));
  shortened += kEllipsis;
  shortened += text.substr(tail_begin);
  return shortened;
}

std::string pad_right(std::string_view text, size_t width) {
  std::string padded(text);
  const size_t used = display_width(text);
  if (used < width) padded.append(width - used, ' ');
  return padded;
}

std::string pad_left(std::string_view text, size_t width) {
  const size_t used = display_width(text);
  std::string padded(used < width ? width - used : 0, ' ');
  padded += text;
  return padded;
}

}  // namespace sonde::report
