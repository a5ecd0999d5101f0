#include "cli/examination.h"

#include <algorithm>

namespace sonde::cli {
namespace {

// Open things kept of each kind; beyond it `is_partial` says that not everything was compared.
constexpr size_t kMostKept = 4u << 20;

}  // namespace

size_t Examination::IdentityHash::operator()(const Identity &identity) const {
  const auto &[source, first, second] = identity;
  uint64_t mixed = (first ^ (uint64_t{source} << 56)) * 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ (mixed >> 32) ^ second) * 0xD6E8FEB86659FD93u;
  return static_cast<size_t>(mixed ^ (mixed >> 32));
}

void Examination::open(OpenCounts &map, Pairing &pairing, const Identity &identity) {
  ++pairing.begins;
  if (map.size() >= kMostKept) {
    is_partial = true;
    return;
  }
  ++map[identity];
}

void Examination::close(OpenCounts &map, Pairing &pairing, const Identity &identity) {
  ++pairing.ends;
  const auto found = map.find(identity);
  if (found == map.end()) {
    ++pairing.unopened;
  } else if (--found->second == 0) {
    map.erase(found);
  }
}

void Examination::compare(int64_t call_ns, int64_t device_ns) {
  ++launches_checked;
  if (device_ns >= call_ns) return;
  ++begun_early;
  greatest_lead_ns = std::max(greatest_lead_ns, call_ns - device_ns);
}

void Examination::launched(uint32_t source, uint64_t correlation, int64_t time_ns) {
  if (correlation == 0) return;
  const Identity identity{source, correlation, 0};
  if (const auto waiting = early_devices_.find(identity); waiting != early_devices_.end()) {
    compare(time_ns, waiting->second);
    early_devices_.erase(waiting);
  }
  if (call_times_.size() >= kMostKept) {
    is_partial = true;
    return;
  }
  call_times_.emplace(identity, time_ns);
}

void Examination::begun(uint32_t source, uint64_t correlation, int64_t time_ns) {
  if (correlation == 0) return;
  const Identity identity{source, correlation, 0};
  if (const auto call = call_times_.find(identity); call != call_times_.end()) return compare(call->second, time_ns);
  if (early_devices_.size() >= kMostKept) {
    is_partial = true;
    return;
  }
  const auto [place, is_new] = early_devices_.emplace(identity, time_ns);
  if (!is_new) place->second = std::min(place->second, time_ns);
}

void Examination::on_host(const Record &record, uint32_t source) {
  if (record.is(SONDE_SPACE_HOST, SONDE_HOST_CALL)) {
    sonde_host_call_t storage;
    launched(source, record.as<sonde_host_call_t>(storage).correlation, record.time_ns());
  } else if (record.is(SONDE_SPACE_HOST, SONDE_HOST_CALL_BEGIN)) {
    sonde_host_call_begin_t storage;
    const auto &begin = record.as<sonde_host_call_begin_t>(storage);
    open(open_calls_, calls, {source, begin.thread, begin.correlation});
    launched(source, begin.correlation, record.time_ns());
  } else if (record.is(SONDE_SPACE_HOST, SONDE_HOST_CALL_END)) {
    sonde_host_call_end_t storage;
    const auto &end = record.as<sonde_host_call_end_t>(storage);
    close(open_calls_, calls, {source, end.thread, end.correlation});
  }
}

void Examination::on_framework(const Record &record, uint32_t source) {
  const uint32_t type = record.header()->type;
  switch (type) {
    case SONDE_FRAMEWORK_OPERATOR_BEGIN:
    case SONDE_FRAMEWORK_SCOPE_PUSH:
    case SONDE_FRAMEWORK_RANGE_START: {
      sonde_framework_scope_t storage;
      const auto &scope = record.as<sonde_framework_scope_t>(storage);
      // Without an identity a scope is matched by order on its thread, within its domain.
      const Identity identity = scope.scope != 0 ? Identity{source, scope.scope, 0}
                                                 : Identity{source, scope.thread, uint64_t{scope.domain} + 1};
      if (type == SONDE_FRAMEWORK_OPERATOR_BEGIN) open(open_operators_, operators, identity);
      if (type == SONDE_FRAMEWORK_SCOPE_PUSH) open(open_scopes_, scopes, identity);
      if (type == SONDE_FRAMEWORK_RANGE_START) {
        ++ranges.begins;
        if (++range_balance_[identity] == 0) range_balance_.erase(identity);
      }
      break;
    }
    case SONDE_FRAMEWORK_OPERATOR_END:
    case SONDE_FRAMEWORK_SCOPE_POP:
    case SONDE_FRAMEWORK_RANGE_END: {
      sonde_framework_scope_end_t storage;
      const auto &end = record.as<sonde_framework_scope_end_t>(storage);
      const Identity identity =
          end.scope != 0 ? Identity{source, end.scope, 0} : Identity{source, end.thread, uint64_t{end.domain} + 1};
      if (type == SONDE_FRAMEWORK_OPERATOR_END) close(open_operators_, operators, identity);
      if (type == SONDE_FRAMEWORK_SCOPE_POP) close(open_scopes_, scopes, identity);
      if (type == SONDE_FRAMEWORK_RANGE_END) {
        // A range may end on another thread, whose records may come first.
        ++ranges.ends;
        if (--range_balance_[identity] == 0) range_balance_.erase(identity);
      }
      break;
    }
    default:
      break;
  }
}

void Examination::on_session(const Record &record, uint32_t source) {
  if (record.is(SONDE_SPACE_SESSION, SONDE_SESSION_NOTE)) {
    sonde_session_note_t storage;
    const auto &note = record.as<sonde_session_note_t>(storage);
    notes.insert({source, note.severity, session_->text(source, note.origin), session_->text(source, note.text)});
  } else if (record.is(SONDE_SPACE_SESSION, SONDE_SESSION_WINDOW)) {
    sonde_session_window_t storage;
    const auto &window = record.as<sonde_session_window_t>(storage);
    Windows &sum = windows[source];
    const int64_t length = record.interval(window.end).length_ns();
    sum.span_ns += length;
    if (window.state == SONDE_WINDOW_COLLECTED) {
      sum.collected_ns += length;
    } else {
      ++sum.left_out;
    }
  } else if (record.is(SONDE_SPACE_SESSION, SONDE_SESSION_CLOCK_PAIR)) {
    sonde_session_clock_pair_t storage;
    ClockState &clock = clocks[source];
    ++clock.pairs;
    clock.uncertainty_ns = std::max(clock.uncertainty_ns, record.as<sonde_session_clock_pair_t>(storage).uncertainty);
  }
}

void Examination::on_device(const Record &record, uint32_t source) {
  const auto check = [&](uint64_t end, uint64_t correlation) {
    const Interval interval = record.interval(end);
    if (interval.valid()) begun(source, correlation, interval.begin_ns);
  };
  if (record.is(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL)) {
    sonde_device_kernel_t storage;
    const auto &kernel = record.as<sonde_device_kernel_t>(storage);
    check(kernel.end, kernel.correlation);
  } else if (record.is(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY)) {
    sonde_device_copy_t storage;
    const auto &copy = record.as<sonde_device_copy_t>(storage);
    check(copy.end, copy.correlation);
  }
}

void Examination::on_batch(const Batch &batch) {
  const sonde_batch_t &raw = batch.raw();
  ClockState &clock = clocks[raw.source];
  clock.error_ppb = std::max(clock.error_ppb, raw.clock->error_ppb);
  for (uint64_t index = 0; index < raw.repair_count; ++index) {
    const uint32_t reason = raw.repairs[index].reason;
    ++repairs[reason < repairs.size() ? reason : 0];
  }
  for (const Record &record : batch) {
    const sonde_record_t *const header = record.header();
    if (header->space == 0) continue;  // padding
    ++counts[{header->space, header->type}];
    switch (header->space) {
      case SONDE_SPACE_SESSION:
        on_session(record, raw.source);
        break;
      case SONDE_SPACE_HOST:
        on_host(record, raw.source);
        break;
      case SONDE_SPACE_DEVICE:
        on_device(record, raw.source);
        break;
      case SONDE_SPACE_FRAMEWORK:
        on_framework(record, raw.source);
        break;
      default:
        break;
    }
  }
}

void Examination::on_memory(const sonde_merged_t &merged) {
  const uint32_t type = merged.record->type;
  const bool is_sub = type == SONDE_MEMORY_SUB_ALLOCATE || type == SONDE_MEMORY_SUB_FREE;
  MemoryBalance &balance = is_sub ? sub_memory : memory;
  Live &live = is_sub ? sub_live_ : live_;
  const Record record(nullptr, merged.record, nullptr);  // read for its fields alone
  if (type == SONDE_MEMORY_ALLOCATE || type == SONDE_MEMORY_SUB_ALLOCATE) {
    sonde_memory_allocate_t storage;
    const auto &allocate = record.as<sonde_memory_allocate_t>(storage);
    ++balance.allocations;
    // Host and device addresses of one process share one space of addresses on the machines that ports serve.
    const auto [place, is_new] = live.emplace(Identity{merged.source, allocate.address, 0}, allocate.bytes);
    if (!is_new) {
      ++balance.replaced;
      place->second = allocate.bytes;
    }
  } else if (type == SONDE_MEMORY_FREE || type == SONDE_MEMORY_SUB_FREE) {
    sonde_memory_free_t storage;
    ++balance.frees;
    if (live.erase({merged.source, record.as<sonde_memory_free_t>(storage).address, 0}) == 0) {
      ++balance.unmatched_frees;
    }
  }
}

void Examination::finish() {
  const auto left = [](const OpenCounts &map) {
    uint64_t count = 0;
    for (const auto &[identity, open] : map) count += open;
    return count;
  };
  calls.open = left(open_calls_);
  operators.open = left(open_operators_);
  scopes.open = left(open_scopes_);
  for (const auto &[identity, balance] : range_balance_) {
    if (balance > 0) ranges.open += static_cast<uint64_t>(balance);
    if (balance < 0) ranges.unopened += static_cast<uint64_t>(-balance);
  }
  const auto total = [](const Live &live, MemoryBalance &balance) {
    balance.live = live.size();
    for (const auto &[identity, bytes] : live) balance.live_bytes += bytes;
  };
  total(live_, memory);
  total(sub_live_, sub_memory);
}

}  // namespace sonde::cli
