#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "advice.h"
#include "tables.h"

namespace sonde::memory {
namespace {

using toolkit::MemoryObject;

class AllocatorTables : public Tables {
 public:
  using Tables::Tables;

  void all() {
    pools();
    segments();
    fragmentation();
    stream_order();
    unmatched_frees();
  }

 private:
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
    rows.reserve(objects_.stream_order().cases().size());
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
};

}  // namespace

void publish_allocator_tables(const Memory &memory, const Host &host, sonde_session_t *session) {
  AllocatorTables(memory, host, session).all();
}

}  // namespace sonde::memory
