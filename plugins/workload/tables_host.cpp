// Tables of scopes and of memory that was handed out.
#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "tables.h"

namespace sonde::workload {
namespace {

class HostTables : public TablePublisher {
 public:
  using TablePublisher::TablePublisher;

  void all() {
    scopes();
    memory();
    memory_timeline();
  }

 private:
  void scopes() {
    Table result = table("scopes", "Scopes and operators",
                         "What the program said it was doing, and the kernels launched meanwhile by the same thread.");
    result.text("scope", "name", kKey)
        .text("domain", "who says so", kKey | kHidden)
        .text("kind", "scope, operator, range (may cross threads; has no device time) or mark (a moment)", kKey)
        .u64("count", "1", "how often it began");
    duration_columns(result);
    result.u64("kernels", "1", "kernels launched while it was open, empty where launches are not known", kHidden)
        .i64("device_time", "ns", "sum of their lengths, empty where launches are not known")
        .i64("self_device_time", "ns", "of those launched while it was the innermost", kHidden)
        .create();
    constexpr std::array kKinds = {"scope", "operator", "range", "mark"};
    struct Row {
      uint32_t source;
      const Source *owner;
      const std::string *name, *domain;
      ScopeKind kind;
      const ScopeRow *scope;
    };
    std::vector<Row> rows;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, scope] : source.host.scopes()) {
        const auto &[kind, domain, name] = key;
        rows.push_back({id, &source, &workload_.text(name), &workload_.text(domain), kind, &scope});
      }
    }
    std::sort(rows.begin(), rows.end(), [](const Row &a, const Row &b) {
      const uint64_t total_a = a.scope->durations.total_ns(), total_b = b.scope->durations.total_ns();
      if (total_a != total_b) return total_a > total_b;
      return std::tie(*a.name, *a.domain, a.kind, a.source) < std::tie(*b.name, *b.domain, b.kind, b.source);
    });
    for (const Row &row : rows) {
      const Durations &time = row.scope->durations;
      const bool joins = row.owner->host.any_launch() && row.kind != ScopeKind::kRange && row.kind != ScopeKind::kMark;
      const auto known = [&](auto value) { return joins ? Cell(value) : Cell(std::nullopt); };
      result.row({row.owner->process, row.source, *row.name, *row.domain, kKinds[static_cast<size_t>(row.kind)],
                  time.count, time.total_ns(), time.mean(), time.min(), time.percentile(50), time.percentile(90),
                  time.percentile(99), time.max(), time.untimed(), known(row.scope->kernels),
                  known(row.scope->device_ns), known(row.scope->self_device_ns)});
    }
  }

  static constexpr std::array kLevelNames = {"allocation", "sub_allocation", "mapping", "tensor", "pool"};

  static const char *kind_name(uint32_t device, uint32_t kind) {
    return device == kHostDevice && kind == SONDE_MEMORY_UNKNOWN ? "host" : memory_name(kind);
  }

  void memory() {
    Table result = table("memory", "Memory",
                         "One row for each level, device and kind of memory. The levels lie inside each other (tensors "
                         "and sub-allocations in allocations, those in pools or mappings): do not add them up.");
    result.text("level", "allocation, sub_allocation (a block of a larger one), mapping, tensor or pool", kKey)
        .u64("device", "1", "the runtime's number; empty: the host", kKey)
        .text("kind", "kind of memory; host: of the host, kind unknown", kKey)
        .u64("peak", "bytes", "most that was handed out at one time; for a pool, its used bytes", kDown)
        .i64("peak_time", "ns", "when, since the process's first record", kHidden)
        .u64("reserved_peak", "bytes", "most that a pool or a framework's allocator held from the device")
        .u64("allocations", "1", "ranges begun; for a pool, pools made")
        .u64("frees", "1", "ends seen, with or without a range")
        .u64("allocated", "bytes", "sum over all allocations", kHidden)
        .u64("largest", "bytes", "greatest single allocation", kHidden)
        .u64("live", "1", "ranges without an end when the capture ended; what a cache keeps is no leak")
        .u64("live_bytes", "bytes", "their bytes")
        .u64("unmatched_frees", "1", "ends of an address at which nothing was known to live", kHidden)
        .u64("other_device_frees", "1", "ends that named another device than the range lies on", kHidden)
        .u64("replaced", "1", "ranges whose address was handed out again before their end was seen", kHidden)
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, row] : source.memory.rows()) {
        const auto &[level, device, kind] = key;
        const bool reserves = level == MemoryLevel::kPool || row.reserved_peak_bytes != 0;
        result.row({source.process, id, kLevelNames[static_cast<size_t>(level)], device_cell(device),
                    kind_name(device, kind), row.peak_bytes,
                    row.peak_bytes == 0 ? std::nullopt : std::optional<int64_t>(row.peak_ns - source.first_ns),
                    reserves ? std::optional<uint64_t>(row.reserved_peak_bytes) : std::nullopt, row.allocations,
                    row.frees, row.allocated_bytes, row.largest_bytes, row.live, row.bytes, row.unmatched_frees,
                    row.other_frees, row.replaced});
      }
    }
  }

  void memory_timeline() {
    Table result = table("memory_timeline", "Memory over time",
                         "Bytes handed out, in at most timeline_rows equal stretches of time for each row of memory. A "
                         "stretch in which nothing changed has no row.");
    result.show_rows(8);
    result.text("level", "see memory", kKey)
        .u64("device", "1", "the runtime's number; empty: the host", kKey)
        .text("kind", "see memory", kKey)
        .i64("begin", "ns", "of the stretch, since the process's first record", kKey)
        .i64("length", "ns", "of the stretch")
        .u64("bytes", "bytes", "at its end")
        .u64("peak", "bytes", "most during it")
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, row] : source.memory.rows()) {
        const auto &[level, device, kind] = key;
        for (const toolkit::Timeline::Point &point : row.timeline.points()) {
          result.row({source.process, id, kLevelNames[static_cast<size_t>(level)], device_cell(device),
                      kind_name(device, kind), point.begin - source.first_ns, row.timeline.width(), point.last,
                      point.peak});
        }
      }
    }
  }
};

}  // namespace

void publish_host_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  HostTables(workload, host, session).all();
}

}  // namespace sonde::workload
