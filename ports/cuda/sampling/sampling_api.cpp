#include "sampling_api.h"

#include <dlfcn.h>

#include <algorithm>

namespace sonde::cuda {

namespace {

template <typename Function>
bool resolve(void *library, const char *name, Function &out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
  return out != nullptr;
}

}  // namespace

SamplingApi open_sampling(const std::string &option) {
  SamplingApi api;
  api.base = open_cupti(option);
  if (!api.base.complete()) {
    api.error = api.base.error;
    return api;
  }
  if (api.base.version < kCupti13_0) {
    api.error = api.base.path + " is CUPTI " + version_text(api.base.version) +
                ", PC sampling is read as CUPTI 13.0 and later give it";
    return api;
  }
  void *const library = dlopen(api.base.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    api.error = dlerror();
    return api;
  }
  const bool complete =
      resolve(library, "cuptiPCSamplingSetConfigurationAttribute", api.set_attributes) &
      resolve(library, "cuptiPCSamplingEnable", api.enable) & resolve(library, "cuptiPCSamplingDisable", api.disable) &
      resolve(library, "cuptiPCSamplingStart", api.start) & resolve(library, "cuptiPCSamplingStop", api.stop) &
      resolve(library, "cuptiPCSamplingGetData", api.get_data) &
      resolve(library, "cuptiPCSamplingGetNumStallReasons", api.stall_count) &
      resolve(library, "cuptiPCSamplingGetStallReasons", api.stall_names) &
      resolve(library, "cuptiGetDeviceId", api.get_device_id);
  resolve(library, "cuptiRegisterComputeCrcCallback", api.register_checksum);
  resolve(library, "cuptiGetCubinCrc", api.get_checksum);
  if (!complete || api.base.subscribe == nullptr || api.base.enable_callback == nullptr ||
      api.base.unsubscribe == nullptr) {
    api.error = api.base.path + " lacks functions of PC sampling";
  }
  return api;
}

DriverApi find_driver() {
  DriverApi driver;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return driver;
  const bool complete = resolve(library, "cuDeviceGetCount", driver.device_count) &
                        resolve(library, "cuDevicePrimaryCtxGetState", driver.primary_state) &
                        resolve(library, "cuDevicePrimaryCtxRetain", driver.primary_retain) &
                        resolve(library, "cuDevicePrimaryCtxRelease_v2", driver.primary_release) &
                        resolve(library, "cuCtxGetCurrent", driver.get_current) &
                        resolve(library, "cuCtxPushCurrent_v2", driver.push_current) &
                        resolve(library, "cuCtxPopCurrent_v2", driver.pop_current);
  return complete ? driver : DriverApi();
}

std::vector<void *> live_contexts(const DriverApi &driver) {
  std::vector<void *> out;
  if (driver.device_count == nullptr) return out;
  void *current = nullptr;
  if (driver.get_current(&current) == 0 && current != nullptr) out.push_back(current);
  int32_t devices = 0;
  if (driver.device_count(&devices) != 0) return out;
  for (int32_t device = 0; device < devices; ++device) {
    uint32_t flags = 0;
    int32_t active = 0;
    void *context = nullptr;
    // A primary context that is not active would be made by asking for it.
    if (driver.primary_state(device, &flags, &active) != 0 || active == 0) continue;
    if (driver.primary_retain(&context, device) != 0) continue;
    driver.primary_release(device);
    if (context != nullptr && std::find(out.begin(), out.end(), context) == out.end()) out.push_back(context);
  }
  return out;
}

CurrentContext::CurrentContext(const DriverApi &driver, void *context) : driver_(driver) {
  pushed_ = driver_.push_current != nullptr && driver_.push_current(context) == 0;
}

CurrentContext::~CurrentContext() {
  void *context = nullptr;
  if (pushed_) driver_.pop_current(&context);
}

}  // namespace sonde::cuda
