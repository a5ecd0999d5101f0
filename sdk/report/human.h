// Numbers for people: three digits that matter and a unit of fitting size. Files carry exact numbers instead.
#pragma once

#include <sonde/value.h>

#include <string>
#include <string_view>

namespace sonde::report {

struct HumanValue {
  std::string text;  // the number, or the text
  std::string unit;  // "" when there is none
  bool is_number = false;

  // "12.5 ms"
  std::string joined() const { return unit.empty() ? text : text + " " + unit; }
};

// Units that are scaled: ns (to us, ms, s), bytes (binary: KiB, MiB, ...), bytes/s (decimal, as vendors state
// bandwidths: kB/s, MB/s, ...). "%" gets three digits, "1" digits in groups, "address" hexadecimal; "unix_ns" is a
// moment in UTC. Others stand behind the number unchanged. An empty value gives "-".
HumanValue human_value(const sonde_value_t &value, std::string_view unit);

// 1234567 -> "1,234,567"
std::string grouped(uint64_t number);
// Bytes as above, in one text.
std::string human_bytes(uint64_t bytes);

}  // namespace sonde::report
