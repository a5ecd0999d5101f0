// Whether CUPTI records every kernel that is launched while its kinds are switched on, when they are switched on and off
// again and again beside threads that launch all the time: what a budgeted capture relies on.
//
//   switching [WINDOWS]   windows of 20 ms that are collected, 80 ms apart; default 30
//
// Thread 0 launches from the beginning, thread 1 from a moment in which nothing is collected. Prints one JSON object: for
// each window the launches of each thread while it was open, and the kernels and copies recorded of each, with stamps of
// 0 counted apart. A thread works on a stream of its own, by which its records are known.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct Counts {
  uint64_t kernels = 0, copies = 0, zero = 0;
};

std::mutex mutex;
std::map<uint32_t, Counts> recorded;  // by CUPTI's number of the stream
std::atomic<uint64_t> launched[2];
std::atomic<bool> done{false};
uint32_t stream_ids[2];

__global__ void tiny(unsigned int *value) { *value += 1; }

void need(CUptiResult result, const char *what) {
  if (result == CUPTI_SUCCESS) return;
  const char *text = nullptr;
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "%s: %s\n", what, text != nullptr ? text : "?");
  std::exit(1);
}

uint64_t stamp() { return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()); }

void CUPTIAPI requested(uint8_t **buffer, size_t *bytes, size_t *records) {
  *bytes = size_t{8} << 20;
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(64, *bytes));
  *records = 0;
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {
  std::lock_guard<std::mutex> hold(mutex);
  CUpti_Activity *record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto *kernel = reinterpret_cast<CUpti_ActivityKernel9 *>(record);
      ++recorded[kernel->streamId].kernels;
      recorded[kernel->streamId].zero += kernel->start == 0 ? 1 : 0;
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto *copy = reinterpret_cast<CUpti_ActivityMemcpy5 *>(record);
      ++recorded[copy->streamId].copies;
      recorded[copy->streamId].zero += copy->start == 0 ? 1 : 0;
    }
  }
  std::free(buffer);
}

void launch_all_the_time(int index) {
  cudaStream_t stream = nullptr;
  unsigned int *values = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMalloc(&values, 8192);
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  cuptiGetStreamIdEx(context, stream, 0, &stream_ids[index]);
  for (uint64_t i = 0; !done; ++i) {
    tiny<<<1, 1, 0, stream>>>(values);
    if (i % 8 == 0) cudaMemcpyAsync(values + 1024, values, 256, cudaMemcpyDeviceToDevice, stream);
    ++launched[index];
    if (i % 64 == 0) cudaStreamSynchronize(stream);
  }
  cudaStreamSynchronize(stream);
}

void kinds(bool on) {
  const auto one = on ? cuptiActivityEnable : cuptiActivityDisable;
  need(one(CUPTI_ACTIVITY_KIND_MEMCPY), "copies");
  need(one(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "kernels");
}

}  // namespace

int main(int count, char **words) {
  const int windows = count > 1 ? std::atoi(words[1]) : 30;
  const bool own_clock = count > 2;  // any second word: CUPTI's own clock
  cudaFree(nullptr);
  if (!own_clock) need(cuptiActivityRegisterTimestampCallback(stamp), "clock");
  need(cuptiActivityRegisterCallbacks(requested, completed), "register");
  std::thread first(launch_all_the_time, 0);
  std::thread second;
  std::printf("{\"clock\":\"%s\",\"windows\":[", own_clock ? "vendor" : "registered");
  for (int window = 0; window < windows; ++window) {
    const uint64_t before[2] = {launched[0], launched[1]};
    kinds(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    kinds(false);
    const uint64_t made[2] = {launched[0] - before[0], launched[1] - before[1]};
    if (window == 2) second = std::thread(launch_all_the_time, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(80));
    cuptiActivityFlushAll(1);
    std::lock_guard<std::mutex> hold(mutex);
    std::printf("%s{", window == 0 ? "" : ",");
    for (int index = 0; index < 2; ++index) {
      const Counts &got = recorded[stream_ids[index]];
      std::printf("%s\"thread_%d\":{\"launched\":%llu,\"kernels\":%llu,\"copies\":%llu,\"zero\":%llu}",
                  index == 0 ? "" : ",", index, static_cast<unsigned long long>(made[index]),
                  static_cast<unsigned long long>(got.kernels), static_cast<unsigned long long>(got.copies),
                  static_cast<unsigned long long>(got.zero));
    }
    std::printf("}");
    recorded.clear();
  }
  done = true;
  first.join();
  if (second.joinable()) second.join();
  std::printf("]}\n");
  return 0;
}
