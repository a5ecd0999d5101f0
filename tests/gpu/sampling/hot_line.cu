// Two kernels whose samples and counts are known: `hot` spends nearly all of its time in one line, `counted` executes
// a known number of instructions and moves a known number of bytes.
//
//   hot_line [launches]     prints one JSON line: launches and the mean time of one of `hot`
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                        \
  do {                                                                     \
    const cudaError_t result = (call);                                     \
    if (result != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(result)); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

__device__ __forceinline__ float chain(float x, int steps) {
  for (int i = 0; i < steps; ++i) {
    x = __fsqrt_rn(x) * 1.5f + 0.25f;  // HOT LINE
  }
  return x;
}

__global__ void hot(float *data, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = data[i];
  x = chain(x, steps);
  data[i] = x;
}

// Reads `count` floats once: 4 * count bytes from memory when nothing is cached.
__global__ void counted(const float4 *data, float *out, size_t count) {
  float sum = 0.0f;
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count / 4; i += stride) {
    const float4 four = data[i];
    sum += four.x + four.y + four.z + four.w;
  }
  if (sum == 12345.0f) out[0] = sum;  // keeps the loads
}

int main(int argc, char **argv) {
  const int launches = argc > 1 ? std::atoi(argv[1]) : 20;
  constexpr int kBlocks = 264;
  constexpr int kThreads = 256;
  constexpr size_t kCount = size_t{256} << 20;  // 1 GiB of floats: more than any second-level cache
  float *data = nullptr;
  float *out = nullptr;
  CHECK(cudaMalloc(&data, kCount * sizeof(float)));
  CHECK(cudaMalloc(&out, sizeof(float)));
  CHECK(cudaMemset(data, 0, kCount * sizeof(float)));
  hot<<<kBlocks, kThreads>>>(data, 1000);  // warm
  CHECK(cudaDeviceSynchronize());
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < launches; ++i) {
    CHECK(cudaEventRecord(begin));
    hot<<<kBlocks, kThreads>>>(data, 100000);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    times.push_back(milliseconds);
  }
  for (int i = 0; i < 3; ++i) counted<<<kBlocks, kThreads>>>(reinterpret_cast<float4 *>(data), out, kCount);
  CHECK(cudaDeviceSynchronize());
  std::sort(times.begin(), times.end());
  std::printf("{\"launches\": %d, \"median_ms\": %.4f, \"counted_bytes\": %zu}\n", launches + 4,
              times[times.size() / 2], kCount * sizeof(float));
  return 0;
}
