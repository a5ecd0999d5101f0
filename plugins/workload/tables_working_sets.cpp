// Tables of what launches touched: working sets, footprints, traffic, frequency, reuse between kernels.
#include <map>

#include "tables_access.h"

namespace sonde::workload {
namespace {

// Empty where no launch was watched.
struct Spread {
  explicit Spread(const Distribution &values) : values_(values) {}
  std::optional<int64_t> min() const { return known(values_.statistics.min()); }
  std::optional<int64_t> max() const { return known(values_.statistics.max()); }
  std::optional<int64_t> median() const { return known(values_.quantiles.median()); }
  std::optional<int64_t> p90() const { return known(values_.quantiles.quantile(90, 100)); }
  std::optional<double> mean() const {
    return values_.count() == 0 ? std::nullopt : std::optional<double>(values_.statistics.mean());
  }

 private:
  std::optional<int64_t> known(int64_t value) const {
    return values_.count() == 0 ? std::nullopt : std::optional<int64_t>(value);
  }
  const Distribution &values_;
};

class WorkingSetTables : public AccessTablePublisher {
 public:
  using AccessTablePublisher::AccessTablePublisher;

  void all() {
    kernel_frequency();
    const WorkingSets &sets = accesses().working_sets();
    if (sets.any_touch()) {
      working_sets();
      kernel_objects();
      footprints();
      traffic();
    }
    if (!accesses().producers().pairs().empty()) kernel_reuse();
  }

 private:
  // Tensors of a launch count only where the process has any: else the cells are empty.
  bool has_tensors(uint32_t source) const {
    for (const auto &[key, footprint] : accesses().working_sets().footprints()) {
      if (std::get<0>(key) == source && std::get<2>(key) == toolkit::ObjectLevel::kTensor) return true;
    }
    return false;
  }

  void kernel_frequency() {
    struct Row {
      KernelKey key;
      uint64_t launches;
    };
    std::vector<Row> rows;
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> whole;
    for (const auto &[id, source] : workload_.sources()) {
      if (!source.kernels.empty()) {
        for (const auto &[key, kernel] : source.kernels) {
          rows.push_back({{id, kernel.device, kernel.name}, kernel.durations.count});
        }
        continue;
      }
      for (const auto &[key, row] : accesses().working_sets().kernels().rows()) {
        if (key.source == id) rows.push_back({key, row.launches});
      }
    }
    if (rows.empty()) return;
    for (const Row &row : rows) whole[{row.key.source, row.key.device}] += row.launches;
    std::sort(rows.begin(), rows.end(), [&](const Row &a, const Row &b) {
      if (a.launches != b.launches) return a.launches > b.launches;
      const int order = workload_.text(a.key.name).compare(workload_.text(b.key.name));
      return order != 0 ? order < 0 : a.key < b.key;
    });
    Table result =
        table("kernel_frequency", "Kernel frequency",
              "How often each kernel ran: by the records of the device, or of accesses where there are none.");
    kernel_columns(result)
        .u64("launches", "1", "how often it ran", kDown)
        .f64("share", "1", "of the launches on the device")
        .f64("cumulative", "1", "share of this kernel and all more frequent ones", kHidden)
        .create();
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> so_far;
    for (const Row &row : rows) {
      const std::pair place(row.key.source, row.key.device);
      so_far[place] += row.launches;
      result.row({process(row.key.source), row.key.source, short_name(row.key.name), workload_.text(row.key.name),
                  row.key.device, row.launches, ratio_of(row.launches, whole[place]),
                  ratio_of(so_far[place], whole[place])});
    }
  }

  static Table &spread_columns(Table &table, const char *help, std::initializer_list<const char *> names,
                               bool is_shown) {
    const char *const *name = names.begin();
    table.i64(name[0], "bytes", help, kHidden)
        .f64(name[1], "bytes", help, is_shown ? 0 : kHidden)
        .i64(name[2], "bytes", help, kHidden)
        .i64(name[3], "bytes", help, kHidden)
        .i64(name[4], "bytes", help, is_shown ? 0 : kHidden);
    return table;
  }

  void working_sets() {
    Table result = table("working_sets", "Working sets of kernels",
                         "Bytes that a launch touched: of whole objects (allocations; tensors cut out of them), and "
                         "byte by byte where intervals were collected. Percentiles are nearest rank.");
    kernel_columns(result)
        .u64("launches", "1", "watched or not")
        .u64("watched", "1", "launches behind the numbers")
        .u64("incomplete", "1", "of these, lower bounds: copies that cannot be watched ran, or something was cut",
             kHidden)
        .f64("objects", "1", "touched objects of a launch, mean; tensors where there are any", kHidden);
    spread_columns(result, "allocations: bytes of those that a launch touched", {"min", "mean", "median", "p90", "max"},
                   true);
    spread_columns(result, "tensors: bytes of those that a launch touched; empty without tensors",
                   {"tensor_min", "tensor_mean", "tensor_median", "tensor_p90", "tensor_max"}, true);
    spread_columns(result, "bytes that a launch read or wrote; empty where intervals were not collected",
                   {"touched_min", "touched_mean", "touched_median", "touched_p90", "touched_max"}, true);
    result.u64("late", "1", "records that came too late to be told with their launch", kHidden).create();
    const auto rows = by_weight(accesses().working_sets().kernels(),
                                [](const WorkingSetRow &row) { return row.objects[0].statistics.max(); });
    for (const auto &[key, row] : rows) {
      const Distribution none(0);
      const Spread objects(row->objects[0]), touched(row->touched);
      const Spread tensors(has_tensors(key.source) ? row->objects[1] : none);
      const Spread counts(row->counts);
      result.row({process(key.source),
                  key.source,
                  short_name(key.name),
                  workload_.text(key.name),
                  key.device,
                  row->launches,
                  row->watched,
                  row->incomplete,
                  counts.mean(),
                  objects.min(),
                  objects.mean(),
                  objects.median(),
                  objects.p90(),
                  objects.max(),
                  tensors.min(),
                  tensors.mean(),
                  tensors.median(),
                  tensors.p90(),
                  tensors.max(),
                  touched.min(),
                  touched.mean(),
                  touched.median(),
                  touched.p90(),
                  touched.max(),
                  row->late});
    }
  }

  void kernel_objects() {
    Table result = table("kernel_objects", "Objects of kernels",
                         "What the working set of a kernel is made of: the objects with most of its accesses, "
                         "kernel_objects of each. Tensors; allocations where a launch touched no tensor in them.");
    result.show_rows(8);
    kernel_columns(result)
        .u64("rank", "1", "1: the object with most of the kernel's accesses", kKey)
        .text("object", "its name, or its address")
        .text("level", "allocation or tensor", kHidden)
        .u64("id", "1", "of its life", kHidden)
        .text("address", "first byte", kHidden)
        .u64("bytes", "bytes", "of the object")
        .u64("touched", "bytes", "most that one launch read or wrote of it; empty without intervals")
        .u64("accesses", "1", "thread accesses, all launches")
        .u64("read", "bytes", "that threads asked to read")
        .u64("written", "bytes", "that threads asked to write")
        .u64("launches", "1", "that touched it")
        .create();
    const auto rows = by_weight(accesses().kernel_objects().kernels(), [](const KernelObjectRow &row) {
      const auto sorted = row.objects.sorted();
      return sorted.empty() ? uint64_t{0} : sorted.front()->weight;
    });
    for (const auto &[key, row] : rows) {
      uint64_t rank = 0;
      for (const auto *const entry : row->objects.sorted()) {
        const KernelObject &use = entry->item;
        const std::string name = object_name(use.object.name, use.object.address);
        const std::string address = hexadecimal(use.object.address);
        result.row({process(key.source), key.source, short_name(key.name), workload_.text(key.name), key.device, ++rank,
                    name, level_name(use.object.level), use.object.id, address, use.object.bytes,
                    use.most_touched == 0 ? std::nullopt : std::optional<uint64_t>(use.most_touched), use.accesses,
                    use.read_bytes, use.write_bytes, use.launches});
      }
    }
  }

  void footprints() {
    Table result = table("footprints", "Footprint and working set",
                         "Of each device and level: the most bytes alive at one time, and what single launches touched "
                         "of them. Levels lie inside each other: do not add them up.");
    result.u64("device", "1", "the runtime's number", kKey)
        .text("level", "allocation, tensor, or touched: the bytes of allocations that were read or written", kKey)
        .u64("footprint", "bytes", "most that was alive at one time", kDown)
        .i64("peak_time", "ns", "when, since the process's first record", kHidden)
        .i64("min", "bytes", "least working set of a launch", kHidden)
        .f64("mean", "bytes", "mean of the launches")
        .i64("median", "bytes", "nearest rank")
        .i64("p90", "bytes", "nearest rank")
        .i64("max", "bytes", "the working set of the run: the greatest of any launch")
        .f64("ratio", "1", "footprint / max")
        .u64("launches", "1", "watched ones")
        .create();
    for (const auto &[place, row] : accesses().working_sets().devices()) {
      const auto &[source, device] = place;
      const auto &footprints = accesses().working_sets().footprints();
      const auto owner = workload_.sources().find(source);
      const int64_t first_ns = owner == workload_.sources().end() ? 0 : owner->second.first_ns;
      const auto add = [&](const char *level, toolkit::ObjectLevel of, const Distribution &values) {
        const auto found = footprints.find({source, device, of});
        if (found == footprints.end() || values.count() == 0) return;
        const Footprint &footprint = found->second;
        const Spread spread(values);
        result.row({process(source), source, device, level, footprint.peak_bytes,
                    footprint.peak_bytes == 0 ? std::nullopt : std::optional<int64_t>(footprint.peak_ns - first_ns),
                    spread.min(), spread.mean(), spread.median(), spread.p90(), spread.max(),
                    ratio_of(footprint.peak_bytes, static_cast<uint64_t>(values.statistics.max())), values.count()});
      };
      add("allocation", toolkit::ObjectLevel::kAllocation, row.objects[0]);
      add("tensor", toolkit::ObjectLevel::kTensor, row.objects[1]);
      add("touched", toolkit::ObjectLevel::kAllocation, row.touched);
    }
  }

  void traffic() {
    Table result = table("traffic", "Memory traffic of kernels",
                         "What threads asked for, and what it became: sectors of 32 bytes between the caches (from "
                         "instruction records), bytes of L2 and device memory (from hardware counters).");
    kernel_columns(result)
        .u64("watched", "1", "launches behind accesses and requested bytes")
        .u64("accesses", "1", "thread accesses to global memory")
        .u64("outside", "1", "of these, in no live range", kHidden)
        .u64("read", "bytes", "that threads asked to read")
        .u64("written", "bytes", "that threads asked to write; atomics count here")
        .u64("copied", "bytes", "by asynchronous copies of device code", kHidden)
        .f64("requested", "bytes", "read + written + copied of a launch, mean", kDown)
        .f64("sector_bytes", "bytes", "32 * sectors of a launch, mean; empty without instruction records")
        .f64("l2_bytes", "bytes", "of a launch, mean; empty without such counters")
        .f64("dram_bytes", "bytes", "of a launch, mean; empty without such counters")
        .create();
    const auto per_launch = [](double sum, uint64_t launches) -> std::optional<double> {
      if (launches == 0) return std::nullopt;
      return sum / static_cast<double>(launches);
    };
    const auto requested = [](const WorkingSetRow &row) { return row.read_bytes + row.write_bytes + row.copy_bytes; };
    for (const auto &[key, row] : by_weight(accesses().working_sets().kernels(), requested)) {
      const KernelUnits *const units = accesses().instructions().kernels().find(key);
      const CounterRow *const counters = accesses().counters().kernels().find(key);
      const auto counted = [&](Traffic traffic) -> std::optional<double> {
        const auto i = static_cast<size_t>(traffic);
        if (counters == nullptr || !counters->has_traffic[i]) return std::nullopt;
        return per_launch(counters->traffic[i], counters->launches);
      };
      result.row({process(key.source), key.source, short_name(key.name), workload_.text(key.name), key.device,
                  row->watched, row->accesses, row->outside, row->read_bytes, row->write_bytes, row->copy_bytes,
                  per_launch(static_cast<double>(requested(*row)), row->watched),
                  units == nullptr || units->global.warps == 0
                      ? std::nullopt
                      : per_launch(32.0 * static_cast<double>(units->global.units), units->launches),
                  counted(Traffic::kL2), counted(Traffic::kDram)});
    }
  }

  void kernel_reuse() {
    Table result = table("kernel_reuse", "Reuse between kernels",
                         "Which kernel reads what another operation wrote or read last. Byte by byte where intervals "
                         "were collected; else an allocation that was touched counts as a whole.");
    result.text("producer", "the operation that wrote or read the bytes last")
        .text("consumer", "the kernel or copy that reads them")
        .text("producer_symbol", "name as the runtime gives it", kKey | kHidden)
        .text("consumer_symbol", "name as the runtime gives it", kKey | kHidden)
        .u64("device", "1", "of the consumer", kKey)
        .text("kind", "read_after_write, or read_after_read with no write between", kKey)
        .u64("bytes", "bytes", "distinct ones of each consuming launch, summed", kDown)
        .u64("operations", "1", "consuming launches or copies")
        .f64("distance", "1", "operations from producer to consumer, mean over pieces; 1: the next one")
        .i64("least_distance", "1", "")
        .create();
    std::vector<std::pair<ReusePair, const ReuseRow *>> rows;
    for (const auto &[pair, row] : accesses().producers().pairs()) rows.emplace_back(pair, &row);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto &a, const auto &b) { return a.second->bytes > b.second->bytes; });
    for (const auto &[pair, row] : rows) {
      result.row({process(pair.source), pair.source, short_name(pair.producer), short_name(pair.consumer),
                  workload_.text(pair.producer), workload_.text(pair.consumer), pair.device,
                  pair.kind == ReuseKind::kReadAfterWrite ? "read_after_write" : "read_after_read", row->bytes,
                  row->operations, row->distance.mean(), row->distance.min()});
    }
  }
};

}  // namespace

void publish_working_set_tables(const Workload &workload, const Host &host, sonde_session_t *session) {
  WorkingSetTables(workload, host, session).all();
}

}  // namespace sonde::workload
