// Gathers the numbers of the report from batches, one process of the capture beside the other.
#pragma once

#include <sonde/toolkit/log2_histogram.h>
#include <sonde/toolkit/strings.h>
#include <sonde/sonde.hpp>

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "accesses.h"
#include "device.h"
#include "host_side.h"
#include "measures.h"
#include "memory_side.h"
#include "options.h"
#include "sampling.h"

namespace sonde::workload {

// Grid and block of a launch.
struct Shape {
  std::array<uint32_t, 3> grid{};
  std::array<uint32_t, 3> block{};
  auto operator<=>(const Shape &) const = default;
};

struct KernelRow {
  static constexpr size_t kShapeLimit = 1024;  // shapes told apart; further ones only count as such

  uint32_t device = 0;
  uint32_t name = 0;
  Durations durations;
  uint64_t from_graphs = 0;
  std::map<Shape, uint64_t> shapes = {};
  uint64_t other_shapes = 0;   // launches with a shape beyond the limit
  uint32_t registers = 0;      // greatest seen, as the following
  uint32_t static_shared = 0;  // bytes a block
  uint32_t dynamic_shared = 0;
  uint32_t local = 0;  // bytes a thread
  SampledRow sampled = {};
  std::optional<SampledRow::Result> estimate = {};  // after finish, where the process was sampled

  // The most frequent shape, the least one of several.
  Shape typical() const;
};

struct TransferRow {
  Durations durations;
  uint64_t bytes = 0;
  uint64_t timed_bytes = 0;  // of those with a time that can be right
  toolkit::Statistics size = {};
  toolkit::Quantiles sizes{toolkit::Quantiles::kDefaultExactLimit};
};

// device, SONDE_COPY_*, SONDE_MEMORY_* of source and destination, asynchronous
using CopyKey = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, bool>;
// device, SONDE_MEMORY_*, asynchronous
using SetKey = std::tuple<uint32_t, uint32_t, bool>;

struct GraphRow {
  static constexpr size_t kLaunchLimit = 65536;

  uint32_t declared_nodes = 0;  // of the graph itself, 0: unknown
  uint64_t kernels = 0;
  uint64_t copies = 0;
  uint64_t sets = 0;
  int64_t node_ns = 0;    // time of its nodes
  Durations whole;        // launches recorded as one interval
  uint64_t launches = 0;  // distinct correlations of its records
  std::unordered_set<uint64_t> launch_ids;
  uint64_t last_launch = 0;

  void note_launch(uint64_t correlation);
};

// Everything of one process (source of the capture).
struct Source {
  Source(const Options &options, uint32_t other_scopes) : host(options, other_scopes), memory(options) {}

  std::optional<uint64_t> process;
  std::optional<uint64_t> parent;
  std::string host_name, program, command;
  uint64_t records = 0;
  uint64_t session_records = 0;  // of those, what a capture says about itself
  int64_t first_ns = INT64_MAX;  // of all its records with a stamp that can be right
  int64_t last_ns = INT64_MIN;
  std::unordered_map<uint64_t, KernelRow> kernels;  // by device << 32 | name
  uint64_t kernel_count = 0;
  int64_t kernel_ns = 0;
  std::map<CopyKey, TransferRow> copies;
  toolkit::Log2Histogram host_copy_sizes;  // between host and device
  uint64_t host_copies = 0;
  uint64_t tiny_copies = 0;  // of those
  int64_t tiny_copy_ns = 0;
  std::map<SetKey, TransferRow> sets;
  std::map<uint32_t, Device> devices;
  std::map<std::tuple<uint32_t, uint32_t>, GraphRow> graphs;  // executable graph, generation
  std::map<uint32_t, std::vector<int64_t>> graphs_made;       // times, ascending
  std::map<uint64_t, std::string> stream_names;
  std::map<uint32_t, std::string> device_names;
  HostSide host;
  MemorySide memory;
  Windows windows;
  InvalidTimes invalid_device, invalid_host;
};

struct TopKernel {
  std::string name;
  uint64_t count;
  int64_t total_ns;
};

// Of allocations that have ended.
struct HotObject {
  std::string name;
  uint64_t address;
  uint64_t bytes;
  uint64_t accesses;
};

// Of all launches of a kernel that were watched.
struct KernelTraffic {
  std::string name;
  uint64_t launches;
  uint64_t accesses;
  uint64_t bytes;  // that threads asked for
};

// Thread-safe: a batch is taken under a lock that the queries take too. Memory is bounded by the options and grows
// with the distinct names, streams and live ranges, not with the records.
class Workload {
 public:
  Workload(const Options &options, toolkit::SourceStrings::Fetch fetch);

  // [delivery]
  void consume(const sonde_batch_t &raw);
  // After the last batch.
  void finish();

  // [any], also while the run goes on: of what was delivered so far.
  uint64_t kernel_count() const;
  int64_t kernel_ns() const;
  // Of a device number, over all processes: idle time by span. 0 when nothing ran.
  double idle_share(uint32_t device) const;
  // The greatest peak of any process.
  uint64_t peak_bytes(uint32_t device) const;
  // Of the launches that were told so far (the last reorder_records are not): most bytes of objects that one touched, and
  // most that were allocated at one time; of a device number, the greatest of any process.
  uint64_t working_set(uint32_t device) const;
  uint64_t footprint(uint32_t device) const;
  std::vector<HotObject> hot_objects(uint64_t limit) const;
  std::vector<KernelTraffic> kernel_traffic(uint64_t limit) const;
  // Over all devices and processes, by total time, then by name.
  std::vector<TopKernel> top_kernels(uint64_t limit) const;

  // After finish.
  const std::map<uint32_t, Source> &sources() const { return sources_; }
  const std::string &text(uint32_t name) const { return strings_.text(name); }
  const Options &options() const { return options_; }
  uint64_t lost_records() const { return lost_records_; }
  uint64_t lost_batches() const { return lost_batches_; }
  // A port left something out to keep a budget.
  bool sampled() const;
  const Accesses &accesses() const { return *accesses_; }

 private:
  void session_record(Source &source, const Record &record, uint32_t id);
  void host_record(Source &source, const Record &record, uint32_t id);
  void device_record(Source &source, const Record &record, uint32_t id);
  void memory_record(Source &source, const Record &record);
  void object_record(Source &source, const Record &record, uint32_t id);
  void framework_record(Source &source, const Record &record, uint32_t id);

  void kernel(Source &source, const sonde_device_kernel_t &record, const Interval &interval, uint32_t id);
  void copy(Source &source, const sonde_device_copy_t &record, const Interval &interval);
  void set(Source &source, const sonde_device_set_t &record, const Interval &interval);
  void note_activity(Source &source, uint32_t device, const Interval &interval, const Activity &activity);
  uint32_t scope_name(uint32_t name);
  bool is_optimizer_scope(uint32_t name);
  GraphRow &graph(Source &source, uint32_t graph_exec, int64_t time);
  Device &device(Source &source, uint32_t number);

  Options options_;
  mutable std::mutex mutex_;
  toolkit::SourceStrings strings_;
  std::map<uint32_t, Source> sources_;
  std::unordered_map<uint32_t, uint32_t> scope_names_;  // name to its group
  std::unordered_map<uint32_t, bool> optimizer_names_;
  std::unique_ptr<Accesses> accesses_;
  std::array<uint32_t, 11> copy_labels_{};
  uint32_t set_label_ = 0;
  uint32_t other_kernels_ = 0;
  uint32_t other_scopes_ = 0;
  uint64_t lost_records_ = 0;
  uint64_t lost_batches_ = 0;
};

// A scope's name without the numbers and lists that a framework writes behind it: "aten::mm, seq = 7, sizes = [[2, 3]]"
// is "aten::mm". PyTorch's NVTX ranges would otherwise be a row each.
std::string_view scope_group(std::string_view name);

// Words for SONDE_COPY_* and SONDE_MEMORY_*.
const char *copy_name(uint32_t kind);
const char *memory_name(uint32_t kind);
// Between host and device (arrays included), in either direction.
bool is_host_copy(uint32_t kind);

}  // namespace sonde::workload
