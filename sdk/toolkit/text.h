// Quantities as text, with the unit always written.
#pragma once

#include <cstdint>
#include <string>

namespace sonde::toolkit {

// Binary units, which memory is counted in: 81,352,720,384 bytes are "75.77 GiB" (81.35 GB in powers of ten).
std::string format_bytes(uint64_t bytes);

// "850 ns", "12.50 us", "3.21 ms", "1.50 s".
std::string format_ns(int64_t ns);

// 0.256 as "25.6 %".
std::string format_share(double share);

}  // namespace sonde::toolkit
