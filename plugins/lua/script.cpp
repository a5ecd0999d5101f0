#include "script.h"

#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sonde::lua {
namespace {

uint64_t this_thread() { return static_cast<uint64_t>(pthread_self()); }

std::string bytes_text(uint64_t bytes) {
  char text[32];
  if (bytes % (1 << 20) == 0) {
    std::snprintf(text, sizeof(text), "%llu MiB", static_cast<unsigned long long>(bytes >> 20));
  } else {
    std::snprintf(text, sizeof(text), "%llu bytes", static_cast<unsigned long long>(bytes));
  }
  return text;
}

// Buffers of the auxiliary library report a refusal as an ordinary error.
bool is_out_of_memory(lua_State *state) {
  return lua_type(state, -1) == LUA_TSTRING && std::string_view(lua_tostring(state, -1)).ends_with("not enough memory");
}

std::string seconds_text(int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", static_cast<double>(nanoseconds) / 1e9);
  return text;
}

}  // namespace

Script::Script(Settings settings, const Context &context, const sonde_plugins_service_t *plugins,
               const sonde_reflect_service_t *reflect, const sonde_delivery_service_t *delivery)
    : settings_(std::move(settings)),
      context_(context),
      plugins_(plugins),
      reflect_(reflect),
      delivery_(delivery),
      memory_(settings_.memory),
      callbacks_(std::make_shared<CallbackHome>()) {
  callbacks_->script = this;
  context_.charge = [](void *user, int64_t bytes) { return static_cast<Script *>(user)->memory_.charge(bytes); };
  context_.user = this;
  memory_.on_refusal = on_refusal;
  memory_.refusal_user = this;
}

Script::~Script() {
  // A run that is given up is not stopped first; after this no batch comes.
  if (subscription_ != 0) delivery_->unsubscribe(context_.session, subscription_);
  {
    std::lock_guard lock(callbacks_->mutex);
    callbacks_->script = nullptr;
  }
  if (state_ != nullptr) lua_close(state_);
}

bool Script::is_granted(const char *plugin) const {
  for (const std::string &grant : settings_.grants) {
    if (grant == plugin) return true;
  }
  return false;
}

bool Script::is_running_here() const { return owner_.load(std::memory_order_acquire) == this_thread(); }

// ---- Running ----

void Script::locate(lua_State *state) {
  lua_Debug frame = {};
  for (int level = 0; lua_getstack(state, level, &frame) != 0; ++level) {
    lua_getinfo(state, "Sl", &frame);
    if (frame.currentline <= 0) continue;
    const char *const source = frame.source[0] == '@' || frame.source[0] == '=' ? frame.source + 1 : frame.source;
    std::snprintf(location_file_, sizeof(location_file_), "%s", source);
    location_line_ = frame.currentline;
    return;
  }
}

int Script::on_error(lua_State *state) {
  Script &script = of(state);
  script.location_line_ = 0;
  script.locate(state);
  return 1;
}

void Script::on_deadline(lua_State *state, lua_Debug *) {
  Script &script = of(state);
  if (script.location_line_ == 0) script.locate(state);
  luaL_error(state, "the deadline of %d ms passed", static_cast<int>(script.settings_.deadline_ns / 1000000));
}

void Script::on_refusal(void *user) {
  auto &script = *static_cast<Script *>(user);
  if (script.running_ == nullptr || !script.is_running_here()) return;
  script.location_line_ = 0;
  script.locate(script.running_);
}

bool Script::run(int arguments, const char *what, const char *place) {
  if (!deadline_.bind()) {
    lua_pop(state_, arguments + 1);
    report(what, std::string("no timer for its deadline: ") + std::strerror(errno));
    return false;
  }
  owner_.store(this_thread(), std::memory_order_release);
  free_dropped_callbacks();
  location_line_ = 0;
  const int handler = lua_gettop(state_) - arguments;
  lua_pushcfunction(state_, on_error);
  lua_insert(state_, handler);
  running_ = state_;
  deadline_.arm(state_, on_deadline, settings_.deadline_ns);
  const int status = lua_pcall(state_, arguments, 0, handler);
  const bool expired = deadline_.expired();
  deadline_.disarm();
  running_ = nullptr;
  if (status != LUA_OK) fail(what, expired ? "deadline" : place, status);
  lua_settop(state_, handler - 1);
  owner_.store(0, std::memory_order_release);
  return status == LUA_OK;
}

// The error value lies on top.
void Script::fail(const char *what, const char *place, int status) {
  std::string message;
  if (std::strcmp(place, "deadline") == 0) {
    message = "the deadline of " + seconds_text(settings_.deadline_ns) + " passed (an endless loop?)";
    place = "";
  } else if (status == LUA_ERRMEM || is_out_of_memory(state_)) {
    message = "not enough memory: the cap is " + bytes_text(memory_.cap());
  } else if (lua_type(state_, -1) == LUA_TSTRING) {
    message = lua_tostring(state_, -1);
  } else {
    message = std::string("error object is a ") + luaL_typename(state_, -1) + " value";
  }
  if (location_line_ == 0 && place[0] != '\0') {
    message += std::string(" (in ") + place + ")";
  } else if (location_line_ != 0) {
    const std::string where = std::string(location_file_) + ":" + std::to_string(location_line_);
    // Messages of the interpreter begin with the place already, perhaps cut in front.
    if (message.find(":" + std::to_string(location_line_) + ":") == std::string::npos) message = where + ": " + message;
  }
  report(what, message);
}

void Script::report(const char *what, const std::string &message) {
  failed_ = true;
  const std::string sentence = "script " + settings_.name + " failed in " + what + ": " + message;
  sonde_finding_t finding = {};
  finding.struct_size = sizeof(finding);
  finding.severity = SONDE_SEVERITY_ERROR;
  finding.verdict = SONDE_VERDICT_UNSUPPORTED;
  finding.origin = settings_.name.c_str();
  finding.rule = "lua.script_failed";
  finding.message = sentence.c_str();
  finding.advice = "Correct the script and replay the capture; what it published is incomplete.";
  finding.reason = message.c_str();
  finding.file = location_line_ != 0 ? location_file_ : settings_.path.c_str();
  finding.line = static_cast<uint32_t>(location_line_);
  finding.confidence = 1;
  finding.sampling_scale = 1;
  context_.host->log(SONDE_LOG_WARNING, "lua", sentence.c_str());
  if (context_.results->add_finding(context_.session, &finding) < 0) {
    context_.host->log(SONDE_LOG_ERROR, "lua", context_.host->last_error());
  }
}

void Script::free_dropped_callbacks() {
  std::lock_guard lock(callbacks_->mutex);
  for (const int reference : callbacks_->dropped) luaL_unref(state_, LUA_REGISTRYINDEX, reference);
  callbacks_->dropped.clear();
}

// ---- Start ----

// Builds the state; runs protected, with the script as light userdata.
static int build_state(lua_State *state) {
  auto &script = *static_cast<Script *>(lua_touserdata(state, 1));
  lua_settop(state, 0);
  register_objects(state);
  open_sandbox(state);
  open_coroutines(state);
  lua_newtable(state);
  lua_pushliteral(state, "0.1");
  lua_setfield(state, -2, "interface");
  lua_pushstring(state, script.settings().name.c_str());
  lua_setfield(state, -2, "name");
  push_u64_library(state);
  lua_setfield(state, -2, "u64");
  push_layout_library(state, script.context().host);
  lua_setfield(state, -2, "layout");
  open_subscribe(state);
  open_publish(state);
  open_calls(state);
  const void *config = nullptr;
  if (script.context().host->get_service(SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, child), &config) <
      0) {
    return raise_last_error(state, script.context());
  }
  push_options(state, *static_cast<const sonde_config_service_t *>(config), script.settings().options);
  lua_setfield(state, -2, "options");
  lua_setglobal(state, "sonde");
  return 0;
}

bool Script::open_state() {
  state_ = lua_newstate(Memory::allocate, &memory_);
  if (state_ == nullptr) {
    report("start", "not enough memory for a Lua state: the cap is " + bytes_text(memory_.cap()));
    return false;
  }
  // The extra space is copied to every coroutine.
  *static_cast<Script **>(lua_getextraspace(state_)) = this;
  // A message handler of the panic kind is not needed: nothing runs outside lua_pcall.
  lua_pushcfunction(state_, build_state);
  lua_pushlightuserdata(state_, this);
  return run(1, "start", "its libraries");
}

bool Script::load_text() {
  const std::string chunk = settings_.path.empty() ? "=" + settings_.name : "@" + settings_.path;
  const int status = luaL_loadbufferx(state_, settings_.text.data(), settings_.text.size(), chunk.c_str(), "t");
  if (status != LUA_OK) {
    // "name:line: what": the parser knows the line.
    const char *const text = lua_tostring(state_, -1);
    const char *colon = text == nullptr ? nullptr : std::strstr(text, ": ");
    while (colon != nullptr && colon > text && colon[-1] >= '0' && colon[-1] <= '9') --colon;
    if (colon != nullptr && colon > text && colon[-1] == ':') {
      location_line_ = std::atoi(colon);
      std::snprintf(location_file_, sizeof(location_file_), "%s", chunk.c_str() + 1);
    }
    fail("loading", "", status);
    lua_settop(state_, 0);
    return false;
  }
  loading_ = true;
  const bool done = run(0, "loading", "its main chunk");
  loading_ = false;
  return done;
}

sonde_status Script::start() {
  const bool ready = open_state() && load_text();
  deadline_.unbind();
  return ready ? subscribe() : SONDE_OK;
}

sonde_status Script::subscribe() {
  if (subscriptions_.empty()) return SONDE_OK;
  std::vector<sonde_interest_t> interests;
  for (const Subscription &wanted : subscriptions_) {
    interests.push_back({wanted.space, SONDE_LEVEL_RECORDS, wanted.types});
  }
  sonde_subscription_t subscription = {};
  subscription.struct_size = sizeof(subscription);
  subscription.queue_policy = SONDE_QUEUE_DROP;
  subscription.name = settings_.name.c_str();
  subscription.interests = interests.data();
  subscription.interest_count = static_cast<uint32_t>(interests.size());
  subscription.on_batch = on_batch;
  subscription.on_end = on_end;
  subscription.user = this;
  return delivery_->subscribe(context_.session, &subscription, &subscription_);
}

// ---- Delivery and finish ----

sonde_status Script::on_batch(void *user, const sonde_batch_t *batch) {
  auto &script = *static_cast<Script *>(user);
  if (script.failed_) return SONDE_E_STOP;
  for (const Subscription &wanted : script.subscriptions_) {
    const uint64_t bit = uint64_t{1} << (wanted.space < 64 ? wanted.space : 0);
    if ((batch->spaces & bit) == 0) continue;
    lua_rawgeti(script.state_, LUA_REGISTRYINDEX, wanted.function_reference);
    lua_rawgeti(script.state_, LUA_REGISTRYINDEX, wanted.batch_reference);
    set_batch(wanted.box, batch);
    const bool done = script.run(1, "on_batch", "on_batch");
    set_batch(wanted.box, nullptr);
    if (!done) return SONDE_E_STOP;
  }
  return SONDE_OK;
}

void Script::on_end(void *user) { static_cast<Script *>(user)->deadline_.unbind(); }

static int call_finish(lua_State *state) {
  lua_getglobal(state, "finish");
  if (lua_isfunction(state, -1)) lua_call(state, 0, 0);
  return 0;
}

void Script::finish() {
  if (!failed_ && state_ != nullptr) {
    lua_pushcfunction(state_, call_finish);
    run(0, "finish", "finish");
    deadline_.unbind();
  }
  const uint64_t refused = callbacks_->refused.load();
  if (refused == 0) return;
  const std::string message =
      "script " + settings_.name + ": " + std::to_string(refused) +
      " calls of its callbacks came from a thread that does not run the script and were refused";
  sonde_finding_t finding = {};
  finding.struct_size = sizeof(finding);
  finding.severity = SONDE_SEVERITY_WARNING;
  finding.verdict = SONDE_VERDICT_UNSUPPORTED;
  finding.origin = settings_.name.c_str();
  finding.rule = "lua.wrong_thread";
  finding.message = message.c_str();
  finding.advice = "Give callbacks only to functions that call them before they return.";
  finding.reason = "Lua runs on one thread at a time";
  finding.confidence = 1;
  finding.sampling_scale = 1;
  context_.results->add_finding(context_.session, &finding);
}

}  // namespace sonde::lua
