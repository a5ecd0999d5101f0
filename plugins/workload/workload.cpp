#include "workload.h"

#include <algorithm>

namespace sonde::workload {
namespace {

constexpr std::array kCopyNames = {"unknown",        "host_to_device",  "device_to_host", "device_to_device",
                                   "host_to_host",   "peer_to_peer",    "host_to_array",  "array_to_host",
                                   "array_to_array", "array_to_device", "device_to_array"};
constexpr std::array kMemoryNames = {"unknown", "pageable", "pinned",        "device",
                                     "array",   "managed",  "device_static", "managed_static"};

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

const char *copy_name(uint32_t kind) { return kCopyNames[kind < kCopyNames.size() ? kind : 0]; }
const char *memory_name(uint32_t kind) { return kMemoryNames[kind < kMemoryNames.size() ? kind : 0]; }

bool is_host_copy(uint32_t kind) {
  return kind == SONDE_COPY_HOST_TO_DEVICE || kind == SONDE_COPY_DEVICE_TO_HOST || kind == SONDE_COPY_HOST_TO_ARRAY ||
         kind == SONDE_COPY_ARRAY_TO_HOST;
}

std::string_view scope_group(std::string_view name) {
  constexpr std::string_view kEquals = " = ";
  for (size_t comma = name.find(", "); comma != std::string_view::npos; comma = name.find(", ", comma + 1)) {
    size_t at = comma + 2;
    while (at < name.size() && (name[at] == '_' || (name[at] >= 'a' && name[at] <= 'z'))) ++at;
    const bool has_word = at > comma + 2;
    if (!has_word || name.substr(at, kEquals.size()) != kEquals || at + kEquals.size() >= name.size()) continue;
    const char value = name[at + kEquals.size()];
    if ((value >= '0' && value <= '9') || value == '-' || value == '[') return name.substr(0, comma);
  }
  return name;
}

Shape KernelRow::typical() const {
  const auto most =
      std::max_element(shapes.begin(), shapes.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  return most == shapes.end() ? Shape{} : most->first;
}

void GraphRow::note_launch(uint64_t correlation) {
  if (correlation == 0) return;
  const bool is_new = launch_ids.size() < kLaunchLimit
                          ? launch_ids.insert(correlation).second
                          : correlation != last_launch && !launch_ids.contains(correlation);
  last_launch = correlation;
  launches += is_new ? 1 : 0;
}

Workload::Workload(const Options &options, toolkit::SourceStrings::Fetch fetch)
    : options_(options), strings_(std::move(fetch)) {
  for (uint32_t kind = 0; kind < copy_labels_.size(); ++kind) {
    copy_labels_[kind] = strings_.intern(std::string("copy ") + copy_name(kind));
  }
  set_label_ = strings_.intern("set");
  other_kernels_ = strings_.intern("(other kernels)");
  other_scopes_ = strings_.intern("(other scopes)");
}

void Workload::consume(const sonde_batch_t &raw) {
  const std::lock_guard<std::mutex> hold(mutex_);
  lost_records_ += raw.lost_ring + raw.lost_overwritten;
  lost_batches_ += raw.lost_queue;
  Source &source = sources_.try_emplace(raw.source, options_, other_scopes_).first->second;
  for (const Record record : Batch(&raw)) {
    ++source.records;
    if (record.header()->time != 0) {
      const int64_t time = record.time_ns();
      source.first_ns = std::min(source.first_ns, time);
      source.last_ns = std::max(source.last_ns, time);
    }
    switch (record.header()->space) {
      case SONDE_SPACE_SESSION:
        ++source.session_records;
        session_record(source, record, raw.source);
        break;
      case SONDE_SPACE_HOST:
        host_record(source, record, raw.source);
        break;
      case SONDE_SPACE_DEVICE:
        device_record(source, record, raw.source);
        break;
      case SONDE_SPACE_MEMORY:
        memory_record(source, record);
        break;
      case SONDE_SPACE_OBJECT:
        object_record(source, record, raw.source);
        break;
      case SONDE_SPACE_FRAMEWORK:
        framework_record(source, record, raw.source);
        break;
      default:
        break;
    }
  }
}

void Workload::finish() {
  const std::lock_guard<std::mutex> hold(mutex_);
  // A replaying process is a source too, which only says that it began: no part of the run that is looked at.
  const auto says_nothing = [](const auto &entry) { return entry.second.records == entry.second.session_records; };
  if (!std::all_of(sources_.begin(), sources_.end(), says_nothing)) std::erase_if(sources_, says_nothing);
  for (auto &[id, source] : sources_) {
    for (auto &[number, device] : source.devices) device.finish();
    source.host.finish();
    source.memory.finish();
    if (!source.windows.sampled()) continue;
    source.windows.finish();
    for (auto &[key, row] : source.kernels) row.estimate = row.sampled.finish(source.windows);
  }
}

bool Workload::sampled() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto &entry) { return entry.second.windows.sampled(); });
}

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

void Workload::framework_record(Source &source, const Record &record, uint32_t id) {
  const auto begin = [&](ScopeKind kind) {
    sonde_framework_scope_t storage;
    const auto &typed = record.as(storage);
    source.host.scope_begin(kind, strings_.resolve(id, typed.domain), scope_name(strings_.resolve(id, typed.name)),
                            typed.thread, typed.scope, record.time_ns());
  };
  const auto end = [&](ScopeKind kind) {
    sonde_framework_scope_end_t storage;
    const auto &typed = record.as(storage);
    source.host.scope_end(kind, strings_.resolve(id, typed.domain), typed.thread, typed.scope, record.time_ns());
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

uint64_t Workload::kernel_count() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  uint64_t sum = 0;
  for (const auto &[id, source] : sources_) sum += source.kernel_count;
  return sum;
}

int64_t Workload::kernel_ns() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  int64_t sum = 0;
  for (const auto &[id, source] : sources_) sum += source.kernel_ns;
  return sum;
}

double Workload::idle_share(uint32_t number) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  int64_t idle = 0;
  int64_t span = 0;
  for (const auto &[id, source] : sources_) {
    const auto it = source.devices.find(number);
    if (it == source.devices.end()) continue;
    Device device = it->second;  // finishing a copy leaves the run's own state alone
    device.finish();
    idle += device.idle_ns();
    span += device.span_ns();
  }
  return span == 0 ? 0 : static_cast<double>(idle) / static_cast<double>(span);
}

uint64_t Workload::peak_bytes(uint32_t device) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  uint64_t peak = 0;
  for (const auto &[id, source] : sources_) {
    MemorySide memory = source.memory;
    memory.finish();
    peak = std::max(peak, memory.device_peak_bytes(device));
  }
  return peak;
}

std::vector<TopKernel> Workload::top_kernels(uint64_t limit) const {
  std::map<uint32_t, TopKernel> by_name;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    for (const auto &[id, source] : sources_) {
      for (const auto &[key, row] : source.kernels) {
        TopKernel &top = by_name.try_emplace(row.name, TopKernel{strings_.text(row.name), 0, 0}).first->second;
        top.count += row.durations.count;
        top.total_ns += static_cast<int64_t>(row.durations.total_ns());
      }
    }
  }
  std::vector<TopKernel> rows;
  for (auto &[name, top] : by_name) rows.push_back(std::move(top));
  std::sort(rows.begin(), rows.end(), [](const TopKernel &a, const TopKernel &b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
  });
  if (rows.size() > limit) rows.resize(limit);
  return rows;
}

}  // namespace sonde::workload
