// A configuration tree as Lua values: maps and lists as tables; scalars as integer, float, boolean or text, in this
// order of preference.
#include <cstdio>
#include <cstring>

#include "script.h"

namespace sonde::lua {
namespace {

constexpr int kMaxDepth = 32;

void push_scalar(lua_State *state, const sonde_config_service_t &config, const sonde_config_t *node) {
  int64_t integer = 0;
  double number = 0;
  uint32_t flag = 0;
  const char *text = nullptr;
  if (config.get_i64(node, "", &integer) >= 0) {
    lua_pushinteger(state, integer);
  } else if (config.get_f64(node, "", &number) >= 0) {
    lua_pushnumber(state, number);
  } else if (config.get_bool(node, "", &flag) >= 0) {
    lua_pushboolean(state, flag != 0);
  } else if (config.get_text(node, "", &text) >= 0 && text != nullptr) {
    lua_pushstring(state, text);
  } else {
    lua_pushnil(state);
  }
}

void push_node(lua_State *state, const sonde_config_service_t &config, const sonde_config_t *node, int depth) {
  if (depth > kMaxDepth) luaL_error(state, "options: nested deeper than %d", kMaxDepth);
  luaL_checkstack(state, 4, "options");
  uint64_t count = 0;
  if (node == nullptr || config.count(node, "", &count) < 0 || count == 0) {
    if (depth == 0) {
      lua_newtable(state);
    } else {
      push_scalar(state, config, node);
    }
    return;
  }
  const char *key = nullptr;
  const bool is_map = config.key(node, "", 0, &key) >= 0;
  lua_newtable(state);
  for (uint64_t index = 0; index < count; ++index) {
    char place[24];
    std::snprintf(place, sizeof(place), "%llu", static_cast<unsigned long long>(index));
    const char *path = place;
    if (is_map && config.key(node, "", index, &path) < 0) continue;
    const sonde_config_t *child = nullptr;
    if (config.child(node, path, &child) < 0) continue;
    push_node(state, config, child, depth + 1);
    if (is_map) {
      lua_setfield(state, -2, path);
    } else {
      lua_rawseti(state, -2, static_cast<lua_Integer>(index) + 1);
    }
  }
}

}  // namespace

void push_options(lua_State *state, const sonde_config_service_t &config, const sonde_config_t *tree) {
  push_node(state, config, tree, 0);
}

}  // namespace sonde::lua
