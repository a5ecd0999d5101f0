// One script: its Lua state, what it asked for, and how it is run under its limits.
//
// The state belongs to one thread at a time: the control thread while the text runs, the delivery thread from the first
// batch to the end, the control thread again for `finish`. The first failure ends the script: it becomes a finding,
// and no more of it runs.
#pragma once

#include <lua.hpp>

#include <sonde/config.h>
#include <sonde/delivery.h>
#include <sonde/plugins.h>
#include <sonde/reflect.h>
#include <sonde/toolkit/lua/glue.h>
#include <sonde/toolkit/lua/layouts.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "deadline.h"
#include "memory.h"

namespace sonde::lua {

struct Settings {
  std::string name;  // origin of its tables and findings
  std::string path;  // "" when the text was given
  std::string text;
  uint64_t memory = 0;      // bytes
  int64_t deadline_ns = 0;  // of each call into the script
  std::vector<std::string> grants;
  const sonde_config_t *options = nullptr;  // the tree `options`; null: none
};

// One sonde.subscribe of a script.
struct Subscription {
  uint32_t space = 0;
  uint64_t types = 0;
  BatchBox *box = nullptr;  // kept by the registry
  int batch_reference = LUA_NOREF;
  int function_reference = LUA_NOREF;
};

// What outlives the script when native code still holds a callback into it.
struct CallbackHome {
  std::mutex mutex;
  class Script *script = nullptr;    // null: gone
  std::vector<int> dropped;          // registry references to free on the script's thread
  std::atomic<uint64_t> refused{0};  // calls from a wrong thread
};

class Script {
 public:
  Script(Settings settings, const Context &context, const sonde_plugins_service_t *plugins,
         const sonde_reflect_service_t *reflect, const sonde_delivery_service_t *delivery);
  ~Script();
  Script(const Script &) = delete;
  Script &operator=(const Script &) = delete;

  // Runs the text, then subscribes. A failure of the script is a finding and SONDE_OK; an error is the host's.
  // [control]
  sonde_status start();
  // Calls the script's `finish`, if it has one. [control], after delivery ended
  void finish();

  // Of the script that a Lua state belongs to.
  static Script &of(lua_State *state) { return **static_cast<Script **>(lua_getextraspace(state)); }

  const Settings &settings() const { return settings_; }
  Context &context() { return context_; }
  Deadline &deadline() { return deadline_; }
  Memory &memory() { return memory_; }
  const sonde_plugins_service_t &plugins() const { return *plugins_; }
  const sonde_reflect_service_t &reflect() const { return *reflect_; }
  const std::shared_ptr<CallbackHome> &callbacks() const { return callbacks_; }
  std::vector<Subscription> &subscriptions() { return subscriptions_; }
  bool is_loading() const { return loading_; }
  bool is_granted(const char *plugin) const;

  // True on the thread that runs the script now.
  bool is_running_here() const;
  lua_State *running() const { return running_; }
  void set_running(lua_State *state) { running_ = state; }

  // Where the last error was raised, set by message handlers.
  void locate(lua_State *state);

 private:
  bool open_state();
  bool load_text();
  sonde_status subscribe();
  // Calls the function below its `arguments` on the stack, under deadline and cap; what it does, for messages.
  bool run(int arguments, const char *what, const char *place);
  void fail(const char *what, const char *place, int status);
  void report(const char *what, const std::string &message);
  void free_dropped_callbacks();

  static sonde_status on_batch(void *user, const sonde_batch_t *batch);
  static void on_end(void *user);
  static int on_error(lua_State *state);
  static void on_deadline(lua_State *state, lua_Debug *);
  static void on_refusal(void *user);

  Settings settings_;
  Context context_;
  const sonde_plugins_service_t *plugins_;
  const sonde_reflect_service_t *reflect_;
  const sonde_delivery_service_t *delivery_;
  Memory memory_;
  Deadline deadline_;
  lua_State *state_ = nullptr;
  lua_State *running_ = nullptr;
  std::atomic<uint64_t> owner_{0};  // thread inside run(), 0: none
  std::vector<Subscription> subscriptions_;
  uint64_t subscription_ = 0;  // the host's number; 0: none
  std::shared_ptr<CallbackHome> callbacks_;
  bool loading_ = false;
  bool failed_ = false;
  char location_file_[256] = "";
  int location_line_ = 0;
};

// ---- Libraries of the sandbox; each leaves what it makes in the globals or in the table `sonde` on top ----

void open_sandbox(lua_State *state);     // sandbox.cpp: base, table, string, math, utf8
void open_patterns(lua_State *state);    // patterns.cpp: string.find, match, gmatch, gsub, rep; the table on top
void open_coroutines(lua_State *state);  // coroutines.cpp
void open_subscribe(lua_State *state);   // subscribe.cpp: sonde.subscribe
void open_publish(lua_State *state);     // publish.cpp: sonde.table, sonde.finding
void open_calls(lua_State *state);       // calls.cpp: sonde.call, sonde.plugin
// Pushes a configuration tree as a Lua table.
void push_options(lua_State *state, const sonde_config_service_t &config, const sonde_config_t *tree);

// Handles of the host that publish.cpp's tables stand for; null when the object at `index` is another.
sonde_table_t *to_table(lua_State *state, int index);

}  // namespace sonde::lua
