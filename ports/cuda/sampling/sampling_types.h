// What Sonde needs to know of the binary interface of CUPTI's PC sampling: numbers, and where fields lie.
//
// Sonde's own declarations of facts, under Sonde's names, so that the product builds without a CUDA toolkit;
// tests/unit/cuda_sampling compares each of them with the real headers where a toolkit is installed. They are those of
// CUPTI 13.0: earlier versions have a shorter record, so the port refuses them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_types.h"

namespace sonde::cuda {

inline constexpr CuptiResult kCuptiOutOfMemory = 8;  // from GetData: the hardware's buffer is full
inline constexpr CuptiResult kCuptiNotSupported = 27;

inline constexpr uint32_t kResourceContextDestroyStarting = 2;

// Collection modes and configuration attributes.
inline constexpr uint32_t kSamplingContinuous = 1;
inline constexpr uint32_t kSamplingKernelSerialized = 2;
inline constexpr uint32_t kAttributeSamplingPeriod = 1;
inline constexpr uint32_t kAttributeScratchBytes = 3;
inline constexpr uint32_t kAttributeHardwareBytes = 4;
inline constexpr uint32_t kAttributeCollectionMode = 5;
inline constexpr uint32_t kAttributeStartStop = 6;
inline constexpr uint32_t kAttributeOutputFormat = 7;
inline constexpr uint32_t kAttributeDataBuffer = 8;
inline constexpr uint32_t kAttributeSleepSpan = 9;  // of CUPTI's own threads, milliseconds
inline constexpr uint32_t kOutputParsed = 1;
inline constexpr size_t kStallNameBytes = 128;

struct StallSamples {
  uint32_t index;
  uint32_t samples;
};

struct PcData {
  size_t size;
  uint64_t checksum;  // of the cubin, by the registered function
  uint64_t pc;
  uint32_t function_index;
  uint32_t padding;
  char *function;  // shared with other records of CUPTI, so never freed here
  size_t stall_count;
  StallSamples *stalls;
  uint32_t correlation;
};

struct SamplingData {
  size_t size;
  size_t room;  // of `pcs`
  uint64_t total_samples;
  uint64_t dropped_samples;
  size_t pc_count;
  size_t remaining_pcs;
  uint64_t range;
  PcData *pcs;
  uint64_t foreign_samples;
  uint8_t hardware_buffer_full;
};

struct SamplingAttribute {
  uint32_t attribute;
  CuptiResult status;
  union {
    uint64_t words[3];
    uint32_t number;
    size_t bytes;
    void *pointer;
  } value;
};

// Parameters of the calls. `size` is that of the part up to the last field.
struct SamplingContextParams {
  size_t size;
  void *reserved;
  void *context;
};

struct SamplingConfigParams {
  size_t size;
  void *reserved;
  void *context;
  size_t count;
  SamplingAttribute *attributes;
};

struct SamplingGetDataParams {
  size_t size;
  void *reserved;
  void *context;
  void *data;
};

struct StallCountParams {
  size_t size;
  void *reserved;
  void *context;
  size_t *count;
};

struct StallNamesParams {
  size_t size;
  void *reserved;
  void *context;
  size_t count;
  uint32_t *indices;
  char **names;
};

struct ChecksumParams {
  size_t size;
  size_t bytes;
  const void *code;
  uint64_t checksum;
};

using ChecksumCallback = void (*)(const void *code, size_t bytes, uint64_t *checksum);

// What a callback of the driver domain is given, up to the last field that is read.
struct DriverCallData {
  uint32_t site;  // 0: enters, 1: leaves
  const char *function;
  const void *parameters;
  void *result;
  const char *symbol;
  void *context;
  uint32_t context_id;
  uint64_t *client;
  uint32_t correlation;
};
inline constexpr uint32_t kCallLeaves = 1;

}  // namespace sonde::cuda
