// Sinks, threads and the C interface.
#include "native.h"

#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <new>

namespace sonde_torch {

Sink sinks[kSinks];
std::atomic<uint32_t> active{0};
const sonde_capture_service_t *capture = nullptr;
const sonde_ranges_service_t *ranges = nullptr;

namespace {

std::mutex control;  // start and stop
uint64_t starts = 0;
std::atomic<uint64_t> threads{0};

thread_local ThreadState *state_of_thread = nullptr;

void end_thread(void *pointer) {
  auto *const state = static_cast<ThreadState *>(pointer);
  state_of_thread = nullptr;
  while (state->free_contexts != nullptr) {
    void *const next = *static_cast<void **>(state->free_contexts);
    ::operator delete(state->free_contexts);
    state->free_contexts = next;
  }
  delete state;
}

pthread_key_t exit_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ::pthread_key_create(&made, end_thread);
    return made;
  }();
  return key;
}

uint32_t all_options() {
  uint32_t all = 0;
  for (const Sink &sink : sinks) {
    if (sink.generation.load(std::memory_order_relaxed) != 0) all |= sink.options.load(std::memory_order_relaxed);
  }
  return all;
}

void apply() {
  const uint32_t all = all_options();
  active.store(all, std::memory_order_release);
  watch_operators(all);
}

// A change of demand is copied to the sinks of the session. One watch a session: there is no way to end one early.
struct DemandWatch {
  sonde_session_t *session;
  const uint64_t *demand;
  DemandWatch *next;
};
DemandWatch *watches = nullptr;
std::mutex watches_mutex;

void demand_changed(void *user) {
  const auto *const watch = static_cast<const DemandWatch *>(user);
  const uint64_t demand = __atomic_load_n(watch->demand, __ATOMIC_RELAXED);
  for (Sink &sink : sinks) {
    if (sink.session.load(std::memory_order_relaxed) == watch->session) sink.demand.store(demand);
  }
}

void drop_watch(void *user) {
  const std::lock_guard<std::mutex> lock(watches_mutex);
  for (DemandWatch **place = &watches; *place != nullptr; place = &(*place)->next) {
    if (*place != user) continue;
    *place = (*place)->next;
    break;
  }
  delete static_cast<DemandWatch *>(user);
}

bool watch_demand(sonde_session_t *session, const uint64_t *demand) {
  DemandWatch *added = nullptr;
  {
    const std::lock_guard<std::mutex> lock(watches_mutex);
    for (DemandWatch *watch = watches; watch != nullptr; watch = watch->next) {
      if (watch->session == session) return true;
    }
    added = new (std::nothrow) DemandWatch{session, demand, watches};
    if (added == nullptr) return false;
    watches = added;
  }
  if (capture->watch_demand(session, demand_changed, added, drop_watch) == SONDE_OK) return true;
  drop_watch(added);
  return false;
}

// The child captures nothing until it starts a capture of its own: its sessions are the parent's.
void child_after_fork() {
  for (Sink &sink : sinks) sink.generation.store(0, std::memory_order_relaxed);
  active.store(0, std::memory_order_relaxed);
  if (state_of_thread != nullptr) {
    state_of_thread->thread = static_cast<uint64_t>(::gettid());
    state_of_thread->scope = 0;
  }
  forget_blocks_after_fork();
}

void before_fork() {
  control.lock();
  watches_mutex.lock();
}

void after_fork() {
  watches_mutex.unlock();
  control.unlock();
}

}  // namespace

ThreadState *this_thread() noexcept {
  if (state_of_thread != nullptr) return state_of_thread;
  auto *const made = new (std::nothrow) ThreadState;
  if (made == nullptr) return nullptr;
  made->thread = static_cast<uint64_t>(::gettid());
  // Bit 63 keeps them apart from the numbers that the Python package gives to its scopes.
  made->next_identity = 1ull << 63 | (threads.fetch_add(1, std::memory_order_relaxed) + 1) << 40;
  ::pthread_setspecific(exit_key(), made);
  state_of_thread = made;
  return made;
}

sonde_writer_t *writer_of(ThreadState &state, uint32_t sink, uint64_t generation) noexcept {
  auto &kept = state.writers[sink];
  if (kept.generation == generation) return kept.writer;
  kept.generation = generation;
  kept.writer = nullptr;
  if (capture->writer(sinks[sink].session.load(std::memory_order_relaxed), &kept.writer) != SONDE_OK)
    kept.writer = nullptr;
  return kept.writer;
}

sonde_string_t intern(const char *text) noexcept {
  sonde_string_t id = 0;
  (void)capture->intern(text, UINT64_MAX, &id);
  return id;
}

sonde_string_t intern_cached(ThreadState &state, const char *text) noexcept {
  const auto bits = reinterpret_cast<uintptr_t>(text);
  ThreadState::Name &place = state.names[(bits >> 3 ^ bits >> 11) % 256];
  if (place.address == text && std::strcmp(place.text, text) == 0) return place.id;
  const sonde_string_t id = intern(text);
  const size_t length = std::strlen(text);
  if (length < sizeof(place.text)) {
    place.address = text;
    std::memcpy(place.text, text, length + 1);
    place.id = id;
  }
  return id;
}

}  // namespace sonde_torch

using namespace sonde_torch;

extern "C" {

// Makes `session` a sink and returns its number; negative: SONDE_E_FULL when kSinks are busy, or why the host refused.
SONDE_EXPORTED int32_t sonde_torch_start(const sonde_host_t *host, sonde_session_t *session, uint32_t options) {
  const std::lock_guard<std::mutex> lock(control);
  if (capture == nullptr) {
    const void *found = nullptr;
    const sonde_status status =
        host->get_service(SONDE_CAPTURE_SERVICE, SONDE_NEED(sonde_capture_service_t, watch_demand), &found);
    if (status != SONDE_OK) return status;
    capture = static_cast<const sonde_capture_service_t *>(found);
    if (host->get_service(SONDE_RANGES_SERVICE, SONDE_NEED(sonde_ranges_service_t, watched), &found) == SONDE_OK)
      ranges = static_cast<const sonde_ranges_service_t *>(found);
    ::pthread_atfork(before_fork, after_fork, [] {
      after_fork();
      child_after_fork();
    });
  }
  const uint64_t *demand = nullptr;
  const sonde_status status = capture->demand(session, SONDE_SPACE_FRAMEWORK, &demand);
  if (status != SONDE_OK) return status;
  for (uint32_t i = 0; i < kSinks; ++i) {
    if (sinks[i].generation.load(std::memory_order_relaxed) != 0) continue;
    forget_call_paths(i);
    sinks[i].session.store(session);
    if (!watch_demand(session, demand)) return SONDE_E_FULL;
    sinks[i].demand.store(__atomic_load_n(demand, __ATOMIC_RELAXED));
    sinks[i].options.store(options);
    sinks[i].generation.store(++starts, std::memory_order_release);
    apply();
    return static_cast<int32_t>(i);
  }
  return SONDE_E_FULL;
}

// Ends a sink. In a forked child the number may be another's by then: `session` must match.
SONDE_EXPORTED void sonde_torch_stop(int32_t sink, sonde_session_t *session) {
  const std::lock_guard<std::mutex> lock(control);
  if (sink < 0 || sink >= static_cast<int32_t>(kSinks) || sinks[sink].session.load() != session) return;
  sinks[sink].generation.store(0, std::memory_order_release);
  sinks[sink].session.store(nullptr);
  apply();
}

}  // extern "C"
