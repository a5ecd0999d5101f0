// Services sonde.layout_modular/1 and sonde.layout_search/1.
#include <sonde/layout_modular.h>
#include <sonde/layout_search.h>

#include <algorithm>
#include <vector>

#include "layout/boundary.h"
#include "layout/modular.h"
#include "layout/search.h"
#include "layout/service_tables.h"

namespace sonde::layout {
namespace {

using ArenaHandle = sonde_layout_arena_t *;
using ModularIn = const sonde_modular_layout_t *;
using ModularOut = const sonde_modular_layout_t **;

const ModularLayout &inside(ModularIn layout) { return *reinterpret_cast<const ModularLayout *>(layout); }

sonde_status refuse_null(const char *function) noexcept {
  return guarded([&] { return refuse(SONDE_E_INVALID, std::string(function) + ": an argument is NULL"); });
}

template <typename Operation>
sonde_status make_modular_in(const char *function, ArenaHandle arena, ModularOut out, bool has_arguments,
                             Operation &&operation) noexcept {
  if (out != nullptr) *out = nullptr;
  if (arena == nullptr || out == nullptr || !has_arguments) return refuse_null(function);
  return guarded([&] {
    Arena &own = layout::inside(arena);
    const Arena::Mark mark = own.mark();
    const ModularLayout *const result = operation(own);
    if (result == nullptr) {
      own.release(mark);
      return refuse(own);
    }
    *out = reinterpret_cast<ModularIn>(result);
    return SONDE_OK;
  });
}

std::vector<ModularSize> sizes_of(const sonde_modular_dim_t *dims, uint32_t count) {
  std::vector<ModularSize> sizes;
  for (uint32_t i = 0; i < count; ++i) sizes.push_back({dims[i].name, dims[i].size});
  return sizes;
}

sonde_status make(ArenaHandle arena, const sonde_modular_dim_t *ins, uint32_t in_count, const sonde_modular_dim_t *outs,
                  uint32_t out_count, const uint64_t *bases, ModularOut out) noexcept {
  const bool has_dims = (ins != nullptr || in_count == 0) && (outs != nullptr || out_count == 0);
  return make_modular_in("layout_modular.make", arena, out, has_dims, [&](Arena &own) -> const ModularLayout * {
    uint64_t bits = 0;
    if (in_count > kMaxDims || out_count > kMaxDims) {
      own.fail(Fault::kUnsupported, "layout_modular.make: more than 64 dims on a side");
      return nullptr;
    }
    for (uint32_t i = 0; i < in_count; ++i) {
      bits += ins[i].size == 0 ? 0 : static_cast<uint64_t>(std::bit_width(ins[i].size - 1));
    }
    const uint64_t count = bits * out_count;
    if (bases == nullptr && count != 0) {
      own.fail(Fault::kInvalid, "layout_modular.make: bases is NULL");
      return nullptr;
    }
    return make_modular(own, sizes_of(ins, in_count), sizes_of(outs, out_count), {bases, count});
  });
}

sonde_status strided(ArenaHandle arena, uint64_t size, uint64_t stride, sonde_dim_t in,
                     const sonde_modular_dim_t *out_dim, ModularOut out) noexcept {
  return make_modular_in("layout_modular.strided", arena, out, out_dim != nullptr, [&](Arena &own) {
    return make_modular_strided(own, size, stride, in, {out_dim->name, out_dim->size});
  });
}

sonde_status from_linear(ArenaHandle arena, const sonde_layout_t *layout, ModularOut out) noexcept {
  return make_modular_in("layout_modular.from_linear", arena, out, is_layout(layout),
                         [&](Arena &own) { return modular_from_linear(own, *layout::inside(layout)); });
}

sonde_status to_linear(ArenaHandle arena, ModularIn layout, const sonde_layout_t **out) noexcept {
  if (layout == nullptr) return refuse_null("layout_modular.to_linear");
  return make_in("layout_modular.to_linear", arena, out,
                 [&](Arena &own) { return linear_from_modular(own, inside(layout)); });
}

sonde_status place_modular(ModularIn layout, void *memory, uint64_t capacity, uint64_t *needed,
                           ModularOut out) noexcept {
  if (layout == nullptr || out == nullptr || reinterpret_cast<uintptr_t>(memory) % 8 != 0) {
    return refuse_null("layout_modular.place");
  }
  *out = nullptr;
  const size_t bytes = inside(layout).bytes();
  if (needed != nullptr) *needed = bytes;
  if (memory == nullptr && needed != nullptr) return SONDE_OK;
  if (memory == nullptr || capacity < bytes) {
    return refuse(SONDE_E_FULL, "layout_modular.place: the memory is smaller than the layout; `needed` says how large");
  }
  std::memcpy(memory, layout, bytes);
  *out = static_cast<ModularIn>(memory);
  return SONDE_OK;
}

sonde_status dims(ModularIn layout, uint32_t side, sonde_modular_dim_t *out, uint32_t capacity,
                  uint32_t *count) noexcept {
  if (layout == nullptr || count == nullptr || (out == nullptr && capacity != 0)) {
    return refuse_null("layout_modular.dims");
  }
  if (side > SONDE_SIDE_OUT) return refuse(SONDE_E_INVALID, "layout_modular.dims: the side is in or out");
  const auto all = side == SONDE_SIDE_IN ? inside(layout).ins() : inside(layout).outs();
  *count = static_cast<uint32_t>(all.size());
  for (uint32_t i = 0; i < all.size() && i < capacity; ++i) out[i] = {all[i].name, 0, all[i].size};
  return SONDE_OK;
}

sonde_status apply(ModularIn layout, const uint64_t *values, uint64_t *out) noexcept {
  if (layout == nullptr || (values == nullptr && !inside(layout).ins().empty()) ||
      (out == nullptr && !inside(layout).outs().empty())) {
    return refuse_null("layout_modular.apply");
  }
  const ModularLayout &own = inside(layout);
  uint64_t flat = 0;
  for (size_t i = 0; i < own.ins().size(); ++i) {
    const ModularDim &in = own.ins()[i];
    if (values[i] >= in.size) {
      return guarded([&] {
        return refuse(SONDE_E_RANGE, "layout_modular.apply: " + std::string(dim_text(in.name)) + " = " +
                                         std::to_string(values[i]) + " is not below " + std::to_string(in.size));
      });
    }
    flat |= place(values[i], in.shift);
  }
  own.apply(flat, {out, own.outs().size()});
  return SONDE_OK;
}

sonde_status are_equal(ModularIn a, ModularIn b, uint32_t *out) noexcept {
  if (a == nullptr || b == nullptr || out == nullptr) return refuse_null("layout_modular.equal");
  *out = equal(inside(a), inside(b)) ? 1 : 0;
  return SONDE_OK;
}

sonde_status print(ModularIn layout, char *text, uint64_t capacity, uint64_t *needed) noexcept {
  if (layout == nullptr) return refuse_null("layout_modular.print");
  return guarded([&] { return give_text(to_string(inside(layout)), text, capacity, needed); });
}

sonde_status product_of(ArenaHandle arena, ModularIn inner, ModularIn outer, ModularOut out) noexcept {
  return make_modular_in("layout_modular.product", arena, out, inner != nullptr && outer != nullptr,
                         [&](Arena &own) { return product(own, inside(inner), inside(outer)); });
}

sonde_status compose_with(ArenaHandle arena, ModularIn inner, ModularIn outer, ModularOut out) noexcept {
  return make_modular_in("layout_modular.compose", arena, out, inner != nullptr && outer != nullptr,
                         [&](Arena &own) { return compose(own, inside(inner), inside(outer)); });
}

sonde_status invert_of(ArenaHandle arena, ModularIn layout, ModularOut out) noexcept {
  return make_modular_in("layout_modular.invert", arena, out, layout != nullptr,
                         [&](Arena &own) { return invert(own, inside(layout)); });
}

sonde_status invert_with(ArenaHandle arena, ModularIn layout, ModularIn outer, ModularOut out) noexcept {
  return make_modular_in("layout_modular.invert_and_compose", arena, out, layout != nullptr && outer != nullptr,
                         [&](Arena &own) { return invert_and_compose(own, inside(layout), inside(outer)); });
}

sonde_status solve_for(ArenaHandle arena, ModularIn layout, const uint64_t *values, uint64_t *input) noexcept {
  if (arena == nullptr || layout == nullptr || values == nullptr || input == nullptr) {
    return refuse_null("layout_modular.solve");
  }
  return guarded([&] {
    Arena &own = layout::inside(arena);
    const ModularLayout &given = inside(layout);
    for (size_t i = 0; i < given.outs().size(); ++i) {
      if (values[i] < given.outs()[i].size) continue;
      return refuse(SONDE_E_RANGE, "layout_modular.solve: " + std::string(dim_text(given.outs()[i].name)) + " = " +
                                       std::to_string(values[i]) + " is not below its size");
    }
    uint64_t flat = 0;
    const Arena::Mark mark = own.mark();
    const bool found = solve(own, given, {values, given.outs().size()}, flat);
    own.release(mark);
    if (!found) return refuse(own);
    for (size_t i = 0; i < given.ins().size(); ++i) input[i] = given.ins()[i].of(flat);
    return SONDE_OK;
  });
}

template <typename T>
std::vector<T> list_of(const T *items, uint32_t count) {
  return items == nullptr ? std::vector<T>() : std::vector<T>(items, items + count);
}

sonde_status find_registers(ArenaHandle arena, const sonde_register_request_t *given,
                            const sonde_layout_t **out) noexcept {
  if (out != nullptr) *out = nullptr;
  if (arena == nullptr || out == nullptr || given == nullptr ||
      given->struct_size < SONDE_NEED(sonde_register_request_t, warps)) {
    return refuse(SONDE_E_INVALID, "layout_search.registers: a request with its struct_size is needed");
  }
  sonde_register_request_t all{};
  std::memcpy(&all, given, std::min<size_t>(given->struct_size, sizeof(all)));
  if (all.shape == nullptr || all.rank == 0 || all.rank > dim::kNumbered ||
      (all.fixed == nullptr && all.fixed_count != 0) || (all.memory != nullptr && !is_layout(all.memory))) {
    return refuse(SONDE_E_INVALID,
                  "layout_search.registers: a shape of 1 to 32 dims is needed, and lists that are there");
  }
  return make_in("layout_search.registers", arena, out, [&](Arena &own) -> const Layout * {
    RegisterRequest request;
    request.shape = list_of(all.shape, all.rank);
    request.element_bits = all.element_bits;
    request.lanes = all.lanes;
    request.warps = all.warps;
    request.registers = all.registers;
    request.order = list_of(all.order, all.rank);
    request.vector_bits = all.vector_bits;
    request.lane_run = all.lane_run;
    request.contiguous = list_of(all.contiguous, all.rank);
    request.warps_per_dim = list_of(all.warps_per_dim, all.rank);
    for (uint32_t i = 0; i < all.fixed_count; ++i) {
      if (all.fixed[i].values == nullptr) {
        own.fail(Fault::kInvalid, "a fixed basis has no values");
        return nullptr;
      }
      request.fixed.push_back({all.fixed[i].in, all.fixed[i].bit, list_of(all.fixed[i].values, all.rank)});
    }
    request.memory = all.memory == nullptr ? nullptr : layout::inside(all.memory);
    if (all.banks != 0) request.banks = all.banks;
    return find_register_layout(own, request);
  });
}

sonde_status find_memory(ArenaHandle arena, const sonde_layout_t *a, const sonde_layout_t *b, uint32_t element_bits,
                         uint32_t vector_bits, uint32_t banks, const sonde_layout_t **out) noexcept {
  if (b != nullptr && !is_layout(b)) return refuse_handles("layout_search.memory");
  return make_in(
      "layout_search.memory", arena, out,
      [&](Arena &own, const Layout &first) {
        return find_memory_layout(own, first, b == nullptr ? nullptr : layout::inside(b), element_bits, vector_bits,
                                  banks == 0 ? 32 : banks);
      },
      a);
}

}  // namespace

const sonde_layout_modular_service_t kModularService = {
    sizeof(sonde_layout_modular_service_t),
    0,
    make,
    strided,
    from_linear,
    to_linear,
    place_modular,
    dims,
    apply,
    are_equal,
    print,
    product_of,
    compose_with,
    invert_of,
    invert_with,
    solve_for,
};

const sonde_layout_search_service_t kSearchService = {
    sizeof(sonde_layout_search_service_t),
    0,
    find_registers,
    find_memory,
};

}  // namespace sonde::layout
