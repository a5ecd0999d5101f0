// The optimum to compare plans with: Belady's evictions with prefetches that only the link limits.
//
// Accesses are those of the simulator, block by block. When a missing block needs room, the block whose next access is
// furthest away leaves (Belady 1966, least misses where blocks have one size). The moves to the device, in order of need,
// then run as early as the link and the room allow: a move begins when the one before it has ended, and when the device
// has made the last access to what leaves for it and that has been copied out. Copies to the host do not wait for each
// other, but the whole takes no less than all of them one by one. No call, fault or list costs anything. A page that nobody
// has touched yet is made for nothing.
//
// It is what plans are compared with, not a bound for everything: reading over the link without moving, or another victim
// that is copied out sooner, can be better in single cases.
#pragma once

#include <cstdint>
#include <vector>

#include "parameters.h"
#include "trace.h"

namespace sonde::uvm {

struct Optimum {
  int64_t total_ns = 0;
  uint64_t to_device_bytes = 0;
  uint64_t to_host_bytes = 0;
  bool is_impossible = false;  // the capacity does not hold one block
  bool is_too_long = false;    // more accesses than `most_accesses`: not calculated
};

// O(n log n) in block accesses; 24 bytes an access.
Optimum optimum(const Trace &trace, const PagingParameters &parameters, uint64_t capacity,
                uint64_t most_accesses = 1'000'000);

// The least misses of a sequence of unit-sized things in `room` places, by Belady's rule. For tests of the rule.
uint64_t belady_misses(const std::vector<uint32_t> &sequence, uint32_t room);

// The model without paging: max(bytes that must come / link, time with everything resident).
int64_t transfer_bound_ns(const Trace &trace, const PagingParameters &parameters);

}  // namespace sonde::uvm
