// for batch in capture:batches{space="sonde.device", types={"kernel"}} do ... end
//
// A replay pushes, a loop pulls: a helper thread replays into a session of its own, and the subscriber hands one batch
// at a time over to the interpreter's thread and waits until that asks for the next.
#include <condition_variable>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <new>
#include <thread>

#include "module.h"

namespace sonde::lua {
namespace {

constexpr const char *kPullerClass = "sonde.batches";
constexpr uint32_t kErrorBytes = 512;

class Puller {
 public:
  // Starts the replay. False: `error` tells why.
  bool start(sonde_capture_t *capture, uint32_t space, uint64_t types) {
    const Module &services = module();
    if (services.session->open(nullptr, &session_) < 0) return failed();
    const sonde_interest_t interest = {space, SONDE_LEVEL_RECORDS, types};
    sonde_subscription_t subscription = {};
    subscription.struct_size = sizeof(subscription);
    subscription.queue_policy = SONDE_QUEUE_WAIT;
    subscription.name = "lua";
    subscription.interests = &interest;
    subscription.interest_count = 1;
    subscription.on_batch = [](void *user, const sonde_batch_t *batch) {
      return static_cast<Puller *>(user)->offer(batch);
    };
    subscription.user = this;
    uint64_t ignored = 0;
    if (services.delivery->subscribe(session_, &subscription, &ignored) < 0) return failed();
    if (services.session->start(session_) < 0) return failed();
    thread_ = std::thread([this, capture] { replay(capture); });
    return true;
  }

  ~Puller() {
    {
      std::lock_guard lock(mutex_);
      cancelled_ = true;
      offered_ = nullptr;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (session_ != nullptr) module().session->close(session_);
  }

  // The next batch; null at the end. It is whole until the next call.
  const sonde_batch_t *next() {
    std::unique_lock lock(mutex_);
    offered_ = nullptr;
    changed_.notify_all();
    changed_.wait(lock, [&] { return offered_ != nullptr || done_; });
    return offered_;
  }

  sonde_session_t *session() const { return session_; }
  const char *error() const { return error_; }

 private:
  bool failed() {
    std::strncpy(error_, module().host->last_error(), kErrorBytes - 1);
    if (error_[0] == '\0') std::strcpy(error_, "the replay failed without a reason");
    return false;
  }

  // [delivery]
  sonde_status offer(const sonde_batch_t *batch) {
    std::unique_lock lock(mutex_);
    if (cancelled_) return SONDE_E_STOP;
    offered_ = batch;
    changed_.notify_all();
    changed_.wait(lock, [&] { return offered_ == nullptr; });
    return cancelled_ ? SONDE_E_STOP : SONDE_OK;
  }

  static sonde_status progress(void *user, uint64_t, uint64_t) {
    auto &puller = *static_cast<Puller *>(user);
    std::lock_guard lock(puller.mutex_);
    return puller.cancelled_ ? SONDE_E_STOP : SONDE_OK;
  }

  void replay(sonde_capture_t *capture) {
    const Module &services = module();
    const sonde_status replayed = services.store->replay(capture, session_, progress, this);
    {
      std::lock_guard lock(mutex_);
      if (replayed < 0 && !cancelled_) failed();
    }
    services.session->stop(session_, 0);
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

  sonde_session_t *session_ = nullptr;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const sonde_batch_t *offered_ = nullptr;
  bool cancelled_ = false;
  bool done_ = false;
  char error_[kErrorBytes] = "";
};

struct PullerBox {
  Puller *puller;  // null: ended
  Context *context;
  BatchBox *batch;  // kept by user value 1
};

int puller_close(lua_State *state) {
  auto *const box = static_cast<PullerBox *>(luaL_checkudata(state, 1, kPullerClass));
  if (box->batch != nullptr) set_batch(box->batch, nullptr);
  if (box->context != nullptr) box->context->session = nullptr;
  delete box->puller;
  box->puller = nullptr;
  return 0;
}

// Makes and starts a puller; never raises.
Puller *start_puller(sonde_capture_t *capture, uint32_t space, uint64_t types, char *error) {
  try {
    auto *const puller = new Puller;
    if (puller->start(capture, space, types)) return puller;
    std::memcpy(error, puller->error(), kErrorBytes);
    delete puller;
  } catch (const std::exception &exception) {
    std::strncpy(error, exception.what(), kErrorBytes - 1);
  }
  return nullptr;
}

// Upvalue 1: the puller.
int next_batch(lua_State *state) {
  auto *const box = static_cast<PullerBox *>(lua_touserdata(state, lua_upvalueindex(1)));
  if (box->puller == nullptr) return 0;
  set_batch(box->batch, nullptr);
  const sonde_batch_t *const batch = box->puller->next();
  if (batch == nullptr) {
    if (box->puller->error()[0] != '\0') return luaL_error(state, "%s", box->puller->error());
    return 0;
  }
  set_batch(box->batch, batch);
  lua_getiuservalue(state, lua_upvalueindex(1), 1);
  return 1;
}

uint32_t type_number(lua_State *state, const sonde_schema_t &schema, const char *name) {
  for (uint32_t index = 0; index < schema.type_count; ++index) {
    const auto *const type = reinterpret_cast<const sonde_record_type_t *>(
        reinterpret_cast<const uint8_t *>(schema.types) + uint64_t{index} * schema.type_stride);
    if (name != nullptr && std::strcmp(type->name, name) == 0) return type->type;
  }
  luaL_error(state, "types: %s has no type \"%s\"", schema.space, name == nullptr ? "?" : name);
  return 0;
}

constexpr luaL_Reg kMetamethods[] = {{"__gc", puller_close}, {"__close", puller_close}, {nullptr, nullptr}};

}  // namespace

void register_pullers(lua_State *state) { make_class(state, kPullerClass, nullptr, kMetamethods); }

int capture_batches(lua_State *state) {
  const CaptureBox *const capture = check_capture(state);
  luaL_checktype(state, 2, LUA_TTABLE);
  lua_settop(state, 2);
  lua_getfield(state, 2, "space");
  lua_getfield(state, 2, "types");
  const char *const space_name = luaL_checkstring(state, 3);
  auto *const box = static_cast<PullerBox *>(lua_newuserdatauv(state, sizeof(PullerBox), 2));
  *box = {};
  const int puller = lua_gettop(state);
  luaL_setmetatable(state, kPullerClass);
  lua_pushvalue(state, 1);
  lua_setiuservalue(state, puller, 2);  // the capture stays open under it
  box->context = new_context(state);
  uint32_t space = 0;
  const sonde_schema_t *schema = nullptr;
  if (box->context->capture->find_space(space_name, &space) < 0 || box->context->capture->schema(space, &schema) < 0) {
    return raise_last_error(state, *box->context);
  }
  uint64_t types = lua_isnil(state, 4) ? UINT64_MAX : 0;
  const char *only_type = "";
  if (types == 0) {
    luaL_checktype(state, 4, LUA_TTABLE);
    const lua_Unsigned count = lua_rawlen(state, 4);
    for (lua_Unsigned index = 1; index <= count; ++index) {
      lua_rawgeti(state, 4, static_cast<lua_Integer>(index));
      const char *const name = lua_type(state, -1) == LUA_TSTRING ? lua_tostring(state, -1) : nullptr;
      types |= uint64_t{1} << type_number(state, *schema, name);
      if (count == 1) only_type = name;
      lua_settop(state, puller);
    }
  }
  box->batch = push_batch(state, box->context, space_name, only_type);
  lua_setiuservalue(state, puller, 1);
  char error[kErrorBytes] = "";
  box->puller = start_puller(capture->capture, space, types, error);
  if (box->puller == nullptr) return luaL_error(state, "%s", error);
  box->context->session = box->puller->session();
  lua_pushvalue(state, puller);
  lua_pushcclosure(state, next_batch, 1);
  lua_pushnil(state);
  lua_pushnil(state);
  lua_pushvalue(state, puller);
  return 4;
}

}  // namespace sonde::lua
