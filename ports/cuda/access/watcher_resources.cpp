// What there is: contexts, modules, memory, as the library's callbacks tell.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <shared_mutex>

#include <sonde/spaces/access.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "code.h"
#include "common/services.h"
#include "driver_calls.h"
#include "port.h"
#include "readout.h"
#include "watcher.h"

namespace sonde::cuda::access {

namespace {

uint32_t memory_kind(uint32_t flags, bool pinned) {
  if (pinned) return SONDE_MEMORY_PINNED;
  if ((flags & kMemoryManaged) != 0) {
    return (flags & kMemoryModule) != 0 ? SONDE_MEMORY_MANAGED_STATIC : SONDE_MEMORY_MANAGED;
  }
  return (flags & kMemoryModule) != 0 ? SONDE_MEMORY_DEVICE_STATIC : SONDE_MEMORY_DEVICE;
}

// Memory that the driver took for itself: code may touch it, but no program allocated it.
bool is_of_runtime(const ResourceMemory *memory) {
  return memory != nullptr && (memory->flags & (kMemoryGroupsRuntime | kMemoryDeviceRuntime)) != 0;
}

// By the library's number of a direction.
constexpr uint32_t kCopyKinds[] = {SONDE_COPY_UNKNOWN, SONDE_COPY_HOST_TO_HOST, SONDE_COPY_HOST_TO_DEVICE,
                                   SONDE_COPY_DEVICE_TO_HOST, SONDE_COPY_DEVICE_TO_DEVICE};

// The module's line tables, null where it has none.
std::shared_ptr<const toolkit::CubinLines> lines_of(const ResourceModule &module) {
  std::string error;
  auto lines = toolkit::CubinLines::read({reinterpret_cast<const uint8_t *>(module.code), module.code_bytes}, error);
  if (!lines || !lines->has_lines()) return nullptr;
  return std::make_shared<const toolkit::CubinLines>(std::move(*lines));
}

template <typename Record>
void emit(const Port &port, Record &record) {
  (void)services().capture->emit(port.session(), &record.header);
}

}  // namespace

bool Watcher::checks() {
  const std::lock_guard hold(module_mutex_);
  return (wish_.features & kCheck) != 0;
}

void Watcher::on_resource(uint32_t id, const void *data) {
  switch (id) {
    case resource::kContextCreated: {
      static const bool once = std::atexit(program_ends) == 0;
      (void)once;
      const auto &created = *static_cast<const ResourceContext *>(data);
      WatcherSettings settings;
      {
        const std::lock_guard hold(module_mutex_);
        settings = settings_;
      }
      auto space = std::make_unique<Space>(api_, created.context, created.device, settings.space);
      std::string reason;
      if (!space->prepare(settings.folder, reason)) {
        const std::shared_lock hold(ports_mutex_);
        tell(3, "no data on accesses of device " + std::to_string(created.device) + " because " + reason);
      }
      const std::lock_guard hold(module_mutex_);
      spaces_[created.context] = std::move(space);
      break;
    }
    case resource::kContextDestroyStarting:
      context_ends(static_cast<const ResourceContext *>(data)->context);
      break;
    case resource::kModuleLoaded: {
      const auto &loaded = *static_cast<const ResourceModule *>(data);
      ModuleInfo info;
      info.context = loaded.context;
      if (loaded.code != nullptr && loaded.code_bytes != 0) {
        for (std::string &name : functions_with_tensor_copies(loaded.code, loaded.code_bytes)) {
          info.incomplete.insert(std::move(name));
        }
        info.hash = XXH3_64bits(loaded.code, loaded.code_bytes);
        if (checks()) info.lines = lines_of(loaded);
      }
      sonde_object_module_t record = {};
      SONDE_RECORD_INIT(&record, SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE, sonde_stamp());
      record.module = reinterpret_cast<uint64_t>(loaded.module);
      record.bytes = loaded.code_bytes;
      record.hash = info.hash;
      {
        const std::shared_lock hold(ports_mutex_);
        for (const Port *port : ports_) {
          if (port->wants(SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE)) emit(*port, record);
        }
      }
      const std::lock_guard hold(module_mutex_);
      ModuleInfo &stored = modules_[loaded.module] = std::move(info);
      // At once, so that graphs are made of patched code; with sampling, when a launch is chosen.
      if (active_ && wish_.kernel_period <= 1 && wish_.only.empty() && wish_.except.empty()) {
        (void)patch(loaded.module, stored, patch_key());
      }
      break;
    }
    case resource::kModuleUnloadStarting: {
      const auto &gone = *static_cast<const ResourceModule *>(data);
      const std::lock_guard hold(module_mutex_);
      modules_.erase(gone.module);
      std::erase_if(functions_,
                    [&](const auto &entry) { return entry.second.module == reinterpret_cast<uint64_t>(gone.module); });
      break;
    }
    case resource::kDeviceAllocated:
    case resource::kHostAllocated:
    case resource::kAllocatedAsync:
    case resource::kPoolPointerImported: {
      const auto &memory = *static_cast<const ResourceMemory *>(data);
      allocated(memory.address, memory.bytes, &memory, id == resource::kHostAllocated, id == resource::kAllocatedAsync);
      break;
    }
    case resource::kDeviceFreed:
    case resource::kHostFreed:
    case resource::kFreedAsync: {
      const auto &memory = *static_cast<const ResourceMemory *>(data);
      freed(memory.address, &memory, id == resource::kHostFreed, id == resource::kFreedAsync);
      break;
    }
    default:
      break;
  }
}

void Watcher::on_driver_call(uint32_t id, const ApiCall &call) {
  if (id == driver_call::kMemMap || id == driver_call::kMemUnmap) {
    if (call.site != kApiExit || call.result == nullptr || *static_cast<const int32_t *>(call.result) != 0) return;
    // Parts of a reservation come and go on their own.
    if (id == driver_call::kMemMap) {
      const auto &map = *static_cast<const MemMapParameters *>(call.parameters);
      allocated(map.address, map.bytes, nullptr, false, false);
    } else {
      const auto &unmap = *static_cast<const MemUnmapParameters *>(call.parameters);
      for (uint64_t at = unmap.address; at < unmap.address + unmap.bytes;) {
        uint64_t begin = 0;
        uint64_t end = 0;
        {
          const std::lock_guard hold(live_mutex_);
          const LiveRange *const range = live_.after(at);
          if (range == nullptr || range->begin >= unmap.address + unmap.bytes) break;
          begin = range->begin;
          end = range->end;
        }
        at = std::max(end, freed(begin, nullptr, false, false));
      }
    }
    return;
  }
  if (std::find(std::begin(kEndCalls), std::end(kEndCalls), id) != std::end(kEndCalls)) {
    if (call.site == kApiEnter && active_) (void)flush(kLongestFlush);
    return;
  }
  if (call.site == kApiExit) withdraw_promise();
  if (call.site == kApiEnter && active_) wait_for_room(call.context);
}

void Watcher::allocated(uint64_t address, uint64_t bytes, const ResourceMemory *memory, bool pinned, bool ordered) {
  const uint32_t flags = memory != nullptr ? memory->flags : 0;
  const bool is_own = is_of_runtime(memory);
  {
    const std::lock_guard hold(live_mutex_);
    const bool is_static = (flags & kMemoryModule) != 0 || is_own;
    if (live_.allocate(address, bytes, is_static ? SONDE_OBJECT_IS_STATIC : SONDE_OBJECT_IS_ALLOCATION) == 0) return;
  }
  if (!active_ || is_own) return;
  sonde_memory_allocate_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, sonde_stamp());
  record.address = address;
  record.bytes = bytes;
  record.kind = memory_kind(flags, pinned);
  record.flags = ordered ? 3 : 0;
  if (memory != nullptr) {
    record.pool = reinterpret_cast<uint64_t>(memory->pool);
    record.stream = ordered ? reinterpret_cast<uint64_t>(memory->stream) : 0;
    record.device = static_cast<uint32_t>(memory->device);
  }
  const std::shared_lock hold(ports_mutex_);
  for (const Port *port : ports_) {
    if (port->wants(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE)) emit(*port, record);
  }
}

// Its memory goes; the Space stays for those who hold it, and is used no more.
void Watcher::context_ends(Context context) {
  std::unique_ptr<Space> space;
  {
    const std::lock_guard hold(module_mutex_);
    const auto found = spaces_.find(context);
    if (found == spaces_.end()) return;
    space = std::move(found->second);
    spaces_.erase(found);
    space->end();
    std::erase_if(abandoned_, [&](const Abandoned &launch) { return launch.space == space.get(); });
    if (readout_ != nullptr) readout_->forget_memory();
  }
  {
    const std::lock_guard hold(queue_mutex_);
    for (auto &entry : queue_) {
      if (entry->space != space.get()) continue;
      entry->slot = nullptr;
      entry->flags |= SONDE_LAUNCH_UNFINISHED;
    }
  }
  const std::lock_guard hold(module_mutex_);
  ended_spaces_.push_back(std::move(space));
}

uint64_t Watcher::freed(uint64_t address, const ResourceMemory *memory, bool pinned, bool ordered) {
  uint64_t bytes = memory != nullptr ? memory->bytes : 0;
  uint64_t end = 0;
  {
    const std::lock_guard hold(live_mutex_);
    if (const auto range = live_.release(address)) {
      bytes = range->end - range->begin;
      end = range->end;
    }
  }
  if (!active_ || is_of_runtime(memory)) return end;
  sonde_memory_free_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE, sonde_stamp());
  record.address = address;
  record.bytes = bytes;
  record.kind = memory_kind(memory != nullptr ? memory->flags : 0, pinned);
  record.flags = ordered ? 3 : 0;
  if (memory != nullptr) {
    record.pool = reinterpret_cast<uint64_t>(memory->pool);
    record.stream = ordered ? reinterpret_cast<uint64_t>(memory->stream) : 0;
    record.device = static_cast<uint32_t>(memory->device);
  }
  const std::shared_lock hold(ports_mutex_);
  for (const Port *port : ports_) {
    if (port->wants(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE)) emit(*port, record);
  }
  return end;
}

// ---- copies and sets -------------------------------------------------------------------------------------------------

void Watcher::on_copy(const MemcpyData &copy, uint64_t graph_node, uint32_t graph_exec) {
  if (!active_) return;
  sonde_access_transfer_t record = {};
  record.source = copy.source;
  record.target = copy.target;
  record.rows = std::max<uint64_t>(copy.height, 1) * std::max<uint64_t>(copy.depth, 1);
  record.width = copy.width != 0 ? copy.width : copy.bytes / record.rows;
  record.bytes = copy.bytes != 0 ? copy.bytes : record.width * record.rows;
  record.source_pitch = record.rows > 1 ? copy.source_pitch : 0;
  record.target_pitch = record.rows > 1 ? copy.target_pitch : 0;
  record.kind = copy.direction < std::size(kCopyKinds) ? kCopyKinds[copy.direction] : SONDE_COPY_UNKNOWN;
  record.flags = copy.is_async != 0 ? SONDE_TRANSFER_ASYNC : 0;
  record.stream = reinterpret_cast<uint64_t>(copy.api_stream);
  emit_transfer(record, copy.api_context, graph_node, graph_exec);
}

void Watcher::on_set(const MemsetData &set, uint64_t graph_node, uint32_t graph_exec) {
  if (!active_) return;
  sonde_access_transfer_t record = {};
  record.target = set.address;
  record.rows = std::max<uint64_t>(set.height, 1);
  record.width = set.width * std::max(set.element_bytes, 1u);
  record.bytes = record.width * record.rows;
  record.target_pitch = record.rows > 1 ? set.pitch : 0;
  record.value = set.value;
  record.flags = SONDE_TRANSFER_SET | (set.is_async != 0 ? SONDE_TRANSFER_ASYNC : 0);
  record.stream = reinterpret_cast<uint64_t>(set.stream);
  emit_transfer(record, set.context, graph_node, graph_exec);
}

void Watcher::emit_transfer(sonde_access_transfer_t &record, Context context, uint64_t graph_node,
                            uint32_t graph_exec) {
  SONDE_RECORD_INIT(&record, SONDE_SPACE_ACCESS, SONDE_ACCESS_TRANSFER, sonde_stamp());
  record.graph_node = graph_node;
  record.graph_exec = graph_exec;
  if (graph_node != 0) record.flags |= SONDE_TRANSFER_GRAPH;
  {
    const std::lock_guard hold(module_mutex_);
    const auto space = spaces_.find(context);
    if (space != spaces_.end()) record.device = static_cast<uint32_t>(space->second->device());
  }
  const std::shared_lock hold(ports_mutex_);
  for (const Port *port : ports_) {
    if (port->wants(SONDE_SPACE_ACCESS, SONDE_ACCESS_TRANSFER)) emit(*port, record);
  }
}

}  // namespace sonde::cuda::access
