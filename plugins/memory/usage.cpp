#include "usage.h"

#include <algorithm>

#include <sonde/spaces/device.h>

namespace sonde::memory {

using toolkit::MemoryObject;
using toolkit::ObjectEnd;

uint64_t Usage::saved_at(uint64_t sequence, Pattern pattern) const {
  if (!patterns.has(pattern) || !lives_at(sequence)) return 0;
  switch (pattern) {
    case Pattern::kEarlyAllocation:
      return sequence < first.sequence ? object.bytes : 0;
    case Pattern::kLateDeallocation:
      return sequence > last.sequence ? object.bytes : 0;
    case Pattern::kUnusedAllocation:
      return object.bytes;
    case Pattern::kLeak:
      return uses != 0 && sequence > last.sequence ? object.bytes : 0;
    case Pattern::kTemporaryIdleness:
      return idle_peak == sequence ? object.bytes : 0;
    case Pattern::kOverAllocation:
      return intra.widest_unused.bytes;
    case Pattern::kStructuredAccess:
      return object.bytes - std::min(intra.largest_slice, object.bytes);
    case Pattern::kRedundantAllocation:  // of two objects, see sharing.h
    case Pattern::kDeadWrite:
    case Pattern::kNonUniformAccess:
      return 0;
  }
  return 0;
}

double Usage::saved(Pattern pattern) const {
  if (!patterns.has(pattern)) return 0;
  const auto bytes = static_cast<double>(object.bytes);
  switch (pattern) {
    case Pattern::kEarlyAllocation:
      return bytes * static_cast<double>(first.time_ns - object.begin_ns);
    case Pattern::kLateDeallocation:
      return bytes * static_cast<double>(object.end_ns - last.time_ns);
    case Pattern::kUnusedAllocation:
      return held();
    case Pattern::kLeak:
      return uses == 0 ? held() : bytes * static_cast<double>(object.end_ns - last.time_ns);
    case Pattern::kTemporaryIdleness:
      return bytes * idle_ns;
    case Pattern::kOverAllocation:
      return static_cast<double>(intra.widest_unused.bytes) * life_ns();
    case Pattern::kStructuredAccess:
      return static_cast<double>(object.bytes - std::min(intra.largest_slice, object.bytes)) * life_ns();
    case Pattern::kRedundantAllocation:
    case Pattern::kDeadWrite:
    case Pattern::kNonUniformAccess:
      return 0;
  }
  return 0;
}

double Usage::wasted() const {
  if (patterns.has(Pattern::kUnusedAllocation)) return saved(Pattern::kUnusedAllocation);
  const double over_time = saved(Pattern::kEarlyAllocation) + saved(Pattern::kLateDeallocation) +
                           saved(Pattern::kLeak) + saved(Pattern::kTemporaryIdleness);
  return std::max({over_time, saved(Pattern::kOverAllocation), saved(Pattern::kStructuredAccess)});
}

bool is_judged(const Usage &usage, const Options &options) {
  const MemoryObject &object = usage.object;
  if (object.bytes < static_cast<uint64_t>(options.object_bytes)) return false;
  if (usage.is_segment && !options.judge_segments) return false;
  return object.kind != SONDE_MEMORY_DEVICE_STATIC && object.kind != SONDE_MEMORY_MANAGED_STATIC;
}

void judge(Usage &usage, const Options &options, uint64_t all_kernels) {
  usage.patterns = {};
  usage.uncertain = {};
  if (!is_judged(usage, options)) return;
  const MemoryObject &object = usage.object;
  const bool sees_begin = !object.is_implicit && !object.is_before_capture;
  const auto set = [&](Pattern pattern, bool is_certain) {
    (is_certain && !usage.is_touched_late ? usage.patterns : usage.uncertain).add(pattern);
  };

  if (sees_begin && object.end == ObjectEnd::kAlive) usage.patterns.add(Pattern::kLeak);
  if (usage.uses == 0 || (usage.kernels == 0 && !usage.is_read_by_host)) {
    // A write of the host alone is no use: nobody looked at what was written.
    if (sees_begin) set(Pattern::kUnusedAllocation, usage.is_life_certain);
  }
  if (usage.uses != 0 && !usage.patterns.has(Pattern::kUnusedAllocation)) {
    if (sees_begin && options.early_kernels.reached(usage.early_gap, all_kernels) &&
        (!options.memory_aware || usage.freed_meanwhile != 0)) {
      set(Pattern::kEarlyAllocation, usage.is_early_certain);
    }
    if (object.end == ObjectEnd::kFreed && options.late_kernels.reached(usage.late_gap, all_kernels) &&
        (!options.memory_aware || usage.allocated_meanwhile != 0)) {
      set(Pattern::kLateDeallocation, usage.is_late_certain);
    }
    if (options.idle_kernels.is_share()) {
      usage.idle_count = 0;
      usage.idle_ns = 0;
      usage.longest_idle = usage.idle_peak = 0;
      std::erase_if(usage.idle,
                    [&](const IdleSlice &slice) { return !options.idle_kernels.reached(slice.gap, all_kernels); });
      for (const IdleSlice &slice : usage.idle) {
        ++usage.idle_count;
        usage.idle_ns += slice.held_ns();
        usage.longest_idle = std::max(usage.longest_idle, slice.gap);
        usage.idle_peak = std::max(usage.idle_peak, slice.peak);
      }
    }
    if (usage.idle_count != 0) set(Pattern::kTemporaryIdleness, true);
    if (usage.idle_count == 0 && usage.idle_uncertain != 0) usage.uncertain.add(Pattern::kTemporaryIdleness);
  }
  if (usage.writes.dead != 0) set(Pattern::kDeadWrite, true);
  if (usage.writes.dead == 0 && usage.writes.uncertain != 0) usage.uncertain.add(Pattern::kDeadWrite);

  const IntraResult &intra = usage.intra;
  if (!usage.has_intra || usage.patterns.has(Pattern::kUnusedAllocation)) return;
  if (intra.has_bytes && intra.access_rate < options.access_rate && intra.fragmentation <= options.fragmentation &&
      intra.widest_unused.bytes >= static_cast<uint64_t>(options.over_allocation_bytes)) {
    set(Pattern::kOverAllocation, usage.is_life_certain);
  }
  if (intra.has_pages && intra.touched_parts >= static_cast<uint64_t>(options.frequency_pages) &&
      intra.variation >= options.frequency_cv) {
    set(Pattern::kNonUniformAccess, usage.is_life_certain);
  }
  if (intra.has_slices && intra.slices >= static_cast<uint64_t>(options.structured_slices) &&
      static_cast<double>(intra.largest_slice) <= options.structured_share * static_cast<double>(object.bytes)) {
    set(Pattern::kStructuredAccess, usage.is_life_certain);
  }
}

}  // namespace sonde::memory
