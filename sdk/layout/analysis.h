// What a distributed layout, from (register, lane, warp, block) to a tensor, means for a kernel.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "layout/layout.h"

namespace sonde::layout {

// Who holds copies of what others hold. The bits of an in dim with a zero column are free: whoever differs in them only
// holds the same elements, so that stores and reductions may be left to those that have 0 there.
struct Broadcasts {
  uint64_t free_registers = 0;  // bits of each in dim with a zero column
  uint64_t free_lanes = 0;
  uint64_t free_warps = 0;
  uint64_t free_blocks = 0;
  // log2 of how many (block, warp, lane, register) hold each element: all free combinations, zero columns or not.
  uint32_t copies_log2 = 0;

  // Factors by which a dim repeats itself.
  uint64_t of_registers() const { return uint64_t{1} << std::popcount(free_registers); }
  uint64_t of_lanes() const { return uint64_t{1} << std::popcount(free_lanes); }
  uint64_t of_warps() const { return uint64_t{1} << std::popcount(free_warps); }
  uint64_t of_blocks() const { return uint64_t{1} << std::popcount(free_blocks); }
};
Broadcasts broadcasts_of(const Layout &layout);

// Elements and registers of one thread. A register has 32 bits: smaller elements are packed, larger ones take several.
struct Occupancy {
  uint64_t elements = 0;         // with duplicates
  uint64_t unique_elements = 0;  // without
  uint64_t registers = 0;        // of 32 bits, for all elements, packed
  uint64_t unique_registers = 0;
};
// kInvalid for elements that are not a power of two of 1 to 128 bits.
bool occupancy(Arena &arena, const Layout &layout, uint32_t bits_per_element, Occupancy &out);

// The out dims as one memory, `order` from the fastest dim to the slowest (each once); each dim after the first begins
// at least `pitch_bits` bits up, as rows that lie at a pitch of 2^pitch_bits elements or more. The result has one out
// dim, offset, in elements.
const Layout *memory_offsets(Arena &arena, const Layout &layout, std::span<const uint32_t> order,
                             uint32_t pitch_bits = 0);

// Elements in one run that a thread holds: `offsets` goes to one out dim. In place: registers 0, 1, 2, ... hold elements
// 0, 1, 2, ... of the run (Linear Layouts, section 5.1); otherwise in any order of the registers.
uint64_t contiguous_in_place(const Layout &offsets);
uint64_t contiguous_in_any_order(const Layout &offsets);

// The widest access in elements of 2^k, at most `most_bits` bits and `most_elements` elements, at most as wide as the
// memory's alignment allows: `alignment` is that of the base address and of each row's, in elements.
uint64_t vector_elements(const Layout &offsets, uint32_t bits_per_element, uint32_t most_bits = 128,
                         uint64_t alignment = UINT64_MAX);

// One holder of an element.
struct Owner {
  uint64_t block = 0;
  uint64_t warp = 0;
  uint64_t lane = 0;
  uint64_t reg = 0;

  auto operator<=>(const Owner &) const = default;
};
// All that hold the element at `index` (one value for each out dim), least first by (block, warp, lane, register); empty
// with kNoSolution when nobody does. At most 2^20 (kUnsupported).
bool owners_of(Arena &arena, const Layout &layout, std::span<const uint64_t> index, std::vector<Owner> &out);

}  // namespace sonde::layout
