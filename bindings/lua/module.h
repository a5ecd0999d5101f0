// The module `sonde` for a stock Lua 5.4. README.md documents it.
//
// That interpreter is compiled as C: an error jumps over frames. So C++ objects with destructors live only in functions
// that never raise; those report into an Outcome, and their caller raises.
#pragma once

#include <lua.hpp>

#include <sonde/sonde.h>
#include <sonde/toolkit/lua/glue.h>
#include <sonde/toolkit/lua/layouts.h>

namespace sonde::lua {

struct Module {
  const sonde_host_t *host = nullptr;
  const sonde_config_service_t *config = nullptr;
  const sonde_delivery_service_t *delivery = nullptr;
  const sonde_report_service_t *report = nullptr;
  const sonde_run_service_t *run = nullptr;
  const sonde_session_service_t *session = nullptr;
  const sonde_store_service_t *store = nullptr;
};

// The services, fetched when the module is opened.
const Module &module();

// A Context that lives as long as the Lua state: objects that refer to it may outlive their run.
Context *new_context(lua_State *state);

inline constexpr const char *kCaptureClass = "sonde.capture";
inline constexpr uint32_t kPathBytes = 4096;

struct CaptureBox {
  sonde_capture_t *capture;  // null: closed
  char path[kPathBytes];
};

// The open capture at argument 1.
CaptureBox *check_capture(lua_State *state);

// sonde.open(path), and the methods of captures and runs (capture.cpp).
void register_captures(lua_State *state);
int open_capture(lua_State *state);

// capture:batches{...} (batches.cpp).
void register_pullers(lua_State *state);
int capture_batches(lua_State *state);

// Pushes the table at `index` as JSON text, which is YAML too (yaml.cpp).
void push_yaml(lua_State *state, int index);

}  // namespace sonde::lua
