#include "deadline.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace sonde::lua {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kRepeat = 10'000'000;

int signal_number = 0;  // a real-time signal that nobody used when the first script started

}  // namespace

bool Deadline::install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (int number = SIGRTMAX - 1; number >= SIGRTMIN; --number) {
      struct sigaction present = {};
      if (sigaction(number, nullptr, &present) != 0) continue;
      if ((present.sa_flags & SA_SIGINFO) != 0 || present.sa_handler != SIG_DFL) continue;
      struct sigaction wanted = {};
      wanted.sa_sigaction = on_signal;
      wanted.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
      sigemptyset(&wanted.sa_mask);
      if (sigaction(number, &wanted, nullptr) == 0) {
        signal_number = number;
        return;
      }
    }
  });
  if (signal_number == 0) errno = EBUSY;
  return signal_number != 0;
}

void Deadline::on_signal(int, siginfo_t *info, void *) {
  const int kept = errno;
  auto *const deadline = static_cast<Deadline *>(info->si_value.sival_ptr);
  if (info->si_code == SI_TIMER && deadline != nullptr) deadline->strike();
  errno = kept;
}

void Deadline::strike() {
  lua_State *const running = running_;
  if (armed_ == 0 || running == nullptr) return;
  expired_ = 1;
  lua_sethook(running, hook_, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
}

Deadline::~Deadline() {
  if (has_timer_) timer_delete(timer_);
}

bool Deadline::bind() {
  const auto thread = static_cast<int32_t>(syscall(SYS_gettid));
  if (has_timer_ && thread_ == thread) return true;
  if (!install_handler()) return false;
  if (has_timer_) timer_delete(timer_);
  has_timer_ = false;
  struct sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal_number;
  event.sigev_value.sival_ptr = this;
  event.sigev_notify_thread_id = thread;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) return false;
  has_timer_ = true;
  thread_ = thread;
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &ours, &old_mask_);
  return true;
}

void Deadline::unbind() {
  if (!has_timer_ || thread_ != static_cast<int32_t>(syscall(SYS_gettid))) return;
  timer_delete(timer_);  // a signal on its way is delivered before this returns: it goes to this thread
  has_timer_ = false;
  thread_ = 0;
  if (sigismember(&old_mask_, signal_number) != 0) pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void Deadline::arm(lua_State *running, lua_Hook hook, int64_t nanoseconds) {
  hook_ = hook;
  running_ = running;
  expired_ = 0;
  armed_ = 1;
  itimerspec when = {};
  when.it_value.tv_sec = nanoseconds / kSecond;
  when.it_value.tv_nsec = nanoseconds % kSecond;
  when.it_interval.tv_nsec = kRepeat;
  timer_settime(timer_, 0, &when, nullptr);
}

void Deadline::disarm() {
  armed_ = 0;
  const itimerspec never = {};
  timer_settime(timer_, 0, &never, nullptr);
  lua_sethook(running_, nullptr, 0, 0);
  running_ = nullptr;
  expired_ = 0;
}

lua_State *Deadline::enter(lua_State *state) {
  lua_State *const before = running_;
  running_ = state;
  if (expired_ != 0) lua_sethook(state, hook_, LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT, 1);
  return before;
}

}  // namespace sonde::lua
