// A stand-in for CUDA's runtime: as much of it as the programs of tests/gpu/patterns use, on the CPU.
//
// Kernels run thread by thread. The programs are compiled with the compiler's instrumentation for race detection, whose calls
// standin.cpp takes itself: so it sees each load and store of a kernel, and emits the records that the port
// cuda_access would. A program must not synchronise within a block. Each operation ends before the call returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#define __global__
#define __device__ inline
#define __shared__ static __attribute__((section("standin_shared")))

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3
};
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
enum cudaMemAllocationType { cudaMemAllocationTypePinned = 1 };
enum cudaMemLocationType { cudaMemLocationTypeDevice = 1 };
constexpr unsigned cudaMemAttachGlobal = 1, cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;

struct dim3 {
  dim3(unsigned x_ = 1) : x(x_) {}  // NOLINT(google-explicit-constructor): as in CUDA
  unsigned x, y = 1, z = 1;
};
struct StandinStream;
struct StandinEvent;
struct StandinPool;
using cudaStream_t = StandinStream *;
using cudaEvent_t = StandinEvent *;
using cudaMemPool_t = StandinPool *;
struct cudaMemPoolProps {
  cudaMemAllocationType allocType;
  struct {
    cudaMemLocationType type;
    int id;
  } location;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

const char *cudaGetErrorString(cudaError_t status);
cudaError_t cudaGetLastError();
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMalloc(void **address, size_t bytes);
cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned flags);
cudaError_t cudaMallocHost(void **address, size_t bytes);
cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaFree(void *address);
cudaError_t cudaFreeHost(void *address);
cudaError_t cudaFreeAsync(void *address, cudaStream_t stream);
cudaError_t cudaMemcpy(void *target, const void *source, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpy2D(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                         size_t rows, cudaMemcpyKind kind);
cudaError_t cudaMemset(void *target, int value, size_t bytes);
cudaError_t cudaMemset2D(void *target, size_t pitch, int value, size_t width, size_t rows);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);

template <typename T>
cudaError_t cudaMallocHost(T **address, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void **>(address), bytes);
}

namespace standin {

// Calls `thread(user)` for each thread of the grid, between the records of a launch.
void launch(const cudaLaunchConfig_t &configuration, const void *kernel, void (*thread)(void *user), void *user);

}  // namespace standin

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *configuration, void (*kernel)(Parameters...),
                               Arguments &&...arguments) {
  auto call = [&] { kernel(arguments...); };
  standin::launch(
      *configuration, reinterpret_cast<const void *>(kernel),
      [](void *user) { (*static_cast<decltype(call) *>(user))(); }, &call);
  return cudaSuccess;
}
