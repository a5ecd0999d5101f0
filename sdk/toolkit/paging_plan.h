// Plans for managed memory: what to move and to advise at which launch, as text that a person can read and edit.
//
// An analysis writes a plan, a port applies it; both go through this file. In a run's configuration it stands under
// ports.cuda_paging.plan:
//
//   version: 1
//   device: 0
//   allocations:                     # those that the plan touches
//     - allocation: 0                # of the program's managed allocations, from 0, in order
//       bytes: 128Mi                 # a check
//       advise:
//         - {advice: prefer_host, offset: 0, bytes: 4Mi}     # without offset and bytes: all of it
//   steps:
//     - launch: 20                   # of the program's launch calls, from 0, in order; before it is made
//       kernel: stream_kernel        # a check; "" for a graph
//       occurrence: 20               # may be left out: launches of that kernel before it
//       when: device                 # moves begin when the device has come to this launch; host: at once
//       moves:                       # in order; a prefetch waits for the evictions before it in its list
//         - {evict: 0, offset: 0, bytes: 32Mi}               # allocation 0 to the host
//         - {prefetch: 4, offset: 0, bytes: 32Mi, needed: 40}  # launch 40 waits for it; left out: nobody does
//
// Advice: read_mostly, prefer_device, prefer_host, accessed_by (the device).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <sonde/config.h>

namespace sonde::toolkit {

enum class PagingAdvice : uint8_t { kReadMostly, kPreferDevice, kPreferHost, kAccessedBy };

struct PlannedAdvice {
  PagingAdvice advice = PagingAdvice::kReadMostly;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct PlannedAllocation {
  uint64_t allocation = 0;
  uint64_t bytes = 0;
  std::vector<PlannedAdvice> advise;
};

struct PlannedMove {
  static constexpr uint64_t kNobody = std::numeric_limits<uint64_t>::max();

  bool is_eviction = false;
  uint64_t allocation = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t needed = kNobody;  // launch
};

struct PlannedStep {
  static constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

  uint64_t launch = 0;
  std::string kernel;
  uint64_t occurrence = kAny;
  bool waits_for_device = false;
  std::vector<PlannedMove> moves;
};

struct PagingPlan {
  static constexpr uint32_t kVersion = 1;

  uint32_t device = 0;
  std::vector<PlannedAllocation> allocations;  // ascending
  std::vector<PlannedStep> steps;              // ascending by launch, one for each
};

// The plan as YAML, each line indented by `indent` spaces.
std::string paging_plan_text(const PagingPlan &plan, uint32_t indent = 0);

// Reads a plan out of a configuration. False with `error` ("file:line:column: what") for the first fault: another
// version, an unknown or missing key, an allocation that is not listed, a range outside of its allocation, launches that
// do not ascend, a `needed` before its launch.
bool read_paging_plan(const sonde_config_service_t &service, const sonde_config_t *tree, PagingPlan &plan,
                      std::string &error);

// "128Mi" where that is exact, else the number.
std::string exact_bytes_text(uint64_t bytes);

// Double-quoted YAML of any text.
std::string quoted_text(const std::string &text);

const char *paging_advice_name(PagingAdvice advice);

}  // namespace sonde::toolkit
