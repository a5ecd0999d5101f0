// The calls of the CUDA driver that move managed memory, resolved in the library that the program uses.
#pragma once

#include <string>

#include "paging_types.h"

namespace sonde::cuda::paging {

struct Driver {
  DriverResult (*get_current)(void **context) = nullptr;
  DriverResult (*set_current)(void *context) = nullptr;
  DriverResult (*get_device)(int32_t *device) = nullptr;
  DriverResult (*make_stream)(void **stream, uint32_t flags) = nullptr;
  DriverResult (*make_event)(void **event, uint32_t flags) = nullptr;
  DriverResult (*record)(void *event, void *stream) = nullptr;
  DriverResult (*wait)(void *stream, void *event, uint32_t flags) = nullptr;
  DriverResult (*is_capturing)(void *stream, uint32_t *status) = nullptr;  // null: an old driver
  DriverResult (*error_name)(DriverResult result, const char **name) = nullptr;
  std::string error;  // why it cannot be used

  // `device`: a number, or kHostDevice.
  DriverResult prefetch(uint64_t address, uint64_t bytes, int32_t device, void *stream) const;
  DriverResult advise(uint64_t address, uint64_t bytes, uint32_t advice, int32_t device) const;
  std::string name_of(DriverResult result) const;

  // The first form of each where the library has it, else the second.
  DriverResult (*prefetch_1)(uint64_t address, size_t bytes, int32_t device, void *stream) = nullptr;
  DriverResult (*prefetch_2)(uint64_t address, size_t bytes, Location location, uint32_t flags, void *stream) = nullptr;
  DriverResult (*advise_1)(uint64_t address, size_t bytes, uint32_t advice, int32_t device) = nullptr;
  DriverResult (*advise_2)(uint64_t address, size_t bytes, uint32_t advice, Location location) = nullptr;
};

// The library is looked for among those that are loaded, then by the loader; it is never closed.
Driver open_driver();

}  // namespace sonde::cuda::paging
