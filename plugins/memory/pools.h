// Pools of the runtime, and frees of nothing.
#pragma once

#include <sonde/spaces/memory.h>
#include <sonde/toolkit/interval_set.h>
#include <sonde/toolkit/memory_history.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace sonde::memory {

struct PoolRow {
  uint32_t device = 0;
  bool is_imported = false;
  bool is_recorded = false;  // the runtime told of its state, else only allocations name it
  bool is_destroyed = false;
  uint64_t records = 0;
  uint64_t reserved_peak = 0;  // as the runtime told
  uint64_t used_peak = 0;
  uint64_t reserved = 0;  // at the last record
  uint64_t used = 0;
  uint64_t release_threshold = 0;
  uint64_t trims = 0;
  int64_t last_ns = INT64_MIN;

  // From the allocations that name the pool.
  uint64_t allocations = 0;
  uint64_t live_bytes = 0;
  uint64_t live_peak = 0;
  // Addresses that it ever handed out; grows by `forced_bytes` although as much was free in them, in pieces too small.
  toolkit::IntervalSet addresses;
  uint64_t forced = 0;
  uint64_t forced_bytes = 0;

  uint64_t footprint() const { return addresses.bytes(); }
};

struct UnmatchedFree {
  uint32_t source = 0;
  toolkit::ObjectLevel level = toolkit::ObjectLevel::kAllocation;
  uint32_t device = 0;
  uint64_t address = 0;
  uint64_t count = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  uint64_t stream = 0;  // of the last one
};

// Memory: a row a pool, `kMostAddresses` intervals each, and `kMostUnmatched` addresses.
class Pools {
 public:
  using Key = std::tuple<uint32_t, uint64_t>;  // source, pool
  static constexpr size_t kMostAddresses = 4096;
  static constexpr size_t kMostUnmatched = 1000;

  void record(uint32_t source, uint32_t type, const sonde_memory_pool_t &record, int64_t time_ns);
  void begins(const toolkit::MemoryObject &object);
  void ends(const toolkit::MemoryObject &object);
  // A free of address 0 is allowed and not counted.
  void unmatched_free(const toolkit::MemoryObject &object);

  const std::map<Key, PoolRow> &rows() const { return rows_; }
  const std::vector<UnmatchedFree> &unmatched() const { return unmatched_; }  // in order of the first
  uint64_t unmatched_count() const { return unmatched_count_; }
  uint64_t unmatched_not_listed() const { return not_listed_; }

 private:
  std::map<Key, PoolRow> rows_;
  std::vector<UnmatchedFree> unmatched_;
  std::map<std::tuple<uint32_t, toolkit::ObjectLevel, uint64_t>, size_t> places_;
  uint64_t unmatched_count_ = 0;
  uint64_t not_listed_ = 0;
};

}  // namespace sonde::memory
