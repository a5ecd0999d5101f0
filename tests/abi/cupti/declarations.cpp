// Compares Sonde's declarations of CUPTI and NVTX with the real headers. The assertions act while this compiles.
#include <cupti.h>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include <type_traits>

#include "activity.h"
#include "cupti_api.h"
#include "cupti_types.h"
#include "nvtx_types.h"

namespace {

using namespace sonde::cuda;

// The same offset and the same size of a field.
#define SAME(mine, mine_field, theirs, their_field)                                                  \
  static_assert(offsetof(mine, mine_field) == offsetof(theirs, their_field), #mine "." #mine_field); \
  static_assert(sizeof(((mine *)nullptr)->mine_field) == sizeof(((theirs *)nullptr)->their_field),   \
                #mine "." #mine_field)

#define SAME_VALUE(mine, theirs) static_assert(static_cast<int64_t>(mine) == static_cast<int64_t>(theirs), #mine)

// ---- numbers -------------------------------------------------------------------------------------------------------

SAME_VALUE(kCuptiSuccess, CUPTI_SUCCESS);
SAME_VALUE(kCuptiMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME_VALUE(kCuptiNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
SAME_VALUE(kCuptiInvalidKind, CUPTI_ERROR_INVALID_KIND);
SAME_VALUE(kCuptiInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME_VALUE(kCuptiMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);

SAME_VALUE(kind::kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_VALUE(kind::kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_VALUE(kind::kKernel, CUPTI_ACTIVITY_KIND_KERNEL);
SAME_VALUE(kind::kDriver, CUPTI_ACTIVITY_KIND_DRIVER);
SAME_VALUE(kind::kRuntime, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME_VALUE(kind::kDevice, CUPTI_ACTIVITY_KIND_DEVICE);
SAME_VALUE(kind::kContext, CUPTI_ACTIVITY_KIND_CONTEXT);
SAME_VALUE(kind::kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_VALUE(kind::kOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME_VALUE(kind::kMemcpyPeer, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME_VALUE(kind::kUnifiedMemoryCounter, CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
SAME_VALUE(kind::kFunction, CUPTI_ACTIVITY_KIND_FUNCTION);
SAME_VALUE(kind::kModule, CUPTI_ACTIVITY_KIND_MODULE);
SAME_VALUE(kind::kStream, CUPTI_ACTIVITY_KIND_STREAM);
SAME_VALUE(kind::kSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME_VALUE(kind::kMemory, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME_VALUE(kind::kMemoryPool, CUPTI_ACTIVITY_KIND_MEMORY_POOL);
SAME_VALUE(kind::kGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
SAME_VALUE(kind::kDeviceGraphTrace, CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE);

SAME_VALUE(kFlagCopyAsynchronous, CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC);
SAME_VALUE(kFlagSetAsynchronous, CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC);
SAME_VALUE(kFlagThrashingInCpu, CUPTI_ACTIVITY_FLAG_THRASHING_IN_CPU);
SAME_VALUE(kFlagThrottlingInCpu, CUPTI_ACTIVITY_FLAG_THROTTLING_IN_CPU);
SAME_VALUE(kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_VALUE(kInvalidSynchronizationValue, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
SAME_VALUE(kStreamFlagNonBlocking, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING);
SAME_VALUE(kStreamFlagNull, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL);
SAME_VALUE(kMemoryOperationAllocate, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
SAME_VALUE(kMemoryOperationRelease, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
SAME_VALUE(kPoolTypeInvalid, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID);
SAME_VALUE(kPoolTypeLocal, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL);
SAME_VALUE(kPoolTypeImported, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED);
SAME_VALUE(kPoolOperationCreated, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED);
SAME_VALUE(kPoolOperationDestroyed, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED);
SAME_VALUE(kPoolOperationTrimmed, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED);
SAME_VALUE(kObjectThread, CUPTI_ACTIVITY_OBJECT_THREAD);

SAME_VALUE(kCounterBytesHostToDevice, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD);
SAME_VALUE(kCounterBytesDeviceToHost, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH);
SAME_VALUE(kCounterCpuPageFault, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT);
SAME_VALUE(kCounterGpuPageFault, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT);
SAME_VALUE(kCounterThrashing, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING);
SAME_VALUE(kCounterThrottling, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING);
SAME_VALUE(kCounterRemoteMap, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP);
SAME_VALUE(kCounterBytesDeviceToDevice, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD);
SAME_VALUE(kCounterScopeSingleDevice, CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE);

// The decoder's tables of copy kinds, memory kinds, causes and accesses rest on these.
SAME_VALUE(0, CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN);
SAME_VALUE(1, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME_VALUE(2, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME_VALUE(3, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA);
SAME_VALUE(4, CUPTI_ACTIVITY_MEMCPY_KIND_ATOH);
SAME_VALUE(5, CUPTI_ACTIVITY_MEMCPY_KIND_ATOA);
SAME_VALUE(6, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD);
SAME_VALUE(7, CUPTI_ACTIVITY_MEMCPY_KIND_DTOA);
SAME_VALUE(8, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME_VALUE(9, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME_VALUE(10, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME_VALUE(1, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME_VALUE(2, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
SAME_VALUE(3, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME_VALUE(4, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
SAME_VALUE(5, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
SAME_VALUE(6, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC);
SAME_VALUE(7, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
SAME_VALUE(1, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
SAME_VALUE(2, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
SAME_VALUE(3, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
SAME_VALUE(4, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
SAME_VALUE(1, CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER);
SAME_VALUE(2, CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE);
SAME_VALUE(3, CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_PREFETCH);
SAME_VALUE(4, CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION);
SAME_VALUE(5, CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_ACCESS_COUNTERS);
SAME_VALUE(1, CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_READ);
SAME_VALUE(4, CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_PREFETCH);
SAME_VALUE(1, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
SAME_VALUE(1 << 16, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
SAME_VALUE(2 << 16, CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION);
SAME_VALUE(3 << 16, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);
SAME_VALUE(4 << 16, CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING);
SAME_VALUE(5 << 16, CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
SAME_VALUE(6 << 16, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
SAME_VALUE(7 << 16, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST);
SAME_VALUE(8 << 16, CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT);

SAME_VALUE(kDomainDriver, CUPTI_CB_DOMAIN_DRIVER_API);
SAME_VALUE(kCallEnter, CUPTI_API_ENTER);
SAME_VALUE(kDriverGetVersion, CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion);
SAME_VALUE(kDomainRuntime, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME_VALUE(kDomainResource, CUPTI_CB_DOMAIN_RESOURCE);
SAME_VALUE(kResourceContextCreated, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
SAME_VALUE(kResourceStreamDestroyStarting, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING);
SAME_VALUE(kResourceModuleLoaded, CUPTI_CBID_RESOURCE_MODULE_LOADED);
SAME_VALUE(kResourceModuleUnloadStarting, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
SAME_VALUE(kResourceGraphCreated, CUPTI_CBID_RESOURCE_GRAPH_CREATED);
SAME_VALUE(kResourceGraphDestroyStarting, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING);
SAME_VALUE(kResourceGraphCloned, CUPTI_CBID_RESOURCE_GRAPH_CLONED);
SAME_VALUE(kResourceGraphExecCreated, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
SAME_VALUE(kResourceGraphExecDestroyStarting, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);
SAME_VALUE(kAttributeZeroedBuffers, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME_VALUE(kThreadIdSystem, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);

constexpr uint32_t kTheirRuntimeLaunches[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunch_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunch_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernelMultiDevice_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060,
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_ptsz_v13000,
};
constexpr uint32_t kTheirDriverLaunches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
};

template <size_t Mine, size_t Theirs>
constexpr bool same_list(const uint32_t (&mine)[Mine], const uint32_t (&theirs)[Theirs]) {
  if (Mine != Theirs) return false;
  for (size_t i = 0; i < Mine; ++i) {
    if (mine[i] != theirs[i]) return false;
  }
  return true;
}
static_assert(same_list(kRuntimeLaunchCalls, kTheirRuntimeLaunches));
static_assert(same_list(kDriverLaunchCalls, kTheirDriverLaunches));

// ---- activity records ----------------------------------------------------------------------------------------------

// Fields that every version of the kernel record has that Sonde supports.
#define SAME_KERNEL(theirs)                                             \
  SAME(KernelActivity, kind, theirs, kind);                             \
  SAME(KernelActivity, registers, theirs, registersPerThread);          \
  SAME(KernelActivity, start, theirs, start);                           \
  SAME(KernelActivity, end, theirs, end);                               \
  SAME(KernelActivity, completed, theirs, completed);                   \
  SAME(KernelActivity, device, theirs, deviceId);                       \
  SAME(KernelActivity, context, theirs, contextId);                     \
  SAME(KernelActivity, stream, theirs, streamId);                       \
  SAME(KernelActivity, grid_x, theirs, gridX);                          \
  SAME(KernelActivity, grid_y, theirs, gridY);                          \
  SAME(KernelActivity, grid_z, theirs, gridZ);                          \
  SAME(KernelActivity, block_x, theirs, blockX);                        \
  SAME(KernelActivity, block_y, theirs, blockY);                        \
  SAME(KernelActivity, block_z, theirs, blockZ);                        \
  SAME(KernelActivity, static_shared, theirs, staticSharedMemory);      \
  SAME(KernelActivity, dynamic_shared, theirs, dynamicSharedMemory);    \
  SAME(KernelActivity, local_per_thread, theirs, localMemoryPerThread); \
  SAME(KernelActivity, local_total, theirs, localMemoryTotal);          \
  SAME(KernelActivity, correlation, theirs, correlationId);             \
  SAME(KernelActivity, grid_id, theirs, gridId);                        \
  SAME(KernelActivity, name, theirs, name);                             \
  SAME(KernelActivity, queued, theirs, queued);                         \
  SAME(KernelActivity, submitted, theirs, submitted);                   \
  SAME(KernelActivity, launch_type, theirs, launchType);                \
  SAME(KernelActivity, shared_executed, theirs, sharedMemoryExecuted);  \
  SAME(KernelActivity, graph_node, theirs, graphNodeId);                \
  SAME(KernelActivity, shared_limit, theirs, shmemLimitConfig);         \
  SAME(KernelActivity, graph, theirs, graphId);                         \
  SAME(KernelActivity, access_policy, theirs, pAccessPolicyWindow);     \
  SAME(KernelActivity, channel, theirs, channelID);                     \
  SAME(KernelActivity, channel_type, theirs, channelType)
#define SAME_CLUSTER(theirs)                         \
  SAME(KernelActivity, cluster_x, theirs, clusterX); \
  SAME(KernelActivity, cluster_y, theirs, clusterY); \
  SAME(KernelActivity, cluster_z, theirs, clusterZ)
SAME_KERNEL(CUpti_ActivityKernel7);
SAME_KERNEL(CUpti_ActivityKernel8);
SAME_KERNEL(CUpti_ActivityKernel9);
SAME_KERNEL(CUpti_ActivityKernel10);
SAME_CLUSTER(CUpti_ActivityKernel8);
SAME_CLUSTER(CUpti_ActivityKernel9);
SAME_CLUSTER(CUpti_ActivityKernel10);
// What is read of the oldest form ends inside it.
static_assert(offsetof(KernelActivity, cluster_x) <= sizeof(CUpti_ActivityKernel7));
static_assert(sizeof(KernelActivity) <= sizeof(CUpti_ActivityKernel8));

#define SAME_COPY(theirs)                                                \
  SAME(CopyActivity, kind, theirs, kind);                                \
  SAME(CopyActivity, copy_kind, theirs, copyKind);                       \
  SAME(CopyActivity, source_kind, theirs, srcKind);                      \
  SAME(CopyActivity, destination_kind, theirs, dstKind);                 \
  SAME(CopyActivity, flags, theirs, flags);                              \
  SAME(CopyActivity, bytes, theirs, bytes);                              \
  SAME(CopyActivity, start, theirs, start);                              \
  SAME(CopyActivity, end, theirs, end);                                  \
  SAME(CopyActivity, device, theirs, deviceId);                          \
  SAME(CopyActivity, context, theirs, contextId);                        \
  SAME(CopyActivity, stream, theirs, streamId);                          \
  SAME(CopyActivity, correlation, theirs, correlationId);                \
  SAME(CopyActivity, runtime_correlation, theirs, runtimeCorrelationId); \
  SAME(CopyActivity, graph_node, theirs, graphNodeId);                   \
  SAME(CopyActivity, graph, theirs, graphId);                            \
  static_assert(sizeof(CopyActivity) <= sizeof(theirs))
SAME_COPY(CUpti_ActivityMemcpy4);
SAME_COPY(CUpti_ActivityMemcpy5);
SAME_COPY(CUpti_ActivityMemcpy6);

#define SAME_PEER_COPY(theirs)                                       \
  SAME(PeerCopyActivity, kind, theirs, kind);                        \
  SAME(PeerCopyActivity, copy_kind, theirs, copyKind);               \
  SAME(PeerCopyActivity, source_kind, theirs, srcKind);              \
  SAME(PeerCopyActivity, destination_kind, theirs, dstKind);         \
  SAME(PeerCopyActivity, flags, theirs, flags);                      \
  SAME(PeerCopyActivity, bytes, theirs, bytes);                      \
  SAME(PeerCopyActivity, start, theirs, start);                      \
  SAME(PeerCopyActivity, end, theirs, end);                          \
  SAME(PeerCopyActivity, device, theirs, deviceId);                  \
  SAME(PeerCopyActivity, context, theirs, contextId);                \
  SAME(PeerCopyActivity, stream, theirs, streamId);                  \
  SAME(PeerCopyActivity, source_device, theirs, srcDeviceId);        \
  SAME(PeerCopyActivity, source_context, theirs, srcContextId);      \
  SAME(PeerCopyActivity, destination_device, theirs, dstDeviceId);   \
  SAME(PeerCopyActivity, destination_context, theirs, dstContextId); \
  SAME(PeerCopyActivity, correlation, theirs, correlationId);        \
  SAME(PeerCopyActivity, graph_node, theirs, graphNodeId);           \
  SAME(PeerCopyActivity, graph, theirs, graphId);                    \
  static_assert(sizeof(PeerCopyActivity) <= sizeof(theirs))
SAME_PEER_COPY(CUpti_ActivityMemcpyPtoP3);
SAME_PEER_COPY(CUpti_ActivityMemcpyPtoP4);

#define SAME_SET(theirs)                                 \
  SAME(SetActivity, kind, theirs, kind);                 \
  SAME(SetActivity, value, theirs, value);               \
  SAME(SetActivity, bytes, theirs, bytes);               \
  SAME(SetActivity, start, theirs, start);               \
  SAME(SetActivity, end, theirs, end);                   \
  SAME(SetActivity, device, theirs, deviceId);           \
  SAME(SetActivity, context, theirs, contextId);         \
  SAME(SetActivity, stream, theirs, streamId);           \
  SAME(SetActivity, correlation, theirs, correlationId); \
  SAME(SetActivity, flags, theirs, flags);               \
  SAME(SetActivity, memory_kind, theirs, memoryKind);    \
  SAME(SetActivity, graph_node, theirs, graphNodeId);    \
  SAME(SetActivity, graph, theirs, graphId);             \
  static_assert(sizeof(SetActivity) <= sizeof(theirs))
SAME_SET(CUpti_ActivityMemset3);
SAME_SET(CUpti_ActivityMemset4);

#define SAME_SYNCHRONIZATION(theirs)                                 \
  SAME(SynchronizationActivity, kind, theirs, kind);                 \
  SAME(SynchronizationActivity, type, theirs, type);                 \
  SAME(SynchronizationActivity, start, theirs, start);               \
  SAME(SynchronizationActivity, end, theirs, end);                   \
  SAME(SynchronizationActivity, correlation, theirs, correlationId); \
  SAME(SynchronizationActivity, context, theirs, contextId);         \
  SAME(SynchronizationActivity, stream, theirs, streamId);           \
  SAME(SynchronizationActivity, event, theirs, cudaEventId);         \
  static_assert(sizeof(SynchronizationActivity) <= sizeof(theirs))
SAME_SYNCHRONIZATION(CUpti_ActivitySynchronization);
SAME_SYNCHRONIZATION(CUpti_ActivitySynchronization2);

#define SAME_MEMORY(theirs)                                                                \
  SAME(MemoryActivity, kind, theirs, kind);                                                \
  SAME(MemoryActivity, operation, theirs, memoryOperationType);                            \
  SAME(MemoryActivity, memory_kind, theirs, memoryKind);                                   \
  SAME(MemoryActivity, correlation, theirs, correlationId);                                \
  SAME(MemoryActivity, address, theirs, address);                                          \
  SAME(MemoryActivity, bytes, theirs, bytes);                                              \
  SAME(MemoryActivity, timestamp, theirs, timestamp);                                      \
  SAME(MemoryActivity, program_counter, theirs, PC);                                       \
  SAME(MemoryActivity, process, theirs, processId);                                        \
  SAME(MemoryActivity, device, theirs, deviceId);                                          \
  SAME(MemoryActivity, context, theirs, contextId);                                        \
  SAME(MemoryActivity, stream, theirs, streamId);                                          \
  SAME(MemoryActivity, name, theirs, name);                                                \
  SAME(MemoryActivity, asynchronous, theirs, isAsync);                                     \
  SAME(MemoryActivity, pool_type, theirs, memoryPoolConfig.memoryPoolType);                \
  SAME(MemoryActivity, pool_address, theirs, memoryPoolConfig.address);                    \
  SAME(MemoryActivity, pool_release_threshold, theirs, memoryPoolConfig.releaseThreshold); \
  SAME(MemoryActivity, pool_size, theirs, memoryPoolConfig.pool.size);                     \
  static_assert(sizeof(MemoryActivity) <= sizeof(theirs))
SAME_MEMORY(CUpti_ActivityMemory2);
SAME_MEMORY(CUpti_ActivityMemory3);
SAME_MEMORY(CUpti_ActivityMemory4);

#define SAME_POOL(theirs)                                                \
  SAME(MemoryPoolActivity, kind, theirs, kind);                          \
  SAME(MemoryPoolActivity, operation, theirs, memoryPoolOperationType);  \
  SAME(MemoryPoolActivity, pool_type, theirs, memoryPoolType);           \
  SAME(MemoryPoolActivity, correlation, theirs, correlationId);          \
  SAME(MemoryPoolActivity, process, theirs, processId);                  \
  SAME(MemoryPoolActivity, device, theirs, deviceId);                    \
  SAME(MemoryPoolActivity, minimum_kept, theirs, minBytesToKeep);        \
  SAME(MemoryPoolActivity, address, theirs, address);                    \
  SAME(MemoryPoolActivity, size, theirs, size);                          \
  SAME(MemoryPoolActivity, release_threshold, theirs, releaseThreshold); \
  SAME(MemoryPoolActivity, timestamp, theirs, timestamp);                \
  SAME(MemoryPoolActivity, used, theirs, utilizedSize);                  \
  static_assert(sizeof(MemoryPoolActivity) <= sizeof(theirs))
SAME_POOL(CUpti_ActivityMemoryPool2);
SAME_POOL(CUpti_ActivityMemoryPool3);

SAME(ApiActivity, kind, CUpti_ActivityAPI, kind);
SAME(ApiActivity, callback, CUpti_ActivityAPI, cbid);
SAME(ApiActivity, start, CUpti_ActivityAPI, start);
SAME(ApiActivity, end, CUpti_ActivityAPI, end);
SAME(ApiActivity, process, CUpti_ActivityAPI, processId);
SAME(ApiActivity, thread, CUpti_ActivityAPI, threadId);
SAME(ApiActivity, correlation, CUpti_ActivityAPI, correlationId);
SAME(ApiActivity, result, CUpti_ActivityAPI, returnValue);
static_assert(sizeof(ApiActivity) == sizeof(CUpti_ActivityAPI));

#define SAME_OVERHEAD(theirs)                                      \
  SAME(OverheadActivity, kind, theirs, kind);                      \
  SAME(OverheadActivity, overhead, theirs, overheadKind);          \
  SAME(OverheadActivity, object_kind, theirs, objectKind);         \
  SAME(OverheadActivity, object, theirs, objectId);                \
  SAME(OverheadActivity, object[1], theirs, objectId.pt.threadId); \
  SAME(OverheadActivity, start, theirs, start);                    \
  SAME(OverheadActivity, end, theirs, end);                        \
  static_assert(sizeof(OverheadActivity) <= sizeof(theirs))
SAME_OVERHEAD(CUpti_ActivityOverhead);
SAME_OVERHEAD(CUpti_ActivityOverhead2);
SAME_OVERHEAD(CUpti_ActivityOverhead3);

#define SAME_DEVICE(theirs)                                               \
  SAME(DeviceActivity, kind, theirs, kind);                               \
  SAME(DeviceActivity, bandwidth, theirs, globalMemoryBandwidth);         \
  SAME(DeviceActivity, memory, theirs, globalMemorySize);                 \
  SAME(DeviceActivity, constant_memory, theirs, constantMemorySize);      \
  SAME(DeviceActivity, l2_bytes, theirs, l2CacheSize);                    \
  SAME(DeviceActivity, warp, theirs, numThreadsPerWarp);                  \
  SAME(DeviceActivity, core_clock, theirs, coreClockRate);                \
  SAME(DeviceActivity, copy_engines, theirs, numMemcpyEngines);           \
  SAME(DeviceActivity, multiprocessors, theirs, numMultiprocessors);      \
  SAME(DeviceActivity, capability_major, theirs, computeCapabilityMajor); \
  SAME(DeviceActivity, capability_minor, theirs, computeCapabilityMinor); \
  SAME(DeviceActivity, id, theirs, id);                                   \
  SAME(DeviceActivity, uuid, theirs, uuid);                               \
  SAME(DeviceActivity, name, theirs, name);                               \
  static_assert(sizeof(DeviceActivity) <= sizeof(theirs))
SAME_DEVICE(CUpti_ActivityDevice4);
SAME_DEVICE(CUpti_ActivityDevice5);

#define SAME_CONTEXT(theirs)                                \
  SAME(ContextActivity, kind, theirs, kind);                \
  SAME(ContextActivity, context, theirs, contextId);        \
  SAME(ContextActivity, device, theirs, deviceId);          \
  SAME(ContextActivity, null_stream, theirs, nullStreamId); \
  static_assert(sizeof(ContextActivity) <= sizeof(theirs))
SAME_CONTEXT(CUpti_ActivityContext);
SAME_CONTEXT(CUpti_ActivityContext2);
SAME_CONTEXT(CUpti_ActivityContext3);

SAME(StreamActivity, kind, CUpti_ActivityStream, kind);
SAME(StreamActivity, context, CUpti_ActivityStream, contextId);
SAME(StreamActivity, stream, CUpti_ActivityStream, streamId);
SAME(StreamActivity, priority, CUpti_ActivityStream, priority);
SAME(StreamActivity, flag, CUpti_ActivityStream, flag);
static_assert(sizeof(StreamActivity) == sizeof(CUpti_ActivityStream));

SAME(ModuleActivity, kind, CUpti_ActivityModule, kind);
SAME(ModuleActivity, context, CUpti_ActivityModule, contextId);
SAME(ModuleActivity, id, CUpti_ActivityModule, id);
SAME(ModuleActivity, bytes, CUpti_ActivityModule, cubinSize);
SAME(ModuleActivity, code, CUpti_ActivityModule, cubin);
static_assert(sizeof(ModuleActivity) == sizeof(CUpti_ActivityModule));

SAME(FunctionActivity, kind, CUpti_ActivityFunction, kind);
SAME(FunctionActivity, id, CUpti_ActivityFunction, id);
SAME(FunctionActivity, context, CUpti_ActivityFunction, contextId);
SAME(FunctionActivity, module, CUpti_ActivityFunction, moduleId);
SAME(FunctionActivity, index, CUpti_ActivityFunction, functionIndex);
SAME(FunctionActivity, name, CUpti_ActivityFunction, name);
static_assert(sizeof(FunctionActivity) == sizeof(CUpti_ActivityFunction));

#define SAME_GRAPH_TRACE(theirs)                                \
  SAME(GraphTraceActivity, kind, theirs, kind);                 \
  SAME(GraphTraceActivity, correlation, theirs, correlationId); \
  SAME(GraphTraceActivity, start, theirs, start);               \
  SAME(GraphTraceActivity, end, theirs, end);                   \
  SAME(GraphTraceActivity, device, theirs, deviceId);           \
  SAME(GraphTraceActivity, graph, theirs, graphId);             \
  SAME(GraphTraceActivity, context, theirs, contextId);         \
  SAME(GraphTraceActivity, stream, theirs, streamId);           \
  static_assert(sizeof(GraphTraceActivity) <= sizeof(theirs))
SAME_GRAPH_TRACE(CUpti_ActivityGraphTrace);
SAME_GRAPH_TRACE(CUpti_ActivityGraphTrace2);

SAME(DeviceGraphTraceActivity, kind, CUpti_ActivityDeviceGraphTrace, kind);
SAME(DeviceGraphTraceActivity, device, CUpti_ActivityDeviceGraphTrace, deviceId);
SAME(DeviceGraphTraceActivity, start, CUpti_ActivityDeviceGraphTrace, start);
SAME(DeviceGraphTraceActivity, end, CUpti_ActivityDeviceGraphTrace, end);
SAME(DeviceGraphTraceActivity, graph, CUpti_ActivityDeviceGraphTrace, graphId);
SAME(DeviceGraphTraceActivity, context, CUpti_ActivityDeviceGraphTrace, contextId);
SAME(DeviceGraphTraceActivity, stream, CUpti_ActivityDeviceGraphTrace, streamId);
static_assert(sizeof(DeviceGraphTraceActivity) <= sizeof(CUpti_ActivityDeviceGraphTrace));

#define SAME_UNIFIED_MEMORY(theirs)                          \
  SAME(UnifiedMemoryActivity, kind, theirs, kind);           \
  SAME(UnifiedMemoryActivity, counter, theirs, counterKind); \
  SAME(UnifiedMemoryActivity, value, theirs, value);         \
  SAME(UnifiedMemoryActivity, start, theirs, start);         \
  SAME(UnifiedMemoryActivity, end, theirs, end);             \
  SAME(UnifiedMemoryActivity, address, theirs, address);     \
  SAME(UnifiedMemoryActivity, source, theirs, srcId);        \
  SAME(UnifiedMemoryActivity, destination, theirs, dstId);   \
  SAME(UnifiedMemoryActivity, stream, theirs, streamId);     \
  SAME(UnifiedMemoryActivity, process, theirs, processId);   \
  SAME(UnifiedMemoryActivity, flags, theirs, flags);         \
  static_assert(sizeof(UnifiedMemoryActivity) <= sizeof(theirs))
SAME_UNIFIED_MEMORY(CUpti_ActivityUnifiedMemoryCounter2);
SAME_UNIFIED_MEMORY(CUpti_ActivityUnifiedMemoryCounter3);

SAME(UnifiedMemoryCounterConfig, scope, CUpti_ActivityUnifiedMemoryCounterConfig, scope);
SAME(UnifiedMemoryCounterConfig, counter, CUpti_ActivityUnifiedMemoryCounterConfig, kind);
SAME(UnifiedMemoryCounterConfig, device, CUpti_ActivityUnifiedMemoryCounterConfig, deviceId);
SAME(UnifiedMemoryCounterConfig, enable, CUpti_ActivityUnifiedMemoryCounterConfig, enable);
static_assert(sizeof(UnifiedMemoryCounterConfig) == sizeof(CUpti_ActivityUnifiedMemoryCounterConfig));

// The lengths that the tests' synthetic buffers give to records. Which version brought a form is known for the newest
// only; the older forms show that the decoder follows each length.
#define LENGTH(kind_id, version, theirs) \
  static_assert(sonde::test::record_bytes(kind::kind_id, version) == sizeof(theirs))
LENGTH(kConcurrentKernel, kCupti11_6, CUpti_ActivityKernel7);
LENGTH(kConcurrentKernel, kCupti11_8, CUpti_ActivityKernel8);
LENGTH(kConcurrentKernel, kCupti12_0, CUpti_ActivityKernel9);
LENGTH(kConcurrentKernel, kCupti13_0, CUpti_ActivityKernel10);
LENGTH(kMemcpy, kCupti11_6, CUpti_ActivityMemcpy4);
LENGTH(kMemcpy, kCupti12_0, CUpti_ActivityMemcpy5);
LENGTH(kMemcpy, kCupti13_0, CUpti_ActivityMemcpy6);
LENGTH(kMemcpyPeer, kCupti11_6, CUpti_ActivityMemcpyPtoP3);
LENGTH(kMemcpyPeer, kCupti13_0, CUpti_ActivityMemcpyPtoP4);
LENGTH(kMemset, kCupti11_6, CUpti_ActivityMemset3);
LENGTH(kMemset, kCupti13_0, CUpti_ActivityMemset4);
LENGTH(kSynchronization, kCupti12_0, CUpti_ActivitySynchronization);
LENGTH(kSynchronization, kCupti13_0, CUpti_ActivitySynchronization2);
LENGTH(kMemory, kCupti12_0, CUpti_ActivityMemory3);
LENGTH(kMemory, kCupti13_0, CUpti_ActivityMemory4);
LENGTH(kMemoryPool, kCupti12_0, CUpti_ActivityMemoryPool2);
LENGTH(kMemoryPool, kCupti13_0, CUpti_ActivityMemoryPool3);
LENGTH(kRuntime, kCupti13_0, CUpti_ActivityAPI);
LENGTH(kDriver, kCupti13_0, CUpti_ActivityAPI);
LENGTH(kOverhead, kCupti12_0, CUpti_ActivityOverhead);
LENGTH(kOverhead, kCupti13_0, CUpti_ActivityOverhead3);
LENGTH(kDevice, kCupti12_0, CUpti_ActivityDevice4);
LENGTH(kDevice, kCupti13_0, CUpti_ActivityDevice5);
LENGTH(kContext, kCupti12_0, CUpti_ActivityContext);
LENGTH(kContext, kCupti12_8, CUpti_ActivityContext2);
LENGTH(kContext, kCupti13_0, CUpti_ActivityContext3);
LENGTH(kStream, kCupti13_0, CUpti_ActivityStream);
LENGTH(kModule, kCupti13_0, CUpti_ActivityModule);
LENGTH(kFunction, kCupti13_0, CUpti_ActivityFunction);
LENGTH(kGraphTrace, kCupti12_0, CUpti_ActivityGraphTrace);
LENGTH(kGraphTrace, kCupti13_0, CUpti_ActivityGraphTrace2);
LENGTH(kDeviceGraphTrace, kCupti13_0, CUpti_ActivityDeviceGraphTrace);
LENGTH(kUnifiedMemoryCounter, kCupti12_0, CUpti_ActivityUnifiedMemoryCounter2);
LENGTH(kUnifiedMemoryCounter, kCupti13_0, CUpti_ActivityUnifiedMemoryCounter3);
static_assert(sonde::test::record_bytes(39, kCupti13_0) == sizeof(CUpti_ActivityExternalCorrelation));

// ---- callbacks -----------------------------------------------------------------------------------------------------

SAME(CallData, site, CUpti_CallbackData, callbackSite);
SAME(ResourceData, context, CUpti_ResourceData, context);
SAME(ResourceData, stream, CUpti_ResourceData, resourceHandle.stream);
SAME(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME(ModuleData, module, CUpti_ModuleResourceData, moduleId);
SAME(ModuleData, bytes, CUpti_ModuleResourceData, cubinSize);
SAME(ModuleData, code, CUpti_ModuleResourceData, pCubin);
SAME(GraphData, graph, CUpti_GraphData, graph);
SAME(GraphData, original_graph, CUpti_GraphData, originalGraph);
SAME(GraphData, node, CUpti_GraphData, node);
SAME(GraphData, graph_exec, CUpti_GraphData, graphExec);

// ---- functions: as many arguments, of the same sizes and kinds -----------------------------------------------------

template <typename Type>
struct Shape {
  static constexpr bool pointer = std::is_pointer_v<Type>;
  static constexpr size_t bytes = sizeof(Type);
};

template <typename Mine, typename Theirs>
struct SameFunction : std::false_type {};
template <typename MyResult, typename... Mine, typename TheirResult, typename... Theirs>
struct SameFunction<MyResult (*)(Mine...), TheirResult (*)(Theirs...)> {
  static constexpr bool arguments() {
    if constexpr (sizeof...(Mine) != sizeof...(Theirs)) {
      return false;
    } else {
      return ((Shape<Mine>::pointer == Shape<Theirs>::pointer && Shape<Mine>::bytes == Shape<Theirs>::bytes) && ...);
    }
  }
  static constexpr bool results() {
    if constexpr (std::is_void_v<MyResult> || std::is_void_v<TheirResult>) {
      return std::is_void_v<MyResult> && std::is_void_v<TheirResult>;
    } else {
      return sizeof(MyResult) == sizeof(TheirResult);
    }
  }
  static constexpr bool value = results() && arguments();
};

#define SAME_FUNCTION(member, function) \
  static_assert(SameFunction<decltype(CuptiApi::member), decltype(&function)>::value, #function)
SAME_FUNCTION(get_version, cuptiGetVersion);
SAME_FUNCTION(get_result_string, cuptiGetResultString);
SAME_FUNCTION(activity_register_callbacks, cuptiActivityRegisterCallbacks);
SAME_FUNCTION(activity_enable, cuptiActivityEnable);
SAME_FUNCTION(activity_disable, cuptiActivityDisable);
SAME_FUNCTION(activity_flush_all, cuptiActivityFlushAll);
SAME_FUNCTION(activity_get_next_record, cuptiActivityGetNextRecord);
SAME_FUNCTION(activity_enable_and_dump, cuptiActivityEnableAndDump);
SAME_FUNCTION(activity_get_dropped, cuptiActivityGetNumDroppedRecords);
SAME_FUNCTION(activity_register_timestamp, cuptiActivityRegisterTimestampCallback);
SAME_FUNCTION(activity_set_attribute, cuptiActivitySetAttribute);
SAME_FUNCTION(activity_enable_runtime_call, cuptiActivityEnableRuntimeApi);
SAME_FUNCTION(activity_enable_driver_call, cuptiActivityEnableDriverApi);
SAME_FUNCTION(activity_configure_counters, cuptiActivityConfigureUnifiedMemoryCounter);
SAME_FUNCTION(set_thread_id_type, cuptiSetThreadIdType);
SAME_FUNCTION(get_timestamp, cuptiGetTimestamp);
SAME_FUNCTION(get_callback_name, cuptiGetCallbackName);
SAME_FUNCTION(subscribe, cuptiSubscribe);
SAME_FUNCTION(unsubscribe, cuptiUnsubscribe);
SAME_FUNCTION(enable_callback, cuptiEnableCallback);
SAME_FUNCTION(get_context_id, cuptiGetContextId);
SAME_FUNCTION(get_stream_id, cuptiGetStreamIdEx);
SAME_FUNCTION(get_graph_id, cuptiGetGraphId);
SAME_FUNCTION(get_graph_exec_id, cuptiGetGraphExecId);
static_assert(SameFunction<BufferRequested, CUpti_BuffersCallbackRequestFunc>::value);
static_assert(SameFunction<BufferCompleted, CUpti_BuffersCallbackCompleteFunc>::value);
static_assert(SameFunction<TimestampCallback, CUpti_TimestampCallbackFunc>::value);
static_assert(SameFunction<Callback, CUpti_CallbackFunc>::value);

// ---- NVTX ----------------------------------------------------------------------------------------------------------

SAME_VALUE(nvtx::kTableCallbacks, NVTX_ETID_CALLBACKS);
SAME_VALUE(nvtx::kModuleCore, NVTX_CB_MODULE_CORE);
SAME_VALUE(nvtx::kModuleCuda, NVTX_CB_MODULE_CUDA);
SAME_VALUE(nvtx::kModuleCudaRuntime, NVTX_CB_MODULE_CUDART);
SAME_VALUE(nvtx::kModuleCore2, NVTX_CB_MODULE_CORE2);
SAME_VALUE(nvtx::core::kMarkEx, NVTX_CBID_CORE_MarkEx);
SAME_VALUE(nvtx::core::kMarkA, NVTX_CBID_CORE_MarkA);
SAME_VALUE(nvtx::core::kMarkW, NVTX_CBID_CORE_MarkW);
SAME_VALUE(nvtx::core::kRangeStartEx, NVTX_CBID_CORE_RangeStartEx);
SAME_VALUE(nvtx::core::kRangeStartA, NVTX_CBID_CORE_RangeStartA);
SAME_VALUE(nvtx::core::kRangeStartW, NVTX_CBID_CORE_RangeStartW);
SAME_VALUE(nvtx::core::kRangeEnd, NVTX_CBID_CORE_RangeEnd);
SAME_VALUE(nvtx::core::kRangePushEx, NVTX_CBID_CORE_RangePushEx);
SAME_VALUE(nvtx::core::kRangePushA, NVTX_CBID_CORE_RangePushA);
SAME_VALUE(nvtx::core::kRangePushW, NVTX_CBID_CORE_RangePushW);
SAME_VALUE(nvtx::core::kRangePop, NVTX_CBID_CORE_RangePop);
SAME_VALUE(nvtx::core::kNameCategoryA, NVTX_CBID_CORE_NameCategoryA);
SAME_VALUE(nvtx::core::kNameCategoryW, NVTX_CBID_CORE_NameCategoryW);
SAME_VALUE(nvtx::core::kNameThreadA, NVTX_CBID_CORE_NameOsThreadA);
SAME_VALUE(nvtx::core::kNameThreadW, NVTX_CBID_CORE_NameOsThreadW);
SAME_VALUE(nvtx::core2::kDomainMarkEx, NVTX_CBID_CORE2_DomainMarkEx);
SAME_VALUE(nvtx::core2::kDomainRangeStartEx, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME_VALUE(nvtx::core2::kDomainRangeEnd, NVTX_CBID_CORE2_DomainRangeEnd);
SAME_VALUE(nvtx::core2::kDomainRangePushEx, NVTX_CBID_CORE2_DomainRangePushEx);
SAME_VALUE(nvtx::core2::kDomainRangePop, NVTX_CBID_CORE2_DomainRangePop);
SAME_VALUE(nvtx::core2::kDomainResourceCreate, NVTX_CBID_CORE2_DomainResourceCreate);
SAME_VALUE(nvtx::core2::kDomainResourceDestroy, NVTX_CBID_CORE2_DomainResourceDestroy);
SAME_VALUE(nvtx::core2::kDomainNameCategoryA, NVTX_CBID_CORE2_DomainNameCategoryA);
SAME_VALUE(nvtx::core2::kDomainNameCategoryW, NVTX_CBID_CORE2_DomainNameCategoryW);
SAME_VALUE(nvtx::core2::kDomainRegisterStringA, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME_VALUE(nvtx::core2::kDomainRegisterStringW, NVTX_CBID_CORE2_DomainRegisterStringW);
SAME_VALUE(nvtx::core2::kDomainCreateA, NVTX_CBID_CORE2_DomainCreateA);
SAME_VALUE(nvtx::core2::kDomainCreateW, NVTX_CBID_CORE2_DomainCreateW);
SAME_VALUE(nvtx::core2::kDomainDestroy, NVTX_CBID_CORE2_DomainDestroy);
SAME_VALUE(nvtx::core2::kInitialize, NVTX_CBID_CORE2_Initialize);
SAME_VALUE(nvtx::cuda::kNameDeviceA, NVTX_CBID_CUDA_NameCuDeviceA);
SAME_VALUE(nvtx::cuda::kNameDeviceW, NVTX_CBID_CUDA_NameCuDeviceW);
SAME_VALUE(nvtx::cuda::kNameContextA, NVTX_CBID_CUDA_NameCuContextA);
SAME_VALUE(nvtx::cuda::kNameContextW, NVTX_CBID_CUDA_NameCuContextW);
SAME_VALUE(nvtx::cuda::kNameStreamA, NVTX_CBID_CUDA_NameCuStreamA);
SAME_VALUE(nvtx::cuda::kNameStreamW, NVTX_CBID_CUDA_NameCuStreamW);
SAME_VALUE(nvtx::cuda::kNameEventA, NVTX_CBID_CUDA_NameCuEventA);
SAME_VALUE(nvtx::cuda::kNameEventW, NVTX_CBID_CUDA_NameCuEventW);
SAME_VALUE(nvtx::cuda_runtime::kNameDeviceA, NVTX_CBID_CUDART_NameCudaDeviceA);
SAME_VALUE(nvtx::cuda_runtime::kNameDeviceW, NVTX_CBID_CUDART_NameCudaDeviceW);
SAME_VALUE(nvtx::cuda_runtime::kNameStreamA, NVTX_CBID_CUDART_NameCudaStreamA);
SAME_VALUE(nvtx::cuda_runtime::kNameStreamW, NVTX_CBID_CUDART_NameCudaStreamW);
SAME_VALUE(nvtx::cuda_runtime::kNameEventA, NVTX_CBID_CUDART_NameCudaEventA);
SAME_VALUE(nvtx::cuda_runtime::kNameEventW, NVTX_CBID_CUDART_NameCudaEventW);
SAME_VALUE(nvtx::kColorArgb, NVTX_COLOR_ARGB);
SAME_VALUE(nvtx::kMessageAscii, NVTX_MESSAGE_TYPE_ASCII);
SAME_VALUE(nvtx::kMessageWide, NVTX_MESSAGE_TYPE_UNICODE);
SAME_VALUE(nvtx::kMessageRegistered, NVTX_MESSAGE_TYPE_REGISTERED);
SAME_VALUE(nvtx::kPayloadUint64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
SAME_VALUE(nvtx::kPayloadInt64, NVTX_PAYLOAD_TYPE_INT64);
SAME_VALUE(nvtx::kPayloadDouble, NVTX_PAYLOAD_TYPE_DOUBLE);
SAME_VALUE(nvtx::kPayloadUint32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
SAME_VALUE(nvtx::kPayloadInt32, NVTX_PAYLOAD_TYPE_INT32);
SAME_VALUE(nvtx::kPayloadFloat, NVTX_PAYLOAD_TYPE_FLOAT);
SAME_VALUE(nvtx::kResourcePointer, NVTX_RESOURCE_TYPE_GENERIC_POINTER);
SAME_VALUE(nvtx::kResourceHandle, NVTX_RESOURCE_TYPE_GENERIC_HANDLE);
SAME_VALUE(nvtx::kResourceThreadNative, NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE);
SAME_VALUE(nvtx::kResourceThreadPosix, NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX);

SAME(nvtx::EventAttributes, version, nvtxEventAttributes_t, version);
SAME(nvtx::EventAttributes, size, nvtxEventAttributes_t, size);
SAME(nvtx::EventAttributes, category, nvtxEventAttributes_t, category);
SAME(nvtx::EventAttributes, color_type, nvtxEventAttributes_t, colorType);
SAME(nvtx::EventAttributes, color, nvtxEventAttributes_t, color);
SAME(nvtx::EventAttributes, payload_type, nvtxEventAttributes_t, payloadType);
SAME(nvtx::EventAttributes, payload, nvtxEventAttributes_t, payload);
SAME(nvtx::EventAttributes, message_type, nvtxEventAttributes_t, messageType);
SAME(nvtx::EventAttributes, message, nvtxEventAttributes_t, message);
static_assert(sizeof(nvtx::EventAttributes) == sizeof(nvtxEventAttributes_t));
SAME(nvtx::ResourceAttributes, version, nvtxResourceAttributes_t, version);
SAME(nvtx::ResourceAttributes, size, nvtxResourceAttributes_t, size);
SAME(nvtx::ResourceAttributes, identifier_type, nvtxResourceAttributes_t, identifierType);
SAME(nvtx::ResourceAttributes, identifier, nvtxResourceAttributes_t, identifier);
SAME(nvtx::ResourceAttributes, message_type, nvtxResourceAttributes_t, messageType);
SAME(nvtx::ResourceAttributes, message, nvtxResourceAttributes_t, message);
static_assert(sizeof(nvtx::ResourceAttributes) == sizeof(nvtxResourceAttributes_t));
SAME(nvtx::ExportTableCallbacks, struct_size, NvtxExportTableCallbacks, struct_size);
SAME(nvtx::ExportTableCallbacks, get_module_function_table, NvtxExportTableCallbacks, GetModuleFunctionTable);
static_assert(sizeof(nvtxRangeId_t) == sizeof(uint64_t));

}  // namespace

int main() { return 0; }
