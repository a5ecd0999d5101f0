#include "working_sets.h"

#include <algorithm>

namespace sonde::workload {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::OperationKind;

WorkingSets::WorkingSets(const Options &options, uint32_t other_kernels)
    : options_(&options), kernels_(static_cast<uint64_t>(options.name_limit), other_kernels) {}

uint64_t WorkingSets::union_bytes(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  uint64_t bytes = 0, open_until = 0;
  size_t i = 0, j = 0;
  while (i + 1 < a.size() || j + 1 < b.size()) {
    const bool from_a = j + 1 >= b.size() || (i + 1 < a.size() && a[i] <= b[j]);
    const uint64_t begin = from_a ? a[i] : b[j], end = from_a ? a[i + 1] : b[j + 1];
    (from_a ? i : j) += 2;
    if (end <= open_until) continue;
    bytes += end - std::max(begin, open_until);
    open_until = end;
  }
  return bytes;
}

WorkingSetRow &WorkingSets::device_row(uint32_t source, uint32_t device) {
  return devices_.try_emplace({source, device}, options_->exact_values).first->second;
}

void WorkingSets::object_begins(const MemoryObject &object) {
  if (object.device == UINT32_MAX) return;
  Footprint &footprint = footprints_[{object.source, object.device, object.level}];
  ++footprint.objects;
  footprint.bytes += object.bytes;
  if (footprint.bytes > footprint.peak_bytes) {
    footprint.peak_bytes = footprint.bytes;
    footprint.peak_ns = object.begin_ns;
  }
}

void WorkingSets::object_ends(const MemoryObject &object) {
  if (object.device == UINT32_MAX || object.end == toolkit::ObjectEnd::kAlive) return;
  footprints_[{object.source, object.device, object.level}].bytes -= object.bytes;
}

LaunchSums sum_up(const MemoryOperation &operation, std::span<const MemoryTouch> touches) {
  LaunchSums sums;
  sums.accesses = operation.accesses;
  const uint32_t flags = operation.launch_flags;
  sums.is_watched = !touches.empty() || ((flags & SONDE_LAUNCH_WATCHED) != 0 && (flags & SONDE_LAUNCH_SHARED) == 0 &&
                                         operation.accesses == 0);
  for (const MemoryTouch &touch : touches) {
    LaunchSums::Level &level = sums.levels[static_cast<size_t>(touch.object->level)];
    level.bytes += touch.object->bytes;
    ++level.objects;
    if (touch.read_edges.empty() && touch.write_edges.empty()) {
      level.is_exact = false;
    } else {
      level.touched += WorkingSets::union_bytes(touch.read_edges, touch.write_edges);
    }
    level.read_bytes += touch.read_bytes;
    level.write_bytes += touch.write_bytes;
    level.copy_bytes += touch.copy_bytes;
  }
  return sums;
}

void WorkingSets::operation(const MemoryOperation &operation, uint32_t name, const LaunchSums &sums) {
  if (operation.kind != OperationKind::kKernel) return;
  WorkingSetRow &kernel =
      kernels_.get({operation.source, operation.device, name}, [&] { return WorkingSetRow(options_->exact_values); });
  WorkingSetRow &device = device_row(operation.source, operation.device);
  any_touch_ = any_touch_ || sums.whole().objects != 0;
  for (WorkingSetRow *const row : {&kernel, &device}) {
    if (operation.is_late) {
      ++row->late;  // a part of a launch that was told before without it: in no distribution
      continue;
    }
    ++row->launches;
    if (!sums.is_watched) continue;
    const LaunchSums::Level &whole = sums.whole();
    ++row->watched;
    row->incomplete += operation.is_complete() ? 0 : 1;
    row->accesses += operation.accesses;
    row->outside += operation.outside;
    row->read_bytes += whole.read_bytes;
    row->write_bytes += whole.write_bytes;
    row->copy_bytes += whole.copy_bytes;
    row->objects[0].add(sums.levels[0].bytes);
    row->objects[1].add(sums.levels[1].bytes);
    row->counts.add(sums.levels[1].objects != 0 ? sums.levels[1].objects : sums.levels[0].objects);
    if (whole.is_exact && whole.objects != 0) row->touched.add(whole.touched);
  }
}

}  // namespace sonde::workload
