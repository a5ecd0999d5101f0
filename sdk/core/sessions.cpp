// The registry of open sessions, and what a fork does to them.
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>

#include "core/claims.h"
#include "core/session.h"
#include "core/spaces.h"
#include "core/strings.h"
#include "core/threads.h"

namespace sonde::core {
namespace {

struct Registry {
  std::mutex mutex;
  std::array<std::atomic<Session *>, kMaxSessions> sessions{};
  std::array<std::unique_ptr<Session>, kMaxSessions> owned;
};

Registry &registry() {
  static Registry *const instance = new Registry;
  return *instance;
}

void before_fork() {
  registry().mutex.lock();
  lock_spaces();
  strings().mutex().lock();
  lock_claims();
  lock_ranges();
}

void unlock_all() {
  unlock_ranges();
  unlock_claims();
  strings().mutex().unlock();
  unlock_spaces();
  registry().mutex.unlock();
}

void parent_after_fork() { unlock_all(); }

// Only what is safe between fork and exec: no allocation, no lock that another thread may have held. The sessions'
// demand words and writers are zero already; here their slots become free. Their memory is left alone.
void child_after_fork() {
  Registry &all = registry();
  for (uint32_t slot = 0; slot < kMaxSessions; ++slot) {
    all.sessions[slot].store(nullptr, std::memory_order_relaxed);
    (void)all.owned[slot].release();
  }
  forget_thread_after_fork();
  forget_claims();
  forget_ranges();
  unlock_all();
}

}  // namespace

Session *find_session(sonde_session_t *handle) noexcept {
  auto *const wanted = reinterpret_cast<Session *>(handle);
  if (wanted != nullptr) {
    for (const auto &session : registry().sessions) {
      if (session.load(std::memory_order_acquire) == wanted) return wanted;
    }
  }
  fail(SONDE_E_INVALID, handle == nullptr ? "the session is NULL"
                                          : "the session is closed, was never open, or belongs to the parent process");
  return nullptr;
}

Result<sonde_session_t *> open_session(const sonde_session_options_t *given) {
  SessionOptions options;
  if (given != nullptr) {
    if (given->struct_size < SONDE_NEED(sonde_session_options_t, live_path)) {
      return Error{SONDE_E_INVALID,
                   "session options: struct_size " + std::to_string(given->struct_size) + " is too small"};
    }
    if (given->policy > SONDE_POLICY_STALL) {
      return Error{SONDE_E_INVALID, "session options: policy " + std::to_string(given->policy) +
                                        " is not 0 (drop), 1 (overwrite) or 2 (stall)"};
    }
    options.policy = given->policy;
    if (given->ring_bytes != 0) options.ring_bytes = given->ring_bytes;
    if (given->memory_cap != 0) options.memory_cap = given->memory_cap;
    if (given->stall_ns != 0) options.stall_ns = given->stall_ns;
    if (given->period_ns != 0) options.period_ns = given->period_ns;
    if (given->name != nullptr) options.name = given->name;
    if (given->live_path != nullptr) options.live_path = given->live_path;
  }
  if (options.ring_bytes > 1ull << 30) return Error{SONDE_E_RANGE, "session options: a ring is at most 1 GiB"};
  if (options.memory_cap < 1 << 20) return Error{SONDE_E_RANGE, "session options: the memory cap is at least 1 MiB"};
  options.ring_bytes = std::bit_ceil(std::max(options.ring_bytes, kSmallestRing));
  std::shared_ptr<LiveFile> live;
  if (!options.live_path.empty()) {
    auto made = LiveFile::create(options.live_path);
    if (!made) return made.error();
    live = *made;
  }
  Registry &all = registry();
  const std::lock_guard lock(all.mutex);
  for (uint32_t slot = 0; slot < kMaxSessions; ++slot) {
    if (all.owned[slot] != nullptr) continue;
    all.owned[slot] = std::make_unique<Session>(slot, std::move(options), std::move(live));
    all.sessions[slot].store(all.owned[slot].get(), std::memory_order_release);
    return all.owned[slot]->handle();
  }
  return Error{SONDE_E_FULL, "16 sessions are open; close one first"};
}

Result<void> close_session(sonde_session_t *handle) {
  Session *const session = find_session(handle);
  if (session == nullptr) return Error{SONDE_E_INVALID, last_error()};
  if (session->captures()) (void)session->stop(0);
  session->run_close_actions();
  std::unique_ptr<Session> leaving;
  {
    Registry &all = registry();
    const std::lock_guard lock(all.mutex);
    all.sessions[session->slot()].store(nullptr, std::memory_order_release);
    leaving = std::move(all.owned[session->slot()]);
  }
  return {};
}

void at_close(sonde_session_t *handle, std::function<void()> action) {
  if (Session *const session = find_session(handle)) session->at_close(std::move(action));
}

void install_fork_handlers() {
  static const int installed = ::pthread_atfork(before_fork, parent_after_fork, child_after_fork);
  (void)installed;
}

}  // namespace sonde::core
