// What each record adds to the numbers of its process.
#include <algorithm>
#include <array>

#include "workload.h"

namespace sonde::workload {
namespace {

bool touches_pageable(const sonde_device_copy_t &record) {
  return record.source_memory == SONDE_MEMORY_PAGEABLE || record.destination_memory == SONDE_MEMORY_PAGEABLE;
}

template <typename Record>
bool is_asynchronous(const Record &record) {
  return (record.flags & 1u) != 0;
}

void add_transfer(TransferRow &row, uint64_t bytes, const Interval &interval) {
  row.durations.add(interval);
  row.bytes += bytes;
  row.timed_bytes += interval.valid() ? bytes : 0;
  const auto size = static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX));
  row.size.add(size);
  row.sizes.add(size);
}

}  // namespace

void Workload::session_record(Source &source, const Record &record, uint32_t id) {
  if (record.header()->type == SONDE_SESSION_WINDOW) {
    sonde_session_window_t storage;
    const auto &window = record.as(storage);
    source.windows.add(window, record.interval(window.end).length_ns());
  }
  if (record.header()->type != SONDE_SESSION_START) return;
  sonde_session_start_t storage;
  const auto &start = record.as(storage);
  source.process = start.process;
  source.parent = start.parent_process;
  source.host_name = strings_.text(strings_.resolve(id, start.host));
  source.program = strings_.text(strings_.resolve(id, start.program));
  source.command = strings_.text(strings_.resolve(id, start.command));
}

void Workload::host_record(Source &source, const Record &record, uint32_t id) {
  switch (record.header()->type) {
    case SONDE_HOST_CALL: {
      sonde_host_call_t storage;
      const auto &call = record.as(storage);
      const bool measured = call.end != 0;
      const Interval interval = record.interval(measured ? call.end : call.header.time);
      source.invalid_host.note(interval);
      source.host.call(strings_.resolve(id, call.domain), strings_.resolve(id, call.function), call.thread,
                       call.correlation, call.result, interval, measured);
      break;
    }
    case SONDE_HOST_CALL_BEGIN: {
      sonde_host_call_begin_t storage;
      const auto &call = record.as(storage);
      source.host.call_begin(strings_.resolve(id, call.domain), strings_.resolve(id, call.function), call.thread,
                             call.correlation, record.time_ns());
      break;
    }
    case SONDE_HOST_CALL_END: {
      sonde_host_call_end_t storage;
      const auto &call = record.as(storage);
      source.host.call_end(call.thread, call.correlation, call.result, record.time_ns());
      break;
    }
    default:
      break;
  }
}

void Workload::device_record(Source &source, const Record &record, uint32_t id) {
  switch (record.header()->type) {
    case SONDE_DEVICE_KERNEL: {
      sonde_device_kernel_t storage;
      const auto &typed = record.as(storage);
      kernel(source, typed, record.interval(typed.end), id);
      break;
    }
    case SONDE_DEVICE_COPY: {
      sonde_device_copy_t storage;
      const auto &typed = record.as(storage);
      copy(source, typed, record.interval(typed.end));
      break;
    }
    case SONDE_DEVICE_SET: {
      sonde_device_set_t storage;
      const auto &typed = record.as(storage);
      set(source, typed, record.interval(typed.end));
      break;
    }
    case SONDE_DEVICE_GRAPH_LAUNCH: {
      sonde_device_graph_launch_t storage;
      const auto &typed = record.as(storage);
      const Interval interval = record.interval(typed.end);
      source.invalid_device.note(interval);
      GraphRow &row = graph(source, typed.graph_exec, interval.begin_ns);
      row.whole.add(interval);
      row.note_launch(typed.correlation);
      // Its nodes may be recorded too, so the interval itself is no activity of its own.
      break;
    }
    default:
      break;
  }
}

Device &Workload::device(Source &source, uint32_t number) {
  return source.devices.try_emplace(number, options_).first->second;
}

GraphRow &Workload::graph(Source &source, uint32_t graph_exec, int64_t time) {
  // An id may be used again after its graph was destroyed: the generation is how many were made by then.
  uint32_t generation = 0;
  if (const auto made = source.graphs_made.find(graph_exec); made != source.graphs_made.end()) {
    generation =
        static_cast<uint32_t>(std::upper_bound(made->second.begin(), made->second.end(), time) - made->second.begin());
  }
  return source.graphs.try_emplace({graph_exec, generation}).first->second;
}

void Workload::note_activity(Source &source, uint32_t number, const Interval &interval, const Activity &activity) {
  source.invalid_device.note(interval);
  Device &where = device(source, number);
  if (!interval.valid()) return;
  source.last_ns = std::max(source.last_ns, interval.end_ns);
  where.add(interval.begin_ns, activity);
}

void Workload::kernel(Source &source, const sonde_device_kernel_t &record, const Interval &interval, uint32_t id) {
  uint32_t name = strings_.resolve(id, record.name);
  uint64_t key = uint64_t{record.device} << 32 | name;
  auto it = source.kernels.find(key);
  if (it == source.kernels.end()) {
    if (source.kernels.size() >= static_cast<size_t>(options_.name_limit)) {
      name = other_kernels_;
      key = uint64_t{record.device} << 32 | name;
    }
    it = source.kernels
             .try_emplace(
                 key, KernelRow{.device = record.device, .name = name, .durations = Durations(options_.exact_values)})
             .first;
  }
  KernelRow &row = it->second;
  row.durations.add(interval);
  row.from_graphs += record.graph_exec != 0 ? 1 : 0;
  if (source.windows.any()) {
    const uint32_t cluster = source.windows.cluster_at(record.header.time);
    source.windows.note_kernel(cluster, record.correlation);
    row.sampled.add(source.windows, cluster, static_cast<double>(interval.length_ns()));
  }
  row.registers = std::max(row.registers, record.registers);
  row.static_shared = std::max(row.static_shared, record.static_shared);
  row.dynamic_shared = std::max(row.dynamic_shared, record.dynamic_shared);
  row.local = std::max(row.local, record.local);
  const Shape shape{{record.grid[0], record.grid[1], record.grid[2]},
                    {record.block[0], record.block[1], record.block[2]}};
  if (const auto known = row.shapes.find(shape); known != row.shapes.end()) {
    ++known->second;
  } else if (row.shapes.size() < KernelRow::kShapeLimit) {
    row.shapes.emplace(shape, 1);
  } else {
    ++row.other_shapes;
  }

  ++source.kernel_count;
  source.kernel_ns += interval.length_ns();
  if (record.graph_exec != 0) {
    GraphRow &owner = graph(source, record.graph_exec, interval.begin_ns);
    ++owner.kernels;
    owner.node_ns += interval.length_ns();
    owner.note_launch(record.correlation);
  }
  note_activity(source, record.device, interval,
                {interval.end_ns, ActivityKind::kKernel, name, record.context, record.stream});
  source.host.device_record(record.correlation, {record.device, interval.valid(), true, record.graph_exec != 0,
                                                 interval.begin_ns, interval.length_ns()});
}

void Workload::copy(Source &source, const sonde_device_copy_t &record, const Interval &interval) {
  const bool asynchronous = is_asynchronous(record);
  const CopyKey key{record.device, record.kind, record.source_memory, record.destination_memory, asynchronous};
  TransferRow &row =
      source.copies.try_emplace(key, TransferRow{.durations = Durations(options_.exact_values)}).first->second;
  add_transfer(row, record.bytes, interval);
  const bool is_host = is_host_copy(record.kind);
  if (is_host) {
    ++source.host_copies;
    source.host_copy_sizes.add(record.bytes);
    if (record.bytes < static_cast<uint64_t>(options_.tiny_copy_bytes)) {
      ++source.tiny_copies;
      source.tiny_copy_ns += interval.length_ns();
    }
  }
  if (record.graph_exec != 0) {
    GraphRow &owner = graph(source, record.graph_exec, interval.begin_ns);
    ++owner.copies;
    owner.node_ns += interval.length_ns();
    owner.note_launch(record.correlation);
  }
  const bool blocking = is_host && record.graph_exec == 0 && (!asynchronous || touches_pageable(record));
  note_activity(source, record.device, interval,
                {interval.end_ns, blocking ? ActivityKind::kBlockingCopy : ActivityKind::kCopy,
                 copy_labels_[record.kind < copy_labels_.size() ? record.kind : 0], record.context, record.stream});
}

void Workload::set(Source &source, const sonde_device_set_t &record, const Interval &interval) {
  const SetKey key{record.device, record.memory, is_asynchronous(record)};
  TransferRow &row =
      source.sets.try_emplace(key, TransferRow{.durations = Durations(options_.exact_values)}).first->second;
  add_transfer(row, record.bytes, interval);
  if (record.graph_exec != 0) {
    GraphRow &owner = graph(source, record.graph_exec, interval.begin_ns);
    ++owner.sets;
    owner.node_ns += interval.length_ns();
    owner.note_launch(record.correlation);
  }
  note_activity(source, record.device, interval,
                {interval.end_ns, ActivityKind::kSet, set_label_, record.context, record.stream});
}

void Workload::memory_record(Source &source, const Record &record) {
  MemoryEvent event;
  const uint16_t type = record.header()->type;
  switch (type) {
    case SONDE_MEMORY_ALLOCATE:
    case SONDE_MEMORY_SUB_ALLOCATE: {
      sonde_memory_allocate_t storage;
      const auto &typed = record.as(storage);
      event = {MemoryEvent::Type::kBegin,
               type == SONDE_MEMORY_ALLOCATE ? MemoryLevel::kAllocation : MemoryLevel::kSubAllocation,
               typed.device,
               typed.kind,
               typed.address,
               typed.bytes,
               0};
      break;
    }
    case SONDE_MEMORY_FREE:
    case SONDE_MEMORY_SUB_FREE: {
      sonde_memory_free_t storage;
      const auto &typed = record.as(storage);
      event = {MemoryEvent::Type::kEnd,
               type == SONDE_MEMORY_FREE ? MemoryLevel::kAllocation : MemoryLevel::kSubAllocation,
               typed.device,
               typed.kind,
               typed.address,
               typed.bytes,
               0};
      break;
    }
    case SONDE_MEMORY_POOL_CREATE:
    case SONDE_MEMORY_POOL_DESTROY:
    case SONDE_MEMORY_POOL_TRIM: {
      sonde_memory_pool_t storage;
      const auto &typed = record.as(storage);
      event = {type == SONDE_MEMORY_POOL_DESTROY ? MemoryEvent::Type::kPoolEnd : MemoryEvent::Type::kPool,
               MemoryLevel::kPool,
               typed.device,
               SONDE_MEMORY_DEVICE,
               typed.pool,
               typed.used_bytes,
               typed.reserved_bytes};
      break;
    }
    case SONDE_MEMORY_MAP:
    case SONDE_MEMORY_UNMAP: {
      sonde_memory_map_t storage;
      const auto &typed = record.as(storage);
      event = {type == SONDE_MEMORY_MAP ? MemoryEvent::Type::kBegin : MemoryEvent::Type::kEnd,
               MemoryLevel::kMapping,
               typed.device,
               SONDE_MEMORY_DEVICE,
               typed.address,
               typed.bytes,
               0};
      break;
    }
    default:
      return;
  }
  source.memory.add(record.time_ns(), event);
}

void Workload::object_record(Source &source, const Record &record, uint32_t id) {
  switch (record.header()->type) {
    case SONDE_OBJECT_NAME: {
      sonde_object_name_t storage;
      const auto &typed = record.as(storage);
      if (typed.kind != SONDE_NAMED_STREAM) break;
      source.stream_names[typed.object] = strings_.text(strings_.resolve(id, typed.name));
      break;
    }
    case SONDE_OBJECT_DEVICE: {
      sonde_object_device_t storage;
      const auto &typed = record.as(storage);
      source.device_names[typed.device] = strings_.text(strings_.resolve(id, typed.name));
      break;
    }
    case SONDE_OBJECT_GRAPH: {
      sonde_object_graph_t storage;
      const auto &typed = record.as(storage);
      if (typed.graph_exec == 0 || typed.state != 0) break;
      std::vector<int64_t> &made = source.graphs_made[typed.graph_exec];
      const int64_t time = record.time_ns();
      made.insert(std::upper_bound(made.begin(), made.end(), time), time);
      graph(source, typed.graph_exec, time).declared_nodes = typed.nodes;
      break;
    }
    default:
      break;
  }
}

uint32_t Workload::scope_name(uint32_t name) {
  if (!options_.group_scopes) return name;
  const auto [it, is_new] = scope_names_.try_emplace(name, name);
  if (is_new) it->second = strings_.intern(scope_group(strings_.text(name)));
  return it->second;
}

bool Workload::is_optimizer_scope(uint32_t name) {
  const auto [it, is_new] = optimizer_names_.try_emplace(name, false);
  if (is_new) {
    const std::string &text = strings_.text(name);
    it->second = std::any_of(options_.optimizer_scopes.begin(), options_.optimizer_scopes.end(),
                             [&](const std::string &part) { return text.find(part) != std::string::npos; });
  }
  return it->second;
}

void Workload::framework_record(Source &source, const Record &record, uint32_t id) {
  const auto begin = [&](ScopeKind kind) {
    sonde_framework_scope_t storage;
    const auto &typed = record.as(storage);
    const uint32_t name = strings_.resolve(id, typed.name), domain = strings_.resolve(id, typed.domain);
    ScopeHint hint;
    if (is_optimizer_scope(name)) {
      hint.phase = Phase::kOptimizer;
    } else if (kind == ScopeKind::kOperator &&
               SONDE_RECORD_HAS(record.header(), sonde_framework_operator_t, forward_thread)) {
      sonde_framework_operator_t more;
      const auto &operation = record.as(more);
      hint.phase = operation.link == SONDE_LINK_FORWARD    ? Phase::kForward
                   : operation.link == SONDE_LINK_BACKWARD ? Phase::kBackward
                                                           : Phase::kOther;
      hint.sequence = operation.sequence;
      hint.forward_thread = operation.forward_thread;
    }
    const uint32_t group = scope_name(name);
    source.host.scope_begin(kind, domain, group, typed.thread, typed.scope, record.time_ns(), hint.phase);
    accesses_->scope_begin({id, kind, domain, group}, typed.thread, typed.scope, record.time_ns(), hint);
  };
  const auto end = [&](ScopeKind kind) {
    sonde_framework_scope_end_t storage;
    const auto &typed = record.as(storage);
    const uint32_t domain = strings_.resolve(id, typed.domain);
    source.host.scope_end(kind, domain, typed.thread, typed.scope, record.time_ns());
    accesses_->scope_end(id, kind, domain, typed.thread, typed.scope, record.time_ns());
  };
  switch (record.header()->type) {
    case SONDE_FRAMEWORK_OPERATOR_BEGIN:
      return begin(ScopeKind::kOperator);
    case SONDE_FRAMEWORK_OPERATOR_END:
      return end(ScopeKind::kOperator);
    case SONDE_FRAMEWORK_SCOPE_PUSH:
      return begin(ScopeKind::kScope);
    case SONDE_FRAMEWORK_SCOPE_POP:
      return end(ScopeKind::kScope);
    case SONDE_FRAMEWORK_RANGE_START:
      return begin(ScopeKind::kRange);
    case SONDE_FRAMEWORK_RANGE_END:
      return end(ScopeKind::kRange);
    case SONDE_FRAMEWORK_MARK:
      return begin(ScopeKind::kMark);
    case SONDE_FRAMEWORK_TENSOR_ALLOCATE:
    case SONDE_FRAMEWORK_TENSOR_FREE: {
      sonde_framework_tensor_t storage;
      const auto &typed = record.as(storage);
      const bool is_begin = record.header()->type == SONDE_FRAMEWORK_TENSOR_ALLOCATE;
      source.memory.add(record.time_ns(),
                        {is_begin ? MemoryEvent::Type::kBegin : MemoryEvent::Type::kEnd, MemoryLevel::kTensor,
                         typed.device, SONDE_MEMORY_UNKNOWN, typed.address, typed.bytes, typed.reserved_bytes});
      return;
    }
    default:
      return;
  }
}

}  // namespace sonde::workload
