// Elimination over F2 on columns of up to 64 bits.
//
// A set of vectors is a span of words; a subspace is a basis of it. Functions that return vectors write them in the
// order named and return how many there are; `out` has room for 64.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "layout/bits.h"

namespace sonde::layout {

// Columns taken in one after the other, each reduced by those before it.
//
// Beside each reduced vector lies the combination of columns that makes it. Only columns that were independent of the
// earlier ones (the pivots) occur in combinations, so a solution uses the first independent columns and leaves the
// others 0: the numerically smallest preimage, since the highest bit of every kernel vector is such another column.
class Elimination {
 public:
  // Takes column `index` in; true when it is independent of the earlier ones. index < 64.
  bool add(uint64_t column, uint32_t index) {
    uint64_t combination = uint64_t{1} << index;
    while (column != 0) {
      const uint32_t pivot = highest_bit(column);
      if ((used_ >> pivot & 1) == 0) {
        used_ |= uint64_t{1} << pivot;
        reduced_[pivot] = column;
        combination_[pivot] = combination;
        return true;
      }
      column ^= reduced_[pivot];
      combination ^= combination_[pivot];
    }
    return false;
  }

  // As add, without keeping track of combinations: for ranks and spans.
  bool add(uint64_t column) {
    column = reduce(column);
    if (column == 0) return false;
    const uint32_t pivot = highest_bit(column);
    used_ |= uint64_t{1} << pivot;
    reduced_[pivot] = column;
    combination_[pivot] = 0;
    return true;
  }

  // What is left of a vector when its highest bits are cancelled as far as that goes: 0 when it lies in the span.
  uint64_t reduce(uint64_t vector) const {
    uint64_t left = vector;
    while (left != 0) {
      const uint32_t pivot = highest_bit(left);
      if ((used_ >> pivot & 1) == 0) return left;
      left ^= reduced_[pivot];
    }
    return 0;
  }
  bool contains(uint64_t vector) const { return reduce(vector) == 0; }

  // The smallest combination of columns, one bit each, that sums to `vector`; false when there is none.
  bool solve(uint64_t vector, uint64_t &combination) const {
    combination = 0;
    while (vector != 0) {
      const uint32_t pivot = highest_bit(vector);
      if ((used_ >> pivot & 1) == 0) return false;
      vector ^= reduced_[pivot];
      combination ^= combination_[pivot];
    }
    return true;
  }

  uint32_t rank() const { return static_cast<uint32_t>(std::popcount(used_)); }

 private:
  uint64_t used_ = 0;
  uint64_t reduced_[64];  // by highest bit; set where `used_` is
  uint64_t combination_[64];
};

uint32_t rank_of(std::span<const uint64_t> columns);

// Bit i is set where column i depends on the columns before it.
uint64_t dependent_columns(std::span<const uint64_t> columns);

// A basis of {x : A x = 0}, one vector for each dependent column, whose highest bit that is; ascending.
uint32_t kernel_basis(std::span<const uint64_t> columns, uint64_t *out);

// The independent columns, in order.
uint32_t image_basis(std::span<const uint64_t> columns, uint64_t *out);

// A basis of {y : y . c = 0 for every column c} in F2^bits: the functionals that vanish on the image (the cokernel).
uint32_t annihilator_basis(std::span<const uint64_t> columns, uint32_t bits, uint64_t *out);

// A basis of the intersection of two spans.
uint32_t intersection_basis(std::span<const uint64_t> a, std::span<const uint64_t> b, uint64_t *out);

// Unit vectors that complete the span of `vectors` to F2^bits, ascending: those of the bits that no vector of the span
// has as its lowest one (the columns without a pivot when the vectors are rows, reduced from the lowest bit on).
uint32_t complement_basis(std::span<const uint64_t> vectors, uint32_t bits, uint64_t *out);

// Rows and columns exchanged: bit j of out[i] is bit i of columns[j], for i < bits. out has room for `bits`.
void transpose(std::span<const uint64_t> columns, uint32_t bits, uint64_t *out);

}  // namespace sonde::layout
