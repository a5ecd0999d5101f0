// A CUDA driver of the tests' own: managed memory is ordinary memory, and contexts are numbers.
#include <cstdint>
#include <cstdlib>

namespace {

thread_local void *current = nullptr;
int32_t allocate_result = 0;
uint64_t live = 0;
uint64_t without_context = 0;

}  // namespace

extern "C" {

void fake_driver_refuse(int32_t result) { allocate_result = result; }
uint64_t fake_driver_live() { return live; }
uint64_t fake_driver_without_context() { return without_context; }
void *fake_driver_current() { return current; }

int32_t cuInit(uint32_t) { return 0; }
int32_t cuCtxGetCurrent(void **context) {
  *context = current;
  return 0;
}
int32_t cuCtxSetCurrent(void *context) {
  current = context;
  return 0;
}
int32_t cuDevicePrimaryCtxRetain(void **context, int32_t device) {
  *context = reinterpret_cast<void *>(uintptr_t{0x100} + static_cast<uintptr_t>(device));
  return 0;
}
int32_t cuMemAllocManaged(uint64_t *address, size_t bytes, uint32_t flags) {
  if (flags != 1) return 1;
  if (current == nullptr) __atomic_fetch_add(&without_context, 1, __ATOMIC_RELAXED);
  if (allocate_result != 0) return allocate_result;
  *address = reinterpret_cast<uint64_t>(std::malloc(bytes));
  __atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
  return 0;
}
int32_t cuMemFree_v2(uint64_t address) {
  std::free(reinterpret_cast<void *>(address));
  __atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
  return 0;
}
int32_t cuGetErrorName(int32_t error, const char **name) {
  *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
  return 0;
}

}  // extern "C"
