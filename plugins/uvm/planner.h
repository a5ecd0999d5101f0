// From a trace to a schedule: which pages to move when, under a capacity.
//
// 1. Memory is cut into segments: pages of one allocation that the same touch sets touch, at most `chunk_bytes` each; with
//    `Level::kObject`, whole allocations.
// 2. Going through the launches in order, each missing segment is fetched before the first launch that touches it. Room
//    comes from what was never used, then from the segments whose next use is furthest away (Belady 1966), evicted right
//    after their last use. A fetch is asked for at the first launch at which its room is there (the "aggressive" order of
//    Cao, Felten, Karlin and Li, SIGMETRICS 1995), but no earlier than needed:
// 3. Look-ahead. Going backwards, a fetch of b bytes has to begin at
//        latest = min(begin of its launch, latest of the fetch after it) - slack * (call + b / bandwidth)
//    where begins of launches are sums of their times. It is asked for at the last launch that begins before that.
//    Where the sum of all fetches exceeds the time of the launches, latest is before the first launch, and all are asked
//    for as early as their room allows.
// 4. A segment that does not fit beside what its own launch needs is left to the driver.
// 5. Buffers that host and device touch in turn stay on the host (preferred location, accessed by the device) where
//    reading them over the link costs less than moving them.
// 6. With too little memory, segments that are never evicted and that at least `pin_share` of the launches touch are
//    pinned: their preferred location is the device. Segments that the device never writes and the host touches again
//    are read-mostly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parameters.h"
#include "schedule.h"
#include "trace.h"

namespace sonde::uvm {

enum class Level : uint8_t { kObject, kTensor };

struct PlannerOptions {
  Level level = Level::kTensor;
  uint64_t chunk_bytes = 32 << 20;  // greatest segment
  double slack = 1.5;               // of a fetch's time, for what the model does not know
  double pin_share = 0.5;
  uint32_t ping_pong = 3;            // turns between host and device from which a buffer may stay on the host
  uint64_t least_bytes = 256 << 10;  // smaller segments are left to the driver
  uint64_t most_moves = 20'000;      // beyond: nothing more is planned
};

struct PlanFacts {
  uint64_t segments = 0;
  uint64_t left_to_driver = 0;  // fetches for which there was no room beside their own launch's needs
  uint64_t too_small = 0;
  uint64_t pinned_bytes = 0;
  uint64_t kept_on_host_bytes = 0;
  uint64_t read_mostly_bytes = 0;
  uint64_t greatest_distance = 0;  // launches between a fetch and its use
  bool is_cut = false;             // most_moves was reached
};

struct MadePlan {
  Schedule schedule;
  PlanFacts facts;
};

// `capacity` in bytes. O(n log n) in touched segments over all launches.
MadePlan make_plan(const Trace &trace, const PagingParameters &parameters, uint64_t capacity,
                   const PlannerOptions &options);

// What prefetching without a plan does: before each launch, whole allocations that it touches, with no look-ahead and no
// eviction. The published tool's object level, which made programs slower when memory was short.
Schedule whole_objects_at_each_launch(const Trace &trace);

// A schedule as the fewest moves: neighbours of one group with the same purpose are one.
void join_neighbours(Schedule &schedule);

// The lookahead rule alone, for tests: by fetch (in order of need) the step at which it is asked for at the latest.
// `begins`: begin of each step, ns. `needs` and `bytes` by fetch; needs ascend.
std::vector<uint32_t> latest_steps(const std::vector<int64_t> &begins, const std::vector<uint32_t> &needs,
                                   const std::vector<uint64_t> &bytes, const PagingParameters &parameters,
                                   double slack);

}  // namespace sonde::uvm
