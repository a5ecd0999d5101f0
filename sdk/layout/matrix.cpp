#include "layout/matrix.h"

namespace sonde::layout {

uint32_t rank_of(std::span<const uint64_t> columns) {
  Elimination elimination;
  uint32_t rank = 0;
  for (const uint64_t column : columns) rank += elimination.add(column) ? 1 : 0;
  return rank;
}

uint64_t dependent_columns(std::span<const uint64_t> columns) {
  Elimination elimination;
  uint64_t dependent = 0;
  for (uint32_t i = 0; i < columns.size(); ++i) {
    if (!elimination.add(columns[i])) dependent |= uint64_t{1} << i;
  }
  return dependent;
}

uint32_t kernel_basis(std::span<const uint64_t> columns, uint64_t *out) {
  Elimination elimination;
  uint32_t count = 0;
  for (uint32_t i = 0; i < columns.size(); ++i) {
    uint64_t combination = 0;
    // Before the column is taken in: its combination of earlier pivots, if there is one.
    if (elimination.solve(columns[i], combination)) {
      out[count++] = combination | uint64_t{1} << i;
    } else {
      elimination.add(columns[i], i);
    }
  }
  return count;
}

uint32_t image_basis(std::span<const uint64_t> columns, uint64_t *out) {
  Elimination elimination;
  uint32_t count = 0;
  for (const uint64_t column : columns) {
    if (elimination.add(column)) out[count++] = column;
  }
  return count;
}

uint32_t annihilator_basis(std::span<const uint64_t> columns, uint32_t bits, uint64_t *out) {
  // y . c_j = 0 for all j is C^T y = 0; bit j of the i-th column of C^T is bit i of c_j.
  uint64_t basis[64];
  const uint32_t rank = image_basis(columns, basis);
  uint64_t rows[64];
  transpose({basis, rank}, bits, rows);
  return kernel_basis({rows, bits}, out);
}

uint32_t intersection_basis(std::span<const uint64_t> a, std::span<const uint64_t> b, uint64_t *out) {
  // A v = B w: each dependency of b's vectors on a basis of a gives one vector of the intersection.
  uint64_t basis_a[64];
  const uint32_t rank_a = image_basis(a, basis_a);
  Elimination of_both;
  for (uint32_t i = 0; i < rank_a; ++i) of_both.add(basis_a[i], i);
  Elimination of_a;
  for (uint32_t i = 0; i < rank_a; ++i) of_a.add(basis_a[i]);
  uint64_t basis_b[64];
  const uint32_t rank_b = image_basis(b, basis_b);
  uint64_t independent_b[64];
  uint32_t count = 0;
  uint32_t added = 0;
  for (uint32_t i = 0; i < rank_b; ++i) {
    uint64_t combination = 0;
    if (of_both.solve(basis_b[i], combination)) {
      // basis_b[i] = (some of a) + (some of the earlier b's outside a): those b's together with it lie in span(a).
      uint64_t vector = basis_b[i];
      for (uint64_t rest = rank_a < 64 ? combination >> rank_a : 0; rest != 0; rest &= rest - 1) {
        vector ^= independent_b[lowest_bit(rest)];
      }
      out[count++] = vector;
    } else {
      independent_b[added] = basis_b[i];
      of_both.add(basis_b[i], rank_a + added);
      ++added;
    }
  }
  return count;
}

uint32_t complement_basis(std::span<const uint64_t> vectors, uint32_t bits, uint64_t *out) {
  uint64_t lowest = 0;  // the lowest bits of the span's vectors
  uint64_t by_lowest[64];
  for (uint64_t vector : vectors) {
    while (vector != 0) {
      const uint32_t pivot = lowest_bit(vector);
      if ((lowest >> pivot & 1) == 0) {
        lowest |= uint64_t{1} << pivot;
        by_lowest[pivot] = vector;
        break;
      }
      vector ^= by_lowest[pivot];
    }
  }
  uint32_t count = 0;
  for (uint64_t rest = ~lowest & low_mask(bits); rest != 0; rest &= rest - 1) out[count++] = rest & -rest;
  return count;
}

void transpose(std::span<const uint64_t> columns, uint32_t bits, uint64_t *out) {
  for (uint32_t i = 0; i < bits; ++i) out[i] = 0;
  for (uint32_t j = 0; j < columns.size(); ++j) {
    for (uint64_t rest = columns[j] & low_mask(bits); rest != 0; rest &= rest - 1) {
      out[lowest_bit(rest)] |= uint64_t{1} << j;
    }
  }
}

}  // namespace sonde::layout
