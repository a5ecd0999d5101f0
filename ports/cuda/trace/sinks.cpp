#include "sinks.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

namespace sonde::cuda {

namespace {

std::atomic<uint32_t> forks{0};

void after_fork_in_child() {
  forks.fetch_add(1, std::memory_order_relaxed);
  sinks().forget_readers();
}

}  // namespace

Sinks &sinks() {
  // Never destroyed: a callback may come while the process ends.
  static Sinks *const instance = [] {
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    return new Sinks;
  }();
  return *instance;
}

uint32_t Sinks::add(const Sink &sink) {
  for (uint32_t i = 0; i < kMost; ++i) {
    Slot &slot = slots_[i];
    if (slot.taken.exchange(true, std::memory_order_acquire)) continue;
    slot.sink = sink;
    slot.sink.serial = serial_.fetch_add(1, std::memory_order_relaxed) + 1;
    slot.used.store(true, std::memory_order_seq_cst);
    active_.fetch_or(1u << i, std::memory_order_seq_cst);
    return i;
  }
  return kNone;
}

void Sinks::remove(uint32_t index) {
  if (index >= kMost) return;
  Slot &slot = slots_[index];
  active_.fetch_and(~(1u << index), std::memory_order_seq_cst);
  slot.used.store(false, std::memory_order_seq_cst);
  while (slot.readers.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  slot.taken.store(false, std::memory_order_release);
}

uint64_t thread_id() {
  thread_local uint64_t id = 0;
  thread_local uint32_t forks_seen = 0;
  const uint32_t now = forks.load(std::memory_order_relaxed);
  if (id == 0 || forks_seen != now) {
    id = static_cast<uint64_t>(syscall(SYS_gettid));
    forks_seen = now;
  }
  return id;
}

}  // namespace sonde::cuda
