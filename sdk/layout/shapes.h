// What renames, reorders, cuts or drops dimensions.
#pragma once

#include "layout/layout.h"

namespace sonde::layout {

enum class Side : uint8_t { kIn, kOut };

// The dims of one side in another order; `order` names each of them once.
const Layout *transpose(Arena &arena, const Layout &layout, Side side, std::span<const DimName> order);

// One side, flattened with its first dim lowest, cut into new dims of the same total.
const Layout *reshape(Arena &arena, const Layout &layout, Side side, std::span<const DimSize> dims);

// One side as a single dim, named as its first; a side without dims stays so.
const Layout *flatten(Arena &arena, const Layout &layout, Side side);

// Drops a dim of one value.
const Layout *squeeze(Arena &arena, const Layout &layout, Side side, DimName name);
// Adds a dim of one value, last.
const Layout *unsqueeze(Arena &arena, const Layout &layout, Side side, DimName name);

// Drops the highest bases of an in dim, or adds zero bases.
const Layout *resize_in(Arena &arena, const Layout &layout, DimName name, uint32_t bits);
// A smaller out dim. `kZero` does what Triton does: a value past the new size becomes 0. `kModulo` is the projection:
// it keeps the low bits.
enum class Resize : uint8_t { kZero, kModulo };
const Layout *resize_out(Arena &arena, const Layout &layout, DimName name, uint32_t bits, Resize how);

// Renames at once, so that names may change places; those that are not named stay. Order is kept.
struct Renaming {
  DimName from;
  DimName to;
};
const Layout *rename(Arena &arena, const Layout &layout, Side side, std::span<const Renaming> names);

// Restricted to some in dims (the others held at 0) and projected to some out dims, in the layout's order. With no out
// dims the in dims stay, with no in dims the out dims stay.
const Layout *sublayout(Arena &arena, const Layout &layout, std::span<const DimName> ins,
                        std::span<const DimName> outs);

// Without the zero bases of an in dim.
const Layout *remove_zero_bases(Arena &arena, const Layout &layout, DimName name);

// --- Tensors: out dims are dim0, dim1, ... ---

// Each out dim at most as large as in `shape` (sizes, by out dim in order): values past it become 0. Register bases
// that become 0 stay only when `keeps_registers`.
const Layout *not_larger(Arena &arena, const Layout &layout, std::span<const DimSize> shape,
                         bool keeps_registers = true);
// Each out dim at least as large: the first in dim gets the repetitions, in the order of the out dims.
const Layout *not_smaller(Arena &arena, const Layout &layout, std::span<const DimSize> shape);

// The identity from one in dim to dim0, dim1, ...; `order` says which dim varies first.
const Layout *identity_nd(Arena &arena, DimName in, std::span<const uint64_t> shape, std::span<const uint32_t> order);

// The tensor's index spaces seen row-major: a reshape of the tensor, a permutation of its dims (`order[i]` is the dim
// that becomes dim i), a dim less.
const Layout *reshape_tensor(Arena &arena, const Layout &layout, std::span<const uint64_t> shape);
const Layout *transpose_tensor(Arena &arena, const Layout &layout, std::span<const uint32_t> order);
const Layout *remove_tensor_dim(Arena &arena, const Layout &layout, uint32_t index);

// Zero everywhere, with the layout's dims.
const Layout *zeros_like(Arena &arena, const Layout &layout);

}  // namespace sonde::layout
