#include "memory_side.h"

#include <sonde/spaces/device.h>

#include <algorithm>

namespace sonde::workload {

void MemorySide::add(int64_t time, const MemoryEvent &event) {
  order_.push(time, event, [this](int64_t at, const MemoryEvent &next) { in_order(at, next); });
}

void MemorySide::finish() {
  order_.finish([this](int64_t at, const MemoryEvent &next) { in_order(at, next); });
}

uint64_t MemorySide::device_peak_bytes(uint32_t device) const {
  const auto it = totals_.find(device);
  return it == totals_.end() ? 0 : it->second.peak_bytes;
}

void MemorySide::in_order(int64_t time, const MemoryEvent &event) {
  switch (event.type) {
    case MemoryEvent::Type::kBegin:
      begin(time, event);
      break;
    case MemoryEvent::Type::kEnd:
      end(time, event);
      break;
    case MemoryEvent::Type::kPool:
    case MemoryEvent::Type::kPoolEnd:
      pool(time, event);
      break;
  }
}

MemoryRow &MemorySide::row(MemoryLevel level, uint32_t device, uint32_t kind) {
  return rows_.try_emplace({level, device, kind}, options_->timeline_rows).first->second;
}

MemorySide::Total *MemorySide::total_of(MemoryLevel level, uint32_t device, uint32_t kind) {
  if (level != MemoryLevel::kAllocation || kind == SONDE_MEMORY_PAGEABLE || kind == SONDE_MEMORY_PINNED) return nullptr;
  return &totals_[device];
}

void MemorySide::set_level(int64_t time, MemoryRow &row, uint64_t bytes) {
  row.bytes = bytes;
  if (bytes > row.peak_bytes) {
    row.peak_bytes = bytes;
    row.peak_ns = time;
  }
  row.timeline.set(time, bytes);
}

void MemorySide::release(int64_t time, MemoryRow &row, const Ranges::Object &object, MemoryLevel level,
                         uint32_t device) {
  --row.live;
  set_level(time, row, row.bytes - object.bytes);
  if (Total *const total = total_of(level, device, object.value.kind); total != nullptr) total->bytes -= object.bytes;
}

void MemorySide::begin(int64_t time, const MemoryEvent &event) {
  Ranges &ranges = ranges_[{event.level, event.device}];
  for (const Ranges::Object &old : ranges.begin(event.address, event.bytes, time, Holder{event.kind})) {
    MemoryRow &holder = row(event.level, event.device, old.value.kind);
    ++holder.replaced;
    release(time, holder, old, event.level, event.device);
  }
  MemoryRow &holder = row(event.level, event.device, event.kind);
  ++holder.allocations;
  ++holder.live;
  holder.allocated_bytes += event.bytes;
  holder.largest_bytes = std::max(holder.largest_bytes, event.bytes);
  holder.reserved_peak_bytes = std::max(holder.reserved_peak_bytes, event.reserved);
  set_level(time, holder, holder.bytes + event.bytes);
  if (Total *const total = total_of(event.level, event.device, event.kind); total != nullptr) {
    total->bytes += event.bytes;
    total->peak_bytes = std::max(total->peak_bytes, total->bytes);
  }
}

void MemorySide::end(int64_t time, const MemoryEvent &event) {
  uint32_t device = event.device;
  std::optional<Ranges::Object> object;
  if (const auto own = ranges_.find({event.level, device}); own != ranges_.end()) {
    object = own->second.end(event.address, time);
  }
  // A runtime may name another device (or none) when it frees; the address decides then.
  for (auto it = ranges_.begin(); !object && it != ranges_.end(); ++it) {
    if (std::get<0>(it->first) != event.level) continue;
    device = std::get<1>(it->first);
    object = it->second.end(event.address, time);
  }
  if (!object) {
    MemoryRow &named = row(event.level, event.device, event.kind);
    ++named.frees;
    ++named.unmatched_frees;
    return;
  }
  MemoryRow &holder = row(event.level, device, object->value.kind);
  ++holder.frees;
  holder.other_frees += device != event.device ? 1 : 0;
  holder.reserved_peak_bytes = std::max(holder.reserved_peak_bytes, event.reserved);
  release(time, holder, *object, event.level, device);
}

void MemorySide::pool(int64_t time, const MemoryEvent &event) {
  std::map<uint64_t, Pool> &pools = pools_[event.device];
  MemoryRow &holder = row(MemoryLevel::kPool, event.device, event.kind);
  if (event.type == MemoryEvent::Type::kPoolEnd) {
    // Blocks of the pool may be freed after it; they are ranges of their own level and stay.
    ++holder.frees;
    if (pools.erase(event.address) == 0) {
      ++holder.unmatched_frees;
    }
  } else {
    const auto [it, is_new] = pools.try_emplace(event.address);
    holder.allocations += is_new ? 1 : 0;
    it->second = {event.bytes, event.reserved};
  }
  uint64_t used = 0;
  uint64_t reserved = 0;
  for (const auto &[id, state] : pools) {
    used += state.used;
    reserved += state.reserved;
  }
  holder.live = pools.size();
  holder.reserved_peak_bytes = std::max(holder.reserved_peak_bytes, reserved);
  set_level(time, holder, used);
}

}  // namespace sonde::workload
