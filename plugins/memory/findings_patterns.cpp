#include <sonde/spaces/device.h>
#include <sonde/toolkit/text.h>

#include <algorithm>
#include <array>
#include <string>

#include "advice.h"
#include "rules.h"

namespace sonde::memory {

using toolkit::format_bytes;
using toolkit::format_share;
using toolkit::ObjectLevel;

void PatternRules::all() const {
  for (size_t i = 0; i < kPatterns; ++i) {
    if (pattern_at(i) == Pattern::kRedundantAllocation) {
      redundant();
    } else {
      pattern(pattern_at(i));
    }
  }
}

std::string PatternRules::threshold(const char *name, const KernelThreshold &value) const {
  return std::string(name) + " (" + short_number(value.value) +
         (value.is_share()   ? " of all kernels"
          : value.value == 1 ? " kernel"
                             : " kernels") +
         ")";
}

std::string PatternRules::formula(Pattern pattern) const {
  const std::string needed = options_.memory_aware ? ", and another object was " : "";
  switch (pattern) {
    case Pattern::kEarlyAllocation:
      return "kernels launched strictly between begin and first use >= " +
             threshold("early_kernels", options_.early_kernels) +
             (options_.memory_aware ? needed + "freed meanwhile" : "");
    case Pattern::kLateDeallocation:
      return "kernels launched strictly between last use and free >= " +
             threshold("late_kernels", options_.late_kernels) +
             (options_.memory_aware ? needed + "made meanwhile" : "");
    case Pattern::kRedundantAllocation:
      return "last use of another object is before its first, both were allocated at one time, and their sizes "
             "differ by "
             "at most reuse_tolerance (" +
             short_number(options_.reuse_tolerance) + ") of the larger";
    case Pattern::kUnusedAllocation:
      return "no kernel touched it, and nothing was read from it";
    case Pattern::kLeak:
      return "no free before the end of the capture";
    case Pattern::kTemporaryIdleness:
      return "kernels launched strictly between two consecutive uses >= " +
             threshold("idle_kernels", options_.idle_kernels) +
             (options_.memory_aware ? needed + "made meanwhile" : "");
    case Pattern::kDeadWrite:
      return "every byte of a write of the host was overwritten before any was read";
    case Pattern::kOverAllocation:
      return "accessed bytes / bytes < access_rate (" + short_number(options_.access_rate) +
             "), 1 - widest unused piece / unused bytes <= fragmentation (" + short_number(options_.fragmentation) +
             "), widest unused piece >= over_allocation_bytes (" + std::to_string(options_.over_allocation_bytes) + ")";
    case Pattern::kNonUniformAccess:
      return "standard deviation / mean of accesses over touched pages >= frequency_cv (" +
             short_number(options_.frequency_cv) + ") with at least frequency_pages (" +
             std::to_string(options_.frequency_pages) + ")";
    case Pattern::kStructuredAccess:
      return "its uses fall into at least structured_slices (" + std::to_string(options_.structured_slices) +
             ") disjoint slices, the largest at most structured_share (" + short_number(options_.structured_share) +
             ") of its bytes";
  }
  return "";
}

std::string PatternRules::message(const Usage &usage, Pattern pattern) const {
  std::string out = object_title(memory_, usage);
  out[0] = static_cast<char>(out[0] - 'a' + 'A');
  switch (pattern) {
    case Pattern::kEarlyAllocation:
      return out + " was allocated " + count_of(usage.early_gap, "kernel") + " before its first use.";
    case Pattern::kLateDeallocation:
      return out + " was freed " + count_of(usage.late_gap, "kernel") + " after its last use.";
    case Pattern::kUnusedAllocation:
      return out + " was never used.";
    case Pattern::kLeak:
      return out + " was not freed before the capture ended.";
    case Pattern::kTemporaryIdleness:
      return out + " was idle " + count_of(usage.idle_count, "time") + ", for up to " +
             count_of(usage.longest_idle, "kernel") + " at a time.";
    case Pattern::kDeadWrite:
      return count_of(usage.writes.dead, "write") + " of the host to " + object_title(memory_, usage) +
             (usage.writes.dead == 1 ? " was" : " were") + " overwritten before anybody read what was written.";
    case Pattern::kOverAllocation:
      return out + " is larger than needed: " + format_share(usage.intra.access_rate) + " of its bytes were accessed.";
    case Pattern::kNonUniformAccess:
      return out + " is accessed unevenly: a tenth of its touched pages gets " +
             format_share(usage.intra.hottest_share) + " of the accesses.";
    case Pattern::kStructuredAccess:
      return out + " is used slice by slice: " + count_of(usage.intra.slices, "slice") + " of at most " +
             format_bytes(usage.intra.largest_slice) + " that no two steps share.";
    case Pattern::kRedundantAllocation:
      break;
  }
  return out;
}

uint32_t PatternRules::severity(const Usage &usage, Pattern pattern) {
  switch (pattern) {
    case Pattern::kTemporaryIdleness:
    case Pattern::kNonUniformAccess:
    case Pattern::kStructuredAccess:
      return SONDE_SEVERITY_NOTE;
    case Pattern::kLeak:
      // Parameters and caches of a framework live until the process ends on purpose.
      return usage.object.level == ObjectLevel::kTensor ? SONDE_SEVERITY_NOTE : SONDE_SEVERITY_WARNING;
    default:
      return SONDE_SEVERITY_WARNING;
  }
}

void PatternRules::numbers(Finding &result, const Usage &usage, Pattern pattern) const {
  switch (pattern) {
    case Pattern::kEarlyAllocation:
      result.evidence("kernels_between", "1", usage.early_gap)
          .evidence("freed_meanwhile", "1", usage.freed_meanwhile)
          .kernel(memory_.text(usage.first.name));
      break;
    case Pattern::kLateDeallocation:
      result.evidence("kernels_between", "1", usage.late_gap)
          .evidence("allocated_meanwhile", "1", usage.allocated_meanwhile)
          .kernel(memory_.text(usage.last.name));
      break;
    case Pattern::kTemporaryIdleness: {
      const auto longest = std::max_element(usage.idle.begin(), usage.idle.end(),
                                            [](const IdleSlice &a, const IdleSlice &b) { return a.gap < b.gap; });
      result.evidence("kernels_between", "1", usage.longest_idle).evidence("times", "1", usage.idle_count);
      if (longest != usage.idle.end()) {
        result.evidence("allocated_meanwhile", "1", longest->allocated)
            .evidence("idle_from_kernel", "1", longest->from.kernels)
            .evidence("idle_to_kernel", "1", longest->to.kernels)
            .kernel(memory_.text(longest->to.name));
      }
      break;
    }
    case Pattern::kDeadWrite:
      result.evidence("dead_writes", "1", usage.writes.dead)
          .evidence("dead_bytes", "bytes", usage.writes.dead_bytes)
          .evidence("overwritten_by_kernels", "1", usage.writes.by_kernels);
      break;
    case Pattern::kOverAllocation:
      result.evidence("access_rate", "1", usage.intra.access_rate)
          .evidence("fragmentation", "1", usage.intra.fragmentation)
          .evidence("widest_unused", "bytes", usage.intra.widest_unused.bytes)
          .evidence("widest_unused_begin", "bytes", usage.intra.widest_unused.begin);
      break;
    case Pattern::kNonUniformAccess:
      result.evidence("variation", "1", usage.intra.variation)
          .evidence("touched_parts", "1", usage.intra.touched_parts)
          .evidence("part", "bytes", usage.intra.part_bytes)
          .evidence("hottest_share", "1", usage.intra.hottest_share);
      break;
    case Pattern::kStructuredAccess:
      result.evidence("slices", "1", usage.intra.slices).evidence("largest_slice", "bytes", usage.intra.largest_slice);
      break;
    case Pattern::kLeak:
    case Pattern::kUnusedAllocation:
    case Pattern::kRedundantAllocation:
      break;
  }
}

double PatternRules::confidence(const Group &group, const Usage &usage, Pattern pattern) {
  if (pattern == Pattern::kLeak) return usage.object.level == ObjectLevel::kTensor ? 0.3 : 0.8;
  if (group.process->trusted != 0) return 0.45;
  // Managed memory is used by the host's code too, which nobody sees.
  if (usage.object.kind == SONDE_MEMORY_MANAGED) return 0.5;
  // Without copies in the capture, results may have been read unseen.
  const bool may_be_read = pattern == Pattern::kLateDeallocation || pattern == Pattern::kUnusedAllocation ||
                           pattern == Pattern::kTemporaryIdleness;
  return may_be_read && group.process->transfers == 0 ? 0.6 : 0.9;
}

void PatternRules::pattern(Pattern pattern) const {
  const std::string rule(name_of(pattern));
  bool broken = false;
  uint64_t uncertain = 0, looked = 0;
  for (const auto &[key, group] : objects_.groups()) {
    if (needs_accesses(pattern) && !group->process->has_accesses()) continue;
    const PatternTotals &totals = group->patterns[index_of(pattern)];
    looked += group->begins;
    uncertain += totals.uncertain;
    for (const Usage *const usage : group->worst_of[index_of(pattern)].sorted()) {
      broken = true;
      Finding result = finding(rule);
      result.violation(severity(*usage, pattern), message(*usage, pattern));
      result.advice(suggestion(memory_, *usage, pattern)).formula(formula(pattern));
      result.tensor(memory_.name_of_object(usage->object)).call_path(memory_.text(usage->object.call_path));
      if (const auto id = memory_.process_ids().find(group->source); id != memory_.process_ids().end()) {
        result.evidence("process", "1", id->second);
      }
      result.evidence("device", "1", group->device)
          .evidence("level", "", level_name(group->level))
          .evidence("object", "1", usage->object.id)
          .evidence("address", "1", usage->object.address)
          .evidence("bytes", "bytes", usage->object.bytes);
      numbers(result, *usage, pattern);
      result.evidence("saved", "bytes*s", usage->saved(pattern) * 1e-9)
          .evidence("saved_at_peak", "bytes", usage->saved_at(group->peak_sequence, pattern))
          .evidence("objects_like_this", "1", totals.objects)
          .confidence(confidence(*group, *usage, pattern));
      publish(std::move(result));
    }
  }
  if (!broken) none(pattern, looked, uncertain);
}

void PatternRules::none(Pattern pattern, uint64_t looked, uint64_t uncertain) const {
  const std::string what = in_words(name_of(pattern));
  Finding result = finding(name_of(pattern));
  result.formula(formula(pattern));
  const std::string blind = "It was not looked for: " + what + ".";
  if (needs_accesses(pattern) && launches_ == 0) {
    result.unsupported(blind,
                       "the capture holds no record of what kernels accessed (record it with the port cuda_access)");
  } else if (needs_accesses(pattern) && watched_ == 0) {
    result.unsupported(blind, "none of the " + count_of(launches_, "kernel launch") + " was watched");
  } else if (looked == 0) {
    result.unsupported(blind, "the capture holds no device memory");
  } else if (pattern == Pattern::kDeadWrite && transfers_ == 0) {
    result.unsupported(blind, "the capture holds no copy or set of the host with its addresses");
  } else if (pattern == Pattern::kNonUniformAccess && !has_pages_) {
    result.unsupported(blind, "the capture holds no histograms over pages (collect: pages)");
  } else if (is_intra_object(pattern) && !has_bytes_) {
    result.unsupported(blind, "the capture does not say which bytes kernels touched (collect: intervals)");
  } else if (uncertain != 0) {
    result.unsupported(blind,
                       count_of(uncertain, "object") +
                           " could not be judged, because kernels that were not watched as a whole may have used "
                           "them");
  } else {
    result.ok("None of " + count_of(looked, "object") + " shows it: " + what + ".");
  }
  publish(std::move(result));
}

void PatternRules::redundant() const {
  bool broken = false;
  uint64_t looked = 0;
  for (const auto &[key, group] : objects_.groups()) {
    if (!group->process->has_accesses()) continue;
    looked += group->begins;
    auto left = static_cast<size_t>(options_.findings_of_rule);
    for (const SharedPair &pair : group->shared.pairs) {
      if (left-- == 0) break;
      broken = true;
      Finding result = finding(name_of(Pattern::kRedundantAllocation));
      const std::string name = memory_.name_of_object(pair.later_object);
      result.violation(SONDE_SEVERITY_WARNING,
                       std::string(group->level == ObjectLevel::kAllocation ? "Allocation " : "Tensor ") + name + " (" +
                           format_bytes(pair.later_object.bytes) + ") could use the memory of object " +
                           std::to_string(pair.earlier) + ", whose last use is over before.");
      result
          .advice("Use that memory from " + use_name(memory_, pair.first_of_later) + " on; its last use is " +
                  use_name(memory_, pair.last_of_earlier) + "." +
                  (pair.is_across_streams ? " The two are on different streams: order them with an event." : ""))
          .formula(formula(Pattern::kRedundantAllocation))
          .tensor(name)
          .call_path(memory_.text(pair.later_object.call_path))
          .kernel(memory_.text(pair.first_of_later.name))
          .evidence("device", "1", group->device)
          .evidence("level", "", level_name(group->level))
          .evidence("object", "1", pair.later)
          .evidence("shares_with", "1", pair.earlier)
          .evidence("bytes", "bytes", pair.bytes)
          .evidence("across_streams", "", pair.is_across_streams)
          .evidence("saved", "bytes*s", pair.byte_ns * 1e-9)
          .evidence("saved_at_peak", "bytes", pair.at_peak)
          .evidence("objects_like_this", "1", group->shared.pairs.size())
          .evidence("not_looked_at", "1", group->shared.left_out)
          .confidence((pair.is_across_streams ? 0.6 : 0.8) * (group->process->trusted != 0 ? 0.5 : 1));
      publish(std::move(result));
    }
  }
  if (!broken) none(Pattern::kRedundantAllocation, looked, looked != 0 && incomplete_ != 0 ? looked : 0);
}

}  // namespace sonde::memory
