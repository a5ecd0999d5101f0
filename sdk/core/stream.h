// A stream: the order in which one thread, or one port, emitted records. A thread's stream has a ring.
//
// The ring is a power of two of bytes, mapped twice in a row, so a record never wraps. Positions count bytes since
// the ring was made and only grow: published (by the thread) >= tail (by the delivery thread). With the overwrite
// policy the thread moves the tail itself, always to a record's start, before it writes over what lies there; a lock
// keeps it from doing so while a flush copies, so that every record is either delivered or counted as overwritten.
#pragma once

#include <sonde/capture.h>
#include <sonde/session.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/live_file.h"

namespace sonde::core {

class Session;

// Double mapping of a shared memory object; children do not inherit it.
class Ring {
 public:
  Ring() = default;
  ~Ring();
  Ring(const Ring &) = delete;
  Ring &operator=(const Ring &) = delete;

  // `bytes` is a power of two and a multiple of the page size. False when the system refuses.
  bool map(uint64_t bytes);
  uint8_t *at(uint64_t position) const { return base_ + (position & (bytes_ - 1)); }
  uint64_t bytes() const { return bytes_; }

 private:
  uint8_t *base_ = nullptr;
  uint64_t bytes_ = 0;
  pid_t process_ = 0;
};

struct Stream {
  uint64_t id = 0;
  uint64_t thread = 0;  // system's id; 0 for a port
  uint32_t kind = 0;    // SONDE_STREAM_*
  uint32_t clock = SONDE_CLOCK_STAMP;
  std::string name;
  uint64_t session = 0;  // Session::id

  // Shared with the emitting thread.
  uint32_t policy = 0;
  uint64_t stall_ns = 0;
  std::atomic<bool> accepts{true};                   // false once the session stopped
  std::atomic<bool> ended{false};                    // the thread is gone, or the port closed it
  std::shared_ptr<std::atomic<uint32_t>> wake_word;  // the session's; it may outlive the session
  Ring ring;

  // The row of the live file, or `spare` when there is none. Counters are written with __atomic operations.
  std::shared_ptr<LiveFile> live;
  LiveStream spare{};
  LiveStream *row = &spare;

  alignas(64) std::atomic<uint64_t> tail{0};
  std::atomic<bool> overwrite_lock{false};  // overwrite policy only; held for one copy of at most a batch

  // The delivery thread's, or for a port the submitting thread's.
  alignas(64) uint64_t delivered = 0;  // position up to which records were delivered
  uint64_t sequence = 0;
  uint64_t lost_full_seen = 0;
  uint64_t lost_big_seen = 0;
  uint64_t lost_overwritten_seen = 0;
  bool announced = false;
};

// Counters of a row, read while the thread adds to them.
inline uint64_t read_counter(const uint64_t &counter) { return __atomic_load_n(&counter, __ATOMIC_ACQUIRE); }
inline void add_to_counter(uint64_t &counter, uint64_t value) {
  __atomic_store_n(&counter, __atomic_load_n(&counter, __ATOMIC_RELAXED) + value, __ATOMIC_RELEASE);
}

// Holds a stream's overwrite_lock.
class OverwriteLock {
 public:
  explicit OverwriteLock(Stream &stream);
  ~OverwriteLock() { stream_.overwrite_lock.store(false, std::memory_order_release); }
  OverwriteLock(const OverwriteLock &) = delete;
  OverwriteLock &operator=(const OverwriteLock &) = delete;

 private:
  Stream &stream_;
};

// Slow path of sonde_reserve for a thread's stream: finds room by the stream's policy and sets the writer's limit.
// NULL when the record is dropped (counted) or the session has stopped. [app-thread], the writer's own
void *reserve_slowly(Stream &stream, sonde_writer_t &writer, uint32_t bytes);

// Wakes the delivery thread behind a wake word. [any]
void wake_waiter(std::atomic<uint32_t> &word);

// Sleeps until the word changes from `seen` or the time passes.
void wait_for_wake(std::atomic<uint32_t> &word, uint32_t seen, uint64_t nanoseconds);

}  // namespace sonde::core
