#include "pools.h"

#include <algorithm>

namespace sonde::memory {

using toolkit::MemoryObject;
using toolkit::ObjectEnd;
using toolkit::ObjectLevel;

void Pools::record(uint32_t source, uint32_t type, const sonde_memory_pool_t &record, int64_t time_ns) {
  PoolRow &row = rows_[{source, record.pool}];
  row.is_recorded = true;
  ++row.records;
  row.device = record.device;
  row.is_imported = record.kind != 0;
  row.reserved_peak = std::max(row.reserved_peak, record.reserved_bytes);
  row.used_peak = std::max(row.used_peak, record.used_bytes);
  if (type == SONDE_MEMORY_POOL_TRIM) ++row.trims;
  if (time_ns < row.last_ns) return;
  row.last_ns = time_ns;
  row.reserved = record.reserved_bytes;
  row.used = record.used_bytes;
  row.release_threshold = record.release_threshold;
  row.is_destroyed = type == SONDE_MEMORY_POOL_DESTROY;
}

void Pools::begins(const MemoryObject &object) {
  if (object.pool == 0 || object.level != ObjectLevel::kAllocation) return;
  PoolRow &row = rows_[{object.source, object.pool}];
  row.device = object.device;
  ++row.allocations;
  if (object.bytes != 0) {
    const uint64_t edges[] = {object.address, object.address + object.bytes};
    const uint64_t known = row.addresses.bytes(), free = known - std::min(known, row.live_bytes);
    const uint64_t fresh = object.bytes - toolkit::overlap_bytes(row.addresses.edges(), edges);
    if (fresh != 0 && free >= object.bytes) {
      ++row.forced;
      row.forced_bytes += fresh;
    }
    row.addresses.unite(edges);
    row.addresses.coarsen(kMostAddresses);
  }
  row.live_bytes += object.bytes;
  row.live_peak = std::max(row.live_peak, row.live_bytes);
}

void Pools::ends(const MemoryObject &object) {
  if (object.pool == 0 || object.level != ObjectLevel::kAllocation || object.end == ObjectEnd::kAlive) return;
  rows_[{object.source, object.pool}].live_bytes -= object.bytes;
}

void Pools::unmatched_free(const MemoryObject &object) {
  if (object.address == 0) return;  // freeing nothing is allowed
  ++unmatched_count_;
  const auto key = std::make_tuple(object.source, object.level, object.address);
  const auto found = places_.find(key);
  if (found == places_.end()) {
    if (unmatched_.size() == kMostUnmatched) {
      ++not_listed_;
      return;
    }
    places_[key] = unmatched_.size();
    unmatched_.push_back({object.source, object.level, object.device, object.address, 1, object.end_ns, object.end_ns,
                          object.end_stream});
    return;
  }
  UnmatchedFree &row = unmatched_[found->second];
  ++row.count;
  row.last_ns = object.end_ns;
  row.stream = object.end_stream;
}

}  // namespace sonde::memory
