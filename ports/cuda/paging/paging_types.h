// What the port needs to know of the CUDA driver's and CUPTI's binary interface: numbers, and where fields lie.
//
// Sonde's own declarations of facts; tests/unit/cuda_paging compares them with the real headers where a toolkit is
// installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::cuda::paging {

// ---- callbacks of CUPTI's driver domain ----------------------------------------------------------------------------

inline constexpr uint32_t kMemAllocManaged = 371;
inline constexpr uint32_t kMemFreeOld = 33;
inline constexpr uint32_t kMemFree = 245;

// Where the stream of a launch call is.
enum class StreamPlace : uint8_t { kNone, kDirect, kInConfig };

struct LaunchCall {
  uint32_t callback;
  StreamPlace place;
  uint32_t offset;  // of the stream in the call's parameters
  bool is_graph;
  bool is_per_thread;  // a stream of 0 is the thread's own
};

inline constexpr LaunchCall kLaunchCalls[] = {
    {115, StreamPlace::kNone, 0, false, false},       // cuLaunch
    {116, StreamPlace::kNone, 0, false, false},       // cuLaunchGrid
    {117, StreamPlace::kDirect, 16, false, false},    // cuLaunchGridAsync
    {307, StreamPlace::kDirect, 40, false, false},    // cuLaunchKernel
    {442, StreamPlace::kDirect, 40, false, true},     // cuLaunchKernel_ptsz
    {477, StreamPlace::kDirect, 40, false, false},    // cuLaunchCooperativeKernel
    {478, StreamPlace::kDirect, 40, false, true},     // cuLaunchCooperativeKernel_ptsz
    {514, StreamPlace::kDirect, 8, true, false},      // cuGraphLaunch
    {515, StreamPlace::kDirect, 8, true, true},       // cuGraphLaunch_ptsz
    {652, StreamPlace::kInConfig, 32, false, false},  // cuLaunchKernelEx: of the configuration that is pointed to first
    {653, StreamPlace::kInConfig, 32, false, true},   // cuLaunchKernelEx_ptsz
};

struct AllocateParameters {
  uint64_t *address;
  size_t bytes;
  uint32_t flags;
};

struct FreeParameters {
  uint64_t address;
};

// What a callback of the driver domain is given, up to the last field that is read.
struct CallData {
  uint32_t site;  // 0: enters, 1: leaves
  const char *function;
  const void *parameters;
  const void *result;  // a DriverResult, when it leaves
  const char *symbol;  // name of the kernel
  void *context;
};
inline constexpr uint32_t kCallEnters = 0;
inline constexpr uint32_t kCallLeaves = 1;

// ---- the driver ----------------------------------------------------------------------------------------------------

using DriverResult = int32_t;
inline constexpr int32_t kHostDevice = -1;  // CU_DEVICE_CPU
inline constexpr uint32_t kStreamNonBlocking = 1;
inline constexpr uint32_t kEventDisableTiming = 2;
inline constexpr uint32_t kEventRecordDefault = 0;
inline constexpr uintptr_t kPerThreadStream = 2;  // CU_STREAM_PER_THREAD

inline constexpr uint32_t kSetReadMostly = 1;
inline constexpr uint32_t kSetPreferredLocation = 3;
inline constexpr uint32_t kSetAccessedBy = 5;

// The newer calls take a location by value.
struct Location {
  int32_t type;  // 1: device, 2: host
  int32_t id;
};
inline constexpr int32_t kLocationDevice = 1;
inline constexpr int32_t kLocationHost = 2;

}  // namespace sonde::cuda::paging
