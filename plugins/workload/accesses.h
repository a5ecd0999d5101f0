// What kernels did to memory: reads the records of sonde.access and hands them to the parts that keep numbers.
#pragma once

#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/strings.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "counters.h"
#include "heat.h"
#include "instructions.h"
#include "kernel_objects.h"
#include "launch_book.h"
#include "options.h"
#include "producers.h"
#include "scope_accesses.h"
#include "warps.h"
#include "working_sets.h"

namespace sonde::workload {

// All processes of a capture. Not thread-safe. Memory: that of its parts, and of toolkit::MemoryHistory.
class Accesses : private toolkit::MemoryListener {
 public:
  // `strings` numbers the names of kernels and scopes, and outlives this.
  Accesses(const Options &options, toolkit::SourceStrings::Fetch fetch, toolkit::SourceStrings &strings);

  // Batches of any spaces, in any interleaving.
  void consume(const sonde_batch_t &batch);
  // Scopes, with names of `strings`.
  void scope_begin(const ScopeKey &key, uint64_t thread, uint64_t scope, int64_t time, const ScopeHint &hint);
  void scope_end(uint32_t source, ScopeKind kind, uint32_t domain, uint64_t thread, uint64_t scope, int64_t time);
  void finish();

  const WorkingSets &working_sets() const { return working_sets_; }
  const Heat &heat() const { return heat_; }
  const KernelObjects &kernel_objects() const { return kernel_objects_; }
  const Producers &producers() const { return producers_; }
  const ScopeAccesses &scopes() const { return scopes_; }
  const Instructions &instructions() const { return instructions_; }
  const Counters &counters() const { return counters_; }
  const Warps &warps() const { return warps_; }
  const toolkit::MemoryHistoryCounts &counts() const { return history_.counts(); }
  // Of a number in MemoryObject::name.
  const std::string &object_text(uint32_t name) const { return history_.text(name); }

  // Why there is nothing: no launch record at all, launches but none watched, ...
  struct Seen {
    uint64_t launches = 0;
    uint64_t watched = 0;
    uint64_t skipped = 0;  // by sampling or a filter
    uint64_t flawed = 0;   // incomplete, unpatched, cut, unfinished
    uint64_t sampled = 0;  // watched with kernel_period or block_period above 1
    uint64_t touches = 0;  // records of objects, pages, intervals
    uint64_t instructions = 0;
    uint64_t warps = 0;
    uint64_t counters = 0;
  };
  const Seen &seen() const { return seen_; }

  // Pieces of memory that depend on what the capture does; for tests of the bound.
  size_t held() const { return heat_.live() + kernel_objects_.live() + producers_.live(); }

 private:
  void object_begins(const toolkit::MemoryObject &object) override;
  void operation(const toolkit::MemoryOperation &operation, std::span<const toolkit::MemoryTouch> touches) override;
  void object_ends(const toolkit::MemoryObject &object) override;

  void access_record(const Record &record, uint32_t source);
  void counter_record(const Record &record, uint32_t source);
  uint32_t kernel_name(uint32_t history_name);

  const Options *options_;
  toolkit::SourceStrings *strings_;
  toolkit::MemoryHistory history_;
  std::vector<uint32_t> names_;  // by number in the history's strings: ours + 1, 0: not asked yet
  uint32_t copy_names_[11] = {};
  uint32_t set_name_ = 0, layer_domain_ = 0;
  LaunchBook book_;
  WorkingSets working_sets_;
  Heat heat_;
  KernelObjects kernel_objects_;
  Producers producers_;
  ScopeAccesses scopes_;
  Instructions instructions_;
  Counters counters_;
  Warps warps_;
  Seen seen_;
};

}  // namespace sonde::workload
