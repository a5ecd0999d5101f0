// sonde.subscribe, and the reading functions that stand in the table `sonde`.
#include <cstring>
#include <ctime>
#include <new>

#include "script.h"

namespace sonde::lua {
namespace {

const sonde_record_type_t *type_at(const sonde_schema_t &schema, uint32_t index) {
  return reinterpret_cast<const sonde_record_type_t *>(reinterpret_cast<const uint8_t *>(schema.types) +
                                                       uint64_t{index} * schema.type_stride);
}

// Number of the type named on top of the stack.
uint32_t type_number(lua_State *state, const sonde_schema_t &schema) {
  const char *const name = lua_type(state, -1) == LUA_TSTRING ? lua_tostring(state, -1) : nullptr;
  if (name == nullptr) luaL_error(state, "types: names are expected, as in types={\"kernel\"}");
  for (uint32_t index = 0; index < schema.type_count; ++index) {
    if (std::strcmp(type_at(schema, index)->name, name) == 0) return type_at(schema, index)->type;
  }
  luaL_Buffer names;
  luaL_buffinit(state, &names);
  for (uint32_t index = 0; index < schema.type_count; ++index) {
    if (index != 0) luaL_addstring(&names, ", ");
    luaL_addstring(&names, type_at(schema, index)->name);
  }
  luaL_pushresult(&names);
  luaL_error(state, "types: %s has no type \"%s\"; it has %s", schema.space, name, lua_tostring(state, -1));
  return 0;
}

void check_keys(lua_State *state, int table) {
  lua_pushnil(state);
  while (lua_next(state, table) != 0) {
    lua_pop(state, 1);
    const char *const key = lua_type(state, -1) == LUA_TSTRING ? lua_tostring(state, -1) : "";
    if (std::strcmp(key, "space") != 0 && std::strcmp(key, "types") != 0 && std::strcmp(key, "on_batch") != 0) {
      luaL_error(state, "subscribe: unknown key \"%s\"; there are space, types, on_batch", key);
    }
  }
}

// sonde.subscribe{space=, types=, on_batch=}
int subscribe(lua_State *state) {
  Script &script = Script::of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_settop(state, 1);
  check_keys(state, 1);
  if (!script.is_loading()) return luaL_error(state, "subscribe while the script loads, not later");
  const Context &context = script.context();
  lua_getfield(state, 1, "space");
  lua_getfield(state, 1, "types");
  lua_getfield(state, 1, "on_batch");
  if (lua_type(state, 2) != LUA_TSTRING) return luaL_error(state, "subscribe: space is missing");
  if (!lua_isfunction(state, 4)) return luaL_error(state, "subscribe: on_batch must be a function");
  Subscription wanted;
  if (context.capture->find_space(lua_tostring(state, 2), &wanted.space) < 0) return raise_last_error(state, context);
  const sonde_schema_t *schema = nullptr;
  if (context.capture->schema(wanted.space, &schema) < 0) return raise_last_error(state, context);
  const char *only_type = "";
  if (lua_isnil(state, 3)) {
    wanted.types = UINT64_MAX;
    if (schema->type_count == 1) only_type = type_at(*schema, 0)->name;
  } else {
    luaL_checktype(state, 3, LUA_TTABLE);
    const lua_Unsigned count = lua_rawlen(state, 3);
    if (count == 0) return luaL_error(state, "subscribe: types is empty; leave it out for all types");
    for (lua_Unsigned index = 1; index <= count; ++index) {
      lua_rawgeti(state, 3, static_cast<lua_Integer>(index));
      wanted.types |= uint64_t{1} << type_number(state, *schema);
      if (count == 1) only_type = lua_tostring(state, -1);
      lua_settop(state, 4);
    }
  }
  wanted.box = push_batch(state, &context, lua_tostring(state, 2), only_type);
  wanted.batch_reference = luaL_ref(state, LUA_REGISTRYINDEX);
  lua_pushvalue(state, 4);
  wanted.function_reference = luaL_ref(state, LUA_REGISTRYINDEX);
  bool kept = true;
  try {
    script.subscriptions().push_back(wanted);
  } catch (const std::bad_alloc &) {
    kept = false;
  }
  if (!kept) return luaL_error(state, "not enough memory");
  return 0;
}

// sonde.text(batch, id)
int text(lua_State *state) {
  luaL_checkudata(state, 1, kBatchClass);
  lua_getfield(state, 1, "text");
  lua_insert(state, 1);
  lua_call(state, lua_gettop(state) - 1, 1);
  return 1;
}

// ns of the monotonic clock, for measuring.
int now_ns(lua_State *state) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  lua_pushinteger(state, now.tv_sec * lua_Integer{1000000000} + now.tv_nsec);
  return 1;
}

}  // namespace

void open_subscribe(lua_State *state) {
  lua_pushcfunction(state, subscribe);
  lua_setfield(state, -2, "subscribe");
  lua_pushcfunction(state, text);
  lua_setfield(state, -2, "text");
  lua_pushcfunction(state, now_ns);
  lua_setfield(state, -2, "now_ns");
  for (const luaL_Reg &reader : {luaL_Reg{"groups", new_groups}, luaL_Reg{"results", results},
                                 luaL_Reg{"findings", findings}, luaL_Reg{"losses", losses}}) {
    lua_pushlightuserdata(state, &Script::of(state).context());
    lua_pushcclosure(state, reader.func, 1);
    lua_setfield(state, -2, reader.name);
  }
}

}  // namespace sonde::lua
