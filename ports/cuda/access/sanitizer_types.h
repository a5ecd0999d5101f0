// The part of the Compute Sanitizer's interface that the port uses, declared here so that it builds without NVIDIA's
// headers. tests/abi/sanitizer compares every number, offset and size with the headers of CUDA 13.0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::cuda::access {

using SanitizerResult = int32_t;
constexpr SanitizerResult kSanitizerSuccess = 0;

using Context = struct ContextTag *;
using Stream = struct StreamTag *;
using Module = struct ModuleTag *;
using Function = struct FunctionTag *;
using GraphExec = struct GraphExecTag *;
using GraphNode = struct GraphNodeTag *;
using StreamHandle = struct StreamHandleTag *;
using LaunchHandle = struct LaunchHandleTag *;
using SubscriberHandle = struct SubscriberTag *;

namespace domain {
constexpr uint32_t kDriverApi = 1;
constexpr uint32_t kResource = 3;
constexpr uint32_t kLaunch = 5;
constexpr uint32_t kMemcpy = 6;
constexpr uint32_t kMemset = 7;
constexpr uint32_t kGraphs = 10;
}  // namespace domain

namespace driver_call {
constexpr uint32_t kMemMap = 551;
constexpr uint32_t kMemUnmap = 552;
}  // namespace driver_call

namespace resource {
constexpr uint32_t kContextCreated = 3;
constexpr uint32_t kContextDestroyStarting = 4;
constexpr uint32_t kModuleLoaded = 9;
constexpr uint32_t kModuleUnloadStarting = 10;
constexpr uint32_t kDeviceAllocated = 11;
constexpr uint32_t kDeviceFreed = 12;
constexpr uint32_t kHostAllocated = 13;
constexpr uint32_t kHostFreed = 14;
constexpr uint32_t kAllocatedAsync = 15;
constexpr uint32_t kFreedAsync = 16;
constexpr uint32_t kPoolPointerImported = 28;
}  // namespace resource

namespace launch {
constexpr uint32_t kBegin = 1;
constexpr uint32_t kEnd = 3;
}  // namespace launch

constexpr uint32_t kTransferStarting = 1;  // of both domains

namespace graphs {
constexpr uint32_t kExecCreated = 2;
constexpr uint32_t kNodeBegin = 4;
constexpr uint32_t kNodeEnd = 5;
constexpr uint32_t kLaunchBegin = 6;
constexpr uint32_t kLaunchEnd = 7;
}  // namespace graphs

namespace instruction {
constexpr uint32_t kBlockEnter = 1;
constexpr uint32_t kBlockExit = 2;
constexpr uint32_t kGlobalAccess = 3;
constexpr uint32_t kSharedAccess = 4;
constexpr uint32_t kBarrier = 6;
constexpr uint32_t kWarpBarrier = 7;
constexpr uint32_t kCall = 9;
constexpr uint32_t kReturn = 10;
constexpr uint32_t kDeviceMalloc = 11;
constexpr uint32_t kDeviceFree = 12;
constexpr uint32_t kCudaBarrier = 13;
constexpr uint32_t kMemcpyAsync = 14;
constexpr uint32_t kPipelineCommit = 15;
constexpr uint32_t kPipelineWait = 16;
constexpr uint32_t kDeviceAlignedMalloc = 18;
constexpr uint32_t kClusterArrive = 21;
constexpr uint32_t kClusterWait = 22;
constexpr uint32_t kBulkGlobalToShared = 30;
constexpr uint32_t kBulkSharedToGlobal = 35;
constexpr uint32_t kBulkReduceToGlobal = 37;
}  // namespace instruction

constexpr uint32_t kGraphNodeKernel = 0;
constexpr uint32_t kGraphNodeMemcpy = 1;
constexpr uint32_t kGraphNodeMemset = 2;

// Bits of ResourceMemory::flags.
constexpr uint32_t kMemoryModule = 0x1;
constexpr uint32_t kMemoryManaged = 0x2;
constexpr uint32_t kMemoryHostMapped = 0x4;
constexpr uint32_t kMemoryHostPinned = 0x8;
constexpr uint32_t kMemoryGroupsRuntime = 0x40;
constexpr uint32_t kMemoryDeviceRuntime = 0x80;

constexpr uint32_t kApiExit = 1;

struct ApiCall {
  uint32_t site;
  const char *name;
  const void *parameters;
  const void *result;
  const char *symbol;
  Context context;
};

struct MemMapParameters {
  uint64_t address;
  size_t bytes;
  size_t offset;
  uint64_t handle;
  unsigned long long flags;
};

struct MemUnmapParameters {
  uint64_t address;
  size_t bytes;
};

struct ResourceContext {
  Context context;
  int32_t device;
};

struct ResourceModule {
  Context context;
  Module module;
  size_t code_bytes;
  const char *code;
  void *library;
};

struct ResourceMemory {
  uint64_t address;
  uint64_t bytes;
  Context context;
  int32_t device;
  Stream stream;
  StreamHandle stream_handle;
  void *pool;
  uint32_t flags;
  uint32_t permissions;
  uint32_t visibility;
};

struct Launch {
  Context context;
  Stream stream;
  StreamHandle stream_handle;
  Module module;
  Function function;
  const char *function_name;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];
  uint64_t grid_id;
  LaunchHandle handle;
  int32_t device;
  Context api_context;
  Stream api_stream;
  StreamHandle api_stream_handle;
};

struct MemcpyData {
  Context source_context;
  Context target_context;
  Stream source_stream;
  StreamHandle source_stream_handle;
  Stream target_stream;
  StreamHandle target_stream_handle;
  uint64_t source;
  uint64_t target;
  uint64_t bytes;
  uint64_t width;
  uint64_t height;
  uint64_t depth;
  uint64_t source_pitch;
  uint64_t target_pitch;
  uint32_t is_async;
  uint32_t direction;  // 0 unknown, 1 host to host, 2 host to device, 3 device to host, 4 device to device
  Context api_context;
  Stream api_stream;
  StreamHandle api_stream_handle;
};

struct MemsetData {
  Context context;
  Stream stream;
  StreamHandle stream_handle;
  uint64_t address;
  uint64_t width;  // elements
  uint64_t height;
  uint64_t pitch;  // bytes
  uint32_t element_bytes;
  uint32_t value;
  uint32_t is_async;
};

struct GraphExecEvent {
  void *graph;
  GraphExec exec;
  uint32_t is_device_launch;
  uint32_t contains_device_launches;
  Context device_launch_context;
};

struct GraphNodeLaunch {
  GraphExec exec;
  uint32_t launch_id;
  GraphNode node;
  uint32_t node_type;
  union {
    Launch launch;  // by node_type
    MemcpyData copy;
    MemsetData set;
  };
};

struct GraphLaunch {
  Context context;
  Stream stream;
  StreamHandle stream_handle;
  GraphExec exec;
  uint32_t is_upload;
};

using Callback = void (*)(void *user, uint32_t domain, uint32_t id, const void *data);

}  // namespace sonde::cuda::access
