#include "layout/cute.h"

#include <algorithm>
#include <new>
#include <vector>

namespace sonde::layout {
namespace {

constexpr int64_t kLargest = int64_t{1} << 62;

template <typename T>
T *room_for(Arena &arena, size_t count) {
  return static_cast<T *>(arena.allocate(std::max<size_t>(count, 1) * sizeof(T)));
}

bool too_large(Arena &arena, const char *what) {
  arena.fail(Fault::kUnsupported, std::string("the layout's ") + what + " passes its limit (sizes 2^62, indices 2^61)");
  return false;
}

// Takes a leaf into size and bounds.
bool take_leaf(Arena &arena, const CuteLeaf &leaf, int64_t &size, int64_t &lowest, int64_t &highest) {
  if (__builtin_mul_overflow(size, leaf.shape, &size) || size > kLargest) return too_large(arena, "size");
  int64_t reach = 0;
  if (__builtin_mul_overflow(leaf.shape - 1, leaf.stride, &reach)) return too_large(arena, "largest index");
  int64_t &bound = reach < 0 ? lowest : highest;
  if (__builtin_add_overflow(bound, reach, &bound) || highest > kLargest / 2 || lowest < -(kLargest / 2)) {
    return too_large(arena, "largest index");
  }
  return true;
}

bool check_tree(Arena &arena, uint32_t depth, size_t leaves) {
  if (depth > kCuteMaxDepth) {
    arena.fail(Fault::kUnsupported, "the tree is nested deeper than " + std::to_string(kCuteMaxDepth));
    return false;
  }
  if (leaves > kCuteMaxLeaves) {
    arena.fail(Fault::kUnsupported, "the tree has " + std::to_string(leaves) + " leaves; at most " +
                                        std::to_string(kCuteMaxLeaves) + " are supported");
    return false;
  }
  return true;
}

bool mismatch(Arena &arena, const CuteTuple &a, const char *what, const std::string &b) {
  arena.fail(Fault::kInvalid, to_string(a) + " does not have the form of the " + what + " " + b);
  return false;
}

// A dense layout of the subtree whose first stride is `next`, which it moves past it.
const CuteLayout *compact(Arena &arena, const CuteTuple &shape, int64_t &next) {
  if (shape.is_leaf()) {
    const CuteLayout *const leaf = make_cute_leaf(arena, shape.value(), next);
    if (leaf != nullptr && __builtin_mul_overflow(next, shape.value(), &next)) {
      too_large(arena, "size");
      return nullptr;
    }
    return leaf;
  }
  std::vector<const CuteLayout *> modes;
  for (const CuteTuple *const item : shape.items()) {
    modes.push_back(compact(arena, *item, next));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

// Coalesced leaves decide equality: they are unique for a function on [0, size).
std::vector<CuteLeaf> canonical(const CuteLayout &layout) {
  std::vector<CuteLeaf> result;
  for (const CuteLeaf &leaf : layout.leaves()) {
    if (leaf.shape == 1) continue;
    if (!result.empty() && result.back().stride * result.back().shape == leaf.stride) {
      result.back().shape *= leaf.shape;
    } else {
      result.push_back(leaf);
    }
  }
  return result;
}

const CuteTuple *tree_of(Arena &arena, const CuteLayout &layout, int64_t CuteLeaf::*member) {
  if (layout.is_leaf()) return make_cute_value(arena, layout.leaves()[0].*member);
  std::vector<const CuteTuple *> items;
  for (const CuteLayout *const mode : layout.modes()) {
    items.push_back(tree_of(arena, *mode, member));
    if (items.back() == nullptr) return nullptr;
  }
  return make_cute_items(arena, items);
}

int64_t size_of(const CuteTuple &shape) {
  int64_t size = 1;
  for (const int64_t value : shape.leaves()) {
    if (value < 1 || __builtin_mul_overflow(size, value, &size)) return -1;
  }
  return size;
}

}  // namespace

const CuteTuple *make_cute_value(Arena &arena, int64_t value) {
  void *const room = arena.allocate(sizeof(CuteTuple));
  auto *const copy = room_for<int64_t>(arena, 1);
  if (room == nullptr || copy == nullptr) return nullptr;
  auto *const tuple = ::new (room) CuteTuple;
  *copy = value;
  tuple->value_ = value;
  tuple->leaf_count_ = 1;
  tuple->leaves_ = copy;
  return tuple;
}

const CuteTuple *make_cute_items(Arena &arena, std::span<const CuteTuple *const> items) {
  uint32_t depth = 0;
  size_t leaves = 0;
  for (const CuteTuple *const item : items) {
    depth = std::max(depth, item->depth());
    leaves += item->leaves().size();
  }
  if (!check_tree(arena, depth + 1, leaves)) return nullptr;
  void *const room = arena.allocate(sizeof(CuteTuple));
  auto *const list = room_for<const CuteTuple *>(arena, items.size());
  auto *const values = room_for<int64_t>(arena, leaves);
  if (room == nullptr || list == nullptr || values == nullptr) return nullptr;
  auto *const tuple = ::new (room) CuteTuple;
  std::copy(items.begin(), items.end(), list);
  int64_t *next = values;
  for (const CuteTuple *const item : items) next = std::copy(item->leaves().begin(), item->leaves().end(), next);
  tuple->leaf_ = false;
  tuple->count_ = static_cast<uint32_t>(items.size());
  tuple->leaf_count_ = static_cast<uint32_t>(leaves);
  tuple->depth_ = depth + 1;
  tuple->items_ = list;
  tuple->leaves_ = values;
  return tuple;
}

const CuteLayout *make_cute_leaf(Arena &arena, int64_t shape, int64_t stride) {
  if (shape < 1) {
    arena.fail(Fault::kInvalid, "a shape must be at least 1, not " + std::to_string(shape));
    return nullptr;
  }
  const CuteLeaf leaf{shape, stride};
  int64_t size = 1;
  int64_t lowest = 0;
  int64_t highest = 0;
  if (!take_leaf(arena, leaf, size, lowest, highest)) return nullptr;
  void *const room = arena.allocate(sizeof(CuteLayout));
  auto *const copy = room_for<CuteLeaf>(arena, 1);
  if (room == nullptr || copy == nullptr) return nullptr;
  auto *const layout = ::new (room) CuteLayout;
  *copy = leaf;
  layout->leaf_count_ = 1;
  layout->last_ = shape > 1 ? 0 : UINT32_MAX;
  layout->size_ = size;
  layout->lowest_ = lowest;
  layout->highest_ = highest;
  layout->leaves_ = copy;
  return layout;
}

const CuteLayout *make_cute_modes(Arena &arena, std::span<const CuteLayout *const> modes) {
  uint32_t depth = 0;
  size_t count = 0;
  for (const CuteLayout *const mode : modes) {
    depth = std::max(depth, mode->depth());
    count += mode->leaves().size();
  }
  if (!check_tree(arena, depth + 1, count)) return nullptr;
  void *const room = arena.allocate(sizeof(CuteLayout));
  auto *const list = room_for<const CuteLayout *>(arena, modes.size());
  auto *const leaves = room_for<CuteLeaf>(arena, count);
  if (room == nullptr || list == nullptr || leaves == nullptr) return nullptr;
  auto *const layout = ::new (room) CuteLayout;
  std::copy(modes.begin(), modes.end(), list);
  layout->leaf_ = false;
  layout->count_ = static_cast<uint32_t>(modes.size());
  layout->leaf_count_ = static_cast<uint32_t>(count);
  layout->depth_ = depth + 1;
  layout->modes_ = list;
  layout->leaves_ = leaves;
  uint32_t next = 0;
  for (const CuteLayout *const mode : modes) {
    for (const CuteLeaf &leaf : mode->leaves()) {
      if (!take_leaf(arena, leaf, layout->size_, layout->lowest_, layout->highest_)) return nullptr;
      if (leaf.shape > 1) layout->last_ = next;
      leaves[next++] = leaf;
    }
  }
  return layout;
}

const CuteLayout *make_cute_flat(Arena &arena, std::span<const CuteLeaf> leaves) {
  if (leaves.empty()) return make_cute_leaf(arena, 1, 0);
  if (leaves.size() == 1) return make_cute_leaf(arena, leaves[0].shape, leaves[0].stride);
  std::vector<const CuteLayout *> modes;
  for (const CuteLeaf &leaf : leaves) {
    modes.push_back(make_cute_leaf(arena, leaf.shape, leaf.stride));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

const CuteLayout *make_cute(Arena &arena, const CuteTuple &shape, const CuteTuple &stride) {
  if (shape.is_leaf() != stride.is_leaf() || shape.items().size() != stride.items().size()) {
    mismatch(arena, stride, "shape", to_string(shape));
    return nullptr;
  }
  if (shape.is_leaf()) {
    if (shape.is_all() || stride.is_all()) {
      arena.fail(Fault::kInvalid, "`_` is no shape or stride");
      return nullptr;
    }
    return make_cute_leaf(arena, shape.value(), stride.value());
  }
  std::vector<const CuteLayout *> modes;
  for (size_t i = 0; i < shape.items().size(); ++i) {
    modes.push_back(make_cute(arena, *shape.items()[i], *stride.items()[i]));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

const CuteLayout *make_cute_compact(Arena &arena, const CuteTuple &shape) {
  int64_t next = 1;
  return compact(arena, shape, next);
}

const CuteLayout *make_cute_ordered(Arena &arena, const CuteTuple &shape, std::span<const uint32_t> order) {
  const size_t rank = shape.is_leaf() ? 1 : shape.items().size();
  std::vector<size_t> by_rank(rank, rank);
  bool fits = order.size() == rank;
  for (size_t i = 0; fits && i < rank; ++i) {
    fits = order[i] < rank && by_rank[order[i]] == rank;
    if (fits) by_rank[order[i]] = i;
  }
  if (!fits) {
    arena.fail(Fault::kInvalid, "the order must rank each of the " + std::to_string(rank) + " modes of " +
                                    to_string(shape) + " once, from 0 on");
    return nullptr;
  }
  if (shape.is_leaf()) return make_cute_compact(arena, shape);
  std::vector<const CuteLayout *> modes(rank);
  int64_t next = 1;
  for (const size_t i : by_rank) {
    modes[i] = compact(arena, *shape.items()[i], next);
    if (modes[i] == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

const CuteTiler *make_cute_tiler(Arena &arena, const CuteLayout &layout) {
  void *const room = arena.allocate(sizeof(CuteTiler));
  return room == nullptr ? nullptr : ::new (room) CuteTiler{&layout, {}, false};
}

const CuteTiler *make_cute_tiler(Arena &arena, std::span<const CuteTiler *const> modes) {
  void *const room = arena.allocate(sizeof(CuteTiler));
  auto *const list = room_for<const CuteTiler *>(arena, modes.size());
  if (room == nullptr || list == nullptr) return nullptr;
  std::copy(modes.begin(), modes.end(), list);
  return ::new (room) CuteTiler{nullptr, {list, modes.size()}, false};
}

const CuteTiler *make_cute_tiler_keep(Arena &arena) {
  void *const room = arena.allocate(sizeof(CuteTiler));
  return room == nullptr ? nullptr : ::new (room) CuteTiler{nullptr, {}, true};
}

const CuteTiler *make_cute_tiler(Arena &arena, const CuteTuple &shape) {
  if (shape.is_all()) return make_cute_tiler_keep(arena);
  if (shape.is_leaf()) {
    const CuteLayout *const leaf = make_cute_leaf(arena, shape.value(), 1);
    return leaf == nullptr ? nullptr : make_cute_tiler(arena, *leaf);
  }
  std::vector<const CuteTiler *> modes;
  for (const CuteTuple *const item : shape.items()) {
    modes.push_back(make_cute_tiler(arena, *item));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_tiler(arena, modes);
}

const CuteTuple *cute_shape(Arena &arena, const CuteLayout &layout) { return tree_of(arena, layout, &CuteLeaf::shape); }

const CuteTuple *cute_stride(Arena &arena, const CuteLayout &layout) {
  return tree_of(arena, layout, &CuteLeaf::stride);
}

bool equal(const CuteLayout &a, const CuteLayout &b) {
  if (a.is_leaf() != b.is_leaf() || a.rank() != b.rank()) return false;
  if (a.is_leaf()) return a.leaves()[0] == b.leaves()[0];
  for (uint32_t i = 0; i < a.rank(); ++i) {
    if (!equal(a.mode(i), b.mode(i))) return false;
  }
  return true;
}

bool equal_as_functions(const CuteLayout &a, const CuteLayout &b) {
  return a.size() == b.size() && canonical(a) == canonical(b);
}

bool coordinate_to_index(Arena &arena, const CuteTuple &coordinate, const CuteLayout &layout, int64_t &index) {
  if (coordinate.is_leaf()) {
    if (coordinate.value() < 0 || coordinate.value() >= layout.size()) {
      arena.fail(Fault::kInvalid,
                 "the coordinate " + to_string(coordinate) + " lies outside the mode " + to_string(layout));
      return false;
    }
    index = layout.apply(coordinate.value());
    return true;
  }
  if (layout.is_leaf() || coordinate.items().size() != layout.rank()) {
    return mismatch(arena, coordinate, "layout", to_string(layout));
  }
  index = 0;
  for (uint32_t i = 0; i < layout.rank(); ++i) {
    int64_t part = 0;
    if (!coordinate_to_index(arena, *coordinate.items()[i], layout.mode(i), part)) return false;
    index += part;
  }
  return true;
}

const CuteTuple *index_to_coordinate(Arena &arena, int64_t index, const CuteTuple &shape) {
  const int64_t size = size_of(shape);
  if (index < 0 || index >= size) {
    arena.fail(Fault::kInvalid, "the index " + std::to_string(index) + " lies outside the shape " + to_string(shape));
    return nullptr;
  }
  if (shape.is_leaf()) return make_cute_value(arena, index);
  std::vector<const CuteTuple *> items;
  for (const CuteTuple *const item : shape.items()) {
    const int64_t part = size_of(*item);
    items.push_back(index_to_coordinate(arena, index % part, *item));
    if (items.back() == nullptr) return nullptr;
    index /= part;
  }
  return make_cute_items(arena, items);
}

}  // namespace sonde::layout
