// Layouts whose dims have any size: sonde.layout.modular.
#include <cstring>

#include "glue.h"
#include "layouts.h"

namespace sonde::lua {
namespace {

constexpr const char *kModularClass = "sonde.modular";

const sonde_modular_layout_t *check_modular(lua_State *state, int index) {
  return static_cast<const sonde_modular_layout_t *>(luaL_checkudata(state, index, kModularClass));
}

// Pushes a copy of a layout of the arena and empties the arena; nil and the reason where there is none.
int push_modular(lua_State *state, const Layouts &all, sonde_status status, const sonde_modular_layout_t *layout) {
  if (status == SONDE_E_NO_SOLUTION) {
    all.layouts->reset(all.arena);
    lua_pushnil(state);
    lua_pushstring(state, all.host->last_error());
    return 2;
  }
  check_status(state, all, status);
  uint64_t needed = 0;
  const sonde_modular_layout_t *placed = nullptr;
  (void)all.modular->place(layout, nullptr, 0, &needed, &placed);
  void *const memory = lua_newuserdatauv(state, needed, 0);
  check_status(state, all, all.modular->place(layout, memory, needed, &needed, &placed));
  luaL_setmetatable(state, kModularClass);
  all.layouts->reset(all.arena);
  return 1;
}

// {name, size} at the top of the stack; sizes need not be powers of two.
sonde_modular_dim_t check_dim_and_size(lua_State *state, const Layouts &all) {
  if (!lua_istable(state, -1)) luaL_error(state, "modular: a dim is {name, size, ...}");
  sonde_modular_dim_t dim{};
  lua_geti(state, -1, 1);
  dim.name = check_dim(state, all, lua_gettop(state));
  lua_geti(state, -2, 2);
  dim.size = static_cast<uint64_t>(luaL_checkinteger(state, -1));
  lua_pop(state, 2);
  return dim;
}

// modular{{"register", 3, {1, 2}}, {"lane", 32, {3, 6, 12, 24, 48}}, out = {{"dim0", 96}}}: a basis for each bit of
// size - 1, an integer or a list with a value for each out dim
int make_modular(lua_State *state) {
  const Layouts &all = layouts_of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_settop(state, 1);
  sonde_modular_dim_t ins[kMostDims];
  sonde_modular_dim_t outs[kMostDims];
  if (lua_getfield(state, 1, "out") != LUA_TTABLE)
    return luaL_error(state, "modular: out = {{name, size}, ...} is missing");
  const lua_Integer out_count = luaL_len(state, 2);
  const lua_Integer in_count = luaL_len(state, 1);
  if (out_count > kMostDims || in_count > kMostDims) {
    return luaL_error(state, "more than %d dims", static_cast<int>(kMostDims));
  }
  for (lua_Integer i = 1; i <= out_count; ++i) {
    lua_geti(state, 2, i);
    outs[i - 1] = check_dim_and_size(state, all);
    lua_pop(state, 1);
  }
  auto *const values = static_cast<uint64_t *>(lua_newuserdatauv(state, 64 * kMostDims * sizeof(uint64_t), 0));
  uint64_t rows = 0;
  for (lua_Integer i = 1; i <= in_count; ++i) {
    lua_geti(state, 1, i);
    ins[i - 1] = check_dim_and_size(state, all);
    uint64_t bits = 0;
    for (uint64_t rest = ins[i - 1].size == 0 ? 0 : ins[i - 1].size - 1; rest != 0; rest >>= 1) ++bits;
    if (lua_geti(state, -1, 3) != LUA_TTABLE || luaL_len(state, -1) != static_cast<lua_Integer>(bits)) {
      return luaL_error(state, "modular: in dim %I needs %d bases, one for each bit of its size - 1", i,
                        static_cast<int>(bits));
    }
    if (rows + bits > 64) return luaL_error(state, "more than 64 bases");
    for (uint64_t b = 1; b <= bits; ++b, ++rows) {
      lua_geti(state, -1, static_cast<lua_Integer>(b));
      uint64_t *const row = values + rows * static_cast<uint64_t>(out_count);
      if (out_count == 1 && lua_isinteger(state, -1) != 0) {
        row[0] = static_cast<uint64_t>(lua_tointeger(state, -1));
      } else {
        if (!lua_istable(state, -1) || luaL_len(state, -1) != out_count) {
          return luaL_error(state, "modular: a basis of in dim %I must have a value for each out dim", i);
        }
        check_integers(state, lua_gettop(state), row);
      }
      lua_pop(state, 1);
    }
    lua_pop(state, 2);
  }
  const sonde_modular_layout_t *layout = nullptr;
  const sonde_status status = all.modular->make(all.arena, ins, static_cast<uint32_t>(in_count), outs,
                                                static_cast<uint32_t>(out_count), values, &layout);
  return push_modular(state, all, status, layout);
}

uint32_t dim_count(lua_State *state, const Layouts &all, uint32_t side) {
  uint32_t count = 0;
  check_status(state, all, all.modular->dims(check_modular(state, 1), side, nullptr, 0, &count));
  return count;
}

int push_values(lua_State *state, const uint64_t *values, uint32_t count) {
  luaL_checkstack(state, static_cast<int>(count), nullptr);
  for (uint32_t i = 0; i < count; ++i) lua_pushinteger(state, static_cast<lua_Integer>(values[i]));
  return static_cast<int>(count);
}

// layout(register, lane, ...): the out values
int call(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const uint32_t count = dim_count(state, all, SONDE_SIDE_IN);
  uint64_t values[kMostDims];
  uint64_t out[kMostDims];
  luaL_argcheck(state, lua_gettop(state) == static_cast<int>(count) + 1, 2, "one value for each in dim is needed");
  for (uint32_t i = 0; i < count; ++i) {
    values[i] = static_cast<uint64_t>(luaL_checkinteger(state, static_cast<int>(i) + 2));
  }
  check_status(state, all, all.modular->apply(check_modular(state, 1), values, out));
  return push_values(state, out, dim_count(state, all, SONDE_SIDE_OUT));
}

// layout:solve(out values...): an input, one value after the other; nil and the reason
int solve(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const uint32_t count = dim_count(state, all, SONDE_SIDE_OUT);
  uint64_t values[kMostDims];
  uint64_t input[kMostDims];
  luaL_argcheck(state, lua_gettop(state) == static_cast<int>(count) + 1, 2, "one value for each out dim is needed");
  for (uint32_t i = 0; i < count; ++i) {
    values[i] = static_cast<uint64_t>(luaL_checkinteger(state, static_cast<int>(i) + 2));
  }
  const sonde_status status = all.modular->solve(all.arena, check_modular(state, 1), values, input);
  if (status == SONDE_E_NO_SOLUTION) return push_modular(state, all, status, nullptr);
  check_status(state, all, status);
  return push_values(state, input, dim_count(state, all, SONDE_SIDE_IN));
}

template <auto member>
int binary(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_modular_layout_t *layout = nullptr;
  const sonde_status status =
      (all.modular->*member)(all.arena, check_modular(state, 1), check_modular(state, 2), &layout);
  return push_modular(state, all, status, layout);
}

int invert(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_modular_layout_t *layout = nullptr;
  const sonde_status status = all.modular->invert(all.arena, check_modular(state, 1), &layout);
  return push_modular(state, all, status, layout);
}

// The linear layout; nil and the reason where a size is no power of two
int to_linear(lua_State *state) {
  Layouts &all = layouts_of(state);
  const sonde_layout_t *layout = nullptr;
  const sonde_status status = all.modular->to_linear(all.arena, check_modular(state, 1), &layout);
  if (status == SONDE_E_NO_SOLUTION) return push_modular(state, all, status, nullptr);
  check_status(state, all, status);
  return push_layout(state, all, layout);
}

int equal(lua_State *state) {
  const Layouts &all = layouts_of(state);
  uint32_t same = 0;
  check_status(state, all, all.modular->equal(check_modular(state, 1), check_modular(state, 2), &same));
  lua_pushboolean(state, same != 0 ? 1 : 0);
  return 1;
}

int print(lua_State *state) {
  const Layouts &all = layouts_of(state);
  const sonde_modular_layout_t *const own = check_modular(state, 1);
  uint64_t needed = 0;
  check_status(state, all, all.modular->print(own, nullptr, 0, &needed));
  luaL_Buffer buffer;
  char *const room = luaL_buffinitsize(state, &buffer, needed + 1);
  check_status(state, all, all.modular->print(own, room, needed + 1, &needed));
  luaL_pushresultsize(&buffer, needed);
  return 1;
}

const luaL_Reg kMethods[] = {
    {"product", binary<&sonde_layout_modular_service_t::product>},
    {"compose", binary<&sonde_layout_modular_service_t::compose>},
    {"invert_and_compose", binary<&sonde_layout_modular_service_t::invert_and_compose>},
    {"invert", invert},
    {"solve", solve},
    {"to_linear", to_linear},
    {"print", print},
    {nullptr, nullptr},
};

const luaL_Reg kMetamethods[] = {
    {"__mul", binary<&sonde_layout_modular_service_t::product>},
    {"__eq", equal},
    {"__call", call},
    {"__tostring", print},
    {nullptr, nullptr},
};

}  // namespace

void push_modular_function(lua_State *state) {
  make_class(state, kModularClass, kMethods, kMetamethods);
  lua_pushcfunction(state, make_modular);
}

}  // namespace sonde::lua
