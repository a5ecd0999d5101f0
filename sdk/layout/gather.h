// A gather along one axis within a warp, by index shuffles: out[.., i, ..] = source[.., index[.., i, ..], ..].
//
// It stays within the warp when neither warps nor blocks reach along the axis, on both sides, and source and index have
// the same lanes, warps and blocks on the other dims. Whoever wants an element then finds it in the same column of the
// tensor, in a lane of its own warp: lane = a function of (own lane, index), register = a function of (own register,
// index). A shuffle moves one named register, so each of the N registers that a column has is shuffled and the right one
// selected (Linear Layouts, section 5.5).
//
// Example: an axis of 64 elements over 32 lanes and 2 registers, an index of 32: one register each. Two shuffles (one for
// each source register, from lane index mod 32 where lanes are the low bits), one select.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout/layout.h"

namespace sonde::layout {

struct GatherPlan {
  const Layout *source = nullptr;  // as given
  const Layout *index = nullptr;
  DimName axis = 0;
  // (register, lane, warp, block of the index; axis) -> (register, lane) of the source that hold the element.
  const Layout *holder = nullptr;
  uint64_t candidates = 1;  // N
  // Of one thread, on 32 bits, for all registers of the index.
  uint64_t shuffles = 0;
  uint64_t selects = 0;
  // The paper's count of rounds: lanes that lie along the axis.
  uint64_t rounds = 1;
};

// kNoSolution when the gather does not stay within a warp (the text says why); kInvalid for other dims than (register,
// lane, warp, block) and sides of different out dims. Other dims than the axis must have the same sizes.
bool plan_gather(Arena &arena, const Layout &source, const Layout &index, DimName axis, uint32_t bits_per_element,
                 GatherPlan &out);

// Carries the plan out: `data` by the source's inputs, `indices` by the index's, the result by the index's too. Shuffles
// are simulated: each takes one register from every lane. kInvalid for an index past the axis.
bool execute_gather(Arena &arena, const GatherPlan &plan, std::span<const uint64_t> data,
                    std::span<const uint64_t> indices, std::vector<uint64_t> &out, uint64_t *shuffles = nullptr);

// --- Products of two precisions ---

// A product sums over K in any order, so that both operands' layouts may have their K index permuted by the same pi: the
// narrow operand's so that what a thread holds is contiguous in memory and loads in wide vectors.
//
// Example: the left operand of a 16x8x16 multiply has register bits 1, 8 of K and lane bits 2, 4. pi takes 8 to 2, 2 to
// 4 and 4 to 8: a thread's four elements are then 0 to 3, one access.
struct DotShuffle {
  // K -> K, a permutation of its bits, in and out dim named as the narrow operand's; the identity where nothing is gained.
  const Layout *permutation = nullptr;
  const Layout *narrow = nullptr;  // the operands' layouts with pi on K
  const Layout *wide = nullptr;
  // Elements of one access along K, K being the fastest dim in memory.
  uint64_t narrow_before = 1;
  uint64_t narrow_after = 1;
  uint64_t wide_before = 1;
  uint64_t wide_after =
      1;  // of the permuted layout; `wide_before` where the wide operand is permuted in memory instead

  bool is_worthwhile() const { return narrow_after > narrow_before; }
};

struct DotOperand {
  const Layout *layout;
  DimName k;  // the out dim that is summed over
  uint32_t bits_per_element;
};

// kInvalid when the K dims are missing or of different sizes; kUnsupported when K bits in registers are mixed with others.
bool plan_dot_shuffle(Arena &arena, const DotOperand &narrow, const DotOperand &wide, uint32_t most_vector_bits,
                      DotShuffle &out);

}  // namespace sonde::layout
