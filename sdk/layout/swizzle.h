// The arrangement of shared memory through which one register layout becomes another without bank conflicts.
//
// A memory layout maps (vector, bank, segment, block, reps) to the tensor. A vector is what one access moves; the banks
// are the places that one wavefront can reach at once; segments lie behind each other in the same banks; reps are parts
// of the tensor that pass one after the other through the same memory. Two lanes that fall into the same bank but into
// different segments conflict, so the segments must meet the span of the lanes, of either side, in 0 only.
//
// Example: 2x2 elements of 32 bits, 2 lanes, 2 banks; lanes write rows (lane -> (1, 0)) and read columns
// (lane -> (0, 1)). A segment (1, 0) would put both lanes of a write into one bank, (0, 1) those of a read; (1, 1), the
// sum of the two, meets neither.
//
// Source: Linear Layouts (arXiv 2505.23819), section 5.4 and appendix 9.2.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "layout/layout.h"

namespace sonde::layout {

// How an instruction of 128 bits for each lane meets the lanes of a warp: which bits of the lane index lie in one
// contiguous row of 128 bits, and which tell apart the rows of one wavefront.
struct AccessTile {
  std::array<uint8_t, 6> contiguous{};
  uint8_t contiguous_count = 0;
  std::array<uint8_t, 6> address{};
  uint8_t address_count = 0;

  std::span<const uint8_t> contiguous_lanes() const { return {contiguous.data(), contiguous_count}; }
  std::span<const uint8_t> address_lanes() const { return {address.data(), address_count}; }
};

inline constexpr AccessTile kVectorTile{{}, 0, {0, 1, 2}, 3};                  // ld.shared, st.shared
inline constexpr AccessTile kMatrixTile{{0, 1}, 2, {2, 3, 4}, 3};              // ldmatrix, stmatrix; <= 32 bits
inline constexpr AccessTile kTransposedMatrixTile{{2, 3, 4}, 3, {0, 1}, 2};    // the same .trans; 16 bits
inline constexpr AccessTile kWave64VectorTile{{}, 0, {0, 1, 4}, 3};            // AMD ds_read_b128, 32 banks
inline constexpr AccessTile kWave64VectorTile64Banks{{}, 0, {0, 1, 3, 4}, 4};  // the same, 64 banks

struct SwizzleOptions {
  uint32_t bits_per_element = 32;  // a power of two, 1 to 128
  uint32_t banks = 32;             // of 32 bits each; a power of two, 1 to 64
  // The lanes of one wavefront, where they are not simply the lowest; the tiles' address lanes are used.
  const AccessTile *source_tile = nullptr;
  const AccessTile *destination_tile = nullptr;
};

struct Swizzle {
  // (vector, bank, segment, block, reps) -> the source's out dims; invertible. In the caller's arena.
  const Layout *memory = nullptr;
  // Wavefronts past the first that each wavefront's worth of lanes needs, for reading (the destination's access) and
  // for writing (the source's).
  uint64_t read_conflicts = 0;
  uint64_t write_conflicts = 0;
  // Indices of the tiles chosen by the instruction search; -1 where plain loads and stores of what width there is are
  // all that fits.
  int32_t source_tile = -1;
  int32_t destination_tile = -1;
};

// For plain stores of `source` and loads of `destination`, maps from (register, lane, warp, block) to one tensor.
//
// kInvalid: different out dims, other in dims, zero register bases (see drop_broadcast_registers), bad options.
// kUnsupported: bases that depend on each other such that no memory layout results.
// Offsets of the layouts play no part: they exchange banks, not conflicts.
// tests/bench/layout.cpp measures it.
bool optimal_swizzle(Arena &arena, const Layout &source, const Layout &destination, const SwizzleOptions &options,
                     Swizzle &out);

// As optimal_swizzle, over every pair of instructions that both sides' registers and lanes allow: the least conflicts
// of read and write together, then the most repetitions (the least memory), then the first pair. Without a pair that
// fits, the result of optimal_swizzle with both tiles -1. The options' own tiles are then used, if given.
bool optimal_swizzle_for(Arena &arena, const Layout &source, const Layout &destination, const SwizzleOptions &options,
                         std::span<const AccessTile> source_tiles, std::span<const AccessTile> destination_tiles,
                         Swizzle &out);

}  // namespace sonde::layout
