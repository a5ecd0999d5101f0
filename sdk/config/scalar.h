// Scalars to values: numbers with units, times, words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sonde::config {

// An exact integer: decimal, 0x, 0o or 0b, '_' between digits, an optional sign, and a unit: k M G T (1000^n),
// Ki Mi Gi Ti (1024^n); "1.5Ki" is allowed where the result is whole. Numbers with a base prefix are 64-bit patterns:
// 0xffff800012345678 is taken as it stands and reads as a negative int64_t.
std::optional<int64_t> to_integer(std::string_view text);

// A finite number; the units of integers, and % (3% is 0.03).
std::optional<double> to_number(std::string_view text);

// Nanoseconds: an integer, or a decimal number with ns, us, ms, s, min or h that gives whole nanoseconds.
std::optional<int64_t> to_time(std::string_view text);

// true, yes, on, false, no, off in any case.
std::optional<bool> to_bool(std::string_view text);

// Shortest text that reads back as the same number.
std::string from_number(double value);

}  // namespace sonde::config
