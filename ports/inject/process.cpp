// The beginning and the end of a preloaded process.
//
// exit() reaches the run through atexit. What bypasses that is caught here by standing before the C library: _exit,
// _Exit, quick_exit; and fork, whose child goes on in a run of its own. A signal's default action is not caught: what
// it leaves unwritten is computed from the live file.
#include <dlfcn.h>
#include <sonde/host.h>
#include <sonde/run.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "inject.h"

namespace sonde::inject {

namespace {

// libsonde's own, behind the one below.
const sonde_host_t *real_host() {
  static const auto function = next<const sonde_host_t *(*)()>("sonde_host");
  return function();
}

}  // namespace

sonde_status call(uint32_t entry, void *argument) {
  static const auto *const service = [] {
    const void *table = nullptr;
    real_host()->get_service(SONDE_RUN_SERVICE, SONDE_NEED(sonde_run_service_t, inject), &table);
    return static_cast<const sonde_run_service_t *>(table);
  }();
  return service == nullptr ? SONDE_E_NOT_FOUND : service->inject(entry, argument);
}

void *next_function(const char *name) {
  void *const function = ::dlsym(RTLD_NEXT, name);
  if (function == nullptr) std::abort();
  return function;
}

namespace {

bool is_preloaded() {
  const char *const preload = std::getenv("LD_PRELOAD");
  return preload != nullptr && std::strstr(preload, "libsonde_inject") != nullptr;
}

// Functions that may be needed where dlsym may not be called: after vfork, in a signal handler.
using Ending = void (*)(int);
Ending real_exit_now = nullptr;
Ending real_quick_exit = nullptr;
pid_t (*real_fork)() = nullptr;

__attribute__((constructor)) void begin() {
  real_exit_now = next<Ending>("_exit");
  real_quick_exit = next<Ending>("quick_exit");
  real_fork = next<pid_t (*)()>("fork");
  // Opened by CUDA or NVTX instead, their entries follow.
  if (std::getenv("SONDE_RUN") != nullptr && is_preloaded()) call(SONDE_ENTRY_PRELOAD, nullptr);
}

[[noreturn]] void end_now(int status) {
  call(SONDE_ENTRY_EXIT, nullptr);
  if (real_exit_now == nullptr) real_exit_now = next<Ending>("_exit");
  real_exit_now(status);
  __builtin_unreachable();
}

}  // namespace

}  // namespace sonde::inject

// A program that embeds Sonde begins with this call; under the preload the run begins here, before it looks for the
// current session.
extern "C" SONDE_EXPORTED const sonde_host_t *sonde_host(void) {
  static std::atomic<pid_t> asked{0};
  const pid_t process = ::getpid();
  if (asked.exchange(process, std::memory_order_relaxed) != process && std::getenv("SONDE_RUN") != nullptr) {
    sonde::inject::call(SONDE_ENTRY_HOST, nullptr);
  }
  return sonde::inject::real_host();
}

extern "C" SONDE_EXPORTED void _exit(int status) { sonde::inject::end_now(status); }

extern "C" SONDE_EXPORTED void _Exit(int status) noexcept { sonde::inject::end_now(status); }

extern "C" SONDE_EXPORTED void quick_exit(int status) noexcept {
  sonde::inject::call(SONDE_ENTRY_EXIT, nullptr);
  if (sonde::inject::real_quick_exit == nullptr) {
    sonde::inject::real_quick_exit = sonde::inject::next<sonde::inject::Ending>("quick_exit");
  }
  sonde::inject::real_quick_exit(status);
  __builtin_unreachable();
}

extern "C" SONDE_EXPORTED pid_t fork(void) noexcept {
  if (sonde::inject::real_fork == nullptr) sonde::inject::real_fork = sonde::inject::next<pid_t (*)()>("fork");
  const pid_t child = sonde::inject::real_fork();
  if (child == 0) {
    sonde::inject::call(SONDE_ENTRY_FORK, nullptr);
  } else if (child > 0) {
    const int error = errno;
    auto id = static_cast<uint64_t>(child);
    sonde::inject::call(SONDE_ENTRY_FORK, &id);
    errno = error;
  }
  return child;
}
