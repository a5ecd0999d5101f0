#include "decode.h"

#include <cstdio>
#include <cstring>

#include <sonde/spaces/device.h>
#include <sonde/spaces/host.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>
#include <sonde/status.h>

namespace sonde::cuda {

namespace {

// A record of `type` cleared and with its header filled in, or null.
template <typename Record>
Record *begin_record(RecordOutput &out, uint32_t space, uint32_t type, uint64_t time) {
  void *room = out.reserve(sizeof(Record));
  if (room == nullptr) return nullptr;
  auto *record = static_cast<Record *>(std::memset(room, 0, sizeof(Record)));
  SONDE_RECORD_INIT(record, space, type, time);
  return record;
}

// CUPTI's kinds of copies, by number.
constexpr uint32_t kCopyKinds[] = {
    SONDE_COPY_UNKNOWN,          SONDE_COPY_HOST_TO_DEVICE, SONDE_COPY_DEVICE_TO_HOST,  SONDE_COPY_HOST_TO_ARRAY,
    SONDE_COPY_ARRAY_TO_HOST,    SONDE_COPY_ARRAY_TO_ARRAY, SONDE_COPY_ARRAY_TO_DEVICE, SONDE_COPY_DEVICE_TO_ARRAY,
    SONDE_COPY_DEVICE_TO_DEVICE, SONDE_COPY_HOST_TO_HOST,   SONDE_COPY_PEER_TO_PEER,
};

uint32_t copy_kind(uint8_t kind) { return kind < std::size(kCopyKinds) ? kCopyKinds[kind] : SONDE_COPY_UNKNOWN; }

// CUPTI's and Sonde's memory kinds have the same numbers.
uint32_t memory_kind(uint32_t kind) { return kind <= SONDE_MEMORY_MANAGED_STATIC ? kind : SONDE_MEMORY_UNKNOWN; }

// CUPTI's causes of a migration (user, coherence, prefetch, eviction, access counters) as Sonde's.
uint32_t migration_cause(uint32_t flags) {
  constexpr uint32_t kCauses[] = {0, 1, 5, 2, 3, 4};
  return flags < std::size(kCauses) ? kCauses[flags] : 0;
}

constexpr const char *kOverheadNames[] = {
    "unknown",
    "buffer_flush",
    "instrumentation",
    "resource",
    "module_loading",
    "lazy_function_loading",
    "command_buffer_full",
    "activity_buffer_request",
    "managed_memory_init",
};

const char *overhead_name(uint32_t overhead) {
  if (overhead == 1) return "driver_compiler";
  const uint32_t index = overhead >> 16;
  return index < std::size(kOverheadNames) ? kOverheadNames[index] : kOverheadNames[0];
}

constexpr uint32_t kNoProcessor = UINT32_MAX;  // the CPU, in records of managed memory

}  // namespace

uint32_t needed_bytes(uint32_t kind, uint32_t version) {
  switch (kind) {
    case kind::kMemcpy:
      return offsetof(CopyActivity, graph) + sizeof(uint32_t);
    case kind::kMemcpyPeer:
      return offsetof(PeerCopyActivity, graph) + sizeof(uint32_t);
    case kind::kMemset:
      return offsetof(SetActivity, graph) + sizeof(uint32_t);
    case kind::kKernel:
    case kind::kConcurrentKernel:
      return version >= kCupti11_8 ? offsetof(KernelActivity, cluster_z) + sizeof(uint32_t)
                                   : offsetof(KernelActivity, graph) + sizeof(uint32_t);
    case kind::kDriver:
    case kind::kRuntime:
      return sizeof(ApiActivity);
    case kind::kDevice:
      return sizeof(DeviceActivity);
    case kind::kContext:
      return sizeof(ContextActivity);
    case kind::kOverhead:
      return sizeof(OverheadActivity);
    case kind::kUnifiedMemoryCounter:
      return offsetof(UnifiedMemoryActivity, flags) + sizeof(uint32_t);
    case kind::kFunction:
      return sizeof(FunctionActivity);
    case kind::kModule:
      return sizeof(ModuleActivity);
    case kind::kStream:
      return sizeof(StreamActivity);
    case kind::kSynchronization:
      return sizeof(SynchronizationActivity);
    case kind::kMemory:
      return sizeof(MemoryActivity);
    case kind::kMemoryPool:
      return sizeof(MemoryPoolActivity);
    case kind::kGraphTrace:
      return sizeof(GraphTraceActivity);
    case kind::kDeviceGraphTrace:
      return sizeof(DeviceGraphTraceActivity);
    default:
      return 0;
  }
}

std::string plain_function_name(const char *name, bool runtime) {
  std::string plain(name);
  if (runtime) {
    const size_t mark = plain.rfind("_v");
    if (mark != std::string::npos && plain.size() - mark >= 6 &&
        plain.find_first_not_of("0123456789", mark + 2) == std::string::npos) {
      plain.resize(mark);
    }
  }
  for (const char *suffix : {"_ptsz", "_ptds"}) {
    if (plain.ends_with(suffix)) plain.resize(plain.size() - std::strlen(suffix));
  }
  return plain;
}

// One pass over one buffer: one function for each kind of record.
struct Decoder::Pass {
  Decoder &decoder;
  const Wants &wants;
  RecordOutput &out;
  uint64_t now;
  DecodeCounts counts = {};

  uint64_t widen(uint32_t correlation) { return decoder.correlations_.widen(correlation); }

  // Begins a record that the session wants, else counts it.
  template <typename Record>
  Record *begin(uint32_t space, uint32_t type, uint64_t time) {
    if (!wants.has(space, type)) {
      ++counts.unwanted;
      return nullptr;
    }
    ++counts.records;
    return begin_record<Record>(out, space, type, time);
  }

  void kernel(const KernelActivity &in) {
    const uint64_t correlation = widen(in.correlation);
    auto *record = begin<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, in.start);
    if (record == nullptr) return;
    record->end = in.end;
    record->correlation = correlation;
    record->stream = in.stream;
    record->context = in.context;
    record->device = in.device;
    record->name = decoder.names_.find(in.name);
    record->graph_exec = in.graph;
    record->graph_node = in.graph_node;
    record->grid[0] = static_cast<uint32_t>(in.grid_x);
    record->grid[1] = static_cast<uint32_t>(in.grid_y);
    record->grid[2] = static_cast<uint32_t>(in.grid_z);
    record->block[0] = static_cast<uint32_t>(in.block_x);
    record->block[1] = static_cast<uint32_t>(in.block_y);
    record->block[2] = static_cast<uint32_t>(in.block_z);
    record->static_shared = static_cast<uint32_t>(in.static_shared);
    record->dynamic_shared = static_cast<uint32_t>(in.dynamic_shared);
    record->registers = in.registers;
    record->local = in.local_per_thread;
    if (decoder.api_->version >= kCupti11_8) {
      record->cluster[0] = in.cluster_x;
      record->cluster[1] = in.cluster_y;
      record->cluster[2] = in.cluster_z;
    }
  }

  void copy(const CopyActivity &in) {
    const uint64_t correlation = widen(in.correlation);
    auto *record = begin<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, in.start);
    if (record == nullptr) return;
    record->end = in.end;
    record->correlation = correlation;
    record->stream = in.stream;
    record->context = in.context;
    record->device = in.device;
    record->bytes = in.bytes;
    record->graph_node = in.graph_node;
    record->graph_exec = in.graph;
    record->kind = copy_kind(in.copy_kind);
    record->source_memory = memory_kind(in.source_kind);
    record->destination_memory = memory_kind(in.destination_kind);
    record->flags = in.flags & kFlagCopyAsynchronous;
    record->peer_device = in.device;
  }

  void peer_copy(const PeerCopyActivity &in) {
    const uint64_t correlation = widen(in.correlation);
    auto *record = begin<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, in.start);
    if (record == nullptr) return;
    record->end = in.end;
    record->correlation = correlation;
    record->stream = in.stream;
    record->context = in.context;
    record->device = in.source_device;
    record->bytes = in.bytes;
    record->graph_node = in.graph_node;
    record->graph_exec = in.graph;
    record->kind = copy_kind(in.copy_kind);
    record->source_memory = memory_kind(in.source_kind);
    record->destination_memory = memory_kind(in.destination_kind);
    record->flags = in.flags & kFlagCopyAsynchronous;
    record->peer_device = in.destination_device;
  }

  void set(const SetActivity &in) {
    const uint64_t correlation = widen(in.correlation);
    auto *record = begin<sonde_device_set_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_SET, in.start);
    if (record == nullptr) return;
    record->end = in.end;
    record->correlation = correlation;
    record->stream = in.stream;
    record->context = in.context;
    record->device = in.device;
    record->bytes = in.bytes;
    record->graph_node = in.graph_node;
    record->graph_exec = in.graph;
    record->memory = memory_kind(in.memory_kind);
    record->value = in.value;
    record->flags = in.flags & kFlagSetAsynchronous;
  }

  void synchronization(const SynchronizationActivity &in) {
    const uint64_t correlation = widen(in.correlation);
    auto *record = begin<sonde_device_sync_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_SYNC, in.start);
    if (record == nullptr) return;
    record->end = in.end;
    record->correlation = correlation;
    record->stream = in.stream == kInvalidSynchronizationValue ? UINT64_MAX : in.stream;
    record->context = in.context;
    record->kind = in.type <= SONDE_SYNC_CONTEXT ? in.type : 0;
    record->event = in.event == kInvalidSynchronizationValue ? UINT64_MAX : in.event;
  }

  void memory(const MemoryActivity &in) {
    const uint64_t correlation = widen(in.correlation);
    const bool from_pool = in.pool_type == kPoolTypeLocal || in.pool_type == kPoolTypeImported;
    const uint32_t flags = (in.asynchronous != 0 ? 1u : 0u) | (from_pool ? 2u : 0u);
    const uint64_t pool = from_pool ? in.pool_address : 0;
    const uint64_t stream = in.asynchronous != 0 ? in.stream : 0;
    if (in.operation == kMemoryOperationAllocate) {
      auto *record = begin<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, in.timestamp);
      if (record == nullptr) return;
      record->address = in.address;
      record->bytes = in.bytes;
      record->pool = pool;
      record->stream = stream;
      record->correlation = correlation;
      record->context = in.context;
      record->device = in.device;
      record->kind = memory_kind(in.memory_kind);
      record->flags = flags;
      record->name = decoder.intern(in.name);
    } else if (in.operation == kMemoryOperationRelease) {
      auto *record = begin<sonde_memory_free_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, in.timestamp);
      if (record == nullptr) return;
      record->address = in.address;
      record->bytes = in.bytes;
      record->pool = pool;
      record->stream = stream;
      record->correlation = correlation;
      record->context = in.context;
      record->device = in.device;
      record->kind = memory_kind(in.memory_kind);
      record->flags = flags;
    } else {
      ++counts.malformed;
    }
  }

  void memory_pool(const MemoryPoolActivity &in) {
    uint32_t type = 0;
    switch (in.operation) {
      case kPoolOperationCreated:
        type = SONDE_MEMORY_POOL_CREATE;
        break;
      case kPoolOperationDestroyed:
        type = SONDE_MEMORY_POOL_DESTROY;
        break;
      case kPoolOperationTrimmed:
        type = SONDE_MEMORY_POOL_TRIM;
        break;
      default:
        ++counts.malformed;
        return;
    }
    auto *record = begin<sonde_memory_pool_t>(SONDE_SPACE_MEMORY, type, in.timestamp);
    if (record == nullptr) return;
    record->pool = in.address;
    record->reserved_bytes = in.size;
    record->used_bytes = in.used;
    record->release_threshold = in.release_threshold;
    record->device = in.device;
    record->kind = in.pool_type == kPoolTypeImported ? 1 : 0;
  }

  void call(const ApiActivity &in) {
    const uint64_t correlation = widen(in.correlation);
    auto *record = begin<sonde_host_call_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL, in.start);
    if (record == nullptr) return;
    const bool runtime = in.kind == kind::kRuntime;
    record->end = in.end;
    record->thread = in.thread;
    record->correlation = correlation;
    record->function = decoder.function_name(runtime ? kDomainRuntime : kDomainDriver, in.callback);
    record->domain = runtime ? decoder.runtime_domain_ : decoder.driver_domain_;
    record->result = static_cast<int32_t>(in.result);
  }

  void overhead(const OverheadActivity &in) {
    auto *record = begin<sonde_host_call_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL, in.start);
    if (record == nullptr) return;
    record->end = in.end;
    record->thread = in.object_kind == kObjectThread ? in.object[1] : 0;
    record->function = decoder.intern(overhead_name(in.overhead));
    record->domain = decoder.overhead_domain_;
  }

  void device(const DeviceActivity &in) {
    auto *record = begin<sonde_object_device_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_DEVICE, now);
    if (record == nullptr) return;
    char uuid[48];
    const uint8_t *b = in.uuid;
    std::snprintf(uuid, sizeof(uuid), "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                  b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    record->memory_bytes = in.memory;
    record->memory_bandwidth = in.bandwidth * 1000;
    record->device = in.id;
    record->name = decoder.intern(in.name);
    record->uuid = decoder.intern(uuid);
    record->runtime = decoder.cuda_;
    record->capability_major = in.capability_major;
    record->capability_minor = in.capability_minor;
    record->processors = in.multiprocessors;
    record->warp = in.warp;
    record->core_clock_khz = in.core_clock;
    record->l2_bytes = in.l2_bytes;
  }

  void context(const ContextActivity &in) {
    auto *record = begin<sonde_object_context_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_CONTEXT, now);
    if (record == nullptr) return;
    record->context = in.context;
    record->device = in.device;
    record->null_stream = in.null_stream;
  }

  void stream(const StreamActivity &in) {
    const uint32_t flag = in.flag & 0xFFFFu;
    auto *record = begin<sonde_object_stream_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_STREAM, now);
    if (record == nullptr) return;
    record->stream = in.stream;
    record->context = in.context;
    record->priority = static_cast<int32_t>(in.priority);
    record->flags = (flag == kStreamFlagNull ? 1u : 0u) | (flag == kStreamFlagNonBlocking ? 2u : 0u);
  }

  void module(const ModuleActivity &in) {
    auto *record = begin<sonde_object_module_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE, now);
    if (record == nullptr) return;
    record->module = in.id;
    record->bytes = in.bytes;
    record->context = in.context;
  }

  void function(const FunctionActivity &in) {
    auto *record = begin<sonde_object_function_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_FUNCTION, now);
    if (record == nullptr) return;
    record->module = in.module;
    record->function = in.id;
    record->name = decoder.names_.find(in.name);
    record->context = in.context;
  }

  void graph_trace(const GraphTraceActivity &in) {
    const uint64_t correlation = widen(in.correlation);
    auto *record = begin<sonde_device_graph_launch_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_GRAPH_LAUNCH, in.start);
    if (record == nullptr) return;
    record->end = in.end;
    record->correlation = correlation;
    record->stream = in.stream;
    record->context = in.context;
    record->device = in.device;
    record->graph_exec = in.graph;
  }

  void device_graph_trace(const DeviceGraphTraceActivity &in) {
    auto *record = begin<sonde_device_graph_launch_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_GRAPH_LAUNCH, in.start);
    if (record == nullptr) return;
    record->end = in.end;
    record->stream = in.stream;
    record->context = in.context;
    record->device = in.device;
    record->graph_exec = in.graph;
  }

  void page_fault(const UnifiedMemoryActivity &in, bool on_host) {
    auto *record = begin<sonde_device_page_fault_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_PAGE_FAULT, in.start);
    if (record == nullptr) return;
    record->end = on_host ? 0 : in.end;
    record->address = in.address;
    record->count = on_host ? 1 : in.value;  // for the CPU, CUPTI's value is the program counter
    record->process = in.process;
    record->processor = on_host ? kNoProcessor : in.source;
    record->access = !on_host && in.flags <= 4 ? in.flags : 0;
  }

  void migration(const UnifiedMemoryActivity &in) {
    auto *record = begin<sonde_device_migration_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_MIGRATION, in.start);
    if (record == nullptr) return;
    record->end = in.end;
    record->address = in.address;
    record->bytes = in.value;
    record->process = in.process;
    record->source = in.counter == kCounterBytesHostToDevice ? kNoProcessor : in.source;
    record->destination = in.counter == kCounterBytesDeviceToHost ? kNoProcessor : in.destination;
    record->cause = migration_cause(in.flags);
  }

  void thrash(const UnifiedMemoryActivity &in) {
    auto *record = begin<sonde_device_thrash_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_THRASH, in.start);
    if (record == nullptr) return;
    const bool throttled = in.counter == kCounterThrottling;
    const bool mapped = in.counter == kCounterRemoteMap;
    const bool on_host = !mapped && (in.flags & kFlagThrashingInCpu) != 0;
    record->end = throttled ? in.end : 0;
    record->address = in.address;
    record->bytes = throttled ? 0 : in.value;
    record->process = in.process;
    record->processor = on_host ? kNoProcessor : mapped ? in.destination : in.source;
    record->action = throttled ? 1 : mapped ? 2 : 0;
  }

  void unified_memory(const UnifiedMemoryActivity &in) {
    switch (in.counter) {
      case kCounterBytesHostToDevice:
      case kCounterBytesDeviceToHost:
      case kCounterBytesDeviceToDevice:
        return migration(in);
      case kCounterCpuPageFault:
        return page_fault(in, true);
      case kCounterGpuPageFault:
        return page_fault(in, false);
      case kCounterThrashing:
      case kCounterThrottling:
      case kCounterRemoteMap:
        return thrash(in);
      default:
        ++counts.unknown;
        counts.unknown_kind = in.kind;
    }
  }

  template <typename Activity>
  static const Activity &as(const ActivityHeader *record) {
    return *reinterpret_cast<const Activity *>(record);
  }

  void record(const ActivityHeader *in) {
    switch (in->kind) {
      case kind::kKernel:
      case kind::kConcurrentKernel:
        return kernel(as<KernelActivity>(in));
      case kind::kMemcpy:
        return copy(as<CopyActivity>(in));
      case kind::kMemcpyPeer:
        return peer_copy(as<PeerCopyActivity>(in));
      case kind::kMemset:
        return set(as<SetActivity>(in));
      case kind::kRuntime:
      case kind::kDriver:
        return call(as<ApiActivity>(in));
      case kind::kSynchronization:
        return synchronization(as<SynchronizationActivity>(in));
      case kind::kMemory:
        return memory(as<MemoryActivity>(in));
      case kind::kMemoryPool:
        return memory_pool(as<MemoryPoolActivity>(in));
      case kind::kUnifiedMemoryCounter:
        return unified_memory(as<UnifiedMemoryActivity>(in));
      case kind::kGraphTrace:
        return graph_trace(as<GraphTraceActivity>(in));
      case kind::kDeviceGraphTrace:
        return device_graph_trace(as<DeviceGraphTraceActivity>(in));
      case kind::kOverhead:
        return overhead(as<OverheadActivity>(in));
      case kind::kDevice:
        return device(as<DeviceActivity>(in));
      case kind::kContext:
        return context(as<ContextActivity>(in));
      case kind::kStream:
        return stream(as<StreamActivity>(in));
      case kind::kModule:
        return module(as<ModuleActivity>(in));
      case kind::kFunction:
        return function(as<FunctionActivity>(in));
      default:
        break;
    }
  }
};

Decoder::Decoder(const CuptiApi *api, const sonde_capture_service_t *capture)
    : api_(api), capture_(capture), names_(capture) {
  runtime_domain_ = intern("cuda.runtime");
  driver_domain_ = intern("cuda.driver");
  overhead_domain_ = intern("cuda.overhead");
  cuda_ = intern("cuda");
}

sonde_string_t Decoder::intern(const char *text) {
  sonde_string_t id = 0;
  if (text == nullptr || capture_->intern(text, UINT64_MAX, &id) != SONDE_OK) return 0;
  return id;
}

sonde_string_t Decoder::function_name(uint32_t domain, uint32_t callback) {
  constexpr uint32_t kMostCallbacks = 1u << 16;
  if (callback >= kMostCallbacks) return 0;
  std::vector<sonde_string_t> &known = functions_[domain];
  if (callback >= known.size()) known.resize(callback + 64);
  if (known[callback] != 0) return known[callback];
  const char *name = nullptr;
  const bool found = api_->get_callback_name != nullptr &&
                     api_->get_callback_name(domain, callback, &name) == kCuptiSuccess && name != nullptr;
  const bool runtime = domain == kDomainRuntime;
  const std::string text = found ? plain_function_name(name, runtime)
                                 : std::string(runtime ? "cuda.runtime#" : "cuda.driver#") + std::to_string(callback);
  return known[callback] = intern(text.c_str());
}

DecodeCounts Decoder::decode(uint8_t *buffer, size_t valid_bytes, const Wants &wants, uint64_t now, RecordOutput &out) {
  Pass pass{*this, wants, out, now};
  names_.begin_buffer();
  ActivityHeader *record = nullptr;
  for (;;) {
    const CuptiResult result = api_->activity_get_next_record(buffer, valid_bytes, &record);
    if (result == kCuptiMaxLimitReached) break;
    const auto offset = static_cast<size_t>(reinterpret_cast<uint8_t *>(record) - buffer);
    if (result != kCuptiSuccess || record == nullptr || offset + sizeof(ActivityHeader) > valid_bytes) {
      ++pass.counts.malformed;
      break;
    }
    const uint32_t needed = needed_bytes(record->kind, api_->version);
    if (needed == 0) {
      ++pass.counts.unknown;
      pass.counts.unknown_kind = record->kind;
    } else if (needed > valid_bytes - offset) {
      ++pass.counts.malformed;
      break;
    } else {
      pass.record(record);
    }
  }
  return pass.counts;
}

}  // namespace sonde::cuda
