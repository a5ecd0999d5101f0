// A workload written by hand, for the simulator: no capture needed.
//
//   allocations:
//     - {bytes: 128Mi, home: host}          # host, nowhere (untouched) or device
//   steps:
//     - repeat: 20                          # left out: once
//       duration_ns: 120000                 # of a launch, with all pages on the device
//       gap_ns: 0                           # before it
//       touches:
//         - {allocation: 0, offset: 0, bytes: 128Mi, write: false}
//         - {allocation: 0, bytes: 64Ki, stride: 192Ki, count: 100, traffic: 1.0}
//       moves:                              # before the first of them; launches are counted over all repeats
//         - {prefetch: 0, offset: 0, bytes: 128Mi, needed: 0}
//         - {evict: 0}
//       when: host                          # or device
//     - host: true                          # the host touches
//       touches: [...]
#pragma once

#include <string>

#include <sonde/config.h>

#include "schedule.h"
#include "trace.h"

namespace sonde::uvm {

struct HandWorkload {
  Trace trace;
  Schedule schedule;
};

// False with `error`.
bool read_workload(const sonde_config_service_t &service, const sonde_config_t *tree, HandWorkload &out,
                   std::string &error);

}  // namespace sonde::uvm
