// What a kernel's working set is made of: the objects that it accessed most.
#pragma once

#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/top_list.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernel_map.h"
#include "options.h"

namespace sonde::workload {

// All launches of one kernel that touched one object.
struct KernelObject {
  toolkit::MemoryObject object;  // as it was when it ended
  uint64_t launches = 0;
  uint64_t accesses = 0;  // copies of device code included
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;
  uint64_t most_touched = 0;  // bytes that one launch touched, greatest; 0: intervals were not collected
};

struct KernelObjectRow {
  explicit KernelObjectRow(size_t limit) : objects(limit) {}
  toolkit::TopList<KernelObject> objects;  // by accesses
  uint64_t count = 0;                      // objects that it touched
};

// Told by a MemoryHistory. Of each object the lowest level that has any: tensors, and allocations of launches that
// touched no tensor in them. Memory: for each live object the kernels that touched it; kernel_objects ended ones a kernel.
class KernelObjects {
 public:
  KernelObjects(const Options &options, uint32_t other_kernels)
      : options_(&options), kernels_(static_cast<uint64_t>(options.name_limit), other_kernels) {}

  void operation(const toolkit::MemoryOperation &operation, uint32_t name,
                 std::span<const toolkit::MemoryTouch> touches);
  void object_ends(const toolkit::MemoryObject &object);

  const KernelMap<KernelObjectRow> &kernels() const { return kernels_; }
  size_t live() const { return live_.size(); }

 private:
  struct Use {
    KernelObjectRow *row;
    KernelObject sums;
  };

  const Options *options_;
  KernelMap<KernelObjectRow> kernels_;
  std::unordered_map<uint64_t, std::vector<Use>> live_;  // by object
  std::vector<uint64_t> parents_;                        // of a launch's tensors
};

}  // namespace sonde::workload
