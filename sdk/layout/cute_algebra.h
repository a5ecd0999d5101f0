// The algebra of CuTe layouts: coalescing, composition, complements and inverses.
//
// Every result satisfies the condition stated with its function, or there is none: kNoSolution where no layout does,
// kUnsupported where the method cannot tell, kInvalid where the arguments break the function's conditions. CuTe itself
// returns wrong layouts for some of these inputs; see `compose`.
#pragma once

#include "layout/cute.h"

namespace sonde::layout {

// Results of at most this many elements are compared with their definition element by element, on top of the argument
// that makes them right at any size.
inline constexpr int64_t kCuteChecked = 1024;
// Up to this many elements, questions that the structure does not answer are answered by looking at every element.
inline constexpr int64_t kCuteEnumerated = 65536;

// The same function with the fewest leaves: drops leaves of size 1 and fuses s0:d0, s1:d1 where d1 = s0 d0. It is unique.
//   (2,(1,6)):(1,(6,2)) = 12:1
const CuteLayout *coalesce(Arena &arena, const CuteLayout &layout);
// Each mode by itself, as deep as the profile is a tuple: (2,(1,6)):(1,(6,2)) by (1,1) = (2,6):(1,2).
const CuteLayout *coalesce(Arena &arena, const CuteLayout &layout, const CuteTuple &profile);

// A tuple of all leaves.
const CuteLayout *flatten(Arena &arena, const CuteLayout &layout);
// Leaves of stride 0 become 1:0.
const CuteLayout *filter_zeros(Arena &arena, const CuteLayout &layout);
// Without leaves of stride 0 and of size 1, coalesced: the distinct indices.
const CuteLayout *filter(Arena &arena, const CuteLayout &layout);

// Modes [begin, end) become one; a mode becomes its modes.
const CuteLayout *group_modes(Arena &arena, const CuteLayout &layout, uint32_t begin, uint32_t end);
const CuteLayout *ungroup_mode(Arena &arena, const CuteLayout &layout, uint32_t index);
// One mode more, at the end or at the front.
const CuteLayout *append(Arena &arena, const CuteLayout &layout, const CuteLayout &mode);
const CuteLayout *prepend(Arena &arena, const CuteLayout &layout, const CuteLayout &mode);
// Modes 1:0 at the end until there are `rank`.
const CuteLayout *pad_rank(Arena &arena, const CuteLayout &layout, uint32_t rank);

// R(i) = a(b(i)) for every i < size(b), where R has b's tree with each leaf refined:
//   (6,2):(8,2) of (4,3):(3,1) = ((2,2),3):((24,2),8)
//
// A leaf s:d of b is cut at the sizes of a's coalesced modes. The leaves' results may be added only when their digits
// in each mode of `a` never carry into the next, which is exactly when such an R exists: where they first carry, a's
// stride of the next mode is not the carried mode's stride times its size, or it would have been coalesced.
//   (6,2):(1,7) of (3,2):(2,3)   kNoSolution: 2 * 2 + 3 * 1 = 7 carries past the 6, and 2 + 3 would be added for 8
//   (4,6,8):(2,3,5) of 6:3       kNoSolution: 0, 6, 7, 9, ... is no layout of 6 elements
// `b` must not have negative indices; past the size of `a`, its last mode goes on.
const CuteLayout *compose(Arena &arena, const CuteLayout &a, const CuteLayout &b);
// By mode where the tiler is a list; modes that the list does not reach, or that it keeps, stay.
const CuteLayout *compose(Arena &arena, const CuteLayout &a, const CuteTiler &tiler);

// The ordered R of least size for which every index below `least` is one of the layout's indices plus one of R's, in
// exactly one way, and all such sums are 0, 1, ..., size - 1. Leaves of stride 0 do not count.
//   (2,2):(4,1) in 24 = (2,3):(2,8)      4:2 in 24 = (2,3):(1,8)
// kNoSolution when the sorted strides do not divide each other as they must (a theorem of de Bruijn on number systems);
// kUnsupported for negative strides.
const CuteLayout *complement(Arena &arena, const CuteLayout &layout, int64_t least = 1);

// The longest R made of whole leaves with layout(R(i)) = i for every i < size(R); 1:0 when there is no more.
//   (2,4,6):(4,1,8) -> (4,2,6):(2,1,8)
const CuteLayout *right_inverse(Arena &arena, const CuteLayout &layout);
// R with R(layout(i)) = i for every i < size(layout).
//   4:2 -> (2,4):(4,1)     (4,2):(1,16) -> (4,4,2):(1,8,4)
// kNoSolution when two elements share an index; kUnsupported where the method finds none.
const CuteLayout *left_inverse(Arena &arena, const CuteLayout &layout);
// R with layout(R(i)) = 0 for every i: the leaves of stride 0.
const CuteLayout *nullspace(Arena &arena, const CuteLayout &layout);

// The longest R found with a(R(i)) = b(R(i)) = i, and its size: how many elements one instruction can copy.
const CuteLayout *max_common_layout(Arena &arena, const CuteLayout &a, const CuteLayout &b);
bool max_common_vector(Arena &arena, const CuteLayout &a, const CuteLayout &b, int64_t &elements);

}  // namespace sonde::layout
