#include "accesses.h"

#include <sonde/spaces/access.h>
#include <sonde/spaces/sample.h>

#include <algorithm>
#include <utility>

#include "workload.h"

namespace sonde::workload {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::OperationKind;

namespace {

toolkit::MemoryHistoryOptions history_options(const Options &options) {
  toolkit::MemoryHistoryOptions out;
  out.reorder = static_cast<size_t>(options.reorder_records);
  out.remembered = static_cast<size_t>(options.remembered_launches);
  return out;
}

constexpr uint32_t kFlawed = SONDE_LAUNCH_INCOMPLETE | SONDE_LAUNCH_UNPATCHED | SONDE_LAUNCH_RANGES_CUT |
                             SONDE_LAUNCH_PAGES_CUT | SONDE_LAUNCH_UNFINISHED | SONDE_LAUNCH_STATE_FULL |
                             SONDE_LAUNCH_DEVICE_GRAPH;

}  // namespace

Accesses::Accesses(const Options &options, toolkit::SourceStrings::Fetch fetch, toolkit::SourceStrings &strings)
    : options_(&options),
      strings_(&strings),
      history_(history_options(options), std::move(fetch), *this),
      book_(static_cast<uint64_t>(options.remembered_launches)),
      working_sets_(options, strings.intern("(other kernels)")),
      heat_(options),
      kernel_objects_(options, strings.intern("(other kernels)")),
      producers_(options, strings.intern("(other kernels)")),
      scopes_(options, strings.intern("(other scopes)")),
      instructions_(options, strings.intern("(other kernels)")),
      counters_(options, strings.intern("(other kernels)")),
      warps_(options, strings.intern("(other kernels)")) {
  for (uint32_t kind = 0; kind < std::size(copy_names_); ++kind) {
    copy_names_[kind] = strings.intern(std::string("copy ") + copy_name(kind));
  }
  set_name_ = strings.intern("set");
  layer_domain_ = strings.intern(options.layer_domain);
}

void Accesses::consume(const sonde_batch_t &batch) {
  constexpr uint64_t kAccess = uint64_t{1} << SONDE_SPACE_ACCESS, kSample = uint64_t{1} << SONDE_SPACE_SAMPLE;
  if ((batch.spaces & (kAccess | kSample)) != 0) {
    for (const Record record : Batch(&batch)) {
      const uint32_t space = record.header()->space;
      if (space == SONDE_SPACE_ACCESS) access_record(record, batch.source);
      if (space == SONDE_SPACE_SAMPLE) counter_record(record, batch.source);
    }
  }
  history_.consume(batch);
}

void Accesses::access_record(const Record &record, uint32_t source) {
  switch (record.header()->type) {
    case SONDE_ACCESS_LAUNCH: {
      sonde_access_launch_t storage;
      const auto &typed = record.as(storage);
      ++seen_.launches;
      seen_.watched += (typed.flags & SONDE_LAUNCH_WATCHED) != 0 ? 1 : 0;
      seen_.skipped += (typed.flags & SONDE_LAUNCH_SKIPPED) != 0 ? 1 : 0;
      seen_.flawed += (typed.flags & kFlawed) != 0 || typed.dropped != 0 ? 1 : 0;
      seen_.sampled +=
          (typed.flags & SONDE_LAUNCH_WATCHED) != 0 && (typed.kernel_period > 1 || typed.block_period > 1) ? 1 : 0;
      LaunchFacts facts;
      facts.launch = typed.launch;
      facts.kernel = {source, typed.device, strings_->resolve(source, typed.name)};
      facts.function_begin = typed.function_begin;
      std::copy(std::begin(typed.grid), std::end(typed.grid), facts.grid);
      std::copy(std::begin(typed.block), std::end(typed.block), facts.block);
      facts.block_period = typed.block_period;
      facts.flags = typed.flags;
      book_.add(facts);
      warps_.launch(facts);
      break;
    }
    case SONDE_ACCESS_OBJECT:
    case SONDE_ACCESS_PAGES:
    case SONDE_ACCESS_INTERVALS:
      ++seen_.touches;  // the history reads them
      break;
    case SONDE_ACCESS_INSTRUCTION: {
      sonde_access_instruction_t storage;
      const auto &typed = record.as(storage);
      ++seen_.instructions;
      const LaunchFacts *const facts = book_.find(source, typed.launch);
      facts != nullptr ? instructions_.add(*facts, typed) : instructions_.add_lost();
      break;
    }
    case SONDE_ACCESS_WARPS: {
      sonde_access_warps_t storage;
      ++seen_.warps;
      warps_.add(source, record.as(storage).launch, record.header(), book_);
      break;
    }
    default:
      break;
  }
}

void Accesses::counter_record(const Record &record, uint32_t source) {
  if (record.header()->type != SONDE_SAMPLE_COUNTER) return;
  sonde_sample_counter_t storage;
  const auto &typed = record.as(storage);
  ++seen_.counters;
  const uint32_t metric = strings_->resolve(source, typed.metric);
  counters_.add({source, typed.device, strings_->resolve(source, typed.function)},
                uint64_t{typed.context} << 40 ^ typed.launch, metric, strings_->text(metric), typed.value);
}

void Accesses::scope_begin(const ScopeKey &key, uint64_t thread, uint64_t scope, int64_t time, const ScopeHint &hint) {
  scopes_.begin(key, thread, scope, time, hint, key.domain == layer_domain_);
}

void Accesses::scope_end(uint32_t source, ScopeKind kind, uint32_t domain, uint64_t thread, uint64_t scope,
                         int64_t time) {
  scopes_.end(source, kind, domain, thread, scope, time);
}

void Accesses::finish() {
  history_.finish();
  scopes_.finish();
  warps_.finish();
}

uint32_t Accesses::kernel_name(uint32_t history_name) {
  if (history_name >= names_.size()) names_.resize(history_name + 1);
  if (names_[history_name] == 0) names_[history_name] = strings_->intern(history_.text(history_name)) + 1;
  return names_[history_name] - 1;
}

void Accesses::object_begins(const MemoryObject &object) { working_sets_.object_begins(object); }

void Accesses::operation(const MemoryOperation &operation, std::span<const MemoryTouch> touches) {
  uint32_t name = 0;
  switch (operation.kind) {
    case OperationKind::kKernel:
      name = kernel_name(operation.name);
      break;
    case OperationKind::kCopy:
      name = copy_names_[operation.copy_kind < std::size(copy_names_) ? operation.copy_kind : 0];
      break;
    case OperationKind::kSet:
      name = set_name_;
      break;
    default:
      return;  // prefetches and advice do not touch
  }
  const LaunchSums sums = sum_up(operation, touches);
  working_sets_.operation(operation, name, sums);
  heat_.operation(operation, touches);
  kernel_objects_.operation(operation, name, touches);
  producers_.operation(operation, name, touches);
  scopes_.operation(operation, sums, touches);
}

void Accesses::object_ends(const MemoryObject &object) {
  working_sets_.object_ends(object);
  heat_.object_ends(object);
  kernel_objects_.object_ends(object);
  producers_.object_ends(object);
  scopes_.object_ends(object);
}

}  // namespace sonde::workload
