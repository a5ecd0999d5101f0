// Working sets: how many bytes of live objects a launch touched; and footprints: how many lived at one time.
#pragma once

#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/quantiles.h>
#include <sonde/toolkit/statistics.h>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>

#include "kernel_map.h"
#include "options.h"

namespace sonde::workload {

// Values of launches: bytes, counts.
struct Distribution {
  explicit Distribution(int64_t exact_values = toolkit::Quantiles::kDefaultExactLimit)
      : quantiles(static_cast<uint32_t>(exact_values)) {}

  toolkit::Statistics statistics;
  toolkit::Quantiles quantiles;

  void add(uint64_t value) {
    const auto held = static_cast<int64_t>(value < INT64_MAX ? value : INT64_MAX);
    statistics.add(held);
    quantiles.add(held);
  }
  uint64_t count() const { return statistics.count(); }
};

// What one launch touched.
struct LaunchSums {
  struct Level {
    uint64_t bytes = 0;  // of touched objects
    uint64_t objects = 0;
    uint64_t touched = 0;  // bytes, the union of read and written ones
    bool is_exact = true;  // intervals of all of them were collected
    uint64_t read_bytes = 0;
    uint64_t write_bytes = 0;
    uint64_t copy_bytes = 0;
  } levels[2];  // by toolkit::ObjectLevel
  uint64_t accesses = 0;
  bool is_watched = false;

  // Levels lie inside each other, so bytes are counted at one of them: allocations, where any was touched.
  const Level &whole() const { return levels[0].objects != 0 ? levels[0] : levels[1]; }
};

// Unwatched are launches that nothing is known of: left out by sampling, counted with another node of their graph launch,
// or with touches that are not here (yet).
LaunchSums sum_up(const toolkit::MemoryOperation &operation, std::span<const toolkit::MemoryTouch> touches);

// The launches of one kernel, or of a device.
struct WorkingSetRow {
  explicit WorkingSetRow(int64_t exact_values)
      : objects{Distribution(exact_values), Distribution(exact_values)}, touched(exact_values), counts(exact_values) {}

  uint64_t launches = 0;    // all, watched or not
  uint64_t watched = 0;     // those in the distributions
  uint64_t incomplete = 0;  // of these, lower bounds: see MemoryOperation::is_complete
  uint64_t late = 0;        // records of touches that came too late to be told with their launch
  uint64_t accesses = 0;    // thread accesses to global memory
  uint64_t outside = 0;     // of these, in no live range
  uint64_t read_bytes = 0;  // that threads asked for
  uint64_t write_bytes = 0;
  uint64_t copy_bytes = 0;
  // Bytes of the objects that a launch touched, by toolkit::ObjectLevel.
  std::array<Distribution, 2> objects;
  // Bytes that a launch touched, where they were collected: the union of what it read and wrote.
  Distribution touched;
  // Touched objects, tensors where there are any, else allocations.
  Distribution counts;
};

// Bytes alive on a device.
struct Footprint {
  uint64_t bytes = 0;
  uint64_t peak_bytes = 0;
  int64_t peak_ns = 0;
  uint64_t objects = 0;  // that began
};

// Told by a MemoryHistory. Memory: a row for each kernel, see KernelMap.
class WorkingSets {
 public:
  WorkingSets(const Options &options, uint32_t other_kernels);

  void object_begins(const toolkit::MemoryObject &object);
  void object_ends(const toolkit::MemoryObject &object);
  // `name` of `operation` in the analysis' strings, `sums` by sum_up.
  void operation(const toolkit::MemoryOperation &operation, uint32_t name, const LaunchSums &sums);

  const KernelMap<WorkingSetRow> &kernels() const { return kernels_; }
  // (source, device)
  const std::map<std::tuple<uint32_t, uint32_t>, WorkingSetRow> &devices() const { return devices_; }
  // (source, device, level); objects of the host are left out.
  const std::map<std::tuple<uint32_t, uint32_t, toolkit::ObjectLevel>, Footprint> &footprints() const {
    return footprints_;
  }
  // Some launch has touches: what it touched was collected.
  bool any_touch() const { return any_touch_; }
  bool any_launch() const { return !devices_.empty(); }

  // Bytes in the union of two lists of edges (begin and end in turn, ascending, disjoint each).
  static uint64_t union_bytes(std::span<const uint64_t> a, std::span<const uint64_t> b);

 private:
  WorkingSetRow &device_row(uint32_t source, uint32_t device);

  const Options *options_;
  KernelMap<WorkingSetRow> kernels_;
  std::map<std::tuple<uint32_t, uint32_t>, WorkingSetRow> devices_;
  std::map<std::tuple<uint32_t, uint32_t, toolkit::ObjectLevel>, Footprint> footprints_;
  bool any_touch_ = false;
};

}  // namespace sonde::workload
