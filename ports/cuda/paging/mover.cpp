#include "mover.h"

#include <algorithm>
#include <chrono>

namespace sonde::cuda::paging {

using toolkit::PlannedMove;

struct Mover::Shared {
  Driver driver;
  int32_t device = 0;
  OnMove on_move;

  // Around the calls that name an allocation, so that none ends meanwhile.
  std::mutex ranges_mutex;
  std::map<uint64_t, Range> ranges;  // by ordinal

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<MoveJob> jobs;
  bool has_thread = false;
  bool is_busy = false;
  bool stopping = false;
  bool exited = false;
  uint64_t progress = 0;  // calls made
  MoverCounts counts;
  std::map<void *, Streams> streams;
  std::map<void *, std::vector<void *>> events;  // free ones, by context
};

Mover::Mover(const Driver &driver, int32_t device, OnMove on_move) : shared_(std::make_shared<Shared>()) {
  shared_->driver = driver;
  shared_->device = device;
  shared_->on_move = std::move(on_move);
}

Mover::~Mover() { (void)stop(0); }

void Mover::prepare(void *context, bool has_thread) {
  (void)streams(*shared_, context);
  constexpr int kEvents = 16;
  std::vector<void *> made;
  for (int i = 0; i < kEvents; ++i) made.push_back(take_event(context));
  for (void *event : made) give_event(context, event);
  std::lock_guard<std::mutex> hold(shared_->mutex);
  if (!has_thread || shared_->has_thread || shared_->stopping) return;
  shared_->has_thread = true;
  thread_ = std::thread(&Mover::work, shared_);
}

void Mover::allocate(uint64_t ordinal, uint64_t address, uint64_t bytes) {
  std::lock_guard<std::mutex> hold(shared_->ranges_mutex);
  shared_->ranges[ordinal] = {address, bytes};
}

void Mover::end(uint64_t address) {
  std::lock_guard<std::mutex> hold(shared_->ranges_mutex);
  std::erase_if(shared_->ranges, [address](const auto &entry) { return entry.second.address == address; });
}

void Mover::run(MoveJob job, bool is_inline) {
  {
    std::lock_guard<std::mutex> hold(shared_->mutex);
    if (shared_->has_thread && !shared_->stopping && !is_inline) {
      shared_->jobs.push_back(std::move(job));
      shared_->changed.notify_all();
      return;
    }
  }
  execute(*shared_, job);
}

Mover::Waited Mover::wait(const Ticket &ticket, uint64_t patience_ns) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  const auto is_over = [&] { return ticket.is_recorded || ticket.is_dropped || shared_->stopping; };
  while (!is_over()) {
    const uint64_t before = shared_->progress;
    if (shared_->changed.wait_for(lock, std::chrono::nanoseconds(patience_ns), is_over)) break;
    if (shared_->progress == before) return Waited::kLate;
  }
  return ticket.is_recorded ? Waited::kRecorded : Waited::kDropped;
}

bool Mover::stop(uint64_t patience_ns) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  shared_->stopping = true;
  shared_->counts.dropped += shared_->jobs.size();
  for (const MoveJob &job : shared_->jobs) {
    for (const auto &ticket : job.tickets) ticket->is_dropped = true;
  }
  shared_->jobs.clear();
  shared_->changed.notify_all();
  if (!thread_.joinable()) return true;
  const bool over =
      shared_->changed.wait_for(lock, std::chrono::nanoseconds(patience_ns), [this] { return shared_->exited; });
  lock.unlock();
  if (over) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return over;
}

void *Mover::take_event(void *context) {
  {
    std::lock_guard<std::mutex> hold(shared_->mutex);
    auto &free = shared_->events[context];
    if (!free.empty()) {
      void *const event = free.back();
      free.pop_back();
      return event;
    }
  }
  void *event = nullptr;
  const DriverResult result = shared_->driver.make_event(&event, kEventDisableTiming);
  if (result == 0) return event;
  fail(*shared_, "making an event", result);
  return nullptr;
}

void Mover::give_event(void *context, void *event) {
  if (event == nullptr) return;
  std::lock_guard<std::mutex> hold(shared_->mutex);
  shared_->events[context].push_back(event);
}

MoverCounts Mover::counts() const {
  std::lock_guard<std::mutex> hold(shared_->mutex);
  return shared_->counts;
}

void Mover::work(std::shared_ptr<Shared> shared) {
  void *current = nullptr;
  std::unique_lock<std::mutex> lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->stopping || !shared->jobs.empty(); });
    if (shared->stopping) break;
    MoveJob job = std::move(shared->jobs.front());
    shared->jobs.pop_front();
    lock.unlock();
    if (job.context != current && shared->driver.set_current(job.context) == 0) current = job.context;
    execute(*shared, job);
    lock.lock();
  }
  shared->exited = true;
  shared->changed.notify_all();
}

void Mover::execute(Shared &shared, const MoveJob &job) {
  Streams *const mine = streams(shared, job.context);
  size_t next_ticket = 0;
  if (mine != nullptr) {
    if (job.begin != nullptr) {
      for (void *stream : {mine->in, mine->out}) {
        const DriverResult result = shared.driver.wait(stream, job.begin, 0);
        if (result != 0) fail(shared, "waiting for the program's stream", result);
      }
    }
    bool has_evicted = false;
    for (size_t index = 0; index < job.step->moves.size(); ++index) {
      move(shared, *mine, job.step->moves[index], has_evicted);
      // Behind the last move that a launch needs comes its event.
      for (; next_ticket < job.tickets.size(); ++next_ticket) {
        const uint64_t needed = job.tickets[next_ticket]->needed;
        const auto later = job.step->moves.begin() + static_cast<ptrdiff_t>(index) + 1;
        if (std::any_of(later, job.step->moves.end(),
                        [&](const PlannedMove &other) { return other.needed <= needed; })) {
          break;
        }
        Ticket &ticket = *job.tickets[next_ticket];
        const DriverResult result =
            ticket.event != nullptr ? shared.driver.record(ticket.event, mine->in) : DriverResult{-1};
        if (result != 0 && ticket.event != nullptr) fail(shared, "recording an event", result);
        std::lock_guard<std::mutex> hold(shared.mutex);
        (result == 0 ? ticket.is_recorded : ticket.is_dropped) = true;
        shared.changed.notify_all();
      }
    }
  }
  std::lock_guard<std::mutex> hold(shared.mutex);
  for (; next_ticket < job.tickets.size(); ++next_ticket) job.tickets[next_ticket]->is_dropped = true;
  // The event can be recorded anew: a wait that was made keeps what it was made for.
  if (job.begin != nullptr) shared.events[job.context].push_back(job.begin);
  shared.changed.notify_all();
}

Mover::Streams *Mover::streams(Shared &shared, void *context) {
  {
    std::lock_guard<std::mutex> hold(shared.mutex);
    const auto found = shared.streams.find(context);
    if (found != shared.streams.end()) return found->second.in != nullptr ? &found->second : nullptr;
  }
  Streams made;
  DriverResult result = shared.driver.make_stream(&made.in, kStreamNonBlocking);
  if (result == 0) result = shared.driver.make_stream(&made.out, kStreamNonBlocking);
  if (result == 0) result = shared.driver.make_event(&made.evicted, kEventDisableTiming);
  if (result != 0) {
    made.in = nullptr;
    fail(shared, "making streams", result);
  }
  std::lock_guard<std::mutex> hold(shared.mutex);
  Streams &kept = shared.streams.try_emplace(context, made).first->second;
  return kept.in != nullptr ? &kept : nullptr;
}

void Mover::move(Shared &shared, Streams &streams, const PlannedMove &move, bool &has_evicted) {
  Moved moved;
  DriverResult result = 0;
  {
    std::lock_guard<std::mutex> hold(shared.ranges_mutex);
    const auto found = shared.ranges.find(move.allocation);
    if (found == shared.ranges.end() || move.offset + move.bytes > found->second.bytes) {
      std::lock_guard<std::mutex> count(shared.mutex);
      ++shared.counts.unknown;
      return;
    }
    moved.address = found->second.address + move.offset;
    moved.bytes = move.bytes;
    moved.device = move.is_eviction ? kHostDevice : shared.device;
    moved.stream = move.is_eviction ? streams.out : streams.in;
    if (!move.is_eviction && has_evicted) {
      result = shared.driver.record(streams.evicted, streams.out);
      if (result == 0) result = shared.driver.wait(streams.in, streams.evicted, 0);
      has_evicted = false;
    }
    if (result == 0) result = shared.driver.prefetch(moved.address, moved.bytes, moved.device, moved.stream);
  }
  if (move.is_eviction) has_evicted = true;
  if (result != 0) {
    fail(shared, move.is_eviction ? "moving memory to the host" : "moving memory to the device", result);
    return;
  }
  {
    std::lock_guard<std::mutex> hold(shared.mutex);
    ++shared.progress;
    ++(move.is_eviction ? shared.counts.evictions : shared.counts.prefetches);
    (move.is_eviction ? shared.counts.evicted_bytes : shared.counts.prefetched_bytes) += move.bytes;
  }
  if (shared.on_move) shared.on_move(moved);
}

void Mover::fail(Shared &shared, const char *what, DriverResult result) {
  const std::string text = std::string(what) + ": " + shared.driver.name_of(result);
  std::lock_guard<std::mutex> hold(shared.mutex);
  ++shared.counts.failed;
  if (shared.counts.first_failure.empty()) shared.counts.first_failure = text;
}

}  // namespace sonde::cuda::paging
