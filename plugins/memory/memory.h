// The memory analysis: records in, judged objects, peaks, pools and orders out.
#pragma once

#include <sonde/toolkit/memory_history.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "objects.h"
#include "options.h"
#include "pools.h"
#include "trace_file.h"

namespace sonde::memory {

// Passes what the history tells on to the parts that want it.
class Told : public toolkit::MemoryListener {
 public:
  Told(Objects &objects, Pools &pools) : objects_(objects), pools_(pools) {}
  void object_begins(const toolkit::MemoryObject &object) override {
    pools_.begins(object);
    objects_.object_begins(object);
  }
  void operation(const toolkit::MemoryOperation &operation, std::span<const toolkit::MemoryTouch> touches) override {
    objects_.operation(operation, touches);
  }
  void object_ends(const toolkit::MemoryObject &object) override {
    pools_.ends(object);
    objects_.object_ends(object);
  }
  void unmatched_free(const toolkit::MemoryObject &object) override { pools_.unmatched_free(object); }

 private:
  Objects &objects_;
  Pools &pools_;
};

// Thread-safe: a batch is taken under a lock that the queries take too.
class Memory {
 public:
  Memory(const Options &options, toolkit::SourceStrings::Fetch fetch);

  static std::vector<sonde_interest_t> interests(const Options &options);

  // [delivery]
  void consume(const sonde_batch_t &batch);
  // After the last batch.
  void finish();

  // [any], also while the run goes on: of what was delivered and put in order so far. Patterns of objects that have ended;
  // redundant allocations are known after finish.
  uint64_t pattern_count(toolkit::ObjectLevel level, Pattern pattern) const;
  double pattern_byte_seconds(toolkit::ObjectLevel level, Pattern pattern) const;
  // The greatest of all processes and devices.
  uint64_t peak_bytes(toolkit::ObjectLevel level) const;
  uint64_t needed_peak_bytes(toolkit::ObjectLevel level) const;
  uint64_t shared_peak_bytes(toolkit::ObjectLevel level) const;
  uint64_t forced_growth_bytes() const;
  uint64_t unmatched_frees() const;
  // Of ended objects, those that waste most, all processes and devices of a level.
  std::vector<Usage> worst(toolkit::ObjectLevel level, uint64_t limit) const;

  // After finish.
  const Options &options() const { return options_; }
  const Objects &objects() const { return objects_; }
  const Pools &pools() const { return pools_; }
  const toolkit::MemoryHistoryCounts &counts() const { return history_.counts(); }
  const std::string &text(uint32_t name) const { return history_.text(name); }
  const std::map<uint32_t, uint64_t> &process_ids() const { return process_ids_; }
  uint64_t lost_records() const { return lost_records_; }
  uint64_t lost_batches() const { return lost_batches_; }
  const TraceFile *trace() const { return trace_.get(); }
  TraceFile *trace() { return trace_.get(); }
  std::string name_of_object(const toolkit::MemoryObject &object) const;
  std::string kernel_name(uint32_t name) const;

 private:
  Options options_;
  mutable std::mutex mutex_;
  Objects objects_;
  Pools pools_;
  Told told_;
  toolkit::MemoryHistory history_;
  std::unique_ptr<TraceFile> trace_;
  std::map<uint32_t, uint64_t> process_ids_;  // by source
  uint64_t lost_records_ = 0;
  uint64_t lost_batches_ = 0;
};

}  // namespace sonde::memory
