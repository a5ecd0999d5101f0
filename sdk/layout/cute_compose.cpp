// Composition of CuTe layouts; the conditions under which the result is one are explained in cute_algebra.h.
#include <algorithm>
#include <vector>

#include "layout/bits.h"
#include "layout/cute_algebra.h"

namespace sonde::layout {
namespace {

using Leaves = std::vector<CuteLeaf>;

class Composition {
 public:
  Composition(Arena &arena, const CuteLayout &coalesced_a, const CuteLayout &b)
      : arena_(arena), a_(coalesced_a), b_(b), largest_digit_(coalesced_a.leaves().size(), 0) {}

  const CuteLayout *run() {
    if (b_.lowest() < 0) {
      arena_.fail(Fault::kInvalid, to_string(b_) + " has negative indices, which are no elements of " + to_string(a_));
      return nullptr;
    }
    const CuteLayout *const result = refine(b_);
    if (result == nullptr) return nullptr;
    if (carries() && structural_) return nullptr;
    return check(*result) ? result : nullptr;
  }

 private:
  const CuteLayout *refine(const CuteLayout &part) {
    if (part.is_leaf()) {
      Leaves leaves;
      const CuteLeaf &leaf = part.leaves()[0];
      if (!cut(leaf, leaves) && !look(leaf, leaves)) return nullptr;
      return make_cute_flat(arena_, leaves);
    }
    std::vector<const CuteLayout *> modes;
    for (const CuteLayout *const mode : part.modes()) {
      modes.push_back(refine(*mode));
      if (modes.back() == nullptr) return nullptr;
    }
    return make_cute_modes(arena_, modes);
  }

  // A leaf whose step and length fit the sizes of a's modes; false when they do not.
  bool cut(const CuteLeaf &leaf, Leaves &out) {
    int64_t length = leaf.shape;
    int64_t step = leaf.stride;
    if (length == 1) return true;
    if (step == 0) {
      out.push_back({length, 0});
      return true;
    }
    const auto modes = a_.leaves();
    std::vector<int64_t> digits(modes.size(), 0);
    for (size_t i = 0; i < modes.size() && length > 1; ++i) {
      const CuteLeaf &mode = modes[i];
      int64_t taken = length;
      if (i + 1 < modes.size()) {
        if (step % mode.shape == 0) {
          step /= mode.shape;
          continue;
        }
        if (step > (mode.shape - 1) / (length - 1)) {  // it leaves this mode
          if (mode.shape % step != 0) return false;
          taken = mode.shape / step;
          if (length % taken != 0) return false;
        }
      }
      int64_t stride = 0;
      if (__builtin_mul_overflow(step, mode.stride, &stride)) return false;
      out.push_back({taken, stride});
      digits[i] = step * (taken - 1);
      length /= taken;
      step = 1;
    }
    for (size_t i = 0; i < digits.size(); ++i) largest_digit_[i] += digits[i];
    return true;
  }

  // A leaf that the sizes do not fit: its elements tell whether they are a layout nevertheless. The first element that
  // is off the line ends the first leaf, so that the leaves are found one after the other.
  bool look(const CuteLeaf &leaf, Leaves &out) {
    out.clear();
    structural_ = false;
    if (leaf.shape > kCuteEnumerated) {
      arena_.fail(Fault::kUnsupported, "the steps of " + std::to_string(leaf.shape) + ":" +
                                           std::to_string(leaf.stride) + " do not fit the modes of " + to_string(a_) +
                                           ", and the leaf is too long to look at every element");
      return false;
    }
    std::vector<int64_t> values;
    for (int64_t i = 0; i < leaf.shape; ++i) values.push_back(a_.apply(i * leaf.stride));
    const auto count = static_cast<int64_t>(values.size());
    for (int64_t place = 1; place < count;) {
      const int64_t stride = values[static_cast<size_t>(place)];
      int64_t length = 2;
      while (place * length < count && values[static_cast<size_t>(place * length)] == stride * length) ++length;
      const bool all = place * length >= count;
      if ((all && place * length != count) || (count / place) % length != 0) return no_layout(leaf);
      out.push_back({length, stride});
      place *= length;
    }
    const CuteLayout *const found = make_cute_flat(arena_, out);
    if (found == nullptr) return false;
    for (int64_t i = 0; i < count; ++i) {
      if (found->apply(i) != values[static_cast<size_t>(i)]) return no_layout(leaf);
    }
    return true;
  }

  bool no_layout(const CuteLeaf &leaf) {
    arena_.fail(Fault::kNoSolution, to_string(a_) + " at every " + std::to_string(leaf.stride) + "th element, " +
                                        std::to_string(leaf.shape) + " of them, is no layout");
    return false;
  }

  // Whether digits of several leaves add up past a mode of `a` that is not the last.
  bool carries() {
    for (size_t i = 0; i + 1 < largest_digit_.size(); ++i) {
      if (largest_digit_[i] < a_.leaves()[i].shape) continue;
      arena_.fail(Fault::kNoSolution,
                  to_string(a_) + " of " + to_string(b_) + " is no layout with modes such as the latter's: in mode " +
                      std::to_string(i) + " of the former they add up to " + std::to_string(largest_digit_[i]) +
                      " and carry past its size " + std::to_string(a_.leaves()[i].shape));
      return true;
    }
    return false;
  }

  bool check(const CuteLayout &result) {
    const int64_t all = b_.size();
    if (!structural_ && all > kCuteEnumerated) {
      arena_.fail(Fault::kUnsupported, to_string(a_) + " of " + to_string(b_) + " is too long to check");
      return false;
    }
    for (int64_t i = 0; i < std::min(all, structural_ ? kCuteChecked : all); ++i) {
      if (result.apply(i) == a_.apply(b_.apply(i))) continue;
      arena_.fail(Fault::kNoSolution, to_string(a_) + " of " + to_string(b_) +
                                          " is no layout with modes such as the latter's: it would map " +
                                          std::to_string(i) + " to " + std::to_string(result.apply(i)) +
                                          " in place of " + std::to_string(a_.apply(b_.apply(i))));
      return false;
    }
    return true;
  }

  Arena &arena_;
  const CuteLayout &a_;  // coalesced
  const CuteLayout &b_;
  std::vector<int64_t> largest_digit_;  // by mode of a_, the sum over the leaves of b_
  bool structural_ = true;              // every leaf was cut
};

}  // namespace

const CuteLayout *compose(Arena &arena, const CuteLayout &a, const CuteLayout &b) {
  if (b.highest() != 0 && a.highest() - a.lowest() != 0) {
    // The last mode of `a` may be followed past its size; what it reaches must still fit.
    Int128 reach = 0;
    for (const CuteLeaf &leaf : a.leaves()) {
      const Int128 stride = leaf.stride < 0 ? -static_cast<Int128>(leaf.stride) : leaf.stride;
      if (leaf.shape > 1) reach = std::max(reach, stride * b.highest());
    }
    if (b.highest() >= a.size() && reach > (Int128{1} << 61)) {
      arena.fail(Fault::kUnsupported, to_string(a) + " of " + to_string(b) + " passes 2^61");
      return nullptr;
    }
  }
  const CuteLayout *const simple = coalesce(arena, a);
  return simple == nullptr ? nullptr : Composition(arena, *simple, b).run();
}

const CuteLayout *compose(Arena &arena, const CuteLayout &a, const CuteTiler &tiler) {
  if (tiler.keeps) return &a;
  if (tiler.layout != nullptr) return compose(arena, a, *tiler.layout);
  if (tiler.modes.size() > a.rank()) {
    arena.fail(Fault::kInvalid, "a tiler of " + std::to_string(tiler.modes.size()) + " modes does not fit " +
                                    to_string(a) + " of rank " + std::to_string(a.rank()));
    return nullptr;
  }
  std::vector<const CuteLayout *> modes;
  for (uint32_t i = 0; i < a.rank(); ++i) {
    modes.push_back(i < tiler.modes.size() ? compose(arena, a.mode(i), *tiler.modes[i]) : &a.mode(i));
    if (modes.back() == nullptr) return nullptr;
  }
  return make_cute_modes(arena, modes);
}

}  // namespace sonde::layout
