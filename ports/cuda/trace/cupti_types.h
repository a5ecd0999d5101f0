// What Sonde needs to know of CUPTI's binary interface: numbers, and where fields lie in activity records.
//
// The product builds without a CUDA toolkit, so these are Sonde's own declarations of facts, under Sonde's names.
// tests/abi/cupti compares each of them with the real headers where a toolkit is installed.
//
// Across CUPTI versions a record keeps its fields and grows at its end. Each struct below therefore describes the
// shortest form that has every field that Sonde reads; fields that a later version added come last, and the decoder
// reads them only when the loaded library is new enough (see decode.cpp). Only 64-bit processes are supported.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::cuda {

static_assert(sizeof(void *) == 8, "the record layouts are those of 64-bit processes");

// CUpti result codes.
using CuptiResult = int32_t;
inline constexpr CuptiResult kCuptiSuccess = 0;
inline constexpr CuptiResult kCuptiMaxLimitReached = 12;  // no further record in a buffer
inline constexpr CuptiResult kCuptiNotReady = 13;
inline constexpr CuptiResult kCuptiNotInitialized = 15;
inline constexpr CuptiResult kCuptiInvalidKind = 21;
inline constexpr CuptiResult kCuptiInsufficientPrivileges = 35;
inline constexpr CuptiResult kCuptiMultipleSubscribers = 39;

// Versions that cuptiGetVersion returns. From 13.0 on the number is 10000 * major + 100 * minor + update.
inline constexpr uint32_t kCupti11_6 = 17;
inline constexpr uint32_t kCupti11_8 = 18;
inline constexpr uint32_t kCupti12_0 = 19;
inline constexpr uint32_t kCupti12_8 = 26;
inline constexpr uint32_t kCupti12_9 = 27;
inline constexpr uint32_t kCupti13_0 = 130000;
inline constexpr uint32_t kCupti13_1 = 130100;

// Kinds of activity records.
namespace kind {
inline constexpr uint32_t kMemcpy = 1;
inline constexpr uint32_t kMemset = 2;
inline constexpr uint32_t kKernel = 3;
inline constexpr uint32_t kDriver = 4;
inline constexpr uint32_t kRuntime = 5;
inline constexpr uint32_t kDevice = 8;
inline constexpr uint32_t kContext = 9;
inline constexpr uint32_t kConcurrentKernel = 10;
inline constexpr uint32_t kOverhead = 17;
inline constexpr uint32_t kMemcpyPeer = 22;
inline constexpr uint32_t kUnifiedMemoryCounter = 25;
inline constexpr uint32_t kFunction = 26;
inline constexpr uint32_t kModule = 27;
inline constexpr uint32_t kStream = 37;
inline constexpr uint32_t kSynchronization = 38;
inline constexpr uint32_t kMemory = 49;  // the second form of memory records: one for each operation
inline constexpr uint32_t kMemoryPool = 50;
inline constexpr uint32_t kGraphTrace = 51;
inline constexpr uint32_t kDeviceGraphTrace = 53;
inline constexpr uint32_t kCount = 64;  // room of a set of kinds; above every kind that Sonde asks for
}  // namespace kind

// Flags and enumerations inside records.
inline constexpr uint32_t kFlagCopyAsynchronous = 1;
inline constexpr uint32_t kFlagSetAsynchronous = 1;
inline constexpr uint32_t kFlagThrashingInCpu = 1;
inline constexpr uint32_t kFlagThrottlingInCpu = 1;
inline constexpr uint32_t kFlushForced = 1;
inline constexpr uint32_t kInvalidSynchronizationValue = 0xFFFFFFFFu;
inline constexpr uint32_t kStreamFlagNonBlocking = 2;
inline constexpr uint32_t kStreamFlagNull = 3;
inline constexpr uint32_t kMemoryOperationAllocate = 1;
inline constexpr uint32_t kMemoryOperationRelease = 2;
inline constexpr uint32_t kPoolTypeInvalid = 0;
inline constexpr uint32_t kPoolTypeLocal = 1;
inline constexpr uint32_t kPoolTypeImported = 2;
inline constexpr uint32_t kPoolOperationCreated = 1;
inline constexpr uint32_t kPoolOperationDestroyed = 2;
inline constexpr uint32_t kPoolOperationTrimmed = 3;

// Counters of managed memory.
inline constexpr uint32_t kCounterBytesHostToDevice = 1;
inline constexpr uint32_t kCounterBytesDeviceToHost = 2;
inline constexpr uint32_t kCounterCpuPageFault = 3;
inline constexpr uint32_t kCounterGpuPageFault = 4;
inline constexpr uint32_t kCounterThrashing = 5;
inline constexpr uint32_t kCounterThrottling = 6;
inline constexpr uint32_t kCounterRemoteMap = 7;
inline constexpr uint32_t kCounterBytesDeviceToDevice = 8;
inline constexpr uint32_t kCounterScopeSingleDevice = 1;

struct UnifiedMemoryCounterConfig {
  uint32_t scope;
  uint32_t counter;
  uint32_t device;
  uint32_t enable;
};

// Callback domains and the points of the resource domain.
inline constexpr uint32_t kDomainDriver = 1;
inline constexpr uint32_t kDomainRuntime = 2;
inline constexpr uint32_t kDomainResource = 3;
inline constexpr uint32_t kResourceContextCreated = 1;
inline constexpr uint32_t kResourceStreamDestroyStarting = 4;
inline constexpr uint32_t kResourceModuleLoaded = 6;
inline constexpr uint32_t kResourceModuleUnloadStarting = 7;
inline constexpr uint32_t kResourceGraphCreated = 9;
inline constexpr uint32_t kResourceGraphDestroyStarting = 10;
inline constexpr uint32_t kResourceGraphCloned = 11;
inline constexpr uint32_t kResourceGraphExecCreated = 18;
inline constexpr uint32_t kResourceGraphExecDestroyStarting = 19;

// The calls that start kernels and graphs.
inline constexpr uint32_t kRuntimeLaunchCalls[] = {
    13,   // cudaLaunch
    211,  // cudaLaunchKernel
    213,  // cudaLaunch, per-thread stream
    214,  // cudaLaunchKernel, per-thread stream
    269,  // cudaLaunchCooperativeKernel
    270,  // cudaLaunchCooperativeKernel, per-thread stream
    272,  // cudaLaunchCooperativeKernelMultiDevice
    311,  // cudaGraphLaunch
    312,  // cudaGraphLaunch, per-thread stream
    430,  // cudaLaunchKernelExC
    431,  // cudaLaunchKernelExC, per-thread stream
    505,  // __cudaLaunchKernel, from 13.0 on
    506,  // __cudaLaunchKernel, per-thread stream
};
inline constexpr uint32_t kDriverLaunchCalls[] = {
    115,  // cuLaunch
    116,  // cuLaunchGrid
    117,  // cuLaunchGridAsync
    307,  // cuLaunchKernel
    442,  // cuLaunchKernel, per-thread stream
    477,  // cuLaunchCooperativeKernel
    478,  // cuLaunchCooperativeKernel, per-thread stream
    480,  // cuLaunchCooperativeKernelMultiDevice
    514,  // cuGraphLaunch
    515,  // cuGraphLaunch, per-thread stream
    652,  // cuLaunchKernelEx
    653,  // cuLaunchKernelEx, per-thread stream
};

inline constexpr uint32_t kDriverGetVersion = 2;  // cuDriverGetVersion

// Attributes of the activity interface.
inline constexpr uint32_t kAttributeZeroedBuffers = 5;  // uint8_t: the client hands in zeroed buffers

inline constexpr uint32_t kThreadIdSystem = 1;

// ---- activity records ----------------------------------------------------------------------------------------------

struct ActivityHeader {
  uint32_t kind;
};

struct KernelActivity {
  uint32_t kind;
  uint8_t cache_config;
  uint8_t shared_config;
  uint16_t registers;
  uint32_t partitioned_requested;
  uint32_t partitioned_executed;
  uint64_t start;
  uint64_t end;
  uint64_t completed;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  int32_t grid_x;
  int32_t grid_y;
  int32_t grid_z;
  int32_t block_x;
  int32_t block_y;
  int32_t block_z;
  int32_t static_shared;
  int32_t dynamic_shared;
  uint32_t local_per_thread;
  uint32_t local_total;
  uint32_t correlation;
  int64_t grid_id;
  const char *name;
  void *reserved;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launch_type;
  uint8_t carveout_requested;
  uint8_t carveout;
  uint8_t padding;
  uint32_t shared_executed;
  uint64_t graph_node;
  uint32_t shared_limit;
  uint32_t graph;
  void *access_policy;
  uint32_t channel;
  uint32_t channel_type;
  // From 11.8 on.
  uint32_t cluster_x;
  uint32_t cluster_y;
  uint32_t cluster_z;
};

struct CopyActivity {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint32_t runtime_correlation;
  uint32_t padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct PeerCopyActivity {
  uint32_t kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t source_device;
  uint32_t source_context;
  uint32_t destination_device;
  uint32_t destination_context;
  uint32_t correlation;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct SetActivity {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint16_t flags;
  uint16_t memory_kind;
  uint32_t padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
};

struct SynchronizationActivity {
  uint32_t kind;
  uint32_t type;
  uint64_t start;
  uint64_t end;
  uint32_t correlation;
  uint32_t context;
  uint32_t stream;
  uint32_t event;
};

struct MemoryActivity {
  uint32_t kind;
  uint32_t operation;
  uint32_t memory_kind;
  uint32_t correlation;
  uint64_t address;
  uint64_t bytes;
  uint64_t timestamp;
  uint64_t program_counter;
  uint32_t process;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  const char *name;
  uint32_t asynchronous;
  uint32_t padding;
  uint32_t pool_type;
  uint32_t padding2;
  uint64_t pool_address;
  uint64_t pool_release_threshold;
  uint64_t pool_size;
};

struct MemoryPoolActivity {
  uint32_t kind;
  uint32_t operation;
  uint32_t pool_type;
  uint32_t correlation;
  uint32_t process;
  uint32_t device;
  uint64_t minimum_kept;
  uint64_t address;
  uint64_t size;
  uint64_t release_threshold;
  uint64_t timestamp;
  // From 11.6 on.
  uint64_t used;
};

struct ApiActivity {
  uint32_t kind;
  uint32_t callback;
  uint64_t start;
  uint64_t end;
  uint32_t process;
  uint32_t thread;
  uint32_t correlation;
  uint32_t result;
};

struct OverheadActivity {
  uint32_t kind;
  uint32_t overhead;
  uint32_t object_kind;
  uint32_t object[3];  // process and thread when object_kind is kObjectThread
  uint64_t start;
  uint64_t end;
};
inline constexpr uint32_t kObjectThread = 2;

struct DeviceActivity {
  uint32_t kind;
  uint32_t flags;
  uint64_t bandwidth;  // 10^3 bytes per second
  uint64_t memory;
  uint32_t constant_memory;
  uint32_t l2_bytes;
  uint32_t warp;
  uint32_t core_clock;  // kHz
  uint32_t copy_engines;
  uint32_t multiprocessors;
  uint32_t limits[14];
  uint32_t capability_major;
  uint32_t capability_minor;
  uint32_t id;
  uint32_t error_correction;
  uint8_t uuid[16];
  const char *name;
};

struct ContextActivity {
  uint32_t kind;
  uint32_t context;
  uint32_t device;
  uint16_t compute_api;
  uint16_t null_stream;
};

struct StreamActivity {
  uint32_t kind;
  uint32_t context;
  uint32_t stream;
  uint32_t priority;
  uint32_t flag;
  uint32_t correlation;
};

struct ModuleActivity {
  uint32_t kind;
  uint32_t context;
  uint32_t id;
  uint32_t bytes;
  const void *code;
};

struct FunctionActivity {
  uint32_t kind;
  uint32_t id;
  uint32_t context;
  uint32_t module;
  uint32_t index;
  uint32_t padding;
  const char *name;
};

struct GraphTraceActivity {
  uint32_t kind;
  uint32_t correlation;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t graph;
  uint32_t context;
  uint32_t stream;
};

struct DeviceGraphTraceActivity {
  uint32_t kind;
  uint32_t device;
  uint64_t start;
  uint64_t end;
  uint32_t graph;
  uint32_t launcher_graph;
  uint32_t launch_mode;
  uint32_t context;
  uint64_t stream;
};

struct UnifiedMemoryActivity {
  uint32_t kind;
  uint32_t counter;
  uint64_t value;
  uint64_t start;
  uint64_t end;
  uint64_t address;
  uint32_t source;
  uint32_t destination;
  uint32_t stream;
  uint32_t process;
  uint32_t flags;
};

// ---- data of callbacks ---------------------------------------------------------------------------------------------

inline constexpr uint32_t kCallEnter = 0;

// Of the domains of runtime and driver; the site is where in the call.
struct CallData {
  uint32_t site;
};

struct ResourceData {
  void *context;
  void *stream;      // for the stream points
  void *descriptor;  // GraphData, ModuleData
};

struct ModuleData {
  uint32_t module;
  size_t bytes;
  const char *code;
};

struct GraphData {
  void *graph;
  void *original_graph;
  void *node;
  void *original_node;
  uint32_t node_type;
  void *dependency;
  void *graph_exec;
};

// ---- function types ------------------------------------------------------------------------------------------------

using BufferRequested = void (*)(uint8_t **buffer, size_t *bytes, size_t *record_limit);
using BufferCompleted = void (*)(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);
using TimestampCallback = uint64_t (*)();
using Callback = void (*)(void *user, uint32_t domain, uint32_t point, const void *data);
using Subscriber = void *;

}  // namespace sonde::cuda
