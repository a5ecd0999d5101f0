// Kernels whose time under patched code is compared: streaming, gathering, computing. Prints one JSON line with the
// milliseconds of each launch (device events) and of a loop of launches that nothing waits for (host).
//
//     bench [REPEATS [LOOP]]      default 7 launches of each, and a loop of 0
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                         \
  do {                                                                                      \
    const cudaError_t status_ = (call);                                                     \
    if (status_ != cudaSuccess) {                                                           \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (0)

extern "C" {
__global__ void stream(const float *a, const float *b, float *c) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  c[i] = a[i] + b[i];
}
__global__ void gather(const float *a, const int *index, float *c) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  c[i] = a[index[i]];
}
__global__ void heavy(const float *a, float *c) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  float value = a[i];
  for (int k = 0; k < 500; ++k) value = value * 1.0001f + 0.5f;
  c[i] = value;
}
__global__ void fill(int *index, size_t n) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  unsigned long long x = i * 0x9E3779B97F4A7C15ull;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 32;
  index[i] = static_cast<int>(x % n);
}
}

int main(int argc, char **argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 7;
  const int loop = argc > 2 ? std::atoi(argv[2]) : 0;
  const size_t n = size_t{1} << 26;
  const unsigned blocks = static_cast<unsigned>(n / 256);
  float *a, *b, *c;
  int *index;
  CHECK(cudaMalloc(&a, n * 4));
  CHECK(cudaMalloc(&b, n * 4));
  CHECK(cudaMalloc(&c, n * 4));
  CHECK(cudaMalloc(&index, n * 4));
  std::vector<void *> others(1000);  // a table of a size that programs have
  for (void *&other : others) CHECK(cudaMalloc(&other, 4096));
  CHECK(cudaMemset(a, 0, n * 4));
  CHECK(cudaMemset(b, 0, n * 4));
  fill<<<blocks, 256>>>(index, n);
  CHECK(cudaDeviceSynchronize());
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  const char *const names[] = {"stream", "gather", "heavy"};
  const auto launch = [&](int kernel) {
    if (kernel == 0) stream<<<blocks, 256>>>(a, b, c);
    if (kernel == 1) gather<<<blocks, 256>>>(a, index, c);
    if (kernel == 2) heavy<<<blocks, 256>>>(a, c);
  };
  std::printf("{");
  for (int kernel = 0; kernel < 3; ++kernel) {
    std::printf("%s\"%s\": [", kernel == 0 ? "" : ", ", names[kernel]);
    for (int i = 0; i < repeats; ++i) {
      CHECK(cudaEventRecord(begin));
      launch(kernel);
      CHECK(cudaEventRecord(end));
      CHECK(cudaDeviceSynchronize());
      float milliseconds = 0;
      CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
      std::printf("%s%.4f", i == 0 ? "" : ", ", milliseconds);
    }
    std::printf("]");
  }
  double milliseconds = 0;
  if (loop != 0) {
    launch(0);
    CHECK(cudaDeviceSynchronize());
    const auto from = std::chrono::steady_clock::now();
    for (int i = 0; i < loop; ++i) launch(0);
    CHECK(cudaDeviceSynchronize());
    milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
  }
  std::printf(", \"loop\": %d, \"loop_ms\": %.4f}\n", loop, milliseconds);
  return 0;
}
