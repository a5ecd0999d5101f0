// Which objects and which blocks of them were accessed, how often and when.
#pragma once

#include <sonde/toolkit/address_time_grid.h>
#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/top_list.h>

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "options.h"

namespace sonde::workload {

// What kernels did to one object during its life.
struct ObjectHeat {
  toolkit::MemoryObject object;  // as it was when it ended
  uint64_t launches = 0;         // that touched it
  uint64_t reads = 0;            // thread accesses
  uint64_t writes = 0;
  uint64_t atomics = 0;
  uint64_t copies = 0;
  uint64_t bytes = 0;            // that threads asked for, copies included
  uint64_t host_operations = 0;  // copies and sets of the host
  uint64_t first_kernel = 0;     // launches of its process before the first that touched it
  uint64_t last_kernel = 0;
  int64_t width_ns = 0;  // of the bins in `times`
  int64_t begin_ns = 0;  // of the first of them
  std::vector<uint64_t> times = {};

  uint64_t accesses() const { return reads + writes + atomics + copies; }
};

// A part of an object.
struct BlockHeat {
  uint64_t object = 0;  // id
  toolkit::ObjectLevel level = toolkit::ObjectLevel::kAllocation;
  bool is_whole = false;  // no page histogram: the block is the object
  uint32_t source = 0;
  uint32_t device = 0;
  uint32_t name = 0;  // of the object, in the history's strings
  uint64_t object_address = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  int64_t width_ns = 0;
  int64_t begin_ns = 0;
  std::vector<uint64_t> times = {};  // accesses in each bin
};

// Told by a MemoryHistory. Blocks are cut out of the objects of the lowest level that has any: allocations, whose pages
// are known. Memory: for each live object that was touched time_bins * 8 bytes, and as many for each of its blocks that
// was touched (at most object_blocks; blocks double where an object has more); hot_objects and hot_blocks ended ones.
class Heat {
 public:
  explicit Heat(const Options &options);

  void operation(const toolkit::MemoryOperation &operation, std::span<const toolkit::MemoryTouch> touches);
  // Every object ends, at the latest when the history finishes.
  void object_ends(const toolkit::MemoryObject &object);

  // By accesses; allocations and tensors apart.
  const toolkit::TopList<ObjectHeat> &objects(toolkit::ObjectLevel level) const {
    return objects_[static_cast<size_t>(level)];
  }
  const toolkit::TopList<BlockHeat> &blocks() const { return blocks_; }
  // Of a process and device: accesses to allocations, and bytes of the allocations that were touched.
  struct Total {
    uint64_t accesses = 0;
    uint64_t object_bytes = 0;
    uint64_t objects = 0;
  };
  const std::unordered_map<uint64_t, Total> &totals() const { return totals_; }
  static uint64_t total_key(uint32_t source, uint32_t device) { return uint64_t{source} << 32 | device; }
  bool has_pages() const { return has_pages_; }
  size_t live() const { return live_.size(); }

 private:
  struct Live {
    explicit Live(uint32_t bins) : times(bins) {}
    ObjectHeat heat;
    toolkit::TimeBins times;
    std::unique_ptr<toolkit::AddressTimeGrid> grid;  // where pages are known
  };

  const Options *options_;
  bool has_pages_ = false;
  std::unordered_map<uint64_t, Live> live_;  // by object
  toolkit::TopList<ObjectHeat> objects_[2];
  toolkit::TopList<BlockHeat> blocks_;
  std::unordered_map<uint64_t, Total> totals_;
};

}  // namespace sonde::workload
