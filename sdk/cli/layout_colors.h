// Colours of the values of a dim.
#pragma once

#include <cstdint>

namespace sonde::cli {

struct Color {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;

  bool operator==(const Color &) const = default;
};

inline constexpr uint64_t kDistinctColors = 32;  // beyond, they repeat

// The colour of `value` of `count`: up to 8 values differ in hue, up to 32 in hue and lightness.
Color color_of(uint64_t value, uint64_t count);
// Black or white, whichever is easier to read on `background`.
Color text_color_on(Color background);
// The nearest colour of the 6x6x6 cube of terminals with 256 colours: 16 to 231.
uint32_t terminal_color(Color color);

}  // namespace sonde::cli
