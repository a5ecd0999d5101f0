#include "glue.h"

namespace sonde::lua {

void register_batches(lua_State *state);
void register_groups(lua_State *state);
void register_rows(lua_State *state);
void register_results(lua_State *state);

namespace {

template <typename Service>
bool fetch_one(const sonde_host_t *host, const char *id, uint32_t needed, const Service *&out) {
  const void *table = nullptr;
  if (host->get_service(id, needed, &table) < 0) return false;
  out = static_cast<const Service *>(table);
  return true;
}

}  // namespace

bool fetch(Context &context, const sonde_host_t *host) {
  context.host = host;
  return fetch_one(host, SONDE_CAPTURE_SERVICE, SONDE_NEED(sonde_capture_service_t, schema), context.capture) &&
         fetch_one(host, SONDE_COLUMNS_SERVICE, SONDE_NEED(sonde_columns_service_t, group_count), context.columns) &&
         fetch_one(host, SONDE_RESULT_SERVICE, SONDE_NEED(sonde_result_service_t, finding_at), context.results) &&
         fetch_one(host, SONDE_SESSION_SERVICE, SONDE_NEED(sonde_session_service_t, losses), context.sessions);
}

void register_objects(lua_State *state) {
  register_batches(state);
  register_groups(state);
  register_rows(state);
  register_results(state);
}

int raise_last_error(lua_State *state, const Context &context) {
  const char *const text = context.host->last_error();
  return luaL_error(state, "%s", text[0] == '\0' ? "the call failed without a reason" : text);
}

void make_class(lua_State *state, const char *name, const luaL_Reg *methods, const luaL_Reg *metamethods) {
  luaL_newmetatable(state, name);
  if (metamethods != nullptr) luaL_setfuncs(state, metamethods, 0);
  // A script that got at the metatable could call __gc with an object of another class.
  lua_pushstring(state, name);
  lua_setfield(state, -2, "__metatable");
  if (methods != nullptr) {
    lua_newtable(state);
    luaL_setfuncs(state, methods, 0);
    lua_setfield(state, -2, "__index");
  }
  lua_pop(state, 1);
}

void push_value(lua_State *state, const sonde_value_t &value) {
  switch (value.kind) {
    case SONDE_VALUE_I64:
    case SONDE_VALUE_U64:
      lua_pushinteger(state, value.as.i64);
      break;
    case SONDE_VALUE_F64:
      lua_pushnumber(state, value.as.f64);
      break;
    case SONDE_VALUE_TEXT:
      lua_pushlstring(state, value.as.text, value.count);
      break;
    case SONDE_VALUE_BOOL:
      lua_pushboolean(state, value.as.u64 != 0);
      break;
    case SONDE_VALUE_BYTES:
      lua_pushlstring(state, static_cast<const char *>(value.as.pointer), value.count);
      break;
    default:
      lua_pushnil(state);
      break;
  }
}

}  // namespace sonde::lua
