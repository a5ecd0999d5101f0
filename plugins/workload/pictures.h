// Pictures as SVG text.
#pragma once

#include <string>

#include "workload.h"

namespace sonde::workload {

// Accesses of the hot blocks: a row for each block in order of address, time to the right, darker is more, by logarithm. A
// group for each process and device. Without blocks an empty picture that says so.
std::string draw_heat_map(const Workload &workload);

// Rate by intensity over device memory, both logarithmic: the ceilings, and a dot for each kernel, its area by time.
std::string draw_roofline(const Workload &workload);

}  // namespace sonde::workload
