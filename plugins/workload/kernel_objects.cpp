#include "kernel_objects.h"

#include <algorithm>
#include <utility>

#include "working_sets.h"

namespace sonde::workload {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::ObjectLevel;

void KernelObjects::operation(const MemoryOperation &operation, uint32_t name, std::span<const MemoryTouch> touches) {
  if (operation.kind != toolkit::OperationKind::kKernel || touches.empty()) return;
  KernelObjectRow &row = kernels_.get({operation.source, operation.device, name},
                                      [&] { return KernelObjectRow(static_cast<size_t>(options_->kernel_objects)); });
  parents_.clear();
  for (const MemoryTouch &touch : touches) {
    if (touch.object->level == ObjectLevel::kTensor) parents_.push_back(touch.object->parent);
  }
  std::sort(parents_.begin(), parents_.end());
  for (const MemoryTouch &touch : touches) {
    const bool is_outer = touch.object->level == ObjectLevel::kAllocation &&
                          std::binary_search(parents_.begin(), parents_.end(), touch.object->id);
    if (is_outer) continue;
    std::vector<Use> &uses = live_[touch.object->id];
    auto use = std::find_if(uses.begin(), uses.end(), [&](const Use &known) { return known.row == &row; });
    if (use == uses.end()) use = uses.insert(use, {&row, {}});
    KernelObject &sums = use->sums;
    sums.launches += operation.is_late ? 0 : 1;
    sums.accesses += touch.reads + touch.writes + touch.atomics + touch.copies;
    sums.read_bytes += touch.read_bytes;
    sums.write_bytes += touch.write_bytes;
    sums.most_touched = std::max(sums.most_touched, WorkingSets::union_bytes(touch.read_edges, touch.write_edges));
  }
}

void KernelObjects::object_ends(const MemoryObject &object) {
  const auto it = live_.find(object.id);
  if (it == live_.end()) return;
  for (Use &use : it->second) {
    ++use.row->count;
    if (!use.row->objects.takes(use.sums.accesses)) continue;
    use.sums.object = object;
    use.row->objects.add(use.sums.accesses, std::move(use.sums));
  }
  live_.erase(it);
}

}  // namespace sonde::workload
