#include "layout/shapes.h"

#include <algorithm>

#include "layout/algebra.h"

namespace sonde::layout {
namespace {

std::string name_of(DimName name) { return std::string(dim_text(name)); }

const Layout *no_dim(Arena &arena, std::span<const Dim> side, DimName name) {
  arena.fail(Fault::kInvalid, "there is no dim " + name_of(name) + " in " + describe(side));
  return nullptr;
}

const Dim *find(std::span<const Dim> side, DimName name) {
  for (const Dim &dim : side) {
    if (dim.name == name) return &dim;
  }
  return nullptr;
}

bool contains(std::span<const DimName> names, DimName name) {
  for (const DimName other : names) {
    if (other == name) return true;
  }
  return false;
}

// Moves the bits of `from` dims to those of `to` dims in `count` values; the other bits are dropped. Dims outside, values
// inside: the inner loop is one shift and mask, which becomes vector code.
void move_dims(std::span<const Dim> from, std::span<const Dim> to, const uint64_t *values, uint32_t count,
               uint64_t *out) {
  bool is_first = true;
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d].bits == 0) continue;
    const uint64_t mask = low_mask(from[d].bits);
    const uint32_t right = from[d].shift;
    const uint32_t left = to[d].shift;
    if (is_first) {
      for (uint32_t i = 0; i < count; ++i) out[i] = (values[i] >> right & mask) << left;
    } else {
      for (uint32_t i = 0; i < count; ++i) out[i] |= (values[i] >> right & mask) << left;
    }
    is_first = false;
  }
  if (is_first) std::fill_n(out, count, uint64_t{0});
}

uint64_t move_dims(std::span<const Dim> from, std::span<const Dim> to, uint64_t value) {
  if (value == 0) return 0;
  uint64_t moved = 0;
  move_dims(from, to, &value, 1, &moved);
  return moved;
}

// A layout whose one side has other dims over the same flattened bits.
const Layout *with_side(Arena &arena, const Layout &layout, Side side, std::span<const Dim> dims) {
  const auto ins = side == Side::kIn ? dims : layout.ins();
  const auto outs = side == Side::kOut ? dims : layout.outs();
  Layout *const result = Layout::make(arena, ins, outs);
  if (result == nullptr) return nullptr;
  result->copy_columns(layout);
  result->set_offset(layout.offset());
  return result;
}

bool check_names(Arena &arena, std::span<const Dim> dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].name == 0) {
      arena.fail(Fault::kInvalid, "dim " + std::to_string(i) + " has no name");
      return false;
    }
    for (size_t j = 0; j < i; ++j) {
      if (dims[j].name != dims[i].name) continue;
      arena.fail(Fault::kInvalid, "dim " + name_of(dims[i].name) + " appears twice");
      return false;
    }
  }
  return true;
}

}  // namespace

const Layout *transpose(Arena &arena, const Layout &layout, Side side, std::span<const DimName> order) {
  const auto dims = side == Side::kIn ? layout.ins() : layout.outs();
  Dim next[kMaxDims];
  bool fits = order.size() == dims.size();
  for (size_t i = 0; fits && i < order.size(); ++i) {
    const Dim *const dim = find(dims, order[i]);
    fits = dim != nullptr && !contains(order.first(i), order[i]);
    if (fits) next[i] = *dim;
  }
  if (!fits) {
    arena.fail(Fault::kInvalid, "transpose: the order must name each of " + describe(dims) + " once");
    return nullptr;
  }
  const std::span<const Dim> sources(next, dims.size());
  if (side == Side::kIn) {
    Layout *const result = Layout::make(arena, sources, layout.outs());
    if (result == nullptr) return nullptr;
    uint64_t *column = result->mutable_columns();
    for (const Dim &source : sources) {
      for (const uint64_t value : layout.columns_of(source)) *column++ = value;
    }
    result->set_offset(layout.offset());
    return result;
  }
  Layout *const result = Layout::make(arena, layout.ins(), sources);
  if (result == nullptr) return nullptr;
  move_dims(sources, result->outs(), layout.columns().data(), layout.in_bits(), result->mutable_columns());
  result->set_offset(move_dims(sources, result->outs(), layout.offset()));
  return result;
}

const Layout *reshape(Arena &arena, const Layout &layout, Side side, std::span<const DimSize> sizes) {
  if (sizes.size() > kMaxDims) {
    arena.fail(Fault::kUnsupported, "reshape: more than 64 dims");
    return nullptr;
  }
  Dim dims[kMaxDims];
  uint64_t total = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    total += sizes[i].bits;
    dims[i] = {sizes[i].name, static_cast<uint8_t>(std::min(sizes[i].bits, 255u)), 0, 0};
  }
  const std::span<const Dim> next(dims, sizes.size());
  if (!check_names(arena, next)) return nullptr;
  const uint32_t bits = side == Side::kIn ? layout.in_bits() : layout.out_bits();
  if (total != bits) {
    arena.fail(Fault::kInvalid,
               "reshape: the new dims have " + std::to_string(total) + " bits, the side has " + std::to_string(bits));
    return nullptr;
  }
  return with_side(arena, layout, side, next);
}

const Layout *flatten(Arena &arena, const Layout &layout, Side side) {
  const auto dims = side == Side::kIn ? layout.ins() : layout.outs();
  if (dims.empty()) return copy_layout(arena, layout);
  const Dim whole{dims[0].name, static_cast<uint8_t>(side == Side::kIn ? layout.in_bits() : layout.out_bits()), 0, 0};
  return with_side(arena, layout, side, {&whole, 1});
}

const Layout *squeeze(Arena &arena, const Layout &layout, Side side, DimName name) {
  const auto dims = side == Side::kIn ? layout.ins() : layout.outs();
  const Dim *const dropped = find(dims, name);
  if (dropped == nullptr) return no_dim(arena, dims, name);
  if (dropped->bits != 0) {
    arena.fail(Fault::kInvalid, "squeeze: dim " + name_of(name) + " has " + std::to_string(dropped->bits) +
                                    " bits; only a dim of one value can be dropped");
    return nullptr;
  }
  Dim kept[kMaxDims];
  uint32_t count = 0;
  for (const Dim &dim : dims) {
    if (dim.name != name) kept[count++] = dim;
  }
  return with_side(arena, layout, side, {kept, count});
}

const Layout *unsqueeze(Arena &arena, const Layout &layout, Side side, DimName name) {
  const auto dims = side == Side::kIn ? layout.ins() : layout.outs();
  if (dims.size() == kMaxDims) {
    arena.fail(Fault::kUnsupported, "unsqueeze: more than 64 dims");
    return nullptr;
  }
  Dim next[kMaxDims];
  std::copy(dims.begin(), dims.end(), next);
  next[dims.size()] = {name, 0, 0, 0};
  const std::span<const Dim> all(next, dims.size() + 1);
  return check_names(arena, all) ? with_side(arena, layout, side, all) : nullptr;
}

const Layout *resize_in(Arena &arena, const Layout &layout, DimName name, uint32_t bits) {
  const Dim *const resized = layout.find_in(name);
  if (resized == nullptr) return no_dim(arena, layout.ins(), name);
  if (bits > kMaxBits || layout.in_bits() - resized->bits + bits > kMaxBits) {
    arena.fail(Fault::kUnsupported, "resize: more than 64 in bits");
    return nullptr;
  }
  Dim next[kMaxDims];
  std::copy(layout.ins().begin(), layout.ins().end(), next);
  next[resized - layout.ins().data()].bits = static_cast<uint8_t>(bits);
  Layout *const result = Layout::make(arena, {next, layout.ins().size()}, layout.outs());
  if (result == nullptr) return nullptr;
  uint64_t *column = result->mutable_columns();
  for (const Dim &in : layout.ins()) {
    const auto own = layout.columns_of(in);
    const uint32_t wanted = in.name == name ? bits : in.bits;
    for (uint32_t bit = 0; bit < wanted; ++bit) *column++ = bit < in.bits ? own[bit] : 0;
  }
  result->set_offset(layout.offset());
  return result;
}

const Layout *resize_out(Arena &arena, const Layout &layout, DimName name, uint32_t bits, Resize how) {
  const Dim *const resized = layout.find_out(name);
  if (resized == nullptr) return no_dim(arena, layout.outs(), name);
  if (bits > resized->bits) {
    arena.fail(Fault::kInvalid, "resize: out dim " + name_of(name) + " has " + std::to_string(resized->bits) +
                                    " bits and cannot grow to " + std::to_string(bits));
    return nullptr;
  }
  Dim next[kMaxDims];
  std::copy(layout.outs().begin(), layout.outs().end(), next);
  next[resized - layout.outs().data()].bits = static_cast<uint8_t>(bits);
  Layout *const result = Layout::make(arena, layout.ins(), {next, layout.outs().size()});
  if (result == nullptr) return nullptr;
  const auto shrink = [&](uint64_t flat) {
    uint64_t value = 0;
    for (size_t i = 0; i < layout.outs().size(); ++i) {
      const Dim &from = layout.outs()[i];
      uint64_t part = from.of(flat);
      if (from.name == name && part > low_mask(bits)) part = how == Resize::kZero ? 0 : part & low_mask(bits);
      value |= result->outs()[i].at(part);
    }
    return value;
  };
  for (uint32_t i = 0; i < layout.in_bits(); ++i) result->mutable_columns()[i] = shrink(layout.columns()[i]);
  result->set_offset(shrink(layout.offset()));
  return result;
}

const Layout *rename(Arena &arena, const Layout &layout, Side side, std::span<const Renaming> names) {
  const auto dims = side == Side::kIn ? layout.ins() : layout.outs();
  Dim next[kMaxDims];
  std::copy(dims.begin(), dims.end(), next);
  for (size_t i = 0; i < names.size(); ++i) {
    const Dim *const dim = find(dims, names[i].from);
    if (dim == nullptr) return no_dim(arena, dims, names[i].from);
    next[dim - dims.data()].name = names[i].to;
  }
  const std::span<const Dim> all(next, dims.size());
  return check_names(arena, all) ? with_side(arena, layout, side, all) : nullptr;
}

const Layout *sublayout(Arena &arena, const Layout &layout, std::span<const DimName> ins,
                        std::span<const DimName> outs) {
  // Which dims stay, one bit each.
  const auto all_ins = layout.ins();
  const auto all_outs = layout.outs();
  uint64_t kept_in = 0;
  uint64_t kept_out = 0;
  uint64_t in_mask = 0;  // the flattened input bits of those
  uint32_t in_count = 0;
  uint32_t out_count = 0;
  uint32_t in_bits = 0;
  uint32_t out_bits = 0;
  for (uint32_t i = 0; i < all_ins.size(); ++i) {
    if (!contains(ins, all_ins[i].name)) continue;
    kept_in |= uint64_t{1} << i;
    ++in_count;
    in_bits += all_ins[i].bits;
    in_mask |= all_ins[i].mask();
  }
  for (uint32_t i = 0; i < all_outs.size(); ++i) {
    if (!contains(outs, all_outs[i].name)) continue;
    kept_out |= uint64_t{1} << i;
    ++out_count;
    out_bits += all_outs[i].bits;
  }
  if (in_count < ins.size() || out_count < outs.size()) [[unlikely]] {
    for (const DimName name : ins) {
      if (layout.find_in(name) == nullptr) return no_dim(arena, all_ins, name);
    }
    for (const DimName name : outs) {
      if (layout.find_out(name) == nullptr) return no_dim(arena, all_outs, name);
    }
  }
  Layout *const result = Layout::make_sized(arena, in_count, out_count, in_bits, out_bits);
  if (result == nullptr) return nullptr;
  const auto place_side = [](std::span<const Dim> side, uint64_t kept, Dim *to) {
    uint8_t shift = 0;
    for (; kept != 0; kept &= kept - 1) {
      const Dim &dim = side[lowest_bit(kept)];
      *to = dim;
      to++->shift = shift;
      shift = static_cast<uint8_t>(shift + dim.bits);
    }
  };
  place_side(all_ins, kept_in, result->mutable_ins());
  place_side(all_outs, kept_out, result->mutable_outs());
  const auto fill = [&](auto &&project) {
    const uint64_t *const all = layout.columns().data();
    uint64_t *column = result->mutable_columns();
    // One loop over the bits that stay: a loop in a loop would be mispredicted at the end of each dim. Mostly they are
    // neighbours.
    const uint32_t first = in_mask == 0 ? 0 : lowest_bit(in_mask);
    if (in_mask >> first == low_mask(in_bits)) {
      for (uint32_t i = 0; i < in_bits; ++i) column[i] = project(all[first + i]);
    } else {
      for (uint64_t rest = in_mask; rest != 0; rest &= rest - 1) *column++ = project(all[lowest_bit(rest)]);
    }
    result->set_offset(project(layout.offset()));
  };
  if (out_count == all_outs.size()) {
    fill([](uint64_t value) { return value; });
  } else if (out_count == 1) {
    // The usual question, about one dim.
    const Dim &out = all_outs[lowest_bit(kept_out)];
    const uint64_t mask = low_mask(out.bits);
    const uint32_t shift = out.shift & 63u;
    fill([mask, shift](uint64_t value) { return value >> shift & mask; });
  } else {
    fill([&](uint64_t value) {
      uint64_t moved = 0;
      const Dim *target = result->outs().data();
      for (uint64_t rest = kept_out; rest != 0; rest &= rest - 1)
        moved |= (target++)->at(all_outs[lowest_bit(rest)].of(value));
      return moved;
    });
  }
  return result;
}

const Layout *remove_zero_bases(Arena &arena, const Layout &layout, DimName name) {
  const Dim *const own = layout.find_in(name);
  if (own == nullptr) return no_dim(arena, layout.ins(), name);
  uint32_t zeros = 0;
  for (const uint64_t value : layout.columns_of(*own)) zeros += value == 0 ? 1 : 0;
  Dim next[kMaxDims];
  std::copy(layout.ins().begin(), layout.ins().end(), next);
  next[own - layout.ins().data()].bits = static_cast<uint8_t>(own->bits - zeros);
  Layout *const result = Layout::make(arena, {next, layout.ins().size()}, layout.outs());
  if (result == nullptr) return nullptr;
  uint64_t *column = result->mutable_columns();
  for (const Dim &in : layout.ins()) {
    for (const uint64_t value : layout.columns_of(in)) {
      if (in.name != name || value != 0) *column++ = value;
    }
  }
  result->set_offset(layout.offset());
  return result;
}

namespace {

const DimSize *size_in(std::span<const DimSize> shape, DimName name) {
  for (const DimSize &size : shape) {
    if (size.name == name) return &size;
  }
  return nullptr;
}

bool log2_exact(Arena &arena, uint64_t size, uint32_t &bits) {
  if (!is_power_of_two(size)) {
    arena.fail(Fault::kUnsupported, "a size of " + std::to_string(size) + " is not a power of two");
    return false;
  }
  bits = lowest_bit(size);
  return true;
}

}  // namespace

const Layout *not_larger(Arena &arena, const Layout &layout, std::span<const DimSize> shape, bool keeps_registers) {
  const Layout *result = &layout;
  for (const Dim &out : layout.outs()) {
    const DimSize *const wanted = size_in(shape, out.name);
    if (wanted == nullptr) return no_dim(arena, layout.outs(), out.name);
    if (out.bits <= wanted->bits) continue;
    result = resize_out(arena, *result, out.name, wanted->bits, Resize::kZero);
    if (result == nullptr) return nullptr;
  }
  if (keeps_registers || result->find_in(dim::kRegister) == nullptr) return result;
  // Only what became zero here goes; what was a broadcast before stays.
  const Dim &registers = *layout.find_in(dim::kRegister);
  Dim next[kMaxDims];
  std::copy(result->ins().begin(), result->ins().end(), next);
  uint32_t dropped = 0;
  uint64_t columns[kMaxBits];
  uint32_t count = 0;
  for (const Dim &in : result->ins()) {
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      const uint64_t value = result->columns_of(in)[bit];
      const bool became_zero = in.name == dim::kRegister && value == 0 && layout.columns_of(registers)[bit] != 0;
      dropped += became_zero ? 1 : 0;
      if (!became_zero) columns[count++] = value;
    }
  }
  next[result->find_in(dim::kRegister) - result->ins().data()].bits = static_cast<uint8_t>(registers.bits - dropped);
  Layout *const smaller = Layout::make(arena, {next, result->ins().size()}, result->outs());
  if (smaller == nullptr) return nullptr;
  std::copy(columns, columns + count, smaller->mutable_columns());
  smaller->set_offset(result->offset());
  return smaller;
}

const Layout *not_smaller(Arena &arena, const Layout &layout, std::span<const DimSize> shape) {
  if (shape.empty()) return &layout;
  if (layout.ins().empty()) {
    arena.fail(Fault::kInvalid, "the layout has no in dim that could hold repetitions");
    return nullptr;
  }
  const Layout *result = &layout;
  for (const Dim &out : layout.outs()) {
    const DimSize *const wanted = size_in(shape, out.name);
    if (wanted == nullptr) return no_dim(arena, layout.outs(), out.name);
    if (out.bits >= wanted->bits) continue;
    if (wanted->bits - out.bits >= kMaxBits) {
      arena.fail(Fault::kUnsupported, "a repetition of 64 bits is too large");
      return nullptr;
    }
    const Layout *const repeated =
        make_identity(arena, uint64_t{1} << (wanted->bits - out.bits), layout.ins()[0].name, out.name);
    if (repeated == nullptr) return nullptr;
    result = product(arena, *result, *repeated);
    if (result == nullptr) return nullptr;
  }
  return result;
}

const Layout *identity_nd(Arena &arena, DimName in, std::span<const uint64_t> shape, std::span<const uint32_t> order) {
  if (order.size() != shape.size() || shape.size() > dim::kNumbered) {
    arena.fail(Fault::kInvalid, "the order names " + std::to_string(order.size()) + " dims, the shape has " +
                                    std::to_string(shape.size()) + "; at most 32 are supported");
    return nullptr;
  }
  const Layout *result = make_empty(arena);
  for (const uint32_t index : order) {
    uint32_t bits = 0;
    if (index >= shape.size()) {
      arena.fail(Fault::kInvalid,
                 "the order names dim " + std::to_string(index) + " of " + std::to_string(shape.size()));
      return nullptr;
    }
    if (result == nullptr || !log2_exact(arena, shape[index], bits)) return nullptr;
    const Layout *const one = make_identity(arena, shape[index], in, standard_dim(index));
    if (one == nullptr) return nullptr;
    result = product(arena, *result, *one);
  }
  return result;
}

const Layout *reshape_tensor(Arena &arena, const Layout &layout, std::span<const uint64_t> shape) {
  if (shape.size() > dim::kNumbered) {
    arena.fail(Fault::kUnsupported, "a tensor has at most 32 dims");
    return nullptr;
  }
  // Row-major: the last dim is lowest.
  std::vector<DimName> reversed;
  for (size_t i = layout.outs().size(); i-- > 0;) reversed.push_back(layout.outs()[i].name);
  const Layout *result = transpose(arena, layout, Side::kOut, reversed);
  std::vector<DimSize> sizes;
  for (size_t i = shape.size(); i-- > 0;) {
    uint32_t bits = 0;
    if (!log2_exact(arena, shape[i], bits)) return nullptr;
    sizes.push_back({standard_dim(static_cast<uint32_t>(i)), bits});
  }
  if (result != nullptr) result = reshape(arena, *result, Side::kOut, sizes);
  std::vector<DimName> order;
  for (uint32_t i = 0; i < shape.size(); ++i) order.push_back(standard_dim(i));
  return result == nullptr ? nullptr : transpose(arena, *result, Side::kOut, order);
}

const Layout *transpose_tensor(Arena &arena, const Layout &layout, std::span<const uint32_t> order) {
  if (order.size() != layout.outs().size() || order.size() > dim::kNumbered) {
    arena.fail(Fault::kInvalid, "transpose: the order names " + std::to_string(order.size()) + " dims of " +
                                    std::to_string(layout.outs().size()));
    return nullptr;
  }
  std::vector<DimName> names;
  std::vector<Renaming> renamings;
  for (uint32_t i = 0; i < order.size(); ++i) {
    names.push_back(standard_dim(std::min(order[i], dim::kNumbered - 1)));
    renamings.push_back({names.back(), standard_dim(i)});
  }
  const Layout *const moved = transpose(arena, layout, Side::kOut, names);
  return moved == nullptr ? nullptr : rename(arena, *moved, Side::kOut, renamings);
}

const Layout *remove_tensor_dim(Arena &arena, const Layout &layout, uint32_t index) {
  const DimName name = standard_dim(std::min(index, dim::kNumbered - 1));
  if (layout.find_out(name) == nullptr) return no_dim(arena, layout.outs(), name);
  std::vector<DimName> ins;
  std::vector<DimName> outs;
  std::vector<Renaming> renamings;
  for (const Dim &in : layout.ins()) ins.push_back(in.name);
  for (const Dim &out : layout.outs()) {
    if (out.name == name) continue;
    outs.push_back(out.name);
    if (out.name > name) renamings.push_back({out.name, out.name - 1});
  }
  const Layout *const rest = sublayout(arena, layout, ins, outs);
  return rest == nullptr ? nullptr : rename(arena, *rest, Side::kOut, renamings);
}

const Layout *zeros_like(Arena &arena, const Layout &layout) {
  Layout *const result = Layout::make(arena, layout.ins(), layout.outs());
  if (result != nullptr) std::fill_n(result->mutable_columns(), layout.in_bits(), uint64_t{0});
  return result;
}

}  // namespace sonde::layout
