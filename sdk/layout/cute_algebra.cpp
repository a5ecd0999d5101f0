#include "layout/cute_algebra.h"

#include <algorithm>
#include <vector>

namespace sonde::layout {
namespace {

using Leaves = std::vector<CuteLeaf>;

Leaves coalesced(std::span<const CuteLeaf> leaves) {
  Leaves result;
  for (const CuteLeaf &leaf : leaves) {
    if (leaf.shape == 1) continue;
    if (!result.empty() && result.back().stride * result.back().shape == leaf.stride) {
      result.back().shape *= leaf.shape;
    } else {
      result.push_back(leaf);
    }
  }
  return result;
}

// Leaves longer than 1 with their strides as indices of the layout: prefix products of the shapes.
struct Placed {
  CuteLeaf leaf;
  int64_t place;
};

std::vector<Placed> placed(const CuteLayout &layout, bool sorted) {
  std::vector<Placed> result;
  int64_t place = 1;
  for (const CuteLeaf &leaf : layout.leaves()) {
    if (leaf.shape > 1) result.push_back({leaf, place});
    place *= leaf.shape;
  }
  if (sorted) {
    // Of equal strides the longest first, so that the one that is used is.
    std::stable_sort(result.begin(), result.end(), [](const Placed &a, const Placed &b) {
      return a.leaf.stride != b.leaf.stride ? a.leaf.stride < b.leaf.stride : a.leaf.shape > b.leaf.shape;
    });
  }
  return result;
}

const CuteLayout *coalesced_layout(Arena &arena, std::span<const CuteLeaf> leaves) {
  return make_cute_flat(arena, coalesced(leaves));
}

// The element of a layout that is mapped elsewhere than its definition says.
const CuteLayout *broken(Arena &arena, const char *what, const CuteLayout &layout) {
  arena.fail(Fault::kUnsupported, std::string(what) + " " + to_string(layout) + " failed its check");
  return nullptr;
}

const CuteLayout *map_leaves(Arena &arena, const CuteLayout &layout, CuteLeaf (*map)(const CuteLeaf &)) {
  if (layout.is_leaf()) {
    const CuteLeaf leaf = map(layout.leaves()[0]);
    return make_cute_leaf(arena, leaf.shape, leaf.stride);
  }
  std::vector<const CuteLayout *> modes;
  for (const CuteLayout *const mode : layout.modes()) {
    modes.push_back(map_leaves(arena, *mode, map));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

std::vector<const CuteLayout *> modes_of(const CuteLayout &layout) {
  std::vector<const CuteLayout *> modes;
  for (uint32_t i = 0; i < layout.rank(); ++i) modes.push_back(&layout.mode(i));
  return modes;
}

// Equal strides of leaves that are longer than 1, or a stride of 0, give two elements one index.
bool surely_collides(const std::vector<Placed> &sorted) {
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].leaf.stride == 0) return true;
    if (i != 0 && sorted[i].leaf.stride == sorted[i - 1].leaf.stride) return true;
  }
  return false;
}

bool collides(const CuteLayout &layout) {
  std::vector<int64_t> indices(static_cast<size_t>(layout.size()));
  for (int64_t i = 0; i < layout.size(); ++i) indices[static_cast<size_t>(i)] = layout.apply(i);
  std::sort(indices.begin(), indices.end());
  return std::adjacent_find(indices.begin(), indices.end()) != indices.end();
}

}  // namespace

const CuteLayout *coalesce(Arena &arena, const CuteLayout &layout) { return coalesced_layout(arena, layout.leaves()); }

const CuteLayout *coalesce(Arena &arena, const CuteLayout &layout, const CuteTuple &profile) {
  if (profile.is_leaf()) return coalesce(arena, layout);
  if (profile.items().size() > layout.rank() || (layout.is_leaf() && !profile.items().empty())) {
    arena.fail(Fault::kInvalid,
               "the profile " + to_string(profile) + " asks for more modes than " + to_string(layout) + " has");
    return nullptr;
  }
  auto modes = modes_of(layout);
  for (size_t i = 0; i < profile.items().size(); ++i) {
    modes[i] = coalesce(arena, *modes[i], *profile.items()[i]);
    if (modes[i] == nullptr) return nullptr;
  }
  return layout.is_leaf() ? &layout : make_cute_modes(arena, modes);
}

const CuteLayout *flatten(Arena &arena, const CuteLayout &layout) {
  if (layout.is_leaf()) return &layout;
  std::vector<const CuteLayout *> modes;
  for (const CuteLeaf &leaf : layout.leaves()) {
    modes.push_back(make_cute_leaf(arena, leaf.shape, leaf.stride));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

const CuteLayout *filter_zeros(Arena &arena, const CuteLayout &layout) {
  return map_leaves(arena, layout, [](const CuteLeaf &leaf) { return leaf.stride == 0 ? CuteLeaf{1, 0} : leaf; });
}

const CuteLayout *filter(Arena &arena, const CuteLayout &layout) {
  Leaves kept;
  for (const CuteLeaf &leaf : layout.leaves()) {
    if (leaf.stride != 0) kept.push_back(leaf);
  }
  return coalesced_layout(arena, kept);
}

const CuteLayout *group_modes(Arena &arena, const CuteLayout &layout, uint32_t begin, uint32_t end) {
  if (begin >= end || end > layout.rank()) {
    arena.fail(Fault::kInvalid, "modes [" + std::to_string(begin) + ", " + std::to_string(end) +
                                    ") of a layout of rank " + std::to_string(layout.rank()) + " are no range");
    return nullptr;
  }
  const auto modes = modes_of(layout);
  std::vector<const CuteLayout *> result(modes.begin(), modes.begin() + begin);
  result.push_back(make_cute_modes(arena, std::span(modes).subspan(begin, end - begin)));
  if (result.back() == nullptr) return nullptr;
  result.insert(result.end(), modes.begin() + end, modes.end());
  return make_cute_modes(arena, result);
}

const CuteLayout *ungroup_mode(Arena &arena, const CuteLayout &layout, uint32_t index) {
  if (index >= layout.rank()) {
    arena.fail(Fault::kInvalid,
               "a layout of rank " + std::to_string(layout.rank()) + " has no mode " + std::to_string(index));
    return nullptr;
  }
  std::vector<const CuteLayout *> result;
  for (uint32_t i = 0; i < layout.rank(); ++i) {
    const CuteLayout &mode = layout.mode(i);
    if (i != index || mode.is_leaf()) {
      result.push_back(&mode);
    } else {
      result.insert(result.end(), mode.modes().begin(), mode.modes().end());
    }
  }
  return make_cute_modes(arena, result);
}

const CuteLayout *append(Arena &arena, const CuteLayout &layout, const CuteLayout &mode) {
  auto modes = modes_of(layout);
  modes.push_back(&mode);
  return make_cute_modes(arena, modes);
}

const CuteLayout *prepend(Arena &arena, const CuteLayout &layout, const CuteLayout &mode) {
  auto modes = modes_of(layout);
  modes.insert(modes.begin(), &mode);
  return make_cute_modes(arena, modes);
}

const CuteLayout *pad_rank(Arena &arena, const CuteLayout &layout, uint32_t rank) {
  if (layout.rank() >= rank) return &layout;
  auto modes = modes_of(layout);
  const CuteLayout *const one = make_cute_leaf(arena, 1, 0);
  if (one == nullptr) return nullptr;
  modes.resize(rank, one);
  return make_cute_modes(arena, modes);
}

const CuteLayout *complement(Arena &arena, const CuteLayout &layout, int64_t least) {
  if (least < 1) {
    arena.fail(Fault::kInvalid, "a complement reaches at least 1 index, not " + std::to_string(least));
    return nullptr;
  }
  // Each factor of the number system [0, N): first the complement's part below the leaf's stride, then the leaf.
  Leaves result;
  int64_t covered = 1;
  for (const Placed &each : placed(layout, true)) {
    const CuteLeaf &leaf = each.leaf;
    if (leaf.stride == 0) continue;
    if (leaf.stride < 0) {
      arena.fail(Fault::kUnsupported, "no complement of the negative strides of " + to_string(layout));
      return nullptr;
    }
    if (leaf.stride % covered != 0) {
      arena.fail(Fault::kNoSolution, to_string(layout) + " has no complement: the stride " +
                                         std::to_string(leaf.stride) + " is no multiple of the " +
                                         std::to_string(covered) + " indices that the smaller strides cover");
      return nullptr;
    }
    result.push_back({leaf.stride / covered, covered});
    if (__builtin_mul_overflow(leaf.stride, leaf.shape, &covered)) {
      arena.fail(Fault::kUnsupported, "the complement of " + to_string(layout) + " passes 64 bits");
      return nullptr;
    }
  }
  result.push_back({least / covered + (least % covered != 0 ? 1 : 0), covered});
  return coalesced_layout(arena, result);
}

const CuteLayout *right_inverse(Arena &arena, const CuteLayout &layout) {
  Leaves result;
  int64_t reached = 1;
  for (const Placed &each : placed(layout, true)) {
    if (each.leaf.stride < reached) continue;
    if (each.leaf.stride > reached) break;
    result.push_back({each.leaf.shape, each.place});
    reached *= each.leaf.shape;
  }
  const CuteLayout *const inverse = coalesced_layout(arena, result);
  if (inverse == nullptr) return nullptr;
  for (int64_t i = 0; i < std::min(inverse->size(), kCuteChecked); ++i) {
    if (layout.apply(inverse->apply(i)) != i) return broken(arena, "the right inverse of", layout);
  }
  return inverse;
}

const CuteLayout *left_inverse(Arena &arena, const CuteLayout &layout) {
  const std::vector<Placed> sorted = placed(layout, true);
  const auto collision = [&]() -> const CuteLayout * {
    arena.fail(Fault::kNoSolution, to_string(layout) + " has no left inverse: two of its elements share an index");
    return nullptr;
  };
  if (surely_collides(sorted)) return collision();
  Leaves result;
  int64_t covered = 1;  // indices below which the inverse is settled
  bool nested = true;
  bool divides = true;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const CuteLeaf &leaf = sorted[i].leaf;
    nested = nested && leaf.stride > 0 && leaf.stride % covered == 0;
    if (nested) covered = leaf.stride * leaf.shape;
    const int64_t before = i == 0 ? 1 : sorted[i - 1].leaf.stride;
    divides = divides && leaf.stride > 0 && leaf.stride % before == 0 &&
              (i == 0 || leaf.stride / before >= sorted[i - 1].leaf.shape);
  }
  const CuteLayout *inverse = nullptr;
  if (nested) {
    const CuteLayout *const rest = complement(arena, layout);
    const CuteLayout *const simple = rest == nullptr ? nullptr : coalesce(arena, layout);
    const CuteLayout *const both = simple == nullptr ? nullptr : append(arena, *simple, *rest);
    inverse = both == nullptr ? nullptr : right_inverse(arena, *both);
  } else if (divides) {
    // Digits with the strides as places; those below the first stride, and the gaps above a leaf, never occur.
    int64_t before = 1;
    int64_t place = 0;
    for (const Placed &each : sorted) {
      result.push_back({each.leaf.stride / before, place});
      before = each.leaf.stride;
      place = each.place;
    }
    if (!sorted.empty()) result.push_back({sorted.back().leaf.shape, place});
    inverse = coalesced_layout(arena, result);
  } else {
    if (layout.size() <= kCuteEnumerated && collides(layout)) return collision();
    arena.fail(Fault::kUnsupported,
               "the strides of " + to_string(layout) + " do not divide each other; no left inverse is looked for then");
  }
  if (inverse == nullptr) return nullptr;
  for (int64_t i = 0; i < std::min(layout.size(), kCuteChecked); ++i) {
    if (inverse->apply(layout.apply(i)) != i) return broken(arena, "the left inverse of", layout);
  }
  return inverse;
}

const CuteLayout *nullspace(Arena &arena, const CuteLayout &layout) {
  Leaves result;
  for (const Placed &each : placed(layout, false)) {
    if (each.leaf.stride == 0) result.push_back({each.leaf.shape, each.place});
  }
  return coalesced_layout(arena, result);
}

const CuteLayout *max_common_layout(Arena &arena, const CuteLayout &a, const CuteLayout &b) {
  const CuteLayout *const inverse = right_inverse(arena, b);
  if (inverse == nullptr) return nullptr;
  // The leading run of a(inverse(i)) = i: the inverse's leaves, as far as `a` takes them in steps of one.
  Leaves result;
  int64_t reached = 1;
  for (const CuteLeaf &leaf : inverse->leaves()) {
    if (leaf.shape == 1) continue;
    const int64_t inside = std::min(leaf.shape, (a.size() - 1) / leaf.stride + 1);
    const CuteLayout *const step = make_cute_leaf(arena, inside, leaf.stride);
    const CuteLayout *const through = step == nullptr ? nullptr : compose(arena, a, *step);
    const CuteLayout *const seen = through == nullptr ? nullptr : coalesce(arena, *through);
    if (seen == nullptr || seen->leaves()[0].shape == 1 || seen->leaves()[0].stride != reached) break;
    const int64_t taken = seen->leaves()[0].shape;
    result.push_back({taken, leaf.stride});
    reached *= taken;
    if (taken != leaf.shape) break;
  }
  // Each leaf fits by itself; together they must too.
  for (;; result.pop_back()) {
    const CuteLayout *const common = coalesced_layout(arena, result);
    if (common == nullptr || result.empty()) return common;
    const CuteLayout *const through = compose(arena, a, *common);
    const CuteLayout *const run = make_cute_leaf(arena, common->size(), 1);
    if (through != nullptr && run != nullptr && equal_as_functions(*through, *run)) return common;
  }
}

bool max_common_vector(Arena &arena, const CuteLayout &a, const CuteLayout &b, int64_t &elements) {
  const CuteLayout *const common = max_common_layout(arena, a, b);
  if (common != nullptr) elements = common->size();
  return common != nullptr;
}

}  // namespace sonde::layout
