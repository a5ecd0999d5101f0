#include <cmath>
#include <cstdio>
#include <cstring>

#include "module.h"

namespace sonde::lua {
namespace {

constexpr int kMaxDepth = 32;

void add_text(luaL_Buffer *out, const char *text, size_t length) {
  luaL_addchar(out, '"');
  for (size_t index = 0; index < length; ++index) {
    const auto letter = static_cast<unsigned char>(text[index]);
    if (letter == '"' || letter == '\\') {
      luaL_addchar(out, '\\');
      luaL_addchar(out, text[index]);
    } else if (letter < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", letter);
      luaL_addstring(out, escaped);
    } else {
      luaL_addchar(out, text[index]);
    }
  }
  luaL_addchar(out, '"');
}

// Pushes the text of the value at `index`.
void push_node(lua_State *state, int index, int depth) {
  luaL_checkstack(state, 12, "options");
  if (depth > kMaxDepth) luaL_error(state, "options: nested deeper than %d", kMaxDepth);
  const int value = lua_absindex(state, index);
  switch (lua_type(state, value)) {
    case LUA_TBOOLEAN:
      lua_pushstring(state, lua_toboolean(state, value) != 0 ? "true" : "false");
      return;
    case LUA_TNUMBER: {
      char text[40];
      if (lua_isinteger(state, value) != 0) {
        std::snprintf(text, sizeof(text), "%lld", static_cast<long long>(lua_tointeger(state, value)));
      } else {
        if (!std::isfinite(lua_tonumber(state, value))) luaL_error(state, "options: a number must be finite");
        std::snprintf(text, sizeof(text), "%.17g", lua_tonumber(state, value));
      }
      lua_pushstring(state, text);
      return;
    }
    case LUA_TSTRING: {
      size_t length = 0;
      const char *const text = lua_tolstring(state, value, &length);
      luaL_Buffer out;
      luaL_buffinit(state, &out);
      add_text(&out, text, length);
      luaL_pushresult(&out);
      return;
    }
    case LUA_TTABLE:
      break;
    default:
      luaL_error(state, "options: a %s has no place here", luaL_typename(state, value));
  }
  // The text grows as a Lua string: a buffer may not lie below the recursion.
  const lua_Unsigned count = lua_rawlen(state, value);
  lua_pushstring(state, count != 0 ? "[" : "{");
  if (count != 0) {
    for (lua_Unsigned element = 1; element <= count; ++element) {
      if (element != 1) lua_pushliteral(state, ",");
      lua_rawgeti(state, value, static_cast<lua_Integer>(element));
      push_node(state, -1, depth + 1);
      lua_remove(state, -2);
      lua_concat(state, element != 1 ? 3 : 2);
    }
    lua_pushliteral(state, "]");
    lua_concat(state, 2);
    return;
  }
  const int text = lua_gettop(state);
  bool first = true;
  lua_pushnil(state);
  while (lua_next(state, value) != 0) {
    if (lua_type(state, -2) != LUA_TSTRING) luaL_error(state, "options: keys are names, or 1 to n");
    push_node(state, -1, depth + 1);
    lua_remove(state, -2);            // text key entry
    push_node(state, -2, depth + 1);  // text key entry name
    lua_pushvalue(state, text);
    lua_pushstring(state, first ? "" : ",");
    lua_pushvalue(state, -3);
    lua_pushliteral(state, ":");
    lua_pushvalue(state, -6);
    lua_concat(state, 5);
    lua_replace(state, text);
    lua_pop(state, 2);
    first = false;
  }
  lua_pushliteral(state, "}");
  lua_concat(state, 2);
}

}  // namespace

void push_yaml(lua_State *state, int index) { push_node(state, index, 0); }

}  // namespace sonde::lua
