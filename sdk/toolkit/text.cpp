#include <sonde/toolkit/text.h>

#include <array>
#include <cmath>
#include <cstdio>

namespace sonde::toolkit {
namespace {

std::string with_unit(const char *format, double value, const char *unit) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value, unit);
  return text.data();
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.995 would be printed as 1024.00.
  while (value >= 1023.995 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return with_unit("%.2f %s", value, units[unit]);
}

std::string format_ns(int64_t ns) {
  const double value = static_cast<double>(ns);
  const double size = std::fabs(value);
  if (size < 1e3) return std::to_string(ns) + " ns";
  if (size < 999.995e3) return with_unit("%.2f %s", value / 1e3, "us");
  if (size < 999.995e6) return with_unit("%.2f %s", value / 1e6, "ms");
  return with_unit("%.2f %s", value / 1e9, "s");
}

std::string format_share(double share) { return with_unit("%.1f %s", share * 100, "%"); }

}  // namespace sonde::toolkit
