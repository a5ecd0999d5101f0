#include <sonde/toolkit/names.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "advice.h"
#include "tables.h"

namespace sonde::memory {
namespace {

using toolkit::MemoryObject;
using toolkit::ObjectEnd;
using toolkit::ObjectLevel;

class ObjectTables : public Tables {
 public:
  using Tables::Tables;

  void all() {
    objects();
    patterns();
    peak();
    live_at_peak();
    redundant();
  }

 private:
  void objects() {
    Table result =
        table("objects", "Objects that waste most memory",
              "The worst objects of each process, level and device by bytes times time wasted, then by bytes "
              "times time held; the last row of each sums up the others.");
    level_columns(result);
    result.u64("id", "1", "number of the object in order of begin; 0: the sum of those that are left out", kKey)
        .text("object", "name, else address")
        .text("scope", "operator or scope that was open when it was made", kHidden)
        .text("call_path", "where it was made", kHidden)
        .u64("address", "1", "first byte", kHidden)
        .u64("bytes", "bytes", "size; of the sum: all sizes together")
        .i64("begin", "ns", "since the first record of the process", kHidden)
        .i64("end", "ns", "the same; empty: not freed", kHidden)
        .u64("begin_kernel", "1", "kernels launched before it began", kHidden)
        .u64("first_use", "1", "kernels launched before its first use", kHidden)
        .u64("last_use", "1", "kernels launched before its last use", kHidden)
        .u64("end_kernel", "1", "kernels launched before its end", kHidden)
        .u64("uses", "1", "operations that used it, as host_uses counts them")
        .u64("early_gap", "1", "kernels launched strictly between begin and first use")
        .u64("late_gap", "1", "kernels launched strictly between last use and end")
        .u64("idle_gap", "1", "most kernels launched strictly between two uses, of those that reach idle_kernels")
        .u64("freed_meanwhile", "1", "objects of its device and level freed between its begin and first use", kHidden)
        .u64("allocated_meanwhile", "1", "and made between its last use and end", kHidden)
        .u64("dead_writes", "1", "writes of the host whose bytes were all overwritten before any was read", kHidden)
        .u64("dead_bytes", "bytes", "bytes of these writes", kHidden)
        .f64("access_rate", "1", "accessed bytes / bytes; empty: not known", kHidden)
        .f64("unused_fragmentation", "1", "1 - widest unused piece / unused bytes", kHidden)
        .u64("widest_unused", "bytes", "of the pieces that no kernel and no read accessed", kHidden)
        .f64("access_variation", "1", "coefficient of variation of accesses over touched pages", kHidden)
        .u64("slices", "1", "disjoint slices that its uses fall into; 0: they overlap", kHidden)
        .u64("largest_slice", "bytes", "of them", kHidden)
        .text("patterns", "that hold")
        .text("uncertain",
              "patterns that might hold; a kernel that was not watched as a whole may have used the object", kHidden)
        .f64("wasted", "bytes*s", "bytes times time that mending it frees", kDown)
        .boolean("at_peak", "it lived at the peak", kHidden)
        .u64("shares_with", "1", "object whose memory it could use", kHidden)
        .create();
    for (const auto &[key, group] : objects_.groups()) {
      for (const Usage *const usage : group->worst.sorted()) object_row(result, *group, *usage);
      if (group->worst.left_out() == 0) continue;
      const std::string others = std::to_string(group->worst.left_out()) + " others";
      const auto none = std::nullopt;
      result.row({process(group->source),
                  group->source,
                  level_name(group->level),
                  group->device,
                  uint64_t{0},
                  others,
                  none,
                  none,
                  none,
                  group->worst.left_out_bytes(),
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  none,
                  group->worst.left_out_wasted() * 1e-9,
                  none,
                  none});
    }
  }

  void object_row(Table &result, const Group &group, const Usage &usage) {
    const MemoryObject &object = usage.object;
    const bool used = usage.uses != 0;
    const auto when_used = [&](uint64_t value) { return used ? std::optional<uint64_t>(value) : std::nullopt; };
    const IntraResult &intra = usage.intra;
    const auto bytes_known = [&](auto value) {
      return usage.has_intra && intra.has_bytes ? std::optional(value) : std::nullopt;
    };
    const std::string name = memory_.name_of_object(object), patterns = pattern_list(usage.patterns),
                      uncertain = pattern_list(usage.uncertain);
    result.row({process(group.source),
                group.source,
                level_name(group.level),
                group.device,
                object.id,
                name,
                memory_.text(usage.scope_name),
                memory_.text(object.call_path),
                object.address,
                object.bytes,
                since_begin(group.source, object.begin_ns),
                object.end == ObjectEnd::kAlive ? std::nullopt
                                                : std::optional<int64_t>(since_begin(group.source, object.end_ns)),
                object.begin_kernel,
                when_used(usage.first.kernels),
                when_used(usage.last.kernels),
                object.end_kernel,
                usage.uses,
                when_used(usage.early_gap),
                when_used(usage.late_gap),
                usage.idle_count != 0 ? std::optional<uint64_t>(usage.longest_idle) : std::nullopt,
                when_used(usage.freed_meanwhile),
                when_used(usage.allocated_meanwhile),
                usage.writes.dead,
                usage.writes.dead_bytes,
                bytes_known(intra.access_rate),
                bytes_known(intra.fragmentation),
                bytes_known(intra.widest_unused.bytes),
                usage.has_intra && intra.has_pages ? std::optional<double>(intra.variation) : std::nullopt,
                bytes_known(intra.slices),
                bytes_known(intra.largest_slice),
                patterns,
                uncertain,
                usage.wasted() * 1e-9,
                usage.lives_at(group.peak_sequence),
                usage.shares_with != 0 ? std::optional<uint64_t>(usage.shares_with) : std::nullopt});
  }

  void patterns() {
    Table result = table("patterns", "Patterns", "What holds of how many objects, and what mending it would free.");
    level_columns(result);
    result.text("pattern", "see the README of the analysis for its definition", kKey)
        .u64("objects", "1", "that it holds for")
        .u64("bytes", "bytes", "their sizes together")
        .f64("wasted", "bytes*s", "bytes times time that mending it frees", kDown)
        .u64("at_peak", "bytes",
             "bytes that mending it frees at the moment of the peak; another moment may be the peak then")
        .u64("needed", "1",
             "of objects, those whose space another object could have used: one was freed (early) or made "
             "(late, idle) meanwhile")
        .u64("uncertain", "1", "objects that could not be judged, because of kernels that were not watched as a whole")
        .create();
    for (const auto &[key, group] : objects_.groups()) {
      for (size_t i = 0; i < kPatterns; ++i) {
        if (needs_accesses(pattern_at(i)) && !group->process->has_accesses()) continue;
        const PatternTotals &totals = group->patterns[i];
        if (totals.objects == 0 && totals.uncertain == 0) continue;
        const std::string pattern(kPatternNames[i]);
        result.row({process(group->source), group->source, level_name(group->level), group->device, pattern,
                    totals.objects, totals.bytes, totals.byte_ns * 1e-9, totals.at_peak, totals.needed,
                    totals.uncertain});
      }
    }
  }

  void peak() {
    Table result = table("peak", "Peaks", "The most bytes at one time, and how low it can get.");
    level_columns(result);
    result.u64("peak", "bytes", "most bytes of live objects at one time", kDown)
        .i64("time", "ns", "when that was reached, since the first record of the process")
        .u64("without_early", "bytes", "peak if each object began with its first use; unused ones never", kHidden)
        .u64("without_late", "bytes", "peak if each object ended with its last use", kHidden)
        .u64("needed", "bytes", "peak if both: the lowest that moving begins and ends reaches, and a bound for sharing")
        .u64("shared_offsets", "bytes",
             "one piece of memory, each object at an offset while it is needed (a plan that works)")
        .u64("shared_slots", "bytes", "allocations made once, each used by several objects in turn (a plan that works)",
             kHidden)
        .u64("slots", "1", "these allocations", kHidden)
        .u64("packed", "1", "objects that the two plans hold: the largest, at most pack_objects", kHidden)
        .u64("not_packed", "1", "used objects beyond them", kHidden)
        .u64("not_packed_largest", "bytes", "the largest of those", kHidden)
        .u64("touched", "bytes", "most bytes of objects that one kernel touched (DrGPUM: optimal peak)")
        .text("touched_by", "that kernel", kHidden)
        .u64("objects", "1", "that lived in the capture", kHidden)
        .u64("alive_at_end", "1", "not freed", kHidden)
        .u64("alive_at_end_bytes", "bytes", "their bytes", kHidden)
        .boolean("is_exact", "every kernel was watched as a whole, so the lower peaks are exact", kHidden)
        .create();
    for (const auto &[key, group] : objects_.groups()) {
      const bool knows = group->process->has_accesses();
      const auto known = [&](uint64_t value) { return knows ? std::optional<uint64_t>(value) : std::nullopt; };
      const std::string kernel =
          knows && group->touched_peak != 0 ? memory_.kernel_name(group->touched_peak_kernel) : "";
      result.row(
          {process(group->source),
           group->source,
           level_name(group->level),
           group->device,
           group->peak_bytes,
           since_begin(group->source, group->peak_ns),
           known(group->from_first_use_peak),
           known(group->until_last_use.greatest().value),
           known(group->needed_peak()),
           known(group->shared.offsets_bytes),
           known(group->shared.slots_bytes),
           known(group->shared.slots),
           known(group->shared.objects),
           known(group->shared.left_out),
           known(group->shared.left_out_largest),
           known(group->touched_peak),
           kernel,
           group->begins,
           group->alive_at_end,
           group->alive_bytes_at_end,
           knows && group->process->incomplete + group->process->trusted == 0 && group->process->late_operations == 0});
    }
  }

  void live_at_peak() {
    Table result = table("live_at_peak", "Alive at the peak",
                         "The largest objects that lived at the peak; the last row of "
                         "each level and device sums up the others.");
    level_columns(result);
    result.u64("id", "1", "number of the object; 0: the sum of the others", kKey)
        .text("object", "name, else address")
        .text("scope", "operator or scope that was open when it was made")
        .text("call_path", "where it was made", kHidden)
        .u64("bytes", "bytes", "size", kDown)
        .f64("share", "1", "of the peak")
        .u64("saved", "bytes", "the most that mending one of its patterns frees at the peak")
        .text("by", "that pattern")
        .create();
    const auto limit = static_cast<size_t>(memory_.options().object_rows);
    for (const auto &[key, group] : objects_.groups()) {
      uint64_t others = 0, other_bytes = 0, other_saved = 0;
      size_t row = 0;
      for (const Usage &usage : group->ended_since_peak) {
        uint64_t saved = 0;
        std::string by;
        for (size_t i = 0; i < kPatterns; ++i) {
          const uint64_t bytes = usage.saved_at(group->peak_sequence, pattern_at(i));
          if (bytes <= saved) continue;
          saved = bytes;
          by = kPatternNames[i];
        }
        if (row++ >= limit) {
          ++others;
          other_bytes += usage.object.bytes;
          other_saved += saved;
          continue;
        }
        const std::string name = memory_.name_of_object(usage.object);
        result.row({process(group->source), group->source, level_name(group->level), group->device, usage.object.id,
                    name, memory_.text(usage.scope_name), memory_.text(usage.object.call_path), usage.object.bytes,
                    share(usage.object.bytes, group->peak_bytes), saved, by});
      }
      if (others == 0) continue;
      const std::string name = std::to_string(others) + " others";
      result.row({process(group->source), group->source, level_name(group->level), group->device, uint64_t{0}, name, "",
                  "", other_bytes, share(other_bytes, group->peak_bytes), other_saved, ""});
    }
  }

  static std::optional<double> share(uint64_t part, uint64_t whole) {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(whole);
  }

  void redundant() {
    Table result =
        table("redundant_allocations", "Objects that could use the memory of another",
              "Pairs of the largest objects (pack_objects), those that waste most first, at most object_rows a "
              "level and device.");
    level_columns(result);
    result.u64("id", "1", "object that need not be allocated", kKey)
        .u64("shares_with", "1", "object whose memory it could use")
        .u64("bytes", "bytes", "saved: the smaller size of the two")
        .f64("wasted", "bytes*s", "bytes times time that both were allocated", kDown)
        .u64("at_peak", "bytes", "saved at the peak")
        .text("after", "last use of the one whose memory is used")
        .text("before", "first use of the other")
        .boolean("across_streams", "these two are on different streams, which must be ordered then", kHidden)
        .create();
    for (const auto &[key, group] : objects_.groups()) {
      size_t left = static_cast<size_t>(memory_.options().object_rows);
      for (const SharedPair &pair : group->shared.pairs) {
        if (left-- == 0) break;
        const std::string after = use_name(memory_, pair.last_of_earlier),
                          before = use_name(memory_, pair.first_of_later);
        result.row({process(group->source), group->source, level_name(group->level), group->device, pair.later,
                    pair.earlier, pair.bytes, pair.byte_ns * 1e-9, pair.at_peak, after, before,
                    pair.is_across_streams});
      }
    }
  }
};

}  // namespace

void publish_tables(const Memory &memory, const Host &host, sonde_session_t *session) {
  ObjectTables(memory, host, session).all();
  publish_allocator_tables(memory, host, session);
}

}  // namespace sonde::memory
