// Service sonde.layout_shape/1.
#include <sonde/layout_shape.h>

#include <algorithm>

#include "layout/actions.h"
#include "layout/algebra.h"
#include "layout/boundary.h"
#include "layout/queries.h"
#include "layout/service_tables.h"
#include "layout/shapes.h"

namespace sonde::layout {
namespace {

using ArenaHandle = sonde_layout_arena_t *;
using LayoutIn = const sonde_layout_t *;
using LayoutOut = const sonde_layout_t **;

// Lists as they come over the interface.
template <typename T>
struct List {
  const T *items;
  uint32_t count;

  bool is_sound() const { return (items != nullptr || count == 0) && count <= kMaxDims; }
  std::span<const T> all() const { return {items, count}; }
};

template <typename... Lists>
bool are_sound(const Lists &...lists) {
  return (lists.is_sound() && ...);
}

sonde_status refuse_list(const char *function, LayoutOut out) noexcept {
  if (out != nullptr) *out = nullptr;
  return guarded(
      [&] { return refuse(SONDE_E_INVALID, std::string(function) + ": a list is NULL or has more than 64 entries"); });
}

bool is_side(uint32_t side) { return side <= SONDE_SIDE_OUT; }
Side side_of(uint32_t side) { return side == SONDE_SIDE_IN ? Side::kIn : Side::kOut; }

sonde_status refuse_side(const char *function, LayoutOut out) noexcept {
  if (out != nullptr) *out = nullptr;
  return guarded(
      [&] { return refuse(SONDE_E_INVALID, std::string(function) + ": the side is SONDE_SIDE_IN or SONDE_SIDE_OUT"); });
}

// Sizes as dims on the stack.
struct Sizes {
  DimSize items[kMaxDims];
  uint32_t count;

  explicit Sizes(const List<sonde_layout_dim_t> &dims) : count(dims.count) {
    for (uint32_t i = 0; i < count; ++i) items[i] = {dims.items[i].name, dims.items[i].bits};
  }
  std::span<const DimSize> all() const { return {items, count}; }
};

sonde_status transpose_side(ArenaHandle arena, LayoutIn layout, uint32_t side, const sonde_dim_t *order, uint32_t count,
                            LayoutOut out) noexcept {
  const List<sonde_dim_t> list{order, count};
  if (!are_sound(list)) return refuse_list("layout_shape.transpose", out);
  if (!is_side(side)) return refuse_side("layout_shape.transpose", out);
  return make_in(
      "layout_shape.transpose", arena, out,
      [&](Arena &a, const Layout &l) { return transpose(a, l, side_of(side), list.all()); }, layout);
}

sonde_status reshape_side(ArenaHandle arena, LayoutIn layout, uint32_t side, const sonde_layout_dim_t *dims,
                          uint32_t count, LayoutOut out) noexcept {
  const List<sonde_layout_dim_t> list{dims, count};
  if (!are_sound(list)) return refuse_list("layout_shape.reshape", out);
  if (!is_side(side)) return refuse_side("layout_shape.reshape", out);
  const Sizes sizes(list);
  return make_in(
      "layout_shape.reshape", arena, out,
      [&](Arena &a, const Layout &l) { return reshape(a, l, side_of(side), sizes.all()); }, layout);
}

sonde_status flatten_side(ArenaHandle arena, LayoutIn layout, uint32_t side, LayoutOut out) noexcept {
  if (!is_side(side)) return refuse_side("layout_shape.flatten", out);
  return make_in(
      "layout_shape.flatten", arena, out, [&](Arena &a, const Layout &l) { return flatten(a, l, side_of(side)); },
      layout);
}

sonde_status squeeze_side(ArenaHandle arena, LayoutIn layout, uint32_t side, sonde_dim_t dim, LayoutOut out) noexcept {
  if (!is_side(side)) return refuse_side("layout_shape.squeeze", out);
  return make_in(
      "layout_shape.squeeze", arena, out, [&](Arena &a, const Layout &l) { return squeeze(a, l, side_of(side), dim); },
      layout);
}

sonde_status unsqueeze_side(ArenaHandle arena, LayoutIn layout, uint32_t side, sonde_dim_t dim,
                            LayoutOut out) noexcept {
  if (!is_side(side)) return refuse_side("layout_shape.unsqueeze", out);
  return make_in(
      "layout_shape.unsqueeze", arena, out,
      [&](Arena &a, const Layout &l) { return unsqueeze(a, l, side_of(side), dim); }, layout);
}

sonde_status resize_side(ArenaHandle arena, LayoutIn layout, uint32_t side, sonde_dim_t dim, uint32_t bits,
                         uint32_t how, LayoutOut out) noexcept {
  if (!is_side(side)) return refuse_side("layout_shape.resize", out);
  if (how > SONDE_RESIZE_MODULO) {
    if (out != nullptr) *out = nullptr;
    return refuse(SONDE_E_INVALID, "layout_shape.resize: `how` is SONDE_RESIZE_ZERO or SONDE_RESIZE_MODULO");
  }
  return make_in(
      "layout_shape.resize", arena, out,
      [&](Arena &a, const Layout &l) {
        return side == SONDE_SIDE_IN
                   ? resize_in(a, l, dim, bits)
                   : resize_out(a, l, dim, bits, how == SONDE_RESIZE_ZERO ? Resize::kZero : Resize::kModulo);
      },
      layout);
}

sonde_status rename_side(ArenaHandle arena, LayoutIn layout, uint32_t side, const sonde_dim_t *from,
                         const sonde_dim_t *to, uint32_t count, LayoutOut out) noexcept {
  const List<sonde_dim_t> old_names{from, count};
  const List<sonde_dim_t> new_names{to, count};
  if (!are_sound(old_names, new_names)) return refuse_list("layout_shape.rename", out);
  if (!is_side(side)) return refuse_side("layout_shape.rename", out);
  Renaming names[kMaxDims];
  for (uint32_t i = 0; i < count; ++i) names[i] = {from[i], to[i]};
  return make_in(
      "layout_shape.rename", arena, out,
      [&](Arena &a, const Layout &l) {
        return rename(a, l, side_of(side), {names, count});
      },
      layout);
}

sonde_status sublayout_of(ArenaHandle arena, LayoutIn layout, const sonde_dim_t *ins, uint32_t in_count,
                          const sonde_dim_t *outs, uint32_t out_count, LayoutOut out) noexcept {
  const List<sonde_dim_t> in_list{ins, in_count};
  const List<sonde_dim_t> out_list{outs, out_count};
  if (!are_sound(in_list, out_list)) return refuse_list("layout_shape.sublayout", out);
  return make_in(
      "layout_shape.sublayout", arena, out,
      [&](Arena &a, const Layout &l) { return sublayout(a, l, in_list.all(), out_list.all()); }, layout);
}

sonde_status quotient_of(ArenaHandle arena, LayoutIn layout, const sonde_dim_t *dims, uint32_t count,
                         LayoutOut out) noexcept {
  const List<sonde_dim_t> list{dims, count};
  if (!are_sound(list)) return refuse_list("layout_shape.quotient", out);
  return make_in(
      "layout_shape.quotient", arena, out, [&](Arena &a, const Layout &l) { return quotient(a, l, list.all()); },
      layout);
}

sonde_status remove_zeros(ArenaHandle arena, LayoutIn layout, sonde_dim_t in, LayoutOut out) noexcept {
  return make_in(
      "layout_shape.remove_zero_bases", arena, out,
      [&](Arena &a, const Layout &l) { return remove_zero_bases(a, l, in); }, layout);
}

sonde_status zeros_of(ArenaHandle arena, LayoutIn layout, LayoutOut out) noexcept {
  return make_in("layout_shape.zeros_like", arena, out, zeros_like, layout);
}

// Some results are the argument itself; what is given out lies in the caller's arena.
const Layout *in_arena(Arena &arena, const Layout *result, const Layout &argument) {
  return result == &argument ? copy_layout(arena, argument) : result;
}

sonde_status fit_larger(ArenaHandle arena, LayoutIn layout, const sonde_layout_dim_t *dims, uint32_t count,
                        uint32_t keeps_registers, LayoutOut out) noexcept {
  const List<sonde_layout_dim_t> list{dims, count};
  if (!are_sound(list)) return refuse_list("layout_shape.not_larger", out);
  const Sizes sizes(list);
  return make_in(
      "layout_shape.not_larger", arena, out,
      [&](Arena &a, const Layout &l) { return in_arena(a, not_larger(a, l, sizes.all(), keeps_registers != 0), l); },
      layout);
}

sonde_status fit_smaller(ArenaHandle arena, LayoutIn layout, const sonde_layout_dim_t *dims, uint32_t count,
                         LayoutOut out) noexcept {
  const List<sonde_layout_dim_t> list{dims, count};
  if (!are_sound(list)) return refuse_list("layout_shape.not_smaller", out);
  const Sizes sizes(list);
  return make_in(
      "layout_shape.not_smaller", arena, out,
      [&](Arena &a, const Layout &l) { return in_arena(a, not_smaller(a, l, sizes.all()), l); }, layout);
}

sonde_status identity_of_tensor(ArenaHandle arena, sonde_dim_t in, const uint64_t *shape, const uint32_t *order,
                                uint32_t rank, LayoutOut out) noexcept {
  const List<uint64_t> sizes{shape, rank};
  const List<uint32_t> dims{order, rank};
  if (!are_sound(sizes, dims)) return refuse_list("layout_shape.identity_nd", out);
  return make_in("layout_shape.identity_nd", arena, out,
                 [&](Arena &a) { return identity_nd(a, in, sizes.all(), dims.all()); });
}

sonde_status reshape_of_tensor(ArenaHandle arena, LayoutIn layout, const uint64_t *shape, uint32_t rank,
                               LayoutOut out) noexcept {
  const List<uint64_t> sizes{shape, rank};
  if (!are_sound(sizes)) return refuse_list("layout_shape.reshape_tensor", out);
  return make_in(
      "layout_shape.reshape_tensor", arena, out,
      [&](Arena &a, const Layout &l) { return reshape_tensor(a, l, sizes.all()); }, layout);
}

sonde_status transpose_of_tensor(ArenaHandle arena, LayoutIn layout, const uint32_t *order, uint32_t rank,
                                 LayoutOut out) noexcept {
  const List<uint32_t> dims{order, rank};
  if (!are_sound(dims)) return refuse_list("layout_shape.transpose_tensor", out);
  return make_in(
      "layout_shape.transpose_tensor", arena, out,
      [&](Arena &a, const Layout &l) { return transpose_tensor(a, l, dims.all()); }, layout);
}

sonde_status remove_dim_of_tensor(ArenaHandle arena, LayoutIn layout, uint32_t index, LayoutOut out) noexcept {
  return make_in(
      "layout_shape.remove_tensor_dim", arena, out,
      [&](Arena &a, const Layout &l) { return remove_tensor_dim(a, l, index); }, layout);
}

sonde_status permute_bases(ArenaHandle arena, LayoutIn layout, sonde_dim_t in, const uint32_t *permutation,
                           uint32_t count, LayoutOut out) noexcept {
  const List<uint32_t> list{permutation, count};
  if (!are_sound(list)) return refuse_list("layout_shape.permute", out);
  return make_in(
      "layout_shape.permute", arena, out,
      [&](Arena &a, const Layout &l) {
        const Dim *const own = l.find_in(in);
        const ColumnAction action({list.all().begin(), list.all().end()}, in, own == nullptr ? 0u : own->bits);
        return action.apply(a, l);
      },
      layout);
}

void give_permutation(const ColumnAction &action, uint32_t *permutation, uint32_t *count) {
  *count = static_cast<uint32_t>(action.permutation().size());
  std::copy(action.permutation().begin(), action.permutation().end(), permutation);
}

sonde_status division_registers(LayoutIn a, LayoutIn b, uint32_t from_left, uint32_t *permutation,
                                uint32_t *count) noexcept {
  if (!is_layout(a) || !is_layout(b) || permutation == nullptr || count == nullptr) {
    return refuse_handles("layout_shape.registers_for_division");
  }
  return guarded([&] {
    const auto action = registers_for_division(*inside(a), *inside(b), from_left != 0);
    if (!action) {
      return refuse(SONDE_E_NO_SOLUTION, "layout_shape.registers_for_division: the divisor's registers are not there");
    }
    give_permutation(*action, permutation, count);
    return SONDE_OK;
  });
}

sonde_status strides_of(LayoutIn layout, uint64_t affine, uint32_t *permutation, uint32_t *count,
                        uint32_t *strides) noexcept {
  if (!is_layout(layout) || permutation == nullptr || count == nullptr || strides == nullptr) {
    return refuse_handles("layout_shape.additive_strides");
  }
  return guarded([&] {
    const AdditiveStrides found = additive_strides(*inside(layout), affine);
    give_permutation(found.action, permutation, count);
    *strides = found.strides;
    return SONDE_OK;
  });
}

sonde_status broadcasts_of(LayoutIn layout, uint32_t *permutation, uint32_t *count) noexcept {
  if (!is_layout(layout) || permutation == nullptr || count == nullptr) {
    return refuse_handles("layout_shape.drop_broadcasts");
  }
  return guarded([&] {
    give_permutation(drop_broadcast_registers(*inside(layout)), permutation, count);
    return SONDE_OK;
  });
}

sonde_status vectorise_layout(ArenaHandle arena, LayoutIn layout, uint32_t element_bits, uint64_t most,
                              uint64_t *elements, uint32_t *permutation, uint32_t *count) noexcept {
  if (arena == nullptr || !is_layout(layout) || elements == nullptr || permutation == nullptr || count == nullptr) {
    return refuse_handles("layout_shape.vectorise");
  }
  if (!is_power_of_two(element_bits) || element_bits > 128) {
    return refuse(SONDE_E_INVALID, "layout_shape.vectorise: an element has a power of two of 1 to 128 bits");
  }
  return guarded([&] {
    Arena &own = inside(arena);
    const Arena::Mark mark = own.mark();
    const Vectorisation found =
        largest_vectorisation(own, *inside(layout), element_bits, most == 0 ? UINT64_MAX : most);
    own.release(mark);
    *elements = found.elements;
    give_permutation(found.action, permutation, count);
    return SONDE_OK;
  });
}

sonde_status repetitions_of(ArenaHandle arena, LayoutIn layout, LayoutIn tile, LayoutOut out) noexcept {
  return make_in("layout_shape.repetitions", arena, out, repetitions, layout, tile);
}

sonde_status prefix_of(ArenaHandle arena, LayoutIn layout, sonde_dim_t in, sonde_dim_t to, uint64_t limit,
                       uint64_t *size, LayoutOut out) noexcept {
  if (size == nullptr) return refuse_handles("layout_shape.identity_prefix");
  return make_in(
      "layout_shape.identity_prefix", arena, out,
      [&](Arena &a, const Layout &l) {
        const IdentityPrefix prefix = identity_prefix(a, l, in, to, limit);
        *size = prefix.size;
        return prefix.quotient == nullptr ? nullptr : in_arena(a, prefix.quotient, l);
      },
      layout);
}

sonde_status ask(LayoutIn layout, uint32_t what, const sonde_dim_t *a, uint32_t a_count, const sonde_dim_t *b,
                 uint32_t b_count, uint32_t *out) noexcept {
  const List<sonde_dim_t> first{a, a_count};
  const List<sonde_dim_t> second{b, b_count};
  if (!is_layout(layout) || out == nullptr) return refuse_handles("layout_shape.is");
  if (!are_sound(first, second)) return refuse_list("layout_shape.is", nullptr);
  const Layout &own = *inside(layout);
  switch (what) {
    case SONDE_LAYOUT_IS_ZERO:
      *out = sublayout_is_zero(own, first.all(), second.all()) ? 1 : 0;
      return SONDE_OK;
    case SONDE_LAYOUT_IS_IDENTITY_ON:
      *out = square_is_identity(own, first.all()) ? 1 : 0;
      return SONDE_OK;
    case SONDE_LAYOUT_IS_TRIVIAL_OVER:
      *out = is_trivial_over(own, first.all()) ? 1 : 0;
      return SONDE_OK;
    case SONDE_LAYOUT_IS_OWN_OUT:
      if (a_count != 1) return refuse(SONDE_E_INVALID, "layout_shape.is: IS_OWN_OUT asks about one dim");
      *out = is_identity_on_out(own, a[0]) ? 1 : 0;
      return SONDE_OK;
    default:
      return refuse(SONDE_E_INVALID, "layout_shape.is: `what` is not one of SONDE_LAYOUT_IS_*");
  }
}

// A list with one entry a dim, copied out.
sonde_status give_list(const std::vector<uint64_t> &values, uint64_t *out) {
  std::copy(values.begin(), values.end(), out);
  return SONDE_OK;
}

sonde_status free_masks_of(LayoutIn layout, uint64_t *masks) noexcept {
  if (!is_layout(layout) || masks == nullptr) return refuse_handles("layout_shape.free_masks");
  free_variable_masks(*inside(layout), masks);
  return SONDE_OK;
}

sonde_status consecutive_of(LayoutIn layout, uint64_t *out) noexcept {
  if (!is_layout(layout) || out == nullptr) return refuse_handles("layout_shape.consecutive");
  *out = consecutive_in_out(*inside(layout));
  return SONDE_OK;
}

// Questions that name a dim; an unknown one is an error, not 0.
sonde_status refuse_dim(const char *function, sonde_dim_t dim) noexcept {
  return guarded([&] {
    return refuse(SONDE_E_INVALID,
                  std::string(function) + ": the layout has no such dim: " + std::string(dim_text(dim)));
  });
}

sonde_status contiguous_of(LayoutIn layout, sonde_dim_t out_dim, uint64_t *out) noexcept {
  if (!is_layout(layout) || out == nullptr) return refuse_handles("layout_shape.contiguous");
  if (inside(layout)->find_out(out_dim) == nullptr) return refuse_dim("layout_shape.contiguous", out_dim);
  *out = contiguous_along(*inside(layout), out_dim);
  return SONDE_OK;
}

sonde_status output_mask_of(LayoutIn layout, const sonde_dim_t *ins, uint32_t count, sonde_dim_t out_dim,
                            uint64_t *out) noexcept {
  const List<sonde_dim_t> list{ins, count};
  if (!is_layout(layout) || out == nullptr) return refuse_handles("layout_shape.output_mask");
  if (!are_sound(list)) return refuse_list("layout_shape.output_mask", nullptr);
  if (inside(layout)->find_out(out_dim) == nullptr) return refuse_dim("layout_shape.output_mask", out_dim);
  *out = output_basis_mask(*inside(layout), list.all(), out_dim);
  return SONDE_OK;
}

sonde_status input_mask_of(LayoutIn layout, sonde_dim_t in, const sonde_dim_t *outs, uint32_t count,
                           uint64_t *out) noexcept {
  const List<sonde_dim_t> list{outs, count};
  if (!is_layout(layout) || out == nullptr) return refuse_handles("layout_shape.input_mask");
  if (!are_sound(list)) return refuse_list("layout_shape.input_mask", nullptr);
  if (inside(layout)->find_in(in) == nullptr) return refuse_dim("layout_shape.input_mask", in);
  *out = input_basis_mask(*inside(layout), in, list.all());
  return SONDE_OK;
}

sonde_status bases_of(LayoutIn layout, sonde_dim_t in, uint32_t skips_broadcasts, uint64_t *sizes) noexcept {
  if (!is_layout(layout) || sizes == nullptr) return refuse_handles("layout_shape.bases_per_dim");
  if (inside(layout)->find_in(in) == nullptr) return refuse_dim("layout_shape.bases_per_dim", in);
  return guarded([&] { return give_list(bases_per_dim(*inside(layout), in, skips_broadcasts != 0), sizes); });
}

sonde_status order_of(LayoutIn layout, sonde_dim_t in, uint32_t *order) noexcept {
  if (!is_layout(layout) || order == nullptr) return refuse_handles("layout_shape.order_per_dim");
  if (inside(layout)->find_in(in) == nullptr) return refuse_dim("layout_shape.order_per_dim", in);
  return guarded([&] {
    std::vector<uint32_t> rest;
    for (uint32_t i = 0; i < inside(layout)->outs().size(); ++i) rest.push_back(i);
    const std::vector<uint32_t> found = order_per_dim(*inside(layout), in, rest);
    std::copy(found.begin(), found.end(), order);
    return SONDE_OK;
  });
}

sonde_status supremum_of(const sonde_dim_t *a, uint32_t a_count, const sonde_dim_t *b, uint32_t b_count,
                         sonde_dim_t *out, uint32_t *count) noexcept {
  const List<sonde_dim_t> first{a, a_count};
  const List<sonde_dim_t> second{b, b_count};
  if (!are_sound(first, second)) return refuse_list("layout_shape.supremum", nullptr);
  if (count == nullptr || (out == nullptr && a_count + b_count != 0)) return refuse_handles("layout_shape.supremum");
  return guarded([&] {
    Arena scratch;
    std::vector<DimName> found;
    if (!supremum(scratch, first.all(), second.all(), found)) return refuse(scratch);
    std::copy(found.begin(), found.end(), out);
    *count = static_cast<uint32_t>(found.size());
    return SONDE_OK;
  });
}

sonde_status contiguous_per_thread_of(LayoutIn layout, uint64_t *sizes) noexcept {
  if (!is_layout(layout) || sizes == nullptr) return refuse_handles("layout_shape.contiguous_per_thread");
  return guarded([&] { return give_list(contiguous_per_thread(*inside(layout)), sizes); });
}

sonde_status elements_of(LayoutIn layout, uint64_t *all, uint64_t *unique) noexcept {
  if (!is_layout(layout)) return refuse_handles("layout_shape.elements_per_thread");
  if (all != nullptr) *all = elements_per_thread(*inside(layout));
  if (unique != nullptr) *unique = unique_elements_per_thread(*inside(layout));
  return SONDE_OK;
}

}  // namespace

const sonde_layout_shape_service_t kShapeService = {
    sizeof(sonde_layout_shape_service_t),
    0,
    transpose_side,
    reshape_side,
    flatten_side,
    squeeze_side,
    unsqueeze_side,
    resize_side,
    rename_side,
    sublayout_of,
    quotient_of,
    remove_zeros,
    zeros_of,
    fit_larger,
    fit_smaller,
    identity_of_tensor,
    reshape_of_tensor,
    transpose_of_tensor,
    remove_dim_of_tensor,
    permute_bases,
    division_registers,
    strides_of,
    broadcasts_of,
    vectorise_layout,
    repetitions_of,
    prefix_of,
    ask,
    free_masks_of,
    consecutive_of,
    contiguous_of,
    output_mask_of,
    input_mask_of,
    bases_of,
    order_of,
    supremum_of,
    contiguous_per_thread_of,
    elements_of,
};

}  // namespace sonde::layout
