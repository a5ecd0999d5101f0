#include <sonde/toolkit/names.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "advice.h"
#include "publish.h"

namespace sonde::memory {
namespace {

using toolkit::MemoryObject;
using toolkit::ObjectEnd;
using toolkit::ObjectLevel;

constexpr uint32_t kKey = SONDE_COLUMN_KEY;
constexpr uint32_t kHidden = SONDE_COLUMN_HIDDEN;
constexpr uint32_t kDown = SONDE_COLUMN_SORT_DOWN;

class Publisher {
 public:
  Publisher(const Memory &memory, const Host &host, sonde_session_t *session)
      : memory_(memory), host_(host), session_(session), objects_(memory.objects()) {}

  void all() {
    objects();
    patterns();
    peak();
    live_at_peak();
    redundant();
    pools();
    segments();
    fragmentation();
    stream_order();
    unmatched_frees();
  }

 private:
  Table table(const char *name, const char *title, const char *help) {
    Table result(host_, session_, kOrigin, name, title, help);
    const uint32_t hidden = objects_.processes().size() > 1 ? 0 : kHidden;
    result.u64("process", "1", "process id, empty when the capture does not name it", hidden);
    result.u64("source", "1", "0: this process; in a replay 1 + the file's index", kKey | kHidden);
    return result;
  }
  std::optional<uint64_t> process(uint32_t source) const {
    const auto found = memory_.process_ids().find(source);
    return found == memory_.process_ids().end() ? std::nullopt : std::optional<uint64_t>(found->second);
  }
  static void level_columns(Table &table) {
    table.text("level", "allocation: of the runtime; tensor: cut out of one. Levels lie inside each other", kKey)
        .u64("device", "1", "the runtime's number", kKey);
  }
  int64_t since_begin(uint32_t source, int64_t time_ns) const {
    const auto found = objects_.processes().find(source);
    const int64_t first = found == objects_.processes().end() ? time_ns : found->second.first_ns;
    return first == INT64_MAX ? 0 : time_ns - first;
  }

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
      result.row({process(group->source),
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
                  knows && group->process->incomplete == 0 && group->process->late_operations == 0});
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

  void pools() {
    Table result = table("pools", "Pools of the runtime", "Pools that records of pools or allocations name.");
    result.u64("pool", "1", "the runtime's identity", kKey)
        .u64("device", "1", "the runtime's number")
        .u64("allocations", "1", "made from it")
        .u64("used_peak", "bytes", "most handed out at one time, from its allocations")
        .u64("footprint", "bytes",
             "addresses that it ever handed out; addresses are not memory, which may be mapped anew")
        .u64("forced", "1", "allocations at new addresses although as many bytes were free, in pieces too small")
        .u64("forced_bytes", "bytes", "these new addresses")
        .u64("reserved_peak", "bytes", "most held from the device, as the runtime told; empty: it did not", kDown)
        .u64("told_used_peak", "bytes", "most handed out, as the runtime told", kHidden)
        .u64("reserved", "bytes", "at its last record", kHidden)
        .u64("release_threshold", "bytes", "kept when trimmed, as the runtime told", kHidden)
        .u64("records", "1", "of its state", kHidden)
        .u64("trims", "1", "of these", kHidden)
        .boolean("is_imported", "from another process", kHidden)
        .boolean("is_destroyed", "before the end of the capture", kHidden)
        .create();
    for (const auto &[key, row] : memory_.pools().rows()) {
      const auto told = [&row = row](uint64_t value) {
        return row.is_recorded ? std::optional<uint64_t>(value) : std::nullopt;
      };
      const auto &[source, pool] = key;
      result.row({process(source), source, pool, row.device, row.allocations, row.live_peak, row.footprint(),
                  row.forced, row.forced_bytes, told(row.reserved_peak), told(row.used_peak), told(row.reserved),
                  told(row.release_threshold), row.records, row.trims, row.is_imported, row.is_destroyed});
    }
  }

  void segments() {
    Table result =
        table("segments", "Segments of caching allocators",
              "Allocations that tensors are cut from, those with most bytes that were never used at one time.");
    result.u64("device", "1", "the runtime's number", kKey)
        .u64("id", "1", "number of the allocation", kKey)
        .u64("address", "1", "first byte", kHidden)
        .u64("bytes", "bytes", "size")
        .u64("tensors", "1", "cut from it over its life")
        .u64("used_peak", "bytes", "most in tensors at one time")
        .u64("never_used", "bytes", "size - used_peak", kDown)
        .u64("used", "bytes", "in tensors at its end, or at the end of the capture", kHidden)
        .u64("largest_gap", "bytes", "largest free piece then", kHidden)
        .i64("begin", "ns", "since the first record of the process", kHidden)
        .i64("end", "ns", "the same; empty: not freed", kHidden)
        .create();
    for (const auto &[key, space] : objects_.fragmentation().spaces()) {
      const auto &[source, device] = key;
      std::vector<SegmentRow> rows = space->largest;
      std::sort(rows.begin(), rows.end(), [](const SegmentRow &a, const SegmentRow &b) {
        const uint64_t left = a.bytes - std::min(a.bytes, a.used_peak),
                       right = b.bytes - std::min(b.bytes, b.used_peak);
        return left != right ? left > right : a.id < b.id;
      });
      for (const SegmentRow &row : rows) {
        result.row({process(source), source, device, row.id, row.address, row.bytes, row.tensors, row.used_peak,
                    row.bytes - std::min(row.bytes, row.used_peak), row.used, row.largest_gap,
                    since_begin(source, row.begin_ns),
                    row.end_ns == MemoryObject::kAlive ? std::nullopt
                                                       : std::optional<int64_t>(since_begin(source, row.end_ns))});
      }
    }
  }

  void fragmentation() {
    Table result = table("fragmentation", "Reserved and used memory over time",
                         "A row for each stretch of time in which segments or their tensors changed.");
    result.u64("device", "1", "the runtime's number", kKey)
        .i64("time", "ns", "begin of the stretch, since the first record of the process", kKey)
        .u64("reserved", "bytes", "of all segments, at the end of the stretch")
        .u64("used", "bytes", "of their tensors, at its end")
        .u64("used_peak", "bytes", "the most during it")
        .u64("largest_gap", "bytes", "largest free piece, at its end")
        .f64("fragmentation", "1", "1 - largest gap / (reserved - used); 0 where nothing is free")
        .create();
    for (const auto &[key, space] : objects_.fragmentation().spaces()) {
      const auto &[source, device] = key;
      const auto reserved = space->reserved_curve.points(), used = space->used_curve.points(),
                 gaps = space->gap_curve.points();
      // All three are set at the same times, so their stretches are the same.
      for (size_t i = 0; i < reserved.size() && i < used.size() && i < gaps.size(); ++i) {
        const uint64_t free = reserved[i].last - std::min(used[i].last, reserved[i].last);
        const double loss =
            free == 0 ? 0 : 1 - static_cast<double>(std::min(gaps[i].last, free)) / static_cast<double>(free);
        result.row({process(source), source, device, since_begin(source, reserved[i].begin), reserved[i].last,
                    used[i].last, used[i].peak, gaps[i].last, loss});
      }
    }
  }

  void stream_order() {
    Table result = table("stream_order", "Stream-ordered frees and uses on other streams",
                         "Memory that is freed in the order of one stream and was used on another. At most object_rows "
                         "rows, those without an ordering first.");
    result.u64("id", "1", "number of the object", kKey)
        .u64("bytes", "bytes", "size")
        .u64("use_stream", "1", "stream of the last use elsewhere", kKey)
        .text("kernel", "of that use, empty for the host's operations")
        .u64("free_stream", "1", "stream of the free")
        .i64("apart", "ns", "from the host's call for the use to that for the free")
        .text("ordering", "shown, possible, not_shown or unknown, see the README of the analysis")
        .create();
    std::vector<const StreamCase *> rows;
    for (const StreamCase &one : objects_.stream_order().cases()) rows.push_back(&one);
    const auto rank = [](Ordering ordering) {
      return ordering == Ordering::kNotShown   ? 0
             : ordering == Ordering::kUnknown  ? 1
             : ordering == Ordering::kPossible ? 2
                                               : 3;
    };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const StreamCase *a, const StreamCase *b) { return rank(a->ordering) < rank(b->ordering); });
    size_t left = static_cast<size_t>(memory_.options().object_rows);
    for (const StreamCase *const one : rows) {
      if (left-- == 0) break;
      const std::string kernel = memory_.kernel_name(one->use.name);
      result.row({process(one->source), one->source, one->object, one->bytes, one->use.stream, kernel, one->free_stream,
                  one->free_ns - one->use.time_ns, name_of(one->ordering)});
    }
  }

  void unmatched_frees() {
    Table result = table("unmatched_frees", "Frees of nothing that lives", "By address, in the order of the first.");
    level_columns(result);
    result.u64("address", "1", "that was freed", kKey)
        .u64("count", "1", "how often")
        .i64("first", "ns", "since the first record of the process")
        .i64("last", "ns", "the same")
        .u64("stream", "1", "of the last one; 0: not stream-ordered", kHidden)
        .create();
    for (const UnmatchedFree &row : memory_.pools().unmatched()) {
      result.row({process(row.source), row.source, level_name(row.level), row.device, row.address, row.count,
                  since_begin(row.source, row.first_ns), since_begin(row.source, row.last_ns), row.stream});
    }
  }

  const Memory &memory_;
  const Host &host_;
  sonde_session_t *session_;
  const Objects &objects_;
};

}  // namespace

void publish_tables(const Memory &memory, const Host &host, sonde_session_t *session) {
  Publisher(memory, host, session).all();
}

}  // namespace sonde::memory
