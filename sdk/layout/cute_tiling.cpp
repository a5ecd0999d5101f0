#include "layout/cute_tiling.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace sonde::layout {
namespace {

using Modes = std::vector<const CuteLayout *>;

// The two lists of modes that a division or product makes: (tile, rest) of each mode of the tiler.
struct Halves {
  bool failed = true;
  bool by_mode = false;  // else one of each
  Modes tiles;
  Modes rests;
};

const CuteLayout *group(Arena &arena, const Halves &halves, const Modes &modes) {
  return halves.by_mode ? make_cute_modes(arena, modes) : modes[0];
}

enum class Arrange : uint8_t { kZipped, kTiled, kFlat };

const CuteLayout *arrange(Arena &arena, const Halves &halves, Arrange how) {
  if (halves.failed) return nullptr;
  const auto spread = [&](Modes &result, const Modes &modes) {
    if (halves.by_mode) {
      result.insert(result.end(), modes.begin(), modes.end());
    } else {
      for (uint32_t i = 0; i < modes[0]->rank(); ++i) result.push_back(&modes[0]->mode(i));
    }
  };
  Modes result;
  if (how == Arrange::kFlat) {
    spread(result, halves.tiles);
  } else {
    result.push_back(group(arena, halves, halves.tiles));
  }
  if (how == Arrange::kZipped) {
    result.push_back(group(arena, halves, halves.rests));
  } else {
    spread(result, halves.rests);
  }
  if (std::find(result.begin(), result.end(), nullptr) != result.end()) return nullptr;
  return make_cute_modes(arena, result);
}

using Split = const CuteLayout *(*)(Arena &, const CuteLayout &, const CuteLayout &);

// The whole layout split by a tiler that is a layout: a pair (tile, rest).
const CuteLayout *divide_once(Arena &arena, const CuteLayout &layout, const CuteLayout &tile) {
  const CuteLayout *const rest = complement(arena, tile, layout.size());
  const CuteLayout *const both = rest == nullptr ? nullptr : make_cute_modes(arena, Modes{&tile, rest});
  return both == nullptr ? nullptr : compose(arena, layout, *both);
}

const CuteLayout *multiply_once(Arena &arena, const CuteLayout &layout, const CuteLayout &tiler) {
  int64_t reach = 0;
  if (__builtin_mul_overflow(layout.size(), tiler.highest() + 1, &reach)) {
    arena.fail(Fault::kUnsupported,
               "the product of " + to_string(layout) + " by " + to_string(tiler) + " passes 64 bits");
    return nullptr;
  }
  const CuteLayout *const rest = complement(arena, layout, reach);
  const CuteLayout *const repeats = rest == nullptr ? nullptr : compose(arena, *rest, tiler);
  return repeats == nullptr ? nullptr : make_cute_modes(arena, Modes{&layout, repeats});
}

bool too_many(Arena &arena, const CuteTiler &tiler, const CuteLayout &layout) {
  if (tiler.modes.size() <= layout.rank()) return false;
  arena.fail(Fault::kInvalid, "a tiler of " + std::to_string(tiler.modes.size()) + " modes does not fit " +
                                  to_string(layout) + " of rank " + std::to_string(layout.rank()));
  return true;
}

const CuteLayout *split_modes(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler, Split split) {
  if (tiler.keeps) return &layout;
  if (tiler.layout != nullptr) return split(arena, layout, *tiler.layout);
  if (too_many(arena, tiler, layout)) return nullptr;
  Modes modes;
  for (uint32_t i = 0; i < layout.rank(); ++i) {
    modes.push_back(i < tiler.modes.size() ? split_modes(arena, layout.mode(i), *tiler.modes[i], split)
                                           : &layout.mode(i));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

// Splits and gathers: nested lists give nested halves; modes that the tiler leaves alone belong to the rest.
Halves split_halves(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler, Split split) {
  Halves result;
  if (tiler.keeps) {
    const CuteLayout *const one = make_cute_leaf(arena, 1, 0);
    result.failed = one == nullptr;
    result.tiles = {one};
    result.rests = {&layout};
    return result;
  }
  if (tiler.layout != nullptr) {
    const CuteLayout *const pair = split(arena, layout, *tiler.layout);
    if (pair == nullptr) return result;
    result.failed = false;
    result.tiles = {&pair->mode(0)};
    result.rests = {&pair->mode(1)};
    return result;
  }
  if (too_many(arena, tiler, layout)) return result;
  result.by_mode = true;
  for (uint32_t i = 0; i < layout.rank(); ++i) {
    if (i >= tiler.modes.size()) {
      result.rests.push_back(&layout.mode(i));
      continue;
    }
    const Halves part = split_halves(arena, layout.mode(i), *tiler.modes[i], split);
    if (part.failed) return result;
    const CuteLayout *const tile = group(arena, part, part.tiles);
    const CuteLayout *const rest = group(arena, part, part.rests);
    if (tile == nullptr || rest == nullptr) return result;
    result.tiles.push_back(tile);
    result.rests.push_back(rest);
  }
  result.failed = false;
  return result;
}

// Mode by mode of two layouts of the same rank.
const CuteLayout *zip_modes(Arena &arena, const CuteLayout &a, const CuteLayout &b) {
  Modes modes;
  for (uint32_t i = 0; i < a.rank(); ++i) {
    modes.push_back(make_cute_modes(arena, Modes{&a.mode(i), &b.mode(i)}));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

const CuteLayout *product_by_mode(Arena &arena, const CuteLayout &block, const CuteLayout &tiler, bool raked) {
  const uint32_t rank = std::max(block.rank(), tiler.rank());
  const CuteLayout *const wide_block = pad_rank(arena, block, rank);
  const CuteLayout *const wide_tiler = pad_rank(arena, tiler, rank);
  if (wide_block == nullptr || wide_tiler == nullptr) return nullptr;
  const CuteLayout *const product = multiply_once(arena, *wide_block, *wide_tiler);
  if (product == nullptr) return nullptr;
  // Composition keeps the tiler's tree, so the second mode has its rank.
  return raked ? zip_modes(arena, product->mode(1), product->mode(0))
               : zip_modes(arena, product->mode(0), product->mode(1));
}

const CuteLayout *map_leaf(Arena &arena, const CuteLayout &layout, auto &&map) {
  if (layout.is_leaf()) {
    const CuteLeaf leaf = map(layout.leaves()[0]);
    return make_cute_leaf(arena, leaf.shape, leaf.stride);
  }
  Modes modes;
  for (const CuteLayout *const mode : layout.modes()) {
    modes.push_back(map_leaf(arena, *mode, map));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

bool check_factor(Arena &arena, int64_t factor) {
  if (factor >= 1) return true;
  arena.fail(Fault::kInvalid, "the factor of a cast must be at least 1, not " + std::to_string(factor));
  return false;
}

// Collects what a coordinate leaves free.
bool take_slice(Arena &arena, const CuteLayout &layout, const CuteTuple &coordinate, Modes &kept, int64_t &offset) {
  if (coordinate.is_all()) {
    kept.push_back(&layout);
    return true;
  }
  if (coordinate.is_leaf()) {
    int64_t index = 0;
    if (!coordinate_to_index(arena, coordinate, layout, index)) return false;
    offset += index;
    return true;
  }
  if (layout.is_leaf() || coordinate.items().size() != layout.rank()) {
    arena.fail(Fault::kInvalid,
               "the coordinate " + to_string(coordinate) + " does not have the form of " + to_string(layout));
    return false;
  }
  for (uint32_t i = 0; i < layout.rank(); ++i) {
    if (!take_slice(arena, layout.mode(i), *coordinate.items()[i], kept, offset)) return false;
  }
  return true;
}

}  // namespace

const CuteLayout *logical_divide(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler) {
  return split_modes(arena, layout, tiler, divide_once);
}
const CuteLayout *zipped_divide(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler) {
  return arrange(arena, split_halves(arena, layout, tiler, divide_once), Arrange::kZipped);
}
const CuteLayout *tiled_divide(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler) {
  return arrange(arena, split_halves(arena, layout, tiler, divide_once), Arrange::kTiled);
}
const CuteLayout *flat_divide(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler) {
  return arrange(arena, split_halves(arena, layout, tiler, divide_once), Arrange::kFlat);
}

const CuteLayout *logical_product(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler) {
  return split_modes(arena, layout, tiler, multiply_once);
}
const CuteLayout *zipped_product(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler) {
  return arrange(arena, split_halves(arena, layout, tiler, multiply_once), Arrange::kZipped);
}
const CuteLayout *tiled_product(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler) {
  return arrange(arena, split_halves(arena, layout, tiler, multiply_once), Arrange::kTiled);
}
const CuteLayout *flat_product(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler) {
  return arrange(arena, split_halves(arena, layout, tiler, multiply_once), Arrange::kFlat);
}

const CuteLayout *blocked_product(Arena &arena, const CuteLayout &block, const CuteLayout &tiler) {
  return product_by_mode(arena, block, tiler, false);
}
const CuteLayout *raked_product(Arena &arena, const CuteLayout &block, const CuteLayout &tiler) {
  return product_by_mode(arena, block, tiler, true);
}

const CuteLayout *tile_to_shape(Arena &arena, const CuteLayout &block, const CuteTuple &shape,
                                std::span<const uint32_t> order) {
  const size_t rank = shape.is_leaf() ? 1 : shape.items().size();
  if (rank < block.rank()) {
    arena.fail(Fault::kInvalid, "the shape " + to_string(shape) + " has fewer modes than " + to_string(block));
    return nullptr;
  }
  std::vector<const CuteTuple *> repeats;
  for (uint32_t i = 0; i < rank; ++i) {
    const CuteTuple &item = shape.is_leaf() ? shape : *shape.items()[i];
    int64_t size = 1;
    for (const int64_t value : item.leaves()) {
      if (value < 1 || __builtin_mul_overflow(size, value, &size)) {
        arena.fail(Fault::kInvalid, to_string(shape) + " is no shape");
        return nullptr;
      }
    }
    const int64_t tile = i < block.rank() ? block.mode(i).size() : 1;
    if (size % tile != 0) {
      arena.fail(Fault::kNoSolution, "mode " + std::to_string(i) + " of " + to_string(shape) +
                                         " is no multiple of the block's " + std::to_string(tile));
      return nullptr;
    }
    repeats.push_back(make_cute_value(arena, size / tile));
    if (repeats.back() == nullptr) return nullptr;
  }
  const CuteTuple *const tiles = make_cute_items(arena, repeats);
  if (tiles == nullptr) return nullptr;
  std::vector<uint32_t> in_order(rank);
  std::iota(in_order.begin(), in_order.end(), 0u);
  const CuteLayout *const tiler = make_cute_ordered(arena, *tiles, order.empty() ? in_order : order);
  const CuteLayout *const product = tiler == nullptr ? nullptr : blocked_product(arena, block, *tiler);
  return product == nullptr ? nullptr : coalesce(arena, *product, *tiles);
}

const CuteLayout *upcast(Arena &arena, const CuteLayout &layout, int64_t factor) {
  if (!check_factor(arena, factor)) return nullptr;
  int64_t inside = 0;  // the largest place within a new element
  for (const CuteLeaf &leaf : layout.leaves()) {
    if (leaf.shape == 1 || leaf.stride % factor == 0) continue;
    const int64_t per_element = leaf.stride == 0 ? 1 : factor / leaf.stride;
    const bool whole =
        leaf.stride > 0 && factor % leaf.stride == 0 && (leaf.shape <= per_element || leaf.shape % per_element == 0);
    if (!whole) {
      arena.fail(Fault::kNoSolution, "the mode " + std::to_string(leaf.shape) + ":" + std::to_string(leaf.stride) +
                                         " does not consist of whole elements " + std::to_string(factor) +
                                         " times as large");
      return nullptr;
    }
    inside += leaf.stride * (std::min(per_element, leaf.shape) - 1);
  }
  if (inside >= factor) {
    arena.fail(Fault::kNoSolution, "modes of " + to_string(layout) + " overlap within an element " +
                                       std::to_string(factor) + " times as large");
    return nullptr;
  }
  return map_leaf(arena, layout, [&](const CuteLeaf &leaf) {
    if (leaf.shape == 1) return CuteLeaf{1, leaf.stride / factor};
    if (leaf.stride % factor == 0) return CuteLeaf{leaf.shape, leaf.stride / factor};
    return CuteLeaf{std::max<int64_t>(leaf.shape / (factor / leaf.stride), 1), 1};
  });
}

const CuteLayout *downcast(Arena &arena, const CuteLayout &layout, int64_t factor) {
  if (!check_factor(arena, factor)) return nullptr;
  const auto leaves = layout.leaves();
  const auto dense = [](const CuteLeaf &leaf) { return leaf.stride == 1; };
  const auto count = std::count_if(leaves.begin(), leaves.end(), dense);
  if (count != 1 && factor != 1) {
    arena.fail(Fault::kNoSolution, to_string(layout) + " has " + std::to_string(count) +
                                       " leaves of stride 1; one is needed to hold the smaller elements");
    return nullptr;
  }
  for (const CuteLeaf &leaf : leaves) {
    int64_t ignored = 0;
    if (__builtin_mul_overflow(dense(leaf) ? leaf.shape : leaf.stride, factor, &ignored)) {
      arena.fail(Fault::kUnsupported, to_string(layout) + " in smaller elements passes 64 bits");
      return nullptr;
    }
  }
  return map_leaf(arena, layout, [&](const CuteLeaf &leaf) {
    return dense(leaf) ? CuteLeaf{leaf.shape * factor, 1} : CuteLeaf{leaf.shape, leaf.stride * factor};
  });
}

const CuteLayout *recast(Arena &arena, const CuteLayout &layout, uint32_t old_bits, uint32_t new_bits) {
  if (old_bits == 0 || new_bits == 0) {
    arena.fail(Fault::kInvalid, "elements have at least one bit");
    return nullptr;
  }
  const uint32_t common = std::gcd(old_bits, new_bits);
  const CuteLayout *const finer = old_bits == common ? &layout : downcast(arena, layout, old_bits / common);
  return finer == nullptr || new_bits == common ? finer : upcast(arena, *finer, new_bits / common);
}

CuteSlice slice(Arena &arena, const CuteLayout &layout, const CuteTuple &coordinate) {
  Modes kept;
  CuteSlice result;
  if (!take_slice(arena, layout, coordinate, kept, result.offset)) return {};
  result.layout = coordinate.is_all() ? &layout : make_cute_modes(arena, kept);
  return result;
}

CuteSlice local_tile(Arena &arena, const CuteLayout &layout, const CuteTiler &tiler, const CuteTuple &coordinate) {
  const CuteLayout *const tiles = zipped_divide(arena, layout, tiler);
  if (tiles == nullptr) return {};
  Modes kept{&tiles->mode(0)};
  CuteSlice result;
  if (!take_slice(arena, tiles->mode(1), coordinate, kept, result.offset)) return {};
  result.layout = kept.size() == 1 ? kept[0] : make_cute_modes(arena, kept);
  return result;
}

CuteSlice local_partition(Arena &arena, const CuteLayout &layout, const CuteLayout &threads, int64_t thread) {
  if (thread < 0 || thread > threads.highest() || threads.lowest() < 0) {
    arena.fail(Fault::kInvalid, "no thread of " + to_string(threads) + " has the index " + std::to_string(thread));
    return {};
  }
  // Which element of the tile the thread is: its place in the inverse of the layout of threads.
  const CuteLayout *const inverse = left_inverse(arena, threads);
  if (inverse == nullptr) return {};
  const int64_t place = inverse->apply(thread);
  if (place >= threads.size() || threads.apply(place) != thread) {
    arena.fail(Fault::kInvalid, "no thread of " + to_string(threads) + " has the index " + std::to_string(thread));
    return {};
  }
  std::vector<const CuteTuple *> sizes;
  std::vector<const CuteTuple *> where;
  int64_t rest = place;
  for (uint32_t i = 0; i < threads.rank(); ++i) {
    const int64_t size = threads.mode(i).size();
    sizes.push_back(make_cute_value(arena, size));
    where.push_back(make_cute_value(arena, rest % size));
    if (sizes.back() == nullptr || where.back() == nullptr) return {};
    rest /= size;
  }
  const CuteTuple *const shape = make_cute_items(arena, sizes);
  const CuteTuple *const coordinate = make_cute_items(arena, where);
  const CuteTiler *const tiler = shape == nullptr ? nullptr : make_cute_tiler(arena, *shape);
  const CuteLayout *const tiles = tiler == nullptr ? nullptr : zipped_divide(arena, layout, *tiler);
  if (tiles == nullptr || coordinate == nullptr) return {};
  CuteSlice result;
  if (!coordinate_to_index(arena, *coordinate, tiles->mode(0), result.offset)) return {};
  result.layout = &tiles->mode(1);
  return result;
}

}  // namespace sonde::layout
