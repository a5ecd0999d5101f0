// Building, reading and multiplying layouts.
#include "layouts.h"

#include <cstring>

#include "glue.h"

namespace sonde::lua {
namespace {

const char kKey = 0;  // its address is the library's key in the registry

template <typename Service>
void fetch(lua_State *state, const sonde_host_t *host, const char *id, uint32_t needed, const Service *&out) {
  const void *table = nullptr;
  if (host->get_service(id, needed, &table) < 0) {
    luaL_error(state, "the host has no %s: %s", id, host->last_error());
  }
  out = static_cast<const Service *>(table);
}

int close_library(lua_State *state) {
  auto *const all = static_cast<Layouts *>(lua_touserdata(state, 1));
  if (all->arena != nullptr) all->layouts->close(all->arena);
  all->arena = nullptr;
  return 0;
}

sonde_layout_view_t view_of(lua_State *state, int index) {
  sonde_layout_view_t view{};
  const Layouts &all = layouts_of(state);
  check_status(state, all, all.layouts->view(check_layout(state, index), &view));
  return view;
}

// ---- Building ----

struct Sizes {
  sonde_layout_dim_t dims[kMostDims];
  uint32_t count;
};

uint64_t check_power(lua_State *state, int index) {
  const auto size = static_cast<uint64_t>(luaL_checkinteger(state, index));
  if (size == 0 || (size & (size - 1)) != 0) luaL_argerror(state, index, "a size must be a power of two");
  return size;
}

uint8_t log2_of(uint64_t size) {
  uint8_t bits = 0;
  while (size > 1) {
    size >>= 1;
    ++bits;
  }
  return bits;
}

uint8_t width_of(uint64_t value) {
  uint8_t bits = 0;
  while (value != 0) {
    value >>= 1;
    ++bits;
  }
  return bits;
}

// {{"dim0", 16}, ...} or, with `may_infer`, names alone, whose bits are then 255.
void check_sizes(lua_State *state, const Layouts &all, int index, bool may_infer, Sizes &out) {
  luaL_checktype(state, index, LUA_TTABLE);
  const lua_Integer count = luaL_len(state, index);
  if (count > kMostDims) luaL_error(state, "more than %d dims", static_cast<int>(kMostDims));
  out.count = static_cast<uint32_t>(count);
  for (lua_Integer i = 1; i <= count; ++i) {
    lua_geti(state, index, i);
    sonde_layout_dim_t &dim = out.dims[i - 1];
    dim = {0, 255, 0, 0};
    if (may_infer && lua_type(state, -1) == LUA_TSTRING) {
      dim.name = check_dim(state, all, lua_gettop(state));
    } else {
      if (!lua_istable(state, -1)) luaL_error(state, "dim %I must be {name, size}", i);
      lua_geti(state, -1, 1);
      dim.name = check_dim(state, all, lua_gettop(state));
      lua_geti(state, -2, 2);
      dim.bits = log2_of(check_power(state, lua_gettop(state)));
      lua_pop(state, 2);
    }
    lua_pop(state, 1);
  }
}

// make{{"register", {{0, 1}, {1, 0}}}, {"lane", {...}}, out = {"dim0", {"dim1", 16}}, offset = {0, 3}}
int make(lua_State *state) {
  Layouts &all = layouts_of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_settop(state, 1);
  Sizes ins{};
  Sizes outs{};
  if (lua_getfield(state, 1, "out") != LUA_TTABLE) return luaL_error(state, "make: out = {names} is missing");
  check_sizes(state, all, 2, true, outs);
  lua_pop(state, 1);
  const lua_Integer count = luaL_len(state, 1);
  if (count > kMostDims) return luaL_error(state, "more than %d in dims", static_cast<int>(kMostDims));
  ins.count = static_cast<uint32_t>(count);
  uint64_t rows = 0;
  // The bases lie in a userdata, which an error in between leaves to the collector.
  auto *const values = static_cast<uint64_t *>(lua_newuserdatauv(state, 64 * kMostDims * sizeof(uint64_t), 0));
  for (lua_Integer i = 1; i <= count; ++i) {
    if (lua_geti(state, 1, i) != LUA_TTABLE) return luaL_error(state, "in dim %I must be {name, bases}", i);
    lua_geti(state, -1, 1);
    ins.dims[i - 1].name = check_dim(state, all, lua_gettop(state));
    if (lua_geti(state, -2, 2) != LUA_TTABLE) return luaL_error(state, "in dim %I has no list of bases", i);
    const lua_Integer bases = luaL_len(state, -1);
    if (rows + static_cast<uint64_t>(bases) > 64) return luaL_error(state, "more than 64 bases");
    ins.dims[i - 1].bits = static_cast<uint8_t>(bases);
    for (lua_Integer b = 1; b <= bases; ++b, ++rows) {
      lua_geti(state, -1, b);
      uint64_t *const row = values + rows * outs.count;
      if (outs.count == 1 && lua_isinteger(state, -1)) {
        row[0] = static_cast<uint64_t>(lua_tointeger(state, -1));
      } else {
        if (!lua_istable(state, -1) || luaL_len(state, -1) != static_cast<lua_Integer>(outs.count)) {
          return luaL_error(state, "a basis of in dim %I must be a list of %d integers", i,
                            static_cast<int>(outs.count));
        }
        check_integers(state, lua_gettop(state), row);
      }
      lua_pop(state, 1);
    }
    lua_pop(state, 3);
  }
  for (uint32_t i = 0; i < outs.count; ++i) {
    if (outs.dims[i].bits != 255) continue;
    uint64_t reached = 0;
    for (uint64_t row = 0; row < rows; ++row) reached |= values[row * outs.count + i];
    outs.dims[i].bits = width_of(reached);
  }
  uint64_t offset[kMostDims];
  const bool has_offset = lua_getfield(state, 1, "offset") == LUA_TTABLE;
  if (has_offset && check_integers(state, lua_gettop(state), offset) != outs.count) {
    return luaL_error(state, "make: offset needs one value for each out dim");
  }
  const sonde_layout_t *layout = nullptr;
  check_status(state, all,
               all.layouts->make(all.arena, ins.dims, ins.count, outs.dims, outs.count, values,
                                 has_offset ? offset : nullptr, &layout));
  return push_layout(state, all, layout);
}

int strided(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all,
               all.layouts->strided(all.arena, static_cast<uint64_t>(luaL_checkinteger(state, 1)),
                                    static_cast<uint64_t>(luaL_checkinteger(state, 2)), check_dim(state, all, 3),
                                    check_dim(state, all, 4), &layout));
  return push_layout(state, all, layout);
}

int identity(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all,
               all.layouts->strided(all.arena, static_cast<uint64_t>(luaL_checkinteger(state, 1)), 1,
                                    check_dim(state, all, 2), check_dim(state, all, 3), &layout));
  return push_layout(state, all, layout);
}

int zeros(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(
      state, all,
      all.layouts->zeros(all.arena, static_cast<uint64_t>(luaL_checkinteger(state, 1)), check_dim(state, all, 2),
                         check_dim(state, all, 3), static_cast<uint64_t>(luaL_optinteger(state, 4, 1)), &layout));
  return push_layout(state, all, layout);
}

int from_json(lua_State *state) {
  Layouts &all = layouts_of(state);
  size_t length = 0;
  const char *const text = luaL_checklstring(state, 1, &length);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.layouts->from_json(all.arena, text, length, &layout));
  return push_layout(state, all, layout);
}

// ---- Algebra ----

template <auto member>
int binary(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, (all.layouts->*member)(all.arena, check_layout(state, 1), check_layout(state, 2), &layout));
  return push_layout(state, all, layout);
}

// As binary; nil where there is no solution.
template <auto member>
int try_binary(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  const sonde_status status =
      (all.layouts->*member)(all.arena, check_layout(state, 1), check_layout(state, 2), &layout);
  if (status == SONDE_E_NO_SOLUTION) {
    lua_pushnil(state);
    return 1;
  }
  check_status(state, all, status);
  return push_layout(state, all, layout);
}

template <auto member>
int unary(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, (all.layouts->*member)(all.arena, check_layout(state, 1), &layout));
  return push_layout(state, all, layout);
}

int invert_and_compose(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(state, all,
               all.layouts->invert_and_compose(all.arena, check_layout(state, 1), check_layout(state, 2),
                                               lua_toboolean(state, 3) != 0 ? 1 : 0, &layout));
  return push_layout(state, all, layout);
}

int concat(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  check_status(
      state, all,
      all.layouts->concat(all.arena, check_side(state, 2), check_layout(state, 1), check_layout(state, 3), &layout));
  return push_layout(state, all, layout);
}

int subspace(lua_State *state) {
  static const char *const words[] = {"kernel", "image", "cokernel", "intersection", "sum", nullptr};
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  const int what = luaL_checkoption(state, 2, nullptr, words);
  const sonde_layout_t *const other = what >= 3 ? check_layout(state, 3) : nullptr;
  const sonde_layout_t *layout = nullptr;
  check_status(state, all, all.layouts->subspace(all.arena, static_cast<uint32_t>(what), own, other, &layout));
  return push_layout(state, all, layout);
}

// ---- Reading ----

// layout(register, lane, ...): the out values, one after the other.
int call(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_layout_view_t view = view_of(state, 1);
  uint64_t values[kMostDims];
  uint64_t out[kMostDims];
  luaL_argcheck(state, lua_gettop(state) == static_cast<int>(view.in_count) + 1, 2,
                "one value for each in dim is needed");
  for (uint32_t i = 0; i < view.in_count; ++i) {
    values[i] = static_cast<uint64_t>(luaL_checkinteger(state, static_cast<int>(i) + 2));
  }
  check_status(state, all, all.layouts->apply(check_layout(state, 1), values, out));
  luaL_checkstack(state, static_cast<int>(view.out_count), nullptr);
  for (uint32_t i = 0; i < view.out_count; ++i) lua_pushinteger(state, static_cast<lua_Integer>(out[i]));
  return static_cast<int>(view.out_count);
}

// layout:apply{register = 1, lane = 9}: {dim0 = 2, dim1 = 3}; a dim that is left out is 0.
int apply(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_layout_view_t view = view_of(state, 1);
  luaL_checktype(state, 2, LUA_TTABLE);
  uint64_t values[kMostDims];
  uint64_t out[kMostDims];
  lua_Integer named = 0;
  for (uint32_t i = 0; i < view.in_count; ++i) {
    const char *name = "";
    all.layouts->dim_name(view.ins[i].name, &name);
    values[i] = 0;
    if (lua_getfield(state, 2, name) != LUA_TNIL) {
      values[i] = static_cast<uint64_t>(luaL_checkinteger(state, -1));
      ++named;
    }
    lua_pop(state, 1);
  }
  lua_pushnil(state);
  while (lua_next(state, 2) != 0) {
    --named;
    lua_pop(state, 1);
  }
  if (named != 0) return luaL_error(state, "apply: a dim is named that the layout does not have");
  check_status(state, all, all.layouts->apply(check_layout(state, 1), values, out));
  lua_createtable(state, 0, static_cast<int>(view.out_count));
  for (uint32_t i = 0; i < view.out_count; ++i) {
    const char *name = "";
    all.layouts->dim_name(view.outs[i].name, &name);
    lua_pushinteger(state, static_cast<lua_Integer>(out[i]));
    lua_setfield(state, -2, name);
  }
  return 1;
}

// layout:at(index), flattened
int at(lua_State *state) {
  const sonde_layout_view_t view = view_of(state, 1);
  lua_pushinteger(state,
                  static_cast<lua_Integer>(sonde_layout_at(&view, static_cast<uint64_t>(luaL_checkinteger(state, 2)))));
  return 1;
}

// layout:table([first, count]): flattened values
int table(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_layout_view_t view = view_of(state, 1);
  const auto first = static_cast<uint64_t>(luaL_optinteger(state, 2, 0));
  if (lua_isnoneornil(state, 3) && view.in_bits > 24)
    return luaL_error(state, "table: give a count, there are 2^%d", static_cast<int>(view.in_bits));
  const auto count = static_cast<uint64_t>(luaL_optinteger(
      state, 3, view.in_bits > 24 ? 0 : static_cast<lua_Integer>((uint64_t{1} << view.in_bits) - first)));
  if (count > 1 << 24) return luaL_error(state, "table: at most 2^24 values at once");
  auto *const values = static_cast<uint64_t *>(lua_newuserdatauv(state, count * sizeof(uint64_t) + 8, 0));
  check_status(state, all, all.layouts->table(check_layout(state, 1), first, count, values));
  lua_createtable(state, static_cast<int>(count), 0);
  for (uint64_t i = 0; i < count; ++i) {
    lua_pushinteger(state, static_cast<lua_Integer>(values[i]));
    lua_rawseti(state, -2, static_cast<lua_Integer>(i) + 1);
  }
  return 1;
}

void push_side(lua_State *state, const Layouts &all, const sonde_layout_dim_t *dims, uint32_t count) {
  lua_createtable(state, static_cast<int>(count), 0);
  for (uint32_t i = 0; i < count; ++i) {
    const char *name = "";
    all.layouts->dim_name(dims[i].name, &name);
    lua_createtable(state, 2, 0);
    lua_pushstring(state, name);
    lua_rawseti(state, -2, 1);
    lua_pushinteger(state, dims[i].bits < 64 ? static_cast<lua_Integer>(uint64_t{1} << dims[i].bits) : 0);
    lua_rawseti(state, -2, 2);
    lua_rawseti(state, -2, static_cast<lua_Integer>(i) + 1);
  }
}

// layout:ins(), layout:outs(): {{"register", 4}, ...}
int ins(lua_State *state) {
  const sonde_layout_view_t view = view_of(state, 1);
  push_side(state, layouts_of(state), view.ins, view.in_count);
  return 1;
}

int outs(lua_State *state) {
  const sonde_layout_view_t view = view_of(state, 1);
  push_side(state, layouts_of(state), view.outs, view.out_count);
  return 1;
}

// layout:bases("register"): {{0, 1}, {1, 0}}
int bases(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_layout_view_t view = view_of(state, 1);
  const sonde_dim_t wanted = check_dim(state, all, 2);
  for (uint32_t i = 0; i < view.in_count; ++i) {
    const sonde_layout_dim_t &in = view.ins[i];
    if (in.name != wanted) continue;
    lua_createtable(state, in.bits, 0);
    for (uint32_t bit = 0; bit < in.bits; ++bit) {
      lua_createtable(state, static_cast<int>(view.out_count), 0);
      for (uint32_t k = 0; k < view.out_count; ++k) {
        const sonde_layout_dim_t &out = view.outs[k];
        const uint64_t value =
            out.bits == 0 ? 0 : view.columns[in.shift + bit] >> out.shift & (~uint64_t{0} >> (64 - out.bits));
        lua_pushinteger(state, static_cast<lua_Integer>(value));
        lua_rawseti(state, -2, static_cast<lua_Integer>(k) + 1);
      }
      lua_rawseti(state, -2, static_cast<lua_Integer>(bit) + 1);
    }
    return 1;
  }
  return luaL_error(state, "bases: the layout has no in dim %s", lua_tostring(state, 2));
}

int rank(lua_State *state) {
  const Layouts &all = layouts_of(state);
  uint32_t value = 0;
  check_status(state, all, all.layouts->properties(check_layout(state, 1), &value, nullptr));
  lua_pushinteger(state, value);
  return 1;
}

template <uint32_t wanted>
int has_property(lua_State *state) {
  const Layouts &all = layouts_of(state);
  uint32_t flags = 0;
  check_status(state, all, all.layouts->properties(check_layout(state, 1), nullptr, &flags));
  lua_pushboolean(state, (flags & wanted) == wanted ? 1 : 0);
  return 1;
}

int equal(lua_State *state) {
  const Layouts &all = layouts_of(state);
  static const char *const words[] = {"exact", "values", "as_maps", nullptr};
  const int how = lua_gettop(state) < 3 ? 0 : luaL_checkoption(state, 3, "exact", words);
  uint32_t same = 0;
  check_status(state, all,
               all.layouts->equal(check_layout(state, 1), check_layout(state, 2), static_cast<uint32_t>(how), &same));
  lua_pushboolean(state, same != 0 ? 1 : 0);
  return 1;
}

template <auto member>
int text(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_layout_t *const own = check_layout(state, 1);
  uint64_t needed = 0;
  check_status(state, all, (all.layouts->*member)(own, nullptr, 0, &needed));
  luaL_Buffer buffer;
  char *const room = luaL_buffinitsize(state, &buffer, needed + 1);
  check_status(state, all, (all.layouts->*member)(own, room, needed + 1, &needed));
  luaL_pushresultsize(&buffer, needed);
  return 1;
}

const luaL_Reg kMethods[] = {
    {"product", binary<&sonde_layout_service_t::product>},
    {"compose", binary<&sonde_layout_service_t::compose>},
    {"divide_left", try_binary<&sonde_layout_service_t::divide_left>},
    {"divide_right", try_binary<&sonde_layout_service_t::divide_right>},
    {"least_solution", try_binary<&sonde_layout_service_t::least_solution>},
    {"sum", binary<&sonde_layout_service_t::sum>},
    {"invert_and_compose", invert_and_compose},
    {"pseudoinvert", unary<&sonde_layout_service_t::pseudoinvert>},
    {"invert", unary<&sonde_layout_service_t::invert>},
    {"concat", concat},
    {"subspace", subspace},
    {"apply", apply},
    {"at", at},
    {"table", table},
    {"ins", ins},
    {"outs", outs},
    {"bases", bases},
    {"rank", rank},
    {"is_surjective", has_property<SONDE_LAYOUT_SURJECTIVE>},
    {"is_injective", has_property<SONDE_LAYOUT_INJECTIVE>},
    {"is_invertible", has_property<(SONDE_LAYOUT_SURJECTIVE | SONDE_LAYOUT_INJECTIVE)>},
    {"is_permutation", has_property<SONDE_LAYOUT_PERMUTATION>},
    {"is_memory", has_property<SONDE_LAYOUT_MEMORY>},
    {"equal", equal},
    {"print", text<&sonde_layout_service_t::print>},
    {"to_json", text<&sonde_layout_service_t::to_json>},
    {nullptr, nullptr},
};

const luaL_Reg kMetamethods[] = {
    {"__mul", binary<&sonde_layout_service_t::product>},  {"__eq", equal},    {"__call", call},
    {"__tostring", text<&sonde_layout_service_t::print>}, {nullptr, nullptr},
};

const luaL_Reg kFunctions[] = {
    {"make", make},   {"identity", identity},   {"strided", strided},
    {"zeros", zeros}, {"from_json", from_json}, {nullptr, nullptr},
};

}  // namespace

Layouts &layouts_of(lua_State *state) {
  lua_rawgetp(state, LUA_REGISTRYINDEX, &kKey);
  auto *const all = static_cast<Layouts *>(lua_touserdata(state, -1));
  lua_pop(state, 1);
  return *all;
}

void check_status(lua_State *state, const Layouts &all, sonde_status status) {
  if (status < 0) luaL_error(state, "%s", all.host->last_error());
}

const sonde_layout_t *check_layout(lua_State *state, int index) {
  return static_cast<const sonde_layout_t *>(luaL_checkudata(state, index, kLayoutClass));
}

void push_kept(lua_State *state, const Layouts &all, const sonde_layout_t *layout) {
  uint64_t needed = 0;
  const sonde_layout_t *placed = nullptr;
  (void)all.layouts->place(layout, nullptr, 0, &needed, &placed);
  void *const memory = lua_newuserdatauv(state, needed, 0);
  check_status(state, all, all.layouts->place(layout, memory, needed, &needed, &placed));
  luaL_setmetatable(state, kLayoutClass);
}

int push_layout(lua_State *state, Layouts &all, const sonde_layout_t *layout) {
  push_kept(state, all, layout);
  all.layouts->reset(all.arena);
  return 1;
}

sonde_dim_t check_dim(lua_State *state, const Layouts &all, int index) {
  sonde_dim_t dim = 0;
  check_status(state, all, all.layouts->dim(luaL_checkstring(state, index), &dim));
  return dim;
}

uint32_t check_dims(lua_State *state, const Layouts &all, int index, sonde_dim_t *out) {
  luaL_checktype(state, index, LUA_TTABLE);
  const lua_Integer count = luaL_len(state, index);
  if (count > kMostDims) luaL_error(state, "more than %d dims", static_cast<int>(kMostDims));
  for (lua_Integer i = 1; i <= count; ++i) {
    lua_geti(state, index, i);
    out[i - 1] = check_dim(state, all, lua_gettop(state));
    lua_pop(state, 1);
  }
  return static_cast<uint32_t>(count);
}

uint32_t check_sized_dims(lua_State *state, const Layouts &all, int index, sonde_layout_dim_t *out) {
  Sizes sizes{};
  check_sizes(state, all, index, false, sizes);
  std::memcpy(out, sizes.dims, sizes.count * sizeof(sonde_layout_dim_t));
  return sizes.count;
}

uint32_t check_integers(lua_State *state, int index, uint64_t *out) {
  luaL_checktype(state, index, LUA_TTABLE);
  const lua_Integer count = luaL_len(state, index);
  if (count > kMostDims) luaL_error(state, "more than %d values", static_cast<int>(kMostDims));
  for (lua_Integer i = 1; i <= count; ++i) {
    lua_geti(state, index, i);
    out[i - 1] = static_cast<uint64_t>(luaL_checkinteger(state, -1));
    lua_pop(state, 1);
  }
  return static_cast<uint32_t>(count);
}

uint32_t check_small_integers(lua_State *state, int index, uint32_t *out) {
  uint64_t wide[kMostDims];
  const uint32_t count = check_integers(state, index, wide);
  for (uint32_t i = 0; i < count; ++i) {
    if (wide[i] > UINT32_MAX) luaL_argerror(state, index, "a value is negative or past 2^32");
    out[i] = static_cast<uint32_t>(wide[i]);
  }
  return count;
}

uint32_t check_side(lua_State *state, int index) {
  static const char *const words[] = {"in", "out", nullptr};
  return static_cast<uint32_t>(luaL_checkoption(state, index, nullptr, words));
}

void push_layout_library(lua_State *state, const sonde_host_t *host) {
  auto *const all = static_cast<Layouts *>(lua_newuserdatauv(state, sizeof(Layouts), 0));
  *all = {};
  all->host = host;
  fetch(state, host, SONDE_LAYOUT_SERVICE, SONDE_NEED(sonde_layout_service_t, from_bytes), all->layouts);
  fetch(state, host, SONDE_LAYOUT_SHAPE_SERVICE, SONDE_NEED(sonde_layout_shape_service_t, elements_per_thread),
        all->shapes);
  fetch(state, host, SONDE_LAYOUT_ENCODING_SERVICE, SONDE_NEED(sonde_layout_encoding_service_t, default_swizzle),
        all->encodings);
  fetch(state, host, SONDE_LAYOUT_PLAN_SERVICE, SONDE_NEED(sonde_layout_plan_service_t, dot_shuffle), all->plans);
  fetch(state, host, SONDE_LAYOUT_SEARCH_SERVICE, SONDE_NEED(sonde_layout_search_service_t, memory), all->searches);
  fetch(state, host, SONDE_CUTE_SERVICE, SONDE_NEED(sonde_cute_service_t, from_linear), all->cute);
  fetch(state, host, SONDE_LAYOUT_MODULAR_SERVICE, SONDE_NEED(sonde_layout_modular_service_t, solve), all->modular);
  static const luaL_Reg library_metamethods[] = {{"__gc", close_library}, {nullptr, nullptr}};
  make_class(state, "sonde.layouts", nullptr, library_metamethods);
  luaL_setmetatable(state, "sonde.layouts");
  check_status(state, *all, all->layouts->open(64 << 20, &all->arena));
  lua_rawsetp(state, LUA_REGISTRYINDEX, &kKey);

  luaL_Reg methods[128];
  size_t count = 0;
  for (const luaL_Reg *entry = kMethods; entry->name != nullptr; ++entry) methods[count++] = *entry;
  for (const luaL_Reg *entry = kShapeMethods; entry->name != nullptr; ++entry) methods[count++] = *entry;
  methods[count] = {nullptr, nullptr};
  make_class(state, kLayoutClass, methods, kMetamethods);
  register_encodings(state);
  lua_newtable(state);
  luaL_setfuncs(state, kFunctions, 0);
  luaL_setfuncs(state, kPlanFunctions, 0);
  luaL_setfuncs(state, kSearchFunctions, 0);
  push_cute_library(state);
  lua_setfield(state, -2, "cute");
  push_modular_function(state);
  lua_setfield(state, -2, "modular");
}

}  // namespace sonde::lua
