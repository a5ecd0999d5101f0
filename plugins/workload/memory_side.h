// What one process's memory did: peaks, live ranges, pools, timelines.
#pragma once

#include <sonde/toolkit/lifetime_map.h>
#include <sonde/toolkit/reorder.h>
#include <sonde/toolkit/timeline.h>

#include <cstdint>
#include <map>
#include <tuple>

#include "options.h"

namespace sonde::workload {

// At which level a range was handed out. The levels lie inside each other, so they are never added up.
enum class MemoryLevel : uint8_t { kAllocation, kSubAllocation, kMapping, kTensor, kPool };

struct MemoryRow {
  explicit MemoryRow(int64_t timeline_rows) : timeline(static_cast<uint32_t>(timeline_rows)) {}

  uint64_t bytes = 0;  // now
  uint64_t peak_bytes = 0;
  int64_t peak_ns = 0;
  uint64_t reserved_peak_bytes = 0;  // what a pool or a framework's allocator held, at most
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;  // over all allocations
  uint64_t largest_bytes = 0;
  uint64_t frees = 0;
  uint64_t live = 0;
  uint64_t unmatched_frees = 0;  // named no live range
  uint64_t other_frees = 0;      // named a range of another device
  uint64_t replaced = 0;         // ranges whose address was handed out again before a free was seen
  toolkit::Timeline timeline;
};

struct MemoryEvent {
  enum class Type : uint8_t { kBegin, kEnd, kPool, kPoolEnd } type = Type::kBegin;
  MemoryLevel level = MemoryLevel::kAllocation;
  uint32_t device = 0;
  uint32_t kind = 0;     // SONDE_MEMORY_*
  uint64_t address = 0;  // or the pool
  uint64_t bytes = 0;
  uint64_t reserved = 0;
};

// Feed in any order, then finish. Events are put in order of time (reorder_records). Memory grows with the ranges
// alive at one time, not with the events.
class MemorySide {
 public:
  using Key = std::tuple<MemoryLevel, uint32_t, uint32_t>;  // level, device, kind

  explicit MemorySide(const Options &options)
      : options_(&options), order_(static_cast<size_t>(options.reorder_records)) {}

  void add(int64_t time, const MemoryEvent &event);
  void finish();

  const std::map<Key, MemoryRow> &rows() const { return rows_; }
  // Peak over all kinds of allocations that lie on the device (neither pageable nor pinned).
  uint64_t device_peak_bytes(uint32_t device) const;

 private:
  struct Holder {
    uint32_t kind;
  };
  using Ranges = toolkit::LifetimeMap<Holder>;
  struct Pool {
    uint64_t used = 0;
    uint64_t reserved = 0;
  };
  struct Total {
    uint64_t bytes = 0;
    uint64_t peak_bytes = 0;
  };

  void in_order(int64_t time, const MemoryEvent &event);
  void begin(int64_t time, const MemoryEvent &event);
  void end(int64_t time, const MemoryEvent &event);
  void pool(int64_t time, const MemoryEvent &event);
  void release(int64_t time, MemoryRow &row, const Ranges::Object &object, MemoryLevel level, uint32_t device);
  void set_level(int64_t time, MemoryRow &row, uint64_t bytes);
  Total *total_of(MemoryLevel level, uint32_t device, uint32_t kind);
  MemoryRow &row(MemoryLevel level, uint32_t device, uint32_t kind);

  const Options *options_;
  toolkit::ReorderBuffer<MemoryEvent> order_;
  std::map<Key, MemoryRow> rows_;
  std::map<std::tuple<MemoryLevel, uint32_t>, Ranges> ranges_;  // level, device
  std::map<uint32_t, std::map<uint64_t, Pool>> pools_;          // by device, then pool
  std::map<uint32_t, Total> totals_;                            // by device
};

}  // namespace sonde::workload
