// Padded memory: places that are left out after every so many elements.
#pragma once

#include <cstdint>
#include <span>

namespace sonde::layout {

// `pad` elements after every `interval` elements; powers of two. An interval of 0 leaves nothing out.
struct Padding {
  uint64_t interval;
  uint64_t pad;
  bool operator==(const Padding &) const = default;
};

// The address of offset `o`: o + sum over the paddings of floor(o / interval) * pad. With (4, 1): 0 1 2 3 5 6 7 8 10 ...
// Not linear over F2.
constexpr uint64_t padded_address(std::span<const Padding> paddings, uint64_t offset) {
  uint64_t address = offset;
  for (const Padding &padding : paddings) {
    if (padding.interval != 0) address += offset / padding.interval * padding.pad;
  }
  return address;
}

// The elements that memory needs for `count` offsets: the last address and one.
constexpr uint64_t padded_size(std::span<const Padding> paddings, uint64_t count) {
  return count == 0 ? 0 : padded_address(paddings, count - 1) + 1;
}

}  // namespace sonde::layout
