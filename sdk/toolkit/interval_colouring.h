// Sharing memory between things that are needed at different times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <vector>

namespace sonde::toolkit {

// Needed from moment `first` to moment `last`, both included.
struct Need {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t bytes = 0;
};

// The most needed at one moment: no way of sharing takes less. O(n log n).
inline uint64_t needed_bound(std::span<const Need> needs) {
  std::vector<std::pair<uint64_t, uint64_t>> begins, ends;
  begins.reserve(needs.size());
  ends.reserve(needs.size());
  for (const Need &need : needs) {
    begins.emplace_back(need.first, need.bytes);
    ends.emplace_back(need.last, need.bytes);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  uint64_t now = 0, most = 0;
  size_t ended = 0;
  for (const auto &[first, bytes] : begins) {
    for (; ended < ends.size() && ends[ended].first < first; ++ended) now -= ends[ended].second;
    now += bytes;
    most = std::max(most, now);
  }
  return most;
}

// Whole allocations that serve several needs one after another.
struct SlotPlan {
  std::vector<uint32_t> slot_of;     // by need
  std::vector<uint64_t> slot_bytes;  // of the largest need of a slot
  uint64_t bytes = 0;                // of all slots
};

// Colours the intervals: larger needs first, each takes the smallest slot that is free all the time that it is needed.
// Among needs of one size that is the fewest slots possible; with several sizes it is a plan that works.
// O(n * slots * log n).
inline SlotPlan share_slots(std::span<const Need> needs) {
  std::vector<uint32_t> order(needs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (needs[a].bytes != needs[b].bytes) return needs[a].bytes > needs[b].bytes;
    return needs[a].first != needs[b].first ? needs[a].first < needs[b].first : a < b;
  });
  SlotPlan plan;
  plan.slot_of.resize(needs.size());
  std::vector<std::map<uint64_t, uint64_t>> taken;  // of each slot: first to last
  for (const uint32_t at : order) {
    const Need &need = needs[at];
    const auto is_free = [&](const std::map<uint64_t, uint64_t> &slot) {
      const auto after = slot.upper_bound(need.last);
      return after == slot.begin() || std::prev(after)->second < need.first;
    };
    size_t slot = taken.size();
    while (slot != 0 && !is_free(taken[slot - 1])) --slot;  // the smallest come last
    if (slot == 0) {
      taken.emplace_back();
      plan.slot_bytes.push_back(need.bytes);
      plan.bytes += need.bytes;
      slot = taken.size();
    }
    taken[slot - 1].emplace(need.first, need.last);
    plan.slot_of[at] = static_cast<uint32_t>(slot - 1);
  }
  return plan;
}

// Needs at offsets of one piece of memory.
struct OffsetPlan {
  std::vector<uint64_t> offset_of;  // by need
  uint64_t bytes = 0;
};

// Places the needs in the order given by `order`, each into the tightest hole among those that are needed while it is.
inline OffsetPlan place_in_order(std::span<const Need> needs, std::span<const uint32_t> order) {
  OffsetPlan plan;
  plan.offset_of.resize(needs.size());
  std::vector<uint32_t> placed;  // by offset
  for (const uint32_t at : order) {
    const Need &need = needs[at];
    uint64_t end = 0, best = UINT64_MAX, best_slack = UINT64_MAX;
    for (const uint32_t other : placed) {
      if (needs[other].first > need.last || needs[other].last < need.first) continue;
      const uint64_t offset = plan.offset_of[other];
      if (offset > end && offset - end >= need.bytes && offset - end - need.bytes < best_slack) {
        best = end;
        best_slack = offset - end - need.bytes;
      }
      end = std::max(end, offset + needs[other].bytes);
    }
    if (best == UINT64_MAX) best = end;
    plan.offset_of[at] = best;
    plan.bytes = std::max(plan.bytes, best + need.bytes);
    const auto where = std::upper_bound(placed.begin(), placed.end(), best, [&](uint64_t offset, uint32_t other) {
      return offset < plan.offset_of[other];
    });
    placed.insert(where, at);
  }
  return plan;
}

// The better one of two orders: larger first, and more bytes times moments first. At least needed_bound, and equal to it
// where nothing better can exist. O(n^2).
inline OffsetPlan pack_offsets(std::span<const Need> needs) {
  std::vector<uint32_t> order(needs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (needs[a].bytes != needs[b].bytes) return needs[a].bytes > needs[b].bytes;
    return needs[a].first != needs[b].first ? needs[a].first < needs[b].first : a < b;
  });
  OffsetPlan by_size = place_in_order(needs, order);
  if (by_size.bytes == needed_bound(needs)) return by_size;
  const auto area = [&](uint32_t at) {
    return static_cast<double>(needs[at].bytes) * static_cast<double>(needs[at].last - needs[at].first + 1);
  };
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return area(a) > area(b); });
  OffsetPlan by_area = place_in_order(needs, order);
  return by_area.bytes < by_size.bytes ? by_area : by_size;
}

}  // namespace sonde::toolkit
