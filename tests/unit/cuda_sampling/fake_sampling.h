// A CUPTI of the tests' own, with the entry points of PC sampling, and how tests drive it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "counters_types.h"
#include "sampling_types.h"

namespace sonde::test {

using namespace sonde::cuda;

struct FakeSample {
  uint64_t checksum = 0;
  uint64_t pc = 0;
  std::string function;
  uint32_t function_index = 0;
  uint32_t correlation = 0;
  std::vector<StallSamples> stalls;
};

struct FakeContext {
  uint32_t id = 0;
  bool enabled = false;
  bool started = false;
  SamplingData *configured = nullptr;
  uint32_t mode = 0;
  uint32_t period = 0;
  uint32_t start_stop = 0;
  uint32_t sleep_span = 0;
  size_t hardware_bytes = 0;
  std::deque<FakeSample> samples;  // that a read hands out
  uint64_t dropped = 0;            // reported by the next read
  bool full = false;               // the next read says so
};

struct FakeSampling {
  std::recursive_mutex mutex;
  uint32_t version = kCupti13_0;
  CuptiResult subscribe_result = kCuptiSuccess;
  CuptiResult enable_result = kCuptiSuccess;
  bool register_checksum = true;     // the call succeeds
  bool hand_out_at_disable = false;  // a read gives nothing; what there is comes at disable
  std::vector<std::string> stall_names;
  Callback callback = nullptr;
  void *user = nullptr;
  ChecksumCallback checksum = nullptr;
  std::map<void *, FakeContext> contexts;
  std::map<uint64_t, std::string> functions;  // texts that stay
  std::map<std::string, char *> names;
  uint64_t reads = 0, enables = 0, disables = 0, starts = 0, stops = 0, subscribes = 0, unsubscribes = 0;
  // The range profiler: metrics that the device has, kernels that a launch makes, and calls in a wrong order.
  std::vector<std::string> metrics;
  CuptiResult profile_result = kCuptiSuccess;
  CuptiResult decode_result = kCuptiSuccess;
  size_t kernels = 1;
  uint64_t dropped_ranges = 0;
  uint64_t range_starts = 0, range_stops = 0, range_disables = 0, host_ends = 0, wrong_order = 0;
  bool range_configured = false, range_running = false, range_decoded = false;
  uint64_t same_buffer = 0;  // reads into the buffer of the configuration
  uint64_t unknown_context = 0;
  bool in_launch = false;              // a test is inside the callback of a launch
  uint64_t starts_outside_launch = 0;  // of ranges: the real library would not return

  void reset() {
    std::lock_guard<std::recursive_mutex> hold(mutex);
    version = kCupti13_0;
    subscribe_result = enable_result = kCuptiSuccess;
    register_checksum = true;
    hand_out_at_disable = false;
    stall_names = {"smsp__pcsamp_warps_issue_stalled_long_scoreboard",
                   "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
                   "smsp__pcsamp_warps_issue_stalled_selected"};
    contexts.clear();
    metrics = {"sm__cycles_elapsed.max", "dram__bytes_read.sum"};
    profile_result = decode_result = kCuptiSuccess;
    kernels = 1;
    dropped_ranges = range_starts = range_stops = range_disables = host_ends = wrong_order = 0;
    range_configured = range_running = range_decoded = false;
    reads = enables = disables = starts = stops = subscribes = unsubscribes = same_buffer = unknown_context = 0;
    in_launch = false;
    starts_outside_launch = 0;
  }
};

// Of the loaded fake; found by dlsym under this name.
using FakeSamplingFunction = FakeSampling *(*)();
inline constexpr char kFakeSamplingName[] = "fake_sampling";

}  // namespace sonde::test
