// Tables of what ran: processes, kernels, calls, copies, sets.
#include <sonde/toolkit/names.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tables.h"

namespace sonde::workload {
namespace {

class RunTables : public TablePublisher {
 public:
  using TablePublisher::TablePublisher;

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
  }

 private:
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
};

}  // namespace

void publish_run_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  RunTables(workload, host, session).all();
}

}  // namespace sonde::workload
