#include "simulator.h"

#include <algorithm>
#include <bit>
#include <deque>

namespace sonde::uvm {

namespace {

int64_t time_of(double bytes, double rate) { return static_cast<int64_t>(bytes / rate * 1e9 + 0.5); }

uint64_t bytes_of(uint32_t mask) { return static_cast<uint64_t>(std::popcount(mask)) * kPageBytes; }

struct Block {
  uint32_t resident = 0;  // pages on the device, or on their way to it
  uint32_t nowhere = 0;   // pages that nobody has touched
  uint32_t remote = 0;    // pages that the device reads over the link
  uint32_t copied = 0;    // read-mostly pages: the host's copy holds as long as nobody writes
  uint32_t mostly_read = 0;
  uint32_t previous = kNone;  // in the driver's list, towards the one to be evicted first
  uint32_t next = kNone;
  int64_t ready_ns = 0;  // when the last transfer to it ends
  uint64_t batch = 0;    // that needs it now: not to be evicted
};

class Simulation {
 public:
  Simulation(const Trace &trace, const PagingParameters &parameters, uint64_t capacity, const Schedule &schedule)
      : trace_(trace), parameters_(parameters), capacity_(capacity), schedule_(schedule), map_(trace) {}

  SimulationResult run() {
    if (capacity_ < kBlockBytes) {
      result_.is_impossible = true;
      return result_;
    }
    prepare();
    for (uint32_t index = 0; index < trace_.steps.size(); ++index) step(index);
    // What is still being prefetched when the last kernel ends is nobody's time.
    result_.total_ns = now_;
    return result_;
  }

 private:
  // A move to the device that was asked for and has not ended.
  struct Queued {
    Move move;
    int64_t issued_ns = 0;  // and evictions of its group done
    uint32_t done = 0;      // pages
    bool is_begun = false;
  };

  void prepare() {
    blocks_.resize(map_.count());
    accesses_.resize(trace_.sets.size());
    is_known_.resize(trace_.sets.size());
    found_there_.assign(trace_.sets.size(), UINT64_MAX);
    // With advice, writes and reads over the link matter; in order of access, each access does.
    may_skip_ = schedule_.advice.empty() && !parameters_.order_by_access;
    for (uint32_t index = 0; index < map_.count(); ++index) {
      const Home home = trace_.allocations[map_.allocation(index)].home;
      if (home == Home::kNowhere) blocks_[index].nowhere = map_.whole(index);
      if (home == Home::kDevice && free_bytes() >= bytes_of(map_.whole(index))) bring_in(index, map_.whole(index));
    }
    for (const Advice &advice : schedule_.advice) {
      for_each_block(advice.allocation, advice.first, advice.count, [&](uint32_t index, uint32_t mask) {
        Block &block = blocks_[index];
        if (advice.kind == AdviceKind::kReadMostly) block.mostly_read |= mask;
        if (advice.kind == AdviceKind::kAccessedBy) block.remote |= mask;
      });
    }
    // Memory goes when its allocation ends.
    for (uint32_t index = 0; index < trace_.allocations.size(); ++index) {
      const uint32_t end = trace_.allocations[index].end_step;
      if (end != kNone) ends_.emplace_back(end, index);
    }
    std::sort(ends_.begin(), ends_.end());
  }

  template <typename Visit>
  void for_each_block(uint32_t allocation, uint32_t first, uint32_t count, Visit &&visit) {
    const uint64_t whole = pages_of(trace_.allocations[allocation].bytes);
    const uint64_t end = std::min<uint64_t>(uint64_t{first} + count, whole);
    for (uint64_t page = first; page < end;) {
      const auto within = static_cast<uint32_t>(page % kBlockPages);
      const auto pages = static_cast<uint32_t>(std::min<uint64_t>(kBlockPages - within, end - page));
      const uint32_t mask = (pages == kBlockPages ? UINT32_MAX : (1u << pages) - 1) << within;
      visit(map_.first(allocation) + static_cast<uint32_t>(page / kBlockPages), mask);
      page += pages;
    }
  }

  const std::vector<BlockAccess> &accesses(uint32_t set) {
    if (!is_known_[set]) {
      accesses_[set] = accesses_of(trace_.sets[set], map_);
      is_known_[set] = true;
    }
    return accesses_[set];
  }

  // ---- the driver's list -----------------------------------------------------------------------------------------

  void unlink(uint32_t index) {
    Block &block = blocks_[index];
    if (block.previous == kNone && oldest_ != index) return;  // not in it
    (block.previous == kNone ? oldest_ : blocks_[block.previous].next) = block.next;
    (block.next == kNone ? newest_ : blocks_[block.next].previous) = block.previous;
    block.previous = block.next = kNone;
  }

  void make_newest(uint32_t index) {
    unlink(index);
    Block &block = blocks_[index];
    block.previous = newest_;
    (newest_ == kNone ? oldest_ : blocks_[newest_].next) = index;
    newest_ = index;
  }

  uint64_t free_bytes() const { return capacity_ - std::min(capacity_, used_bytes_); }

  void bring_in(uint32_t index, uint32_t mask) {
    Block &block = blocks_[index];
    used_bytes_ += bytes_of(mask & ~block.resident);
    block.resident |= mask;
    block.nowhere &= ~mask;
    block.copied |= mask & block.mostly_read;
    result_.peak_bytes = std::max(result_.peak_bytes, used_bytes_);
    make_newest(index);
  }

  // Pages leave the device; the bytes that have to be copied.
  uint64_t take_out(uint32_t index, uint32_t mask) {
    Block &block = blocks_[index];
    mask &= block.resident;
    if (mask != 0) ++departures_;
    used_bytes_ -= bytes_of(mask);
    block.resident &= ~mask;
    const uint32_t dropped = mask & block.copied;
    result_.dropped_bytes += bytes_of(dropped);
    block.copied &= ~mask;
    if (block.resident == 0) unlink(index);
    return bytes_of(mask & ~dropped);
  }

  // Makes room for `bytes` from `at` on, by the driver's own choice; when it is there.
  int64_t make_room(uint64_t bytes, int64_t at, uint64_t batch) {
    while (free_bytes() < bytes) {
      uint32_t victim = oldest_;
      while (victim != kNone && blocks_[victim].batch == batch) victim = blocks_[victim].next;
      if (victim == kNone) break;  // what is needed at once exceeds the device; the caller goes on all the same
      result_.is_full = true;
      const uint64_t copied = take_out(victim, UINT32_MAX);
      result_.evicted_bytes += copied;
      int64_t begin = at + parameters_.evict_ns;
      if (copied != 0) {
        begin = std::max(begin, to_host_free_);
        begin += time_of(static_cast<double>(copied), parameters_.to_host);
        to_host_free_ = begin;
      }
      at = begin;
    }
    return at;
  }

  // ---- the schedule ------------------------------------------------------------------------------------------------

  void issue(const MoveGroup &group) {
    const int64_t asked = group.waits_for_device ? now_ : std::min(now_, host_ns_);
    int64_t evicted = asked;
    for (const Move &move : group.moves) {
      if (!move.is_eviction) {
        queue_.push_back({move, evicted, 0, false});
        continue;
      }
      int64_t at = std::max(asked + parameters_.prefetch_call_ns, to_host_free_);
      for_each_block(move.allocation, move.first, move.count, [&](uint32_t block, uint32_t mask) {
        // A page on its way in is not taken out before it is there.
        if ((blocks_[block].resident & mask) != 0) at = std::max(at, blocks_[block].ready_ns);
        const uint64_t copied = take_out(block, mask);
        result_.planned_evicted_bytes += copied;
        at += time_of(static_cast<double>(copied), parameters_.to_host);
      });
      to_host_free_ = at;
      evicted = at;
    }
  }

  // Runs the prefetches that begin before `until`.
  void run_queue(int64_t until) {
    while (!queue_.empty() && advance(queue_.front(), until)) queue_.pop_front();
  }

  // False when `until` came before the move ended.
  bool advance(Queued &queued, int64_t until) {
    if (!queued.is_begun) {
      const int64_t begin = std::max(queued.issued_ns + parameters_.prefetch_call_ns, queue_free_);
      if (begin >= until) return false;
      queue_free_ = begin;
      queued.is_begun = true;
    }
    const uint64_t whole = pages_of(trace_.allocations[queued.move.allocation].bytes);
    const uint64_t end = std::min<uint64_t>(uint64_t{queued.move.first} + queued.move.count, whole);
    while (queued.move.first + queued.done < end) {
      if (std::max(queue_free_, to_device_free_) >= until) return false;
      const uint64_t page = uint64_t{queued.move.first} + queued.done;
      const auto pages = static_cast<uint32_t>(std::min<uint64_t>(kBlockPages - page % kBlockPages, end - page));
      for_each_block(queued.move.allocation, static_cast<uint32_t>(page), pages,
                     [&](uint32_t block, uint32_t mask) { prefetch(block, mask); });
      queued.done += pages;
    }
    return true;
  }

  void prefetch(uint32_t index, uint32_t mask) {
    Block &block = blocks_[index];
    const uint32_t missing = mask & ~block.resident & ~block.remote;
    if (missing == 0) return;
    queue_free_ = make_room(bytes_of(missing), queue_free_, kNobody);
    const uint32_t moved = missing & ~block.nowhere;
    int64_t end = queue_free_;
    if (moved != 0) {
      end =
          std::max(queue_free_, to_device_free_) + time_of(static_cast<double>(bytes_of(moved)), parameters_.to_device);
      to_device_free_ = end;
      result_.prefetched_bytes += bytes_of(moved);
    }
    end += time_of(static_cast<double>(bytes_of(missing & block.nowhere)), parameters_.populate_rate);
    queue_free_ = end;
    block.ready_ns = std::max(block.ready_ns, end);
    bring_in(index, missing);
  }

  // Waits for the moves that step `index` needs.
  void wait_for_moves(uint32_t index) {
    size_t last = 0;
    for (size_t at = 0; at < queue_.size(); ++at) {
      if (queue_[at].move.needed <= index) last = at + 1;
    }
    if (last == 0 && ready_ns_of_needed_ <= now_) return;
    for (; last != 0; --last) {
      const bool is_needed = queue_.front().move.needed <= index;
      advance(queue_.front(), INT64_MAX);
      queue_.pop_front();
      if (is_needed) ready_ns_of_needed_ = std::max(ready_ns_of_needed_, queue_free_);
    }
    if (ready_ns_of_needed_ > now_) {
      result_.wait_ns += ready_ns_of_needed_ - now_;
      now_ = ready_ns_of_needed_;
    }
  }

  // ---- steps -------------------------------------------------------------------------------------------------------

  void step(uint32_t index) {
    const Step &step = trace_.steps[index];
    for (; next_end_ < ends_.size() && ends_[next_end_].first <= index; ++next_end_) {
      const Allocation &ended = trace_.allocations[ends_[next_end_].second];
      for_each_block(ends_[next_end_].second, 0, static_cast<uint32_t>(pages_of(ended.bytes)),
                     [&](uint32_t block, uint32_t mask) { take_out(block, mask); });
    }
    run_queue(now_);
    for (; next_group_ < schedule_.groups.size() && schedule_.groups[next_group_].step <= index; ++next_group_) {
      issue(schedule_.groups[next_group_]);
    }
    if (step.is_host()) {
      touch_by_host(step);
      return;
    }
    host_ns_ = std::max(host_ns_ + parameters_.launch_ns, host_floor_);
    now_ += step.gap_ns;
    result_.gap_ns += step.gap_ns;
    wait_for_moves(index);
    const std::vector<BlockAccess> &all = accesses(step.touches);
    if (all.empty()) {
      compute(step.duration_ns);
      return;
    }
    // Nothing has left since all of it was found there.
    if (may_skip_ && found_there_[step.touches] == departures_) {
      compute(step.duration_ns);
      return;
    }
    const uint64_t departures = departures_;
    double done = 0;
    int64_t computed = 0;
    for (size_t at = 0; at < all.size(); ++at) {
      run_queue(now_);
      access(all, at, trace_.sets[step.touches].size());
      // Rounded sums, so that the step's duration comes out to the ns.
      done += all[at].share;
      const auto until =
          at + 1 == all.size() ? step.duration_ns : static_cast<int64_t>(done * static_cast<double>(step.duration_ns));
      const int64_t part = std::max<int64_t>(until - computed, 0);
      computed += part;
      compute(part);
      read_over_link(all[at], part);
    }
    if (departures == departures_) found_there_[step.touches] = departures_;
  }

  void compute(int64_t ns) {
    now_ += ns;
    result_.compute_ns += ns;
  }

  void read_over_link(const BlockAccess &access, int64_t computed) {
    const uint32_t remote = access.mask & blocks_[access.block].remote & ~blocks_[access.block].resident;
    if (remote == 0) return;
    const int64_t link = time_of(static_cast<double>(bytes_of(remote)) * access.traffic, parameters_.remote_rate);
    if (link <= computed) return;
    now_ += link - computed;
    result_.remote_ns += link - computed;
  }

  // Makes the pages of one access be there.
  void access(const std::vector<BlockAccess> &all, size_t at, size_t spans) {
    Block &block = blocks_[all[at].block];
    const uint32_t wanted = all[at].mask & ~block.remote;
    if (parameters_.order_by_access && block.resident != 0) make_newest(all[at].block);
    if (block.ready_ns > now_ && (wanted & block.resident) != 0) {
      result_.wait_ns += block.ready_ns - now_;
      now_ = block.ready_ns;
    }
    while ((all[at].mask & ~block.remote & ~block.resident) != 0) serve_batch(all, at, spans);
    if (all[at].is_written) block.copied &= ~all[at].mask;
  }

  // One fault batch: what the accesses from `at` on miss within the window.
  void serve_batch(const std::vector<BlockAccess> &all, size_t at, size_t spans) {
    const uint64_t batch = ++batch_;
    const uint64_t most = std::max<uint64_t>(parameters_.window_bytes / kPageBytes, 1);
    // Spans are walked side by side, so each has its part of the window.
    const auto most_of_block =
        static_cast<uint32_t>(std::clamp<uint64_t>(most / std::max<size_t>(spans, 1), 1, kBlockPages));
    uint64_t taken = 0;
    uint64_t bytes = 0;
    uint64_t moved_bytes = 0;
    uint64_t made_bytes = 0;
    int64_t fixed = 0;
    batch_pages_.clear();
    for (size_t next = at; next < all.size() && taken < most; ++next) {
      Block &block = blocks_[all[next].block];
      uint32_t missing = all[next].mask & ~block.resident & ~block.remote;
      block.batch = missing != 0 || next == at ? batch : block.batch;
      if (missing == 0) continue;
      uint32_t faults = 0;
      for (uint32_t count = 0; missing != 0 && count < most_of_block && taken < most; ++count, ++taken) {
        faults |= missing & -missing;
        missing &= missing - 1;
      }
      uint32_t migrated =
          pages_to_migrate(block.resident, faults, map_.whole(all[next].block), parameters_.tree_threshold) &
          ~block.remote;
      // The tree prefetcher does not make the driver evict what the batch needs.
      if (bytes + bytes_of(migrated) > capacity_) migrated = faults;
      if (!batch_pages_.empty() && bytes + bytes_of(migrated) > capacity_) break;
      const uint32_t moved = migrated & ~block.nowhere;
      bytes += bytes_of(migrated);
      moved_bytes += bytes_of(moved);
      made_bytes += bytes_of(migrated & ~moved);
      // Making pages costs by their bytes alone.
      if (moved != 0) fixed += parameters_.block_ns;
      batch_pages_.emplace_back(all[next].block, migrated);
    }
    const int64_t begin = now_;
    int64_t end = make_room(bytes, now_, batch);
    if (moved_bytes != 0) end += parameters_.batch_ns + fixed;
    end += time_of(static_cast<double>(made_bytes), parameters_.populate_rate);
    if (moved_bytes != 0) {
      end = std::max(end, to_device_free_) + time_of(static_cast<double>(moved_bytes), parameters_.fault_rate);
      to_device_free_ = end;
    }
    for (const auto &[index, mask] : batch_pages_) {
      bring_in(index, mask);
      blocks_[index].ready_ns = end;
    }
    now_ = end;
    result_.fault_ns += end - begin;
    result_.demand_bytes += moved_bytes;
    ++result_.batches;
  }

  void touch_by_host(const Step &step) {
    const int64_t begin = now_;
    for (const PageSpan &span : trace_.sets[step.touches]) {
      for_each_block(span.allocation, span.first, span.count, [&](uint32_t index, uint32_t mask) {
        Block &block = blocks_[index];
        block.nowhere &= ~mask;
        const uint32_t there = mask & block.resident;
        if (there == 0) return;
        // A copy that the host still has is read at no cost.
        if (!span.is_written && (there & ~block.copied) == 0) return;
        const uint64_t bytes = bytes_of(there & ~block.copied);
        now_ = std::max(now_, block.ready_ns);
        now_ += parameters_.host_fault_ns + time_of(static_cast<double>(bytes), parameters_.host_fault_rate);
        result_.host_fault_bytes += bytes;
        if (!span.is_written && (there & ~block.mostly_read) == 0) {
          block.copied |= there;  // both have it now
        } else {
          take_out(index, there);
        }
      });
    }
    result_.host_fault_ns += now_ - begin;
    // The host was here, so its next launch is not earlier.
    host_floor_ = std::max(host_floor_, now_);
  }

  const Trace &trace_;
  const PagingParameters &parameters_;
  const uint64_t capacity_;
  const Schedule &schedule_;
  const BlockMap map_;
  SimulationResult result_;
  std::vector<Block> blocks_;
  std::vector<std::vector<BlockAccess>> accesses_;  // by touch set
  std::vector<bool> is_known_;
  std::vector<uint64_t> found_there_;  // by touch set: `departures_` when all of it was there
  uint64_t departures_ = 0;            // how often pages left the device
  bool may_skip_ = false;
  std::vector<std::pair<uint32_t, uint32_t>> ends_;  // step, allocation
  size_t next_end_ = 0;
  size_t next_group_ = 0;
  std::deque<Queued> queue_;
  std::vector<std::pair<uint32_t, uint32_t>> batch_pages_;  // block, pages
  uint32_t oldest_ = kNone;
  uint32_t newest_ = kNone;
  uint64_t used_bytes_ = 0;
  uint64_t batch_ = 0;
  int64_t now_ = 0;      // of the device
  int64_t host_ns_ = 0;  // of the host's next launch
  int64_t host_floor_ = 0;
  int64_t queue_free_ = 0;      // when the stream of prefetches takes the next
  int64_t to_device_free_ = 0;  // when the link does, each way
  int64_t to_host_free_ = 0;
  int64_t ready_ns_of_needed_ = 0;
};

}  // namespace

uint32_t pages_to_migrate(uint32_t resident, uint32_t faults, uint32_t whole, double threshold) {
  uint32_t out = faults;
  const uint32_t occupied = (resident | faults) & whole;
  for (uint32_t left = faults; left != 0; left &= left - 1) {
    const auto page = static_cast<uint32_t>(std::countr_zero(left));
    uint32_t region = 0;
    for (uint32_t size = 2; size <= kBlockPages; size *= 2) {
      const uint32_t begin = page / size * size;
      const uint32_t subtree = (size == kBlockPages ? UINT32_MAX : ((1u << size) - 1) << begin) & whole;
      if (std::popcount(occupied & subtree) > threshold * std::popcount(subtree)) region = subtree;
    }
    out |= region;
  }
  return out & whole & ~resident;
}

SimulationResult simulate(const Trace &trace, const PagingParameters &parameters, uint64_t capacity,
                          const Schedule &schedule) {
  return Simulation(trace, parameters, capacity, schedule).run();
}

}  // namespace sonde::uvm
