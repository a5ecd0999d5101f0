#include "memory.h"

#include <sonde/spaces/framework.h>
#include <sonde/spaces/session.h>
#include <sonde/toolkit/names.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <tuple>

namespace sonde::memory {

using toolkit::MemoryHistory;
using toolkit::MemoryObject;
using toolkit::ObjectLevel;

namespace {

toolkit::MemoryHistoryOptions history_options(const Options &options) {
  return {static_cast<size_t>(options.reorder_records), static_cast<size_t>(options.remembered)};
}

}  // namespace

Memory::Memory(const Options &options, toolkit::SourceStrings::Fetch fetch)
    : options_(options),
      objects_(options),
      told_(objects_, pools_),
      history_(history_options(options), std::move(fetch), told_) {
  if (options.perfetto.empty()) return;
  trace_ = std::make_unique<TraceFile>(options.perfetto, options);
  objects_.set_sink([this](const toolkit::MemoryOperation &operation) {
    trace_->operation(operation, [this](uint32_t name) { return kernel_name(name); });
  });
}

std::vector<sonde_interest_t> Memory::interests(const Options &options) {
  uint64_t types = uint64_t{1} << SONDE_ACCESS_OBJECT;
  if (options.pages) types |= uint64_t{1} << SONDE_ACCESS_PAGES;
  if (options.intervals) types |= uint64_t{1} << SONDE_ACCESS_INTERVALS;
  std::vector<sonde_interest_t> interests = MemoryHistory::interests(types);
  interests.push_back(only(SONDE_SPACE_SESSION, {SONDE_SESSION_START}));
  interests.push_back(only(SONDE_SPACE_DEVICE, {SONDE_DEVICE_SYNC}));
  interests.push_back(
      only(SONDE_SPACE_MEMORY, {SONDE_MEMORY_POOL_CREATE, SONDE_MEMORY_POOL_DESTROY, SONDE_MEMORY_POOL_TRIM}));
  interests.push_back(only(SONDE_SPACE_FRAMEWORK, {SONDE_FRAMEWORK_OPERATOR_BEGIN, SONDE_FRAMEWORK_SCOPE_PUSH}));
  return interests;
}

void Memory::consume(const sonde_batch_t &raw) {
  const std::lock_guard<std::mutex> hold(mutex_);
  lost_records_ += raw.lost_ring + raw.lost_overwritten;
  lost_batches_ += raw.lost_queue;
  const Batch batch(&raw);
  batch.for_each<sonde_session_start_t>(
      SONDE_SPACE_SESSION, SONDE_SESSION_START,
      [&](const sonde_session_start_t &start) { process_ids_[raw.source] = start.process; });
  batch.for_each<sonde_device_sync_t>(
      SONDE_SPACE_DEVICE, SONDE_DEVICE_SYNC, [&](const sonde_device_sync_t &sync, const Interval &interval) {
        if (interval.valid()) {
          objects_.stream_order().sync(raw.source, sync.kind, sync.stream, interval.begin_ns, interval.end_ns);
        }
      });
  if (batch.may_have(SONDE_SPACE_MEMORY) || batch.may_have(SONDE_SPACE_FRAMEWORK)) {
    for (const Record record : batch) {
      const uint32_t space = record.header()->space, type = record.header()->type;
      if (space == SONDE_SPACE_MEMORY && type >= SONDE_MEMORY_POOL_CREATE && type <= SONDE_MEMORY_POOL_TRIM) {
        sonde_memory_pool_t storage;
        pools_.record(raw.source, type, record.as(storage), record.time_ns());
      } else if (space == SONDE_SPACE_FRAMEWORK &&
                 (type == SONDE_FRAMEWORK_OPERATOR_BEGIN || type == SONDE_FRAMEWORK_SCOPE_PUSH)) {
        sonde_framework_scope_t storage;
        const auto &scope = record.as(storage);
        if (scope.scope != 0) objects_.note_scope(raw.source, scope.scope, history_.resolve(raw.source, scope.name));
      }
    }
  }
  history_.consume(raw);
}

void Memory::finish() {
  const std::lock_guard<std::mutex> hold(mutex_);
  history_.finish();
  objects_.finish();
}

uint64_t Memory::pattern_count(ObjectLevel level, Pattern pattern) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  return objects_.totals(level, pattern).objects;
}

double Memory::pattern_byte_seconds(ObjectLevel level, Pattern pattern) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  return objects_.totals(level, pattern).byte_ns * 1e-9;
}

uint64_t Memory::peak_bytes(ObjectLevel level) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  uint64_t most = 0;
  for (const auto &[key, group] : objects_.groups()) {
    if (group->level == level) most = std::max(most, group->peak_bytes);
  }
  return most;
}

uint64_t Memory::needed_peak_bytes(ObjectLevel level) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  uint64_t most = 0;
  for (const auto &[key, group] : objects_.groups()) {
    if (group->level == level) most = std::max(most, group->needed_peak());
  }
  return most;
}

uint64_t Memory::shared_peak_bytes(ObjectLevel level) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  uint64_t most = 0;
  for (const auto &[key, group] : objects_.groups()) {
    if (group->level == level) most = std::max(most, group->shared.offsets_bytes);
  }
  return most;
}

uint64_t Memory::forced_growth_bytes() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  uint64_t sum = 0;
  for (const auto &[key, space] : objects_.fragmentation().spaces()) sum += space->forced_bytes;
  for (const auto &[key, pool] : pools_.rows()) sum += pool.forced_bytes;
  return sum;
}

uint64_t Memory::unmatched_frees() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  return pools_.unmatched_count();
}

std::vector<Usage> Memory::worst(ObjectLevel level, uint64_t limit) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  std::vector<const Usage *> rows;
  for (const auto &[key, group] : objects_.groups()) {
    if (group->level != level) continue;
    const std::vector<const Usage *> some = group->worst.sorted();
    rows.insert(rows.end(), some.begin(), some.end());
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Usage *a, const Usage *b) { return a->wasted() > b->wasted(); });
  if (rows.size() > limit) rows.resize(limit);
  std::vector<Usage> out;
  out.reserve(rows.size());
  for (const Usage *const usage : rows) out.push_back(*usage);
  return out;
}

std::string Memory::name_of_object(const MemoryObject &object) const {
  if (const std::string &name = text(object.name); !name.empty()) return name;
  char buffer[32];
  std::snprintf(buffer, sizeof(buffer), "0x%llx", static_cast<unsigned long long>(object.address));
  return buffer;
}

std::string Memory::kernel_name(uint32_t name) const { return toolkit::shorten_kernel_name(text(name)); }

}  // namespace sonde::memory
