// CUPTI's PC sampling and the few calls of the driver that go with it, opened at run time.
#pragma once

#include <string>
#include <vector>

#include "cupti_api.h"
#include "sampling_types.h"

namespace sonde::cuda {

struct SamplingApi {
  CuptiApi base;  // opened as the port `cuda` opens it

  CuptiResult (*set_attributes)(SamplingConfigParams *parameters) = nullptr;
  CuptiResult (*enable)(SamplingContextParams *parameters) = nullptr;
  CuptiResult (*disable)(SamplingContextParams *parameters) = nullptr;
  CuptiResult (*start)(SamplingContextParams *parameters) = nullptr;
  CuptiResult (*stop)(SamplingContextParams *parameters) = nullptr;
  CuptiResult (*get_data)(SamplingGetDataParams *parameters) = nullptr;
  CuptiResult (*stall_count)(StallCountParams *parameters) = nullptr;
  CuptiResult (*stall_names)(StallNamesParams *parameters) = nullptr;
  CuptiResult (*get_device_id)(void *context, uint32_t *device) = nullptr;
  // Where present.
  CuptiResult (*register_checksum)(ChecksumCallback callback) = nullptr;
  CuptiResult (*get_checksum)(ChecksumParams *parameters) = nullptr;

  std::string error;  // why PC sampling cannot be used; empty: it can
};

// Never closes the library. `option` is the configured path of libcupti, or "".
SamplingApi open_sampling(const std::string &option);

// The driver, as far as the process has loaded it already; all null otherwise.
struct DriverApi {
  int32_t (*device_count)(int32_t *count) = nullptr;
  int32_t (*primary_state)(int32_t device, uint32_t *flags, int32_t *active) = nullptr;
  int32_t (*primary_retain)(void **context, int32_t device) = nullptr;
  int32_t (*primary_release)(int32_t device) = nullptr;
  int32_t (*get_current)(void **context) = nullptr;
  int32_t (*push_current)(void *context) = nullptr;
  int32_t (*pop_current)(void **context) = nullptr;
};

DriverApi find_driver();

// The contexts that exist now, as far as the driver tells: the primary context of each device, and this thread's.
std::vector<void *> live_contexts(const DriverApi &driver);

// Makes a context current to this thread while it lives; where the driver is not there it does nothing.
class CurrentContext {
 public:
  CurrentContext(const DriverApi &driver, void *context);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

 private:
  const DriverApi &driver_;
  bool pushed_ = false;
};

}  // namespace sonde::cuda
