#include "report/human.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>

#include "report/utf8.h"

namespace sonde::report {
namespace {

struct Scale {
  double factor;  // how many base units one of these is
  std::string_view unit;
};

constexpr std::array kTimes = {Scale{1, "ns"}, Scale{1e3, "us"}, Scale{1e6, "ms"}, Scale{1e9, "s"}};
constexpr std::array kSizes = {Scale{1, "B"}, Scale{1024.0, "KiB"}, Scale{1048576.0, "MiB"}, Scale{1073741824.0, "GiB"},
                               Scale{1099511627776.0, "TiB"}};
constexpr std::array kRates = {Scale{1, "B/s"}, Scale{1e3, "kB/s"}, Scale{1e6, "MB/s"}, Scale{1e9, "GB/s"},
                               Scale{1e12, "TB/s"}};

std::string group_digits(std::string digits) {
  const size_t first = digits.starts_with('-') ? 1 : 0;
  for (size_t position = digits.size(); position > first + 3;) {
    position -= 3;
    digits.insert(position, ",");
  }
  return digits;
}

// Three significant digits, never an exponent between 0.001 and 1e15.
std::string three_digits(double number) {
  const double size = std::fabs(number);
  if (size == 0) return "0";
  if (size >= 1e15 || size < 0.000995) return fmt::format("{:.2e}", number);
  if (size >= 99.95) return group_digits(fmt::format("{:.0f}", number));
  if (size >= 9.995) return fmt::format("{:.1f}", number);
  if (size >= 0.995) return fmt::format("{:.2f}", number);
  return fmt::format("{:.3g}", number);
}

template <size_t Count>
HumanValue scaled(double number, bool is_whole, const std::array<Scale, Count> &scales) {
  size_t chosen = 0;
  // A unit is left as soon as its number would be shown as a whole one of the next.
  while (chosen + 1 < Count &&
         std::fabs(number) / scales[chosen].factor >= scales[chosen + 1].factor / scales[chosen].factor - 0.5) {
    ++chosen;
  }
  HumanValue human;
  human.is_number = true;
  human.unit = scales[chosen].unit;
  human.text = chosen == 0 && is_whole ? fmt::format("{:.0f}", number) : three_digits(number / scales[chosen].factor);
  return human;
}

std::string moment(int64_t unix_ns) {
  int64_t seconds = unix_ns / 1'000'000'000;
  int64_t rest = unix_ns % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  const std::time_t time = seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, rest);
}

double as_double(const sonde_value_t &value) {
  if (value.kind == SONDE_VALUE_I64) return static_cast<double>(value.as.i64);
  if (value.kind == SONDE_VALUE_U64) return static_cast<double>(value.as.u64);
  return value.as.f64;
}

HumanValue human_number(const sonde_value_t &value, std::string_view unit) {
  const double number = as_double(value);
  const bool is_whole = value.kind != SONDE_VALUE_F64;
  if (unit == "ns") return scaled(number, is_whole, kTimes);
  if (unit == "bytes") return scaled(number, is_whole, kSizes);
  if (unit == "bytes/s") return scaled(number, is_whole, kRates);
  HumanValue human;
  human.is_number = true;
  if (unit == "address") {
    human.text = fmt::format("0x{:x}", value.as.u64);
  } else if (unit == "unix_ns" && is_whole) {
    human.text = moment(value.as.i64);
  } else if (unit == "%") {
    human.text = number != 0 && std::fabs(number) < 0.00995 ? (number < 0 ? ">-0.01" : "<0.01") : three_digits(number);
    human.unit = "%";
  } else {
    const std::string digits = value.kind == SONDE_VALUE_I64   ? fmt::format("{}", value.as.i64)
                               : value.kind == SONDE_VALUE_U64 ? fmt::format("{}", value.as.u64)
                                                               : three_digits(number);
    // Without a unit an integer is a number that names something (a stream, a line): no groups in it.
    human.text = is_whole && !unit.empty() ? group_digits(digits) : digits;
    if (unit != "1") human.unit = printable(unit);
  }
  return human;
}

template <typename Element>
std::string listed(const sonde_value_t &value) {
  constexpr uint64_t kShown = 8;
  const auto *const elements = static_cast<const Element *>(value.as.pointer);
  std::string text = "[";
  for (uint64_t index = 0; index < value.count && index < kShown; ++index) {
    text += fmt::format("{}{}", index == 0 ? "" : ", ", elements[index]);
  }
  if (value.count > kShown) text += fmt::format(", … {} in all", value.count);
  return text + "]";
}

}  // namespace

HumanValue human_value(const sonde_value_t &value, std::string_view unit) {
  switch (value.kind) {
    case SONDE_VALUE_I64:
    case SONDE_VALUE_U64:
    case SONDE_VALUE_F64:
      return human_number(value, unit);
    case SONDE_VALUE_TEXT:
      return {printable({value.as.text, value.count}), "", false};
    case SONDE_VALUE_BOOL:
      return {value.as.u64 != 0 ? "yes" : "no", "", false};
    case SONDE_VALUE_BYTES:
      return {fmt::format("{} bytes", grouped(value.count)), "", false};
    case SONDE_VALUE_I64S:
      return {listed<int64_t>(value), std::string(unit == "1" ? "" : unit), false};
    case SONDE_VALUE_F64S:
      return {listed<double>(value), std::string(unit == "1" ? "" : unit), false};
    default:
      return {"-", "", false};
  }
}

std::string grouped(uint64_t number) { return group_digits(fmt::format("{}", number)); }

std::string human_bytes(uint64_t bytes) {
  sonde_value_t value{};
  value.kind = SONDE_VALUE_U64;
  value.as.u64 = bytes;
  return human_value(value, "bytes").joined();
}

}  // namespace sonde::report
