// Words as vectors over F2.
#pragma once

#include <bit>
#include <cstdint>

namespace sonde::layout {

// For sums that must not wrap.
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

// The lowest `bits` bits set; bits <= 64.
constexpr uint64_t low_mask(uint32_t bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

// 2^bits, and UINT64_MAX for 2^64.
constexpr uint64_t power_of_two(uint32_t bits) { return bits < 64 ? uint64_t{1} << bits : ~uint64_t{0}; }

constexpr bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

// Of a value that is not 0.
constexpr uint32_t highest_bit(uint64_t value) { return 63u - static_cast<uint32_t>(std::countl_zero(value)); }
constexpr uint32_t lowest_bit(uint64_t value) { return static_cast<uint32_t>(std::countr_zero(value)); }

// floor(log2(value)), 0 for 0.
constexpr uint32_t log2_floor(uint64_t value) { return value == 0 ? 0 : highest_bit(value); }

// `bits` bits of `value` from `shift` on, as a number; shift <= 64.
constexpr uint64_t field(uint64_t value, uint32_t shift, uint32_t bits) {
  return shift >= 64 ? 0 : (value >> shift) & low_mask(bits);
}

// A field put in its place; 0 when it has no bits.
constexpr uint64_t place(uint64_t value, uint32_t shift) { return shift >= 64 ? 0 : value << shift; }

}  // namespace sonde::layout
