// What the files of libsonde_inject.so share.
#pragma once

#include <sonde/base.h>

#include <cstdint>

namespace sonde::inject {

// sonde_run_service_t.inject, or SONDE_E_NOT_FOUND where this build has no run service.
sonde_status call(uint32_t entry, void *argument);

// The next definition of a function that this library stands before; aborts when there is none.
void *next_function(const char *name);

template <typename Function>
Function next(const char *name) {
  return reinterpret_cast<Function>(next_function(name));
}

}  // namespace sonde::inject
