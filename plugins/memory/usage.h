// What is known of one object when its life is over.
#pragma once

#include <sonde/toolkit/memory_history.h>

#include <cstdint>
#include <vector>

#include "intra_object.h"
#include "options.h"
#include "patterns.h"

namespace sonde::memory {

// A moment at which an object was used.
struct Use {
  uint64_t sequence = 0;  // of all that happened in the process, from 1
  uint64_t operation = 0;
  uint64_t kernels = 0;  // launches before it
  int64_t time_ns = 0;
  uint64_t stream = 0;
  uint32_t name = 0;
  toolkit::OperationKind kind = toolkit::OperationKind::kKernel;

  bool is_kernel() const { return kind == toolkit::OperationKind::kKernel; }
  // Launches up to and with it.
  uint64_t kernels_after() const { return kernels + (is_kernel() ? 1 : 0); }
};

// Not used between two uses.
struct IdleSlice {
  Use from;
  Use to;
  uint64_t gap = 0;        // kernels launched strictly between
  uint64_t allocated = 0;  // objects that began meanwhile on the device, at the level
  uint64_t peak = 0;       // sequence of the peak so far, where it lies within; 0: it does not

  double held_ns() const { return static_cast<double>(to.time_ns - from.time_ns); }
};

struct Usage {
  static constexpr size_t kMostSlices = 64;

  toolkit::MemoryObject object;
  uint64_t begin_sequence = 0;
  uint64_t end_sequence = 0;  // of what came before its end
  uint32_t scope_name = 0;    // operator or scope that it was made in
  bool is_segment = false;    // tensors were cut from it
  bool is_touched_late = false;

  // Uses, as host_uses counts them.
  uint64_t uses = 0;
  Use first;
  Use last;
  uint64_t kernels = 0;  // that touched it
  bool is_read_by_host = false;
  uint64_t early_gap = 0;            // kernels strictly between its begin and first use
  uint64_t late_gap = 0;             // between its last use and end
  uint64_t freed_meanwhile = 0;      // objects of its device and level, between begin and first use
  uint64_t allocated_meanwhile = 0;  // between last use and end
  // Every kernel in the gap was watched as a whole, so none of them used the object unseen.
  bool is_early_certain = true;
  bool is_late_certain = true;
  bool is_life_certain = true;

  // Idle stretches. With an absolute threshold the sums are of all that reach it, and the slices the longest of them; with a
  // share the slices are all that may, and judge() sums up.
  std::vector<IdleSlice> idle;
  uint64_t idle_count = 0;
  uint64_t idle_uncertain = 0;
  uint64_t longest_idle = 0;  // kernels
  double idle_ns = 0;
  uint64_t idle_peak = 0;  // sequence of the peak that lies in an idle stretch

  HostWrites::Result writes;
  bool has_intra = false;
  IntraResult intra;

  // Made by judge().
  PatternSet patterns;
  PatternSet uncertain;

  // Made by sharing: whose memory it could take over.
  uint64_t shares_with = 0;

  double life_ns() const { return static_cast<double>(object.end_ns - object.begin_ns); }
  bool lives_at(uint64_t sequence) const { return begin_sequence <= sequence && sequence <= end_sequence; }
  // Bytes that mending `pattern` frees at a moment.
  uint64_t saved_at(uint64_t sequence, Pattern pattern) const;
  // Bytes times ns that mending it frees over the object's life.
  double saved(Pattern pattern) const;
  // The same for all patterns of time together, or of the worst one within the object.
  double wasted() const;
  double held() const { return static_cast<double>(object.bytes) * life_ns(); }
};

// Device memory whose begin or end a program can move.
bool is_judged(const Usage &usage, const Options &options);

// Sets patterns and uncertain from what is known; `all_kernels` of the process, for thresholds that are shares. The
// pattern kRedundantAllocation is not set here: it takes two objects.
void judge(Usage &usage, const Options &options, uint64_t all_kernels);

}  // namespace sonde::memory
