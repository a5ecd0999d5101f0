// CuTe layouts: nested shape and stride, of any sizes, over the integers.
//
// A layout maps a coordinate to an index: L(c) = sum of c_i d_i over the leaves of the nested shape. A single integer
// stands for the coordinate that it has colexicographically, the first mode varying fastest:
//
//     (4,2):(1,10)    index 6 is the coordinate (2, 1), so L(6) = 2 * 1 + 1 * 10 = 12
//
// Strides may be 0 (broadcast) and negative (reversed). Every index of a layout fits int64_t, which is checked when it
// is built, so reading one never overflows. An index at or past the size goes on along the last leaf that is longer
// than 1, as CuTe has it: (4,2):(1,10) maps 8 to 20. A layout of size 1 maps everything to 0.
//
// Layouts are immutable trees in an arena; a mode is a layout itself, and operations share what they do not change.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "layout/arena.h"

namespace sonde::layout {

inline constexpr uint32_t kCuteMaxDepth = 16;    // of parentheses
inline constexpr uint32_t kCuteMaxLeaves = 256;  // of a tree

// A tree of integers: a shape, a coordinate, a profile. A leaf may be `_`, "all of it".
class CuteTuple {
 public:
  static constexpr int64_t kAll = INT64_MIN;

  bool is_leaf() const { return leaf_; }
  int64_t value() const { return value_; }  // of a leaf
  bool is_all() const { return leaf_ && value_ == kAll; }
  std::span<const CuteTuple *const> items() const { return {items_, leaf_ ? 0 : count_}; }
  std::span<const int64_t> leaves() const { return {leaves_, leaf_count_}; }
  uint32_t depth() const { return depth_; }

 private:
  friend const CuteTuple *make_cute_value(Arena &arena, int64_t value);
  friend const CuteTuple *make_cute_items(Arena &arena, std::span<const CuteTuple *const> items);
  CuteTuple() = default;

  bool leaf_ = true;
  uint32_t count_ = 0;
  uint32_t leaf_count_ = 0;
  uint32_t depth_ = 0;
  int64_t value_ = 0;
  const CuteTuple *const *items_ = nullptr;
  const int64_t *leaves_ = nullptr;
};

struct CuteLeaf {
  int64_t shape;   // >= 1
  int64_t stride;  // any sign

  bool operator==(const CuteLeaf &) const = default;
};

class CuteLayout {
 public:
  CuteLayout(const CuteLayout &) = delete;
  CuteLayout &operator=(const CuteLayout &) = delete;

  bool is_leaf() const { return leaf_; }
  std::span<const CuteLayout *const> modes() const { return {modes_, leaf_ ? 0 : count_}; }
  // A leaf counts as its own only mode.
  uint32_t rank() const { return leaf_ ? 1 : count_; }
  const CuteLayout &mode(uint32_t index) const { return leaf_ ? *this : *modes_[index]; }

  // Leaves in order, those of nested modes in their place.
  std::span<const CuteLeaf> leaves() const { return {leaves_, leaf_count_}; }
  uint32_t depth() const { return depth_; }  // 0 for a leaf

  int64_t size() const { return size_; }
  int64_t lowest() const { return lowest_; }    // the least index, 0 without negative strides
  int64_t highest() const { return highest_; }  // the greatest
  // How many indices lie between them, both included.
  int64_t cosize() const { return highest_ - lowest_ + 1; }

  // L(index) for index >= 0. Past the size it goes on along the last leaf that is longer than 1; past highest_index()
  // that may overflow.
  int64_t apply(int64_t index) const {
    int64_t result = 0;
    for (uint32_t i = 0; i < leaf_count_; ++i) {
      if (i == last_) return result + index * leaves_[i].stride;
      result += index % leaves_[i].shape * leaves_[i].stride;
      index /= leaves_[i].shape;
    }
    return result;
  }

 private:
  friend const CuteLayout *make_cute_leaf(Arena &arena, int64_t shape, int64_t stride);
  friend const CuteLayout *make_cute_modes(Arena &arena, std::span<const CuteLayout *const> modes);
  CuteLayout() = default;

  bool leaf_ = true;
  uint32_t count_ = 0;
  uint32_t leaf_count_ = 0;
  uint32_t depth_ = 0;
  uint32_t last_ = UINT32_MAX;  // the last leaf longer than 1
  int64_t size_ = 1;
  int64_t lowest_ = 0;
  int64_t highest_ = 0;
  const CuteLayout *const *modes_ = nullptr;
  const CuteLeaf *leaves_ = nullptr;
};

// What a division or a composition does to each mode: a whole layout, a list by mode, or nothing (`_`).
struct CuteTiler {
  const CuteLayout *layout = nullptr;  // set: the whole layout
  std::span<const CuteTiler *const> modes;
  bool keeps = false;
};

// Builders return nullptr with the arena's fault set: kInvalid for a shape below 1 or trees that do not match,
// kUnsupported for what does not fit (sizes past 2^62, indices past 2^61, depth, leaves).

const CuteTuple *make_cute_value(Arena &arena, int64_t value);
const CuteTuple *make_cute_items(Arena &arena, std::span<const CuteTuple *const> items);

const CuteLayout *make_cute_leaf(Arena &arena, int64_t shape, int64_t stride);
const CuteLayout *make_cute_modes(Arena &arena, std::span<const CuteLayout *const> modes);
// A flat layout; a leaf when there is one, 1:0 when there is none.
const CuteLayout *make_cute_flat(Arena &arena, std::span<const CuteLeaf> leaves);
// From trees of the same form.
const CuteLayout *make_cute(Arena &arena, const CuteTuple &shape, const CuteTuple &stride);
// Dense, the first leaf fastest.
const CuteLayout *make_cute_compact(Arena &arena, const CuteTuple &shape);
// Dense, the modes from fastest to slowest as `order` ranks them: order[i] is the rank of mode i; each rank once.
const CuteLayout *make_cute_ordered(Arena &arena, const CuteTuple &shape, std::span<const uint32_t> order);

const CuteTiler *make_cute_tiler(Arena &arena, const CuteLayout &layout);
const CuteTiler *make_cute_tiler(Arena &arena, std::span<const CuteTiler *const> modes);
const CuteTiler *make_cute_tiler_keep(Arena &arena);
// n stands for n:1, and a tuple for one by mode.
const CuteTiler *make_cute_tiler(Arena &arena, const CuteTuple &shape);

// Text as CuTe prints it: `((2,2),3):((24,2),8)`; spaces may stand anywhere between tokens. kParse with the place of
// what is wrong.
const CuteTuple *parse_cute_tuple(Arena &arena, std::string_view text);
const CuteLayout *parse_cute(Arena &arena, std::string_view text);
// A layout, a shape `(4,8)`, or a list by mode `<4:1, _, (2,2):(1,8)>`.
const CuteTiler *parse_cute_tiler(Arena &arena, std::string_view text);

std::string to_string(const CuteTuple &tuple);
std::string to_string(const CuteLayout &layout);

// The shape and the strides as trees.
const CuteTuple *cute_shape(Arena &arena, const CuteLayout &layout);
const CuteTuple *cute_stride(Arena &arena, const CuteLayout &layout);

// The same tree with the same numbers.
bool equal(const CuteLayout &a, const CuteLayout &b);
// The same index for every index below the size, which is the same; exact for any size (the coalesced leaves decide).
bool equal_as_functions(const CuteLayout &a, const CuteLayout &b);

// The index of a coordinate, which may be an integer at any level of the tree: crd2idx. Each coordinate in its mode's
// range; kInvalid otherwise.
bool coordinate_to_index(Arena &arena, const CuteTuple &coordinate, const CuteLayout &layout, int64_t &index);
// The coordinate that the tree of `shape` gives an index below its size: idx2crd.
const CuteTuple *index_to_coordinate(Arena &arena, int64_t index, const CuteTuple &shape);

}  // namespace sonde::layout
