// Batches: checked records in a shared buffer.
#pragma once

#include <sonde/delivery.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/buffer.h"

namespace sonde::core {

// What a producer of batches knows about one before its records are looked at.
struct BatchInfo {
  uint32_t source = 0;
  uint64_t stream = 0;
  uint64_t sequence = 0;
  uint64_t position = 0;
  uint64_t watermark = 0;
  uint64_t bytes = 0;
  uint64_t lost_ring = 0;
  uint64_t lost_overwritten = 0;
  sonde_clock_t clock{};
};

struct Batch {
  sonde_batch_t view{};  // lost_queue is each subscriber's own
  BufferRef buffer;
  sonde_clock_t clock{};
  std::vector<sonde_repair_t> repairs;
  std::atomic<uint32_t> references{1};
};

class BatchRef {
 public:
  BatchRef() = default;
  explicit BatchRef(Batch *adopted) : batch_(adopted) {}
  BatchRef(const BatchRef &other) : batch_(other.batch_) {
    if (batch_ != nullptr) batch_->references.fetch_add(1, std::memory_order_relaxed);
  }
  BatchRef(BatchRef &&other) noexcept : batch_(other.batch_) { other.batch_ = nullptr; }
  BatchRef &operator=(BatchRef other) noexcept {
    std::swap(batch_, other.batch_);
    return *this;
  }
  ~BatchRef() {
    if (batch_ != nullptr && batch_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete batch_;
  }
  Batch *operator->() const { return batch_; }
  Batch *get() const { return batch_; }
  Batch *release() {
    Batch *const batch = batch_;
    batch_ = nullptr;
    return batch;
  }
  explicit operator bool() const { return batch_ != nullptr; }

 private:
  Batch *batch_ = nullptr;
};

// Totals of a run of records.
struct Survey {
  uint64_t bytes = 0;  // of whole, well-formed records from the start
  uint64_t count = 0;
  uint64_t first_time = UINT64_MAX;
  uint64_t last_time = 0;
  uint64_t spaces = 0;
  bool malformed = false;   // a record at `bytes` contradicts itself
  bool has_device = false;  // records whose intervals want a check
};

// Walks records from `data`, at most `bytes`, and stops after the record that passes `enough` bytes.
Survey survey(const uint8_t *data, uint64_t bytes, uint64_t enough);

// A survey of the first `bytes` of `available` bytes: a record that is cut at the end of the part is left out, and is no
// fault.
Survey survey_part(const uint8_t *data, uint64_t bytes, uint64_t available);

// Time stamps of device records that cannot be right.
std::vector<sonde_repair_t> find_repairs(const uint8_t *data, uint64_t bytes, const sonde_clock_t &clock);

// Puts a batch together; `totals` are those of buffer's first info.bytes.
BatchRef make_batch(const BatchInfo &info, const Survey &totals, BufferRef buffer, sonde_session_t *session);

}  // namespace sonde::core
