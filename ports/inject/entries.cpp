// Entries that foreign runtimes call by name. Each goes to the port of this process's run that takes it; where none
// does, the runtime gets the answer that makes it go on without a tool.
#include <sonde/port.h>
#include <sonde/status.h>

#include <cstdint>

#include "inject.h"

namespace {

// Arguments in the order of the foreign function, and room for what it returns.
struct RocprofilerArguments {
  uint32_t version;
  const char *runtime_version;
  uint32_t priority;
  void *client;
  void *result;
};

struct LayerArguments {
  uint32_t target_entries;
  const void *target;
  uint32_t *entries_out;
  const void **layer_out;
};

constexpr int32_t kOpenclInvalidValue = -30;  // CL_INVALID_VALUE: the loader leaves the layer out

}  // namespace

// CUDA calls this while the driver initialises, for the library named by CUDA_INJECTION64_PATH. The program must run
// in any case, so the answer is always success; failures are in the log.
extern "C" SONDE_EXPORTED int InitializeInjection(void) {
  sonde::inject::call(SONDE_ENTRY_CUDA_INJECTION, nullptr);
  return 1;
}

// NVTX calls this once for each copy of its client code, for the library named by NVTX_INJECTION64_PATH. 0 turns that
// copy's functions off.
extern "C" SONDE_EXPORTED int InitializeInjectionNvtx2(void *get_export_table) {
  return sonde::inject::call(SONDE_ENTRY_NVTX_INJECTION, get_export_table) == SONDE_OK ? 1 : 0;
}

// rocprofiler-sdk calls this in every loaded library; NULL: no tool here.
extern "C" SONDE_EXPORTED void *rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority,
                                                      void *client) {
  RocprofilerArguments arguments{version, runtime_version, priority, client, nullptr};
  return sonde::inject::call(SONDE_ENTRY_ROCPROFILER, &arguments) == SONDE_OK ? arguments.result : nullptr;
}

// The OpenCL loader calls this for a layer named by OPENCL_LAYERS.
extern "C" SONDE_EXPORTED int32_t clInitLayer(uint32_t target_entries, const void *target, uint32_t *entries_out,
                                              const void **layer_out) {
  LayerArguments arguments{target_entries, target, entries_out, layer_out};
  return sonde::inject::call(SONDE_ENTRY_OPENCL_LAYER, &arguments) == SONDE_OK ? 0 : kOpenclInvalidValue;
}
