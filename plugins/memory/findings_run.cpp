#include <sonde/toolkit/text.h>

#include <algorithm>
#include <array>
#include <string>

#include "advice.h"
#include "rules.h"

namespace sonde::memory {

using toolkit::format_bytes;
using toolkit::MemoryHistoryCounts;
using toolkit::ObjectLevel;

void RunRules::all(const std::vector<std::string> &file_errors) const {
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

void RunRules::peak() const {
  const std::string formula = "(peak - needed) / peak >= peak_saving_share (" +
                              short_number(options_.peak_saving_share) +
                              "), needed: the most at one time if each object lived from first to last use";
  bool broken = false, looked = false, any = false;
  for (const auto &[key, group] : objects_.groups()) {
    any = any || group->begins != 0;
    if (!group->process->has_accesses() || group->process->incomplete + group->process->late_operations != 0) continue;
    looked = true;
    const uint64_t needed = group->needed_peak();
    const uint64_t saved = group->peak_bytes - std::min(needed, group->peak_bytes);
    if (group->peak_bytes == 0 || part_of(saved, group->peak_bytes) < options_.peak_saving_share) continue;
    broken = true;
    Finding result = finding("peak");
    result.violation(SONDE_SEVERITY_WARNING,
                     std::string(group->level == ObjectLevel::kAllocation ? "Allocations" : "Tensors") + " on device " +
                         std::to_string(group->device) + owner(group->source) + " reach " +
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
      const std::string what = in_words(kPatternNames[i]);
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
        .evidence("trusted_launches", "1", group->process->trusted)
        .confidence(group->process->trusted != 0 ? 0.45 : 0.9);
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
    result.unsupported(
        "How low the peak can get was not judged.",
        std::to_string(incomplete_) + " of " + count_of(launches_, "kernel launch") +
            " were not watched as a whole, so objects may be needed longer than is known (see trust_watched)");
  }
  publish(std::move(result));
}

void RunRules::reserved_unused() const {
  const std::string formula = "(reserved - used) / reserved when most was reserved >= unused_reserved_share (" +
                              short_number(options_.unused_reserved_share) + ")";
  bool broken = false, looked = false;
  for (const auto &[key, space] : objects_.fragmentation().spaces()) {
    if (space->reserved_peak == 0) continue;
    looked = true;
    const uint64_t unused = space->reserved_peak - std::min(space->used_at_reserved_peak, space->reserved_peak);
    if (part_of(unused, space->reserved_peak) < options_.unused_reserved_share) continue;
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

void RunRules::fragmentation() const {
  const std::string formula =
      "memory taken from the device although as many bytes were free in what the allocator held, in pieces too small "
      "/ "
      "most that it held >= forced_growth_share (" +
      short_number(options_.forced_growth_share) + ")";
  bool broken = false, looked = false;
  const auto report = [&](const std::string &who, uint32_t device, uint64_t times, uint64_t forced, uint64_t held) {
    looked = true;
    if (forced == 0 || part_of(forced, held) < options_.forced_growth_share) return;
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

void RunRules::stream_ordered_free() const {
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

void RunRules::unmatched_free() const {
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

void RunRules::complete() const {
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
                     std::to_string(memory_.lost_records()) + " records and " + std::to_string(memory_.lost_batches()) +
                         " batches were lost before they came here, " +
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

}  // namespace sonde::memory
