// Products, compositions and inverses of layouts of any sizes.
//
// Each result is built from its values at the single bits. That it has the right values elsewhere too is shown from the
// structure where one of the arguments below holds; otherwise `agrees_with` tries the inputs.
#include <algorithm>

#include "layout/algebra.h"
#include "layout/modular.h"

namespace sonde::layout {
namespace {

using Wide = UInt128;

// An upper bound on the sum, as integers, of what the inputs contribute to one out dim.
Wide largest_sum(const ModularLayout &layout, size_t out) {
  Wide total = 0;
  for (const ModularDim &in : layout.ins()) {
    Wide all = 0;
    bool strided = true;
    const uint64_t first = in.bits == 0 ? 0 : layout.basis(in.shift)[out];
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      const uint64_t value = layout.basis(in.shift + bit)[out];
      all += value;
      strided = strided && value == static_cast<Wide>(first) << bit;
    }
    total += strided ? std::min(all, static_cast<Wide>(first) * (in.size - 1)) : all;
  }
  return total;
}

// No two bits contribute to the same bit of an out dim, and the sum stays below its size.
bool is_disjoint(const ModularLayout &layout, size_t out) {
  uint64_t seen = 0;
  for (uint32_t bit = 0; bit < layout.in_bits(); ++bit) {
    const uint64_t value = layout.basis(bit)[out];
    if ((seen & value) != 0) return false;
    seen |= value;
  }
  return layout.outs()[out].xors() || seen < layout.outs()[out].size;
}

uint64_t times(uint64_t a, uint64_t b, uint64_t size) { return static_cast<uint64_t>(static_cast<Wide>(a) * b % size); }

// Whether out dim `out` of `inner`, read as in dim `in` of `outer`, contributes bit by bit.
bool passes_bit_by_bit(const ModularLayout &inner, size_t out, const ModularLayout &outer, const ModularDim &in) {
  // Bits that never meet stay apart: each bit of the value is a single bit of the input.
  if (is_disjoint(inner, out)) return true;
  const ModularDim &between = inner.outs()[out];
  const bool wraps = !between.xors() && largest_sum(inner, out) >= between.size;
  for (size_t o = 0; o < outer.outs().size(); ++o) {
    const ModularDim &last = outer.outs()[o];
    const auto basis = [&](uint32_t bit) { return outer.basis(in.shift + bit)[o]; };
    if (between.xors()) {
      // A xor of bits passes into a xor; into a sum it passes where its basis is its own opposite, or it is one bit.
      if (last.xors()) continue;
      for (uint32_t bit = 0; bit < between.bits; ++bit) {
        uint32_t feeds = 0;
        for (uint32_t i = 0; i < inner.in_bits(); ++i) feeds += (inner.basis(i)[out] >> bit & 1) != 0;
        if (feeds > 1 && times(2, basis(bit), last.size) != 0) return false;
      }
    } else if (last.xors()) {
      // Of a sum only the lowest bit is a xor of bits, and only while a remainder keeps it.
      for (uint32_t bit = 1; bit < between.bits; ++bit) {
        if (basis(bit) != 0) return false;
      }
      if (between.bits != 0 && basis(0) != 0 && wraps && between.size % 2 != 0) return false;
    } else {
      // A multiple of a sum is a sum, if a remainder does not matter to it.
      for (uint32_t bit = 1; bit < between.bits; ++bit) {
        if (basis(bit) != times(uint64_t{1} << bit, basis(0), last.size)) return false;
      }
      if (wraps && times(between.size % last.size, basis(0), last.size) != 0) return false;
    }
  }
  return true;
}

bool out_of_order(Arena &arena, const std::string &text) {
  arena.fail(Fault::kInvalid, text);
  return false;
}

bool check_compose(Arena &arena, const ModularLayout &inner, const ModularLayout &outer) {
  if (inner.outs().size() != outer.ins().size()) {
    return out_of_order(arena, "the inner layout has " + std::to_string(inner.outs().size()) +
                                   " out dims, the outer one " + std::to_string(outer.ins().size()) + " in dims");
  }
  for (const ModularDim &out : inner.outs()) {
    const ModularDim *const in = outer.find_in(out.name);
    if (in != nullptr && out.size <= in->size) continue;
    return out_of_order(arena, "out dim " + std::string(dim_text(out.name)) + " of the inner layout has " +
                                   std::to_string(out.size) + " values; the outer one takes " +
                                   (in == nullptr ? "no such dim" : std::to_string(in->size)));
  }
  return true;
}

// The outer input that has the inner layout's values.
uint64_t as_input(const ModularLayout &inner, std::span<const uint64_t> values, const ModularLayout &outer) {
  uint64_t flat = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    flat |= place(values[i], outer.find_in(inner.outs()[i].name)->shift);
  }
  return flat;
}

std::vector<ModularSize> sizes_of(std::span<const ModularDim> side) {
  std::vector<ModularSize> sizes;
  for (const ModularDim &dim : side) sizes.push_back({dim.name, dim.size});
  return sizes;
}

// Values at the single bits, as rows.
template <typename Values>
std::vector<uint64_t> at_bits(std::span<const ModularSize> ins, size_t outs, Values &&values) {
  uint32_t bits = 0;
  for (const ModularSize &in : ins) bits += static_cast<uint32_t>(std::bit_width(in.size - 1));
  std::vector<uint64_t> rows(bits * outs);
  for (uint32_t bit = 0; bit < bits; ++bit) {
    values(uint64_t{1} << bit, std::span<uint64_t>(rows).subspan(bit * outs, outs));
  }
  return rows;
}

bool merged_sizes(Arena &arena, std::span<const ModularDim> a, std::span<const ModularDim> b,
                  std::vector<ModularSize> &out) {
  std::vector<DimName> names_a;
  std::vector<DimName> names_b;
  std::vector<DimName> names;
  for (const ModularDim &dim : a) names_a.push_back(dim.name);
  for (const ModularDim &dim : b) names_b.push_back(dim.name);
  if (!supremum(arena, names_a, names_b, names)) return false;
  for (const DimName name : names) {
    uint64_t size = 1;
    for (const auto side : {a, b}) {
      for (const ModularDim &dim : side) {
        if (dim.name != name) continue;
        if (__builtin_mul_overflow(size, dim.size, &size)) size = UINT64_MAX;  // refused by make_modular
      }
    }
    out.push_back({name, size});
  }
  return true;
}

}  // namespace

const ModularLayout *product(Arena &arena, const ModularLayout &inner, const ModularLayout &outer) {
  std::vector<ModularSize> ins;
  std::vector<ModularSize> outs;
  if (!merged_sizes(arena, inner.ins(), outer.ins(), ins)) return nullptr;
  if (!merged_sizes(arena, inner.outs(), outer.outs(), outs)) return nullptr;
  std::vector<uint64_t> none;
  for (const ModularSize &in : ins) none.resize(none.size() + std::bit_width(in.size - 1) * outs.size(), 0);
  // Checks the sizes, and has the dims' places.
  const ModularLayout *const frame = make_modular(arena, ins, outs, none);
  if (frame == nullptr) return nullptr;

  std::vector<uint64_t> inner_values(inner.outs().size());
  std::vector<uint64_t> outer_values(outer.outs().size());
  const auto values = [&](uint64_t flat, std::span<uint64_t> out) {
    uint64_t inner_flat = 0;
    uint64_t outer_flat = 0;
    for (const ModularDim &in : frame->ins()) {
      const ModularDim *const a = inner.find_in(in.name);
      const ModularDim *const b = outer.find_in(in.name);
      const uint64_t size = a == nullptr ? 1 : a->size;
      if (a != nullptr) inner_flat |= place(in.of(flat) % size, a->shift);
      if (b != nullptr) outer_flat |= place(in.of(flat) / size, b->shift);
    }
    inner.apply(inner_flat, inner_values);
    outer.apply(outer_flat, outer_values);
    std::fill(out.begin(), out.end(), uint64_t{0});
    for (size_t i = 0; i < out.size(); ++i) {
      const ModularDim *const a = inner.find_out(frame->outs()[i].name);
      const ModularDim *const b = outer.find_out(frame->outs()[i].name);
      if (a != nullptr) out[i] += inner_values[static_cast<size_t>(a - inner.outs().data())];
      if (b != nullptr)
        out[i] += outer_values[static_cast<size_t>(b - outer.outs().data())] * (a == nullptr ? 1 : a->size);
    }
  };
  const ModularLayout *const result = make_modular(arena, ins, outs, at_bits(ins, outs.size(), values));
  if (result == nullptr) return nullptr;

  // Bits of a shared in dim stay bits when the inner size is a power of two. In a shared out dim either part must add
  // up in the combined size as it did in its own.
  bool shown = std::all_of(inner.ins().begin(), inner.ins().end(), [&](const ModularDim &in) {
    const ModularDim *const other = outer.find_in(in.name);
    return in.xors() || other == nullptr || other->size == 1;
  });
  for (size_t i = 0; shown && i < inner.outs().size(); ++i) {
    const ModularDim &a = inner.outs()[i];
    const ModularDim *const b = outer.find_out(a.name);
    if (b == nullptr || b->size == 1 || (a.xors() && b->xors())) continue;
    shown = a.xors() ? is_disjoint(inner, i) : largest_sum(inner, i) < a.size;
    shown = shown && (!b->xors() || is_disjoint(outer, static_cast<size_t>(b - outer.outs().data())));
  }
  return shown || agrees_with(arena, *result, "the product", values) ? result : nullptr;
}

const ModularLayout *compose(Arena &arena, const ModularLayout &inner, const ModularLayout &outer) {
  if (!check_compose(arena, inner, outer)) return nullptr;
  std::vector<uint64_t> between(inner.outs().size());
  const auto values = [&](uint64_t flat, std::span<uint64_t> out) {
    inner.apply(flat, between);
    outer.apply(as_input(inner, between, outer), out);
  };
  const auto ins = sizes_of(inner.ins());
  const auto outs = sizes_of(outer.outs());
  const ModularLayout *const result = make_modular(arena, ins, outs, at_bits(ins, outs.size(), values));
  if (result == nullptr) return nullptr;
  bool shown = true;
  for (size_t i = 0; shown && i < inner.outs().size(); ++i) {
    shown = passes_bit_by_bit(inner, i, outer, *outer.find_in(inner.outs()[i].name));
  }
  return shown || agrees_with(arena, *result, "the composition", values) ? result : nullptr;
}

namespace {

// Whether different inputs have different values, as far as trying all of them is possible.
bool is_surely_injective(const ModularLayout &layout) {
  if (layout.inputs() > kModularEnumerated || layout.in_bits() > 24) return false;
  std::vector<std::vector<uint64_t>> seen;
  std::vector<uint64_t> values(layout.outs().size());
  for (uint64_t flat = 0; flat < uint64_t{1} << layout.in_bits(); ++flat) {
    if (!layout.is_input(flat)) continue;
    layout.apply(flat, values);
    seen.push_back(values);
  }
  std::sort(seen.begin(), seen.end());
  return std::adjacent_find(seen.begin(), seen.end()) == seen.end();
}

// As invert_and_compose. `forced`: if there is an answer, it has the only preimages of the bits there are.
const ModularLayout *through_preimages(Arena &arena, const ModularLayout &layout, const ModularLayout &outer,
                                       bool forced) {
  // The layout's values in the order of the outer's out dims.
  std::vector<size_t> order;
  bool fits = layout.outs().size() == outer.outs().size();
  for (const ModularDim &out : outer.outs()) {
    const ModularDim *const own = layout.find_out(out.name);
    fits = fits && own != nullptr && own->size == out.size;
    if (fits) order.push_back(static_cast<size_t>(own - layout.outs().data()));
  }
  if (!fits) {
    arena.fail(Fault::kInvalid, "the two layouts must have the same out dims of the same sizes");
    return nullptr;
  }
  const auto ins = sizes_of(layout.ins());
  const auto outs = sizes_of(outer.ins());
  std::vector<uint64_t> rows;
  std::vector<uint64_t> ordered;
  for (const size_t from : order) ordered.push_back(from);
  for (uint32_t bit = 0; bit < layout.in_bits(); ++bit) {
    for (size_t i = 0; i < order.size(); ++i) ordered[i] = layout.basis(bit)[order[i]];
    uint64_t input = 0;
    if (!solve(arena, outer, ordered, input)) return nullptr;
    for (const ModularDim &in : outer.ins()) rows.push_back(in.of(input));
  }
  const ModularLayout *const result = make_modular(arena, ins, outs, rows);
  const ModularLayout *const through = result == nullptr ? nullptr : compose(arena, *result, outer);
  if (through == nullptr && (result == nullptr || arena.fault() != Fault::kNoSolution)) return nullptr;
  bool right = through != nullptr;
  for (uint32_t bit = 0; right && bit < layout.in_bits(); ++bit) {
    for (size_t i = 0; i < order.size(); ++i) right = right && through->basis(bit)[i] == layout.basis(bit)[order[i]];
  }
  if (right) return result;
  if (forced || is_surely_injective(outer)) {
    arena.fail(Fault::kNoSolution, "the preimages of the bits do not add up to those of their sums");
  } else {
    arena.fail(Fault::kUnsupported,
               "the preimages found for the bits do not add up to those of their sums; others may");
  }
  return nullptr;
}

}  // namespace

const ModularLayout *invert(Arena &arena, const ModularLayout &layout) {
  Wide inputs = 1;
  Wide outputs = 1;
  const auto many = static_cast<Wide>(1) << 64;
  for (const ModularDim &in : layout.ins()) inputs = std::min(inputs * in.size, many);
  for (const ModularDim &out : layout.outs()) outputs = std::min(outputs * out.size, many);
  if (inputs == many || outputs == many) {
    arena.fail(Fault::kUnsupported, "inverses of layouts of 2^64 values or more are not looked for");
    return nullptr;
  }
  if (inputs != outputs) {
    arena.fail(Fault::kNoSolution, "no inverse: there are " + std::to_string(static_cast<uint64_t>(inputs)) +
                                       " inputs and " + std::to_string(static_cast<uint64_t>(outputs)) + " outputs");
    return nullptr;
  }
  // An inverse has one preimage for each value, so what `solve` finds is it.
  const ModularLayout *const identity = make_modular_identity(arena, sizes_of(layout.outs()));
  return identity == nullptr ? nullptr : through_preimages(arena, *identity, layout, true);
}

const ModularLayout *invert_and_compose(Arena &arena, const ModularLayout &layout, const ModularLayout &outer) {
  return through_preimages(arena, layout, outer, false);
}

}  // namespace sonde::layout
