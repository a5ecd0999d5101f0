// Does PC sampling change the durations that CUPTI's activity records give? Without Sonde: one process, kernels traced
// by activity alone, then with continuous PC sampling on. Prints one JSON line: medians in ns and their ratio.
#include <cuda.h>
#include <cupti.h>
#include <cupti_pcsampling.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

std::vector<uint64_t> durations;

void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most) {
  *size = 8 << 20;
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, *size));
  *most = 0;
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  CUpti_Activity *record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto *kernel = reinterpret_cast<const CUpti_ActivityKernel9 *>(record);
    durations.push_back(kernel->end - kernel->start);
  }
  std::free(buffer);
}

int fail(const char *what, int code) {
  std::printf("{\"error\": \"%s\", \"code\": %d}\n", what, code);
  return 1;
}

uint64_t median(std::vector<uint64_t> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char **argv) {
  const char *cubin = argc > 1 ? argv[1] : "hot_line.cubin";
  constexpr int kLaunches = 40;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction hot;
  CUdeviceptr data;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return fail("no device", 0);
  if (cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return fail("no context", 0);
  }
  if (const CUresult result = cuModuleLoad(&module, cubin)) return fail("cuModuleLoad", result);
  if (const CUresult result = cuModuleGetFunction(&hot, module, "_Z3hotPfi")) return fail("no kernel", result);
  if (const CUresult result = cuMemAlloc(&data, 264 * 256 * 4)) return fail("cuMemAlloc", result);
  cuMemsetD32(data, 0, 264 * 256);
  int steps = 50000;
  void *arguments[] = {&data, &steps};
  const auto run = [&](int launches) {
    durations.clear();
    for (int i = 0; i < launches; ++i) cuLaunchKernel(hot, 264, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr);
    cuCtxSynchronize();
    cuptiActivityFlushAll(1);
    return durations;
  };
  cuptiActivityRegisterCallbacks(requested, completed);
  if (const CUptiResult result = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) {
    return fail("cuptiActivityEnable", result);
  }
  run(kLaunches);  // warm
  const auto alone = run(kLaunches);

  size_t stalls = 0;
  CUpti_PCSamplingGetNumStallReasonsParams count = {CUpti_PCSamplingGetNumStallReasonsParamsSize, nullptr, context,
                                                    &stalls};
  CUpti_PCSamplingEnableParams enable = {CUpti_PCSamplingEnableParamsSize, nullptr, context};
  if (const CUptiResult result = cuptiPCSamplingEnable(&enable)) return fail("cuptiPCSamplingEnable", result);
  cuptiPCSamplingGetNumStallReasons(&count);
  std::vector<CUpti_PCSamplingPCData> pcs(1024);
  std::vector<CUpti_PCSamplingStallReason> reasons(pcs.size() * stalls);
  for (size_t i = 0; i < pcs.size(); ++i) {
    pcs[i] = {};
    pcs[i].size = sizeof(pcs[i]);
    pcs[i].stallReason = reasons.data() + i * stalls;
  }
  CUpti_PCSamplingData buffer = {};
  buffer.size = sizeof(buffer);
  buffer.collectNumPcs = pcs.size();
  buffer.pPcData = pcs.data();
  CUpti_PCSamplingConfigurationInfo attributes[2] = {};
  attributes[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
  attributes[0].attributeData.collectionModeData.collectionMode = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
  attributes[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
  attributes[1].attributeData.samplingDataBufferData.samplingDataBuffer = &buffer;
  CUpti_PCSamplingConfigurationInfoParams config = {CUpti_PCSamplingConfigurationInfoParamsSize, nullptr, context, 2,
                                                    attributes};
  if (const CUptiResult result = cuptiPCSamplingSetConfigurationAttribute(&config)) return fail("configure", result);
  run(kLaunches);
  const auto sampled = run(kLaunches);
  CUpti_PCSamplingDisableParams disable = {CUpti_PCSamplingDisableParamsSize, nullptr, context};
  cuptiPCSamplingDisable(&disable);
  const uint64_t before = median(alone);
  const uint64_t with = median(sampled);
  std::printf(
      "{\"launches\": %d, \"records_alone\": %zu, \"records_sampled\": %zu, \"median_alone_ns\": %llu, "
      "\"median_sampled_ns\": %llu, \"ratio\": %.4f, \"samples\": %llu}\n",
      kLaunches, alone.size(), sampled.size(), static_cast<unsigned long long>(before),
      static_cast<unsigned long long>(with), before != 0 ? static_cast<double>(with) / before : 0.0,
      static_cast<unsigned long long>(buffer.totalSamples));
  return 0;
}
