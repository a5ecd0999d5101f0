// Sonde's declarations of CUPTI's PC sampling against the real headers. Compiled by check_declarations.sh alone.
#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <type_traits>

#include "counters_types.h"
#include "sampling_types.h"

namespace {

using namespace sonde::cuda;

#define SAME_VALUE(mine, theirs) static_assert(static_cast<uint64_t>(mine) == static_cast<uint64_t>(theirs), #theirs)
SAME_VALUE(kCuptiOutOfMemory, CUPTI_ERROR_OUT_OF_MEMORY);
SAME_VALUE(kCuptiNotSupported, CUPTI_ERROR_NOT_SUPPORTED);
SAME_VALUE(kResourceContextDestroyStarting, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME_VALUE(kSamplingContinuous, CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS);
SAME_VALUE(kSamplingKernelSerialized, CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED);
SAME_VALUE(kAttributeSamplingPeriod, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
SAME_VALUE(kAttributeScratchBytes, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE);
SAME_VALUE(kAttributeHardwareBytes, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE);
SAME_VALUE(kAttributeCollectionMode, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
SAME_VALUE(kAttributeStartStop, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL);
SAME_VALUE(kAttributeOutputFormat, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT);
SAME_VALUE(kAttributeDataBuffer, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
SAME_VALUE(kAttributeSleepSpan, CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_WORKER_THREAD_PERIODIC_SLEEP_SPAN);
SAME_VALUE(kOutputParsed, CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED);
SAME_VALUE(kStallNameBytes, CUPTI_STALL_REASON_STRING_SIZE);
SAME_VALUE(kCallLeaves, CUPTI_API_EXIT);

#define SAME(mine, member, theirs, field)                                               \
  static_assert(offsetof(mine, member) == offsetof(theirs, field), #theirs "." #field); \
  static_assert(sizeof(mine::member) == sizeof(theirs::field), #theirs "." #field)
SAME(StallSamples, index, CUpti_PCSamplingStallReason, pcSamplingStallReasonIndex);
SAME(StallSamples, samples, CUpti_PCSamplingStallReason, samples);
static_assert(sizeof(StallSamples) == sizeof(CUpti_PCSamplingStallReason));
SAME(PcData, size, CUpti_PCSamplingPCData, size);
SAME(PcData, checksum, CUpti_PCSamplingPCData, cubinCrc);
SAME(PcData, pc, CUpti_PCSamplingPCData, pcOffset);
SAME(PcData, function_index, CUpti_PCSamplingPCData, functionIndex);
SAME(PcData, function, CUpti_PCSamplingPCData, functionName);
SAME(PcData, stall_count, CUpti_PCSamplingPCData, stallReasonCount);
SAME(PcData, stalls, CUpti_PCSamplingPCData, stallReason);
SAME(PcData, correlation, CUpti_PCSamplingPCData, correlationId);
static_assert(sizeof(PcData) == sizeof(CUpti_PCSamplingPCData));
SAME(SamplingData, size, CUpti_PCSamplingData, size);
SAME(SamplingData, room, CUpti_PCSamplingData, collectNumPcs);
SAME(SamplingData, total_samples, CUpti_PCSamplingData, totalSamples);
SAME(SamplingData, dropped_samples, CUpti_PCSamplingData, droppedSamples);
SAME(SamplingData, pc_count, CUpti_PCSamplingData, totalNumPcs);
SAME(SamplingData, remaining_pcs, CUpti_PCSamplingData, remainingNumPcs);
SAME(SamplingData, range, CUpti_PCSamplingData, rangeId);
SAME(SamplingData, pcs, CUpti_PCSamplingData, pPcData);
SAME(SamplingData, foreign_samples, CUpti_PCSamplingData, nonUsrKernelsTotalSamples);
SAME(SamplingData, hardware_buffer_full, CUpti_PCSamplingData, hardwareBufferFull);
static_assert(sizeof(SamplingData) == sizeof(CUpti_PCSamplingData));
SAME(SamplingAttribute, attribute, CUpti_PCSamplingConfigurationInfo, attributeType);
SAME(SamplingAttribute, status, CUpti_PCSamplingConfigurationInfo, attributeStatus);
SAME(SamplingAttribute, value, CUpti_PCSamplingConfigurationInfo, attributeData);
static_assert(sizeof(SamplingAttribute) == sizeof(CUpti_PCSamplingConfigurationInfo));
SAME(SamplingConfigParams, context, CUpti_PCSamplingConfigurationInfoParams, ctx);
SAME(SamplingConfigParams, count, CUpti_PCSamplingConfigurationInfoParams, numAttributes);
SAME(SamplingConfigParams, attributes, CUpti_PCSamplingConfigurationInfoParams, pPCSamplingConfigurationInfo);
static_assert(sizeof(SamplingConfigParams) == CUpti_PCSamplingConfigurationInfoParamsSize);
SAME(SamplingContextParams, context, CUpti_PCSamplingEnableParams, ctx);
static_assert(sizeof(SamplingContextParams) == CUpti_PCSamplingEnableParamsSize);
static_assert(sizeof(SamplingContextParams) == CUpti_PCSamplingDisableParamsSize);
static_assert(sizeof(SamplingContextParams) == CUpti_PCSamplingStartParamsSize);
static_assert(sizeof(SamplingContextParams) == CUpti_PCSamplingStopParamsSize);
SAME(SamplingGetDataParams, context, CUpti_PCSamplingGetDataParams, ctx);
SAME(SamplingGetDataParams, data, CUpti_PCSamplingGetDataParams, pcSamplingData);
static_assert(sizeof(SamplingGetDataParams) == CUpti_PCSamplingGetDataParamsSize);
SAME(StallCountParams, count, CUpti_PCSamplingGetNumStallReasonsParams, numStallReasons);
static_assert(sizeof(StallCountParams) == CUpti_PCSamplingGetNumStallReasonsParamsSize);
SAME(StallNamesParams, count, CUpti_PCSamplingGetStallReasonsParams, numStallReasons);
SAME(StallNamesParams, indices, CUpti_PCSamplingGetStallReasonsParams, stallReasonIndex);
SAME(StallNamesParams, names, CUpti_PCSamplingGetStallReasonsParams, stallReasons);
static_assert(sizeof(StallNamesParams) == CUpti_PCSamplingGetStallReasonsParamsSize);
SAME(ChecksumParams, bytes, CUpti_GetCubinCrcParams, cubinSize);
SAME(ChecksumParams, code, CUpti_GetCubinCrcParams, cubin);
SAME(ChecksumParams, checksum, CUpti_GetCubinCrcParams, cubinCrc);
static_assert(sizeof(ChecksumParams) == CUpti_GetCubinCrcParamsSize);
SAME(DriverCallData, site, CUpti_CallbackData, callbackSite);
SAME(DriverCallData, symbol, CUpti_CallbackData, symbolName);
SAME(DriverCallData, context, CUpti_CallbackData, context);
SAME(DriverCallData, context_id, CUpti_CallbackData, contextUid);
SAME(DriverCallData, correlation, CUpti_CallbackData, correlationId);

// ---- counters ------------------------------------------------------------------------------------------------------

SAME_VALUE(kAutoRange, CUPTI_AutoRange);
SAME_VALUE(kKernelReplay, CUPTI_KernelReplay);
SAME_VALUE(kRangeProfilerType, CUPTI_PROFILER_TYPE_RANGE_PROFILER);

// The last field, and with it the size that CUPTI is told.
#define SAME_SIZE(mine, last, theirs) \
  static_assert(offsetof(mine, last) + sizeof(mine::last) == theirs##_STRUCT_SIZE, #theirs)
SAME_SIZE(ProfilerParams, reserved, CUpti_Profiler_Initialize_Params);
SAME(ChipParams, device, CUpti_Device_GetChipName_Params, deviceIndex);
SAME_SIZE(ChipParams, chip, CUpti_Device_GetChipName_Params);
SAME(AvailabilityParams, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
SAME(AvailabilityParams, bytes, CUpti_Profiler_GetCounterAvailability_Params, counterAvailabilityImageSize);
SAME_SIZE(AvailabilityParams, image, CUpti_Profiler_GetCounterAvailability_Params);
SAME(HostInitializeParams, type, CUpti_Profiler_Host_Initialize_Params, profilerType);
SAME(HostInitializeParams, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
SAME(HostInitializeParams, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage);
SAME_SIZE(HostInitializeParams, host, CUpti_Profiler_Host_Initialize_Params);
SAME_SIZE(HostParams, host, CUpti_Profiler_Host_Deinitialize_Params);
SAME(HostAddMetricsParams, host, CUpti_Profiler_Host_ConfigAddMetrics_Params, pHostObject);
SAME(HostAddMetricsParams, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
SAME_SIZE(HostAddMetricsParams, count, CUpti_Profiler_Host_ConfigAddMetrics_Params);
SAME(HostConfigSizeParams, host, CUpti_Profiler_Host_GetConfigImageSize_Params, pHostObject);
SAME_SIZE(HostConfigSizeParams, bytes, CUpti_Profiler_Host_GetConfigImageSize_Params);
SAME(HostConfigParams, bytes, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
SAME_SIZE(HostConfigParams, image, CUpti_Profiler_Host_GetConfigImage_Params);
SAME(HostPassesParams, bytes, CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize);
SAME(HostPassesParams, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
SAME_SIZE(HostPassesParams, passes, CUpti_Profiler_Host_GetNumOfPasses_Params);
SAME(HostPropertiesParams, name, CUpti_Profiler_Host_GetMetricProperties_Params, pMetricName);
SAME(HostPropertiesParams, unit, CUpti_Profiler_Host_GetMetricProperties_Params, pDimUnit);
SAME_SIZE(HostPropertiesParams, type, CUpti_Profiler_Host_GetMetricProperties_Params);
SAME(HostEvaluateParams, image, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
SAME(HostEvaluateParams, image_bytes, CUpti_Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize);
SAME(HostEvaluateParams, range, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SAME(HostEvaluateParams, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
SAME(HostEvaluateParams, count, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
SAME_SIZE(HostEvaluateParams, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME(RangeEnableParams, context, CUpti_RangeProfiler_Enable_Params, ctx);
SAME_SIZE(RangeEnableParams, profiler, CUpti_RangeProfiler_Enable_Params);
SAME_SIZE(RangeParams, profiler, CUpti_RangeProfiler_Disable_Params);
SAME_SIZE(RangeParams, profiler, CUpti_RangeProfiler_Start_Params);
SAME(RangeConfigParams, config_bytes, CUpti_RangeProfiler_SetConfig_Params, configSize);
SAME(RangeConfigParams, config, CUpti_RangeProfiler_SetConfig_Params, pConfig);
SAME(RangeConfigParams, image_bytes, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
SAME(RangeConfigParams, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
SAME(RangeConfigParams, range, CUpti_RangeProfiler_SetConfig_Params, range);
SAME(RangeConfigParams, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
SAME(RangeConfigParams, ranges_per_pass, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
SAME(RangeConfigParams, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
SAME(RangeConfigParams, least_nesting_level, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
SAME(RangeConfigParams, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
SAME_SIZE(RangeConfigParams, target_nesting_level, CUpti_RangeProfiler_SetConfig_Params);
SAME(RangeStopParams, pass, CUpti_RangeProfiler_Stop_Params, passIndex);
SAME_SIZE(RangeStopParams, all_passes, CUpti_RangeProfiler_Stop_Params);
SAME_SIZE(RangeDecodeParams, dropped, CUpti_RangeProfiler_DecodeData_Params);
SAME(ImageSizeParams, names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
SAME(ImageSizeParams, count, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
SAME(ImageSizeParams, ranges, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
SAME(ImageSizeParams, nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
SAME_SIZE(ImageSizeParams, bytes, CUpti_RangeProfiler_GetCounterDataSize_Params);
SAME(ImageInitializeParams, bytes, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize);
SAME_SIZE(ImageInitializeParams, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
SAME(ImageInfoParams, image, CUpti_RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage);
SAME(ImageInfoParams, bytes, CUpti_RangeProfiler_GetCounterDataInfo_Params, counterDataImageSize);
SAME_SIZE(ImageInfoParams, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params);

static_assert(std::is_same_v<CUpti_ComputeCrcCallbackFunc, void (*)(const void *, size_t, uint64_t *)>);

}  // namespace
