// What Sonde needs to know of the binary interface of CUPTI's range profiler and its host part (CUPTI 13.0): parameters
// of the calls. Each begins with its size, that of the part up to the last field, and a reserved pointer.
// tests/unit/cuda_sampling compares them with the real headers where a toolkit is installed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_types.h"

namespace sonde::cuda {

inline constexpr uint32_t kAutoRange = 1;     // a range for each kernel
inline constexpr uint32_t kKernelReplay = 2;  // each kernel is repeated, once for each pass
inline constexpr uint32_t kRangeProfilerType = 0;

struct ProfilerParams {
  size_t size;
  void *reserved;
};

struct ChipParams {
  size_t size;
  void *reserved;
  size_t device;
  const char *chip;  // out
};

struct AvailabilityParams {
  size_t size;
  void *reserved;
  void *context;
  size_t bytes;  // in and out
  uint8_t *image;
};

struct HostInitializeParams {
  size_t size;
  void *reserved;
  uint32_t type;
  const char *chip;
  const uint8_t *availability;
  void *host;  // out
};

struct HostParams {
  size_t size;
  void *reserved;
  void *host;
};

struct HostAddMetricsParams {
  size_t size;
  void *reserved;
  void *host;
  const char **names;
  size_t count;
};

struct HostConfigSizeParams {
  size_t size;
  void *reserved;
  void *host;
  size_t bytes;  // out
};

struct HostConfigParams {
  size_t size;
  void *reserved;
  void *host;
  size_t bytes;
  uint8_t *image;
};

struct HostPassesParams {
  size_t size;
  void *reserved;
  size_t bytes;
  uint8_t *image;
  size_t passes;  // out
};

struct HostPropertiesParams {
  size_t size;
  void *reserved;
  void *host;
  const char *name;
  const char *description;  // out
  const char *hardware;     // out
  const char *unit;         // out
  uint32_t type;            // out
};

struct HostEvaluateParams {
  size_t size;
  void *reserved;
  void *host;
  const uint8_t *image;
  size_t image_bytes;
  size_t range;
  const char **names;
  size_t count;
  double *values;
};

struct RangeEnableParams {
  size_t size;
  void *reserved;
  void *context;
  void *profiler;  // out
};

struct RangeParams {
  size_t size;
  void *reserved;
  void *profiler;
};

struct RangeConfigParams {
  size_t size;
  void *reserved;
  void *profiler;
  size_t config_bytes;
  const uint8_t *config;
  size_t image_bytes;
  uint8_t *image;
  uint32_t range;
  uint32_t replay;
  size_t ranges_per_pass;
  uint16_t nesting_levels;
  uint16_t least_nesting_level;
  size_t pass;
  uint16_t target_nesting_level;
};

struct RangeStopParams {
  size_t size;
  void *reserved;
  void *profiler;
  size_t pass;
  size_t target_nesting_level;
  uint8_t all_passes;
};

struct RangeDecodeParams {
  size_t size;
  void *reserved;
  void *profiler;
  size_t dropped;  // out
};

struct ImageSizeParams {
  size_t size;
  void *reserved;
  void *profiler;
  const char **names;
  size_t count;
  size_t ranges;
  uint32_t nodes;
  size_t bytes;  // out
};

struct ImageInitializeParams {
  size_t size;
  void *reserved;
  void *profiler;
  size_t bytes;
  uint8_t *image;
};

struct ImageInfoParams {
  size_t size;
  void *reserved;
  const uint8_t *image;
  size_t bytes;
  size_t ranges;  // out
};

}  // namespace sonde::cuda
