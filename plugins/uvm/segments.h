// Pages of a trace cut where touches begin and end.
#pragma once

#include <cstdint>
#include <vector>

#include "planner.h"

namespace sonde::uvm {

struct Segment {
  uint32_t allocation = 0;
  uint32_t first = 0;  // page
  uint32_t count = 0;
  uint64_t bytes() const { return uint64_t{count} * kPageBytes; }
};

struct Segments {
  std::vector<Segment> all;                   // ascending
  std::vector<std::vector<uint32_t>> of_set;  // by touch set: numbers of segments
  std::vector<bool> is_written;               // by a device
};

// Cuts at the ends of every span of every touch set (kObject: of allocations), then into pieces of `chunk_bytes`.
Segments cut_segments(const Trace &trace, Level level, uint64_t chunk_bytes);

}  // namespace sonde::uvm
