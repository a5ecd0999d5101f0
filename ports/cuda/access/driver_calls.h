// Driver calls that the port has called back, by the numbers of sanitizerEnableCallback.
#pragma once

#include <cstdint>

namespace sonde::cuda::access {

// That launch, kernels and graphs: the last moment to wait for the port's threads.
constexpr uint32_t kLaunchCalls[] = {115, 116, 117, 307, 442, 477, 478, 480, 514, 515, 652, 653};

// That end a context: the last moment to read what ran in it. Not the release of a primary context, which libraries make
// all the time.
constexpr uint32_t kEndCalls[] = {11, 13, 322, 389, 545};

constexpr uint32_t kApiEnter = 0;
constexpr uint64_t kLongestFlush = 2'000'000'000;  // ns

}  // namespace sonde::cuda::access
