// What a GPU can do at most: bandwidth of its memory and of L2, and floating-point operations per second.
//
//   nvcc -O3 -arch=native ceilings.cu -o ceilings && ./ceilings > ceilings.yaml
//   nvcc -O3 -arch=native -DCEILINGS_CUBLAS ceilings.cu -o ceilings -lcublas      # matrix products of cuBLAS too
//
// The output is what the analysis `workload` takes as ceilings_file. Each number is the median of --repeats timed launches
// (default 21) after --warm-up untimed ones (default 5), timed by events around one launch of some milliseconds. The
// greatest median of the ways to use a resource is its ceiling; all of them stand in comments with least and greatest.
// Each kernel's result is compared with what it must be, so a loop that the compiler took apart does not pass for speed.
// Leaves clocks and power limits as they are.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#ifdef CEILINGS_CUBLAS
#include <cublas_v2.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

void check(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "ceilings: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

[[noreturn]] void wrong(const char *what, double got, double expected) {
  std::fprintf(stderr, "ceilings: %s gave %.9g where %.9g was expected: its time means nothing\n", what, got, expected);
  std::exit(1);
}

int warm_up = 5;
int repeats = 21;

struct Measured {
  std::string name;
  double median, least, greatest;  // per second
};

// `amount` operations or bytes a launch.
Measured measure(const std::string &name, double amount, const std::function<void()> &launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<double> rates;
  for (int i = 0; i < warm_up + repeats; ++i) {
    check(cudaEventRecord(begin), "record");
    launch();
    check(cudaEventRecord(end), "record");
    check(cudaEventSynchronize(end), name.c_str());
    check(cudaGetLastError(), name.c_str());
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "elapsed");
    if (i >= warm_up) rates.push_back(amount / (milliseconds * 1e-3));
  }
  check(cudaEventDestroy(begin), "event");
  check(cudaEventDestroy(end), "event");
  std::sort(rates.begin(), rates.end());
  return {name, rates[rates.size() / 2], rates.front(), rates.back()};
}

// Memory ------------------------------------------------------------------------------------------------------------------

__global__ void fill(float4 *target, size_t count, float value) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    target[i] = make_float4(value, value, value, value);
  }
}

// Past L1, and as often as it is written: a plain load may be kept or left out.
__device__ float4 load(const float4 *from) {
  float4 value;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "l"(from));
  return value;
}

// Sums all of it `rounds` times; four loads under way for each thread.
__global__ void read_all(const float4 *source, size_t count, int rounds, double *sums) {
  const size_t step = size_t{gridDim.x} * blockDim.x, first = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  float a = 0, b = 0, c = 0, d = 0;
  for (int round = 0; round < rounds; ++round) {
    size_t i = first;
    for (; i + 3 * step < count; i += 4 * step) {
      const float4 p = load(source + i), q = load(source + i + step);
      const float4 r = load(source + i + 2 * step), s = load(source + i + 3 * step);
      a += (p.x + p.y) + (p.z + p.w);
      b += (q.x + q.y) + (q.z + q.w);
      c += (r.x + r.y) + (r.z + r.w);
      d += (s.x + s.y) + (s.z + s.w);
    }
    for (; i < count; i += step) {
      const float4 p = load(source + i);
      a += (p.x + p.y) + (p.z + p.w);
    }
  }
  atomicAdd(sums, static_cast<double>(a) + b + c + d);
}

__global__ void copy_all(const float4 *source, float4 *target, size_t count) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += step) {
    __stcs(target + i, __ldcs(source + i));
  }
}

double sum_of(const std::function<void(double *)> &launch) {
  double *sums = nullptr, out = 0;
  check(cudaMalloc(&sums, sizeof(double)), "sums");
  check(cudaMemset(sums, 0, sizeof(double)), "sums");
  launch(sums);
  check(cudaMemcpy(&out, sums, sizeof(double), cudaMemcpyDeviceToHost), "sums");
  check(cudaFree(sums), "sums");
  return out;
}

// Arithmetic --------------------------------------------------------------------------------------------------------------

constexpr int kChains = 8;  // independent ones hide the latency of a multiply-add

template <typename T>
__device__ T multiply_add(T a, T b, T c);
template <>
__device__ float multiply_add(float a, float b, float c) {
  return fmaf(a, b, c);
}
template <>
__device__ double multiply_add(double a, double b, double c) {
  return fma(a, b, c);
}
template <>
__device__ __half2 multiply_add(__half2 a, __half2 b, __half2 c) {
  return __hfma2(a, b, c);
}

template <typename T>
__device__ T from(float value) {
  return static_cast<T>(value);
}
template <>
__device__ __half2 from(float value) {
  return __float2half2_rn(value);
}
__device__ double first_of(float value) { return value; }
__device__ double first_of(double value) { return value; }
__device__ double first_of(__half2 value) { return __low2float(value); }

// x = factor * x + addend, `rounds` times in each chain. With 0.5 and 1 it tends to 2 from anywhere.
template <typename T>
__global__ void chains(int rounds, float factor, float addend, double *result) {
  const T a = from<T>(factor), b = from<T>(addend);
  T x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) x[i] = from<T>(static_cast<float>(i));
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) x[i] = multiply_add(a, x[i], b);
  }
  double sum = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) sum += first_of(x[i]);
  if (blockIdx.x == 0 && threadIdx.x == 0) *result = sum;
  // Never true: keeps the work of all threads.
  if (sum == -1.0) *result = sum;
}

// Tensor cores, by the warp-wide instruction m16n8k16: 2 * 16 * 8 * 16 operations.
constexpr int kTiles = 8;
constexpr double kTileOperations = 2.0 * 16 * 8 * 16;

enum class Half { kFp16, kBf16 };

template <Half kind>
__device__ void tile(float (&c)[4], uint32_t a, uint32_t b) {
#if __CUDA_ARCH__ >= 800
  if (kind == Half::kFp16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a), "r"(b));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a), "r"(b));
  }
#endif
}

// All elements of the operands are `a` and `b`, packed twice into each register: each round adds 16 * a * b to c.
template <Half kind>
__global__ void tiles(int rounds, uint32_t a, uint32_t b, double *result) {
  float c[kTiles][4] = {};
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) tile<kind>(c[i], a, b);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
  if (blockIdx.x == 0 && threadIdx.x == 0) *result = sum;
  if (sum == -1.0f) *result = sum;
}

uint32_t twice(uint16_t bits) { return bits | uint32_t{bits} << 16; }

#ifdef CEILINGS_CUBLAS
void check(cublasStatus_t status, const char *what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "ceilings: %s: cuBLAS status %d\n", what, static_cast<int>(status));
  std::exit(1);
}

// Uniform in [-0.5, 0.5): operands of zeros would draw less power and so run faster.
template <typename T>
__global__ void randomize(T *target, size_t count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 31) * 0xbf58476d1ce4e5b9u;
    target[i] = static_cast<T>(static_cast<float>(bits >> 40) * (1.0f / (1 << 24)) - 0.5f);
  }
}

template <typename T>
Measured matrix_product(cublasHandle_t handle, const char *name, int size, cudaDataType_t type, cudaDataType_t out,
                        size_t out_bytes, cublasComputeType_t compute) {
  const size_t count = static_cast<size_t>(size) * size;
  T *a = nullptr, *b = nullptr;
  void *c = nullptr;
  check(cudaMalloc(&a, count * sizeof(T)), name);
  check(cudaMalloc(&b, count * sizeof(T)), name);
  check(cudaMalloc(&c, count * out_bytes), name);
  randomize<<<1024, 256>>>(a, count);
  randomize<<<1024, 256>>>(b, count);
  check(cudaDeviceSynchronize(), name);
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const bool is_double = compute == CUBLAS_COMPUTE_64F;
  const void *const alpha = is_double ? static_cast<const void *>(&one64) : &one;
  const void *const beta = is_double ? static_cast<const void *>(&zero64) : &zero;
  const Measured out_rate = measure(name, 2.0 * size * static_cast<double>(count), [&] {
    check(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, size, size, size, alpha, a, type, size, b, type, size, beta, c,
                       out, size, compute, CUBLAS_GEMM_DEFAULT),
          name);
  });
  check(cudaFree(a), name);
  check(cudaFree(b), name);
  check(cudaFree(c), name);
  return out_rate;
}
#endif

struct Ceiling {
  const char *name;
  std::vector<Measured> ways;
};

void print(const Ceiling &ceiling) {
  if (ceiling.ways.empty()) return;
  double best = 0;
  for (const Measured &way : ceiling.ways) best = std::max(best, way.median);
  std::printf("  %s: %.4e\n", ceiling.name, best);
  for (const Measured &way : ceiling.ways) {
    std::printf("  # %s: median %.4e, least %.4e, greatest %.4e%s\n", way.name.c_str(), way.median, way.least,
                way.greatest, way.greatest > 1.1 * way.least ? "  (spread above 10 %)" : "");
  }
}

}  // namespace

int main(int argc, char **argv) {
  int device = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--repeats") == 0) {
      repeats = std::max(1, std::atoi(argv[i + 1]));
    } else if (std::strcmp(argv[i], "--warm-up") == 0) {
      warm_up = std::max(0, std::atoi(argv[i + 1]));
    } else if (std::strcmp(argv[i], "--device") == 0) {
      device = std::atoi(argv[i + 1]);
    } else {
      std::fprintf(stderr, "ceilings: unknown option %s (--repeats, --warm-up, --device)\n", argv[i]);
      return 2;
    }
  }
  check(cudaSetDevice(device), "device");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "properties");
  size_t free_bytes = 0, all_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &all_bytes), "memory");
  const int processors = properties.multiProcessorCount;
  const int threads = 256;
  const int blocks = processors * (properties.maxThreadsPerMultiProcessor / threads);

  // Memory: far beyond L2, a quarter of what is free at most.
  Ceiling dram{"dram", {}}, l2{"l2", {}};
  {
    const size_t bytes = std::min<size_t>(size_t{2} << 30, free_bytes / 4) / sizeof(float4) * sizeof(float4);
    const size_t count = bytes / sizeof(float4);
    float4 *a = nullptr, *b = nullptr;
    check(cudaMalloc(&a, bytes), "buffer");
    check(cudaMalloc(&b, bytes), "buffer");
    fill<<<blocks, threads>>>(a, count, 1.0f);
    fill<<<blocks, threads>>>(b, count, 0.0f);
    check(cudaDeviceSynchronize(), "fill");
    const auto read = [&](double *sums) { read_all<<<blocks, threads>>>(a, count, 1, sums); };
    if (const double sum = sum_of(read); sum != 4.0 * count) wrong("reading", sum, 4.0 * count);
    double *sums = nullptr;
    check(cudaMalloc(&sums, sizeof(double)), "sums");
    dram.ways.push_back(measure("reading", static_cast<double>(bytes), [&] { read(sums); }));
    dram.ways.push_back(
        measure("copying, read and written bytes", 2.0 * bytes, [&] { copy_all<<<blocks, threads>>>(a, b, count); }));
    const auto copied = [&](double *into) { read_all<<<blocks, threads>>>(b, count, 1, into); };
    if (const double sum = sum_of(copied); sum != 4.0 * count) wrong("copying", sum, 4.0 * count);

    // L2: a quarter of it, many times over.
    const size_t l2_count = static_cast<size_t>(properties.l2CacheSize) / 4 / sizeof(float4);
    const int rounds = static_cast<int>(std::max<size_t>(1, (size_t{16} << 30) / (l2_count * sizeof(float4))));
    const auto read_l2 = [&](double *into) { read_all<<<blocks, threads>>>(a, l2_count, rounds, into); };
    const double expected = 4.0 * l2_count * rounds;
    if (l2_count != 0) {
      // Sums of ones stay exact below 2^24 in each of a thread's four.
      if (const double sum = sum_of(read_l2); sum != expected) wrong("reading L2", sum, expected);
      l2.ways.push_back(measure("reading a quarter of L2", 16.0 * l2_count * rounds, [&] { read_l2(sums); }));
    }
    check(cudaFree(sums), "sums");
    check(cudaFree(a), "buffer");
    check(cudaFree(b), "buffer");
  }

  double *result = nullptr, host = 0;
  check(cudaMalloc(&result, sizeof(double)), "result");
  const auto fetched = [&] {
    check(cudaMemcpy(&host, result, sizeof(double), cudaMemcpyDeviceToHost), "result");
    return host;
  };
  Ceiling fp64{"fp64", {}}, fp32{"fp32", {}}, fp16{"fp16", {}}, tensor{"tensor", {}};
  Ceiling tensor_fp64{"tensor_fp64", {}}, tensor_tf32{"tensor_tf32", {}};
  const double lanes = static_cast<double>(blocks) * threads;
  {
    const int rounds = 16384;
    const double operations = 2.0 * kChains * rounds * lanes;
    const double expected = 2.0 * kChains;  // each chain has come to 2
    const auto checked = [&](const char *name, Ceiling &into, double each, const std::function<void()> &launch) {
      launch();
      if (const double sum = fetched(); std::fabs(sum - expected) > 1e-2) wrong(name, sum, expected);
      into.ways.push_back(measure(name, each * operations, launch));
    };
    checked("multiply-add chains", fp32, 1, [&] { chains<float><<<blocks, threads>>>(rounds, 0.5f, 1.0f, result); });
    checked("multiply-add chains", fp64, 1, [&] { chains<double><<<blocks, threads>>>(rounds, 0.5f, 1.0f, result); });
    checked("multiply-add chains of pairs", fp16, 2,
            [&] { chains<__half2><<<blocks, threads>>>(rounds, 0.5f, 1.0f, result); });
  }
  if (properties.major >= 8) {
    const int rounds = 8192;
    const double operations = kTileOperations * kTiles * rounds * lanes / 32;
    // 1 and 2^-7: a round adds 16 / 128 = 2^-3 to each of 32 sums, exact in float.
    const double expected = 32.0 * rounds / 8;
    const auto checked = [&](const char *name, const std::function<void()> &launch) {
      launch();
      if (const double sum = fetched(); sum != expected) wrong(name, sum, expected);
      tensor.ways.push_back(measure(name, operations, launch));
    };
    const uint32_t fp16_one = twice(0x3c00), fp16_part = twice(0x2000);  // 1, 2^-7
    const uint32_t bf16_one = twice(0x3f80), bf16_part = twice(0x3c00);
    checked("mma.sync m16n8k16 fp16",
            [&] { tiles<Half::kFp16><<<blocks, threads>>>(rounds, fp16_one, fp16_part, result); });
    checked("mma.sync m16n8k16 bf16",
            [&] { tiles<Half::kBf16><<<blocks, threads>>>(rounds, bf16_one, bf16_part, result); });
  }
  check(cudaFree(result), "result");

#ifdef CEILINGS_CUBLAS
  {
    cublasHandle_t handle;
    check(cublasCreate(&handle), "cublasCreate");
    tensor.ways.push_back(
        matrix_product<__half>(handle, "cuBLAS fp16 8192^3", 8192, CUDA_R_16F, CUDA_R_16F, 2, CUBLAS_COMPUTE_32F));
    tensor.ways.push_back(matrix_product<__nv_bfloat16>(handle, "cuBLAS bf16 8192^3", 8192, CUDA_R_16BF, CUDA_R_16BF, 2,
                                                        CUBLAS_COMPUTE_32F));
    tensor_tf32.ways.push_back(matrix_product<float>(handle, "cuBLAS tf32 8192^3", 8192, CUDA_R_32F, CUDA_R_32F, 4,
                                                     CUBLAS_COMPUTE_32F_FAST_TF32));
    fp32.ways.push_back(
        matrix_product<float>(handle, "cuBLAS fp32 4096^3", 4096, CUDA_R_32F, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F));
    tensor_fp64.ways.push_back(
        matrix_product<double>(handle, "cuBLAS fp64 4096^3", 4096, CUDA_R_64F, CUDA_R_64F, 8, CUBLAS_COMPUTE_64F));
    check(cublasDestroy(handle), "cublasDestroy");
  }
#endif

  int clock = 0, memory_clock = 0, runtime = 0, driver = 0;
  (void)cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device);
  (void)cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, device);
  (void)cudaRuntimeGetVersion(&runtime);
  (void)cudaDriverGetVersion(&driver);
  std::printf("# Ceilings of device %d for the option ceilings_file of the analysis workload.\n", device);
  std::printf("# %s, %d processors, L2 %d bytes, greatest clocks %d and %d kHz; CUDA runtime %d, driver %d.\n",
              properties.name, processors, properties.l2CacheSize, clock, memory_clock, runtime, driver);
  std::printf("# Medians of %d launches; operations and bytes per second.\n", repeats);
  std::printf("device: \"%s\"\nceilings:\n", properties.name);
  for (const Ceiling *const ceiling : {&dram, &l2, &fp64, &fp32, &fp16, &tensor, &tensor_fp64, &tensor_tf32}) {
    print(*ceiling);
  }
  return 0;
}
