#include <sonde/toolkit/text.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "advice.h"
#include "publish.h"

namespace sonde::memory {
namespace {

using toolkit::format_bytes;
using toolkit::format_share;
using toolkit::MemoryHistoryCounts;
using toolkit::ObjectLevel;

std::string number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.6g", value);
  return buffer;
}

std::string count_of(uint64_t count, const char *thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

double part(uint64_t some, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(some) / static_cast<double>(whole);
}

// Each rule reports the objects that break it, worst first; where none does, one finding says that it looked, or why it
// could not.
class Judge {
 public:
  Judge(const Memory &memory, const Host &host, sonde_session_t *session)
      : memory_(memory), objects_(memory.objects()), options_(memory.options()), host_(host), session_(session) {}

  void all(const std::vector<std::string> &file_errors) {
    for (const auto &[source, process] : objects_.processes()) {
      launches_ += process.launches;
      watched_ += process.watched;
      incomplete_ += process.incomplete;
      has_bytes_ = has_bytes_ || process.with_edges + process.with_pages != 0;
      has_pages_ = has_pages_ || process.with_pages != 0;
    }
    for (size_t i = 0; i < kPatterns; ++i) {
      if (pattern_at(i) == Pattern::kRedundantAllocation) {
        redundant();
      } else {
        pattern(pattern_at(i));
      }
    }
    peak();
    reserved_unused();
    fragmentation();
    stream_ordered_free();
    unmatched_free();
    complete();
    for (const std::string &error : file_errors) {
      Finding result = finding("files");
      result.violation(SONDE_SEVERITY_ERROR, "A file that was asked for could not be written: " + error + ".");
      publish(std::move(result));
    }
  }

 private:
  Finding finding(std::string_view rule) const {
    return Finding(kOrigin, std::string(kOrigin) + "." + std::string(rule));
  }
  void publish(Finding finding) const { finding.publish(host_, session_); }

  std::string owner(uint32_t source) const {
    if (objects_.processes().size() < 2) return "";
    const auto id = memory_.process_ids().find(source);
    return " of process " + (id == memory_.process_ids().end() ? std::string("(unnamed)") : std::to_string(id->second));
  }

  std::string threshold(const char *name, const KernelThreshold &value) const {
    return std::string(name) + " (" + number(value.value) +
           (value.is_share()   ? " of all kernels"
            : value.value == 1 ? " kernel"
                               : " kernels") +
           ")";
  }

  std::string formula(Pattern pattern) const {
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
               number(options_.reuse_tolerance) + ") of the larger";
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
        return "accessed bytes / bytes < access_rate (" + number(options_.access_rate) +
               "), 1 - widest unused piece / unused bytes <= fragmentation (" + number(options_.fragmentation) +
               "), widest unused piece >= over_allocation_bytes (" + std::to_string(options_.over_allocation_bytes) +
               ")";
      case Pattern::kNonUniformAccess:
        return "standard deviation / mean of accesses over touched pages >= frequency_cv (" +
               number(options_.frequency_cv) + ") with at least frequency_pages (" +
               std::to_string(options_.frequency_pages) + ")";
      case Pattern::kStructuredAccess:
        return "its uses fall into at least structured_slices (" + std::to_string(options_.structured_slices) +
               ") disjoint slices, the largest at most structured_share (" + number(options_.structured_share) +
               ") of its bytes";
    }
    return "";
  }

  std::string message(const Usage &usage, Pattern pattern) const {
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
        return out + " is larger than needed: " + format_share(usage.intra.access_rate) +
               " of its bytes were accessed.";
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

  static uint32_t severity(const Usage &usage, Pattern pattern) {
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

  void numbers(Finding &result, const Usage &usage, Pattern pattern) const {
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
        result.evidence("slices", "1", usage.intra.slices)
            .evidence("largest_slice", "bytes", usage.intra.largest_slice);
        break;
      case Pattern::kLeak:
      case Pattern::kUnusedAllocation:
      case Pattern::kRedundantAllocation:
        break;
    }
  }

  // Managed memory is used by the host too, which nobody sees.
  static double confidence(const Usage &usage, Pattern pattern) {
    const bool is_managed = usage.object.kind == SONDE_MEMORY_MANAGED;
    if (pattern == Pattern::kLeak) return usage.object.level == ObjectLevel::kTensor ? 0.3 : 0.8;
    return is_managed ? 0.5 : 0.9;
  }

  void pattern(Pattern pattern) const {
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
            .confidence(confidence(*usage, pattern));
        publish(std::move(result));
      }
    }
    if (!broken) none(pattern, looked, uncertain);
  }

  void none(Pattern pattern, uint64_t looked, uint64_t uncertain) const {
    std::string what(name_of(pattern));
    std::replace(what.begin(), what.end(), '_', ' ');
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

  void redundant() const {
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
                         std::string(group->level == ObjectLevel::kAllocation ? "Allocation " : "Tensor ") + name +
                             " (" + format_bytes(pair.later_object.bytes) + ") could use the memory of object " +
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
            .confidence(pair.is_across_streams ? 0.6 : 0.8);
        publish(std::move(result));
      }
    }
    if (!broken) none(Pattern::kRedundantAllocation, looked, looked != 0 && incomplete_ != 0 ? looked : 0);
  }

  void peak() const {
    const std::string formula = "(peak - needed) / peak >= peak_saving_share (" + number(options_.peak_saving_share) +
                                "), needed: the most at one time if each object lived from first to last use";
    bool broken = false, looked = false, any = false;
    for (const auto &[key, group] : objects_.groups()) {
      any = any || group->begins != 0;
      if (!group->process->has_accesses() || group->process->incomplete + group->process->late_operations != 0)
        continue;
      looked = true;
      const uint64_t needed = group->needed_peak();
      const uint64_t saved = group->peak_bytes - std::min(needed, group->peak_bytes);
      if (group->peak_bytes == 0 || part(saved, group->peak_bytes) < options_.peak_saving_share) continue;
      broken = true;
      Finding result = finding("peak");
      result.violation(SONDE_SEVERITY_WARNING,
                       std::string(group->level == ObjectLevel::kAllocation ? "Allocations" : "Tensors") +
                           " on device " + std::to_string(group->device) + owner(group->source) + " reach " +
                           format_bytes(group->peak_bytes) + " at one time, where " + format_bytes(needed) +
                           " would do if each object lived from its first to its last "
                           "use.");
      std::string advice = "At the peak";
      std::array<size_t, kPatterns> order{};
      for (size_t i = 0; i < kPatterns; ++i) order[i] = i;
      std::stable_sort(order.begin(), order.end(), [&group = group](size_t a, size_t b) {
        return group->patterns[a].at_peak > group->patterns[b].at_peak;
      });
      for (const size_t i : order) {
        if (group->patterns[i].at_peak == 0) break;
        std::string what(kPatternNames[i]);
        std::replace(what.begin(), what.end(), '_', ' ');
        advice += (advice.back() == 'k' ? " " : ", ") + what + " holds " + format_bytes(group->patterns[i].at_peak);
      }
      advice += advice == "At the peak" ? " every object is between its uses or close to them." : ".";
      result.advice(advice +
                    " See the tables live_at_peak and patterns; placing all objects at fixed offsets of one piece "
                    "takes " +
                    format_bytes(group->shared.offsets_bytes) + ".");
      result.formula(formula)
          .evidence("device", "1", group->device)
          .evidence("level", "", level_name(group->level))
          .evidence("peak", "bytes", group->peak_bytes)
          .evidence("needed", "bytes", needed)
          .evidence("saved", "bytes", saved)
          .evidence("without_early", "bytes", group->from_first_use_peak)
          .evidence("without_late", "bytes", group->until_last_use.greatest().value)
          .evidence("shared_offsets", "bytes", group->shared.offsets_bytes)
          .evidence("shared_slots", "bytes", group->shared.slots_bytes)
          .evidence("not_packed", "1", group->shared.left_out)
          .evidence("touched_by_one_kernel", "bytes", group->touched_peak)
          .confidence(0.9);
      publish(std::move(result));
    }
    if (broken) return;
    Finding result = finding("peak");
    result.formula(formula);
    if (looked) {
      result.ok("The peak holds little that is not needed then.");
    } else if (!any) {
      result.unsupported("How low the peak can get was not judged.", "the capture holds no device memory");
    } else if (launches_ == 0 || watched_ == 0) {
      result.unsupported("How low the peak can get was not judged.",
                         "the capture holds no record of what kernels accessed (record it with the port cuda_access)");
    } else {
      result.unsupported("How low the peak can get was not judged.",
                         std::to_string(incomplete_) + " of " + count_of(launches_, "kernel launch") +
                             " were not watched as a whole, so objects may be needed longer than is known");
    }
    publish(std::move(result));
  }

  void reserved_unused() const {
    const std::string formula = "(reserved - used) / reserved when most was reserved >= unused_reserved_share (" +
                                number(options_.unused_reserved_share) + ")";
    bool broken = false, looked = false;
    for (const auto &[key, space] : objects_.fragmentation().spaces()) {
      if (space->reserved_peak == 0) continue;
      looked = true;
      const uint64_t unused = space->reserved_peak - std::min(space->used_at_reserved_peak, space->reserved_peak);
      if (part(unused, space->reserved_peak) < options_.unused_reserved_share) continue;
      broken = true;
      Finding result = finding("reserved_unused");
      result.violation(SONDE_SEVERITY_WARNING,
                       "The caching allocator of device " + std::to_string(std::get<1>(key)) + owner(std::get<0>(key)) +
                           " held " + format_bytes(space->reserved_peak) + " at most, of which tensors used " +
                           format_bytes(space->used_at_reserved_peak) + " then.");
      result
          .advice(
              "The rest was used before, or is lost to the places of tensors: release cached memory between phases, or "
              "give the allocator growing segments (PyTorch: expandable_segments).")
          .formula(formula)
          .evidence("device", "1", std::get<1>(key))
          .evidence("reserved", "bytes", space->reserved_peak)
          .evidence("used", "bytes", space->used_at_reserved_peak)
          .evidence("used_peak", "bytes", space->used_peak)
          .evidence("largest_gap", "bytes", space->gap_at_reserved_peak)
          .evidence("free_pieces", "1", space->gaps_at_reserved_peak)
          .confidence(0.8);
      publish(std::move(result));
    }
    if (broken) return;
    Finding result = finding("reserved_unused");
    result.formula(formula);
    if (looked) {
      result.ok("Tensors used most of what the caching allocator held.");
    } else {
      result.unsupported("Reserved memory was not judged.",
                         "the capture holds no tensor that lies in an allocation it knows");
    }
    publish(std::move(result));
  }

  void fragmentation() const {
    const std::string formula =
        "memory taken from the device although as many bytes were free in what the allocator held, in pieces too small "
        "/ "
        "most that it held >= forced_growth_share (" +
        number(options_.forced_growth_share) + ")";
    bool broken = false, looked = false;
    const auto report = [&](const std::string &who, uint32_t device, uint64_t times, uint64_t forced, uint64_t held) {
      looked = true;
      if (forced == 0 || part(forced, held) < options_.forced_growth_share) return;
      broken = true;
      Finding result = finding("fragmentation");
      result.violation(SONDE_SEVERITY_WARNING, who + " grew by " + format_bytes(forced) + " in " +
                                                   count_of(times, "step") +
                                                   " although as much was free, in pieces too small or set apart.");
      result
          .advice(
              "Ask for large blocks first, free neighbours together, round sizes to few classes, or let segments grow "
              "in place (PyTorch: expandable_segments).")
          .formula(formula)
          .evidence("device", "1", device)
          .evidence("forced", "bytes", forced)
          .evidence("times", "1", times)
          .evidence("held", "bytes", held)
          .confidence(0.7);
      publish(std::move(result));
    };
    for (const auto &[key, space] : objects_.fragmentation().spaces()) {
      if (space->reserved_peak == 0) continue;
      report("The caching allocator of device " + std::to_string(std::get<1>(key)) + owner(std::get<0>(key)),
             std::get<1>(key), space->forced, space->forced_bytes, space->reserved_peak);
    }
    for (const auto &[key, pool] : memory_.pools().rows()) {
      if (pool.allocations == 0) continue;
      report("Pool " + std::to_string(std::get<1>(key)) + owner(std::get<0>(key)), pool.device, pool.forced,
             pool.forced_bytes, pool.footprint());
    }
    if (broken) return;
    Finding result = finding("fragmentation");
    result.formula(formula);
    if (looked) {
      result.ok("No allocator grew for want of a piece that is large enough.");
    } else {
      result.unsupported("Fragmentation was not judged.",
                         "the capture holds neither tensors in allocations that it knows nor allocations from pools");
    }
    publish(std::move(result));
  }

  void stream_ordered_free() const {
    const StreamOrder &order = objects_.stream_order();
    Finding result = finding("stream_ordered_free");
    result.formula(
        "an object was used on a stream other than that of its stream-ordered free, and no synchronisation in the "
        "capture may order the use before the free");
    const uint64_t open = order.count(Ordering::kNotShown), unknown = order.count(Ordering::kUnknown);
    if (open != 0) {
      const auto worst = std::find_if(order.cases().begin(), order.cases().end(),
                                      [](const StreamCase &one) { return one.ordering == Ordering::kNotShown; });
      result.violation(
          SONDE_SEVERITY_WARNING,
          count_of(open, "stream-ordered free") +
              " of memory that another stream used: nothing in the capture orders the use before the free, so "
              "the memory may be handed out again while it is in use.");
      result
          .advice(
              "Record an event on the stream of the use and let the stream of the free wait for it, or free on the "
              "stream that used it last. First: object " +
              std::to_string(worst->object) + ", used on stream " + std::to_string(worst->use.stream) +
              ", freed on stream " + std::to_string(worst->free_stream) + "; see the table stream_order.")
          .kernel(memory_.text(worst->use.name))
          .confidence(0.6);
    } else if (order.frees() == 0) {
      result.unsupported("Stream-ordered frees were not judged.", "the capture holds none");
    } else if (unknown != 0) {
      result.unsupported("Stream-ordered frees were not judged.",
                         count_of(unknown, "use") +
                             " on another stream than the free, and the capture holds no synchronisation (record "
                             "sonde.device.sync with the "
                             "port cuda, and join the captures with `sonde merge`)");
    } else {
      result.ok("Each stream-ordered free is on the stream that used the memory, or behind a synchronisation.");
    }
    result.evidence("frees", "1", order.frees())
        .evidence("not_shown", "1", open)
        .evidence("possible", "1", order.count(Ordering::kPossible))
        .evidence("shown", "1", order.count(Ordering::kShown))
        .evidence("unknown", "1", unknown)
        .evidence("not_kept", "1", order.not_kept());
    publish(std::move(result));
  }

  void unmatched_free() const {
    const uint64_t count = memory_.pools().unmatched_count();
    Finding result = finding("unmatched_free");
    result.formula("frees whose address is not the begin of a live object");
    uint64_t begins = 0;
    for (const auto &[key, group] : objects_.groups()) begins += group->begins;
    if (count != 0) {
      result.violation(SONDE_SEVERITY_NOTE,
                       count_of(count, "free") +
                           " named no live object: freed twice, made before the capture began, or never "
                           "an address of the allocator.");
      result.advice("See the table unmatched_frees.");
    } else if (begins == 0) {
      result.unsupported("Frees were not judged.", "the capture holds no device memory");
    } else {
      result.ok("Every free named a live object.");
    }
    result.evidence("frees", "1", count).evidence("not_listed", "1", memory_.pools().unmatched_not_listed());
    publish(std::move(result));
  }

  void complete() const {
    const MemoryHistoryCounts &counts = memory_.counts();
    uint64_t outside = 0;
    for (const auto &[source, process] : objects_.processes()) outside += process.outside;
    const uint64_t lost = memory_.lost_records() + memory_.lost_batches() + counts.lost_touches;
    Finding result = finding("complete");
    result.formula("no record lost on the way here, none too late to be put in order");
    if (lost + counts.late_records + counts.late_touches == 0) {
      result.ok("This analysis received every record in time.");
    } else {
      result.violation(SONDE_SEVERITY_WARNING,
                       std::to_string(memory_.lost_records()) + " records and " +
                           std::to_string(memory_.lost_batches()) + " batches were lost before they came here, " +
                           std::to_string(counts.late_records + counts.late_touches) +
                           " came too late to be put in order, and " + std::to_string(counts.lost_touches) +
                           " belong to launches that are not known.");
      result.advice("Give the session more memory or larger rings; raise reorder_records for late records.");
    }
    result.evidence("lost_records", "1", memory_.lost_records())
        .evidence("lost_batches", "1", memory_.lost_batches())
        .evidence("late_records", "1", counts.late_records)
        .evidence("late_touches", "1", counts.late_touches)
        .evidence("lost_touches", "1", counts.lost_touches)
        .evidence("launches", "1", counts.launches)
        .evidence("watched", "1", counts.watched)
        .evidence("not_watched_as_a_whole", "1", incomplete_)
        .evidence("transfers", "1", counts.transfers)
        .evidence("accesses_outside", "1", outside)
        .evidence("replaced", "1", counts.replaced)
        .evidence("implicit", "1", counts.implicit)
        .evidence("host_objects", "1", objects_.host_objects());
    publish(std::move(result));
  }

  const Memory &memory_;
  const Objects &objects_;
  const Options &options_;
  const Host &host_;
  sonde_session_t *session_;
  uint64_t launches_ = 0;
  uint64_t watched_ = 0;
  uint64_t incomplete_ = 0;
  bool has_bytes_ = false;
  bool has_pages_ = false;
};

}  // namespace

void publish_findings(const Memory &memory, const Host &host, sonde_session_t *session,
                      const std::vector<std::string> &file_errors) {
  Judge(memory, host, session).all(file_errors);
}

}  // namespace sonde::memory
