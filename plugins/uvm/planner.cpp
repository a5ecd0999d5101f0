#include "planner.h"

#include <algorithm>
#include <queue>
#include <set>

#include "segments.h"

namespace sonde::uvm {

namespace {

int64_t transfer_ns(uint64_t bytes, double rate) {
  return static_cast<int64_t>(static_cast<double>(bytes) / rate * 1e9 + 0.5);
}

struct Fetch {
  uint32_t segment = 0;
  uint32_t need = 0;      // step
  uint32_t earliest = 0;  // step at which there is room
};

struct Eviction {
  uint32_t segment = 0;
  uint32_t step = 0;   // first step after its last use
  uint32_t fetch = 0;  // that it makes room for
};

class Planner {
 public:
  Planner(const Trace &trace, const PagingParameters &parameters, uint64_t capacity, const PlannerOptions &options)
      : trace_(trace),
        parameters_(parameters),
        capacity_(capacity),
        options_(options),
        segments_(cut_segments(trace, options.level, options.chunk_bytes)) {}

  MadePlan make() {
    plan_.facts.segments = segments_.all.size();
    begins_.reserve(trace_.steps.size());
    int64_t time = 0;
    for (const Step &step : trace_.steps) {
      time += step.gap_ns;
      begins_.push_back(time);
      time += step.duration_ns;
    }
    keep_on_host();
    find_next_uses();
    walk();
    place();
    advise();
    join_neighbours(plan_.schedule);
    return std::move(plan_);
  }

 private:
  struct State {
    bool is_resident = false;
    bool was_here = false;
    bool was_evicted = false;
    uint32_t next = kNone;  // step of the next use
    uint32_t last = 0;      // step of the last use, while resident
    uint32_t uses = 0;
    uint32_t host_step = 0;  // no fetch before it: the host touched it then, or it was not there
  };

  // ---- buffers that go back and forth ------------------------------------------------------------------------------

  void keep_on_host() {
    states_.resize(segments_.all.size());
    is_kept_.resize(segments_.all.size());
    std::vector<uint32_t> turns(segments_.all.size(), 0);
    std::vector<uint32_t> device_uses(segments_.all.size(), 0);
    std::vector<double> remote_ns(segments_.all.size(), 0);
    std::vector<uint8_t> side(segments_.all.size(), 0);  // 1 host, 2 device
    // Bytes that a launch asks for, by byte of the segment; the greatest of all launches.
    std::vector<double> traffic_of(segments_.all.size(), 0);
    std::vector<bool> is_of_device(trace_.sets.size());
    for (const Step &step : trace_.steps) {
      if (!step.is_host()) is_of_device[step.touches] = true;
    }
    for (size_t set = 0; set < trace_.sets.size(); ++set) {
      if (!is_of_device[set]) continue;
      for (const PageSpan &span : trace_.sets[set]) {
        for (const uint32_t segment : segments_.of_set[set]) {
          if (segments_.all[segment].allocation == span.allocation) {
            traffic_of[segment] = std::max<double>(traffic_of[segment], span.traffic);
          }
        }
      }
    }
    for (const Step &step : trace_.steps) {
      const uint8_t now = step.is_host() ? 1 : 2;
      for (const uint32_t segment : segments_.of_set[step.touches]) {
        if (side[segment] != 0 && side[segment] != now) ++turns[segment];
        side[segment] = now;
        if (step.is_host()) continue;
        ++device_uses[segment];
        remote_ns[segment] +=
            static_cast<double>(segments_.all[segment].bytes()) * traffic_of[segment] / parameters_.remote_rate * 1e9;
      }
    }
    for (uint32_t segment = 0; segment < segments_.all.size(); ++segment) {
      if (turns[segment] < options_.ping_pong) continue;
      const auto bytes = static_cast<double>(segments_.all[segment].bytes());
      const double moving_ns =
          turns[segment] / 2.0 * (bytes / parameters_.to_device + bytes / parameters_.host_fault_rate) * 1e9;
      if (remote_ns[segment] < moving_ns) is_kept_[segment] = true;
    }
  }

  // ---- which, and from when on there is room -----------------------------------------------------------------------

  void find_next_uses() {
    // Uses of segments by step, flattened from the end: `next_uses_` runs parallel to the sets' lists.
    offsets_.assign(trace_.steps.size() + 1, 0);
    for (size_t step = 0; step < trace_.steps.size(); ++step) {
      offsets_[step + 1] = offsets_[step] + segments_.of_set[trace_.steps[step].touches].size();
    }
    next_uses_.assign(offsets_.back(), kNone);
    std::vector<uint32_t> seen(segments_.all.size(), kNone);
    for (size_t step = trace_.steps.size(); step-- != 0;) {
      const auto &used = segments_.of_set[trace_.steps[step].touches];
      for (size_t index = 0; index < used.size(); ++index) {
        next_uses_[offsets_[step] + index] = seen[used[index]];
        seen[used[index]] = static_cast<uint32_t>(step);
      }
    }
    for (uint32_t segment = 0; segment < segments_.all.size(); ++segment) {
      const Allocation &allocation = trace_.allocations[segments_.all[segment].allocation];
      states_[segment].next = seen[segment];
      states_[segment].host_step = allocation.begin_step;
    }
  }

  void make_resident(uint32_t segment) {
    State &state = states_[segment];
    state.is_resident = state.was_here = true;
    used_ += segments_.all[segment].bytes();
    order_.emplace(state.next, segment);
  }

  void make_absent(uint32_t segment) {
    State &state = states_[segment];
    order_.erase({state.next, segment});
    state.is_resident = false;
    used_ -= segments_.all[segment].bytes();
  }

  void walk() {
    free_.push({capacity_, 0});
    std::vector<std::pair<uint32_t, uint32_t>> ends;
    for (uint32_t segment = 0; segment < segments_.all.size(); ++segment) {
      const Allocation &allocation = trace_.allocations[segments_.all[segment].allocation];
      if (allocation.end_step != kNone) ends.emplace_back(allocation.end_step, segment);
      if (allocation.home == Home::kDevice && used_ + segments_.all[segment].bytes() <= capacity_ &&
          !is_kept_[segment]) {
        take_room(segments_.all[segment].bytes());
        make_resident(segment);
      }
    }
    std::sort(ends.begin(), ends.end());
    size_t next_end = 0;
    for (uint32_t index = 0; index < trace_.steps.size(); ++index) {
      const Step &step = trace_.steps[index];
      for (; next_end < ends.size() && ends[next_end].first <= index; ++next_end) {
        const uint32_t segment = ends[next_end].second;
        if (!states_[segment].is_resident) continue;
        make_absent(segment);
        free_.push({segments_.all[segment].bytes(), index});
      }
      visit(step, index);
      if (plan_.facts.is_cut) return;
    }
  }

  void visit(const Step &step, uint32_t index) {
    const auto &used = segments_.of_set[step.touches];
    // What this step needs is not to be evicted for it: its next use is this step, the nearest there is.
    for (size_t at = 0; at < used.size(); ++at) {
      State &state = states_[used[at]];
      if (state.is_resident) {
        order_.erase({state.next, used[at]});
        state.next = index;
        order_.emplace(index, used[at]);
      } else {
        state.next = index;
      }
    }
    for (const uint32_t segment : used) {
      State &state = states_[segment];
      if (is_kept_[segment]) continue;
      if (step.is_host()) {
        state.host_step = index + 1;
        if (state.is_resident) {
          // The host's fault takes it away.
          make_absent(segment);
          free_.push({segments_.all[segment].bytes(), index});
        }
        continue;
      }
      ++state.uses;
      if (!state.is_resident) fetch(segment, index);
      state.last = index;
    }
    for (size_t at = 0; at < used.size(); ++at) {
      State &state = states_[used[at]];
      const uint32_t next = next_uses_[offsets_[index] + at];
      if (state.is_resident) {
        order_.erase({state.next, used[at]});
        order_.emplace(next, used[at]);
      }
      state.next = next;
    }
  }

  void fetch(uint32_t segment, uint32_t index) {
    const uint64_t bytes = segments_.all[segment].bytes();
    if (bytes < options_.least_bytes && !states_[segment].was_here) {
      ++plan_.facts.too_small;
      return;
    }
    while (capacity_ - used_ < bytes) {
      if (order_.empty() || std::prev(order_.end())->first <= index) {
        ++plan_.facts.left_to_driver;
        return;
      }
      const uint32_t victim = std::prev(order_.end())->second;
      evictions_.push_back({victim, states_[victim].last + 1, static_cast<uint32_t>(fetches_.size())});
      states_[victim].was_evicted = true;
      free_.push({segments_.all[victim].bytes(), states_[victim].last + 1});
      make_absent(victim);
    }
    const uint32_t room = take_room(bytes);
    earliest_ = std::max({earliest_, std::min(room, index), std::min(states_[segment].host_step, index)});
    fetches_.push_back({segment, index, std::min(earliest_, index)});
    make_resident(segment);
    if (fetches_.size() + evictions_.size() >= options_.most_moves) plan_.facts.is_cut = true;
  }

  // Takes free bytes, those that were free first; the step from which on all of them are.
  uint32_t take_room(uint64_t bytes) {
    uint32_t step = 0;
    while (bytes != 0 && !free_.empty()) {
      Room first = free_.top();
      free_.pop();
      const uint64_t part = std::min(first.bytes, bytes);
      step = std::max(step, first.step);
      first.bytes -= part;
      bytes -= part;
      if (first.bytes != 0) free_.push(first);
    }
    return step;
  }

  // ---- when ----------------------------------------------------------------------------------------------------------

  void place() {
    std::vector<uint32_t> needs;
    std::vector<uint64_t> bytes;
    for (const Fetch &fetch : fetches_) {
      needs.push_back(fetch.need);
      bytes.push_back(segments_.all[fetch.segment].bytes());
    }
    std::vector<uint32_t> latest = latest_steps(begins_, needs, bytes, parameters_, options_.slack);
    if (evictions_.empty()) {
      // Pieces are for making room. Without that, all that a launch needs is asked for with its first piece, so that
      // neighbours become one call: each call costs its fixed part.
      for (size_t index = 1; index < latest.size(); ++index) {
        if (needs[index] == needs[index - 1]) latest[index] = latest[index - 1];
      }
    }
    // A fetch waits for the evictions before it in the list, so each stands right before the fetch that it is for.
    struct Placed {
      uint32_t step;
      uint32_t fetch;
      Move move;
    };
    std::vector<Placed> moves;
    for (const Eviction &eviction : evictions_) {
      Move move = move_of(eviction.segment);
      move.is_eviction = true;
      moves.push_back({eviction.step, eviction.fetch, move});
    }
    uint32_t before = 0;
    for (uint32_t index = 0; index < fetches_.size(); ++index) {
      const Fetch &fetch = fetches_[index];
      Move move = move_of(fetch.segment);
      move.needed = fetch.need;
      // In the order of need, so that none overtakes another.
      const uint32_t step = std::max(before, std::clamp(latest[index], fetch.earliest, fetch.need));
      before = step;
      moves.push_back({step, index, move});
      plan_.facts.greatest_distance = std::max<uint64_t>(plan_.facts.greatest_distance, fetch.need - step);
    }
    std::stable_sort(moves.begin(), moves.end(), [](const Placed &left, const Placed &right) {
      return left.step != right.step ? left.step < right.step : left.fetch < right.fetch;
    });
    auto &groups = plan_.schedule.groups;
    for (const auto &[step, fetch, move] : moves) {
      // Moves are asked for at launches only.
      uint32_t launch = step;
      while (launch < trace_.steps.size() && trace_.steps[launch].is_host()) ++launch;
      if (launch >= trace_.steps.size()) continue;
      if (groups.empty() || groups.back().step != launch) groups.push_back({launch, false, {}});
      groups.back().moves.push_back(move);
    }
    // Without evictions nothing has to be kept from coming too early.
    for (MoveGroup &group : groups) group.waits_for_device = !evictions_.empty();
  }

  Move move_of(uint32_t segment) const {
    const Segment &pages = segments_.all[segment];
    return {pages.allocation, pages.first, pages.count, false, kNone};
  }

  // ---- advice ------------------------------------------------------------------------------------------------------

  void advise() {
    const uint64_t launches = std::max<uint64_t>(trace_.launches(), 1);
    std::vector<bool> touched_by_host(segments_.all.size());
    for (const Step &step : trace_.steps) {
      if (!step.is_host()) continue;
      for (const uint32_t segment : segments_.of_set[step.touches]) touched_by_host[segment] = true;
    }
    for (uint32_t segment = 0; segment < segments_.all.size(); ++segment) {
      const Segment &pages = segments_.all[segment];
      const auto add = [&](AdviceKind kind) {
        plan_.schedule.advice.push_back({pages.allocation, pages.first, pages.count, kind});
      };
      if (is_kept_[segment]) {
        add(AdviceKind::kPreferHost);
        add(AdviceKind::kAccessedBy);
        plan_.facts.kept_on_host_bytes += pages.bytes();
        continue;
      }
      if (touched_by_host[segment] && !segments_.is_written[segment]) {
        add(AdviceKind::kReadMostly);
        plan_.facts.read_mostly_bytes += pages.bytes();
      }
      const State &state = states_[segment];
      const bool is_hot = static_cast<double>(state.uses) >= options_.pin_share * static_cast<double>(launches);
      if (!evictions_.empty() && is_hot && state.was_here && !state.was_evicted) {
        add(AdviceKind::kPreferDevice);
        plan_.facts.pinned_bytes += pages.bytes();
      }
    }
  }

  struct Room {
    uint64_t bytes;
    uint32_t step;  // from which on it is free
  };
  struct LaterRoom {
    bool operator()(const Room &left, const Room &right) const { return left.step > right.step; }
  };

  const Trace &trace_;
  const PagingParameters &parameters_;
  const uint64_t capacity_;
  const PlannerOptions &options_;
  const Segments segments_;
  MadePlan plan_;
  std::vector<int64_t> begins_;
  std::vector<State> states_;
  std::vector<bool> is_kept_;  // on the host
  std::vector<size_t> offsets_;
  std::vector<uint32_t> next_uses_;
  std::set<std::pair<uint32_t, uint32_t>> order_;                 // resident: next use, segment
  std::priority_queue<Room, std::vector<Room>, LaterRoom> free_;  // that which was free first on top
  std::vector<Fetch> fetches_;
  std::vector<Eviction> evictions_;
  uint64_t used_ = 0;
  uint32_t earliest_ = 0;
};

}  // namespace

std::vector<uint32_t> latest_steps(const std::vector<int64_t> &begins, const std::vector<uint32_t> &needs,
                                   const std::vector<uint64_t> &bytes, const PagingParameters &parameters,
                                   double slack) {
  std::vector<uint32_t> steps(needs.size(), 0);
  int64_t latest = INT64_MAX;
  for (size_t index = needs.size(); index-- != 0;) {
    const double cost =
        slack * static_cast<double>(parameters.prefetch_call_ns + transfer_ns(bytes[index], parameters.to_device));
    latest = std::min(latest, begins[needs[index]]) - static_cast<int64_t>(cost);
    // The last step that begins no later.
    const auto after = std::upper_bound(begins.begin(), begins.begin() + needs[index] + 1, latest);
    steps[index] = after == begins.begin() ? 0 : static_cast<uint32_t>(after - begins.begin() - 1);
  }
  return steps;
}

MadePlan make_plan(const Trace &trace, const PagingParameters &parameters, uint64_t capacity,
                   const PlannerOptions &options) {
  return Planner(trace, parameters, capacity, options).make();
}

Schedule whole_objects_at_each_launch(const Trace &trace) {
  Schedule schedule;
  for (uint32_t index = 0; index < trace.steps.size(); ++index) {
    const Step &step = trace.steps[index];
    if (step.is_host() || trace.sets[step.touches].empty()) continue;
    MoveGroup group{index, true, {}};
    uint32_t last = kNone;
    for (const PageSpan &span : trace.sets[step.touches]) {
      if (span.allocation == last) continue;
      last = span.allocation;
      const auto pages = static_cast<uint32_t>(pages_of(trace.allocations[last].bytes));
      group.moves.push_back({last, 0, pages, false, index});
    }
    schedule.groups.push_back(std::move(group));
  }
  return schedule;
}

void join_neighbours(Schedule &schedule) {
  for (MoveGroup &group : schedule.groups) {
    std::vector<Move> joined;
    for (const Move &move : group.moves) {
      if (!joined.empty()) {
        Move &last = joined.back();
        if (last.allocation == move.allocation && last.is_eviction == move.is_eviction && last.needed == move.needed &&
            last.first + last.count == move.first) {
          last.count += move.count;
          continue;
        }
      }
      joined.push_back(move);
    }
    group.moves = std::move(joined);
  }
  std::vector<Advice> advice;
  std::stable_sort(schedule.advice.begin(), schedule.advice.end(), [](const Advice &left, const Advice &right) {
    if (left.allocation != right.allocation) return left.allocation < right.allocation;
    if (left.kind != right.kind) return left.kind < right.kind;
    return left.first < right.first;
  });
  for (const Advice &one : schedule.advice) {
    if (!advice.empty() && advice.back().allocation == one.allocation && advice.back().kind == one.kind &&
        advice.back().first + advice.back().count == one.first) {
      advice.back().count += one.count;
    } else {
      advice.push_back(one);
    }
  }
  schedule.advice = std::move(advice);
}

}  // namespace sonde::uvm
