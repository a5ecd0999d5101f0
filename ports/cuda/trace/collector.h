// The one CUPTI client of the process, shared by all sessions.
//
// CUPTI has one set of buffer callbacks, one subscriber and one set of enabled kinds in a process; a session is a
// `Port` that attaches here and says what it wants. Full buffers are put into a queue by whatever thread CUPTI uses
// and decoded on a thread of the collector, once for each attached port. Flushes run on that thread too, so that one
// that hangs inside CUPTI costs a deadline and not the program.
//
// Launches cost the program nothing beyond CUPTI itself: no callback of Sonde runs for them.
#pragma once

#include <atomic>
#include <bitset>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sonde/status.h>

#include "buffer_pool.h"
#include "cupti_api.h"
#include "decode.h"
#include "duty.h"

namespace sonde::cuda {

class Port;

// What a kind of activity record is about, for messages.
const char *kind_name(uint32_t kind);

// What is set once for the process, by the first session that collects.
struct CollectorSettings {
  std::string cupti;                       // path, "" to search
  size_t buffer_bytes = size_t{8} << 20;   // of one activity buffer
  size_t pool_bytes = size_t{256} << 20;   // of all activity buffers
  uint64_t flush_period_ns = 100'000'000;  // between flushes of CUPTI
  uint64_t deadline_ns = 2'000'000'000;    // for a flush that somebody waits for
  bool prepare_buffers = true;             // hand in zeroed buffers
  bool vendor_clock = false;               // leave CUPTI its own clock
  uint64_t slot_ns = 20'000'000;           // shortest time that is collected or left out under a budget
};

// What a session asks of CUPTI.
struct CollectorNeeds {
  std::bitset<kind::kCount> kinds;
  bool runtime_launches = false;  // launch calls alone, where the kind is not in `kinds`
  bool driver_launches = false;
  bool managed = false;  // counters of managed memory
  bool graphs = false;   // callbacks when graphs are made and destroyed
  bool modules = false;  // callbacks when modules are loaded and unloaded
  bool streams = false;  // callbacks when streams are destroyed
  double budget = 0;     // greatest slow-down; 0: collect everything

  bool callbacks() const { return graphs || modules || streams; }
  bool any() const { return kinds.any() || runtime_launches || driver_launches || managed || callbacks(); }
};

// What a budgeted capture did and what it cost, by its own measurement.
struct BudgetReport {
  double budget = 0;
  double collected_share = 0;  // of the time
  double collecting = 0;       // slow-down by collecting
  double standing = 0;         // slow-down by what goes on while nothing is collected
  double standing_ns = 0;      // the same for a launch
  double launch_ns = 0;        // time between two launches
  uint64_t windows = 0;
  bool counted = false;       // launches were counted, so the slow-down was measured
  bool out_of_reach = false;  // what goes on costs more than the budget
};

class Collector {
 public:
  static Collector &instance();

  // Begins to collect for `port` what it needs, opening CUPTI at the first call. Whatever CUPTI refuses is noted in
  // the port's session. [control]
  void attach(Port *port, const CollectorSettings &settings);

  // Ends it: flushes, switches off what nobody else needs, hands the rest to the port. SONDE_E_TIMEOUT when CUPTI
  // did not return in time; the port is detached all the same. [control]
  sonde_status detach(Port *port);

  // The needs of an attached port changed. [any]
  void refresh();

  // Hands over what CUPTI holds; `forced`: also unfinished buffers. SONDE_E_TIMEOUT. [any]
  sonde_status flush(bool forced);

  // The library in use; null while none is open.
  const CuptiApi *api() const { return opened_.load(std::memory_order_acquire) ? &api_ : nullptr; }

  bool vendor_clock() const { return vendor_clock_; }

  // The clock of the records, now: the host's stamp or CUPTI's own time.
  uint64_t now() const;

  // No record of a later buffer is expected to begin before this; 0: unknown. Of the collector's thread.
  uint64_t watermark() const { return flushed_; }

  // Under a budget: the window under way as if it ended now (stratum 0: there is none), and the costs so far. [any]
  Window window() const;
  BudgetReport budget_report() const;

  // CUPTI's callbacks.
  void buffer_requested(uint8_t **buffer, size_t *bytes, size_t *record_limit);
  void buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes);

  // Buffers that arrived while no session was attached.
  uint64_t late_buffers() const { return late_buffers_.load(std::memory_order_relaxed); }
  const BufferPool &pool() const { return pool_; }

 private:
  using Clock = std::chrono::steady_clock;

  struct FullBuffer {
    uint8_t *data;
    size_t valid_bytes;
    void *context;
    uint32_t stream;
  };

  Collector() = default;

  static void after_fork_in_child();

  // Under control_mutex_.
  bool open(Port *port, const CollectorSettings &settings);
  bool begin(Port *port);
  void end();
  void apply();
  void apply_calls(bool runtime, bool wanted, bool &applied);
  void apply_counters(bool wanted);
  void apply_subscription(const CollectorNeeds &needs);
  void update_budget();
  CollectorNeeds needs() const;
  void unsubscribe();
  void switch_off_all();
  void tell(uint32_t severity, const std::string &text) const;
  void tell_refusal(const char *what, CuptiResult result) const;

  // On the collector's thread.
  void work();
  void drain();
  void process(const FullBuffer &buffer);
  void flush_now(bool forced);
  void retry_counters();
  void turn_window();
  void move_window(uint64_t stamp, uint64_t launches, bool next_collected);
  void enter_window(uint64_t stamp, uint64_t launches);
  Clock::time_point turn_due() const;

  std::mutex control_mutex_;  // attach, detach, refresh
  std::mutex ports_mutex_;    // ports_, while buffers are handed to them
  std::vector<Port *> ports_;

  CollectorSettings settings_;
  CuptiApi api_;
  std::atomic<bool> opened_{false};
  bool running_ = false;  // callbacks are registered and the thread runs
  bool vendor_clock_ = false;
  std::bitset<kind::kCount> enabled_;
  std::bitset<kind::kCount> refused_;
  bool runtime_launches_ = false;
  bool driver_launches_ = false;
  bool counters_ = false;
  bool counters_waited_ = false;     // for the driver's initialisation
  std::atomic<bool> broken_{false};  // a flush did not return in time
  bool subscription_refused_ = false;
  Subscriber subscriber_ = nullptr;
  std::vector<uint64_t> points_;  // enabled callbacks: domain << 32 | point
  bool claimed_ = false;          // the device, for activity

  BufferPool pool_;
  std::unique_ptr<Decoder> decoder_;
  uint64_t flushed_ = 0;
  std::atomic<uint64_t> late_buffers_{0};

  // A budgeted capture. The collector's thread moves from window to window; control threads say what is wanted.
  std::atomic<double> budget_{0};      // in force; 0: everything is collected
  std::atomic<bool> left_out_{false};  // CUPTI makes no records of what is sampled
  std::atomic<bool> counting_{false};  // launches are counted
  double call_ns_before_ = 0;          // of a driver call, before CUPTI was opened; 0: not measured
  std::unique_ptr<DutyCycle> duty_;    // of the thread
  bool sampling_ = false;              // of the thread: windows are under way
  bool standing_known_ = false;        // of the thread: what stands was measured
  Clock::time_point not_before_ = {};  // of the thread: when it tries again
  mutable std::mutex window_mutex_;
  Window window_;
  BudgetReport report_;

  std::mutex queue_mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<FullBuffer> queue_;
  uint64_t requested_ = 0;  // flushes asked for
  uint64_t finished_ = 0;   // flushes done
  bool forced_ = false;
  bool turn_ = false;        // the budget changed
  bool switch_off_ = false;  // the next flush ends with switching everything off
  bool stopping_ = false;
  bool exited_ = false;
  bool asked_ = false;  // the last flush was asked for, not the thread's own
  Clock::time_point last_flush_ = {};
  Clock::time_point begun_ = {};
  std::atomic<bool> seen_buffer_{false};  // CUPTI has asked for a buffer since the thread began
  std::thread thread_;
};

}  // namespace sonde::cuda
