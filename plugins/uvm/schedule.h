// When memory moves, in steps and pages of a trace: what the planner makes and the simulator runs.
#pragma once

#include <cstdint>
#include <vector>

#include "trace.h"

namespace sonde::uvm {

struct Move {
  uint32_t allocation = 0;
  uint32_t first = 0;  // page
  uint32_t count = 0;
  bool is_eviction = false;  // to the host, else to the device
  uint32_t needed = kNone;   // step that does not begin before the move is done; kNone: nobody waits
};

// Asked for before a step is launched. A move to the device waits for the evictions before it in the list.
struct MoveGroup {
  uint32_t step = 0;
  bool waits_for_device = false;  // begins when the device has come to the step, else when the host has
  std::vector<Move> moves;
};

enum class AdviceKind : uint8_t { kReadMostly, kPreferDevice, kPreferHost, kAccessedBy };

struct Advice {
  uint32_t allocation = 0;
  uint32_t first = 0;
  uint32_t count = 0;
  AdviceKind kind = AdviceKind::kReadMostly;
};

struct Schedule {
  std::vector<MoveGroup> groups;  // ascending by step
  std::vector<Advice> advice;     // given when the allocation is made

  bool is_empty() const { return groups.empty() && advice.empty(); }
  uint64_t moves() const {
    uint64_t sum = 0;
    for (const MoveGroup &group : groups) sum += group.moves.size();
    return sum;
  }
  uint64_t bytes(bool evictions) const {
    uint64_t pages = 0;
    for (const MoveGroup &group : groups) {
      for (const Move &move : group.moves) pages += move.is_eviction == evictions ? move.count : 0;
    }
    return pages * kPageBytes;
  }
};

}  // namespace sonde::uvm
