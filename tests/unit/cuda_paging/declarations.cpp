// Sonde's declarations of the driver's calls against the real headers. Compiled by check_declarations.sh alone.
#include <cuda.h>
#include <cupti.h>

#include "paging_types.h"

namespace {

using namespace sonde::cuda::paging;

#define SAME_VALUE(mine, theirs) static_assert(static_cast<int64_t>(mine) == static_cast<int64_t>(theirs), #theirs)
SAME_VALUE(kMemAllocManaged, CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged);
SAME_VALUE(kMemFree, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2);
SAME_VALUE(kMemFreeOld, CUPTI_DRIVER_TRACE_CBID_cuMemFree);
SAME_VALUE(kCallEnters, CUPTI_API_ENTER);
SAME_VALUE(kCallLeaves, CUPTI_API_EXIT);
SAME_VALUE(kHostDevice, CU_DEVICE_CPU);
SAME_VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME_VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(kSetReadMostly, CU_MEM_ADVISE_SET_READ_MOSTLY);
SAME_VALUE(kSetPreferredLocation, CU_MEM_ADVISE_SET_PREFERRED_LOCATION);
SAME_VALUE(kSetAccessedBy, CU_MEM_ADVISE_SET_ACCESSED_BY);
SAME_VALUE(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(kLocationHost, CU_MEM_LOCATION_TYPE_HOST);

constexpr uint32_t offset_of(uint32_t callback) {
  for (const LaunchCall &call : kLaunchCalls) {
    if (call.callback == callback) return call.offset;
  }
  return UINT32_MAX;
}
#define STREAM_AT(call, field) \
  static_assert(offset_of(CUPTI_DRIVER_TRACE_CBID_##call) == offsetof(call##_params, field), #call)
STREAM_AT(cuLaunchGridAsync, hStream);
STREAM_AT(cuLaunchKernel, hStream);
STREAM_AT(cuLaunchKernel_ptsz, hStream);
STREAM_AT(cuLaunchCooperativeKernel, hStream);
STREAM_AT(cuLaunchCooperativeKernel_ptsz, hStream);
STREAM_AT(cuGraphLaunch, hStream);
STREAM_AT(cuGraphLaunch_ptsz, hStream);
static_assert(offsetof(cuLaunchKernelEx_params, config) == 0);
static_assert(offset_of(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx) == offsetof(CUlaunchConfig, hStream));
static_assert(offset_of(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) == offsetof(CUlaunchConfig, hStream));
static_assert(offset_of(CUPTI_DRIVER_TRACE_CBID_cuLaunch) == 0);
static_assert(offset_of(CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid) == 0);

#define SAME(mine, member, theirs, field)                                               \
  static_assert(offsetof(mine, member) == offsetof(theirs, field), #theirs "." #field); \
  static_assert(sizeof(mine::member) == sizeof(theirs::field), #theirs "." #field)
SAME(AllocateParameters, address, cuMemAllocManaged_params, dptr);
SAME(AllocateParameters, bytes, cuMemAllocManaged_params, bytesize);
SAME(FreeParameters, address, cuMemFree_v2_params, dptr);
SAME(CallData, site, CUpti_CallbackData, callbackSite);
SAME(CallData, parameters, CUpti_CallbackData, functionParams);
SAME(CallData, result, CUpti_CallbackData, functionReturnValue);
SAME(CallData, symbol, CUpti_CallbackData, symbolName);
SAME(CallData, context, CUpti_CallbackData, context);
SAME(Location, type, CUmemLocation, type);
SAME(Location, id, CUmemLocation, id);
static_assert(sizeof(Location) == sizeof(CUmemLocation));

}  // namespace
