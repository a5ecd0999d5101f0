// CuTe's swizzle, and layouts with one: x -> swizzle(offset + layout(x)).
//
// Swizzle<B, M, S> takes the B bits from M + S on and xors them onto the B bits from M on; with negative S it takes
// those from M on and xors them onto those |S| higher. Source and target never overlap, so it is its own inverse.
//   Swizzle<3,4,3>   address bits 7..9 onto bits 4..6: the 128-byte swizzle of shared memory, in bytes
#pragma once

#include "layout/cute_tiling.h"

namespace sonde::layout {

struct CuteSwizzle {
  uint32_t bits = 0;  // B; 0: x -> x
  uint32_t base = 0;  // M
  int32_t shift = 0;  // S; |S| >= B

  int64_t apply(int64_t index) const {
    const auto word = static_cast<uint64_t>(index);
    const uint64_t target = ((uint64_t{1} << bits) - 1) << base;
    const auto distance = static_cast<uint32_t>(shift < 0 ? -shift : shift);
    return static_cast<int64_t>(shift < 0 ? word ^ ((word & target) << distance)
                                          : word ^ ((word >> distance) & target));
  }
  bool operator==(const CuteSwizzle &) const = default;
};

// kInvalid unless |shift| >= bits and all the bits it uses lie below 2^62.
bool check_swizzle(Arena &arena, const CuteSwizzle &swizzle);

class CuteComposed {
 public:
  CuteComposed(const CuteSwizzle &swizzle, int64_t offset, const CuteLayout &layout)
      : swizzle_(swizzle), offset_(offset), layout_(&layout) {}

  const CuteSwizzle &swizzle() const { return swizzle_; }
  int64_t offset() const { return offset_; }
  const CuteLayout &layout() const { return *layout_; }
  int64_t size() const { return layout_->size(); }
  int64_t apply(int64_t index) const { return swizzle_.apply(offset_ + layout_->apply(index)); }

 private:
  CuteSwizzle swizzle_;
  int64_t offset_;
  const CuteLayout *layout_;
};

// kInvalid for a bad swizzle, and when offset + layout(x) is negative or passes 2^62 for some x.
const CuteComposed *make_cute_composed(Arena &arena, const CuteSwizzle &swizzle, int64_t offset,
                                       const CuteLayout &layout);

// `Sw<3,4,3> o 0 o (8,8):(8,1)`; the swizzle, or swizzle and offset, may be left out.
const CuteComposed *parse_cute_composed(Arena &arena, std::string_view text);
std::string to_string(const CuteSwizzle &swizzle);
std::string to_string(const CuteComposed &composed);

// The same swizzle and offset with the inner layout composed, divided or sliced.
const CuteComposed *compose(Arena &arena, const CuteComposed &composed, const CuteTiler &tiler);
const CuteComposed *zipped_divide(Arena &arena, const CuteComposed &composed, const CuteTiler &tiler);
const CuteComposed *slice(Arena &arena, const CuteComposed &composed, const CuteTuple &coordinate);

// In other elements. The swizzle moves with the bits of the index; kNoSolution when it would xor bits within a new
// element, or the factor is no power of two and there is a swizzle.
const CuteComposed *recast(Arena &arena, const CuteComposed &composed, uint32_t old_bits, uint32_t new_bits);

}  // namespace sonde::layout
