#include "optimum.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

namespace sonde::uvm {

namespace {

uint64_t bytes_of(uint32_t mask) { return static_cast<uint64_t>(std::popcount(mask)) * kPageBytes; }

double ns_of(uint64_t bytes, double rate) { return static_cast<double>(bytes) / rate * 1e9; }

// Pages on the device, the block's next access, and when they may leave.
struct State {
  uint32_t resident = 0;
  uint32_t known = 0;  // pages with content
  uint32_t next = kNone;
  double last_ns = 0;   // end of the last access
  double ready_ns = 0;  // arrival
};

}  // namespace

Optimum optimum(const Trace &trace, const PagingParameters &parameters, uint64_t capacity, uint64_t most_accesses) {
  Optimum result;
  if (capacity < kBlockBytes) {
    result.is_impossible = true;
    return result;
  }
  const BlockMap map(trace);
  std::vector<std::vector<BlockAccess>> by_set(trace.sets.size());
  uint64_t count = 0;
  for (const Step &step : trace.steps) {
    auto &accesses = by_set[step.touches];
    if (accesses.empty() && step.touches != 0) accesses = accesses_of(trace.sets[step.touches], map);
    count += std::max<size_t>(accesses.size(), 1);
  }
  if (count > most_accesses || count >= kNone) {
    result.is_too_long = true;
    return result;
  }

  // Next accesses, from the end.
  std::vector<uint32_t> next_of(count, kNone);
  {
    std::vector<uint32_t> seen(map.count(), kNone);
    auto at = static_cast<uint32_t>(count);
    for (size_t step = trace.steps.size(); step-- != 0;) {
      const auto &accesses = by_set[trace.steps[step].touches];
      if (accesses.empty()) {
        --at;
        continue;
      }
      for (size_t index = accesses.size(); index-- != 0;) {
        --at;
        next_of[at] = seen[accesses[index].block];
        seen[accesses[index].block] = at;
      }
    }
  }

  std::vector<State> states(map.count());
  uint64_t used = 0;
  // Blocks on the device by next access, the furthest last. kNone (never again) is the greatest.
  std::set<std::pair<uint32_t, uint32_t>> order;
  for (uint32_t block = 0; block < map.count(); ++block) {
    const Home home = trace.allocations[map.allocation(block)].home;
    states[block].known = home == Home::kNowhere ? 0 : map.whole(block);
    if (home == Home::kDevice && used + bytes_of(map.whole(block)) <= capacity) {
      states[block].resident = map.whole(block);
      used += bytes_of(map.whole(block));
      order.emplace(0, block);  // the true next access is set at the first one
      states[block].next = 0;
    }
  }

  double now = 0;
  double to_device_free = 0;
  uint32_t at = 0;
  const auto leave = [&](uint32_t block, double moment) {
    State &state = states[block];
    const uint64_t bytes = bytes_of(state.resident);
    order.erase({state.next, block});
    used -= bytes;
    state.resident = 0;
    result.to_host_bytes += bytes;
    return std::max({moment, state.last_ns, state.ready_ns}) + ns_of(bytes, parameters.to_host);
  };

  std::vector<std::pair<uint32_t, uint32_t>> ends;
  for (uint32_t index = 0; index < trace.allocations.size(); ++index) {
    if (trace.allocations[index].end_step != kNone) ends.emplace_back(trace.allocations[index].end_step, index);
  }
  std::sort(ends.begin(), ends.end());
  size_t next_end = 0;

  for (uint32_t index = 0; index < trace.steps.size(); ++index) {
    const Step &step = trace.steps[index];
    for (; next_end < ends.size() && ends[next_end].first <= index; ++next_end) {
      const uint32_t first = map.first(ends[next_end].second);
      for (uint32_t block = first; block < map.count() && map.allocation(block) == ends[next_end].second; ++block) {
        if (states[block].resident == 0) continue;
        order.erase({states[block].next, block});
        used -= bytes_of(states[block].resident);
        states[block].resident = 0;
      }
    }
    const auto &accesses = by_set[step.touches];
    if (step.is_host()) {
      // The host waits for its pages, which were sent back after the device's last access.
      for (const BlockAccess &access : accesses) {
        State &state = states[access.block];
        if ((state.resident & access.mask) != 0) now = std::max(now, leave(access.block, 0));
        state.known |= access.mask;
        ++at;
      }
      if (accesses.empty()) ++at;
      continue;
    }
    now += static_cast<double>(step.gap_ns);
    if (accesses.empty()) {
      now += static_cast<double>(step.duration_ns);
      ++at;
      continue;
    }
    for (const BlockAccess &access : accesses) {
      State &state = states[access.block];
      const uint32_t missing = access.mask & ~state.resident;
      if (state.resident != 0) order.erase({state.next, access.block});
      if (missing != 0) {
        // Room, from what is needed last.
        double room_ns = 0;
        while (used + bytes_of(missing) > capacity && !order.empty()) {
          const uint32_t victim = std::prev(order.end())->second;
          room_ns = std::max(room_ns, leave(victim, 0));
        }
        const uint64_t moved = bytes_of(missing & state.known);
        double end = room_ns;
        if (moved != 0) {
          end = std::max(to_device_free, room_ns) + ns_of(moved, parameters.to_device);
          to_device_free = end;
          result.to_device_bytes += moved;
        }
        state.ready_ns = std::max(state.ready_ns, end);
        state.resident |= missing;
        state.known |= missing;
        used += bytes_of(missing);
      }
      state.next = next_of[at];
      order.emplace(state.next, access.block);
      now = std::max(now, state.ready_ns) + static_cast<double>(access.share) * static_cast<double>(step.duration_ns);
      state.last_ns = now;
      ++at;
    }
  }
  result.total_ns = static_cast<int64_t>(std::max(now, ns_of(result.to_host_bytes, parameters.to_host)) + 0.5);
  return result;
}

uint64_t belady_misses(const std::vector<uint32_t> &sequence, uint32_t room) {
  std::vector<uint32_t> next(sequence.size(), kNone);
  std::unordered_map<uint32_t, uint32_t> seen;
  for (size_t at = sequence.size(); at-- != 0;) {
    const auto found = seen.find(sequence[at]);
    if (found != seen.end()) next[at] = found->second;
    seen[sequence[at]] = static_cast<uint32_t>(at);
  }
  std::set<std::pair<uint32_t, uint32_t>> order;
  std::unordered_map<uint32_t, uint32_t> resident;  // thing to its next access
  uint64_t misses = 0;
  for (size_t at = 0; at < sequence.size(); ++at) {
    const uint32_t thing = sequence[at];
    const auto found = resident.find(thing);
    if (found != resident.end()) {
      order.erase({found->second, thing});
    } else {
      ++misses;
      if (resident.size() == room) {
        const auto victim = *std::prev(order.end());
        order.erase(victim);
        resident.erase(victim.second);
      }
    }
    resident[thing] = next[at];
    order.emplace(next[at], thing);
  }
  return misses;
}

int64_t transfer_bound_ns(const Trace &trace, const PagingParameters &parameters) {
  // Pages that come at least once: touched ones whose home is the host.
  const BlockMap map(trace);
  std::vector<uint32_t> touched(map.count(), 0);
  for (size_t set = 1; set < trace.sets.size(); ++set) {
    for (const BlockAccess &access : accesses_of(trace.sets[set], map)) touched[access.block] |= access.mask;
  }
  uint64_t bytes = 0;
  for (uint32_t block = 0; block < map.count(); ++block) {
    if (trace.allocations[map.allocation(block)].home == Home::kHost) bytes += bytes_of(touched[block]);
  }
  const auto transfer = static_cast<int64_t>(ns_of(bytes, parameters.to_device));
  return std::max(transfer, trace.resident_ns());
}

}  // namespace sonde::uvm
