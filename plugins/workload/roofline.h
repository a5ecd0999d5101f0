// Rooflines: what bounds a kernel, and how near it comes.
//
// Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore architectures",
// Communications of the ACM 52 (2009): attainable = min(peak work, bandwidth * intensity). A kernel with several kinds of
// work is bounded by the sum of their times, each at its own ceiling, because they share the issue slots:
//   least time = max(sum over kinds of work / ceiling, DRAM bytes / bandwidth, L2 bytes / bandwidth)
//   attained   = least time / time
#pragma once

#include <cstdint>
#include <optional>

#include "ceilings.h"

namespace sonde::workload {

// What is known of one launch of a kernel, on average.
struct KernelCost {
  double seconds = 0;  // 0: unknown
  std::optional<double> work[kWorks];
  std::optional<double> traffic[kTraffics];
  bool is_given = false;  // work from options
};

enum class Bound : uint8_t { kUnknown, kWork, kDram, kL2 };
const char *bound_name(Bound bound);

struct RooflinePoint {
  std::optional<double> operations;      // of a launch, all kinds
  std::optional<double> dram_intensity;  // operations a byte
  std::optional<double> l2_intensity;
  std::optional<double> rate;  // operations per second
  double least_seconds = 0;    // 0: unknown
  Bound bound = Bound::kUnknown;
  std::optional<double> attained;  // 0 to 1; beyond where a ceiling is too low
};

RooflinePoint place(const KernelCost &cost, const Ceilings &ceilings);

}  // namespace sonde::workload
