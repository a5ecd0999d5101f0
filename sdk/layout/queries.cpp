#include "layout/queries.h"

#include <algorithm>

#include "layout/algebra.h"
#include "layout/matrix.h"
#include "layout/shapes.h"

namespace sonde::layout {
namespace {

uint64_t mask_of(std::span<const Dim> side, std::span<const DimName> names) {
  uint64_t mask = 0;
  for (const Dim &dim : side) {
    if (dim.bits != 0 && std::find(names.begin(), names.end(), dim.name) != names.end()) mask |= dim.mask();
  }
  return mask;
}

uint64_t column_mask(const Layout &layout, uint64_t in_mask) {
  uint64_t all = 0;
  for (uint64_t rest = in_mask; rest != 0; rest &= rest - 1) all |= layout.columns()[lowest_bit(rest)];
  return all;
}

}  // namespace

bool sublayout_is_zero(const Layout &layout, std::span<const DimName> ins, std::span<const DimName> outs) {
  return (column_mask(layout, mask_of(layout.ins(), ins)) & mask_of(layout.outs(), outs)) == 0;
}

bool square_is_identity(const Layout &layout, std::span<const DimName> dims) {
  const uint64_t outs = mask_of(layout.outs(), dims);
  for (const DimName name : dims) {
    const Dim *const in = layout.find_in(name);
    const Dim *const out = layout.find_out(name);
    if (in == nullptr || out == nullptr || in->bits != out->bits) return false;
    for (uint32_t bit = 0; bit < in->bits; ++bit) {
      if ((layout.columns_of(*in)[bit] & outs) != out->at(uint64_t{1} << bit)) return false;
    }
  }
  return true;
}

bool is_trivial_over(const Layout &layout, std::span<const DimName> dims) {
  const uint64_t outs = mask_of(layout.outs(), dims);
  const uint64_t ins = mask_of(layout.ins(), dims);
  for (const DimName name : dims) {
    const Dim *const in = layout.find_in(name);
    const Dim *const out = layout.find_out(name);
    if (in == nullptr || out == nullptr || in->bits != out->bits) return false;
    for (uint32_t bit = 0; bit < in->bits; ++bit) {
      if (layout.columns_of(*in)[bit] != out->at(uint64_t{1} << bit)) return false;
    }
  }
  return (column_mask(layout, low_mask(layout.in_bits()) & ~ins) & outs) == 0 && (layout.offset() & outs) == 0;
}

bool is_identity_on_out(const Layout &layout, DimName name) {
  const Dim *const in = layout.find_in(name);
  const Dim *const out = layout.find_out(name);
  if (in == nullptr || out == nullptr || in->bits != out->bits) return false;
  if (out->of(layout.offset()) != 0) return false;
  for (uint32_t bit = 0; bit < layout.in_bits(); ++bit) {
    const bool is_own = bit >= in->shift && bit < static_cast<uint32_t>(in->shift) + in->bits;
    if (out->of(layout.columns()[bit]) != (is_own ? uint64_t{1} << (bit - in->shift) : 0)) return false;
  }
  return true;
}

const Layout *quotient(Arena &arena, const Layout &layout, std::span<const DimName> dims) {
  if (!is_trivial_over(layout, dims)) {
    arena.fail(Fault::kNoSolution, "the layout is not trivial over these dims");
    return nullptr;
  }
  DimName ins[kMaxDims];
  DimName outs[kMaxDims];
  uint32_t in_count = 0;
  uint32_t out_count = 0;
  const auto is_dropped = [&](DimName name) { return std::find(dims.begin(), dims.end(), name) != dims.end(); };
  for (const Dim &in : layout.ins()) {
    if (!is_dropped(in.name)) ins[in_count++] = in.name;
  }
  for (const Dim &out : layout.outs()) {
    if (!is_dropped(out.name)) outs[out_count++] = out.name;
  }
  return sublayout(arena, layout, {ins, in_count}, {outs, out_count});
}

void free_variable_masks(const Layout &layout, uint64_t *masks) {
  const uint64_t free = dependent_columns(layout.columns());
  for (const Dim &in : layout.ins()) *masks++ = in.of(free);
}

std::vector<uint64_t> free_variable_masks(const Layout &layout) {
  std::vector<uint64_t> masks(layout.ins().size());
  free_variable_masks(layout, masks.data());
  return masks;
}

uint64_t consecutive_in_out(const Layout &layout) {
  if (layout.ins().empty() || layout.outs().empty()) return 1;
  const Dim &in = layout.ins()[0];
  const Dim &out = layout.outs()[0];
  const uint32_t most = std::min(in.bits, out.bits);
  uint32_t best = 0;
  for (uint32_t bits = 1; bits <= most; ++bits) {
    if (layout.columns()[bits - 1] != uint64_t{1} << (bits - 1)) break;
    const uint64_t rest = column_mask(layout, low_mask(layout.in_bits()) & ~low_mask(bits)) | layout.offset();
    if ((rest & low_mask(bits)) == 0) best = bits;
  }
  return power_of_two(best);
}

uint64_t contiguous_along(const Layout &layout, DimName name) {
  const Dim *const out = layout.find_out(name);
  if (out == nullptr) return 0;
  Elimination reached;
  for (const uint64_t column : layout.columns()) reached.add(out->of(column));
  uint32_t bits = 0;
  while (bits < out->bits && reached.contains(uint64_t{1} << bits)) ++bits;
  return power_of_two(bits);
}

uint64_t output_basis_mask(const Layout &layout, std::span<const DimName> ins, DimName name) {
  const Dim *const out = layout.find_out(name);
  return out == nullptr ? 0 : out->of(column_mask(layout, mask_of(layout.ins(), ins)));
}

uint64_t input_basis_mask(const Layout &layout, DimName name, std::span<const DimName> outs) {
  const Dim *const in = layout.find_in(name);
  if (in == nullptr) return 0;
  const uint64_t wanted = mask_of(layout.outs(), outs);
  uint64_t mask = 0;
  for (uint32_t bit = 0; bit < in->bits; ++bit) {
    if ((layout.columns_of(*in)[bit] & wanted) != 0) mask |= uint64_t{1} << bit;
  }
  return mask;
}

IdentityPrefix identity_prefix(Arena &arena, const Layout &layout, DimName in, DimName out, uint64_t limit) {
  const Dim *const from = layout.find_in(in);
  const Dim *const to = layout.find_out(out);
  if (from == nullptr || to == nullptr) return {1, &layout};
  IdentityPrefix best{1, &layout};
  const uint32_t most = std::min({static_cast<uint32_t>(from->bits), static_cast<uint32_t>(to->bits), 63u});
  for (uint32_t bits = 1; bits <= most && uint64_t{1} << bits <= limit; ++bits) {
    const Layout *const divisor = make_identity(arena, uint64_t{1} << bits, in, out);
    const Layout *const rest = divisor == nullptr ? nullptr : divide_left(arena, layout, *divisor);
    if (rest == nullptr) {
      if (arena.fault() == Fault::kFull) return {0, nullptr};
      continue;
    }
    best = {uint64_t{1} << bits, rest};
  }
  return best;
}

bool is_permutation_with_broadcasts(const Layout &layout) {
  uint64_t seen = 0;
  for (const uint64_t column : layout.columns()) {
    if (column == 0) continue;
    if (!is_power_of_two(column) || (seen & column) != 0) return false;
    seen |= column;
  }
  return true;
}

bool is_memory_layout(const Layout &layout) {
  const auto columns = layout.columns();
  return is_invertible(layout) && std::all_of(columns.begin(), columns.end(), [](uint64_t column) {
           return std::popcount(column) == 1 || std::popcount(column) == 2;
         });
}

std::vector<uint64_t> bases_per_dim(const Layout &layout, DimName name, bool skips_broadcasts) {
  std::vector<uint64_t> sizes(layout.outs().size(), 1);
  const Dim *const in = layout.find_in(name);
  if (in == nullptr || sizes.empty()) return sizes;
  size_t last = 0;
  for (const uint64_t column : layout.columns_of(*in)) {
    const auto outs = layout.outs();
    const auto first = std::find_if(outs.begin(), outs.end(), [column](const Dim &out) { return out.of(column) != 0; });
    if (first != outs.end()) {
      last = static_cast<size_t>(first - outs.begin());
    } else if (skips_broadcasts) {
      continue;
    }
    sizes[last] = sizes[last] > UINT64_MAX / 2 ? UINT64_MAX : sizes[last] * 2;
  }
  return sizes;
}

std::vector<uint32_t> order_per_dim(const Layout &layout, DimName name, std::span<const uint32_t> rest) {
  std::vector<uint32_t> order;
  const auto add = [&order](uint32_t index) {
    if (std::find(order.begin(), order.end(), index) == order.end()) order.push_back(index);
  };
  if (const Dim *const in = layout.find_in(name)) {
    for (const uint64_t column : layout.columns_of(*in)) {
      for (uint32_t i = 0; i < layout.outs().size(); ++i) {
        if (layout.outs()[i].of(column) == 0) continue;
        add(i);
        break;
      }
    }
  }
  for (const uint32_t index : rest) add(index);
  return order;
}

std::vector<uint64_t> contiguous_per_thread(const Layout &layout) {
  std::vector<uint64_t> runs;
  const Dim *const in = layout.find_in(dim::kRegister);
  for (const Dim &out : layout.outs()) {
    // Registers whose bases are exactly 1, 2, 4, ... of this dim, in whatever order they come.
    uint32_t bits = 0;
    while (in != nullptr && bits < out.bits) {
      const auto columns = layout.columns_of(*in);
      if (std::find(columns.begin(), columns.end(), out.at(uint64_t{1} << bits)) == columns.end()) break;
      ++bits;
    }
    runs.push_back(power_of_two(bits));
  }
  return runs;
}

uint64_t elements_per_thread(const Layout &layout) {
  const Dim *const in = layout.find_in(dim::kRegister);
  return in == nullptr ? 1 : power_of_two(in->bits);
}

uint64_t unique_elements_per_thread(const Layout &layout) {
  const Dim *const in = layout.find_in(dim::kRegister);
  return in == nullptr ? 1 : power_of_two(rank_of(layout.columns_of(*in)));
}

}  // namespace sonde::layout
