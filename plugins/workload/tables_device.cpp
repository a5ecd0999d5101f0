// Tables of what devices did over time: busy and idle, gaps, concurrency, streams, graphs.
#include <sonde/toolkit/names.h>

#include <map>
#include <string>

#include "tables.h"

namespace sonde::workload {
namespace {

class DeviceTables : public TablePublisher {
 public:
  using TablePublisher::TablePublisher;

  void all() {
    devices();
    gaps();
    gap_histogram();
    concurrency();
    launches();
    streams();
    graphs();
  }

 private:
  void devices() {
    Table result = table("devices", "Devices",
                         "Busy and idle time of each device, from its first to its last kernel, copy or set.");
    result.u64("device", "1", "the runtime's number", kKey)
        .text("name", "the runtime's name for it")
        .i64("span", "ns", "from the first begin to the last end of its activities")
        .i64("busy", "ns", "time in which something ran; overlapping activities count once")
        .i64("idle", "ns", "span - busy")
        .f64("idle_share", "1", "idle / span")
        .i64("kernel_busy", "ns", "time in which at least one kernel ran", kHidden)
        .f64("kernel_concurrency", "1", "sum of the lengths of kernels / kernel_busy", kHidden)
        .i64("blocked", "ns", "a blocking copy ran and no kernel, between two kernels", kHidden)
        .i64("before_first", "ns", "from the process's first record to the first activity, not part of idle", kHidden)
        .u64("gaps", "1", "stretches in which nothing ran")
        .i64("longest_gap", "ns", "the longest of them")
        .u64("late", "1", "activities that came too late to be put in order; busy time misses late_time of them",
             kHidden)
        .i64("late_time", "ns", "see late", kHidden)
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      std::map<uint32_t, int64_t> kernel_ns;
      for (const auto &[key, kernel] : source.kernels) {
        kernel_ns[kernel.device] += static_cast<int64_t>(kernel.durations.total_ns());
      }
      for (const auto &[number, device] : source.devices) {
        const bool ran = !device.streams().empty();
        const auto named = source.device_names.find(number);
        const std::string name = named == source.device_names.end() ? "" : named->second;
        result.row({source.process, id, number, name, device.span_ns(), device.busy_ns(), device.idle_ns(),
                    share_of(device.idle_ns(), device.span_ns()), device.kernel_busy_ns(),
                    share_of(kernel_ns[number], device.kernel_busy_ns()), device.exposed_copy_ns(),
                    ran ? std::optional<int64_t>(device.first_ns() - source.first_ns) : std::nullopt,
                    device.gaps().count(), device.gaps().max(), device.late(), device.late_ns()});
      }
    }
  }

  void gaps() {
    Table result = table("gaps", "Longest gaps", "The longest stretches in which a device ran nothing.");
    result.u64("device", "1", "the runtime's number", kKey)
        .u64("rank", "1", "1: the longest of the device", kKey)
        .i64("begin", "ns", "since the device's first activity")
        .i64("length", "ns", "how long nothing ran")
        .text("before", "what ended last before it")
        .text("after", "what ended it")
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[number, device] : source.devices) {
        uint64_t rank = 0;
        for (const Gap &gap : device.longest_gaps()) {
          const std::string before = toolkit::shorten_kernel_name(workload_.text(gap.before));
          const std::string after = toolkit::shorten_kernel_name(workload_.text(gap.after));
          result.row({source.process, id, number, ++rank, gap.begin - device.first_ns(), gap.length, before, after});
        }
      }
    }
  }

  void gap_histogram() {
    Table result = table("gap_histogram", "Gaps by length", "How many gaps of a device lie in each power of two.");
    result.u64("device", "1", "the runtime's number", kKey)
        .u64("from", "ns", "least length of the bucket", kKey)
        .u64("to", "ns", "greatest length of the bucket")
        .u64("gaps", "1", "how many")
        .u64("time", "ns", "sum of their lengths")
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[number, device] : source.devices) {
        const toolkit::Log2Histogram &histogram = device.gap_histogram();
        for (uint32_t bucket = 0; bucket < toolkit::Log2Histogram::kBuckets; ++bucket) {
          if (histogram.count[bucket] == 0) continue;
          result.row({source.process, id, number, toolkit::Log2Histogram::low(bucket),
                      toolkit::Log2Histogram::high(bucket), histogram.count[bucket], histogram.total[bucket]});
        }
      }
    }
  }

  void concurrency() {
    Table result = table("concurrency", "Kernels at one time",
                         "How long each number of kernels ran at once, within the device's span.");
    result.u64("device", "1", "the runtime's number", kKey)
        .u64("kernels", "1", "running at once; 63 stands for 63 and more", kKey)
        .i64("time", "ns", "how long; 0 kernels: idle, or only copies and sets ran")
        .f64("share", "1", "time / span")
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[number, device] : source.devices) {
        for (size_t level = 0; level < Device::kLevels; ++level) {
          const int64_t time = device.time_at_level()[level];
          if (time == 0) continue;
          result.row(
              {source.process, id, number, static_cast<uint64_t>(level), time, share_of(time, device.span_ns())});
        }
      }
    }
  }

  void launches() {
    Table result = table("launches", "Launch latency",
                         "From the begin of the launching call to the begin of the kernel, kernels of graphs left out. "
                         "Negative values mean that the clocks of host and device disagree.");
    result.u64("device", "1", "the runtime's number", kKey)
        .u64("joined", "1", "kernels whose launch is known")
        .f64("mean", "ns", "arithmetic mean")
        .i64("min", "ns", "least")
        .i64("p50", "ns", kNearestRank)
        .i64("p90", "ns", kNearestRank, kHidden)
        .i64("p99", "ns", kNearestRank)
        .i64("max", "ns", "greatest")
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[number, row] : source.host.latencies()) {
        result.row({source.process, id, number, row.latency.count(), row.latency.mean(), row.latency.min(),
                    row.quantiles.median(), row.quantiles.quantile(90, 100), row.quantiles.quantile(99, 100),
                    row.latency.max()});
      }
    }
  }

  void streams() {
    Table result = table("streams", "Streams", "What each stream ran.");
    result.u64("device", "1", "the runtime's number", kKey)
        .u64("context", "1", "the runtime's number", kKey | kHidden)
        .u64("stream", "1", "the runtime's number", kKey)
        .text("name", "name given by the program", kHidden)
        .u64("kernels", "1", "kernels with a known length")
        .u64("copies", "1", "copies with a known length")
        .u64("sets", "1", "sets with a known length", kHidden)
        .i64("total", "ns", "sum of the lengths", kDown)
        .i64("busy", "ns", "time in which something of the stream ran; overlaps count once")
        .i64("overlap", "ns", "total - busy: activities of one stream that ran at once, or ends that cannot be right")
        .u64("gaps", "1", "stretches between two of its activities", kHidden)
        .i64("gap_time", "ns", "sum of their lengths", kHidden)
        .i64("median_gap", "ns", "exact up to 256 gaps, beyond that within 1/256")
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[number, device] : source.devices) {
        for (const auto &[key, stream] : device.streams()) {
          const auto &[context, handle] = key;
          const auto named = source.stream_names.find(handle);
          const std::string name = named == source.stream_names.end() ? "" : named->second;
          result.row({source.process, id, number, context, handle, name, stream.kernels, stream.copies, stream.sets,
                      stream.total_ns, stream.busy_ns, stream.total_ns - stream.busy_ns, stream.gap.count(),
                      stream.gap.sum_i64(),
                      stream.gap.count() == 0 ? std::nullopt : std::optional<int64_t>(stream.gap_quantiles.median())});
        }
      }
    }
  }

  void graphs() {
    Table result = table("graphs", "Graphs", "Executable graphs that were launched or made.");
    result.u64("graph", "1", "the runtime's number", kKey)
        .u64("generation", "1", "how many graphs of this number had been made by then; 0: none was seen",
             kKey | kHidden)
        .u64("launches", "1", "different correlations of its records")
        .u64("declared_nodes", "1", "nodes that the graph was made with, empty when unknown")
        .f64("nodes_per_launch", "1", "kernels, copies and sets recorded for a launch")
        .u64("kernels", "1", "recorded kernels")
        .u64("copies", "1", "recorded copies", kHidden)
        .u64("sets", "1", "recorded sets", kHidden)
        .i64("node_time", "ns", "sum of the lengths of its nodes", kDown)
        .u64("whole_launches", "1", "launches recorded as one interval", kHidden)
        .u64("whole_time", "ns", "sum of their lengths", kHidden)
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, graph] : source.graphs) {
        const auto &[number, generation] = key;
        const uint64_t nodes = graph.kernels + graph.copies + graph.sets;
        result.row(
            {source.process, id, number, generation, graph.launches,
             graph.declared_nodes == 0 ? std::nullopt : std::optional<uint32_t>(graph.declared_nodes),
             nodes == 0 ? std::nullopt : share_of(static_cast<int64_t>(nodes), static_cast<int64_t>(graph.launches)),
             graph.kernels, graph.copies, graph.sets, graph.node_ns, graph.whole.count, graph.whole.total_ns()});
      }
    }
  }
};

}  // namespace

void publish_device_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  DeviceTables(workload, host, session).all();
}

}  // namespace sonde::workload
