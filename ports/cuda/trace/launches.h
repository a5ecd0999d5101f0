// How many calls of the program launched work, whether or not their records were collected.
//
// The count comes from CUPTI's callbacks of the driver's launch calls: while nothing else is collected, they are the
// cheapest thing that moves with the program's progress. Elapsed and processor time cost nothing, but a program that
// waits for nothing uses the same time slowed down or not, so neither tells how far it came.
#pragma once

#include <cstdint>

namespace sonde::cuda {

// One launch on the calling thread. [any]
void count_launch();

// All so far. [any]
uint64_t launches_counted();

// Time of one call into the driver that does nothing there (cuDriverGetVersion), ns, the least of several readings;
// 0 while no driver is loaded. The difference between two states of CUPTI is what it adds to a call that is called back.
double driver_call_ns();

// What a launch pays for a CUPTI that collects nothing, in such differences: runtime and driver call it both, and it does
// more for a launch. Seen with CUPTI 13.0 on an H200 through tests/gpu/bare/states.cu: 330 to 500 ns a launch, where the
// difference was 87 to 95 ns. Taken at its upper end.
inline constexpr double kCallsPerLaunch = 5;
inline constexpr double kBareCallNs = 5;  // of driver_call_ns without CUPTI, on the same machine

}  // namespace sonde::cuda
