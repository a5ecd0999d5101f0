// Captures, and runs over them: analyses and scripts on a replay, then their results.
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "module.h"

namespace sonde::lua {
namespace {

constexpr const char *kRunClass = "sonde.run";

struct RunBox {
  sonde_run_t *run;  // null: closed
  Context *context;
};

int raise(lua_State *state) {
  const char *const text = module().host->last_error();
  return luaL_error(state, "%s", text[0] == '\0' ? "the call failed without a reason" : text);
}

// ---- Captures ----

int capture_close(lua_State *state) {
  auto *const box = static_cast<CaptureBox *>(luaL_checkudata(state, 1, kCaptureClass));
  if (box->capture != nullptr) module().store->close(box->capture);
  box->capture = nullptr;
  return 0;
}

void set_text(lua_State *state, const char *name, const char *text) {
  lua_pushstring(state, text == nullptr ? "" : text);
  lua_setfield(state, -2, name);
}

void set_integer(lua_State *state, const char *name, uint64_t number) {
  lua_pushinteger(state, static_cast<lua_Integer>(number));
  lua_setfield(state, -2, name);
}

// Array of {path=, host=, program=, ...}, one for each process.
int capture_sources(lua_State *state) {
  const CaptureBox *const box = check_capture(state);
  uint64_t count = 0;
  if (module().store->source_count(box->capture, &count) < 0) return raise(state);
  lua_createtable(state, static_cast<int>(count), 0);
  for (uint64_t index = 0; index < count; ++index) {
    sonde_source_info_t info = {};
    info.struct_size = sizeof(info);
    if (module().store->source_at(box->capture, index, &info) < 0) return raise(state);
    lua_createtable(state, 0, 14);
    set_text(state, "path", info.path);
    set_text(state, "host", info.host);
    set_text(state, "program", info.program);
    set_text(state, "command", info.command);
    set_text(state, "boot", info.boot);
    set_text(state, "damage", info.damage);
    set_integer(state, "process", info.process);
    set_integer(state, "parent_process", info.parent_process);
    set_integer(state, "start_ns", static_cast<uint64_t>(info.start_ns));
    set_integer(state, "stop_ns", static_cast<uint64_t>(info.stop_ns));
    set_integer(state, "records", info.records);
    set_integer(state, "file_bytes", info.file_bytes);
    set_integer(state, "damaged_bytes", info.damaged_bytes);
    lua_pushboolean(state, info.complete != 0);
    lua_setfield(state, -2, "complete");
    lua_rawseti(state, -2, static_cast<lua_Integer>(index) + 1);
  }
  return 1;
}

// ---- Runs ----

RunBox *check_run(lua_State *state) {
  auto *const box = static_cast<RunBox *>(luaL_checkudata(state, 1, kRunClass));
  if (box->run == nullptr) luaL_error(state, "the run is closed");
  return box;
}

int run_close(lua_State *state) {
  auto *const box = static_cast<RunBox *>(luaL_checkudata(state, 1, kRunClass));
  if (box->run == nullptr) return 0;
  box->context->session = nullptr;
  module().run->close(box->run);
  box->run = nullptr;
  return 0;
}

// Calls one of the shared readers, which take the context as their upvalue.
int read_with(lua_State *state, lua_CFunction reader) {
  const RunBox *const box = check_run(state);
  lua_pushlightuserdata(state, box->context);
  lua_pushcclosure(state, reader, 1);
  lua_call(state, 0, 1);
  return 1;
}

int run_tables(lua_State *state) { return read_with(state, results); }
int run_findings(lua_State *state) { return read_with(state, findings); }
int run_losses(lua_State *state) { return read_with(state, losses); }

// A text that grows outside Lua: the writer may not raise.
struct Report {
  char *text;
  size_t used;
  size_t room;
};

sonde_status append(void *user, const char *text, uint64_t bytes) {
  auto &report = *static_cast<Report *>(user);
  if (report.used + bytes > report.room) {
    const size_t room = (report.used + bytes) * 2;
    auto *const moved = static_cast<char *>(std::realloc(report.text, room));
    if (moved == nullptr) return SONDE_E_FULL;
    report.text = moved;
    report.room = room;
  }
  std::memcpy(report.text + report.used, text, bytes);
  report.used += bytes;
  return SONDE_OK;
}

int push_report(lua_State *state) {
  const auto *const report = static_cast<const Report *>(lua_touserdata(state, 1));
  lua_pushlstring(state, report->used == 0 ? "" : report->text, report->used);
  return 1;
}

// run:report("text" | "json" | "sarif" | "csv")
int run_report(lua_State *state) {
  const RunBox *const box = check_run(state);
  sonde_report_options_t options = {};
  options.struct_size = sizeof(options);
  options.format = luaL_optstring(state, 2, "text");
  options.only = luaL_optstring(state, 3, "");
  Report report = {};
  const sonde_status status = module().report->render(box->context->session, &options, append, &report);
  lua_pushcfunction(state, push_report);
  lua_pushlightuserdata(state, &report);
  const int pushed = lua_pcall(state, 1, 1, 0);
  std::free(report.text);
  if (status < 0) return raise(state);
  return pushed == LUA_OK ? 1 : lua_error(state);
}

// capture:replay{analyses={...}, scripts={...}, plugins={path={...}}}
int capture_replay(lua_State *state) {
  const CaptureBox *const capture = check_capture(state);
  lua_settop(state, 2);
  if (lua_isnil(state, 2)) {
    lua_newtable(state);
    lua_replace(state, 2);
  }
  luaL_checktype(state, 2, LUA_TTABLE);
  push_yaml(state, 2);
  auto *const box = static_cast<RunBox *>(lua_newuserdatauv(state, sizeof(RunBox), 0));
  *box = {};
  box->context = new_context(state);
  luaL_setmetatable(state, kRunClass);
  const Module &services = module();
  sonde_config_t *config = nullptr;
  if (services.config->parse(lua_tostring(state, 3), "replay", &config) < 0) return raise(state);
  sonde_status status = services.run->open(config, &box->run);
  services.config->release(config);
  if (status < 0) return raise(state);
  status = services.run->session(box->run, &box->context->session);
  if (status >= 0) status = services.run->replay(box->run, capture->path, nullptr, nullptr);
  if (status >= 0) status = services.run->finish(box->run);
  if (status < 0) return raise(state);
  return 1;
}

constexpr luaL_Reg kCaptureMethods[] = {
    {"sources", capture_sources}, {"replay", capture_replay}, {"batches", capture_batches},
    {"close", capture_close},     {nullptr, nullptr},
};
constexpr luaL_Reg kCaptureMetamethods[] = {{"__gc", capture_close}, {"__close", capture_close}, {nullptr, nullptr}};
constexpr luaL_Reg kRunMethods[] = {
    {"tables", run_tables}, {"findings", run_findings}, {"losses", run_losses},
    {"report", run_report}, {"close", run_close},       {nullptr, nullptr},
};
constexpr luaL_Reg kRunMetamethods[] = {{"__gc", run_close}, {"__close", run_close}, {nullptr, nullptr}};

}  // namespace

CaptureBox *check_capture(lua_State *state) {
  auto *const box = static_cast<CaptureBox *>(luaL_checkudata(state, 1, kCaptureClass));
  if (box->capture == nullptr) luaL_error(state, "the capture is closed");
  return box;
}

int open_capture(lua_State *state) {
  size_t length = 0;
  const char *const path = luaL_checklstring(state, 1, &length);
  luaL_argcheck(state, length < kPathBytes && std::strlen(path) == length, 1, "not a path");
  auto *const box = static_cast<CaptureBox *>(lua_newuserdatauv(state, sizeof(CaptureBox), 0));
  box->capture = nullptr;
  std::memcpy(box->path, path, length + 1);
  luaL_setmetatable(state, kCaptureClass);
  if (module().store->open(path, &box->capture) < 0) return raise(state);
  return 1;
}

void register_captures(lua_State *state) {
  make_class(state, kCaptureClass, kCaptureMethods, kCaptureMetamethods);
  make_class(state, kRunClass, kRunMethods, kRunMetamethods);
}

}  // namespace sonde::lua
