// Kernels of a run against the roofline: times from the device's records, work and traffic from counters or options.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel_map.h"
#include "roofline.h"
#include "workload.h"

namespace sonde::workload {

struct RooflineRow {
  KernelKey kernel;
  uint64_t launches = 0;  // behind the mean time
  uint64_t counted = 0;   // behind the counters
  KernelCost cost;
  RooflinePoint point;
  double time_share = 0;  // of the kernel time of its device
};

// By time share, then by name; kernels without any work or traffic are left out. Times and counters are joined by process,
// device and name, as the runtime gives it or demangled.
std::vector<RooflineRow> roofline_rows(const Workload &workload);

}  // namespace sonde::workload
