// What is asked of a layout.
#pragma once

#include "layout/layout.h"

namespace sonde::layout {

// The block from `ins` to `outs` is 0.
bool sublayout_is_zero(const Layout &layout, std::span<const DimName> ins, std::span<const DimName> outs);

// The block from `dims` to the same `dims` is the identity; nothing is said of the rest.
bool square_is_identity(const Layout &layout, std::span<const DimName> dims);

// The block on `dims` is the identity, and they neither feed other outs nor depend on other ins. False where a dim is
// missing on one side.
bool is_trivial_over(const Layout &layout, std::span<const DimName> dims);

// Out dim `name` depends on in dim `name` only, as the identity; that in dim may feed other outs too.
bool is_identity_on_out(const Layout &layout, DimName name);

// The layout without `dims`; kNoSolution unless it is trivial over them.
const Layout *quotient(Arena &arena, const Layout &layout, std::span<const DimName> dims);

// For each in dim, in order: the bits whose columns depend on the columns before them.
void free_variable_masks(const Layout &layout, uint64_t *masks);
std::vector<uint64_t> free_variable_masks(const Layout &layout);

// The largest 2^k of which the identity from the first in dim to the first out dim is a left divisor.
uint64_t consecutive_in_out(const Layout &layout);

// The largest 2^k for which the values 0..2^k-1 of an out dim are all reached, the other outs being whatever they are.
uint64_t contiguous_along(const Layout &layout, DimName out);

// The bits of out dim `out` that the in dims `ins` can change.
uint64_t output_basis_mask(const Layout &layout, std::span<const DimName> ins, DimName out);
// The bits of in dim `in` that change any of the out dims `outs`.
uint64_t input_basis_mask(const Layout &layout, DimName in, std::span<const DimName> outs);

// How far an in dim is the identity on an out dim from the lowest bit on, at most `limit` values, and what is left of
// the layout when that prefix is divided out.
struct IdentityPrefix {
  uint64_t size;
  const Layout *quotient;
};
IdentityPrefix identity_prefix(Arena &arena, const Layout &layout, DimName in, DimName out, uint64_t limit);

// Each column has at most one bit set and no two the same one: a permutation with broadcasts (the paper's distributed
// layouts, definition 4.10, when it is surjective too).
bool is_permutation_with_broadcasts(const Layout &layout);
// Invertible, one or two bits in each column (memory layouts, definition 4.14).
bool is_memory_layout(const Layout &layout);

// --- The questions that a compiler asks of a tensor's encoding ---

// For each out dim in order: 2^(bases of in dim `in` that begin there). A zero basis counts where the last one was,
// unless it is skipped.
std::vector<uint64_t> bases_per_dim(const Layout &layout, DimName in, bool skips_broadcasts = true);
// Out dims by the order in which the bases of `in` first touch them, then those of `rest` that they do not touch.
std::vector<uint32_t> order_per_dim(const Layout &layout, DimName in, std::span<const uint32_t> rest);
// Consecutive elements that a thread holds, by out dim.
std::vector<uint64_t> contiguous_per_thread(const Layout &layout);
// Elements of a thread, with and without its duplicates.
uint64_t elements_per_thread(const Layout &layout);
uint64_t unique_elements_per_thread(const Layout &layout);

}  // namespace sonde::layout
