// What a script may call of Lua's own libraries: an allow list, with guards where a call could run for ever inside C,
// where no hook can reach it, or outside the deadline:
//   __gc             finalizers run with hooks off: setmetatable refuses them
//   xpcall           its handler runs with hooks off when the error came from the hook: not called once time is up
//   table.*          lengths may be made up (by __len, or by a sparse table) and are walked in C: capped, no __len
//   string.*         see patterns.cpp
//   load             text only; dofile, loadfile, require, io, os, debug and string.dump are absent
#include <cstring>
#include <initializer_list>

#include "script.h"

namespace sonde::lua {
namespace {

constexpr lua_Integer kMaxElements = lua_Integer{1} << 24;  // of a table that a C function walks

int sandbox_print(lua_State *state) {
  luaL_Buffer line;
  const int count = lua_gettop(state);
  luaL_buffinit(state, &line);
  for (int index = 1; index <= count; ++index) {
    luaL_tolstring(state, index, nullptr);
    if (index > 1) {
      lua_pushliteral(state, "\t");
      lua_insert(state, -2);
      lua_concat(state, 2);
    }
    luaL_addvalue(&line);
  }
  luaL_pushresult(&line);
  Script &script = Script::of(state);
  script.context().host->log(SONDE_LOG_INFO, script.settings().name.c_str(), lua_tostring(state, -1));
  return 0;
}

int sandbox_setmetatable(lua_State *state) {
  if (lua_type(state, 2) == LUA_TTABLE) {
    lua_pushliteral(state, "__gc");
    if (lua_rawget(state, 2) != LUA_TNIL) return luaL_error(state, "finalizers (__gc) are not available to scripts");
    lua_pop(state, 1);
  }
  return lua_tocfunction(state, lua_upvalueindex(1))(state);
}

// Upvalue 1: the script's handler.
int guarded_handler(lua_State *state) {
  if (Script::of(state).deadline().expired()) return 1;
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, lua_gettop(state) - 1, 1);
  return 1;
}

int sandbox_xpcall(lua_State *state) {
  luaL_checktype(state, 2, LUA_TFUNCTION);
  lua_pushvalue(state, 2);
  lua_pushcclosure(state, guarded_handler, 1);
  lua_replace(state, 2);
  return lua_tocfunction(state, lua_upvalueindex(1))(state);
}

int sandbox_load(lua_State *state) {
  lua_settop(state, 4);
  const bool has_environment = !lua_isnil(state, 4);
  lua_pushliteral(state, "t");
  lua_replace(state, 3);
  if (!has_environment) lua_settop(state, 3);
  return lua_tocfunction(state, lua_upvalueindex(1))(state);
}

// "count" (kilobytes) and "collect" only: the rest would let a script stop the collector.
int sandbox_collectgarbage(lua_State *state) {
  static const char *const kOptions[] = {"collect", "count", nullptr};
  if (luaL_checkoption(state, 1, "collect", kOptions) == 0) {
    lua_gc(state, LUA_GCCOLLECT);
    lua_pushinteger(state, 0);
  } else {
    lua_pushnumber(state, static_cast<double>(Script::of(state).memory().used()) / 1024);
  }
  return 1;
}

// Checks the table at argument 1 for a walk in C, then calls the original.
int sandbox_table_walk(lua_State *state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  if (luaL_getmetafield(state, 1, "__len") != LUA_TNIL) {
    return luaL_error(state, "the table library does not take tables with __len here");
  }
  if (lua_rawlen(state, 1) > static_cast<lua_Unsigned>(kMaxElements)) {
    return luaL_error(state, "the table is too long (more than %I elements)", kMaxElements);
  }
  return lua_tocfunction(state, lua_upvalueindex(1))(state);
}

int sandbox_table_move(lua_State *state) {
  const lua_Integer first = luaL_checkinteger(state, 2);
  const lua_Integer last = luaL_checkinteger(state, 3);
  if (last >= first && (first < 0 ? last >= first + kMaxElements : last - first >= kMaxElements)) {
    return luaL_error(state, "too many elements to move (more than %I)", kMaxElements);
  }
  return lua_tocfunction(state, lua_upvalueindex(1))(state);
}

// Replaces `name` in the table on top by `guard`, with the original C function as upvalue 1.
void guard(lua_State *state, const char *name, lua_CFunction function) {
  lua_getfield(state, -1, name);
  lua_pushcclosure(state, function, 1);
  lua_setfield(state, -2, name);
}

void remove(lua_State *state, const char *name) {
  lua_pushnil(state);
  lua_setfield(state, -2, name);
}

}  // namespace

void open_sandbox(lua_State *state) {
  luaL_requiref(state, LUA_GNAME, luaopen_base, 1);
  for (const char *const name : {"dofile", "loadfile", "warn"}) remove(state, name);
  guard(state, "setmetatable", sandbox_setmetatable);
  guard(state, "xpcall", sandbox_xpcall);
  guard(state, "load", sandbox_load);
  lua_pushcfunction(state, sandbox_print);
  lua_setfield(state, -2, "print");
  lua_pushcfunction(state, sandbox_collectgarbage);
  lua_setfield(state, -2, "collectgarbage");
  lua_pop(state, 1);

  luaL_requiref(state, LUA_TABLIBNAME, luaopen_table, 1);
  for (const char *const name : {"insert", "remove", "concat", "sort", "unpack"}) {
    guard(state, name, sandbox_table_walk);
  }
  guard(state, "move", sandbox_table_move);
  lua_pop(state, 1);

  luaL_requiref(state, LUA_STRLIBNAME, luaopen_string, 1);
  remove(state, "dump");
  open_patterns(state);
  lua_pop(state, 1);
  // The metatable of all strings: a script must not reach it.
  lua_pushliteral(state, "");
  lua_getmetatable(state, -1);
  lua_pushliteral(state, "string");
  lua_setfield(state, -2, "__metatable");
  lua_pop(state, 2);

  luaL_requiref(state, LUA_MATHLIBNAME, luaopen_math, 1);
  // The same numbers in every run, so that reports repeat.
  lua_getfield(state, -1, "randomseed");
  lua_pushinteger(state, 0);
  lua_call(state, 1, 0);
  lua_pop(state, 1);
  luaL_requiref(state, LUA_UTF8LIBNAME, luaopen_utf8, 1);
  lua_pop(state, 1);
  // What requiref noted down is of no use without require.
  lua_pushnil(state);
  lua_setfield(state, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
}

}  // namespace sonde::lua
