#include "layout/actions.h"

#include <algorithm>

#include "layout/algebra.h"
#include "layout/shapes.h"

namespace sonde::layout {

bool ColumnAction::is_identity() const {
  for (uint32_t i = 0; i < permutation_.size(); ++i) {
    if (permutation_[i] != i) return false;
  }
  return permutation_.size() == bits_;
}

const Layout *ColumnAction::apply(Arena &arena, const Layout &layout) const {
  const Dim *const in = layout.find_in(in_);
  const auto fits = [&](uint32_t bit) { return bit < bits_; };
  if (in == nullptr || in->bits != bits_ || !std::all_of(permutation_.begin(), permutation_.end(), fits)) {
    arena.fail(Fault::kInvalid, "an action on the " + std::to_string(bits_) + " bits of " + std::string(dim_text(in_)) +
                                    " does not fit " + describe(layout.ins()));
    return nullptr;
  }
  const auto kept = static_cast<uint32_t>(permutation_.size());
  Layout *const result = Layout::make(arena, static_cast<uint32_t>(layout.ins().size()),
                                      static_cast<uint32_t>(layout.outs().size()), layout.in_bits() - in->bits + kept);
  if (result == nullptr) return nullptr;
  std::copy(layout.ins().begin(), layout.ins().end(), result->mutable_ins());
  result->mutable_ins()[in - layout.ins().data()].bits = static_cast<uint8_t>(kept);
  std::copy(layout.outs().begin(), layout.outs().end(), result->mutable_outs());
  if (!result->place_dims(arena)) return nullptr;
  uint64_t *column = result->mutable_columns();
  for (const Dim &dim : layout.ins()) {
    const auto own = layout.columns_of(dim);
    if (dim.name == in_) {
      for (const uint32_t bit : permutation_) *column++ = own[bit];
    } else {
      for (const uint64_t value : own) *column++ = value;
    }
  }
  result->set_offset(layout.offset());
  return result;
}

uint64_t ColumnAction::source(uint64_t index) const {
  uint64_t old = 0;
  for (uint32_t i = 0; i < permutation_.size(); ++i) old |= (index >> i & 1) << permutation_[i];
  return old;
}

ColumnAction ColumnAction::after(const ColumnAction &first) const {
  std::vector<uint32_t> combined;
  for (const uint32_t bit : permutation_) combined.push_back(first.permutation_[bit]);
  return {std::move(combined), in_, first.bits_};
}

ColumnAction ColumnAction::inverse() const {
  std::vector<uint32_t> inverse(permutation_.size());
  for (uint32_t i = 0; i < permutation_.size(); ++i) inverse[permutation_[i]] = i;
  return {std::move(inverse), in_, bits_};
}

std::optional<ColumnAction> registers_for_division(const Layout &a, const Layout &b, bool left) {
  const Dim *const of_a = a.find_in(dim::kRegister);
  const Dim *const of_b = b.find_in(dim::kRegister);
  if (of_a == nullptr || of_b == nullptr || of_b->bits > of_a->bits) return std::nullopt;
  // b's values as they stand in a: low when it divides from the left, above the quotient otherwise.
  const auto in_a = [&](uint64_t value, bool &fits) {
    uint64_t moved = 0;
    for (const Dim &out : b.outs()) {
      const Dim *const target = a.find_out(out.name);
      if (target == nullptr || target->bits < out.bits) {
        fits = false;
        return moved;
      }
      moved |= place(out.of(value), target->shift + (left ? 0u : static_cast<uint32_t>(target->bits - out.bits)));
    }
    return moved;
  };
  std::vector<uint32_t> wanted;
  const auto own = a.columns_of(*of_a);
  bool fits = true;
  for (const uint64_t value : b.columns_of(*of_b)) {
    const uint64_t moved = in_a(value, fits);
    uint32_t found = of_a->bits;
    for (uint32_t bit = 0; bit < of_a->bits && fits; ++bit) {
      const bool taken = std::find(wanted.begin(), wanted.end(), bit) != wanted.end();
      if (own[bit] == moved && !taken) {
        found = bit;
        break;
      }
    }
    if (!fits || found == of_a->bits) return std::nullopt;
    wanted.push_back(found);
  }
  std::vector<uint32_t> permutation;
  if (left) permutation = wanted;
  for (uint32_t bit = 0; bit < of_a->bits; ++bit) {
    if (std::find(wanted.begin(), wanted.end(), bit) == wanted.end()) permutation.push_back(bit);
  }
  if (!left) permutation.insert(permutation.end(), wanted.begin(), wanted.end());
  return ColumnAction(std::move(permutation), dim::kRegister, of_a->bits);
}

ColumnAction drop_broadcast_registers(const Layout &layout) {
  const Dim *const in = layout.find_in(dim::kRegister);
  std::vector<uint32_t> kept;
  if (in == nullptr) return {std::move(kept), dim::kRegister, 0};
  for (uint32_t bit = 0; bit < in->bits; ++bit) {
    if (layout.columns_of(*in)[bit] != 0) kept.push_back(bit);
  }
  return {std::move(kept), dim::kRegister, in->bits};
}

AdditiveStrides additive_strides(const Layout &layout, uint64_t affine) {
  const Dim *const in = layout.find_in(dim::kRegister);
  if (in == nullptr) return {{{}, dim::kRegister, 0}, 0};
  uint64_t taken = affine | layout.offset();
  for (const Dim &other : layout.ins()) {
    if (other.name == dim::kRegister) continue;
    for (const uint64_t column : layout.columns_of(other)) taken |= column;
  }
  const auto own = layout.columns_of(*in);
  std::vector<uint32_t> front;
  std::vector<uint32_t> back;
  for (uint32_t bit = 0; bit < in->bits; ++bit) {
    (own[bit] != 0 && (own[bit] & taken) == 0 ? front : back).push_back(bit);
  }
  const auto strides = static_cast<uint32_t>(front.size());
  front.insert(front.end(), back.begin(), back.end());
  return {{std::move(front), dim::kRegister, in->bits}, strides};
}

Vectorisation largest_vectorisation(Arena &arena, const Layout &layout, uint32_t bits_per_element,
                                    uint64_t most_elements) {
  const Dim *const in = layout.find_in(dim::kRegister);
  Vectorisation none{1, {{}, dim::kRegister, in == nullptr ? 0u : in->bits}};
  if (in == nullptr || layout.outs().empty() || bits_per_element == 0) return none;
  std::vector<uint32_t> unchanged;
  for (uint32_t bit = 0; bit < in->bits; ++bit) unchanged.push_back(bit);
  none.action = {std::move(unchanged), dim::kRegister, in->bits};
  const DimName offset = layout.outs()[0].name;
  const uint64_t start = std::max<uint64_t>(1, std::min<uint64_t>(128 / bits_per_element, most_elements));
  for (uint64_t elements = std::bit_floor(start); elements > 1; elements /= 2) {
    const Layout *const tile = make_identity(arena, elements, dim::kRegister, offset);
    if (tile == nullptr) return none;
    const auto action = registers_for_division(layout, *tile, true);
    if (!action) continue;
    const Layout *const reordered = action->apply(arena, layout);
    if (reordered != nullptr && divide_left(arena, *reordered, *tile) != nullptr) return {elements, *action};
  }
  return none;
}

std::vector<uint64_t> broadcast_sources(const Layout &layout) {
  const Dim *const in = layout.find_in(dim::kRegister);
  if (in == nullptr) return {0};
  std::vector<uint64_t> sources;
  for (uint64_t index = 0; index < uint64_t{1} << in->bits; ++index) {
    uint64_t source = 0;
    uint32_t kept = 0;
    for (uint32_t bit = 0; bit < in->bits; ++bit) {
      if (layout.columns_of(*in)[bit] == 0) continue;
      source |= (index >> bit & 1) << kept++;
    }
    sources.push_back(source);
  }
  return sources;
}

const Layout *repetitions(Arena &arena, const Layout &layout, const Layout &tile) {
  const auto refuse = [&](const std::string &why) -> const Layout * {
    arena.fail(Fault::kNoSolution, "the tile does not repeat: " + why);
    return nullptr;
  };
  uint64_t tile_bits = 0;  // of the layout's values
  for (const Dim &out : tile.outs()) {
    const Dim *const own = layout.find_out(out.name);
    if (own == nullptr || own->bits < out.bits) return refuse("out dim " + std::string(dim_text(out.name)));
    tile_bits |= own->at(low_mask(out.bits));
  }
  const auto in_layout = [&](uint64_t value) {
    uint64_t moved = 0;
    for (const Dim &out : tile.outs()) moved |= layout.find_out(out.name)->at(out.of(value));
    return moved;
  };
  auto *const result = const_cast<Layout *>(copy_layout(arena, layout));
  if (result == nullptr) return nullptr;
  for (const Dim &in : tile.ins()) {
    const Dim *const own = layout.find_in(in.name);
    if (own == nullptr || own->bits < in.bits) return refuse("in dim " + std::string(dim_text(in.name)));
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      if (layout.columns_of(*own)[bit] != in_layout(tile.columns_of(in)[bit])) {
        return refuse("basis " + std::to_string(bit) + " of " + std::string(dim_text(in.name)) + " is not the tile's");
      }
      result->mutable_columns()[own->shift + bit] = 0;
    }
  }
  for (uint32_t bit = 0; bit < result->in_bits(); ++bit) {
    if ((result->columns()[bit] & tile_bits) != 0) return refuse("a repeated basis touches the tile's bits");
  }
  return result;
}

}  // namespace sonde::layout
