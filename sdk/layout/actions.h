// Permutations of the bits of one in dim, and the divisions that need one first.
#pragma once

#include "layout/layout.h"

namespace sonde::layout {

// Reorders or drops the bases of one in dim: new basis i is old basis permutation[i].
//
// The same action on the 2^bits values that the dim indexes moves them with it: register r of the new layout holds what
// register `source(r)` held.
class ColumnAction {
 public:
  ColumnAction() = default;
  ColumnAction(std::vector<uint32_t> permutation, DimName in, uint32_t bits)
      : permutation_(std::move(permutation)), in_(in), bits_(bits) {}

  const std::vector<uint32_t> &permutation() const { return permutation_; }
  DimName in() const { return in_; }
  uint32_t bits() const { return bits_; }
  bool is_identity() const;

  // kInvalid when the layout's dim has other bits.
  const Layout *apply(Arena &arena, const Layout &layout) const;

  // Index among the old values of the new value `index`.
  uint64_t source(uint64_t index) const;
  template <typename T>
  std::vector<T> apply(std::span<const T> values) const {
    std::vector<T> moved(uint64_t{1} << permutation_.size());
    for (uint64_t i = 0; i < moved.size(); ++i) moved[i] = values[source(i)];
    return moved;
  }

  // First `first`, then this one; both over one dim of as many bits as `first` leaves.
  ColumnAction after(const ColumnAction &first) const;
  // Of a permutation that drops nothing.
  ColumnAction inverse() const;

 private:
  std::vector<uint32_t> permutation_;
  DimName in_ = 0;
  uint32_t bits_ = 0;
};

// The permutation of a's registers that brings those of `b` to the front (left) or to the back, so that the division
// may succeed; nullopt when some are not there. Without a fault.
std::optional<ColumnAction> registers_for_division(const Layout &a, const Layout &b, bool left);

// Drops the register bases that are 0.
ColumnAction drop_broadcast_registers(const Layout &layout);

// Registers whose contribution can be added to an address instead of xor-ed, because no other input and no offset
// touches their bits, come first in the permutation; `strides` is how many those are. `affine` marks address bits that a
// runtime offset may set.
struct AdditiveStrides {
  ColumnAction action;
  uint32_t strides;
};
AdditiveStrides additive_strides(const Layout &layout, uint64_t affine);

// The widest power of two of consecutive elements, at most 128 bits of `bits_per_element`, that one access can move:
// `layout` maps registers to offsets. The action brings the registers that one access moves to the front.
struct Vectorisation {
  uint64_t elements;
  ColumnAction action;
};
Vectorisation largest_vectorisation(Arena &arena, const Layout &layout, uint32_t bits_per_element,
                                    uint64_t most_elements = UINT64_MAX);

// `values` of a layout without broadcast registers as the values of `layout`, which has them: index of the source of
// each register.
std::vector<uint64_t> broadcast_sources(const Layout &layout);

// What repeats an instruction of tile `tile`: the leading bases must be the tile's, the others must stay off its bits.
// The result is `layout` with the leading bases 0; kNoSolution where it is not so.
const Layout *repetitions(Arena &arena, const Layout &layout, const Layout &tile);

}  // namespace sonde::layout
