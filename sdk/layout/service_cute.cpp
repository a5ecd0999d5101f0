// Service sonde.cute/1.
#include <sonde/cute.h>

#include <string>
#include <vector>

#include "layout/boundary.h"
#include "layout/cute_algebra.h"
#include "layout/cute_convert.h"
#include "layout/cute_swizzle.h"
#include "layout/cute_tiling.h"
#include "layout/service_tables.h"

namespace sonde::layout {
namespace {

using ArenaHandle = sonde_layout_arena_t *;
using CuteIn = const sonde_cute_t *;
using CuteOut = const sonde_cute_t **;

const CuteLayout &inside(CuteIn layout) { return *reinterpret_cast<const CuteLayout *>(layout); }

sonde_status refuse_null(const char *function) noexcept {
  return guarded([&] { return refuse(SONDE_E_INVALID, std::string(function) + ": an argument is NULL"); });
}

// An operation that makes a layout; what it had made when it failed is given back.
template <typename Operation>
sonde_status make_cute_in(ArenaHandle arena, CuteOut out, Operation &&operation) noexcept {
  *out = nullptr;
  return guarded([&] {
    Arena &own = layout::inside(arena);
    const Arena::Mark mark = own.mark();
    const CuteLayout *const result = operation(own);
    if (result == nullptr) {
      own.release(mark);
      return refuse(own);
    }
    *out = reinterpret_cast<CuteIn>(result);
    return SONDE_OK;
  });
}

template <typename Operation>
sonde_status slice_in(ArenaHandle arena, CuteOut out, int64_t *offset, Operation &&operation) noexcept {
  return make_cute_in(arena, out, [&](Arena &own) {
    const CuteSlice part = operation(own);
    if (part.layout != nullptr) *offset = part.offset;
    return part.layout;
  });
}

sonde_status parse(ArenaHandle arena, const char *text, uint64_t bytes, CuteOut out) noexcept {
  if (arena == nullptr || text == nullptr || out == nullptr) return refuse_null("cute.parse");
  return make_cute_in(arena, out, [&](Arena &own) { return parse_cute(own, {text, bytes}); });
}

sonde_status make(ArenaHandle arena, const int64_t *shapes, const int64_t *strides, uint32_t count,
                  CuteOut out) noexcept {
  if (arena == nullptr || out == nullptr || ((shapes == nullptr || strides == nullptr) && count != 0)) {
    return refuse_null("cute.make");
  }
  if (count > kCuteMaxLeaves) return refuse(SONDE_E_UNSUPPORTED, "cute.make: more than 256 leaves");
  return make_cute_in(arena, out, [&](Arena &own) {
    std::vector<CuteLeaf> leaves;
    for (uint32_t i = 0; i < count; ++i) leaves.push_back({shapes[i], strides[i]});
    return make_cute_flat(own, leaves);
  });
}

sonde_status print(CuteIn layout, char *text, uint64_t capacity, uint64_t *needed) noexcept {
  if (layout == nullptr) return refuse_null("cute.print");
  return guarded([&] { return give_text(to_string(inside(layout)), text, capacity, needed); });
}

sonde_status info(CuteIn layout, sonde_cute_info_t *out) noexcept {
  if (layout == nullptr || out == nullptr || out->struct_size < sizeof(sonde_cute_info_t)) {
    return refuse(SONDE_E_INVALID, "cute.info: a layout and an info with its struct_size are needed");
  }
  const CuteLayout &own = inside(layout);
  *out = {out->struct_size, own.rank(),  own.depth(), static_cast<uint32_t>(own.leaves().size()),
          own.size(),       own.cosize()};
  return SONDE_OK;
}

sonde_status leaves(CuteIn layout, int64_t *shapes, int64_t *strides) noexcept {
  if (layout == nullptr || shapes == nullptr || strides == nullptr) return refuse_null("cute.leaves");
  for (const CuteLeaf &leaf : inside(layout).leaves()) {
    *shapes++ = leaf.shape;
    *strides++ = leaf.stride;
  }
  return SONDE_OK;
}

sonde_status apply(CuteIn layout, int64_t coordinate, int64_t *out) noexcept {
  if (layout == nullptr || out == nullptr) return refuse_null("cute.apply");
  if (coordinate < 0 || coordinate >= inside(layout).size()) {
    return refuse(SONDE_E_RANGE, "cute.apply: the coordinate lies outside of 0 to size - 1");
  }
  *out = inside(layout).apply(coordinate);
  return SONDE_OK;
}

sonde_status to_index(ArenaHandle arena, CuteIn layout, const char *coordinate, int64_t *out) noexcept {
  if (arena == nullptr || layout == nullptr || coordinate == nullptr || out == nullptr) {
    return refuse_null("cute.coordinate_to_index");
  }
  return guarded([&] {
    Arena &own = layout::inside(arena);
    const Arena::Mark mark = own.mark();
    const CuteTuple *const tuple = parse_cute_tuple(own, coordinate);
    const bool done = tuple != nullptr && coordinate_to_index(own, *tuple, inside(layout), *out);
    own.release(mark);
    return done ? SONDE_OK : refuse(own);
  });
}

sonde_status to_coordinate(ArenaHandle arena, CuteIn layout, int64_t index, char *text, uint64_t capacity,
                           uint64_t *needed) noexcept {
  if (arena == nullptr || layout == nullptr) return refuse_null("cute.index_to_coordinate");
  return guarded([&] {
    Arena &own = layout::inside(arena);
    const Arena::Mark mark = own.mark();
    const CuteTuple *const shape = cute_shape(own, inside(layout));
    const CuteTuple *const tuple = shape == nullptr ? nullptr : index_to_coordinate(own, index, *shape);
    const std::string written = tuple == nullptr ? "" : to_string(*tuple);
    own.release(mark);
    return tuple == nullptr ? refuse(own) : give_text(written, text, capacity, needed);
  });
}

sonde_status are_equal(CuteIn a, CuteIn b, uint32_t as_functions, uint32_t *out) noexcept {
  if (a == nullptr || b == nullptr || out == nullptr) return refuse_null("cute.equal");
  return guarded([&] {
    *out = (as_functions != 0 ? equal_as_functions(inside(a), inside(b)) : equal(inside(a), inside(b))) ? 1 : 0;
    return SONDE_OK;
  });
}

sonde_status transform(ArenaHandle arena, CuteIn layout, uint32_t what, const char *profile, CuteOut out) noexcept {
  if (arena == nullptr || layout == nullptr || out == nullptr) return refuse_null("cute.transform");
  if (what > SONDE_CUTE_NULLSPACE || (profile != nullptr && what != SONDE_CUTE_COALESCE)) {
    *out = nullptr;
    return refuse(SONDE_E_INVALID, "cute.transform: unknown transformation, or a profile that it does not take");
  }
  return make_cute_in(arena, out, [&](Arena &own) -> const CuteLayout * {
    const CuteLayout &given = inside(layout);
    switch (what) {
      case SONDE_CUTE_COALESCE: {
        if (profile == nullptr) return coalesce(own, given);
        const CuteTuple *const tree = parse_cute_tuple(own, profile);
        return tree == nullptr ? nullptr : coalesce(own, given, *tree);
      }
      case SONDE_CUTE_FLATTEN:
        return flatten(own, given);
      case SONDE_CUTE_FILTER_ZEROS:
        return filter_zeros(own, given);
      case SONDE_CUTE_FILTER:
        return filter(own, given);
      case SONDE_CUTE_RIGHT_INVERSE:
        return right_inverse(own, given);
      case SONDE_CUTE_LEFT_INVERSE:
        return left_inverse(own, given);
      default:
        return nullspace(own, given);
    }
  });
}

sonde_status compose_with(ArenaHandle arena, CuteIn a, const char *tiler, CuteOut out) noexcept {
  if (arena == nullptr || a == nullptr || tiler == nullptr || out == nullptr) return refuse_null("cute.compose");
  return make_cute_in(arena, out, [&](Arena &own) -> const CuteLayout * {
    const CuteTiler *const by = parse_cute_tiler(own, tiler);
    return by == nullptr ? nullptr : compose(own, inside(a), *by);
  });
}

sonde_status complement_of(ArenaHandle arena, CuteIn layout, int64_t least, CuteOut out) noexcept {
  if (arena == nullptr || layout == nullptr || out == nullptr) return refuse_null("cute.complement");
  return make_cute_in(arena, out, [&](Arena &own) { return complement(own, inside(layout), least); });
}

sonde_status divide(ArenaHandle arena, CuteIn layout, uint32_t how, const char *tiler, CuteOut out) noexcept {
  if (arena == nullptr || layout == nullptr || tiler == nullptr || out == nullptr) return refuse_null("cute.divide");
  if (how > SONDE_CUTE_FLAT) {
    *out = nullptr;
    return refuse(SONDE_E_INVALID, "cute.divide: `how` is one of SONDE_CUTE_LOGICAL to FLAT");
  }
  return make_cute_in(arena, out, [&](Arena &own) -> const CuteLayout * {
    const CuteTiler *const by = parse_cute_tiler(own, tiler);
    if (by == nullptr) return nullptr;
    switch (how) {
      case SONDE_CUTE_LOGICAL:
        return logical_divide(own, inside(layout), *by);
      case SONDE_CUTE_ZIPPED:
        return zipped_divide(own, inside(layout), *by);
      case SONDE_CUTE_TILED:
        return tiled_divide(own, inside(layout), *by);
      default:
        return flat_divide(own, inside(layout), *by);
    }
  });
}

sonde_status multiply(ArenaHandle arena, CuteIn layout, uint32_t how, const char *tiler, CuteOut out) noexcept {
  if (arena == nullptr || layout == nullptr || tiler == nullptr || out == nullptr) return refuse_null("cute.product");
  if (how > SONDE_CUTE_RAKED) {
    *out = nullptr;
    return refuse(SONDE_E_INVALID, "cute.product: `how` is one of SONDE_CUTE_LOGICAL to RAKED");
  }
  return make_cute_in(arena, out, [&](Arena &own) -> const CuteLayout * {
    const CuteLayout &given = inside(layout);
    if (how >= SONDE_CUTE_BLOCKED) {
      const CuteLayout *const by = parse_cute(own, tiler);
      if (by == nullptr) return nullptr;
      return how == SONDE_CUTE_BLOCKED ? blocked_product(own, given, *by) : raked_product(own, given, *by);
    }
    const CuteTiler *const by = parse_cute_tiler(own, tiler);
    if (by == nullptr) return nullptr;
    switch (how) {
      case SONDE_CUTE_LOGICAL:
        return logical_product(own, given, *by);
      case SONDE_CUTE_ZIPPED:
        return zipped_product(own, given, *by);
      case SONDE_CUTE_TILED:
        return tiled_product(own, given, *by);
      default:
        return flat_product(own, given, *by);
    }
  });
}

sonde_status repeat(ArenaHandle arena, CuteIn block, const char *shape, const uint32_t *order, uint32_t order_count,
                    CuteOut out) noexcept {
  if (arena == nullptr || block == nullptr || shape == nullptr || out == nullptr ||
      (order == nullptr && order_count != 0)) {
    return refuse_null("cute.tile_to_shape");
  }
  return make_cute_in(arena, out, [&](Arena &own) -> const CuteLayout * {
    const CuteTuple *const tree = parse_cute_tuple(own, shape);
    return tree == nullptr ? nullptr : tile_to_shape(own, inside(block), *tree, {order, order_count});
  });
}

sonde_status recast_to(ArenaHandle arena, CuteIn layout, uint32_t old_bits, uint32_t new_bits, CuteOut out) noexcept {
  if (arena == nullptr || layout == nullptr || out == nullptr) return refuse_null("cute.recast");
  return make_cute_in(arena, out, [&](Arena &own) { return recast(own, inside(layout), old_bits, new_bits); });
}

sonde_status common(ArenaHandle arena, CuteIn a, CuteIn b, CuteOut out, int64_t *elements) noexcept {
  if (arena == nullptr || a == nullptr || b == nullptr || out == nullptr || elements == nullptr) {
    return refuse_null("cute.max_common");
  }
  return make_cute_in(arena, out, [&](Arena &own) {
    const CuteLayout *const result = max_common_layout(own, inside(a), inside(b));
    if (result != nullptr) *elements = result->size();
    return result;
  });
}

sonde_status slice_of(ArenaHandle arena, CuteIn layout, const char *coordinate, CuteOut out, int64_t *offset) noexcept {
  if (arena == nullptr || layout == nullptr || coordinate == nullptr || out == nullptr || offset == nullptr) {
    return refuse_null("cute.slice");
  }
  return slice_in(arena, out, offset, [&](Arena &own) {
    const CuteTuple *const tuple = parse_cute_tuple(own, coordinate);
    return tuple == nullptr ? CuteSlice{} : slice(own, inside(layout), *tuple);
  });
}

sonde_status tile_of(ArenaHandle arena, CuteIn layout, const char *tiler, const char *coordinate, CuteOut out,
                     int64_t *offset) noexcept {
  if (arena == nullptr || layout == nullptr || tiler == nullptr || coordinate == nullptr || out == nullptr ||
      offset == nullptr) {
    return refuse_null("cute.local_tile");
  }
  return slice_in(arena, out, offset, [&](Arena &own) {
    const CuteTiler *const by = parse_cute_tiler(own, tiler);
    const CuteTuple *const tuple = by == nullptr ? nullptr : parse_cute_tuple(own, coordinate);
    return tuple == nullptr ? CuteSlice{} : local_tile(own, inside(layout), *by, *tuple);
  });
}

sonde_status partition_of(ArenaHandle arena, CuteIn layout, CuteIn threads, int64_t thread, CuteOut out,
                          int64_t *offset) noexcept {
  if (arena == nullptr || layout == nullptr || threads == nullptr || out == nullptr || offset == nullptr) {
    return refuse_null("cute.local_partition");
  }
  return slice_in(arena, out, offset,
                  [&](Arena &own) { return local_partition(own, inside(layout), inside(threads), thread); });
}

sonde_status to_linear(ArenaHandle arena, const char *text, const sonde_layout_dim_t *ins, uint32_t in_count,
                       const sonde_layout_dim_t *outs, uint32_t out_count, const sonde_layout_t **out) noexcept {
  if (out != nullptr) *out = nullptr;
  if (arena == nullptr || text == nullptr || out == nullptr || (ins == nullptr && in_count != 0) ||
      (outs == nullptr && out_count != 0)) {
    return refuse_null("cute.to_linear");
  }
  return make_in("cute.to_linear", arena, out, [&](Arena &own) -> const Layout * {
    const auto sizes = [](const sonde_layout_dim_t *dims, uint32_t count) {
      std::vector<DimSize> result;
      for (uint32_t i = 0; i < count; ++i) result.push_back({dims[i].name, dims[i].bits});
      return result;
    };
    const CuteComposed *const composed = parse_cute_composed(own, text);
    if (composed == nullptr) return nullptr;
    return linear_from_cute(own, *composed, sizes(ins, in_count), sizes(outs, out_count));
  });
}

static_assert(static_cast<uint32_t>(CuteForm::kStrides) == SONDE_CUTE_FORM_STRIDES &&
              static_cast<uint32_t>(CuteForm::kSwizzled) == SONDE_CUTE_FORM_SWIZZLED &&
              static_cast<uint32_t>(CuteForm::kXorStrides) == SONDE_CUTE_FORM_XOR_STRIDES);

sonde_status from_linear(ArenaHandle arena, const sonde_layout_t *layout, uint32_t most, uint32_t *form, char *text,
                         uint64_t capacity, uint64_t *needed) noexcept {
  if (arena == nullptr || !is_layout(layout) || form == nullptr) return refuse_handles("cute.from_linear");
  if (most > SONDE_CUTE_FORM_XOR_STRIDES) {
    return refuse(SONDE_E_INVALID, "cute.from_linear: `most` is one of SONDE_CUTE_FORM_*");
  }
  return guarded([&] {
    Arena &own = layout::inside(arena);
    const Arena::Mark mark = own.mark();
    CuteConversion result;
    if (!cute_from_linear(own, *layout::inside(layout), static_cast<CuteForm>(most), result)) {
      own.release(mark);
      return refuse(own);
    }
    *form = static_cast<uint32_t>(result.form);
    std::string written;
    if (result.form == CuteForm::kXorStrides) {
      written = "xor " + to_string(*result.strides);
      if (result.offset != 0) written += " ^ " + std::to_string(result.offset);
    } else if (result.form == CuteForm::kStrides) {
      if (result.composed->offset() != 0) written = std::to_string(result.composed->offset()) + " o ";
      written += to_string(result.composed->layout());
    } else {
      written = to_string(*result.composed);
    }
    own.release(mark);
    return give_text(written, text, capacity, needed);
  });
}

}  // namespace

const sonde_cute_service_t kCuteService = {
    sizeof(sonde_cute_service_t),
    0,
    parse,
    make,
    print,
    info,
    leaves,
    apply,
    to_index,
    to_coordinate,
    are_equal,
    transform,
    compose_with,
    complement_of,
    divide,
    multiply,
    repeat,
    recast_to,
    common,
    slice_of,
    tile_of,
    partition_of,
    to_linear,
    from_linear,
};

}  // namespace sonde::layout
