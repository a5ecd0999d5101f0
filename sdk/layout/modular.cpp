#include "layout/modular.h"

#include <algorithm>
#include <new>

namespace sonde::layout {
namespace {

constexpr uint64_t kLargestSize = uint64_t{1} << 62;

bool check_side(Arena &arena, std::span<const ModularSize> side, const char *which) {
  if (side.size() > kMaxDims) {
    arena.fail(Fault::kUnsupported, std::string("a layout has at most 64 ") + which + " dims");
    return false;
  }
  for (size_t i = 0; i < side.size(); ++i) {
    if (side[i].name == 0 || side[i].size < 1) {
      arena.fail(Fault::kInvalid,
                 std::string(which) + " dim " + std::to_string(i) + " needs a name and at least one value");
      return false;
    }
    if (side[i].size > kLargestSize) {
      arena.fail(Fault::kUnsupported,
                 std::string(which) + " dim " + std::string(dim_text(side[i].name)) + " has more than 2^62 values");
      return false;
    }
    for (size_t j = 0; j < i; ++j) {
      if (side[j].name != side[i].name) continue;
      arena.fail(Fault::kInvalid,
                 std::string(which) + " dim " + std::string(dim_text(side[i].name)) + " appears twice");
      return false;
    }
  }
  return true;
}

}  // namespace

uint64_t modular_sum(const ModularDim &out, uint64_t a, uint64_t b) {
  if (out.xors()) return a ^ b;
  const uint64_t sum = a + b;  // sizes are at most 2^62
  return sum >= out.size ? sum - out.size : sum;
}

bool ModularLayout::is_input(uint64_t flat) const {
  if ((flat & ~low_mask(in_bits_)) != 0) return false;
  return std::all_of(ins().begin(), ins().end(), [&](const ModularDim &in) { return in.of(flat) < in.size; });
}

uint64_t ModularLayout::inputs() const {
  uint64_t count = 1;
  for (const ModularDim &in : ins()) {
    if (__builtin_mul_overflow(count, in.size, &count)) return UINT64_MAX;
  }
  return count;
}

void ModularLayout::apply(uint64_t flat, std::span<uint64_t> out) const {
  std::fill(out.begin(), out.end(), uint64_t{0});
  for (uint64_t rest = flat & low_mask(in_bits_); rest != 0; rest &= rest - 1) {
    const auto row = basis(lowest_bit(rest));
    for (uint32_t i = 0; i < out_count_; ++i) out[i] = modular_sum(outs()[i], out[i], row[i]);
  }
}

const ModularLayout *make_modular(Arena &arena, std::span<const ModularSize> ins, std::span<const ModularSize> outs,
                                  std::span<const uint64_t> bases) {
  if (!check_side(arena, ins, "in") || !check_side(arena, outs, "out")) return nullptr;
  uint32_t in_bits = 0;
  for (const ModularSize &in : ins) in_bits += static_cast<uint32_t>(std::bit_width(in.size - 1));
  if (in_bits > kMaxBits) {
    arena.fail(Fault::kUnsupported, "the in dims have " + std::to_string(in_bits) + " bits; at most 64 are supported");
    return nullptr;
  }
  if (bases.size() != in_bits * outs.size()) {
    arena.fail(Fault::kInvalid, std::to_string(in_bits) + " in bits and " + std::to_string(outs.size()) +
                                    " out dims need " + std::to_string(in_bits * outs.size()) + " values, not " +
                                    std::to_string(bases.size()));
    return nullptr;
  }
  for (size_t i = 0; i < bases.size(); ++i) {
    const ModularSize &out = outs[i % outs.size()];
    if (bases[i] < out.size) continue;
    arena.fail(Fault::kInvalid, "the basis of input bit " + std::to_string(i / outs.size()) + " has " +
                                    std::to_string(bases[i]) + " in out dim " + std::string(dim_text(out.name)) +
                                    ", which has " + std::to_string(out.size) + " values");
    return nullptr;
  }
  void *const room = arena.allocate(sizeof(ModularLayout) + (ins.size() + outs.size()) * sizeof(ModularDim) +
                                    bases.size() * sizeof(uint64_t));
  if (room == nullptr) return nullptr;
  auto *const layout = ::new (room) ModularLayout;
  layout->in_count_ = static_cast<uint32_t>(ins.size());
  layout->out_count_ = static_cast<uint32_t>(outs.size());
  layout->in_bits_ = in_bits;
  ModularDim *dim = layout->dims();
  for (const std::span<const ModularSize> side : {ins, outs}) {
    uint32_t shift = 0;
    for (const ModularSize &size : side) {
      const auto bits = static_cast<uint32_t>(std::bit_width(size.size - 1));
      // Out dims are not flattened; their shifts say nothing.
      *dim++ = {size.name, static_cast<uint8_t>(bits), static_cast<uint8_t>(shift), 0, size.size};
      shift = std::min(shift + bits, kMaxBits);
    }
  }
  std::copy(bases.begin(), bases.end(), layout->bases());
  return layout;
}

const ModularLayout *make_modular_identity(Arena &arena, std::span<const ModularSize> dims) {
  std::vector<uint64_t> bases;
  for (size_t i = 0; i < dims.size(); ++i) {
    for (uint64_t step = 1; step < dims[i].size; step *= 2) {
      bases.resize(bases.size() + dims.size(), 0);
      bases[bases.size() - dims.size() + i] = step;
    }
  }
  return make_modular(arena, dims, dims, bases);
}

const ModularLayout *make_modular_strided(Arena &arena, uint64_t size, uint64_t stride, DimName in, ModularSize out) {
  const bool xors = is_power_of_two(out.size);
  std::vector<uint64_t> bases;
  for (uint64_t step = 1; step < size && step <= kLargestSize; step *= 2) {
    const UInt128 value = static_cast<UInt128>(step) * stride;
    if (xors && value >= out.size) {
      arena.fail(Fault::kInvalid, "the stride " + std::to_string(stride) + " takes index " + std::to_string(step) +
                                      " past the " + std::to_string(out.size) + " values of out dim " +
                                      std::string(dim_text(out.name)));
      return nullptr;
    }
    bases.push_back(static_cast<uint64_t>(out.size == 0 ? 0 : value % out.size));
  }
  const ModularSize in_size{in, size};
  return make_modular(arena, {&in_size, 1}, {&out, 1}, bases);
}

const ModularLayout *modular_from_linear(Arena &arena, const Layout &layout) {
  if (layout.offset() != 0) {
    arena.fail(Fault::kUnsupported, "layouts of sizes that are no powers of two have no offset");
    return nullptr;
  }
  std::vector<ModularSize> ins;
  std::vector<ModularSize> outs;
  for (const Dim &in : layout.ins()) ins.push_back({in.name, in.bits > 62 ? UINT64_MAX : uint64_t{1} << in.bits});
  for (const Dim &out : layout.outs()) outs.push_back({out.name, out.bits > 62 ? UINT64_MAX : uint64_t{1} << out.bits});
  std::vector<uint64_t> bases;
  for (const uint64_t column : layout.columns()) {
    for (const Dim &out : layout.outs()) bases.push_back(out.of(column));
  }
  return make_modular(arena, ins, outs, bases);
}

const Layout *linear_from_modular(Arena &arena, const ModularLayout &layout) {
  std::vector<DimSize> sides[2];
  for (const auto side : {layout.ins(), layout.outs()}) {
    for (const ModularDim &dim : side) {
      if (!dim.xors()) {
        arena.fail(Fault::kNoSolution, "dim " + std::string(dim_text(dim.name)) + " has " + std::to_string(dim.size) +
                                           " values, which is no power of two");
        return nullptr;
      }
      sides[side.data() == layout.ins().data() ? 0 : 1].push_back({dim.name, dim.bits});
    }
  }
  std::vector<uint64_t> rows;
  for (uint32_t bit = 0; bit < layout.in_bits(); ++bit) {
    rows.insert(rows.end(), layout.basis(bit).begin(), layout.basis(bit).end());
  }
  return make_from_bases(arena, sides[0], sides[1], rows);
}

bool equal(const ModularLayout &a, const ModularLayout &b) {
  const auto same = [](std::span<const ModularDim> x, std::span<const ModularDim> y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const ModularDim &d, const ModularDim &e) { return d.name == e.name && d.size == e.size; });
  };
  if (!same(a.ins(), b.ins()) || !same(a.outs(), b.outs())) return false;
  for (uint32_t bit = 0; bit < a.in_bits(); ++bit) {
    if (!std::equal(a.basis(bit).begin(), a.basis(bit).end(), b.basis(bit).begin())) return false;
  }
  return true;
}

std::string describe_input(const ModularLayout &layout, uint64_t flat) {
  std::string text = "(";
  for (const ModularDim &in : layout.ins()) {
    if (text.size() > 1) text += ", ";
    text += std::string(dim_text(in.name)) + "=" + std::to_string(in.of(flat));
  }
  return text + ")";
}

std::string to_string(const ModularLayout &layout) {
  std::string text = "\n";
  for (const ModularDim &in : layout.ins()) {
    const std::string name(dim_text(in.name));
    text += " - " + name + " (size " + std::to_string(in.size) + ")\n";
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      text += "   " + name + "=" + std::to_string(uint64_t{1} << bit) + " -> (";
      const auto row = layout.basis(in.shift + bit);
      for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(row[i]);
      text += ")\n";
    }
  }
  text += "where out dims are: [";
  for (size_t i = 0; i < layout.outs().size(); ++i) {
    const ModularDim &out = layout.outs()[i];
    text += (i == 0 ? "" : ", ") + std::string(dim_text(out.name)) + (out.xors() ? " (size " : " (modulo ") +
            std::to_string(out.size) + ")";
  }
  return text + "]";
}

}  // namespace sonde::layout
