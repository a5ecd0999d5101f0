// Service sonde.layout/1.
#include "layout/service.h"

#include "layout/algebra.h"
#include "layout/boundary.h"
#include "layout/bulk.h"
#include "layout/queries.h"
#include "layout/serial.h"
#include "layout/service_tables.h"

namespace sonde::layout {
namespace {

void (*error_sink)(const char *text) = nullptr;

using LayoutOut = const sonde_layout_t **;

sonde_status open_arena(uint64_t cap_bytes, sonde_layout_arena_t **out) noexcept {
  if (out == nullptr) return refuse(SONDE_E_INVALID, "layout.open: out is NULL");
  return guarded([&] {
    *out = reinterpret_cast<sonde_layout_arena_t *>(new Arena(cap_bytes == 0 ? UINT64_MAX : cap_bytes));
    return SONDE_OK;
  });
}

sonde_status close_arena(sonde_layout_arena_t *arena) noexcept {
  delete reinterpret_cast<Arena *>(arena);
  return SONDE_OK;
}

sonde_status reset_arena(sonde_layout_arena_t *arena) noexcept {
  if (arena == nullptr) return refuse_handles("layout.reset");
  inside(arena).reset();
  return SONDE_OK;
}

sonde_status mark_arena(sonde_layout_arena_t *arena, uint64_t *out) noexcept {
  if (arena == nullptr || out == nullptr) return refuse_handles("layout.mark");
  const Arena::Mark mark = inside(arena).mark();
  out[0] = mark.block;
  out[1] = reinterpret_cast<uint64_t>(mark.cursor);
  return SONDE_OK;
}

sonde_status release_arena(sonde_layout_arena_t *arena, const uint64_t *mark) noexcept {
  if (arena == nullptr || mark == nullptr) return refuse_handles("layout.release");
  const Arena::Mark place{static_cast<size_t>(mark[0]), reinterpret_cast<uint8_t *>(mark[1])};
  if (!inside(arena).is_mark(place)) return refuse(SONDE_E_INVALID, "layout.release: not a mark of this arena");
  inside(arena).release(place);
  return SONDE_OK;
}

sonde_status dim_of(const char *name, sonde_dim_t *out) noexcept {
  if (name == nullptr || *name == '\0' || out == nullptr) {
    return refuse(SONDE_E_INVALID, "layout.dim: a name and out are needed");
  }
  return guarded([&] {
    *out = intern_dim(name);
    return SONDE_OK;
  });
}

sonde_status name_of_dim(sonde_dim_t dim, const char **out) noexcept {
  if (out == nullptr) return refuse(SONDE_E_INVALID, "layout.dim_name: out is NULL");
  *out = dim_text(dim).data();
  return SONDE_OK;
}

sonde_status make(sonde_layout_arena_t *arena, const sonde_layout_dim_t *ins, uint32_t in_count,
                  const sonde_layout_dim_t *outs, uint32_t out_count, const uint64_t *bases, const uint64_t *offset,
                  LayoutOut out) noexcept {
  if (out != nullptr) *out = nullptr;
  if (arena == nullptr || out == nullptr || (ins == nullptr && in_count != 0) || (outs == nullptr && out_count != 0)) {
    return refuse_handles("layout.make");
  }
  if (in_count > kMaxDims || out_count > kMaxDims) {
    return refuse(SONDE_E_UNSUPPORTED, "layout.make: more than 64 dims on a side");
  }
  return guarded([&] {
    DimSize in_sizes[kMaxDims];
    DimSize out_sizes[kMaxDims];
    uint64_t in_bits = 0;
    for (uint32_t i = 0; i < in_count; ++i) {
      in_sizes[i] = {ins[i].name, ins[i].bits};
      in_bits += ins[i].bits;
    }
    for (uint32_t i = 0; i < out_count; ++i) out_sizes[i] = {outs[i].name, outs[i].bits};
    const uint64_t values = in_bits * out_count;
    if (bases == nullptr && values != 0) return refuse(SONDE_E_INVALID, "layout.make: bases is NULL");
    const Layout *layout =
        make_from_bases(inside(arena), {in_sizes, in_count}, {out_sizes, out_count}, {bases, values});
    if (layout != nullptr && offset != nullptr) layout = with_offset(inside(arena), *layout, {offset, out_count});
    return give(arena, layout, out);
  });
}

sonde_status strided(sonde_layout_arena_t *arena, uint64_t size, uint64_t stride, sonde_dim_t in, sonde_dim_t out_dim,
                     LayoutOut out) noexcept {
  return make_in("layout.strided", arena, out, [&](Arena &a) { return make_strided(a, size, stride, in, out_dim); });
}

sonde_status zeros(sonde_layout_arena_t *arena, uint64_t size, sonde_dim_t in, sonde_dim_t out_dim, uint64_t out_size,
                   LayoutOut out) noexcept {
  return make_in("layout.zeros", arena, out, [&](Arena &a) { return make_zeros(a, size, in, out_dim, out_size); });
}

sonde_status copy(sonde_layout_arena_t *arena, const sonde_layout_t *layout, LayoutOut out) noexcept {
  return make_in("layout.copy", arena, out, copy_layout, layout);
}

sonde_status place_layout(const sonde_layout_t *layout, void *memory, uint64_t capacity, uint64_t *needed,
                          LayoutOut out) noexcept {
  if (!is_layout(layout) || out == nullptr || reinterpret_cast<uintptr_t>(memory) % 8 != 0) {
    return refuse_handles("layout.place");
  }
  *out = nullptr;
  const size_t bytes = inside(layout)->bytes();
  if (needed != nullptr) *needed = bytes;
  if (memory == nullptr && needed != nullptr) return SONDE_OK;
  if (memory == nullptr || capacity < bytes) {
    return refuse(SONDE_E_FULL, "layout.place: the memory is smaller than the layout; `needed` says how large it is");
  }
  std::memcpy(memory, layout, bytes);
  *out = static_cast<const sonde_layout_t *>(memory);
  return SONDE_OK;
}

sonde_status view(const sonde_layout_t *layout, sonde_layout_view_t *out) noexcept {
  if (!is_layout(layout) || out == nullptr) return refuse_handles("layout.view");
  const Layout &own = *inside(layout);
  *out = {reinterpret_cast<const sonde_layout_dim_t *>(own.ins().data()),
          reinterpret_cast<const sonde_layout_dim_t *>(own.outs().data()),
          own.columns().data(),
          own.offset(),
          static_cast<uint32_t>(own.ins().size()),
          static_cast<uint32_t>(own.outs().size()),
          own.in_bits(),
          own.out_bits()};
  return SONDE_OK;
}

sonde_status properties(const sonde_layout_t *layout, uint32_t *rank_out, uint32_t *flags) noexcept {
  if (!is_layout(layout)) return refuse_handles("layout.properties");
  const Layout &own = *inside(layout);
  const uint32_t found = rank(own);
  if (rank_out != nullptr) *rank_out = found;
  if (flags != nullptr) {
    *flags = (found == own.out_bits() ? SONDE_LAYOUT_SURJECTIVE : 0) |
             (found == own.in_bits() ? SONDE_LAYOUT_INJECTIVE : 0) |
             (is_permutation_with_broadcasts(own) ? SONDE_LAYOUT_PERMUTATION : 0) |
             (is_memory_layout(own) ? SONDE_LAYOUT_MEMORY : 0);
  }
  return SONDE_OK;
}

sonde_status equal_layouts(const sonde_layout_t *a, const sonde_layout_t *b, uint32_t how, uint32_t *out) noexcept {
  if (!is_layout(a) || !is_layout(b) || out == nullptr) return refuse_handles("layout.equal");
  switch (how) {
    case SONDE_LAYOUT_EQUAL_EXACT:
      *out = equal(*inside(a), *inside(b)) ? 1 : 0;
      return SONDE_OK;
    case SONDE_LAYOUT_EQUAL_VALUES:
      *out = equal_but_out_sizes(*inside(a), *inside(b)) ? 1 : 0;
      return SONDE_OK;
    case SONDE_LAYOUT_EQUAL_AS_MAPS:
      *out = equal_as_maps(*inside(a), *inside(b)) ? 1 : 0;
      return SONDE_OK;
    default:
      return refuse(SONDE_E_INVALID, "layout.equal: `how` is not one of SONDE_LAYOUT_EQUAL_*");
  }
}

sonde_status hash_layout(const sonde_layout_t *layout, uint32_t how, uint64_t *out) noexcept {
  if (!is_layout(layout) || out == nullptr) return refuse_handles("layout.hash");
  if (how == SONDE_LAYOUT_EQUAL_VALUES || how > SONDE_LAYOUT_EQUAL_AS_MAPS) {
    return refuse(SONDE_E_INVALID, "layout.hash: `how` is SONDE_LAYOUT_EQUAL_EXACT or AS_MAPS");
  }
  *out = how == SONDE_LAYOUT_EQUAL_EXACT ? hash(*inside(layout)) : hash_as_map(*inside(layout));
  return SONDE_OK;
}

sonde_status apply(const sonde_layout_t *layout, const uint64_t *values, uint64_t *out) noexcept {
  if (!is_layout(layout)) return refuse_handles("layout.apply");
  const Layout &own = *inside(layout);
  if ((values == nullptr && !own.ins().empty()) || (out == nullptr && !own.outs().empty())) {
    return refuse_handles("layout.apply");
  }
  uint64_t flat = 0;
  for (size_t i = 0; i < own.ins().size(); ++i) {
    const Dim &in = own.ins()[i];
    if ((values[i] & ~low_mask(in.bits)) != 0) [[unlikely]] {
      return guarded([&] {
        return refuse(SONDE_E_RANGE, "layout.apply: " + std::string(dim_text(in.name)) + " = " +
                                         std::to_string(values[i]) + " lies past its " + std::to_string(in.bits) +
                                         " bits");
      });
    }
    flat |= in.at(values[i]);
  }
  const uint64_t result = own.apply(flat);
  for (size_t i = 0; i < own.outs().size(); ++i) out[i] = own.outs()[i].of(result);
  return SONDE_OK;
}

sonde_status apply_to_many(const sonde_layout_t *layout, const uint64_t *in, uint64_t count, uint64_t *out) noexcept {
  if (!is_layout(layout) || (count != 0 && (in == nullptr || out == nullptr))) {
    return refuse_handles("layout.apply_many");
  }
  uint64_t all = 0;
  for (uint64_t i = 0; i < count; ++i) all |= in[i];
  if ((all & ~low_mask(inside(layout)->in_bits())) != 0) {
    return refuse(SONDE_E_RANGE, "layout.apply_many: an index lies past the layout's inputs");
  }
  apply_many(*inside(layout), {in, count}, out);
  return SONDE_OK;
}

template <typename T>
sonde_status table_of(const char *function, const sonde_layout_t *layout, uint64_t first, uint64_t count,
                      T *out) noexcept {
  if (!is_layout(layout) || (count != 0 && out == nullptr)) return refuse_handles(function);
  const Layout &own = *inside(layout);
  const uint64_t last = low_mask(own.in_bits());
  if (count != 0 && (first > last || count - 1 > last - first)) {
    return refuse(SONDE_E_RANGE, "layout.table: the range ends past the layout's inputs");
  }
  if (own.out_bits() > 8 * sizeof(T)) {
    return refuse(SONDE_E_RANGE, "layout.table32: the layout has more than 32 out bits; use table");
  }
  fill_table(own, first, count, out);
  return SONDE_OK;
}

sonde_status table(const sonde_layout_t *layout, uint64_t first, uint64_t count, uint64_t *out) noexcept {
  return table_of("layout.table", layout, first, count, out);
}

sonde_status table32(const sonde_layout_t *layout, uint64_t first, uint64_t count, uint32_t *out) noexcept {
  return table_of("layout.table32", layout, first, count, out);
}

sonde_status product_of(sonde_layout_arena_t *arena, const sonde_layout_t *inner, const sonde_layout_t *outer,
                        LayoutOut out) noexcept {
  return make_in("layout.product", arena, out, product, inner, outer);
}

sonde_status divide_left_by(sonde_layout_arena_t *arena, const sonde_layout_t *a, const sonde_layout_t *divisor,
                            LayoutOut out) noexcept {
  return make_in("layout.divide_left", arena, out, divide_left, a, divisor);
}

sonde_status divide_right_by(sonde_layout_arena_t *arena, const sonde_layout_t *a, const sonde_layout_t *divisor,
                             LayoutOut out) noexcept {
  return make_in("layout.divide_right", arena, out, divide_right, a, divisor);
}

sonde_status compose_with(sonde_layout_arena_t *arena, const sonde_layout_t *inner, const sonde_layout_t *outer,
                          LayoutOut out) noexcept {
  return make_in("layout.compose", arena, out, compose, inner, outer);
}

sonde_status least_solution_of(sonde_layout_arena_t *arena, const sonde_layout_t *a, const sonde_layout_t *b,
                               LayoutOut out) noexcept {
  return make_in("layout.least_solution", arena, out, least_solution, a, b);
}

sonde_status invert_and_compose_with(sonde_layout_arena_t *arena, const sonde_layout_t *layout,
                                     const sonde_layout_t *outer, uint32_t block_local, LayoutOut out) noexcept {
  return block_local != 0
             ? make_in("layout.invert_and_compose", arena, out, invert_and_compose_block_local, layout, outer)
             : make_in("layout.invert_and_compose", arena, out, invert_and_compose, layout, outer);
}

sonde_status pseudoinvert_of(sonde_layout_arena_t *arena, const sonde_layout_t *layout, LayoutOut out) noexcept {
  return make_in("layout.pseudoinvert", arena, out, pseudoinvert, layout);
}

sonde_status invert_of(sonde_layout_arena_t *arena, const sonde_layout_t *layout, LayoutOut out) noexcept {
  return make_in("layout.invert", arena, out, invert, layout);
}

sonde_status concat(sonde_layout_arena_t *arena, uint32_t side, const sonde_layout_t *a, const sonde_layout_t *b,
                    LayoutOut out) noexcept {
  if (side == SONDE_SIDE_IN) return make_in("layout.concat", arena, out, concat_ins, a, b);
  if (side == SONDE_SIDE_OUT) return make_in("layout.concat", arena, out, concat_outs, a, b);
  return refuse(SONDE_E_INVALID, "layout.concat: the side is SONDE_SIDE_IN or SONDE_SIDE_OUT");
}

sonde_status sum_of(sonde_layout_arena_t *arena, const sonde_layout_t *a, const sonde_layout_t *b,
                    LayoutOut out) noexcept {
  return make_in("layout.sum", arena, out, sum, a, b);
}

sonde_status subspace(sonde_layout_arena_t *arena, uint32_t what, const sonde_layout_t *a, const sonde_layout_t *b,
                      LayoutOut out) noexcept {
  switch (what) {
    case SONDE_LAYOUT_KERNEL:
      return make_in("layout.subspace", arena, out, kernel, a);
    case SONDE_LAYOUT_IMAGE:
      return make_in("layout.subspace", arena, out, image, a);
    case SONDE_LAYOUT_COKERNEL:
      return make_in("layout.subspace", arena, out, cokernel, a);
    case SONDE_LAYOUT_INTERSECTION:
      return make_in("layout.subspace", arena, out, intersect_images, a, b);
    case SONDE_LAYOUT_SUM:
      return make_in("layout.subspace", arena, out, sum_of_images, a, b);
    default:
      if (out != nullptr) *out = nullptr;
      return refuse(SONDE_E_INVALID, "layout.subspace: `what` is not one of SONDE_LAYOUT_KERNEL to SUM");
  }
}

sonde_status print(const sonde_layout_t *layout, char *text, uint64_t capacity, uint64_t *needed) noexcept {
  if (!is_layout(layout)) return refuse_handles("layout.print");
  return guarded([&] { return give_text(to_string(*inside(layout)), text, capacity, needed); });
}

sonde_status write_json(const sonde_layout_t *layout, char *text, uint64_t capacity, uint64_t *needed) noexcept {
  if (!is_layout(layout)) return refuse_handles("layout.to_json");
  return guarded([&] { return give_text(to_json(*inside(layout)), text, capacity, needed); });
}

sonde_status write_bytes(const sonde_layout_t *layout, uint8_t *bytes, uint64_t capacity, uint64_t *needed) noexcept {
  if (!is_layout(layout) || (bytes == nullptr && capacity != 0)) return refuse_handles("layout.to_bytes");
  return guarded([&] {
    const std::vector<uint8_t> all = to_bytes(*inside(layout));
    if (needed != nullptr) *needed = all.size();
    if (all.size() > capacity) {
      return refuse(SONDE_E_FULL, "layout.to_bytes: " + std::to_string(all.size()) + " bytes are needed");
    }
    std::memcpy(bytes, all.data(), all.size());
    return SONDE_OK;
  });
}

sonde_status read_json(sonde_layout_arena_t *arena, const char *text, uint64_t bytes, LayoutOut out) noexcept {
  if (text == nullptr && bytes != 0) return refuse_handles("layout.from_json");
  const std::string_view all(text == nullptr ? "" : text, bytes);
  return make_in("layout.from_json", arena, out, [&](Arena &a) { return from_json(a, all); });
}

sonde_status read_bytes(sonde_layout_arena_t *arena, const uint8_t *data, uint64_t bytes, LayoutOut out) noexcept {
  if (data == nullptr && bytes != 0) return refuse_handles("layout.from_bytes");
  return make_in("layout.from_bytes", arena, out, [&](Arena &a) {
    return from_bytes(a, {data, static_cast<size_t>(bytes)});
  });
}

}  // namespace

const sonde_layout_service_t kLayoutService = {
    sizeof(sonde_layout_service_t),
    0,
    open_arena,
    close_arena,
    reset_arena,
    mark_arena,
    release_arena,
    dim_of,
    name_of_dim,
    make,
    strided,
    zeros,
    copy,
    place_layout,
    view,
    properties,
    equal_layouts,
    hash_layout,
    apply,
    apply_to_many,
    table,
    table32,
    product_of,
    divide_left_by,
    divide_right_by,
    compose_with,
    least_solution_of,
    invert_and_compose_with,
    pseudoinvert_of,
    invert_of,
    concat,
    sum_of,
    subspace,
    print,
    write_json,
    write_bytes,
    read_json,
    read_bytes,
};

std::span<const NamedService> services(void (*set_error)(const char *text)) {
  static constexpr NamedService kServices[] = {
      {SONDE_LAYOUT_SERVICE, &kLayoutService},
      {SONDE_LAYOUT_SHAPE_SERVICE, &kShapeService},
      {SONDE_LAYOUT_ENCODING_SERVICE, &kEncodingService},
      {SONDE_LAYOUT_PLAN_SERVICE, &kPlanService},
      {SONDE_LAYOUT_MODULAR_SERVICE, &kModularService},
      {SONDE_LAYOUT_SEARCH_SERVICE, &kSearchService},
      {SONDE_CUTE_SERVICE, &kCuteService},
  };
  error_sink = set_error;
  return kServices;
}

sonde_status refuse(sonde_status code, const char *text) noexcept {
  if (error_sink != nullptr) error_sink(text);
  return code;
}

sonde_status refuse(const Arena &arena) noexcept {
  sonde_status code = SONDE_E_INTERNAL;
  switch (arena.fault()) {
    case Fault::kNone:
      break;
    case Fault::kInvalid:
      code = SONDE_E_INVALID;
      break;
    case Fault::kNoSolution:
      code = SONDE_E_NO_SOLUTION;
      break;
    case Fault::kUnsupported:
      code = SONDE_E_UNSUPPORTED;
      break;
    case Fault::kFull:
      code = SONDE_E_FULL;
      break;
    case Fault::kParse:
      code = SONDE_E_PARSE;
      break;
    case Fault::kCorrupt:
      code = SONDE_E_CORRUPT;
      break;
  }
  return refuse(code, arena.message());
}

sonde_status refuse_handles(const char *function) noexcept {
  return guarded(
      [&] { return refuse(SONDE_E_INVALID, std::string(function) + ": an argument is NULL, or is not a layout"); });
}

sonde_status give_text(const std::string &text, char *out, uint64_t capacity, uint64_t *needed) noexcept {
  if (needed != nullptr) *needed = text.size();
  if (out == nullptr || capacity == 0) {
    return needed != nullptr ? SONDE_OK : refuse(SONDE_E_INVALID, "text: neither room nor `needed` is given");
  }
  const size_t length = std::min<size_t>(text.size(), capacity - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
  return length == text.size() ? SONDE_OK : refuse(SONDE_E_FULL, "the text is cut; `needed` says how long it is");
}

}  // namespace sonde::layout
