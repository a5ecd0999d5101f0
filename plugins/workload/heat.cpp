#include "heat.h"

#include <algorithm>
#include <utility>

namespace sonde::workload {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::ObjectLevel;
using toolkit::OperationKind;

Heat::Heat(const Options &options)
    : options_(&options),
      objects_{toolkit::TopList<ObjectHeat>(static_cast<size_t>(options.hot_objects)),
               toolkit::TopList<ObjectHeat>(static_cast<size_t>(options.hot_objects))},
      blocks_(static_cast<size_t>(options.hot_blocks)) {}

void Heat::operation(const MemoryOperation &operation, std::span<const MemoryTouch> touches) {
  const bool is_kernel = operation.kind == OperationKind::kKernel;
  const auto bins = static_cast<uint32_t>(options_->time_bins);
  for (const MemoryTouch &touch : touches) {
    Live &live = live_.try_emplace(touch.object->id, bins).first->second;
    ObjectHeat &heat = live.heat;
    if (!is_kernel) {
      ++heat.host_operations;
      continue;
    }
    if (heat.launches == 0) heat.first_kernel = operation.kernels;
    heat.last_kernel = operation.kernels;
    heat.launches += operation.is_late ? 0 : 1;
    heat.reads += touch.reads;
    heat.writes += touch.writes;
    heat.atomics += touch.atomics;
    heat.copies += touch.copies;
    heat.bytes += touch.read_bytes + touch.write_bytes + touch.copy_bytes;
    uint64_t accesses = touch.reads + touch.writes + touch.atomics + touch.copies;
    uint64_t in_pages = 0;
    for (const uint64_t count : touch.page_counts) in_pages += count;
    if (accesses == 0 && in_pages != 0) {
      // Pages alone do not tell reads from writes.
      heat.reads += in_pages;
      accesses = in_pages;
    }
    if (accesses != 0) live.times.add(operation.time_ns, accesses);
    if (touch.object->level != ObjectLevel::kAllocation || touch.pages.empty()) continue;
    has_pages_ = true;
    if (live.grid == nullptr) {
      live.grid = std::make_unique<toolkit::AddressTimeGrid>(
          static_cast<uint32_t>(options_->object_blocks), bins,
          std::max(static_cast<uint64_t>(options_->block_bytes), touch.page_bytes));
    }
    for (size_t i = 0; i < touch.pages.size() && i < touch.page_counts.size(); ++i) {
      if (touch.page_counts[i] == 0) continue;
      live.grid->add(touch.pages[i] * touch.page_bytes, operation.time_ns, touch.page_counts[i]);
    }
  }
}

void Heat::object_ends(const MemoryObject &object) {
  const auto it = live_.find(object.id);
  if (it == live_.end()) return;
  Live live = std::move(it->second);
  live_.erase(it);
  ObjectHeat &heat = live.heat;
  heat.object = object;
  heat.width_ns = live.times.width();
  heat.times = live.times.amounts();
  heat.begin_ns = heat.times.empty() ? 0 : live.times.begin_of(0);
  if (object.level == ObjectLevel::kAllocation) {
    Total &total = totals_[total_key(object.source, object.device)];
    total.accesses += heat.accesses();
    total.object_bytes += heat.accesses() != 0 ? object.bytes : 0;
    total.objects += heat.accesses() != 0 ? 1 : 0;
    BlockHeat block;
    block.object = object.id;
    block.level = object.level;
    block.source = object.source;
    block.device = object.device;
    block.name = object.name;
    block.object_address = object.address;
    if (live.grid == nullptr && blocks_.takes(heat.accesses()) && heat.accesses() != 0) {
      block.is_whole = true;
      block.address = object.address;
      block.bytes = object.bytes;
      block.width_ns = heat.width_ns;
      block.begin_ns = heat.begin_ns;
      block.times = heat.times;
      blocks_.add(heat.accesses(), block);
    } else if (live.grid != nullptr) {
      const toolkit::AddressTimeGrid &grid = *live.grid;
      grid.for_each_row([&](uint64_t address, const std::vector<uint64_t> &amounts) {
        uint64_t sum = 0;
        for (const uint64_t amount : amounts) sum += amount;
        if (!blocks_.takes(sum)) return;
        block.address = address;
        block.bytes = grid.block();
        block.width_ns = grid.width();
        block.begin_ns = grid.time_of(0);
        block.times = amounts;
        blocks_.add(sum, block);
      });
    }
  }
  if (heat.accesses() != 0 || heat.host_operations != 0) {
    objects_[static_cast<size_t>(object.level)].add(heat.accesses(), std::move(heat));
  }
}

}  // namespace sonde::workload
