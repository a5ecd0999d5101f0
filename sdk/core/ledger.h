// Counts of what was not delivered, by source, stream, cause and subscriber.
#pragma once

#include <sonde/ledger.h>

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace sonde::core {

class Ledger {
 public:
  // Adds to a row; a count of UINT64_MAX makes it "unknown" for good. [any]
  void add(uint32_t source, uint64_t stream, uint32_t cause, uint64_t subscriber, uint64_t records, uint64_t bytes) {
    if (records == 0 && bytes == 0) return;
    const std::lock_guard lock(mutex_);
    Count &row = rows_[{source, stream, cause, subscriber}];
    row.records = row.records == UINT64_MAX || records == UINT64_MAX ? UINT64_MAX : row.records + records;
    row.bytes += bytes;
  }

  // Rows sorted by source, stream, cause, subscriber. [any]
  std::vector<sonde_loss_t> rows() const {
    const std::lock_guard lock(mutex_);
    std::vector<sonde_loss_t> result;
    result.reserve(rows_.size());
    for (const auto &[key, count] : rows_) {
      const auto &[source, stream, cause, subscriber] = key;
      result.push_back({stream, count.records, count.bytes, cause, source, subscriber});
    }
    return result;
  }

 private:
  struct Count {
    uint64_t records = 0;
    uint64_t bytes = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::tuple<uint32_t, uint64_t, uint32_t, uint64_t>, Count> rows_;
};

}  // namespace sonde::core
