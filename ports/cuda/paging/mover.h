// Moves managed memory on streams of its own, on a thread of its own or on the caller's.
//
// The thread is there because a prefetch of many pages may keep its caller busy until much of it is done, and the
// program's launches are not to wait for that. Moves that launches wait for carry a ticket: an event behind the move, and
// whether it has been recorded yet, because waiting for an event that was not recorded waits for nothing.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sonde/toolkit/paging_plan.h>

#include "driver.h"

namespace sonde::cuda::paging {

struct Ticket {
  uint64_t needed = 0;  // launch, in the plan's count
  void *event = nullptr;
  bool is_recorded = false;  // guarded by the mover's mutex
  bool is_dropped = false;   // no event will come
};

// The moves of one step.
struct MoveJob {
  const toolkit::PlannedStep *step = nullptr;
  void *context = nullptr;
  void *begin = nullptr;                         // an event that they wait for, or null
  std::vector<std::shared_ptr<Ticket>> tickets;  // one for each launch that the step's moves name, ascending
};

struct MoverCounts {
  uint64_t prefetches = 0;
  uint64_t evictions = 0;
  uint64_t prefetched_bytes = 0;
  uint64_t evicted_bytes = 0;
  uint64_t unknown = 0;  // moves of allocations that were not there
  uint64_t failed = 0;
  uint64_t dropped = 0;  // jobs that the end of the session overtook
  std::string first_failure;
};

// A call that was made, for those who record it. Called without the mover's locks, on the moving thread.
struct Moved {
  uint64_t address = 0;
  uint64_t bytes = 0;
  int32_t device = 0;  // kHostDevice: the host
  void *stream = nullptr;
};

class Mover {
 public:
  using OnMove = std::function<void(const Moved &)>;

  Mover(const Driver &driver, int32_t device, OnMove on_move);
  ~Mover();
  Mover(const Mover &) = delete;
  Mover &operator=(const Mover &) = delete;

  // Streams of `context`, which is current; so that the first job does not wait for them. Starts the thread.
  void prepare(void *context, bool has_thread);

  // An allocation of the plan is there, or ends. `end` waits for a call that is under way.
  void allocate(uint64_t ordinal, uint64_t address, uint64_t bytes);
  void end(uint64_t address);

  // Runs a job, on the thread if there is one and `is_inline` does not say otherwise.
  void run(MoveJob job, bool is_inline = false);

  // Waits until a ticket's event was recorded. kLate when `patience_ns` went by without any move being made.
  enum class Waited { kRecorded, kDropped, kLate };
  Waited wait(const Ticket &ticket, uint64_t patience_ns);

  // Ends the thread; what has not begun is dropped. Waits for a call that is under way, at most `patience_ns`: false then,
  // and the thread keeps what it needs.
  bool stop(uint64_t patience_ns);

  // An event that nobody uses, made in the current context; null when there is none to be had.
  void *take_event(void *context);
  void give_event(void *context, void *event);

  MoverCounts counts() const;

 private:
  struct Streams {
    void *in = nullptr;
    void *out = nullptr;
    void *evicted = nullptr;  // event
  };
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  struct Shared;

  static void work(std::shared_ptr<Shared> shared);
  static void execute(Shared &shared, const MoveJob &job);
  static Streams *streams(Shared &shared, void *context);
  static void move(Shared &shared, Streams &streams, const toolkit::PlannedMove &move, bool &has_evicted);
  static void fail(Shared &shared, const char *what, DriverResult result);

  std::shared_ptr<Shared> shared_;  // the thread's too
  std::thread thread_;
};

}  // namespace sonde::cuda::paging
