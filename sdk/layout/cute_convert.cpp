#include "layout/cute_convert.h"
#include "layout/bits.h"

#include <algorithm>
#include <vector>

namespace sonde::layout {
namespace {

constexpr uint32_t kCuteBits = 61;  // of an index

uint32_t bits_of(std::span<const DimSize> side) {
  uint32_t bits = 0;
  for (const DimSize &dim : side) bits += dim.bits;
  return bits;
}

// The multipliers of the index bits; false when a shape is no power of two.
bool index_bits(Arena &arena, const CuteLayout &layout, std::vector<int64_t> &out) {
  for (const CuteLeaf &leaf : layout.leaves()) {
    if (!is_power_of_two(static_cast<uint64_t>(leaf.shape))) {
      arena.fail(Fault::kNoSolution,
                 to_string(layout) + " is not linear: the shape " + std::to_string(leaf.shape) + " is no power of two");
      return false;
    }
    for (int64_t step = 1; step < leaf.shape; step *= 2) out.push_back(leaf.stride * step);
  }
  return true;
}

// Whether constant + sum of multiplier_a x_a is affine over F2; else two bits whose sum carries.
bool is_affine(std::vector<int64_t> multipliers, int64_t constant, size_t &first, size_t &second) {
  for (uint32_t round = 0; round < 64; ++round) {
    size_t odd = multipliers.size();
    for (size_t i = 0; i < multipliers.size(); ++i) {
      if ((multipliers[i] & 1) == 0) continue;
      if (odd != multipliers.size()) {
        first = odd;
        second = i;
        return false;
      }
      odd = i;
    }
    // Shifts of negative numbers round down, as the carries do.
    for (size_t i = 0; i < multipliers.size(); ++i) {
      multipliers[i] = i == odd ? ((constant + multipliers[i]) >> 1) - (constant >> 1) : multipliers[i] >> 1;
    }
    constant >>= 1;
  }
  return true;
}

// Coalesced within each in dim.
const CuteLayout *modes_from_columns(Arena &arena, const Layout &layout, const std::vector<int64_t> &columns) {
  std::vector<const CuteLayout *> modes;
  for (const Dim &in : layout.ins()) {
    std::vector<CuteLeaf> leaves;
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      const int64_t column = columns[in.shift + bit];
      if (!leaves.empty() && leaves.back().stride * leaves.back().shape == column) {
        leaves.back().shape *= 2;
      } else {
        leaves.push_back({2, column});
      }
    }
    modes.push_back(make_cute_flat(arena, leaves));
    if (modes.back() == nullptr) return nullptr;
  }
  if (modes.empty()) return make_cute_leaf(arena, 1, 0);
  return modes.size() == 1 ? modes[0] : make_cute_modes(arena, modes);
}

bool are_disjoint(std::span<const uint64_t> columns, size_t &first, size_t &second) {
  uint64_t seen = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    if ((seen & columns[i]) != 0) {
      second = i;
      for (first = 0; (columns[first] & columns[i]) == 0;) ++first;
      return false;
    }
    seen |= columns[i];
  }
  return true;
}

// swizzle(offset + layout) from columns that are disjoint once the swizzle is applied to them.
const CuteComposed *composed_from(Arena &arena, const Layout &layout, const CuteSwizzle &swizzle) {
  const auto through = [&](uint64_t word) { return static_cast<uint64_t>(swizzle.apply(static_cast<int64_t>(word))); };
  const uint64_t offset = through(layout.offset());
  std::vector<int64_t> columns;
  for (const uint64_t column : layout.columns()) {
    const uint64_t moved = through(column);
    columns.push_back(static_cast<int64_t>(moved) - 2 * static_cast<int64_t>(moved & offset));
  }
  const CuteLayout *const inner = modes_from_columns(arena, layout, columns);
  return inner == nullptr ? nullptr : make_cute_composed(arena, swizzle, static_cast<int64_t>(offset), *inner);
}

// The swizzle with the fewest bits, then the lowest base, then the smallest shift, upwards before downwards, that makes
// the columns disjoint.
bool find_swizzle(const Layout &layout, CuteSwizzle &swizzle) {
  const uint32_t room = layout.out_bits();
  std::vector<uint64_t> columns(layout.in_bits());
  for (uint32_t bits = 1; 2 * bits <= room; ++bits) {
    for (uint32_t base = 0; base + 2 * bits <= room; ++base) {
      for (uint32_t distance = bits; base + bits + distance <= room; ++distance) {
        for (const int32_t sign : {1, -1}) {
          swizzle = {bits, base, sign * static_cast<int32_t>(distance)};
          for (uint32_t i = 0; i < layout.in_bits(); ++i) {
            columns[i] = static_cast<uint64_t>(swizzle.apply(static_cast<int64_t>(layout.columns()[i])));
          }
          size_t first = 0;
          size_t second = 0;
          if (are_disjoint(columns, first, second)) return true;
        }
      }
    }
  }
  return false;
}

bool check_ins(Arena &arena, const std::string &what, size_t bits, std::span<const DimSize> ins) {
  if (bits_of(ins) == bits) return true;
  arena.fail(Fault::kInvalid,
             what + " has " + std::to_string(bits) + " index bits; the in dims have " + std::to_string(bits_of(ins)));
  return false;
}

}  // namespace

const Layout *linear_from_cute(Arena &arena, const CuteComposed &composed, std::span<const DimSize> ins,
                               std::span<const DimSize> outs) {
  std::vector<int64_t> multipliers;
  if (!index_bits(arena, composed.layout(), multipliers)) return nullptr;
  size_t first = 0;
  size_t second = 0;
  if (!is_affine(multipliers, composed.offset(), first, second)) {
    arena.fail(Fault::kNoSolution, to_string(composed) + " is not linear: index bits " + std::to_string(first) +
                                       " and " + std::to_string(second) + " add " + std::to_string(multipliers[first]) +
                                       " and " + std::to_string(multipliers[second]) + ", which carry");
    return nullptr;
  }
  if (!check_ins(arena, to_string(composed), multipliers.size(), ins)) return nullptr;
  const int64_t offset = composed.swizzle().apply(composed.offset());
  std::vector<uint64_t> columns;
  for (const int64_t multiplier : multipliers) {
    columns.push_back(static_cast<uint64_t>(composed.swizzle().apply(composed.offset() + multiplier) ^ offset));
  }
  return make_layout(arena, ins, outs, columns, static_cast<uint64_t>(offset));
}

const Layout *linear_from_cute(Arena &arena, const CuteLayout &layout, std::span<const DimSize> ins,
                               std::span<const DimSize> outs) {
  if (layout.lowest() < 0) {
    arena.fail(Fault::kNoSolution, to_string(layout) + " is not linear: it has negative indices");
    return nullptr;
  }
  return linear_from_cute(arena, CuteComposed({}, 0, layout), ins, outs);
}

const Layout *linear_from_cute(Arena &arena, const CuteComposed &composed, std::span<const DimName> ins, DimName out) {
  const CuteLayout &layout = composed.layout();
  if (ins.size() != layout.rank()) {
    arena.fail(Fault::kInvalid, to_string(layout) + " has " + std::to_string(layout.rank()) + " modes, not " +
                                    std::to_string(ins.size()));
    return nullptr;
  }
  std::vector<DimSize> in_sizes;
  for (uint32_t i = 0; i < layout.rank(); ++i) {
    in_sizes.push_back({ins[i], log2_floor(static_cast<uint64_t>(layout.mode(i).size()))});
  }
  // An affine map reaches each of its bits by the offset or by a single index bit.
  uint64_t reached = static_cast<uint64_t>(composed.swizzle().apply(composed.offset()));
  for (int64_t step = 1; step < layout.size(); step *= 2) reached |= static_cast<uint64_t>(composed.apply(step));
  const DimSize out_size{out, static_cast<uint32_t>(std::bit_width(reached))};
  return linear_from_cute(arena, composed, in_sizes, {&out_size, 1});
}

const Layout *linear_from_cute(Arena &arena, const CuteSwizzle &swizzle, uint32_t bits, DimName in, DimName out) {
  if (!check_swizzle(arena, swizzle)) return nullptr;
  const auto distance = static_cast<uint32_t>(swizzle.shift < 0 ? -swizzle.shift : swizzle.shift);
  if (bits > kCuteBits || (swizzle.bits != 0 && bits < swizzle.base + swizzle.bits + distance)) {
    arena.fail(Fault::kInvalid, to_string(swizzle) + " does not fit " + std::to_string(bits) + " bits");
    return nullptr;
  }
  std::vector<uint64_t> columns;
  for (uint32_t bit = 0; bit < bits; ++bit) columns.push_back(static_cast<uint64_t>(swizzle.apply(int64_t{1} << bit)));
  const DimSize in_size{in, bits};
  const DimSize out_size{out, bits};
  return make_layout(arena, {&in_size, 1}, {&out_size, 1}, columns);
}

bool cute_from_linear(Arena &arena, const Layout &layout, CuteForm most, CuteConversion &result) {
  if (layout.in_bits() > kCuteBits || layout.out_bits() > kCuteBits) {
    arena.fail(Fault::kUnsupported, "CuTe layouts have at most 61 index bits; this one has " +
                                        std::to_string(layout.in_bits()) + " in and " +
                                        std::to_string(layout.out_bits()) + " out");
    return false;
  }
  result = {};
  size_t first = 0;
  size_t second = 0;
  if (are_disjoint(layout.columns(), first, second)) {
    result.composed = composed_from(arena, layout, {});
    return result.composed != nullptr;
  }
  const auto pair = "columns " + std::to_string(first) + " and " + std::to_string(second) + " (" +
                    std::to_string(layout.columns()[first]) + " and " + std::to_string(layout.columns()[second]) +
                    ") share bits";
  if (most == CuteForm::kStrides) {
    arena.fail(Fault::kNoSolution, "no integer strides: " + pair);
    return false;
  }
  if (CuteSwizzle swizzle; find_swizzle(layout, swizzle)) {
    result.form = CuteForm::kSwizzled;
    result.composed = composed_from(arena, layout, swizzle);
    return result.composed != nullptr;
  }
  if (most == CuteForm::kSwizzled) {
    arena.fail(Fault::kNoSolution, "no integer strides: " + pair + ", and no swizzle takes all shared bits away");
    return false;
  }
  result.form = CuteForm::kXorStrides;
  result.offset = layout.offset();
  std::vector<int64_t> columns;
  for (const uint64_t column : layout.columns()) columns.push_back(static_cast<int64_t>(column));
  result.strides = modes_from_columns(arena, layout, columns);
  return result.strides != nullptr;
}

int64_t apply_xor_strides(const CuteLayout &strides, int64_t index) {
  uint64_t result = 0;
  for (const CuteLeaf &leaf : strides.leaves()) {
    const auto stride = static_cast<uint64_t>(leaf.stride);
    for (auto rest = static_cast<uint64_t>(index % leaf.shape); rest != 0; rest &= rest - 1) {
      result ^= stride << lowest_bit(rest);
    }
    index /= leaf.shape;
  }
  return static_cast<int64_t>(result);
}

const Layout *linear_from_xor_strides(Arena &arena, const CuteLayout &strides, uint64_t offset,
                                      std::span<const DimSize> ins, std::span<const DimSize> outs) {
  std::vector<int64_t> multipliers;
  if (!index_bits(arena, strides, multipliers)) return nullptr;
  if (!check_ins(arena, to_string(strides), multipliers.size(), ins)) return nullptr;
  // A stride times a power of two is the same with and without carries.
  std::vector<uint64_t> columns;
  for (const int64_t multiplier : multipliers) columns.push_back(static_cast<uint64_t>(multiplier));
  return make_layout(arena, ins, outs, columns, offset);
}

const CuteLayout *cute_from_padding(Arena &arena, uint32_t bits, std::span<const Padding> paddings) {
  if (bits > kCuteBits) {
    arena.fail(Fault::kUnsupported, "offsets of " + std::to_string(bits) + " bits pass CuTe's 61");
    return nullptr;
  }
  for (size_t i = 0; i < paddings.size(); ++i) {
    const Padding &padding = paddings[i];
    const bool again = std::any_of(paddings.begin(), paddings.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const Padding &other) { return other.interval == padding.interval; });
    if (!is_power_of_two(padding.interval) || !is_power_of_two(padding.pad) || again) {
      arena.fail(Fault::kInvalid, "a pad of " + std::to_string(padding.pad) + " after each " +
                                      std::to_string(padding.interval) +
                                      ": both must be powers of two, and no interval given twice");
      return nullptr;
    }
  }
  std::vector<CuteLeaf> leaves;
  for (uint32_t bit = 0; bit < bits; ++bit) {
    Int128 place = Int128{1} << bit;
    for (const Padding &padding : paddings) {
      place += static_cast<Int128>((uint64_t{1} << bit) / padding.interval) * padding.pad;
    }
    if (place > (Int128{1} << kCuteBits)) {
      arena.fail(Fault::kUnsupported, "padded offsets pass CuTe's 61 bits");
      return nullptr;
    }
    leaves.push_back({2, static_cast<int64_t>(place)});
  }
  const CuteLayout *const all = make_cute_flat(arena, leaves);
  return all == nullptr ? nullptr : coalesce(arena, *all);
}

}  // namespace sonde::layout
