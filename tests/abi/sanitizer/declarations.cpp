// Compares Sonde's declarations of the Compute Sanitizer with the real headers. The assertions act while this compiles.
#include <cuda.h>
#include <sanitizer.h>

#include <generated_cuda_meta.h>

#include <cstddef>
#include <type_traits>

#include "sanitizer_api.h"
#include "sanitizer_types.h"

namespace {

namespace mine = sonde::cuda::access;

// The same offset and the same size of a field.
#define SAME(type, field, theirs, their_field)                                                   \
  static_assert(offsetof(mine::type, field) == offsetof(theirs, their_field), #type "." #field); \
  static_assert(sizeof(((mine::type *)nullptr)->field) == sizeof(((theirs *)nullptr)->their_field), #type "." #field)

#define SAME_VALUE(value, theirs) static_assert(static_cast<int64_t>(value) == static_cast<int64_t>(theirs), #theirs)

// ---- numbers -------------------------------------------------------------------------------------------------------

SAME_VALUE(mine::kSanitizerSuccess, SANITIZER_SUCCESS);
static_assert(sizeof(mine::SanitizerResult) == sizeof(SanitizerResult));

SAME_VALUE(mine::domain::kDriverApi, SANITIZER_CB_DOMAIN_DRIVER_API);
SAME_VALUE(mine::domain::kResource, SANITIZER_CB_DOMAIN_RESOURCE);
SAME_VALUE(mine::domain::kLaunch, SANITIZER_CB_DOMAIN_LAUNCH);
SAME_VALUE(mine::domain::kMemcpy, SANITIZER_CB_DOMAIN_MEMCPY);
SAME_VALUE(mine::domain::kMemset, SANITIZER_CB_DOMAIN_MEMSET);
SAME_VALUE(mine::domain::kGraphs, SANITIZER_CB_DOMAIN_GRAPHS);

SAME_VALUE(mine::driver_call::kMemMap, SANITIZER_CBID_DRIVER_API_cuMemMap);
SAME_VALUE(mine::driver_call::kMemUnmap, SANITIZER_CBID_DRIVER_API_cuMemUnmap);

// The watcher's lists of calls that launch and that end a context rest on these.
SAME_VALUE(115, SANITIZER_CBID_DRIVER_API_cuLaunch);
SAME_VALUE(116, SANITIZER_CBID_DRIVER_API_cuLaunchGrid);
SAME_VALUE(117, SANITIZER_CBID_DRIVER_API_cuLaunchGridAsync);
SAME_VALUE(307, SANITIZER_CBID_DRIVER_API_cuLaunchKernel);
SAME_VALUE(442, SANITIZER_CBID_DRIVER_API_cuLaunchKernel_ptsz);
SAME_VALUE(477, SANITIZER_CBID_DRIVER_API_cuLaunchCooperativeKernel);
SAME_VALUE(478, SANITIZER_CBID_DRIVER_API_cuLaunchCooperativeKernel_ptsz);
SAME_VALUE(480, SANITIZER_CBID_DRIVER_API_cuLaunchCooperativeKernelMultiDevice);
SAME_VALUE(514, SANITIZER_CBID_DRIVER_API_cuGraphLaunch);
SAME_VALUE(515, SANITIZER_CBID_DRIVER_API_cuGraphLaunch_ptsz);
SAME_VALUE(652, SANITIZER_CBID_DRIVER_API_cuLaunchKernelEx);
SAME_VALUE(653, SANITIZER_CBID_DRIVER_API_cuLaunchKernelEx_ptsz);
SAME_VALUE(11, SANITIZER_CBID_DRIVER_API_cuCtxDestroy);
SAME_VALUE(13, SANITIZER_CBID_DRIVER_API_cuCtxDetach);
SAME_VALUE(322, SANITIZER_CBID_DRIVER_API_cuCtxDestroy_v2);
SAME_VALUE(389, SANITIZER_CBID_DRIVER_API_cuDevicePrimaryCtxReset);
SAME_VALUE(545, SANITIZER_CBID_DRIVER_API_cuDevicePrimaryCtxReset_v2);

SAME_VALUE(mine::resource::kContextCreated, SANITIZER_CBID_RESOURCE_CONTEXT_CREATION_FINISHED);
SAME_VALUE(mine::resource::kContextDestroyStarting, SANITIZER_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME_VALUE(mine::resource::kModuleLoaded, SANITIZER_CBID_RESOURCE_MODULE_LOADED);
SAME_VALUE(mine::resource::kModuleUnloadStarting, SANITIZER_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
SAME_VALUE(mine::resource::kDeviceAllocated, SANITIZER_CBID_RESOURCE_DEVICE_MEMORY_ALLOC);
SAME_VALUE(mine::resource::kDeviceFreed, SANITIZER_CBID_RESOURCE_DEVICE_MEMORY_FREE);
SAME_VALUE(mine::resource::kHostAllocated, SANITIZER_CBID_RESOURCE_HOST_MEMORY_ALLOC);
SAME_VALUE(mine::resource::kHostFreed, SANITIZER_CBID_RESOURCE_HOST_MEMORY_FREE);
SAME_VALUE(mine::resource::kAllocatedAsync, SANITIZER_CBID_RESOURCE_MEMORY_ALLOC_ASYNC);
SAME_VALUE(mine::resource::kFreedAsync, SANITIZER_CBID_RESOURCE_MEMORY_FREE_ASYNC);
SAME_VALUE(mine::resource::kPoolPointerImported, SANITIZER_CBID_RESOURCE_MEMPOOL_IMPORT_POINTER);

SAME_VALUE(mine::launch::kBegin, SANITIZER_CBID_LAUNCH_BEGIN);
SAME_VALUE(mine::launch::kEnd, SANITIZER_CBID_LAUNCH_END);

SAME_VALUE(mine::kTransferStarting, SANITIZER_CBID_MEMCPY_STARTING);
SAME_VALUE(mine::kTransferStarting, SANITIZER_CBID_MEMSET_STARTING);
SAME_VALUE(1, SANITIZER_MEMCPY_DIRECTION_HOST_TO_HOST);
SAME_VALUE(2, SANITIZER_MEMCPY_DIRECTION_HOST_TO_DEVICE);
SAME_VALUE(3, SANITIZER_MEMCPY_DIRECTION_DEVICE_TO_HOST);
SAME_VALUE(4, SANITIZER_MEMCPY_DIRECTION_DEVICE_TO_DEVICE);

SAME_VALUE(mine::graphs::kExecCreated, SANITIZER_CBID_GRAPHS_GRAPHEXEC_CREATED);
SAME_VALUE(mine::graphs::kNodeBegin, SANITIZER_CBID_GRAPHS_NODE_LAUNCH_BEGIN);
SAME_VALUE(mine::graphs::kNodeEnd, SANITIZER_CBID_GRAPHS_NODE_LAUNCH_END);
SAME_VALUE(mine::graphs::kLaunchBegin, SANITIZER_CBID_GRAPHS_LAUNCH_BEGIN);
SAME_VALUE(mine::graphs::kLaunchEnd, SANITIZER_CBID_GRAPHS_LAUNCH_END);

SAME_VALUE(mine::instruction::kBlockEnter, SANITIZER_INSTRUCTION_BLOCK_ENTER);
SAME_VALUE(mine::instruction::kBlockExit, SANITIZER_INSTRUCTION_BLOCK_EXIT);
SAME_VALUE(mine::instruction::kGlobalAccess, SANITIZER_INSTRUCTION_GLOBAL_MEMORY_ACCESS);
SAME_VALUE(mine::instruction::kSharedAccess, SANITIZER_INSTRUCTION_SHARED_MEMORY_ACCESS);
SAME_VALUE(mine::instruction::kBarrier, SANITIZER_INSTRUCTION_BARRIER);
SAME_VALUE(mine::instruction::kWarpBarrier, SANITIZER_INSTRUCTION_SYNCWARP);
SAME_VALUE(mine::instruction::kCall, SANITIZER_INSTRUCTION_CALL);
SAME_VALUE(mine::instruction::kReturn, SANITIZER_INSTRUCTION_RET);
SAME_VALUE(mine::instruction::kDeviceMalloc, SANITIZER_INSTRUCTION_DEVICE_SIDE_MALLOC);
SAME_VALUE(mine::instruction::kDeviceFree, SANITIZER_INSTRUCTION_DEVICE_SIDE_FREE);
SAME_VALUE(mine::instruction::kCudaBarrier, SANITIZER_INSTRUCTION_CUDA_BARRIER);
SAME_VALUE(mine::instruction::kMemcpyAsync, SANITIZER_INSTRUCTION_MEMCPY_ASYNC);
SAME_VALUE(mine::instruction::kPipelineCommit, SANITIZER_INSTRUCTION_PIPELINE_COMMIT);
SAME_VALUE(mine::instruction::kPipelineWait, SANITIZER_INSTRUCTION_PIPELINE_WAIT);
SAME_VALUE(mine::instruction::kDeviceAlignedMalloc, SANITIZER_INSTRUCTION_DEVICE_ALIGNED_MALLOC);
SAME_VALUE(mine::instruction::kClusterArrive, SANITIZER_INSTRUCTION_CLUSTER_BARRIER_ARRIVE);
SAME_VALUE(mine::instruction::kClusterWait, SANITIZER_INSTRUCTION_CLUSTER_BARRIER_WAIT);
SAME_VALUE(mine::instruction::kBulkGlobalToShared, SANITIZER_INSTRUCTION_BULK_COPY_GLOBAL_TO_SHARED);
SAME_VALUE(mine::instruction::kBulkSharedToGlobal, SANITIZER_INSTRUCTION_BULK_COPY_SHARED_TO_GLOBAL);
SAME_VALUE(mine::instruction::kBulkReduceToGlobal, SANITIZER_INSTRUCTION_BULK_REDUCTION_SHARED_TO_GLOBAL);

SAME_VALUE(mine::kGraphNodeKernel, CU_GRAPH_NODE_TYPE_KERNEL);
SAME_VALUE(mine::kGraphNodeMemcpy, CU_GRAPH_NODE_TYPE_MEMCPY);
SAME_VALUE(mine::kGraphNodeMemset, CU_GRAPH_NODE_TYPE_MEMSET);
SAME_VALUE(mine::kMemoryModule, SANITIZER_MEMORY_FLAG_MODULE);
SAME_VALUE(mine::kMemoryManaged, SANITIZER_MEMORY_FLAG_MANAGED);
SAME_VALUE(mine::kMemoryHostMapped, SANITIZER_MEMORY_FLAG_HOST_MAPPED);
SAME_VALUE(mine::kMemoryHostPinned, SANITIZER_MEMORY_FLAG_HOST_PINNED);
SAME_VALUE(mine::kMemoryGroupsRuntime, SANITIZER_MEMORY_FLAG_CG_RUNTIME);
SAME_VALUE(mine::kMemoryDeviceRuntime, SANITIZER_MEMORY_FLAG_CNP);
SAME_VALUE(0, SANITIZER_API_ENTER);
SAME_VALUE(mine::kApiExit, SANITIZER_API_EXIT);
// The patches' values of `flags`, and those that the driver's calls take.
SAME_VALUE(1, SANITIZER_MEMORY_DEVICE_FLAG_READ);
SAME_VALUE(2, SANITIZER_MEMORY_DEVICE_FLAG_WRITE);
SAME_VALUE(4, SANITIZER_MEMORY_DEVICE_FLAG_ATOMSYS);
SAME_VALUE(8, SANITIZER_MEMORY_DEVICE_FLAG_PREFETCH);
SAME_VALUE(1, CU_STREAM_NON_BLOCKING);
SAME_VALUE(75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(76, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

// ---- data of callbacks ---------------------------------------------------------------------------------------------

SAME(ApiCall, site, Sanitizer_CallbackData, callbackSite);
SAME(ApiCall, name, Sanitizer_CallbackData, functionName);
SAME(ApiCall, parameters, Sanitizer_CallbackData, functionParams);
SAME(ApiCall, result, Sanitizer_CallbackData, functionReturnValue);
SAME(ApiCall, symbol, Sanitizer_CallbackData, symbolName);
SAME(ApiCall, context, Sanitizer_CallbackData, context);
SAME(MemMapParameters, address, cuMemMap_params, ptr);
SAME(MemMapParameters, bytes, cuMemMap_params, size);
SAME(MemMapParameters, offset, cuMemMap_params, offset);
SAME(MemMapParameters, handle, cuMemMap_params, handle);
SAME(MemMapParameters, flags, cuMemMap_params, flags);
SAME(MemUnmapParameters, address, cuMemUnmap_params, ptr);
SAME(MemUnmapParameters, bytes, cuMemUnmap_params, size);
SAME(ResourceContext, context, Sanitizer_ResourceContextData, context);
SAME(ResourceContext, device, Sanitizer_ResourceContextData, device);
SAME(ResourceModule, context, Sanitizer_ResourceModuleData, context);
SAME(ResourceModule, module, Sanitizer_ResourceModuleData, module);
SAME(ResourceModule, code_bytes, Sanitizer_ResourceModuleData, cubinSize);
SAME(ResourceModule, code, Sanitizer_ResourceModuleData, pCubin);
SAME(ResourceModule, library, Sanitizer_ResourceModuleData, library);
SAME(MemcpyData, source_context, Sanitizer_MemcpyData, srcContext);
SAME(MemcpyData, target_context, Sanitizer_MemcpyData, dstContext);
SAME(MemcpyData, source, Sanitizer_MemcpyData, srcAddress);
SAME(MemcpyData, target, Sanitizer_MemcpyData, dstAddress);
SAME(MemcpyData, bytes, Sanitizer_MemcpyData, size);
SAME(MemcpyData, width, Sanitizer_MemcpyData, width);
SAME(MemcpyData, height, Sanitizer_MemcpyData, height);
SAME(MemcpyData, depth, Sanitizer_MemcpyData, depth);
SAME(MemcpyData, source_pitch, Sanitizer_MemcpyData, srcPitch);
SAME(MemcpyData, target_pitch, Sanitizer_MemcpyData, dstPitch);
SAME(MemcpyData, is_async, Sanitizer_MemcpyData, isAsync);
SAME(MemcpyData, direction, Sanitizer_MemcpyData, direction);
SAME(MemcpyData, api_context, Sanitizer_MemcpyData, apiContext);
SAME(MemcpyData, api_stream, Sanitizer_MemcpyData, apiStream);
SAME(MemcpyData, api_stream_handle, Sanitizer_MemcpyData, hApiStream);
SAME(MemsetData, context, Sanitizer_MemsetData, context);
SAME(MemsetData, stream, Sanitizer_MemsetData, stream);
SAME(MemsetData, stream_handle, Sanitizer_MemsetData, hStream);
SAME(MemsetData, address, Sanitizer_MemsetData, address);
SAME(MemsetData, width, Sanitizer_MemsetData, width);
SAME(MemsetData, height, Sanitizer_MemsetData, height);
SAME(MemsetData, pitch, Sanitizer_MemsetData, pitch);
SAME(MemsetData, element_bytes, Sanitizer_MemsetData, elementSize);
SAME(MemsetData, value, Sanitizer_MemsetData, value);
SAME(MemsetData, is_async, Sanitizer_MemsetData, isAsync);
SAME(GraphNodeLaunch, copy, Sanitizer_GraphNodeLaunchData, memcpyData);
SAME(GraphNodeLaunch, set, Sanitizer_GraphNodeLaunchData, memsetData);
SAME(ResourceMemory, address, Sanitizer_ResourceMemoryData, address);
SAME(ResourceMemory, bytes, Sanitizer_ResourceMemoryData, size);
SAME(ResourceMemory, context, Sanitizer_ResourceMemoryData, context);
SAME(ResourceMemory, device, Sanitizer_ResourceMemoryData, device);
SAME(ResourceMemory, stream, Sanitizer_ResourceMemoryData, stream);
SAME(ResourceMemory, stream_handle, Sanitizer_ResourceMemoryData, hStream);
SAME(ResourceMemory, pool, Sanitizer_ResourceMemoryData, memoryPool);
SAME(ResourceMemory, flags, Sanitizer_ResourceMemoryData, flags);
SAME(ResourceMemory, permissions, Sanitizer_ResourceMemoryData, permissions);
SAME(ResourceMemory, visibility, Sanitizer_ResourceMemoryData, visibility);
SAME(Launch, context, Sanitizer_LaunchData, context);
SAME(Launch, stream, Sanitizer_LaunchData, stream);
SAME(Launch, stream_handle, Sanitizer_LaunchData, hStream);
SAME(Launch, module, Sanitizer_LaunchData, module);
SAME(Launch, function, Sanitizer_LaunchData, function);
SAME(Launch, function_name, Sanitizer_LaunchData, functionName);
SAME(Launch, grid[0], Sanitizer_LaunchData, gridDim_x);
SAME(Launch, grid[2], Sanitizer_LaunchData, gridDim_z);
SAME(Launch, block[0], Sanitizer_LaunchData, blockDim_x);
SAME(Launch, block[2], Sanitizer_LaunchData, blockDim_z);
SAME(Launch, cluster[0], Sanitizer_LaunchData, clusterDim_x);
SAME(Launch, cluster[2], Sanitizer_LaunchData, clusterDim_z);
SAME(Launch, grid_id, Sanitizer_LaunchData, gridId);
SAME(Launch, handle, Sanitizer_LaunchData, hLaunch);
SAME(Launch, device, Sanitizer_LaunchData, device);
SAME(Launch, api_context, Sanitizer_LaunchData, apiContext);
SAME(Launch, api_stream, Sanitizer_LaunchData, apiStream);
SAME(Launch, api_stream_handle, Sanitizer_LaunchData, hApiStream);
static_assert(sizeof(mine::Launch) == sizeof(Sanitizer_LaunchData));
SAME(GraphExecEvent, graph, Sanitizer_GraphExecData, graph);
SAME(GraphExecEvent, exec, Sanitizer_GraphExecData, graphExec);
SAME(GraphExecEvent, is_device_launch, Sanitizer_GraphExecData, isDeviceLaunch);
SAME(GraphExecEvent, contains_device_launches, Sanitizer_GraphExecData, containsDeviceGraphLaunches);
SAME(GraphExecEvent, device_launch_context, Sanitizer_GraphExecData, deviceGraphLaunchesContext);
SAME(GraphNodeLaunch, exec, Sanitizer_GraphNodeLaunchData, graphExec);
SAME(GraphNodeLaunch, launch_id, Sanitizer_GraphNodeLaunchData, launchId);
SAME(GraphNodeLaunch, node, Sanitizer_GraphNodeLaunchData, node);
SAME(GraphNodeLaunch, node_type, Sanitizer_GraphNodeLaunchData, nodeType);
SAME(GraphNodeLaunch, launch, Sanitizer_GraphNodeLaunchData, launchData);
SAME(GraphLaunch, context, Sanitizer_GraphLaunchData, context);
SAME(GraphLaunch, stream, Sanitizer_GraphLaunchData, stream);
SAME(GraphLaunch, stream_handle, Sanitizer_GraphLaunchData, hStream);
SAME(GraphLaunch, exec, Sanitizer_GraphLaunchData, graphExec);
SAME(GraphLaunch, is_upload, Sanitizer_GraphLaunchData, isGraphUpload);

// ---- functions: as many arguments, of the same sizes and kinds -----------------------------------------------------

template <typename Type>
constexpr bool kPointer = std::is_pointer_v<Type>;

template <typename Mine, typename Theirs>
struct SameFunction : std::false_type {};
template <typename MyResult, typename... Mine, typename TheirResult, typename... Theirs>
struct SameFunction<MyResult (*)(Mine...), TheirResult (*)(Theirs...)> {
  static constexpr bool arguments() {
    if constexpr (sizeof...(Mine) != sizeof...(Theirs)) {
      return false;
    } else {
      return ((kPointer<Mine> == kPointer<Theirs> && sizeof(Mine) == sizeof(Theirs)) && ...);
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
  static_assert(SameFunction<decltype(mine::SanitizerApi::member), decltype(&function)>::value, #function)
SAME_FUNCTION(subscribe, sanitizerSubscribe);
SAME_FUNCTION(unsubscribe, sanitizerUnsubscribe);
SAME_FUNCTION(enable_domain, sanitizerEnableDomain);
SAME_FUNCTION(enable_callback, sanitizerEnableCallback);
SAME_FUNCTION(result_string, sanitizerGetResultString);
SAME_FUNCTION(add_patches, sanitizerAddPatches);
SAME_FUNCTION(patch_instructions, sanitizerPatchInstructions);
SAME_FUNCTION(patch_module, sanitizerPatchModule);
SAME_FUNCTION(unpatch_module, sanitizerUnpatchModule);
SAME_FUNCTION(set_function_data, sanitizerSetCallbackData);
SAME_FUNCTION(set_launch_data, sanitizerSetLaunchCallbackData);
SAME_FUNCTION(function_range, sanitizerGetFunctionPcAndSize);
SAME_FUNCTION(allocate, sanitizerAlloc);
SAME_FUNCTION(allocate_host, sanitizerAllocHost);
SAME_FUNCTION(free, sanitizerFree);
SAME_FUNCTION(copy_to_device, sanitizerMemcpyHostToDeviceAsync);
SAME_FUNCTION(copy_to_host, sanitizerMemcpyDeviceToHost);
SAME_FUNCTION(set, sanitizerMemset);
SAME_FUNCTION(synchronize, sanitizerStreamSynchronize);
SAME_FUNCTION(stream_handle, sanitizerGetStreamHandle);
SAME_FUNCTION(stream_create, cuStreamCreateWithPriority);
SAME_FUNCTION(push_context, cuCtxPushCurrent);
SAME_FUNCTION(pop_context, cuCtxPopCurrent);
SAME_FUNCTION(module_load, cuModuleLoadData);
SAME_FUNCTION(module_function, cuModuleGetFunction);
SAME_FUNCTION(launch, cuLaunchKernel);
SAME_FUNCTION(device_attribute, cuDeviceGetAttribute);
SAME_FUNCTION(pinned_memory, cuMemAllocHost);
SAME_FUNCTION(free_pinned_memory, cuMemFreeHost);
static_assert(SameFunction<mine::Callback, Sanitizer_CallbackFunc>::value);

}  // namespace

int main() { return 0; }
