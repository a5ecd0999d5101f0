#include "fake_sampling.h"

#include <cstdlib>
#include <cstring>

using namespace sonde::test;

namespace {

FakeSampling &state() {
  static FakeSampling *const instance = [] {
    auto *made = new FakeSampling;
    made->reset();
    return made;
  }();
  return *instance;
}

FakeContext *context_of(void *handle) {
  const auto found = state().contexts.find(handle);
  if (found != state().contexts.end()) return &found->second;
  ++state().unknown_context;
  return nullptr;
}

// A copy of the text that lives as long as the process, one for each text, as CUPTI shares names.
char *lasting(const std::string &text) {
  char *&kept = state().names[text];
  if (kept == nullptr) kept = strdup(text.c_str());
  return kept;
}

// Puts as many samples into `data` as it has room for.
void hand_out(FakeContext &context, SamplingData &data) {
  data.pc_count = 0;
  data.total_samples = 0;
  data.foreign_samples = 0;
  while (data.pc_count < data.room && !context.samples.empty()) {
    const FakeSample sample = context.samples.front();
    context.samples.pop_front();
    PcData &pc = data.pcs[data.pc_count++];
    if (pc.size != sizeof(PcData)) abort();
    pc.checksum = sample.checksum;
    pc.pc = sample.pc;
    pc.function_index = sample.function_index;
    pc.function = sample.function.empty() ? nullptr : lasting(sample.function);
    pc.correlation = sample.correlation;
    pc.stall_count = sample.stalls.size();
    for (size_t i = 0; i < sample.stalls.size(); ++i) {
      pc.stalls[i] = sample.stalls[i];
      if (sample.stalls[i].index != 1) data.total_samples += sample.stalls[i].samples;
    }
  }
  data.remaining_pcs = context.samples.size();
  data.dropped_samples = context.dropped;
  data.total_samples += context.dropped;
  context.dropped = 0;
  data.hardware_buffer_full = context.full ? 1 : 0;
}

}  // namespace

extern "C" {

FakeSampling *fake_sampling() { return &state(); }

CuptiResult cuptiGetVersion(uint32_t *version) {
  *version = state().version;
  return kCuptiSuccess;
}
CuptiResult cuptiGetResultString(CuptiResult result, const char **text) {
  static thread_local std::string words;
  words = "RESULT_" + std::to_string(result);
  *text = words.c_str();
  return kCuptiSuccess;
}
CuptiResult cuptiActivityRegisterCallbacks(void *, void *) { return kCuptiSuccess; }
CuptiResult cuptiActivityEnable(uint32_t) { return kCuptiSuccess; }
CuptiResult cuptiActivityDisable(uint32_t) { return kCuptiSuccess; }
CuptiResult cuptiActivityFlushAll(uint32_t) { return kCuptiSuccess; }
CuptiResult cuptiActivityGetNextRecord(uint8_t *, size_t, void **) { return kCuptiMaxLimitReached; }

CuptiResult cuptiSubscribe(void **subscriber, Callback callback, void *user) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  if (state().subscribe_result != kCuptiSuccess) return state().subscribe_result;
  ++state().subscribes;
  state().callback = callback;
  state().user = user;
  *subscriber = &state();
  return kCuptiSuccess;
}
CuptiResult cuptiUnsubscribe(void *) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  ++state().unsubscribes;
  state().callback = nullptr;
  return kCuptiSuccess;
}
CuptiResult cuptiEnableCallback(uint32_t, void *, uint32_t, uint32_t) { return kCuptiSuccess; }
CuptiResult cuptiGetContextId(void *handle, uint32_t *id) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  FakeContext *context = context_of(handle);
  if (context == nullptr) return 1;
  *id = context->id;
  return kCuptiSuccess;
}
CuptiResult cuptiGetDeviceId(void *, uint32_t *device) {
  *device = 3;
  return kCuptiSuccess;
}

CuptiResult cuptiPCSamplingEnable(SamplingContextParams *parameters) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  FakeContext *context = context_of(parameters->context);
  if (context == nullptr) return 1;
  if (state().enable_result != kCuptiSuccess) return state().enable_result;
  ++state().enables;
  context->enabled = true;
  return kCuptiSuccess;
}
CuptiResult cuptiPCSamplingDisable(SamplingContextParams *parameters) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  FakeContext *context = context_of(parameters->context);
  if (context == nullptr || !context->enabled) return 1;
  ++state().disables;
  context->enabled = false;
  if (context->configured != nullptr) hand_out(*context, *context->configured);
  return kCuptiSuccess;
}
CuptiResult cuptiPCSamplingStart(SamplingContextParams *parameters) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  FakeContext *context = context_of(parameters->context);
  if (context == nullptr || context->start_stop == 0 || context->started) return 1;
  ++state().starts;
  if (!state().in_launch) ++state().starts_outside_launch;
  context->started = true;
  return kCuptiSuccess;
}
CuptiResult cuptiPCSamplingStop(SamplingContextParams *parameters) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  FakeContext *context = context_of(parameters->context);
  if (context == nullptr || !context->started) return 1;
  ++state().stops;
  context->started = false;
  return kCuptiSuccess;
}
CuptiResult cuptiPCSamplingSetConfigurationAttribute(SamplingConfigParams *parameters) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  FakeContext *context = context_of(parameters->context);
  if (context == nullptr || !context->enabled) return 1;
  for (size_t i = 0; i < parameters->count; ++i) {
    SamplingAttribute &attribute = parameters->attributes[i];
    attribute.status = kCuptiSuccess;
    switch (attribute.attribute) {
      case kAttributeSamplingPeriod:
        context->period = attribute.value.number;
        break;
      case kAttributeCollectionMode:
        context->mode = attribute.value.number;
        break;
      case kAttributeStartStop:
        context->start_stop = attribute.value.number;
        break;
      case kAttributeSleepSpan:
        context->sleep_span = attribute.value.number;
        break;
      case kAttributeHardwareBytes:
        context->hardware_bytes = attribute.value.bytes;
        break;
      case kAttributeDataBuffer:
        context->configured = static_cast<SamplingData *>(attribute.value.pointer);
        break;
      default:
        break;
    }
  }
  return kCuptiSuccess;
}
CuptiResult cuptiPCSamplingGetData(SamplingGetDataParams *parameters) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  FakeContext *context = context_of(parameters->context);
  if (context == nullptr || !context->enabled) return 1;
  ++state().reads;
  if (parameters->data == context->configured) ++state().same_buffer;
  auto &data = *static_cast<SamplingData *>(parameters->data);
  if (context->full) {
    data.pc_count = data.remaining_pcs = 0;
    data.hardware_buffer_full = 1;
    context->full = false;
    return kCuptiOutOfMemory;
  }
  if (state().hand_out_at_disable) return kCuptiSuccess;
  hand_out(*context, data);
  return kCuptiSuccess;
}
CuptiResult cuptiPCSamplingGetNumStallReasons(StallCountParams *parameters) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  const FakeContext *context = context_of(parameters->context);
  if (context == nullptr || !context->enabled) return 36;  // as the real one: only where sampling is on
  *parameters->count = state().stall_names.size();
  return kCuptiSuccess;
}
CuptiResult cuptiPCSamplingGetStallReasons(StallNamesParams *parameters) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  for (size_t i = 0; i < parameters->count; ++i) {
    parameters->indices[i] = static_cast<uint32_t>(i);
    strncpy(parameters->names[i], state().stall_names[i].c_str(), kStallNameBytes - 1);
  }
  return kCuptiSuccess;
}
CuptiResult cuptiRegisterComputeCrcCallback(ChecksumCallback callback) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  state().checksum = callback;
  return kCuptiSuccess;
}

// The range profiler. The value of metric m of range r of the n-th session is 1000 n + 10 r + m.
CuptiResult cuptiProfilerInitialize(ProfilerParams *) { return state().profile_result; }
CuptiResult cuptiDeviceGetChipName(ChipParams *parameters) {
  parameters->chip = "GH100";
  return kCuptiSuccess;
}
CuptiResult cuptiProfilerGetCounterAvailability(AvailabilityParams *parameters) {
  parameters->bytes = 16;
  return kCuptiSuccess;
}
CuptiResult cuptiProfilerHostInitialize(HostInitializeParams *parameters) {
  if (std::string(parameters->chip) != "GH100" || parameters->availability == nullptr) return 1;
  parameters->host = &state().metrics;
  return kCuptiSuccess;
}
CuptiResult cuptiProfilerHostDeinitialize(HostParams *) {
  ++state().host_ends;
  return kCuptiSuccess;
}
bool has_metric(const char *name) {
  for (const std::string &metric : state().metrics) {
    if (metric == name) return true;
  }
  return false;
}
CuptiResult cuptiProfilerHostConfigAddMetrics(HostAddMetricsParams *parameters) {
  for (size_t i = 0; i < parameters->count; ++i) {
    if (!has_metric(parameters->names[i])) return 1;
  }
  return kCuptiSuccess;
}
CuptiResult cuptiProfilerHostGetMetricProperties(HostPropertiesParams *parameters) {
  if (!has_metric(parameters->name)) return 1;
  parameters->unit = strncmp(parameters->name, "dram", 4) == 0 ? "byte" : "cycle";
  return kCuptiSuccess;
}
CuptiResult cuptiProfilerHostGetConfigImageSize(HostConfigSizeParams *parameters) {
  parameters->bytes = 24;
  return kCuptiSuccess;
}
CuptiResult cuptiProfilerHostGetConfigImage(HostConfigParams *parameters) { return parameters->bytes == 24 ? 0 : 1; }
CuptiResult cuptiProfilerHostGetNumOfPasses(HostPassesParams *parameters) {
  parameters->passes = 3;
  return kCuptiSuccess;
}
CuptiResult cuptiRangeProfilerEnable(RangeEnableParams *parameters) {
  parameters->profiler = &state().kernels;
  return kCuptiSuccess;
}
CuptiResult cuptiRangeProfilerDisable(RangeParams *) {
  ++state().range_disables;
  return kCuptiSuccess;
}
CuptiResult cuptiRangeProfilerGetCounterDataSize(ImageSizeParams *parameters) {
  parameters->bytes = 64;
  return kCuptiSuccess;
}
CuptiResult cuptiRangeProfilerCounterDataImageInitialize(ImageInitializeParams *parameters) {
  return parameters->bytes == 64 ? kCuptiSuccess : 1;
}
CuptiResult cuptiRangeProfilerSetConfig(RangeConfigParams *parameters) {
  if (parameters->range != kAutoRange || parameters->replay != kKernelReplay) return 1;
  state().range_configured = true;
  return kCuptiSuccess;
}
CuptiResult cuptiRangeProfilerStart(RangeParams *) {
  if (!state().range_configured || state().range_running) ++state().wrong_order;
  ++state().range_starts;
  state().range_running = true;
  state().range_decoded = false;
  return kCuptiSuccess;
}
CuptiResult cuptiRangeProfilerStop(RangeStopParams *parameters) {
  if (!state().range_running) ++state().wrong_order;
  ++state().range_stops;
  state().range_running = false;
  parameters->all_passes = 1;
  return kCuptiSuccess;
}
CuptiResult cuptiRangeProfilerDecodeData(RangeDecodeParams *parameters) {
  if (state().range_running) ++state().wrong_order;
  state().range_decoded = true;
  parameters->dropped = state().dropped_ranges;
  return state().decode_result;
}
CuptiResult cuptiRangeProfilerGetCounterDataInfo(ImageInfoParams *parameters) {
  if (!state().range_decoded) ++state().wrong_order;
  parameters->ranges = state().kernels;
  return kCuptiSuccess;
}
CuptiResult cuptiProfilerHostEvaluateToGpuValues(HostEvaluateParams *parameters) {
  for (size_t i = 0; i < parameters->count; ++i) {
    parameters->values[i] = static_cast<double>(1000 * state().range_stops + 10 * parameters->range + i);
  }
  return kCuptiSuccess;
}

// The driver, for contexts that exist before sampling starts: device 0 has the primary context 0x1000 while the fake
// knows it.
int32_t cuDeviceGetCount(int32_t *count) {
  *count = 2;
  return 0;
}
int32_t cuDevicePrimaryCtxGetState(int32_t device, uint32_t *flags, int32_t *active) {
  std::lock_guard<std::recursive_mutex> hold(state().mutex);
  *flags = 0;
  *active = device == 0 && state().contexts.count(reinterpret_cast<void *>(0x1000)) != 0 ? 1 : 0;
  return 0;
}
int32_t cuDevicePrimaryCtxRetain(void **context, int32_t) {
  *context = reinterpret_cast<void *>(0x1000);
  return 0;
}
int32_t cuDevicePrimaryCtxRelease_v2(int32_t) { return 0; }
int32_t cuCtxGetCurrent(void **context) {
  *context = nullptr;
  return 0;
}
int32_t cuCtxPushCurrent_v2(void *) { return 0; }
int32_t cuCtxPopCurrent_v2(void **context) {
  *context = nullptr;
  return 0;
}

}  // extern "C"
