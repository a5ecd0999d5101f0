// The body of Guard::run.
#pragma once

#include <exception>
#include <utility>

#include "core/error.h"
#include "loader/crash.h"
#include "loader/guard.h"

namespace sonde::loader {

// Monotonic clock, ns.
uint64_t guard_clock_ns();

// Marks this thread as inside the tool, so that what a plugin does is not captured.
void enter_tool();
void leave_tool();

template <typename Call>
sonde_status Guard::run(const char *what, bool always, Call &&call) noexcept {
  if (!always && refuses(what)) return SONDE_E_STATE;
  const uint64_t begin = guard_clock_ns();
  sonde_status status = SONDE_E_INTERNAL;
  {
    const CurrentPlugin current(id_);
    enter_tool();
    try {
      status = std::forward<Call>(call)();
    } catch (const std::exception &exception) {
      status = fail(SONDE_E_INTERNAL, std::string("plugin ") + id_ + ": " + what + " threw: " + exception.what());
    } catch (...) {
      status = fail(SONDE_E_INTERNAL, std::string("plugin ") + id_ + ": " + what + " threw");
    }
    leave_tool();
  }
  finish(what, status, begin);
  return status;
}

}  // namespace sonde::loader
