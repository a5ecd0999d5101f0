// Threads of the SDK inside somebody else's program.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace sonde::run {

// A thread that takes none of the program's signals, from its first instruction on, but its own faults: blocked, they
// would turn a crash into a silent kill. `name`: at most 15 characters.
template <typename Body>
std::thread helper_thread(const char *name, Body &&body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  std::thread thread(std::forward<Body>(body));
  ::pthread_setname_np(thread.native_handle(), name);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace sonde::run
