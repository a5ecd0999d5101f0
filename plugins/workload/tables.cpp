#include <sonde/toolkit/names.h>

#include <algorithm>
#include <string>
#include <vector>

#include "publish.h"

namespace sonde::workload {
namespace {

constexpr uint32_t kKey = SONDE_COLUMN_KEY;
constexpr uint32_t kHidden = SONDE_COLUMN_HIDDEN;
constexpr uint32_t kDown = SONDE_COLUMN_SORT_DOWN;
constexpr const char *kNearestRank = "nearest rank; exact up to exact_values timed records, beyond that within 1/256";

// Rate in units per second, empty without time.
std::optional<double> per_second(uint64_t amount, uint64_t ns) {
  if (ns == 0) return std::nullopt;
  return static_cast<double>(amount) * 1e9 / static_cast<double>(ns);
}

std::optional<double> share_of(int64_t part, int64_t whole) {
  if (whole <= 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string triple(const std::array<uint32_t, 3> &value) {
  return "(" + std::to_string(value[0]) + ", " + std::to_string(value[1]) + ", " + std::to_string(value[2]) + ")";
}

class Publisher {
 public:
  Publisher(const Workload &workload, const Host &host, sonde_session_t *session)
      : workload_(workload), host_(host), session_(session) {}

  void all() {
    processes();
    kernels();
    if (workload_.sampled()) {
      sampled_kernels();
      sampling();
    }
    apis();
    copies();
    sets();
    devices();
    gaps();
    gap_histogram();
    concurrency();
    launches();
    streams();
    graphs();
    scopes();
    memory();
    memory_timeline();
  }

 private:
  // A table whose rows are first told apart by process; that column shows only when there are several.
  Table table(const char *name, const char *title, const char *help) {
    Table result(host_, session_, kOrigin, name, title, help);
    const uint32_t hidden = workload_.sources().size() > 1 ? 0 : kHidden;
    result.u64("process", "1", "process id, empty when the capture does not name it", hidden);
    result.u64("source", "1", "0: this process; in a replay 1 + the file's index", kKey | kHidden);
    return result;
  }

  // Columns and cells that tables of durations share.
  static void duration_columns(Table &table) {
    table.u64("total", "ns", "sum of the lengths that are known", kDown)
        .f64("mean", "ns", "total / (count - untimed)")
        .i64("min", "ns", "least length", kHidden)
        .i64("p50", "ns", kNearestRank)
        .i64("p90", "ns", kNearestRank, kHidden)
        .i64("p99", "ns", kNearestRank, kHidden)
        .i64("max", "ns", "greatest length")
        .u64("untimed", "1",
             "of count, those without a length: never ended, not measured or stamps that cannot be right", kHidden);
  }

  void processes() {
    Table result = table("processes", "Processes", "One row for each process of the capture.");
    result.u64("parent", "1", "process id of the parent", kHidden)
        .text("host", "host name", kHidden)
        .text("program", "path of the executable")
        .text("command", "command line", kHidden)
        .u64("records", "1", "records delivered to this analysis")
        .i64("span", "ns", "from the first to the last record")
        .u64("kernels", "1", "kernels run")
        .i64("kernel_time", "ns", "sum of their lengths", kDown)
        .u64("copied", "bytes", "bytes of all copies")
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      uint64_t copied = 0;
      for (const auto &[key, row] : source.copies) copied += row.bytes;
      result.row({source.process, id, source.parent, source.host_name, source.program, source.command, source.records,
                  source.first_ns > source.last_ns ? int64_t{0} : source.last_ns - source.first_ns, source.kernel_count,
                  source.kernel_ns, copied});
    }
  }

  void kernels() {
    Table result = workload_.sampled()
                       ? table("kernels", "Kernels, sampled",
                               "One row for each kernel name and device, of what was collected. The table "
                               "sampled_kernels scales it to the whole run.")
                       : table("kernels", "Kernels", "One row for each kernel name and device.");
    result.text("kernel", "name without return type, parameters and template arguments")
        .text("name", "whole name, demangled", kHidden)
        .text("symbol", "name as the runtime gives it", kKey | kHidden)
        .u64("device", "1", "the runtime's number", kKey)
        .u64("count", "1", "launches that ran");
    duration_columns(result);
    result.f64("share", "1", "total / sum of the lengths of all kernels on the device, so the shares add up to 1")
        .text("grid", "blocks of the most frequent shape", kHidden)
        .text("block", "threads of the most frequent shape", kHidden)
        .u64("shapes", "1", "different pairs of grid and block, counted up to 1,024", kHidden)
        .u64("registers", "1", "of a thread, greatest seen", kHidden)
        .u64("static_shared", "bytes", "of a block, greatest seen", kHidden)
        .u64("dynamic_shared", "bytes", "of a block, greatest seen", kHidden)
        .u64("local", "bytes", "local memory of a thread, greatest seen", kHidden)
        .u64("from_graphs", "1", "of count, those that a graph launched", kHidden)
        .create();
    struct Row {
      uint32_t source;
      const Source *owner;
      const KernelRow *kernel;
    };
    std::vector<Row> rows;
    std::map<std::pair<uint32_t, uint32_t>, int64_t> device_ns;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, kernel] : source.kernels) {
        rows.push_back({id, &source, &kernel});
        device_ns[{id, kernel.device}] += static_cast<int64_t>(kernel.durations.total_ns());
      }
    }
    std::sort(rows.begin(), rows.end(), [&](const Row &a, const Row &b) {
      const uint64_t total_a = a.kernel->durations.total_ns(), total_b = b.kernel->durations.total_ns();
      if (total_a != total_b) return total_a > total_b;
      const int order = workload_.text(a.kernel->name).compare(workload_.text(b.kernel->name));
      if (order != 0) return order < 0;
      return std::tie(a.source, a.kernel->device) < std::tie(b.source, b.kernel->device);
    });
    for (const Row &row : rows) {
      const KernelRow &kernel = *row.kernel;
      const Durations &time = kernel.durations;
      const std::string &symbol = workload_.text(kernel.name);
      const Shape shape = kernel.typical();
      const bool has_shape = !kernel.shapes.empty();
      const std::string grid = has_shape ? triple(shape.grid) : "", block = has_shape ? triple(shape.block) : "";
      const std::string kernel_name = toolkit::shorten_kernel_name(symbol), name = toolkit::demangle(symbol);
      result.row({row.owner->process,
                  row.source,
                  kernel_name,
                  name,
                  symbol,
                  kernel.device,
                  time.count,
                  time.total_ns(),
                  time.mean(),
                  time.min(),
                  time.percentile(50),
                  time.percentile(90),
                  time.percentile(99),
                  time.max(),
                  time.untimed(),
                  share_of(static_cast<int64_t>(time.total_ns()), device_ns[{row.source, kernel.device}]),
                  grid,
                  block,
                  static_cast<uint64_t>(kernel.shapes.size()),
                  kernel.registers,
                  kernel.static_shared,
                  kernel.dynamic_shared,
                  kernel.local,
                  kernel.from_graphs});
    }
  }

  void sampled_kernels() {
    Table result = table("sampled_kernels", "Kernels, scaled to the whole run",
                         "One row for each kernel name and device that was seen in the windows which a port collected "
                         "to keep its budget. Low and high bound 95 % intervals; kernels that ran in other windows "
                         "only are missing.");
    result.text("kernel", "name without return type, parameters and template arguments")
        .text("symbol", "name as the runtime gives it", kKey | kHidden)
        .u64("device", "1", "the runtime's number", kKey)
        .u64("sampled", "1", "launches that were collected")
        .f64("scale", "1", "count / sampled")
        .f64("count", "1", "launches of the whole run: combined ratio estimator over stratified windows")
        .f64("count_low", "1", "not below those seen")
        .f64("count_high", "1", "")
        .f64("total", "ns", "time of the whole run, likewise", kDown)
        .f64("total_low", "ns", "", kHidden)
        .f64("total_high", "ns", "", kHidden)
        .f64("mean", "ns", "of a launch; empty with its bounds where one window alone saw the kernel")
        .f64("mean_low", "ns", "")
        .f64("mean_high", "ns", "")
        .create();
    struct Row {
      uint32_t source;
      const Source *owner;
      const KernelRow *kernel;
    };
    std::vector<Row> rows;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, kernel] : source.kernels) {
        if (kernel.estimate) rows.push_back({id, &source, &kernel});
      }
    }
    std::sort(rows.begin(), rows.end(), [&](const Row &a, const Row &b) {
      const double total_a = a.kernel->estimate->total_ns.value, total_b = b.kernel->estimate->total_ns.value;
      if (total_a != total_b) return total_a > total_b;
      const int order = workload_.text(a.kernel->name).compare(workload_.text(b.kernel->name));
      if (order != 0) return order < 0;
      return std::tie(a.source, a.kernel->device) < std::tie(b.source, b.kernel->device);
    });
    for (const Row &row : rows) {
      const SampledRow::Result &estimate = *row.kernel->estimate;
      const std::string &symbol = workload_.text(row.kernel->name);
      const std::string kernel_name = toolkit::shorten_kernel_name(symbol);
      const auto mean = [&](double Estimate::*member) {
        return estimate.mean ? std::optional<double>(*estimate.mean.*member) : std::nullopt;
      };
      result.row({row.owner->process, row.source, kernel_name, symbol, row.kernel->device, row.kernel->durations.count,
                  estimate.scale, estimate.count.value, estimate.count.low, estimate.count.high,
                  estimate.total_ns.value, estimate.total_ns.low, estimate.total_ns.high, mean(&Estimate::value),
                  mean(&Estimate::low), mean(&Estimate::high)});
    }
  }

  void sampling() {
    Table result = table("sampling", "Sampling", "How a port collected in windows to keep its budget.");
    result.u64("windows", "1", "collected or left out")
        .u64("left_out", "1", "of these, left out")
        .i64("span", "ns", "length of all of them")
        .i64("collected", "ns", "length of those collected")
        .f64("collected_share", "1", "collected / span")
        .u64("launches", "1", "launch calls in all windows; empty where they were not counted")
        .u64("collected_launches", "1", "of these, in windows that were collected")
        .u64("recorded_launches", "1",
             "launches of which a kernel was recorded; far fewer than collected: some were missed")
        .u64("set_aside", "1", "windows left out of the scaled counts, because launches in them have no record")
        .text("scaled_by", "launches; or time, which makes totals too small where collection slows the program down")
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      const Windows &windows = source.windows;
      if (!windows.any()) continue;
      const bool counted = windows.launches_counted();
      const auto known = [&](uint64_t value) { return counted ? std::optional<uint64_t>(value) : std::nullopt; };
      result.row({source.process, id, windows.count(), windows.left_out(), windows.length_ns(), windows.collected_ns(),
                  share_of(windows.collected_ns(), windows.length_ns()), known(windows.launches()),
                  known(windows.collected_launches()), windows.recorded_launches(), windows.set_aside(),
                  counted ? "launches" : "time"});
    }
  }

  void apis() {
    Table result = table("apis", "Runtime calls", "One row for each function of the runtime or driver.");
    result.text("function", "the function called", kKey)
        .text("domain", "the interface it belongs to", kKey | kHidden)
        .u64("count", "1", "calls");
    duration_columns(result);
    result.u64("errors", "1", "calls whose result was not 0")
        .u64("unfinished", "1", "begins without an end", kHidden)
        .create();
    struct Row {
      uint32_t source;
      const Source *owner;
      const std::string *function, *domain;
      const CallRow *call;
    };
    std::vector<Row> rows;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, call] : source.host.calls()) {
        rows.push_back({id, &source, &workload_.text(std::get<1>(key)), &workload_.text(std::get<0>(key)), &call});
      }
    }
    std::sort(rows.begin(), rows.end(), [](const Row &a, const Row &b) {
      const uint64_t total_a = a.call->durations.total_ns(), total_b = b.call->durations.total_ns();
      if (total_a != total_b) return total_a > total_b;
      return std::tie(*a.function, *a.domain, a.source) < std::tie(*b.function, *b.domain, b.source);
    });
    for (const Row &row : rows) {
      const Durations &time = row.call->durations;
      result.row({row.owner->process, row.source, *row.function, *row.domain, time.count, time.total_ns(), time.mean(),
                  time.min(), time.percentile(50), time.percentile(90), time.percentile(99), time.max(), time.untimed(),
                  row.call->errors, row.call->unfinished});
    }
  }

  static void transfer_columns(Table &table) {
    table.u64("count", "1", "how many")
        .u64("bytes", "bytes", "sum", kDown)
        .u64("time", "ns", "sum of the lengths that are known")
        .f64("bandwidth", "bytes/s", "bytes of those with a known length / time")
        .i64("min_size", "bytes", "least", kHidden)
        .i64("median_size", "bytes", kNearestRank)
        .i64("max_size", "bytes", "greatest")
        .u64("untimed", "1", "of count, those whose stamps cannot be right", kHidden);
  }

  void copies() {
    Table result = table("copies", "Copies", "One row for each direction, kind of memory and synchrony.");
    result.u64("device", "1", "the runtime's number", kKey)
        .text("direction", "what lies at the two ends", kKey)
        .text("from", "kind of memory at the source", kKey)
        .text("to", "kind of memory at the destination", kKey)
        .boolean("asynchronous", "whether the call asked for it", kKey);
    transfer_columns(result);
    result.create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, row] : source.copies) {
        const auto &[device, kind, from, to, asynchronous] = key;
        result.row({source.process, id, device, copy_name(kind), memory_name(from), memory_name(to), asynchronous,
                    row.durations.count, row.bytes, row.durations.total_ns(),
                    per_second(row.timed_bytes, row.durations.total_ns()), row.size.min(), row.sizes.median(),
                    row.size.max(), row.durations.untimed()});
      }
    }
  }

  void sets() {
    Table result = table("sets", "Memory sets", "One row for each kind of memory and synchrony.");
    result.u64("device", "1", "the runtime's number", kKey)
        .text("memory", "kind of memory", kKey)
        .boolean("asynchronous", "whether the call asked for it", kKey);
    transfer_columns(result);
    result.create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, row] : source.sets) {
        const auto &[device, memory, asynchronous] = key;
        result.row({source.process, id, device, memory_name(memory), asynchronous, row.durations.count, row.bytes,
                    row.durations.total_ns(), per_second(row.timed_bytes, row.durations.total_ns()), row.size.min(),
                    row.sizes.median(), row.size.max(), row.durations.untimed()});
      }
    }
  }

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

  void memory() {
    Table result = table("memory", "Memory",
                         "One row for each level, device and kind of memory. The levels lie inside each other (tensors "
                         "and sub-allocations in allocations, those in pools or mappings): do not add them up.");
    result.text("level", "allocation, sub_allocation (a block of a larger one), mapping, tensor or pool", kKey)
        .u64("device", "1", "the runtime's number", kKey)
        .text("kind", "kind of memory", kKey)
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
        result.row({source.process, id, kLevelNames[static_cast<size_t>(level)], device, memory_name(kind),
                    row.peak_bytes,
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
        .u64("device", "1", "the runtime's number", kKey)
        .text("kind", "kind of memory", kKey)
        .i64("begin", "ns", "of the stretch, since the process's first record", kKey)
        .i64("length", "ns", "of the stretch")
        .u64("bytes", "bytes", "at its end")
        .u64("peak", "bytes", "most during it")
        .create();
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, row] : source.memory.rows()) {
        const auto &[level, device, kind] = key;
        for (const toolkit::Timeline::Point &point : row.timeline.points()) {
          result.row({source.process, id, kLevelNames[static_cast<size_t>(level)], device, memory_name(kind),
                      point.begin - source.first_ns, row.timeline.width(), point.last, point.peak});
        }
      }
    }
  }

  const Workload &workload_;
  const Host &host_;
  sonde_session_t *session_;
};

}  // namespace

void publish_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  Publisher(workload, host, session).all();
}

}  // namespace sonde::workload
