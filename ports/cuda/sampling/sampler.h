// The one user of CUPTI's PC sampling in the process, shared by all sessions.
//
// CUPTI samples contexts; each is configured when it is made (or found) and drained by a thread of the sampler before
// the hardware's buffer is full. Callbacks of CUPTI that must drain on the program's thread (a module or context that
// ends, a serialised kernel) only turn what they get into a Window and queue it; the sampler's thread delivers.
// Lock order: control, contexts, a context, queue. A callback waits for a context's lock for a bounded time only,
// because the thread that holds it may itself wait inside CUPTI.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sonde/record.h>
#include <sonde/status.h>

#include "code_cache.h"
#include "sampling_api.h"

namespace sonde::cuda {

class SamplingPort;

enum class SamplingMode : uint32_t { kContinuous = 1, kRanges = 2, kSerialized = 3 };

// Set by the first session that samples.
struct SamplingSettings {
  std::string cupti;
  SamplingMode mode = SamplingMode::kContinuous;
  uint32_t period_log2 = 16;  // a sample every 2^n cycles; 0: the vendor's choice
  uint64_t drain_period_ns = 20'000'000;
  uint64_t on_ns = 100'000'000;  // kRanges
  uint64_t off_ns = 0;
  size_t hardware_bytes = 0;  // 0: the vendor's choice
  size_t scratch_bytes = 0;
  size_t pcs_per_copy = 2048;
  uint64_t code_bytes = uint64_t{512} << 20;
  uint64_t deadline_ns = 2'000'000'000;
  bool beside_activity = false;  // share the device with activity tracing; kContinuous alone
};

struct SampledPc {
  uint64_t module = 0;
  uint64_t pc = 0;
  uint64_t correlation = 0;
  uint64_t samples = 0;
  uint64_t latency = 0;
  sonde_string_t function = 0;
  sonde_string_t stall = 0;
  uint32_t function_index = 0;
  uint32_t flags = 0;
};

// What one read of a context's samples gave.
struct SampledWindow {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t samples = 0;
  uint64_t dropped = 0;
  uint64_t foreign = 0;
  uint64_t range = 0;
  uint64_t pc_count = 0;
  uint32_t context = 0;
  uint32_t device = 0;
  bool full = false;
  std::vector<SampledPc> pcs;
};

struct StallReason {
  uint32_t index = 0;
  sonde_string_t stall = 0;
  sonde_string_t vendor = 0;
  bool not_issued = false;
};

// "long_scoreboard" of "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"; other names as they are.
std::string short_stall_name(const std::string &vendor, bool &not_issued);

class Sampler {
 public:
  static Sampler &instance();

  // Begins to sample for `port`; what stands in the way is noted in its session. [control]
  void attach(SamplingPort *port, const SamplingSettings &settings);

  // Ends it: drains, disables what nobody needs any more, delivers. SONDE_E_TIMEOUT when CUPTI did not return. [control]
  sonde_status detach(SamplingPort *port);

  // Drains now. SONDE_E_TIMEOUT. [any]
  sonde_status flush();

  CodeCache &codes() { return codes_; }
  SamplingMode mode() const { return settings_.mode; }
  uint32_t period_log2() const { return settings_.period_log2; }

 private:
  using Clock = std::chrono::steady_clock;

  // A context that is sampled, or that refused to be.
  struct Context {
    std::mutex mutex;
    void *handle = nullptr;
    uint32_t id = 0;
    uint32_t device = 0;
    std::atomic<bool> enabled{false};
    bool started = false;                // of a range
    bool full = false;                   // the hardware's buffer was: CUPTI hands out nothing any more
    Clock::time_point range_until = {};  // when the range, or the pause after it, is over
    uint64_t window_begin = 0;
    std::map<uint32_t, StallReason> stalls;
    std::vector<StallReason> reasons;
    // The buffer that CUPTI is configured with, and the one that is passed to each read: they must be two.
    SamplingData configured = {};
    SamplingData drained = {};
    std::vector<PcData> configured_pcs, drained_pcs;
    std::vector<StallSamples> configured_stalls, drained_stalls;
  };

  static void on_callback(void *user, uint32_t domain, uint32_t point, const void *data);
  static void on_checksum(const void *code, size_t bytes, uint64_t *checksum);

  std::string begin(const SamplingSettings &settings);
  std::string subscribe();
  void add_context(void *handle);
  std::string configure(Context &context);
  void end_context(void *handle);
  void on_module(void *handle, const ModuleData &data, bool loaded);
  void prepare(SamplingData &data, std::vector<PcData> &pcs, std::vector<StallSamples> &stalls, size_t reasons) const;
  void drain(Context &context);
  void disable(Context &context);
  void consume(Context &context, const SamplingData &data, bool full);
  std::vector<std::shared_ptr<Context>> all_contexts();
  void drain_all();
  void disable_all();
  void take_callback(uint32_t domain, uint32_t point, const void *data);
  void failed(const std::exception &error);
  void on_launch(const DriverCallData &call);
  void switch_range(Context &context);
  void deliver();
  void work();
  void note_all(uint32_t severity, const std::string &text);

  SamplingApi api_;
  DriverApi driver_;
  SamplingSettings settings_;
  CodeCache codes_;
  int process_ = 0;
  bool opened_ = false;

  std::mutex control_mutex_;                       // attach and detach
  std::map<SamplingPort *, const char *> claims_;  // the mode that each holds
  std::atomic<bool> running_{false};
  Subscriber subscriber_ = nullptr;
  std::thread thread_;

  std::mutex contexts_mutex_;
  std::map<void *, std::shared_ptr<Context>> contexts_;

  std::mutex ports_mutex_;
  std::vector<SamplingPort *> ports_;

  std::mutex queue_mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::deque<SampledWindow> queue_;
  uint64_t dropped_windows_ = 0;
  uint64_t requested_ = 0;
  uint64_t finished_ = 0;
  bool stopping_ = false;
  bool broken_ = false;  // the thread did not come back from CUPTI in time
  bool looked_ = false;  // for contexts that existed already
  bool exited_ = false;
};

}  // namespace sonde::cuda
