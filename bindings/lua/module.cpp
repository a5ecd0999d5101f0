#include "module.h"

#include <cstring>

namespace sonde::lua {
namespace {

Module fetched;

template <typename Service>
void fetch_service(lua_State *state, const char *id, uint32_t needed, const Service *&out) {
  const void *table = nullptr;
  if (fetched.host->get_service(id, needed, &table) < 0) {
    luaL_error(state, "libsonde has no %s: %s", id, fetched.host->last_error());
  }
  out = static_cast<const Service *>(table);
}

// sonde.text(batch, id)
int text(lua_State *state) {
  luaL_checkudata(state, 1, kBatchClass);
  lua_getfield(state, 1, "text");
  lua_insert(state, 1);
  lua_call(state, lua_gettop(state) - 1, 1);
  return 1;
}

}  // namespace

const Module &module() { return fetched; }

Context *new_context(lua_State *state) {
  auto *const place = static_cast<Context *>(lua_newuserdatauv(state, sizeof(Context), 0));
  *place = Context{};
  luaL_ref(state, LUA_REGISTRYINDEX);
  if (!fetch(*place, fetched.host)) raise_last_error(state, *place);
  return place;
}

}  // namespace sonde::lua

extern "C" SONDE_EXPORTED int luaopen_sonde(lua_State *state) {
  using namespace sonde::lua;
  luaL_checkversion(state);
  fetched.host = sonde_host();
  fetch_service(state, SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, release), fetched.config);
  fetch_service(state, SONDE_DELIVERY_SERVICE, SONDE_NEED(sonde_delivery_service_t, unsubscribe), fetched.delivery);
  fetch_service(state, SONDE_REPORT_SERVICE, SONDE_NEED(sonde_report_service_t, render), fetched.report);
  fetch_service(state, SONDE_RUN_SERVICE, SONDE_NEED(sonde_run_service_t, close), fetched.run);
  fetch_service(state, SONDE_SESSION_SERVICE, SONDE_NEED(sonde_session_service_t, losses), fetched.session);
  fetch_service(state, SONDE_STORE_SERVICE, SONDE_NEED(sonde_store_service_t, replay), fetched.store);
  register_objects(state);
  register_captures(state);
  register_pullers(state);
  lua_newtable(state);
  lua_pushcfunction(state, open_capture);
  lua_setfield(state, -2, "open");
  lua_pushcfunction(state, text);
  lua_setfield(state, -2, "text");
  push_u64_library(state);
  lua_setfield(state, -2, "u64");
  push_layout_library(state, fetched.host);
  lua_setfield(state, -2, "layout");
  const uint32_t version = sonde_version();
  lua_pushfstring(state, "%d.%d.%d", static_cast<int>(version / 1000000), static_cast<int>(version / 1000 % 1000),
                  static_cast<int>(version % 1000));
  lua_setfield(state, -2, "version");
  return 1;
}
