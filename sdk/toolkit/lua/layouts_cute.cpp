// CuTe layouts as text, and searches: sonde.layout.cute and sonde.layout.find_*.
#include <cstring>

#include "glue.h"
#include "layouts.h"

namespace sonde::lua {
namespace {

const sonde_cute_t *check_cute(lua_State *state, const Layouts &all, int index) {
  size_t length = 0;
  const char *const text = luaL_checklstring(state, index, &length);
  const sonde_cute_t *layout = nullptr;
  check_status(state, all, all.cute->parse(all.arena, text, length, &layout));
  return layout;
}

// Pushes the text of a layout, and empties the arena.
int push_cute(lua_State *state, const Layouts &all, const sonde_cute_t *layout) {
  uint64_t needed = 0;
  check_status(state, all, all.cute->print(layout, nullptr, 0, &needed));
  luaL_Buffer buffer;
  char *const room = luaL_buffinitsize(state, &buffer, needed + 1);
  check_status(state, all, all.cute->print(layout, room, needed + 1, &needed));
  luaL_pushresultsize(&buffer, needed);
  all.layouts->reset(all.arena);
  return 1;
}

// Pushes nil where there is none, else the text.
int push_found(lua_State *state, const Layouts &all, sonde_status status, const sonde_cute_t *layout) {
  if (status == SONDE_E_NO_SOLUTION) {
    all.layouts->reset(all.arena);
    lua_pushnil(state);
    lua_pushstring(state, all.host->last_error());
    return 2;
  }
  check_status(state, all, status);
  return push_cute(state, all, layout);
}

template <uint32_t what>
int transform(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_cute_t *const given = check_cute(state, all, 1);
  const char *const profile = what == SONDE_CUTE_COALESCE ? luaL_optstring(state, 2, nullptr) : nullptr;
  const sonde_cute_t *out = nullptr;
  const sonde_status status = all.cute->transform(all.arena, given, what, profile, &out);
  return push_found(state, all, status, out);
}

int compose(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_cute_t *const given = check_cute(state, all, 1);
  const sonde_cute_t *out = nullptr;
  const sonde_status status = all.cute->compose(all.arena, given, luaL_checkstring(state, 2), &out);
  return push_found(state, all, status, out);
}

int complement(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_cute_t *const given = check_cute(state, all, 1);
  const sonde_cute_t *out = nullptr;
  const sonde_status status = all.cute->complement(all.arena, given, luaL_optinteger(state, 2, 1), &out);
  return push_found(state, all, status, out);
}

constexpr const char *kWays[] = {"logical", "zipped", "tiled", "flat", "blocked", "raked", nullptr};

// divide(layout, tiler [, "zipped"])
int divide(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_cute_t *const given = check_cute(state, all, 1);
  const int how = luaL_checkoption(state, 3, "logical", kWays);
  const sonde_cute_t *out = nullptr;
  const sonde_status status =
      all.cute->divide(all.arena, given, static_cast<uint32_t>(how), luaL_checkstring(state, 2), &out);
  return push_found(state, all, status, out);
}

int product(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_cute_t *const given = check_cute(state, all, 1);
  const int how = luaL_checkoption(state, 3, "logical", kWays);
  const sonde_cute_t *out = nullptr;
  const sonde_status status =
      all.cute->product(all.arena, given, static_cast<uint32_t>(how), luaL_checkstring(state, 2), &out);
  return push_found(state, all, status, out);
}

int tile_to_shape(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_cute_t *const given = check_cute(state, all, 1);
  const sonde_cute_t *out = nullptr;
  const sonde_status status = all.cute->tile_to_shape(all.arena, given, luaL_checkstring(state, 2), nullptr, 0, &out);
  return push_found(state, all, status, out);
}

int recast(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_cute_t *const given = check_cute(state, all, 1);
  const sonde_cute_t *out = nullptr;
  const sonde_status status = all.cute->recast(all.arena, given, static_cast<uint32_t>(luaL_checkinteger(state, 2)),
                                               static_cast<uint32_t>(luaL_checkinteger(state, 3)), &out);
  return push_found(state, all, status, out);
}

// apply(layout, index)
int apply(lua_State *state) {
  const Layouts &all = layouts_of(state);
  int64_t index = 0;
  check_status(state, all, all.cute->apply(check_cute(state, all, 1), luaL_checkinteger(state, 2), &index));
  all.layouts->reset(all.arena);
  lua_pushinteger(state, index);
  return 1;
}

// size(layout): size, cosize
int size(lua_State *state) {
  const Layouts &all = layouts_of(state);
  sonde_cute_info_t info{};
  info.struct_size = sizeof(info);
  check_status(state, all, all.cute->info(check_cute(state, all, 1), &info));
  all.layouts->reset(all.arena);
  lua_pushinteger(state, info.size);
  lua_pushinteger(state, info.cosize);
  return 2;
}

// to_linear(text, {{"lane", 32}, ...}, {{"dim0", 16}, ...}); nil and the reason where it is not linear
int to_linear(lua_State *state) {
  Layouts &all = layouts_of(state);
  const char *const text = luaL_checkstring(state, 1);
  sonde_layout_dim_t sides[2][kMostDims];
  uint32_t counts[2];
  for (int side = 0; side < 2; ++side) counts[side] = check_sized_dims(state, all, side + 2, sides[side]);
  const sonde_layout_t *layout = nullptr;
  const sonde_status status = all.cute->to_linear(all.arena, text, sides[0], counts[0], sides[1], counts[1], &layout);
  if (status == SONDE_E_NO_SOLUTION) return push_found(state, all, status, nullptr);
  check_status(state, all, status);
  return push_layout(state, all, layout);
}

// from_linear(layout [, "strides" | "swizzled" | "xor"]): text, form; nil and the reason
int from_linear(lua_State *state) {
  static const char *const words[] = {"strides", "swizzled", "xor", nullptr};
  const Layouts &all = layouts_of(state);
  const sonde_layout_t *const layout = check_layout(state, 1);
  const int most = luaL_checkoption(state, 2, "xor", words);
  uint32_t form = 0;
  char room[4096];
  uint64_t needed = 0;
  const sonde_status status =
      all.cute->from_linear(all.arena, layout, static_cast<uint32_t>(most), &form, room, sizeof(room), &needed);
  if (status == SONDE_E_NO_SOLUTION) return push_found(state, all, status, nullptr);
  check_status(state, all, status);
  lua_pushlstring(state, room, needed);
  lua_pushstring(state, words[form < 3 ? form : 0]);
  return 2;
}

const luaL_Reg kCuteFunctions[] = {
    {"coalesce", transform<SONDE_CUTE_COALESCE>},
    {"flatten", transform<SONDE_CUTE_FLATTEN>},
    {"filter_zeros", transform<SONDE_CUTE_FILTER_ZEROS>},
    {"filter", transform<SONDE_CUTE_FILTER>},
    {"right_inverse", transform<SONDE_CUTE_RIGHT_INVERSE>},
    {"left_inverse", transform<SONDE_CUTE_LEFT_INVERSE>},
    {"nullspace", transform<SONDE_CUTE_NULLSPACE>},
    {"compose", compose},
    {"complement", complement},
    {"divide", divide},
    {"product", product},
    {"tile_to_shape", tile_to_shape},
    {"recast", recast},
    {"apply", apply},
    {"size", size},
    {"to_linear", to_linear},
    {"from_linear", from_linear},
    {nullptr, nullptr},
};

// ---- Searches ----

uint64_t number_field(lua_State *state, const char *name, uint64_t missing) {
  uint64_t value = missing;
  if (lua_getfield(state, 1, name) != LUA_TNIL) {
    if (lua_isinteger(state, -1) == 0 || lua_tointeger(state, -1) < 0) {
      luaL_error(state, "find_registers: %s must be an integer from 0 on", name);
    }
    value = static_cast<uint64_t>(lua_tointeger(state, -1));
  }
  lua_pop(state, 1);
  return value;
}

const uint64_t *list_field(lua_State *state, const char *name, uint32_t rank, uint64_t *room) {
  const bool is_there = lua_getfield(state, 1, name) != LUA_TNIL;
  if (is_there && check_integers(state, lua_gettop(state), room) != rank) {
    luaL_error(state, "find_registers: %s needs one value for each dim of the shape", name);
  }
  lua_pop(state, 1);
  return is_there ? room : nullptr;
}

// find_registers{shape = {64, 64}, bits = 16, lanes = 32, warps = 4, registers =, order =, vector_bits =, lane_run =,
// contiguous =, warps_per_dim =, memory =}; nil and the reason where there is none
int find_registers(lua_State *state) {
  Layouts &all = layouts_of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  uint64_t lists[4][kMostDims];
  uint32_t order[kMostDims];
  sonde_register_request_t request{};
  request.struct_size = sizeof(request);
  if (lua_getfield(state, 1, "shape") != LUA_TTABLE) return luaL_error(state, "find_registers: shape is missing");
  request.rank = check_integers(state, lua_gettop(state), lists[0]);
  request.shape = lists[0];
  lua_pop(state, 1);
  request.element_bits = static_cast<uint32_t>(number_field(state, "bits", 32));
  request.lanes = static_cast<uint32_t>(number_field(state, "lanes", 32));
  request.warps = static_cast<uint32_t>(number_field(state, "warps", 4));
  request.banks = static_cast<uint32_t>(number_field(state, "banks", 0));
  request.registers = number_field(state, "registers", 0);
  request.vector_bits = static_cast<uint32_t>(number_field(state, "vector_bits", 0));
  request.lane_run = number_field(state, "lane_run", 0);
  request.contiguous = list_field(state, "contiguous", request.rank, lists[1]);
  request.warps_per_dim = list_field(state, "warps_per_dim", request.rank, lists[2]);
  if (list_field(state, "order", request.rank, lists[3]) != nullptr) {
    for (uint32_t i = 0; i < request.rank; ++i) order[i] = static_cast<uint32_t>(lists[3][i]);
    request.order = order;
  }
  if (lua_getfield(state, 1, "memory") != LUA_TNIL) request.memory = check_layout(state, lua_gettop(state));
  const sonde_layout_t *layout = nullptr;
  const sonde_status status = all.searches->registers(all.arena, &request, &layout);
  if (status == SONDE_E_NO_SOLUTION) return push_found(state, all, status, nullptr);
  check_status(state, all, status);
  return push_layout(state, all, layout);
}

// find_memory(a, b or nil, bits [, vector_bits [, banks]])
int find_memory(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *const a = check_layout(state, 1);
  const sonde_layout_t *const b = lua_isnoneornil(state, 2) ? nullptr : check_layout(state, 2);
  const sonde_layout_t *layout = nullptr;
  const sonde_status status = all.searches->memory(all.arena, a, b, static_cast<uint32_t>(luaL_checkinteger(state, 3)),
                                                   static_cast<uint32_t>(luaL_optinteger(state, 4, 0)),
                                                   static_cast<uint32_t>(luaL_optinteger(state, 5, 0)), &layout);
  if (status == SONDE_E_NO_SOLUTION) return push_found(state, all, status, nullptr);
  check_status(state, all, status);
  return push_layout(state, all, layout);
}

}  // namespace

const luaL_Reg kSearchFunctions[] = {
    {"find_registers", find_registers},
    {"find_memory", find_memory},
    {nullptr, nullptr},
};

void push_cute_library(lua_State *state) {
  lua_newtable(state);
  luaL_setfuncs(state, kCuteFunctions, 0);
}

}  // namespace sonde::lua
