#include "driver.h"

#include <dlfcn.h>

namespace sonde::cuda::paging {

namespace {

template <typename Function>
bool resolve(void *library, const char *name, Function &out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

Location location_of(int32_t device) {
  if (device == kHostDevice) return {kLocationHost, 0};
  return {kLocationDevice, device};
}

}  // namespace

Driver open_driver() {
  Driver driver;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char *const reason = dlerror();
    driver.error = std::string("no CUDA driver: ") + (reason != nullptr ? reason : "?");
    return driver;
  }
  bool complete =
      resolve(library, "cuCtxGetCurrent", driver.get_current) &
      resolve(library, "cuCtxSetCurrent", driver.set_current) & resolve(library, "cuCtxGetDevice", driver.get_device) &
      resolve(library, "cuStreamCreate", driver.make_stream) & resolve(library, "cuEventCreate", driver.make_event) &
      resolve(library, "cuEventRecord", driver.record) & resolve(library, "cuStreamWaitEvent", driver.wait);
  resolve(library, "cuStreamIsCapturing", driver.is_capturing);
  resolve(library, "cuGetErrorName", driver.error_name);
  complete &= resolve(library, "cuMemPrefetchAsync", driver.prefetch_1) |
              resolve(library, "cuMemPrefetchAsync_v2", driver.prefetch_2);
  complete &= resolve(library, "cuMemAdvise", driver.advise_1) | resolve(library, "cuMemAdvise_v2", driver.advise_2);
  if (!complete) driver.error = "the CUDA driver lacks functions of managed memory";
  return driver;
}

DriverResult Driver::prefetch(uint64_t address, uint64_t bytes, int32_t device, void *stream) const {
  return prefetch_1 != nullptr ? prefetch_1(address, bytes, device, stream)
                               : prefetch_2(address, bytes, location_of(device), 0, stream);
}

DriverResult Driver::advise(uint64_t address, uint64_t bytes, uint32_t advice, int32_t device) const {
  return advise_1 != nullptr ? advise_1(address, bytes, advice, device)
                             : advise_2(address, bytes, advice, location_of(device));
}

std::string Driver::name_of(DriverResult result) const {
  const char *name = nullptr;
  if (error_name == nullptr || error_name(result, &name) != 0 || name == nullptr) {
    return "error " + std::to_string(result);
  }
  return name;
}

}  // namespace sonde::cuda::paging
