// The sessions that threads of the program emit to from inside a foreign callback (NVTX, CUPTI's resource domain).
//
// A callback may run on any thread while a session is being stopped elsewhere. Each slot therefore counts its
// readers: `remove` takes the session out and waits until the last reader has left, so nobody touches a session after
// its port's stop has returned.
#pragma once

#include <atomic>
#include <cstdint>

#include <sonde/capture.h>

namespace sonde::cuda {

struct Sink {
  sonde_session_t *session = nullptr;
  const uint64_t *framework = nullptr;  // demand word of sonde.framework
  const uint64_t *object = nullptr;     // demand word of sonde.object
  bool nvtx = false;                    // the session takes NVTX events
  uint64_t serial = 0;                  // tells one use of a slot from the next
};

class Sinks {
 public:
  static constexpr uint32_t kMost = 16;  // as many as a process can have sessions
  static constexpr uint32_t kNone = UINT32_MAX;

  // Adds a copy of `sink`; kNone when all slots are taken. [control]
  uint32_t add(const Sink &sink);

  // Takes a sink out; returns when no callback uses it any more. [control]
  void remove(uint32_t slot);

  // True when no session listens: the whole cost of an event then.
  bool empty() const { return active_.load(std::memory_order_relaxed) == 0; }

  // Calls visit(sink, slot) for each session. [app-thread]
  template <typename Visit>
  void each(Visit &&visit) {
    for (uint32_t bits = active_.load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
      const auto index = static_cast<uint32_t>(__builtin_ctz(bits));
      Slot &slot = slots_[index];
      slot.readers.fetch_add(1, std::memory_order_seq_cst);
      if (slot.used.load(std::memory_order_seq_cst)) visit(static_cast<const Sink &>(slot.sink), index);
      slot.readers.fetch_sub(1, std::memory_order_release);
    }
  }

  // In a forked child the readers of other threads are gone.
  void forget_readers() {
    for (Slot &slot : slots_) slot.readers.store(0, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Slot {
    std::atomic<uint32_t> readers{0};
    std::atomic<bool> used{false};   // readers may look at `sink`
    std::atomic<bool> taken{false};  // between add and the end of remove
    Sink sink;
  };

  std::atomic<uint32_t> active_{0};
  std::atomic<uint64_t> serial_{0};
  Slot slots_[kMost];
};

// The sinks of this process.
Sinks &sinks();

// The system's id of this thread, asked for once; a forked child asks again.
uint64_t thread_id();

}  // namespace sonde::cuda
