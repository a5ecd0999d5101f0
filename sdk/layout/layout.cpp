#include "layout/layout.h"

#include <algorithm>
#include <new>

#include "layout/matrix.h"

namespace sonde::layout {
namespace {

void set_side(Dim *dims, std::span<const DimSize> sizes) {
  for (const DimSize &size : sizes) *dims++ = {size.name, static_cast<uint8_t>(size.bits), 0, 0};
}

bool check_side(Arena &arena, std::span<const DimSize> side, const char *which) {
  if (side.size() > kMaxDims) {
    arena.fail(Fault::kUnsupported,
               std::string("a layout has at most 64 ") + which + " dims, not " + std::to_string(side.size()));
    return false;
  }
  for (size_t i = 0; i < side.size(); ++i) {
    if (side[i].name == 0) {
      arena.fail(Fault::kInvalid, std::string(which) + " dim " + std::to_string(i) + " has no name");
      return false;
    }
    if (side[i].bits > kMaxBits) {
      arena.fail(Fault::kUnsupported, std::string(which) + " dim " + std::string(dim_text(side[i].name)) + " has " +
                                          std::to_string(side[i].bits) + " bits; at most 64 are supported");
      return false;
    }
    for (size_t j = 0; j < i; ++j) {
      if (side[j].name == side[i].name) {
        arena.fail(Fault::kInvalid,
                   std::string(which) + " dim " + std::string(dim_text(side[i].name)) + " appears twice");
        return false;
      }
    }
  }
  return true;
}

Layout *make_checked(Arena &arena, std::span<const DimSize> ins, std::span<const DimSize> outs) {
  if (!check_side(arena, ins, "in") || !check_side(arena, outs, "out")) return nullptr;
  uint32_t in_bits = 0;
  for (const DimSize &in : ins) in_bits += in.bits;
  if (in_bits > kMaxBits) {
    arena.fail(Fault::kUnsupported, "the in dims have " + std::to_string(in_bits) + " bits; at most 64 are supported");
    return nullptr;
  }
  Layout *const layout =
      Layout::make(arena, static_cast<uint32_t>(ins.size()), static_cast<uint32_t>(outs.size()), in_bits);
  if (layout == nullptr) return nullptr;
  set_side(layout->mutable_ins(), ins);
  set_side(layout->mutable_outs(), outs);
  return layout->place_dims(arena) ? layout : nullptr;
}

bool check_size(Arena &arena, uint64_t size, const char *what) {
  if (is_power_of_two(size)) return true;
  arena.fail(Fault::kInvalid, std::string(what) + " must be a power of two, not " + std::to_string(size));
  return false;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

uint64_t hash_text(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a: ids differ from run to run, texts do not
  for (const char letter : text) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3u;
  return hash;
}

std::string size_text(uint32_t bits) {
  return bits < 64 ? std::to_string(uint64_t{1} << bits) : "18446744073709551616";
}

bool same_names(std::span<const Dim> a, std::span<const Dim> b, bool with_sizes) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || (with_sizes && a[i].bits != b[i].bits)) return false;
  }
  return true;
}

}  // namespace

Layout *Layout::make(Arena &arena, uint32_t in_count, uint32_t out_count, uint32_t in_bits) {
  void *const room = arena.allocate(sizeof(Layout) + (in_count + out_count) * sizeof(Dim) + in_bits * sizeof(uint64_t));
  if (room == nullptr) return nullptr;
  auto *const layout = ::new (room) Layout;
  layout->in_count_ = static_cast<uint8_t>(in_count);
  layout->out_count_ = static_cast<uint8_t>(out_count);
  layout->in_bits_ = static_cast<uint8_t>(in_bits);
  return layout;
}

Layout *Layout::refuse_width(Arena &arena, uint32_t in_bits, uint32_t out_bits) {
  arena.fail(Fault::kUnsupported, "the result has " + std::to_string(in_bits) + " in bits and " +
                                      std::to_string(out_bits) + " out bits; at most 64 are supported");
  return nullptr;
}

bool Layout::place_dims(Arena &arena) {
  uint32_t shift = 0;
  Dim *all = dims();
  for (uint32_t i = 0; i < in_count_; ++i, shift += all++->bits) all->shift = static_cast<uint8_t>(shift);
  const uint32_t in_bits = shift;
  shift = 0;
  for (uint32_t i = 0; i < out_count_; ++i, shift += all++->bits) all->shift = static_cast<uint8_t>(shift);
  if (in_bits > kMaxBits || shift > kMaxBits) [[unlikely]] {
    (void)refuse_width(arena, in_bits, shift);
    return false;
  }
  in_bits_ = static_cast<uint8_t>(in_bits);
  out_bits_ = static_cast<uint8_t>(shift);
  return true;
}

const Layout *make_layout(Arena &arena, std::span<const DimSize> ins, std::span<const DimSize> outs,
                          std::span<const uint64_t> columns, uint64_t offset) {
  Layout *const layout = make_checked(arena, ins, outs);
  if (layout == nullptr) return nullptr;
  if (columns.size() != layout->in_bits()) {
    arena.fail(Fault::kInvalid, "the in dims have " + std::to_string(layout->in_bits()) + " bits, but " +
                                    std::to_string(columns.size()) + " columns are given");
    return nullptr;
  }
  const uint64_t room = low_mask(layout->out_bits());
  for (size_t i = 0; i < columns.size(); ++i) {
    if ((columns[i] & ~room) != 0) {
      arena.fail(Fault::kInvalid, "column " + std::to_string(i) + " is " + std::to_string(columns[i]) + ", past the " +
                                      std::to_string(layout->out_bits()) + " out bits");
      return nullptr;
    }
    layout->mutable_columns()[i] = columns[i];
  }
  if ((offset & ~room) != 0) {
    arena.fail(Fault::kInvalid, "the offset " + std::to_string(offset) + " lies past the " +
                                    std::to_string(layout->out_bits()) + " out bits");
    return nullptr;
  }
  layout->set_offset(offset);
  return layout;
}

const Layout *make_from_bases(Arena &arena, std::span<const DimSize> ins, std::span<const DimSize> outs,
                              std::span<const uint64_t> rows) {
  Layout *const layout = make_checked(arena, ins, outs);
  if (layout == nullptr) return nullptr;
  if (rows.size() != layout->in_bits() * outs.size()) {
    arena.fail(Fault::kInvalid, std::to_string(layout->in_bits()) + " in bits and " + std::to_string(outs.size()) +
                                    " out dims need " + std::to_string(layout->in_bits() * outs.size()) +
                                    " values, not " + std::to_string(rows.size()));
    return nullptr;
  }
  const uint64_t *value = rows.data();
  for (const Dim &in : layout->ins()) {
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      uint64_t column = 0;
      for (const Dim &out : layout->outs()) {
        if ((*value & ~low_mask(out.bits)) != 0) {
          arena.fail(Fault::kInvalid, "the basis of " + std::string(dim_text(in.name)) + "=" +
                                          std::to_string(uint64_t{1} << bit) + " has " + std::to_string(*value) +
                                          " in out dim " + std::string(dim_text(out.name)) + ", which has " +
                                          std::to_string(out.bits) + " bits");
          return nullptr;
        }
        column |= out.at(*value++);
      }
      layout->mutable_columns()[in.shift + bit] = column;
    }
  }
  return layout;
}

const Layout *make_inferred(Arena &arena, std::span<const NamedBases> bases, std::span<const DimName> outs,
                            bool needs_surjective) {
  std::vector<DimSize> in_sizes;
  std::vector<DimSize> out_sizes;
  std::vector<uint64_t> rows;
  for (const DimName out : outs) out_sizes.push_back({out, 0});
  for (const NamedBases &in : bases) {
    in_sizes.push_back({in.in, static_cast<uint32_t>(in.rows.size())});
    for (const auto &row : in.rows) {
      if (row.size() != outs.size()) {
        arena.fail(Fault::kInvalid, "a basis of " + std::string(dim_text(in.in)) + " has " +
                                        std::to_string(row.size()) + " values; there are " +
                                        std::to_string(outs.size()) + " out dims");
        return nullptr;
      }
      for (size_t i = 0; i < row.size(); ++i) {
        const auto bits = static_cast<uint32_t>(std::bit_width(row[i]));
        out_sizes[i].bits = std::max(out_sizes[i].bits, bits);
        rows.push_back(row[i]);
      }
    }
  }
  const Layout *const layout = make_from_bases(arena, in_sizes, out_sizes, rows);
  if (layout != nullptr && needs_surjective && !is_surjective(*layout)) {
    arena.fail(Fault::kInvalid,
               "these bases do not reach every value of the out dims that they imply, " + describe(layout->outs()));
    return nullptr;
  }
  return layout;
}

const Layout *make_empty(Arena &arena) { return make_layout(arena, {}, {}, {}); }

const Layout *make_identity(Arena &arena, uint64_t size, DimName in, DimName out) {
  return make_strided(arena, size, 1, in, out);
}

const Layout *make_strided(Arena &arena, uint64_t size, uint64_t stride, DimName in, DimName out) {
  if (size == 0) return make_empty(arena);
  if (!check_size(arena, size, "the size") || !check_size(arena, stride, "the stride")) return nullptr;
  const uint32_t bits = lowest_bit(size);
  const uint32_t shift = lowest_bit(stride);
  const DimSize in_size{in, bits};
  const DimSize out_size{out, bits + shift};
  Layout *const layout = make_checked(arena, {&in_size, 1}, {&out_size, 1});
  if (layout == nullptr) return nullptr;
  for (uint32_t i = 0; i < bits; ++i) layout->mutable_columns()[i] = uint64_t{1} << (i + shift);
  return layout;
}

const Layout *make_zeros(Arena &arena, uint64_t size, DimName in, DimName out, uint64_t out_size) {
  if (size == 0) return make_empty(arena);
  if (!check_size(arena, size, "the size") || !check_size(arena, out_size, "the out size")) return nullptr;
  const DimSize in_size{in, lowest_bit(size)};
  const DimSize out_bits{out, lowest_bit(out_size)};
  Layout *const layout = make_checked(arena, {&in_size, 1}, {&out_bits, 1});
  if (layout != nullptr) std::fill_n(layout->mutable_columns(), in_size.bits, uint64_t{0});
  return layout;
}

const Layout *copy_layout(Arena &arena, const Layout &layout) {
  Layout *const copy = Layout::make(arena, layout.ins(), layout.outs());
  if (copy == nullptr) return nullptr;
  copy->copy_columns(layout);
  copy->set_offset(layout.offset());
  return copy;
}

const Layout *with_offset(Arena &arena, const Layout &layout, std::span<const uint64_t> values) {
  if (values.size() != layout.outs().size()) {
    arena.fail(Fault::kInvalid, "the offset has " + std::to_string(values.size()) + " values; there are " +
                                    std::to_string(layout.outs().size()) + " out dims");
    return nullptr;
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Dim &out = layout.outs()[i];
    if ((values[i] & ~low_mask(out.bits)) != 0) {
      arena.fail(Fault::kInvalid, "the offset has " + std::to_string(values[i]) + " in out dim " +
                                      std::string(dim_text(out.name)) + ", which has " + std::to_string(out.bits) +
                                      " bits");
      return nullptr;
    }
    offset |= out.at(values[i]);
  }
  auto *const copy = const_cast<Layout *>(copy_layout(arena, layout));
  if (copy != nullptr) copy->set_offset(offset);
  return copy;
}

bool apply_dims(Arena &arena, const Layout &layout, std::span<const uint64_t> values, std::span<uint64_t> out) {
  const auto ins = layout.ins();
  const auto outs = layout.outs();
  if (values.size() != ins.size() || out.size() != outs.size()) {
    arena.fail(Fault::kInvalid, "apply: the layout has " + std::to_string(ins.size()) + " in dims and " +
                                    std::to_string(outs.size()) + " out dims, not " + std::to_string(values.size()) +
                                    " and " + std::to_string(out.size()));
    return false;
  }
  uint64_t flat = 0;
  for (size_t i = 0; i < ins.size(); ++i) {
    if ((values[i] & ~low_mask(ins[i].bits)) != 0) {
      arena.fail(Fault::kInvalid, "apply: " + std::string(dim_text(ins[i].name)) + " = " + std::to_string(values[i]) +
                                      " lies past its " + std::to_string(ins[i].bits) + " bits");
      return false;
    }
    flat |= ins[i].at(values[i]);
  }
  const uint64_t result = layout.apply(flat);
  for (size_t i = 0; i < outs.size(); ++i) out[i] = outs[i].of(result);
  return true;
}

uint32_t rank(const Layout &layout) { return rank_of(layout.columns()); }

bool equal(const Layout &a, const Layout &b) {
  return same_names(a.ins(), b.ins(), true) && same_names(a.outs(), b.outs(), true) && a.offset() == b.offset() &&
         std::equal(a.columns().begin(), a.columns().end(), b.columns().begin());
}

bool equal_but_out_sizes(const Layout &a, const Layout &b) {
  if (!same_names(a.ins(), b.ins(), true) || !same_names(a.outs(), b.outs(), false)) return false;
  for (size_t i = 0; i < a.outs().size(); ++i) {
    const Dim &out_a = a.outs()[i];
    const Dim &out_b = b.outs()[i];
    if (out_a.of(a.offset()) != out_b.of(b.offset())) return false;
    for (uint32_t bit = 0; bit < a.in_bits(); ++bit) {
      if (out_a.of(a.columns()[bit]) != out_b.of(b.columns()[bit])) return false;
    }
  }
  return true;
}

bool equal_as_maps(const Layout &a, const Layout &b) {
  const auto real = [](std::span<const Dim> side) {
    return std::count_if(side.begin(), side.end(), [](const Dim &dim) { return dim.bits != 0; });
  };
  if (real(a.ins()) != real(b.ins()) || real(a.outs()) != real(b.outs())) return false;
  for (const Dim &out : a.outs()) {
    if (out.bits == 0) continue;
    const Dim *const other_out = b.find_out(out.name);
    if (other_out == nullptr || other_out->bits != out.bits) return false;
    if (out.of(a.offset()) != other_out->of(b.offset())) return false;
    for (const Dim &in : a.ins()) {
      if (in.bits == 0) continue;
      const Dim *const other_in = b.find_in(in.name);
      if (other_in == nullptr || other_in->bits != in.bits) return false;
      for (uint32_t bit = 0; bit < in.bits; ++bit) {
        if (out.of(a.columns_of(in)[bit]) != other_out->of(b.columns_of(*other_in)[bit])) return false;
      }
    }
  }
  // Without real out dims, the ins were not compared above.
  return std::all_of(a.ins().begin(), a.ins().end(), [&](const Dim &in) {
    const Dim *const other = b.find_in(in.name);
    return in.bits == 0 || (other != nullptr && other->bits == in.bits);
  });
}

uint64_t hash(const Layout &layout) {
  uint64_t result = mix(layout.ins().size(), layout.outs().size());
  for (const Dim &dim : layout.ins()) result = mix(mix(result, hash_text(dim_text(dim.name))), dim.bits);
  for (const Dim &dim : layout.outs()) result = mix(mix(result, hash_text(dim_text(dim.name))), dim.bits);
  for (const uint64_t column : layout.columns()) result = mix(result, column);
  return mix(result, layout.offset());
}

uint64_t hash_as_map(const Layout &layout) {
  uint64_t result = 0;
  for (const Dim &out : layout.outs()) {
    if (out.bits == 0) continue;
    const uint64_t out_hash = mix(hash_text(dim_text(out.name)), out.bits);
    result += mix(out_hash, out.of(layout.offset()));
    for (const Dim &in : layout.ins()) {
      uint64_t block = mix(out_hash, hash_text(dim_text(in.name)));
      for (const uint64_t column : layout.columns_of(in)) block = mix(block, out.of(column));
      if (in.bits != 0) result += block;
    }
  }
  for (const Dim &in : layout.ins()) {
    if (in.bits != 0) result += mix(hash_text(dim_text(in.name)), in.bits);
  }
  return mix(result, 1);
}

std::string describe(std::span<const Dim> side) {
  std::string text = "[";
  for (const Dim &dim : side) {
    if (text.size() > 1) text += ", ";
    text += dim_text(dim.name);
    text += " (size " + size_text(dim.bits) + ")";
  }
  return text + "]";
}

std::string describe_point(std::span<const Dim> side, uint64_t flat) {
  std::string text = "(";
  for (const Dim &dim : side) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dim.of(flat));
  }
  return text + ")";
}

std::string to_string(const Layout &layout) {
  std::string text = "\n";
  if (layout.ins().empty()) {
    if (layout.outs().empty()) return "\n(empty layout)";
    text = "\n(empty layout with out-dims [";
    for (size_t i = 0; i < layout.outs().size(); ++i) {
      if (i != 0) text += ", ";
      const Dim &out = layout.outs()[i];
      text += std::string(dim_text(out.name)) + " (size " + size_text(out.bits) + ")";
    }
    return text + "])";
  }
  for (const Dim &in : layout.ins()) {
    const std::string name(dim_text(in.name));
    if (in.bits == 0) {
      text += " - " + name + " is a size 1 dimension\n";
      continue;
    }
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      text += bit == 0 ? " - " : "   ";
      text += name + "=" + std::to_string(uint64_t{1} << bit) + " -> " +
              describe_point(layout.outs(), layout.columns_of(in)[bit]) + "\n";
    }
  }
  text += "where out dims are: " + describe(layout.outs());
  if (layout.offset() != 0) text += "\noffset: " + describe_point(layout.outs(), layout.offset());
  return text;
}

}  // namespace sonde::layout
