// The paging simulator: how long a trace takes on a device of some capacity, with a schedule or without.
//
// A pure function of its arguments: no clock, no host, no randomness. It models one device that runs steps one after the
// other (kernels that overlap are taken one by one), a link that carries both directions at the same time, and the
// driver:
//
// - A page that a kernel misses is brought in by fault batches (parameters.h). A batch takes the pages that the kernel's
//   accesses miss within `window_bytes`, lets the tree prefetcher enlarge them, evicts for room, and copies. Pages that
//   nobody has touched are made instead, at a rate of their own.
// - Prefetches run first in, first out, beside the kernels, as fast as the link lets them. A kernel that touches a page
//   on its way waits for it.
// - Without room, the block that came in (or was enlarged) longest ago goes to the host. Evictions of the schedule go by
//   the other direction of the link, and a prefetch waits for those before it in its group.
// - Pages of advice: read-mostly ones stay on the host too and leave without a copy as long as nobody writes; ones that
//   prefer the host and are accessed by the device are read over the link and never move.
//
// Time: accesses of blocks, plus moved blocks. Memory: 40 bytes a block and 16 a block and distinct touch set.
#pragma once

#include <cstdint>

#include "parameters.h"
#include "schedule.h"
#include "trace.h"

namespace sonde::uvm {

struct SimulationResult {
  int64_t total_ns = 0;  // from the first launch to the end of the last step
  int64_t compute_ns = 0;
  int64_t gap_ns = 0;
  int64_t fault_ns = 0;       // the device waited for fault batches, and the evictions in them
  int64_t wait_ns = 0;        // the device waited for prefetches
  int64_t host_fault_ns = 0;  // the host waited for its own faults
  int64_t remote_ns = 0;      // beyond computing, for accesses over the link
  uint64_t batches = 0;
  uint64_t demand_bytes = 0;  // to the device by faults
  uint64_t prefetched_bytes = 0;
  uint64_t evicted_bytes = 0;  // by the driver for want of room, with a copy
  uint64_t planned_evicted_bytes = 0;
  uint64_t dropped_bytes = 0;  // left the device without a copy
  uint64_t host_fault_bytes = 0;
  uint64_t peak_bytes = 0;     // most on the device at one time
  bool is_full = false;        // the driver had to evict
  bool is_impossible = false;  // the capacity does not hold one block
};

// `capacity` in bytes of the device; UINT64_MAX: all fits.
SimulationResult simulate(const Trace &trace, const PagingParameters &parameters, uint64_t capacity,
                          const Schedule &schedule = {});

// Pages that a batch of one block migrates: `faults` and what the tree prefetcher adds, of pages in `whole` that are not
// `resident`. For each faulting page the greatest subtree (2, 4, ... 32 pages, aligned) of which more than `threshold`
// is resident or faulting; a subtree at the end of an allocation counts the pages that it has.
//   One page after the other of an empty block: 1, 1, 2, 4, 8, 16 pages: six batches bring in 2 MiB.
uint32_t pages_to_migrate(uint32_t resident, uint32_t faults, uint32_t whole, double threshold);

}  // namespace sonde::uvm
