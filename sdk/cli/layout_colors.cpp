#include "cli/layout_colors.h"

#include <algorithm>
#include <cmath>

namespace sonde::cli {
namespace {

constexpr uint64_t kHues = 8;
constexpr double kSaturation = 0.62;
constexpr double kLightness[] = {0.74, 0.58, 0.42, 0.28};

// One of red, green, blue of a colour given by hue (degrees), saturation and lightness; `shift` is 0, 8 and 4.
uint8_t channel(double hue, double lightness, double shift) {
  const double place = std::fmod(shift + hue / 30.0, 12.0);
  const double reach = kSaturation * std::min(lightness, 1.0 - lightness);
  const double level = lightness - reach * std::max(-1.0, std::min({place - 3.0, 9.0 - place, 1.0}));
  return static_cast<uint8_t>(std::lround(255.0 * level));
}

// Relative luminance, 0 to 1 (WCAG 2: contrast of text).
double luminance(Color color) {
  const auto linear = [](uint8_t level) {
    const double share = level / 255.0;
    return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
}

}  // namespace

Color color_of(uint64_t value, uint64_t count) {
  const uint64_t hues = std::clamp<uint64_t>(count, 1, kHues);
  const double hue = 210.0 + 360.0 * static_cast<double>(value % hues) / static_cast<double>(hues);
  const double lightness = kLightness[value / kHues % std::size(kLightness)];
  return {channel(hue, lightness, 0), channel(hue, lightness, 8), channel(hue, lightness, 4)};
}

Color text_color_on(Color background) {
  // Contrast with black is (L + 0.05) / 0.05, with white 1.05 / (L + 0.05); they are equal at L = 0.179.
  return luminance(background) > 0.179 ? Color{0, 0, 0} : Color{255, 255, 255};
}

uint32_t terminal_color(Color color) {
  // Levels of the cube: 0, 95, 135, 175, 215, 255.
  const auto step = [](uint8_t level) -> uint32_t { return level < 48 ? 0 : level < 115 ? 1 : (level - 35u) / 40u; };
  return 16 + 36 * step(color.red) + 6 * step(color.green) + step(color.blue);
}

}  // namespace sonde::cli
