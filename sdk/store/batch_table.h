// The batches of a record chunk: what lies at the start of its payload.
#pragma once

#include <sonde/clock.h>

#include <cstdint>
#include <span>
#include <vector>

#include "store/bytes.h"

namespace sonde::store {

// A run of records of one stream as it was delivered; consecutive ones of one stream may have been put together.
struct StoredBatch {
  uint64_t stream = 0;
  uint64_t sequence = 0;  // of the stream in the file; a gap is one or more batches that the recording lost
  uint64_t position = 0;  // as in sonde_batch_t
  uint64_t bytes = 0;
  uint64_t count = 0;
  uint64_t first_time = 0;  // least raw time
  uint64_t last_time = 0;   // greatest
  uint64_t watermark = 0;
  uint64_t lost_ring = 0;
  uint64_t lost_overwritten = 0;
  uint32_t clock = 0;  // index into BatchTable::clocks
};

struct BatchTable {
  std::vector<sonde_clock_t> clocks;
  std::vector<StoredBatch> batches;

  void clear() {
    clocks.clear();
    batches.clear();
  }

  // Index of a clock's line, added when new.
  uint32_t clock_index(const sonde_clock_t &clock);

  // Least and greatest time of the batches' records, ns since 1970. Stamps that cannot be of a process that started
  // at `start_ns` (zeros, sentinels, another clock) are left out; false when none remain.
  bool time_range(int64_t start_ns, int64_t &first_ns, int64_t &last_ns) const;
};

void write_batch_table(const BatchTable &table, Bytes &out);

// Reads a table whose batches hold `record_bytes` and `record_count` together; false when it contradicts itself.
bool read_batch_table(std::span<const uint8_t> encoded, uint64_t record_bytes, uint64_t record_count, BatchTable &out);

}  // namespace sonde::store
