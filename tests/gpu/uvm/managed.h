// What the programs of this folder share: checked calls, managed memory that lies on the host, times, JSON.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

// Managed memory is never more than this: beyond what a card has free it may hang it.
constexpr uint64_t kMostManaged = uint64_t{4} << 30;

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const cudaError_t error_ = (call);                                                                \
    if (error_ != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      std::exit(3);                                                                                   \
    }                                                                                                 \
  } while (0)

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline void *allocate_managed(uint64_t bytes) {
  static uint64_t all = 0;
  all += bytes;
  if (all > kMostManaged) {
    std::fprintf(stderr, "more than 4 GiB of managed memory was asked for\n");
    std::exit(2);
  }
  void *out = nullptr;
  CHECK(cudaMallocManaged(&out, bytes));
  return out;
}

// Writes every page by the host, on a few threads: afterwards the pages are the host's.
inline void write_by_host(void *memory, uint64_t bytes, int value = 1) {
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  const uint64_t part = (bytes / threads + 4095) / 4096 * 4096;
  std::vector<std::thread> all;
  for (uint64_t begin = 0; begin < bytes; begin += part) {
    all.emplace_back([=] { std::memset(static_cast<char *>(memory) + begin, value, std::min(part, bytes - begin)); });
  }
  for (std::thread &one : all) one.join();
}

constexpr int kHost = -1;

inline void prefetch(void *memory, uint64_t bytes, int device, cudaStream_t stream) {
#if CUDART_VERSION >= 13000
  cudaMemLocation place{};
  place.type = device == kHost ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device == kHost ? 0 : device;
  CHECK(cudaMemPrefetchAsync(memory, bytes, place, 0, stream));
#else
  CHECK(cudaMemPrefetchAsync(memory, bytes, device == kHost ? cudaCpuDeviceId : device, stream));
#endif
}

inline void advise(void *memory, uint64_t bytes, cudaMemoryAdvise advice, int device) {
#if CUDART_VERSION >= 13000
  cudaMemLocation place{};
  place.type = device == kHost ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device == kHost ? 0 : device;
  CHECK(cudaMemAdvise(memory, bytes, advice, place));
#else
  CHECK(cudaMemAdvise(memory, bytes, advice, device == kHost ? cudaCpuDeviceId : device));
#endif
}

// Loads a kernel's code without launching it, so that the first launch is not the one that pays for it.
template <typename Kernel>
void load_kernel(Kernel kernel) {
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(kernel)));
}

inline const char *option(int argc, char **argv, const char *name, const char *fallback) {
  for (int index = 1; index + 1 < argc; ++index) {
    if (std::strcmp(argv[index], name) == 0) return argv[index + 1];
  }
  return fallback;
}
