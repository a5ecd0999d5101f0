// Lists of vectors on the stack, for the swizzles: no allocation, and nearly every question answered by a mask.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "layout/layout.h"

namespace sonde::layout {

// A list of vectors on the stack. Nearly all are unit vectors, which a mask finds at once.
class VectorList {
 public:
  VectorList() = default;
  VectorList(const VectorList &other) { *this = other; }
  VectorList &operator=(const VectorList &other) {
    count_ = other.count_;
    has_sums_ = other.has_sums_;
    units_ = other.units_;
    std::copy_n(other.items_, count_, items_);
    return *this;
  }

  // Zeros are left out.
  void add(uint64_t vector) {
    if (vector == 0) return;
    if ((vector & (vector - 1)) == 0) {
      units_ |= vector;
    } else {
      has_sums_ = true;
    }
    items_[count_++] = vector;
  }
  void truncate(uint32_t count) {
    if (count >= count_) return;
    const uint32_t kept = count;
    count_ = 0;
    units_ = 0;
    has_sums_ = false;
    for (uint32_t i = 0; i < kept; ++i) add(items_[i]);
  }

  bool has(uint64_t vector) const {
    if ((vector & (vector - 1)) == 0) return (units_ & vector) != 0;
    return has_sums_ && std::find(begin(), end(), vector) != end();
  }

  uint32_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  uint64_t operator[](uint32_t i) const { return items_[i]; }
  const uint64_t *begin() const { return items_; }
  const uint64_t *end() const { return items_ + count_; }
  uint64_t *begin() { return items_; }
  uint64_t *end() { return items_ + count_; }
  std::span<const uint64_t> all() const { return {items_, count_}; }
  uint64_t units() const { return units_; }
  bool has_sums() const { return has_sums_; }

 private:
  uint32_t count_ = 0;
  bool has_sums_ = false;
  uint64_t units_ = 0;
  uint64_t items_[4 * kMaxBits];
};

// A layout's bases by what they index; zeros are dropped but for the lanes, whose places count.
struct Bases {
  VectorList registers;
  std::span<const uint64_t> lanes;
  VectorList warps;
  VectorList blocks;
};

}  // namespace sonde::layout
