// Products, quotients, composition and inversion.
//
// A function returns nullptr with the arena's fault set: kInvalid where the arguments break its conditions,
// kNoSolution where they keep them and no such layout exists.
#pragma once

#include "layout/layout.h"

namespace sonde::layout {

// The common order of two lists of dims: both keep theirs, and where both would do the first list's names come first.
// kInvalid when they contradict each other ([a, b] and [b, a]).
bool supremum(Arena &arena, std::span<const DimName> a, std::span<const DimName> b, std::vector<DimName> &out);

// The direct sum: in a shared in dim, inner's bits lie below outer's; in a shared out dim, outer's values are shifted
// by inner's bits. Dims in their common order. Associative; not commutative.
const Layout *product(Arena &arena, const Layout &inner, const Layout &outer);

// C with product(divisor, C) = a; it keeps all dims of `a`. kNoSolution when there is none.
const Layout *divide_left(Arena &arena, const Layout &a, const Layout &divisor);
// C with product(C, divisor) = a.
const Layout *divide_right(Arena &arena, const Layout &a, const Layout &divisor);

// x -> outer(inner(x)). The out dims of `inner` and the in dims of `outer` are the same set, each at most as large in
// `inner`.
const Layout *compose(Arena &arena, const Layout &inner, const Layout &outer);

// X with a(X(x)) = b(x), the smallest such value for each bit of x; maps b's ins to a's ins. Same set of out dims, each
// at most as large in `b`. kNoSolution when b reaches values that a does not.
const Layout *least_solution(Arena &arena, const Layout &a, const Layout &b);

// C with outer(C(x)) = layout(x), as least_solution, but in dims that both have with the same columns map to
// themselves where that is possible: data that need not move stays.
const Layout *invert_and_compose(Arena &arena, const Layout &layout, const Layout &outer);

// As invert_and_compose, for memory that a block keeps to itself: where memory has no bit for a bit of `block`, the
// answer has the asking block's own.
const Layout *invert_and_compose_block_local(Arena &arena, const Layout &layout, const Layout &memory);

// The smallest right inverse: layout(R(y)) = y. kNoSolution unless surjective.
const Layout *pseudoinvert(Arena &arena, const Layout &layout);
// kNoSolution unless invertible.
const Layout *invert(Arena &arena, const Layout &layout);

// Side by side: the same out dims in order and size; different in dims. Offsets: `b` must have none.
const Layout *concat_ins(Arena &arena, const Layout &a, const Layout &b);
// Stacked: the same in dims in order and size; different out dims.
const Layout *concat_outs(Arena &arena, const Layout &a, const Layout &b);

// Pointwise a(x) ^ b(x); the same dims in order and size.
const Layout *sum(Arena &arena, const Layout &a, const Layout &b);

// Subspaces as layouts, in a single in dim "basis": the kernel (out dims are the layout's ins), the image (its outs),
// and the intersection and the sum of two images (same out dims in order and size). The cokernel maps the layout's outs
// to an out dim "basis": a value lies in the image of A exactly when it is mapped to 0.
const Layout *kernel(Arena &arena, const Layout &layout);
const Layout *image(Arena &arena, const Layout &layout);
const Layout *cokernel(Arena &arena, const Layout &layout);
const Layout *intersect_images(Arena &arena, const Layout &a, const Layout &b);
const Layout *sum_of_images(Arena &arena, const Layout &a, const Layout &b);

}  // namespace sonde::layout
