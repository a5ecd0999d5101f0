// The stand-in for CUDA's runtime: memory, streams, launches; recorder.cpp says what becomes of the accesses.
#include "cuda_runtime.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "recorder.h"

dim3 threadIdx(0), blockIdx(0), blockDim(1), gridDim(1);

struct StandinStream {
  unsigned number;
};
struct StandinEvent {
  unsigned number;
};
struct StandinPool {
  unsigned number;
};

namespace standin {
namespace {

constexpr size_t kArenaBytes = size_t{256} << 20;
constexpr size_t kAlignment = 512;

// Device memory: first fit, so what is asked for again lies where it lay.
class Arena {
 public:
  Arena() {
    void *const memory = ::mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    begin_ = reinterpret_cast<uint64_t>(memory);
  }

  uint64_t take(size_t bytes) {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    uint64_t at = begin_;
    for (const auto &[begin, size] : live_) {
      if (begin - at >= rounded) break;
      at = begin + size;
    }
    if (at + rounded > begin_ + kArenaBytes) return 0;
    live_.emplace(at, rounded);
    return at;
  }

  bool give(uint64_t address) { return live_.erase(address) != 0; }
  bool contains(const void *address) const {
    const auto at = reinterpret_cast<uint64_t>(address);
    return at >= begin_ && at < begin_ + kArenaBytes;
  }

 private:
  uint64_t begin_ = 0;
  std::map<uint64_t, size_t> live_;  // by begin, rounded sizes
};

Arena &arena() {
  static Arena instance;
  return instance;
}

StandinPool default_pool{1};
unsigned next_handle = 2;

cudaError_t allocate(void **address, size_t bytes, uint32_t kind, StandinPool *pool, StandinStream *stream) {
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  const uint64_t at = arena().take(bytes);
  if (at == 0) return cudaErrorMemoryAllocation;
  *address = reinterpret_cast<void *>(at);
  recorder().allocated(at, bytes, kind, reinterpret_cast<uint64_t>(pool), reinterpret_cast<uint64_t>(stream));
  return cudaSuccess;
}

cudaError_t give_back(void *address, StandinPool *pool, StandinStream *stream) {
  if (address == nullptr) return cudaSuccess;
  const auto at = reinterpret_cast<uint64_t>(address);
  if (!arena().give(at)) return cudaErrorInvalidValue;
  recorder().freed(at, reinterpret_cast<uint64_t>(pool), reinterpret_cast<uint64_t>(stream));
  return cudaSuccess;
}

cudaError_t copy(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width, size_t rows,
                 bool is_async, StandinStream *stream) {
  for (size_t row = 0; row < rows; ++row) {
    std::memcpy(static_cast<char *>(target) + row * target_pitch,
                static_cast<const char *>(source) + row * source_pitch, width);
  }
  if (width * rows == 0) return cudaSuccess;
  Transfer transfer;
  transfer.source = reinterpret_cast<uint64_t>(source);
  transfer.target = reinterpret_cast<uint64_t>(target);
  transfer.is_from_device = arena().contains(source);
  transfer.is_to_device = arena().contains(target);
  transfer.width = width;
  transfer.rows = rows;
  transfer.source_pitch = rows > 1 ? source_pitch : 0;
  transfer.target_pitch = rows > 1 ? target_pitch : 0;
  transfer.is_async = is_async;
  transfer.stream = reinterpret_cast<uint64_t>(stream);
  recorder().transferred(transfer);
  return cudaSuccess;
}

}  // namespace

void launch(const cudaLaunchConfig_t &configuration, const void *kernel, void (*thread)(void *user), void *user) {
  gridDim = configuration.gridDim;
  blockDim = configuration.blockDim;
  recorder().begin_launch(kernel, reinterpret_cast<uint64_t>(configuration.stream), gridDim.x, blockDim.x);
  for (unsigned block = 0; block < gridDim.x; ++block) {
    blockIdx.x = block;
    for (unsigned index = 0; index < blockDim.x; ++index) {
      threadIdx.x = index;
      recorder().begin_thread(block, index);
      thread(user);
    }
    recorder().end_block();
  }
  recorder().end_launch();
}

}  // namespace standin

using standin::arena;

const char *cudaGetErrorString(cudaError_t status) { return status == cudaSuccess ? "no error" : "error"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() {
  standin::recorder().synchronised(SONDE_SYNC_CONTEXT, UINT64_MAX, 0);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **address, size_t bytes) {
  return standin::allocate(address, bytes, standin::kDeviceMemory, nullptr, nullptr);
}
cudaError_t cudaMallocManaged(void **address, size_t bytes, unsigned) {
  return standin::allocate(address, bytes, standin::kManagedMemory, nullptr, nullptr);
}
cudaError_t cudaMallocHost(void **address, size_t bytes) {
  *address = std::calloc(bytes, 1);
  return *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaMallocAsync(void **address, size_t bytes, cudaStream_t stream) {
  return standin::allocate(address, bytes, standin::kDeviceMemory, &standin::default_pool, stream);
}
cudaError_t cudaMallocFromPoolAsync(void **address, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return standin::allocate(address, bytes, standin::kDeviceMemory, pool, stream);
}
cudaError_t cudaFree(void *address) { return standin::give_back(address, nullptr, nullptr); }
cudaError_t cudaFreeHost(void *address) {
  std::free(address);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void *address, cudaStream_t stream) {
  return standin::give_back(address, &standin::default_pool, stream);
}

cudaError_t cudaMemcpy(void *target, const void *source, size_t bytes, cudaMemcpyKind) {
  return standin::copy(target, bytes, source, bytes, bytes, 1, false, nullptr);
}
cudaError_t cudaMemcpyAsync(void *target, const void *source, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return standin::copy(target, bytes, source, bytes, bytes, 1, true, stream);
}
cudaError_t cudaMemcpy2D(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                         size_t rows, cudaMemcpyKind) {
  return standin::copy(target, target_pitch, source, source_pitch, width, rows, false, nullptr);
}
cudaError_t cudaMemset(void *target, int value, size_t bytes) { return cudaMemset2D(target, bytes, value, bytes, 1); }
cudaError_t cudaMemset2D(void *target, size_t pitch, int value, size_t width, size_t rows) {
  for (size_t row = 0; row < rows; ++row) std::memset(static_cast<char *>(target) + row * pitch, value, width);
  if (width * rows == 0) return cudaSuccess;
  standin::Transfer transfer;
  transfer.target = reinterpret_cast<uint64_t>(target);
  transfer.is_to_device = true;
  transfer.is_set = true;
  transfer.value = static_cast<uint32_t>(value) & 0xffu;
  transfer.width = width;
  transfer.rows = rows;
  transfer.target_pitch = rows > 1 ? pitch : 0;
  standin::recorder().transferred(transfer);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  *stream = new StandinStream{standin::next_handle++};
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  standin::recorder().synchronised(SONDE_SYNC_STREAM, reinterpret_cast<uint64_t>(stream), 0);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  standin::recorder().synchronised(SONDE_SYNC_STREAM_WAIT_EVENT, reinterpret_cast<uint64_t>(stream),
                                   reinterpret_cast<uint64_t>(event));
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  *event = new StandinEvent{standin::next_handle++};
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *) {
  *pool = new StandinPool{standin::next_handle++};
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  delete pool;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *) { return cudaSuccess; }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int) {
  *pool = &standin::default_pool;
  return cudaSuccess;
}
