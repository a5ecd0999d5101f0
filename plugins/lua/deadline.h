// The deadline of a script: a timer whose signal arms a hook in the Lua state that runs.
//
// A hook that is always on doubles the cost of a tight loop, so there is none until time is up. Then every instruction
// of the script raises an error until the outermost call has returned: a pcall of the script cannot swallow it. The
// signal goes to the thread that runs the script, where lua_sethook may be called at any instruction, and repeats
// every 10 ms, so that a coroutine entered in between is caught too.
#pragma once

#include <lua.hpp>

#include <csignal>
#include <cstdint>
#include <ctime>

namespace sonde::lua {

class Deadline {
 public:
  Deadline() = default;
  ~Deadline();
  Deadline(const Deadline &) = delete;
  Deadline &operator=(const Deadline &) = delete;

  // Readies the timer for the calling thread; cheap when it is ready. False: errno tells why.
  bool bind();
  // Gives the thread its signal mask back; on the thread that bind was called on.
  void unbind();

  // From now on `hook` is set in the running state once `nanoseconds` have passed.
  void arm(lua_State *running, lua_Hook hook, int64_t nanoseconds);
  void disarm();

  // The state that runs now: coroutines change it. Returns the one before.
  lua_State *enter(lua_State *state);

  // Time is up, and the outermost call has not returned.
  bool expired() const { return expired_ != 0; }

 private:
  static bool install_handler();
  static void on_signal(int number, siginfo_t *info, void *context);
  void strike();

  timer_t timer_ = {};
  bool has_timer_ = false;
  int32_t thread_ = 0;  // the timer's thread, 0: none
  sigset_t old_mask_ = {};
  lua_Hook hook_ = nullptr;
  lua_State *volatile running_ = nullptr;
  volatile sig_atomic_t armed_ = 0;
  volatile sig_atomic_t expired_ = 0;
};

}  // namespace sonde::lua
