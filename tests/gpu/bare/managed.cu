// Does CUPTI report every migration of managed memory? A client of its unified-memory counters alone, without Sonde: pages
// on the host, one kernel over all of them, one read by the CPU; what was reported against what must have moved.
//
//   nvcc -arch=sm_90 -I$CUDA/extras/CUPTI/include managed.cu -o managed -lcupti -L$CUDA/extras/CUPTI/lib64
//   ./managed [MiB, at most 1024] [rounds]
//
// Prints one JSON line a round: bytes that moved by design, bytes reported each way, faults, records, records dropped.
#include <cuda_runtime.h>
#include <cupti.h>

#include <unistd.h>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<unsigned long long> to_device{0}, to_host{0}, faults{0}, records{0}, dropped{0};

void CUPTIAPI requested(uint8_t **buffer, size_t *size, size_t *most) {
  *size = 4 << 20;
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, *size));
  *most = 0;
}

void CUPTIAPI completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t, size_t valid) {
  CUpti_Activity *record = nullptr;
  while (valid != 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) continue;
    const auto *const counter = reinterpret_cast<const CUpti_ActivityUnifiedMemoryCounter3 *>(record);
    ++records;
    switch (counter->counterKind) {
      case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD:
        to_device += counter->value;
        break;
      case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
        to_host += counter->value;
        break;
      case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT:
        ++faults;
        break;
      default:
        break;
    }
  }
  size_t lost = 0;
  (void)cuptiActivityGetNumDroppedRecords(context, stream, &lost);
  dropped += lost;
  std::free(buffer);
}

__global__ void add(float *values, size_t count) {
  const size_t at = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (at < count) values[at] += 1.0f;
}

void check(int result, const char *what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: %d\n", what, result);
  std::exit(1);
}

}  // namespace

int main(int argc, char **argv) {
  const size_t bytes = size_t(argc > 1 ? std::atoi(argv[1]) : 256) << 20;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
  if (bytes > size_t{1} << 30) return 2;
  check(cudaFree(nullptr), "cudaFree");
  CUpti_ActivityUnifiedMemoryCounterConfig configurations[3] = {};
  const CUpti_ActivityUnifiedMemoryCounterKind kinds[] = {
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH,
      CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT};
  for (int i = 0; i < 3; ++i) {
    configurations[i].scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
    configurations[i].kind = kinds[i];
    configurations[i].deviceId = 0;
    configurations[i].enable = 1;
  }
  check(cuptiActivityConfigureUnifiedMemoryCounter(configurations, 3), "configure");
  check(cuptiActivityRegisterCallbacks(requested, completed), "callbacks");
  check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER), "enable");
  float *values = nullptr;
  check(cudaMallocManaged(&values, bytes), "cudaMallocManaged");
  for (int round = 0; round < rounds; ++round) {
    to_device = to_host = faults = records = dropped = 0;
    std::memset(values, 0, bytes);
    if (round == 0) check(cuptiActivityFlushAll(1), "flush");
    to_device = to_host = faults = records = 0;
    add<<<static_cast<unsigned>(bytes / 4 / 256), 256>>>(values, bytes / 4);
    check(cudaDeviceSynchronize(), "synchronize");
    volatile float sum = 0;
    for (size_t at = 0; at < bytes / 4; at += 1024) sum = sum + values[at];
    check(cuptiActivityFlushAll(1), "flush");
    usleep(200000);
    check(cuptiActivityFlushAll(1), "flush");
    std::printf(
        "{\"moved\": %zu, \"to_device\": %llu, \"to_host\": %llu, \"faults\": %llu, \"records\": %llu, "
        "\"dropped\": %llu}\n",
        bytes, to_device.load(), to_host.load(), faults.load(), records.load(), dropped.load());
  }
  return cudaFree(values);
}
