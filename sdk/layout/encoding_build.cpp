#include "layout/encoding_build.h"

#include <algorithm>

namespace sonde::layout::build {

DimList standard_dims(uint32_t rank) {
  DimList dims;
  for (uint32_t i = 0; i < rank; ++i) dims.add(standard_dim(i));
  return dims;
}

DimList row_order(uint32_t rank) {
  DimList dims;
  for (uint32_t i = rank; i-- > 0;) dims.add(standard_dim(i));
  return dims;
}

DimList column_order(uint32_t rank) {
  DimList dims = row_order(rank);
  if (rank >= 2) std::swap(dims.names[0], dims.names[1]);
  return dims;
}

DimList operand_order(uint32_t operand_index, uint32_t rank) {
  return operand_index == 0 ? row_order(rank) : column_order(rank);
}

SizeList named_sizes(Shape shape) {
  SizeList list;
  for (uint32_t i = 0; i < shape.size(); ++i) list.sizes[list.count++] = {standard_dim(i), lowest_bit(shape[i])};
  return list;
}

std::string text_of(std::span<const uint64_t> values) {
  std::string text = "[";
  for (const uint64_t value : values) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(value);
  }
  return text + "]";
}

bool check_power(Arena &arena, const char *name, uint64_t value) {
  if (is_power_of_two(value)) return true;
  invalid(arena, std::string(name) + " must be a power of two, not " + std::to_string(value));
  return false;
}

bool check_sizes(Arena &arena, const char *name, std::span<const uint64_t> values, uint32_t rank) {
  if (values.size() != rank) {
    invalid(arena, std::string(name) + " = " + text_of(values) + " needs a value for each of the " +
                       std::to_string(rank) + " dims");
    return false;
  }
  return std::all_of(values.begin(), values.end(), [&](uint64_t value) { return check_power(arena, name, value); });
}

bool check_order(Arena &arena, const char *name, std::span<const uint32_t> order, uint32_t rank) {
  uint64_t seen = 0;
  for (const uint32_t index : order) {
    if (index < rank) seen |= uint64_t{1} << index;
  }
  if (order.size() == rank && seen == low_mask(rank)) return true;
  const std::vector<uint64_t> values(order.begin(), order.end());
  invalid(arena, std::string(name) + " = " + text_of(values) + " must name each of the " + std::to_string(rank) +
                     " dims once");
  return false;
}

const Layout *from_bases(Arena &arena, std::span<const InBases> ins, uint32_t rank, const char *what) {
  DimSize in_sizes[4];
  DimSize out_sizes[kMaxRank];
  uint64_t columns[kMaxBits];
  uint32_t in_count = 0;
  uint32_t in_bits = 0;
  for (uint32_t i = 0; i < rank; ++i) out_sizes[i] = {standard_dim(i), 0};
  for (const InBases &in : ins) {
    in_sizes[in_count++] = {in.in, static_cast<uint32_t>(in.rows->size())};
    for (const auto &row : *in.rows) {
      if (row.size() != rank) {
        return invalid(arena, std::string(what) + ": basis " + text_of(row) + " of " + std::string(dim_text(in.in)) +
                                  " needs a value for each of the " + std::to_string(rank) + " dims");
      }
      if (++in_bits > kMaxBits) return unsupported(arena, std::string(what) + ": more than 64 bases");
      for (uint32_t i = 0; i < rank; ++i) {
        out_sizes[i].bits = std::max(out_sizes[i].bits, static_cast<uint32_t>(std::bit_width(row[i])));
      }
    }
  }
  uint32_t out_bits = 0;
  for (uint32_t i = 0; i < rank; ++i) out_bits += out_sizes[i].bits;
  if (out_bits > kMaxBits) return unsupported(arena, std::string(what) + ": the bases reach past 64 bits");
  uint32_t bit = 0;
  for (const InBases &in : ins) {
    for (const auto &row : *in.rows) {
      uint64_t column = 0;
      uint32_t shift = 0;
      for (uint32_t i = 0; i < rank; ++i) {
        column |= place(row[i], shift);
        shift += out_sizes[i].bits;
      }
      columns[bit++] = column;
    }
  }
  const Layout *const layout = make_layout(arena, {in_sizes, in_count}, {out_sizes, rank}, {columns, in_bits});
  if (layout != nullptr && !is_surjective(*layout)) {
    return invalid(arena, std::string(what) + ": the bases do not reach every element of the dims that they imply, " +
                              describe(layout->outs()));
  }
  return layout;
}

Chain &Chain::identity(uint64_t size, DimName in, DimName out) {
  return layout_ == nullptr ? *this : times(make_identity(arena_, size, in, out));
}

Chain &Chain::zeros(uint64_t size, DimName in, DimName out) {
  return layout_ == nullptr ? *this : times(make_zeros(arena_, size, in, out));
}

Chain &Chain::times(const Layout *next) {
  if (layout_ == nullptr || next == nullptr) {
    layout_ = nullptr;
    return *this;
  }
  DimName order[kMaxDims];
  uint32_t count = 0;
  for (const Dim &out : layout_->outs()) {
    if (next->find_out(out.name) != nullptr) order[count++] = out.name;
  }
  // Only where the common dims lie in another order, so that dims that are new keep their place among them.
  uint32_t place_in_order = 0;
  bool agrees = true;
  for (const Dim &out : next->outs()) {
    if (layout_->find_out(out.name) == nullptr) continue;
    agrees = agrees && order[place_in_order] == out.name;
    ++place_in_order;
  }
  if (!agrees) {
    for (const Dim &out : next->outs()) {
      if (layout_->find_out(out.name) == nullptr) order[count++] = out.name;
    }
    next = transpose(arena_, *next, Side::kOut, {order, count});
  }
  layout_ = next == nullptr ? nullptr : product(arena_, *layout_, *next);
  return *this;
}

Chain &Chain::nd(DimName in, Shape sizes, std::span<const DimName> order, DimName zero_dim) {
  Chain factor(arena_);
  for (const DimName name : order) {
    const uint64_t size = sizes[name - dim::kFirst];
    if (name == zero_dim) {
      factor.zeros(size, in, name);
    } else {
      factor.identity(size, in, name);
    }
  }
  return times(factor.layout());
}

Chain &Chain::order_outs(std::span<const DimName> order) {
  if (layout_ != nullptr) layout_ = transpose(arena_, *layout_, Side::kOut, order);
  return *this;
}

const Layout *combine(Arena &arena, const Layout *cta, const Layout *cga, Shape shape) {
  if (cta == nullptr || cga == nullptr) return nullptr;
  SizeList sizes = named_sizes(shape);
  cga = not_larger(arena, *cga, sizes);
  if (cga == nullptr) return nullptr;
  for (uint32_t i = 0; i < sizes.count; ++i) sizes.sizes[i].bits -= cga->find_out(sizes.sizes[i].name)->bits;
  cta = not_smaller(arena, *cta, sizes);
  if (cta != nullptr) cta = not_larger(arena, *cta, sizes);
  return Chain(arena).times(cta).times(cga).order_outs(standard_dims(sizes.count)).layout();
}

}  // namespace sonde::layout::build
