// Sonde's declarations of CUPTI's PC sampling against the real headers. Compiled by check_declarations.sh alone.
#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>

#include <type_traits>

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

static_assert(std::is_same_v<CUpti_ComputeCrcCallbackFunc, void (*)(const void *, size_t, uint64_t *)>);

}  // namespace
