#include "config/scalar.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

namespace sonde::config {

namespace {

__extension__ typedef __int128 Wide;

struct Unit {
  std::string_view name;
  int64_t factor;
};

constexpr Unit kCountUnits[] = {
    {"Ki", int64_t{1} << 10},
    {"Mi", int64_t{1} << 20},
    {"Gi", int64_t{1} << 30},
    {"Ti", int64_t{1} << 40},
    {"k", 1'000},
    {"M", 1'000'000},
    {"G", 1'000'000'000},
    {"T", 1'000'000'000'000},
};

constexpr Unit kTimeUnits[] = {
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"min", 60'000'000'000},
    {"s", 1'000'000'000},
    {"h", 3'600'000'000'000},
};

// Splits a unit off the end of `text`; factor 1 when there is none.
template <size_t Count>
int64_t take_unit(std::string_view &text, const Unit (&units)[Count]) {
  for (const Unit &unit : units) {
    if (text.size() > unit.name.size() && text.ends_with(unit.name)) {
      text.remove_suffix(unit.name.size());
      if (text.ends_with(' ')) text.remove_suffix(1);
      return unit.factor;
    }
  }
  return 1;
}

int digit_value(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  if (character >= 'A' && character <= 'F') return character - 'A' + 10;
  return 99;
}

// Digits of `base` with '_' between them.
std::optional<uint64_t> to_digits(std::string_view text, unsigned base) {
  uint64_t value = 0;
  bool digit_before = false;
  for (const char character : text) {
    if (character == '_' && digit_before) {
      digit_before = false;
      continue;
    }
    const int digit = digit_value(character);
    if (digit >= static_cast<int>(base)) return std::nullopt;
    if (__builtin_mul_overflow(value, uint64_t{base}, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, static_cast<uint64_t>(digit), &value)) return std::nullopt;
    digit_before = true;
  }
  if (!digit_before) return std::nullopt;
  return value;
}

// [+-]digits[.digits] times `factor`, exact; nothing when the result is not whole or does not fit.
std::optional<int64_t> to_scaled(std::string_view text, int64_t factor) {
  bool negative = false;
  if (text.starts_with('-') || text.starts_with('+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  std::string_view fraction;
  bool has_fraction = false;
  if (const size_t point = text.find('.'); point != std::string_view::npos) {
    fraction = text.substr(point + 1);
    text = text.substr(0, point);
    has_fraction = true;
    if (fraction.empty() || fraction.size() > 18) return std::nullopt;
  }
  const std::optional<uint64_t> whole = to_digits(text, 10);
  if (!whole) return std::nullopt;
  Wide value = static_cast<Wide>(*whole) * factor;  // below 2^64 * 2^43
  if (has_fraction) {
    const std::optional<uint64_t> digits = to_digits(fraction, 10);
    if (!digits) return std::nullopt;
    Wide scale = 1;
    for (const char character : fraction) scale *= character == '_' ? 1 : 10;
    const Wide part = static_cast<Wide>(*digits) * factor;
    if (part % scale != 0) return std::nullopt;
    value += part / scale;
  }
  if (negative) value = -value;
  if (value > std::numeric_limits<int64_t>::max() || value < std::numeric_limits<int64_t>::min()) return std::nullopt;
  return static_cast<int64_t>(value);
}

bool equal_folded(std::string_view text, std::string_view word) {
  if (text.size() != word.size()) return false;
  for (size_t index = 0; index < text.size(); ++index) {
    const char character = text[index];
    const char lower = character >= 'A' && character <= 'Z' ? static_cast<char>(character + 32) : character;
    if (lower != word[index]) return false;
  }
  return true;
}

}  // namespace

std::optional<int64_t> to_integer(std::string_view text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.size() > 2 && digits[0] == '0' && digits[1] > '9' && digits[1] != 'T') {
    const char mark = digits[1];
    const unsigned base = mark == 'x' || mark == 'X' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (base != 0) {
      const std::optional<uint64_t> pattern = to_digits(digits.substr(2), base);
      if (!pattern) return std::nullopt;
      if (!negative) return static_cast<int64_t>(*pattern);
      if (*pattern > uint64_t{1} << 63) return std::nullopt;
      return static_cast<int64_t>(0 - *pattern);
    }
  }
  const int64_t factor = take_unit(text, kCountUnits);
  return to_scaled(text, factor);
}

std::optional<double> to_number(std::string_view text) {
  double factor = 1;
  double divisor = 1;
  if (text.size() > 1 && text.ends_with('%')) {
    text.remove_suffix(1);
    if (text.ends_with(' ')) text.remove_suffix(1);
    divisor = 100;  // dividing gives the double nearest to the decimal fraction; multiplying by 0.01 does not
  } else {
    factor = static_cast<double>(take_unit(text, kCountUnits));
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || digit_value(text.back()) > 9) {
    if (text.empty() || text.back() != '.') return std::nullopt;  // no "inf", no "nan"
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    const std::optional<int64_t> integer = to_integer(text);  // 0x10, 1_000
    if (!integer) return std::nullopt;
    value = static_cast<double>(*integer);
  }
  value = value * factor / divisor;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> to_time(std::string_view text) {
  const int64_t factor = take_unit(text, kTimeUnits);
  if (factor == 1 && text.find('.') != std::string_view::npos) return std::nullopt;
  return to_scaled(text, factor);
}

std::optional<bool> to_bool(std::string_view text) {
  for (const std::string_view word : {"true", "yes", "on"}) {
    if (equal_folded(text, word)) return true;
  }
  for (const std::string_view word : {"false", "no", "off"}) {
    if (equal_folded(text, word)) return false;
  }
  return std::nullopt;
}

std::string from_number(double value) { return fmt::format("{}", value); }

}  // namespace sonde::config
