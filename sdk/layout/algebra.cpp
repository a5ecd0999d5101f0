#include "layout/algebra.h"

#include <algorithm>

#include "layout/matrix.h"

namespace sonde::layout {
namespace {

std::string name_of(DimName name) { return std::string(dim_text(name)); }

bool has(std::span<const DimName> list, DimName name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// A list of names without the heap; a side has at most 64.
struct Names {
  DimName items[2 * kMaxDims];
  size_t count = 0;
  void add(DimName name) { items[count++] = name; }
  std::span<const DimName> all() const { return {items, count}; }
};

bool common_order(Arena &arena, std::span<const DimName> a, std::span<const DimName> b, Names &out) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() || j < b.size()) {
    while (i < a.size() && !has(b, a[i])) out.add(a[i++]);
    while (j < b.size() && !has(a, b[j])) out.add(b[j++]);
    if (i == a.size() && j == b.size()) break;
    // Both stand at a name that the other has too: it must be the same.
    if (i == a.size() || j == b.size() || a[i] != b[j]) {
      const std::string first = i < a.size() ? name_of(a[i]) : name_of(b[j]);
      arena.fail(Fault::kInvalid, "the two sides order their common dims differently (at " + first + ")");
      return false;
    }
    out.add(a[i++]);
    ++j;
  }
  return true;
}

Names names_of(std::span<const Dim> side) {
  Names names;
  for (const Dim &dim : side) names.add(dim.name);
  return names;
}

bool same_side(std::span<const Dim> a, std::span<const Dim> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Dim &x, const Dim &y) { return x.name == y.name && x.bits == y.bits; });
}

// How the bits of one side lie in another that has the same dims in another order or size.
struct BitMove {
  struct Piece {
    uint64_t mask;  // after the shift right
    uint8_t from;
    uint8_t to;
  };
  Piece pieces[kMaxDims];
  uint32_t count = 0;
  bool is_identity = true;

  void add(const Dim &from, const Dim &to, uint32_t bits) {
    if (bits == 0) return;
    pieces[count++] = {low_mask(bits), from.shift, to.shift};
    is_identity = is_identity && from.shift == to.shift;
  }
  uint64_t operator()(uint64_t value) const {
    if (is_identity) return value;
    uint64_t moved = 0;
    for (uint32_t i = 0; i < count; ++i) moved |= (value >> pieces[i].from & pieces[i].mask) << pieces[i].to;
    return moved;
  }
};

// From the out side of a layout to the side `to`: the same set of dims, none larger than there.
bool match_dims(Arena &arena, std::span<const Dim> from, std::span<const Dim> to, const char *what, BitMove &move) {
  bool fits = from.size() == to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    const Dim *other = &to[i];
    if (other->name != from[i].name) {
      other = nullptr;
      for (const Dim &dim : to) {
        if (dim.name == from[i].name) other = &dim;
      }
    }
    fits = other != nullptr && from[i].bits <= other->bits;
    if (fits) move.add(from[i], *other, from[i].bits);
  }
  if (fits) return true;
  arena.fail(Fault::kInvalid, std::string(what) + ": " + describe(from) + " does not fit into " + describe(to) +
                                  "; the same dims are needed, none larger");
  return false;
}

// Extends the result's dims by those named, with `bits` summed over both sides of a product.
uint32_t bits_of(std::span<const Dim> side, DimName name) {
  for (const Dim &dim : side) {
    if (dim.name == name) return dim.bits;
  }
  return 0;
}

}  // namespace

bool supremum(Arena &arena, std::span<const DimName> a, std::span<const DimName> b, std::vector<DimName> &out) {
  if (a.size() > kMaxDims || b.size() > kMaxDims) {
    arena.fail(Fault::kUnsupported, "more than 64 dims");
    return false;
  }
  Names names;
  if (!common_order(arena, a, b, names)) return false;
  out.assign(names.all().begin(), names.all().end());
  return true;
}

const Layout *product(Arena &arena, const Layout &inner, const Layout &outer) {
  Names ins;
  Names outs;
  if (!common_order(arena, names_of(inner.ins()).all(), names_of(outer.ins()).all(), ins)) return nullptr;
  if (!common_order(arena, names_of(inner.outs()).all(), names_of(outer.outs()).all(), outs)) return nullptr;
  const uint32_t in_bits = inner.in_bits() + outer.in_bits();
  const uint32_t out_bits = inner.out_bits() + outer.out_bits();
  if (in_bits > kMaxBits || out_bits > kMaxBits || ins.count > kMaxDims || outs.count > kMaxDims) {
    arena.fail(Fault::kUnsupported, "the product has " + std::to_string(in_bits) + " in bits and " +
                                        std::to_string(out_bits) + " out bits; at most 64 are supported");
    return nullptr;
  }
  Layout *const result =
      Layout::make(arena, static_cast<uint32_t>(ins.count), static_cast<uint32_t>(outs.count), in_bits);
  if (result == nullptr) return nullptr;
  const auto set_dims = [](Dim *dims, const Names &names, std::span<const Dim> a, std::span<const Dim> b) {
    for (const DimName name : names.all()) {
      *dims++ = {name, static_cast<uint8_t>(bits_of(a, name) + bits_of(b, name)), 0, 0};
    }
  };
  set_dims(result->mutable_ins(), ins, inner.ins(), outer.ins());
  set_dims(result->mutable_outs(), outs, inner.outs(), outer.outs());
  if (!result->place_dims(arena)) return nullptr;

  BitMove of_inner;
  BitMove of_outer;
  for (const Dim &out : inner.outs()) of_inner.add(out, *result->find_out(out.name), out.bits);
  for (const Dim &out : outer.outs()) {
    Dim target = *result->find_out(out.name);
    target.shift = static_cast<uint8_t>(target.shift + bits_of(inner.outs(), out.name));
    of_outer.add(out, target, out.bits);
  }
  uint64_t *column = result->mutable_columns();
  for (const Dim &in : result->ins()) {
    if (const Dim *const own = inner.find_in(in.name)) {
      for (const uint64_t value : inner.columns_of(*own)) *column++ = of_inner(value);
    }
    if (const Dim *const own = outer.find_in(in.name)) {
      for (const uint64_t value : outer.columns_of(*own)) *column++ = of_outer(value);
    }
  }
  result->set_offset(of_inner(inner.offset()) | of_outer(outer.offset()));
  return result;
}

namespace {

const Layout *no_quotient(Arena &arena, const Arena::Mark &mark) {
  arena.release(mark);
  arena.fail(Fault::kNoSolution, "the layout is not such a product");  // a literal: misses are common
  return nullptr;
}

// Both divisions: `low` is the factor below (the divisor of a left division), `high` the one above; one of them is the
// divisor, whose columns must be met, and the other is the quotient, whose columns are read off.
const Layout *divide(Arena &arena, const Layout &a, const Layout &divisor, bool left) {
  const Arena::Mark mark = arena.mark();
  const auto fits = [](std::span<const Dim> side, std::span<const Dim> own) {
    return std::all_of(side.begin(), side.end(), [own](const Dim &dim) {
      return std::any_of(own.begin(), own.end(),
                         [&dim](const Dim &other) { return other.name == dim.name && other.bits >= dim.bits; });
    });
  };
  if (!fits(divisor.ins(), a.ins()) || !fits(divisor.outs(), a.outs())) return no_quotient(arena, mark);

  Layout *const result = Layout::make(arena, static_cast<uint32_t>(a.ins().size()),
                                      static_cast<uint32_t>(a.outs().size()), a.in_bits() - divisor.in_bits());
  if (result == nullptr) return nullptr;
  for (size_t i = 0; i < a.ins().size(); ++i) {
    const Dim &in = a.ins()[i];
    result->mutable_ins()[i] = {in.name, static_cast<uint8_t>(in.bits - bits_of(divisor.ins(), in.name)), 0, 0};
  }
  for (size_t i = 0; i < a.outs().size(); ++i) {
    const Dim &out = a.outs()[i];
    result->mutable_outs()[i] = {out.name, static_cast<uint8_t>(out.bits - bits_of(divisor.outs(), out.name)), 0, 0};
  }
  if (!result->place_dims(arena)) return nullptr;

  // Where each factor's bits lie in a's columns.
  BitMove of_quotient;  // from a to the quotient
  BitMove to_a;         // from the divisor to a
  uint64_t quotient_bits = 0;
  for (size_t i = 0; i < a.outs().size(); ++i) {
    const Dim &out = a.outs()[i];
    const uint32_t divided = bits_of(divisor.outs(), out.name);
    const uint32_t left_over = out.bits - divided;
    Dim source = out;
    source.shift = static_cast<uint8_t>(out.shift + (left ? divided : 0));
    source.bits = static_cast<uint8_t>(left_over);
    if (left_over != 0) quotient_bits |= source.mask();
    of_quotient.add(source, result->outs()[i], left_over);
    if (const Dim *const own = divisor.find_out(out.name)) {
      Dim target = out;
      target.shift = static_cast<uint8_t>(out.shift + (left ? 0 : left_over));
      to_a.add(*own, target, own->bits);
    }
  }
  of_quotient.is_identity = false;  // it also selects
  to_a.is_identity = false;

  uint64_t *column = result->mutable_columns();
  for (const Dim &in : a.ins()) {
    const Dim *const own = divisor.find_in(in.name);
    const uint32_t divided = own == nullptr ? 0 : own->bits;
    const uint32_t first = left ? 0 : in.bits - divided;  // of the divisor's part
    const auto columns = a.columns_of(in);
    for (uint32_t i = 0; i < in.bits; ++i) {
      if (i >= first && i < first + divided) {
        if (columns[i] != to_a(divisor.columns_of(*own)[i - first])) return no_quotient(arena, mark);
      } else {
        if ((columns[i] & ~quotient_bits) != 0) return no_quotient(arena, mark);
        *column++ = of_quotient(columns[i]);
      }
    }
  }
  if ((a.offset() & ~quotient_bits) != to_a(divisor.offset())) return no_quotient(arena, mark);
  result->set_offset(of_quotient(a.offset()));
  return result;
}

}  // namespace

const Layout *divide_left(Arena &arena, const Layout &a, const Layout &divisor) {
  return divide(arena, a, divisor, true);
}

const Layout *divide_right(Arena &arena, const Layout &a, const Layout &divisor) {
  return divide(arena, a, divisor, false);
}

const Layout *compose(Arena &arena, const Layout &inner, const Layout &outer) {
  BitMove move;
  if (!match_dims(arena, inner.outs(), outer.ins(), "compose", move)) return nullptr;
  Layout *const result = Layout::make(arena, inner.ins(), outer.outs());
  if (result == nullptr) return nullptr;
  const uint64_t *const outer_columns = outer.columns().data();
  const auto apply = [outer_columns](uint64_t value) {
    uint64_t sum = 0;
    for (; value != 0; value &= value - 1) sum ^= outer_columns[lowest_bit(value)];
    return sum;
  };
  uint64_t *column = result->mutable_columns();
  for (const uint64_t value : inner.columns()) *column++ = apply(move(value));
  result->set_offset(apply(move(inner.offset())) ^ outer.offset());
  return result;
}

namespace {

// What the inversions share. With `keep_identical`, dims that have the same columns on both sides map to themselves; the
// rest of `layout` is solved over the rest of `outer`, or over all of it where the rest does not suffice.
const Layout *solve_over(Arena &arena, const Layout &layout, const Layout &outer, bool keep_identical) {
  BitMove move;
  if (!match_dims(arena, layout.outs(), outer.outs(), "least solution", move)) return nullptr;
  Layout *const result = Layout::make(arena, layout.ins(), outer.ins());
  if (result == nullptr) return nullptr;

  uint64_t *const column = result->mutable_columns();
  for (uint32_t i = 0; i < layout.in_bits(); ++i) column[i] = move(layout.columns()[i]);
  uint64_t kept_in_layout = 0;
  uint64_t kept_in_outer = 0;
  if (keep_identical) {
    for (const Dim &in : layout.ins()) {
      const Dim *const other = outer.find_in(in.name);
      if (other == nullptr || other->bits != in.bits || in.bits == 0) continue;
      if (!std::equal(column + in.shift, column + in.shift + in.bits, outer.columns_of(*other).begin())) continue;
      kept_in_layout |= in.mask();
      kept_in_outer |= other->mask();
      for (uint32_t i = 0; i < in.bits; ++i) column[in.shift + i] = uint64_t{1} << (other->shift + i);
    }
  }
  Elimination elimination;
  for (uint64_t rest = ~kept_in_outer & low_mask(outer.in_bits()); rest != 0; rest &= rest - 1) {
    const uint32_t bit = lowest_bit(rest);
    elimination.add(outer.columns()[bit], bit);
  }
  const uint64_t open = ~kept_in_layout & low_mask(layout.in_bits());
  const auto solve_all = [&](const Elimination &over) {
    uint64_t solved[kMaxBits];
    for (uint64_t rest = open; rest != 0; rest &= rest - 1) {
      const uint32_t bit = lowest_bit(rest);
      if (!over.solve(column[bit], solved[bit])) return false;
    }
    uint64_t offset = 0;
    if (!over.solve(move(layout.offset()) ^ outer.offset(), offset)) return false;
    for (uint64_t rest = open; rest != 0; rest &= rest - 1) column[lowest_bit(rest)] = solved[lowest_bit(rest)];
    result->set_offset(offset);
    return true;
  };
  if (solve_all(elimination)) return result;
  if (kept_in_outer != 0) {
    Elimination whole;
    for (uint32_t bit = 0; bit < outer.in_bits(); ++bit) whole.add(outer.columns()[bit], bit);
    if (solve_all(whole)) return result;
  }
  arena.fail(Fault::kNoSolution, "the inner layout reaches values that the outer one does not");
  return nullptr;
}

}  // namespace

const Layout *least_solution(Arena &arena, const Layout &a, const Layout &b) { return solve_over(arena, b, a, false); }

const Layout *invert_and_compose(Arena &arena, const Layout &layout, const Layout &outer) {
  return solve_over(arena, layout, outer, true);
}

const Layout *invert_and_compose_block_local(Arena &arena, const Layout &layout, const Layout &memory) {
  const Layout *const solved = invert_and_compose(arena, layout, memory);
  if (solved == nullptr) return nullptr;
  const Dim *const in = solved->find_in(dim::kBlock);
  const Dim *const out = solved->find_out(dim::kBlock);
  const Dim *const own = memory.find_in(dim::kBlock);
  if (in == nullptr || out == nullptr || own == nullptr) return solved;
  Layout *const result = const_cast<Layout *>(copy_layout(arena, *solved));
  if (result == nullptr) return nullptr;
  for (uint32_t bit = 0; bit < own->bits; ++bit) {
    if (memory.columns_of(*own)[bit] != 0) continue;
    const uint64_t unit = out->at(uint64_t{1} << bit);
    for (uint32_t i = 0; i < result->in_bits(); ++i) {
      const bool is_same_bit = bit < in->bits && i == in->shift + bit;
      uint64_t &column = result->mutable_columns()[i];
      column = is_same_bit ? column | unit : column & ~unit;
    }
  }
  return result;
}

namespace {

// The smallest right inverse, over columns that are independent in order.
const Layout *right_inverse(Arena &arena, const Layout &layout, const char *what) {
  Layout *const result = Layout::make(arena, layout.outs(), layout.ins());
  if (result == nullptr) return nullptr;
  Elimination elimination;
  uint32_t rank = 0;
  for (uint32_t bit = 0; bit < layout.in_bits() && rank < layout.out_bits(); ++bit) {
    rank += elimination.add(layout.columns()[bit], bit) ? 1 : 0;
  }
  if (rank < layout.out_bits()) {
    arena.fail(Fault::kNoSolution, std::string(what) + ": the layout reaches 2^" + std::to_string(rank) + " of its 2^" +
                                       std::to_string(layout.out_bits()) + " values");
    return nullptr;
  }
  for (uint32_t bit = 0; bit < layout.out_bits(); ++bit) {
    elimination.solve(uint64_t{1} << bit, result->mutable_columns()[bit]);
  }
  uint64_t offset = 0;
  elimination.solve(layout.offset(), offset);
  result->set_offset(offset);
  return result;
}

}  // namespace

const Layout *pseudoinvert(Arena &arena, const Layout &layout) {
  // A dim with one name on both sides that is the identity stays so by the rule of invert_and_compose.
  for (const Dim &in : layout.ins()) {
    if (layout.find_out(in.name) == nullptr) continue;
    std::vector<DimSize> outs;
    for (const Dim &out : layout.outs()) outs.push_back({out.name, out.bits});
    std::vector<uint64_t> units(layout.out_bits());
    for (uint32_t bit = 0; bit < layout.out_bits(); ++bit) units[bit] = uint64_t{1} << bit;
    const Layout *const identity = make_layout(arena, outs, outs, units);
    return identity == nullptr ? nullptr : invert_and_compose(arena, *identity, layout);
  }
  return right_inverse(arena, layout, "pseudoinvert");
}

const Layout *invert(Arena &arena, const Layout &layout) {
  if (layout.in_bits() != layout.out_bits()) {
    arena.fail(Fault::kNoSolution, "invert: the layout maps " + std::to_string(layout.in_bits()) + " bits to " +
                                       std::to_string(layout.out_bits()));
    return nullptr;
  }
  return right_inverse(arena, layout, "invert");
}

const Layout *concat_ins(Arena &arena, const Layout &a, const Layout &b) {
  if (!same_side(a.outs(), b.outs())) {
    arena.fail(Fault::kInvalid,
               "concat: the out dims " + describe(a.outs()) + " and " + describe(b.outs()) + " differ");
    return nullptr;
  }
  if (b.offset() != 0) {
    arena.fail(Fault::kInvalid, "concat: the second layout has an offset");
    return nullptr;
  }
  std::vector<DimSize> ins;
  std::vector<DimSize> outs;
  for (const Dim &in : a.ins()) ins.push_back({in.name, in.bits});
  for (const Dim &in : b.ins()) ins.push_back({in.name, in.bits});
  for (const Dim &out : a.outs()) outs.push_back({out.name, out.bits});
  std::vector<uint64_t> columns(a.columns().begin(), a.columns().end());
  columns.insert(columns.end(), b.columns().begin(), b.columns().end());
  return make_layout(arena, ins, outs, columns, a.offset());
}

const Layout *concat_outs(Arena &arena, const Layout &a, const Layout &b) {
  if (!same_side(a.ins(), b.ins())) {
    arena.fail(Fault::kInvalid, "concat: the in dims " + describe(a.ins()) + " and " + describe(b.ins()) + " differ");
    return nullptr;
  }
  if (a.out_bits() + b.out_bits() > kMaxBits) {
    arena.fail(Fault::kUnsupported, "concat: more than 64 out bits");
    return nullptr;
  }
  std::vector<DimSize> ins;
  std::vector<DimSize> outs;
  for (const Dim &in : a.ins()) ins.push_back({in.name, in.bits});
  for (const Dim &out : a.outs()) outs.push_back({out.name, out.bits});
  for (const Dim &out : b.outs()) outs.push_back({out.name, out.bits});
  std::vector<uint64_t> columns(a.in_bits());
  for (uint32_t i = 0; i < a.in_bits(); ++i) columns[i] = a.columns()[i] | place(b.columns()[i], a.out_bits());
  return make_layout(arena, ins, outs, columns, a.offset() | place(b.offset(), a.out_bits()));
}

const Layout *sum(Arena &arena, const Layout &a, const Layout &b) {
  if (!same_side(a.ins(), b.ins()) || !same_side(a.outs(), b.outs())) {
    arena.fail(Fault::kInvalid, "sum: the layouts have different dims");
    return nullptr;
  }
  auto *const result = const_cast<Layout *>(copy_layout(arena, a));
  if (result == nullptr) return nullptr;
  for (uint32_t i = 0; i < a.in_bits(); ++i) result->mutable_columns()[i] ^= b.columns()[i];
  result->set_offset(a.offset() ^ b.offset());
  return result;
}

namespace {

const Layout *subspace(Arena &arena, std::span<const uint64_t> vectors, std::span<const Dim> side) {
  static const DimName basis = intern_dim("basis");
  const DimSize in{basis, static_cast<uint32_t>(vectors.size())};
  std::vector<DimSize> outs;
  for (const Dim &dim : side) outs.push_back({dim.name, dim.bits});
  return make_layout(arena, {&in, 1}, outs, vectors);
}

bool check_images(Arena &arena, const Layout &a, const Layout &b) {
  if (same_side(a.outs(), b.outs())) return true;
  arena.fail(Fault::kInvalid, "the out dims " + describe(a.outs()) + " and " + describe(b.outs()) + " differ");
  return false;
}

}  // namespace

const Layout *kernel(Arena &arena, const Layout &layout) {
  uint64_t vectors[kMaxBits];
  const uint32_t count = kernel_basis(layout.columns(), vectors);
  return subspace(arena, {vectors, count}, layout.ins());
}

const Layout *image(Arena &arena, const Layout &layout) {
  uint64_t vectors[kMaxBits];
  const uint32_t count = image_basis(layout.columns(), vectors);
  return subspace(arena, {vectors, count}, layout.outs());
}

const Layout *cokernel(Arena &arena, const Layout &layout) {
  uint64_t vectors[kMaxBits];
  const uint32_t count = annihilator_basis(layout.columns(), layout.out_bits(), vectors);
  uint64_t columns[kMaxBits];
  transpose({vectors, count}, layout.out_bits(), columns);
  static const DimName basis = intern_dim("basis");
  const DimSize out{basis, count};
  std::vector<DimSize> ins;
  for (const Dim &dim : layout.outs()) ins.push_back({dim.name, dim.bits});
  return make_layout(arena, ins, {&out, 1}, {columns, layout.out_bits()});
}

const Layout *intersect_images(Arena &arena, const Layout &a, const Layout &b) {
  if (!check_images(arena, a, b)) return nullptr;
  uint64_t vectors[kMaxBits];
  const uint32_t count = intersection_basis(a.columns(), b.columns(), vectors);
  return subspace(arena, {vectors, count}, a.outs());
}

const Layout *sum_of_images(Arena &arena, const Layout &a, const Layout &b) {
  if (!check_images(arena, a, b)) return nullptr;
  std::vector<uint64_t> all(a.columns().begin(), a.columns().end());
  all.insert(all.end(), b.columns().begin(), b.columns().end());
  uint64_t vectors[kMaxBits];
  const uint32_t count = image_basis(all, vectors);
  return subspace(arena, {vectors, count}, a.outs());
}

}  // namespace sonde::layout
