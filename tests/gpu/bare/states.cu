// What a launch costs the launching thread in each state of CUPTI, and whether correlation numbers go on while nothing is
// collected. Tells what a budget can reach: the states in between are what a sampling recorder leaves on.
//
//   states [LAUNCHES]   launches of each loop, default 20000
//
// Prints one JSON object: for each state the median of several loops, ns a launch, and the range of correlation numbers
// that the off-states went over.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

__global__ void tiny(unsigned int *value) { *value += 1; }

unsigned int *value = nullptr;
int launches = 20000;
std::atomic<uint64_t> counted{0};
std::atomic<uint32_t> greatest{0};
std::atomic<uint64_t> kernels{0};

void need(CUptiResult result, const char *what) {
  if (result == CUPTI_SUCCESS) return;
  const char *text = nullptr;
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "%s: %s\n", what, text != nullptr ? text : "?");
  std::exit(1);
}

void CUPTIAPI requested(uint8_t **buffer, size_t *bytes, size_t *records) {
  *bytes = size_t{8} << 20;
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(64, *bytes));
  *records = 0;
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  CUpti_Activity *record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    // The fields up to the correlation number are the same in all versions since 11.6.
    const uint32_t id = reinterpret_cast<CUpti_ActivityKernel9 *>(record)->correlationId;
    uint32_t before = greatest;
    while (id > before && !greatest.compare_exchange_weak(before, id)) {
    }
    ++kernels;
  }
  std::free(buffer);
}

void CUPTIAPI on_call(void *, CUpti_CallbackDomain, CUpti_CallbackId, const CUpti_CallbackData *data) {
  if (data->callbackSite == CUPTI_API_ENTER) counted.fetch_add(1, std::memory_order_relaxed);
}

double loop() {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const auto begin = Clock::now();
    for (int i = 0; i < launches; ++i) tiny<<<1, 1>>>(value);
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / launches);
    cudaDeviceSynchronize();
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// A launch that the driver refuses at once: what remains is the call and what CUPTI puts around it.
double refused_launch() {
  using Clock = std::chrono::steady_clock;
  double least = 1e9;
  for (int batch = 0; batch < 7; ++batch) {
    const auto begin = Clock::now();
    for (int i = 0; i < 1000; ++i) cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    least = std::min(least, std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / 1000);
  }
  return least;
}

double version_call() {
  using Clock = std::chrono::steady_clock;
  double least = 1e9;
  for (int batch = 0; batch < 7; ++batch) {
    int version = 0;
    const auto begin = Clock::now();
    for (int i = 0; i < 1000; ++i) cuDriverGetVersion(&version);
    least = std::min(least, std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / 1000);
  }
  return least;
}

uint32_t last_correlation() {
  cudaDeviceSynchronize();
  cuptiActivityFlushAll(1);
  return greatest;
}

void print(const char *name, bool comma = true) {
  std::printf("\"%s\":{\"launch_ns\":%.0f,\"driver_call_ns\":%.1f,\"refused_launch_ns\":%.1f}%s", name, loop(),
              version_call(), refused_launch(), comma ? "," : "");
  std::fflush(stdout);
}

}  // namespace

int main(int count, char **words) {
  if (count > 1) launches = std::atoi(words[1]);
  cudaMalloc(&value, sizeof(*value));
  loop();
  std::printf("{");
  print("without");
  print("without_again");

  need(cuptiActivityRegisterCallbacks(requested, completed), "register");
  print("registered");
  need(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enable");
  print("kernels_on");
  const uint32_t before = last_correlation();
  need(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "disable");
  print("off");
  need(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enable");
  tiny<<<1, 1>>>(value);
  const uint32_t after = last_correlation();
  std::printf("\"correlations_over_off\":%u,\"launches_over_off\":%d,", after - before, 7 * launches);

  using Clock = std::chrono::steady_clock;
  std::vector<double> on, off;
  for (int i = 0; i < 20; ++i) {
    auto begin = Clock::now();
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    off.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    tiny<<<1, 1>>>(value);
    begin = Clock::now();
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    on.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    tiny<<<1, 1>>>(value);
  }
  std::sort(on.begin(), on.end());
  std::sort(off.begin(), off.end());
  std::printf("\"switch_on_us\":{\"median\":%.1f,\"max\":%.1f},\"switch_off_us\":{\"median\":%.1f,\"max\":%.1f},",
              on[10], on[19], off[10], off[19]);

  need(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "disable");
  need(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2), "memory");
  print("memory_on");
  need(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY2), "disable");
  CUpti_SubscriberHandle subscriber = nullptr;
  need(cuptiSubscribe(&subscriber, reinterpret_cast<CUpti_CallbackFunc>(on_call), nullptr), "subscribe");
  print("subscribed");
  for (const CUpti_CallbackId id : {CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz}) {
    need(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id), "callback");
  }
  const uint64_t counted_before = counted;
  print("counting_launches");
  std::printf("\"counted\":%llu,", static_cast<unsigned long long>(counted - counted_before));
  need(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enable");
  print("counting_and_kernels");
  need(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "disable");
  need(cuptiUnsubscribe(subscriber), "unsubscribe");
  print("off_again");
  cudaDeviceSynchronize();
  cuptiActivityFlushAll(1);
  need(cuptiFinalize(), "finalize");
  print("finalized");
  // What it takes to attach again and to detach.
  std::vector<double> attach, detach;
  for (int i = 0; i < 9; ++i) {
    auto begin = Clock::now();
    need(cuptiActivityRegisterCallbacks(requested, completed), "register");
    need(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "enable");
    attach.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    for (int launch = 0; launch < 1000; ++launch) tiny<<<1, 1>>>(value);
    cudaDeviceSynchronize();
    begin = Clock::now();
    cuptiActivityFlushAll(1);
    need(cuptiFinalize(), "finalize");
    detach.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::sort(attach.begin(), attach.end());
  std::sort(detach.begin(), detach.end());
  std::printf("\"attach_us\":{\"median\":%.1f,\"max\":%.1f},\"detach_us\":{\"median\":%.1f,\"max\":%.1f},", attach[4],
              attach[8], detach[4], detach[8]);
  print("finalized_again", false);
  std::printf(",\"kernels\":%llu}\n", static_cast<unsigned long long>(kernels));
  return 0;
}
