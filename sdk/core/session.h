// A session: streams that records come from, subscribers that batches go to, and the delivery thread between them.
//
//   threads --rings--> delivery thread --batches--> queue + thread of each subscriber
//   ports ------------submit-----------^ (no ring)
//   replay -----------Feed-------------^
//
// Ownership: the registry of sessions owns Session; a Session shares its Streams with the threads that emit into them,
// because a thread may be inside a write while the session ends.
#pragma once

#include <sonde/capture.h>
#include <sonde/delivery.h>
#include <sonde/session.h>
#include <sonde/spaces/session.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/batch.h"
#include "core/buffer.h"
#include "core/clocks.h"
#include "core/demand.h"
#include "core/error.h"
#include "core/ledger.h"
#include "core/stream.h"
#include "core/subscriber.h"

namespace sonde::core {

inline constexpr uint32_t kMaxSessions = 16;
inline constexpr uint64_t kSmallestRing = 64 * 1024;

struct SessionOptions {
  uint32_t policy = SONDE_POLICY_DROP;
  uint64_t ring_bytes = 1 << 20;
  uint64_t memory_cap = 64 << 20;
  uint64_t stall_ns = 1'000'000;
  uint64_t period_ns = 10'000'000;
  std::string name = "session";
  std::string live_path;
};

class Session {
 public:
  Session(uint32_t slot, SessionOptions options, std::shared_ptr<LiveFile> live);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  Result<void> start();
  Result<void> flush(uint64_t deadline_ns);
  Result<void> stop(uint64_t deadline_ns);

  // True in a child of the process that opened it: its threads do not exist there.
  bool is_inherited() const;

  uint32_t slot() const { return slot_; }
  uint64_t id() const { return id_; }
  const SessionOptions &options() const { return options_; }
  BufferPool &pool() { return pool_; }
  Ledger &ledger() { return ledger_; }
  Demand &demand() { return demand_; }
  sonde_session_t *handle() { return reinterpret_cast<sonde_session_t *>(this); }
  uint32_t state() const { return state_.load(std::memory_order_acquire); }
  bool captures() const { return state() == SONDE_STATE_RUNNING; }
  sonde_session_status_t status();

  // Streams.
  std::shared_ptr<Stream> add_thread_stream();
  Result<uint64_t> open_port_stream(const char *name, uint32_t clock);
  Result<void> close_port_stream(uint64_t stream);
  Result<void> submit(uint64_t stream, BufferRef buffer, uint64_t bytes, uint64_t watermark);
  void wake();

  // Clocks.
  Result<sonde_clock_t> clock(uint32_t id);
  Result<void> pair_clock(uint32_t clock, uint64_t stamp, uint64_t reading, uint64_t uncertainty);

  // Subscriptions.
  Result<uint64_t> subscribe(const sonde_subscription_t &subscription);
  Result<void> unsubscribe(uint64_t id);
  Result<sonde_subscription_status_t> subscription_status(uint64_t id);
  void watch_demand(std::function<void()> changed, std::function<void()> drop);

  // Records of the session itself; delivered before anything emitted later.
  void emit_own(const sonde_record_t *record);
  void note(uint32_t severity, std::string_view origin, std::string_view text);

  // Replay (see feed.h).
  uint32_t add_source();
  void set_string(uint32_t source, uint32_t id, std::string_view text);
  const char *text(uint32_t source, uint32_t id) const;
  void feed(BatchInfo info, BufferRef buffer, bool wait);
  void drain_subscribers(uint64_t deadline_ns);

  // Runs `action` when the session is closed, before it is freed.
  void at_close(std::function<void()> action);
  void run_close_actions();

 private:
  struct SourceStrings {
    std::vector<const char *> texts;
    std::vector<std::unique_ptr<char[]>> arena;
    char *next = nullptr;
    uint64_t left = 0;
  };
  using Subscribers = std::vector<std::shared_ptr<Subscriber>>;

  uint64_t take_ring_bytes();
  void run_delivery();
  uint64_t pass(bool flushing);
  void note_losses(Stream &stream, BatchInfo &info);
  uint64_t drain(Stream &stream, bool flushing);
  void deliver_own(bool wait);
  void deliver(const BatchRef &batch, bool wait);
  void emit_start();
  void emit_stop();
  void emit_clock_pair();
  void reap();
  template <typename Visit>
  void for_subscribers(Visit &&visit) const;
  void update_demand();
  void announce(const Stream &stream);

  const uint32_t slot_;
  const uint64_t id_;
  const uint64_t process_;
  const SessionOptions options_;
  std::shared_ptr<LiveFile> live_;
  BufferPool pool_;
  Ledger ledger_;
  Demand demand_;
  std::atomic<uint32_t> state_{SONDE_STATE_OPEN};
  sonde_clock_t stamp_clock_{};

  std::mutex streams_mutex_;
  std::vector<std::shared_ptr<Stream>> streams_;
  uint64_t next_stream_ = 1;
  std::shared_ptr<Stream> own_stream_;

  std::mutex own_delivery_mutex_;
  std::mutex own_mutex_;
  std::vector<uint8_t> own_records_;
  std::map<std::string, bool, std::less<>> notes_;

  mutable std::mutex subscribers_mutex_;
  std::shared_ptr<const Subscribers> subscribers_;
  Subscribers ended_;  // kept for their figures
  uint64_t next_subscription_ = 1;
  std::vector<std::pair<std::function<void()>, std::function<void()>>> demand_watchers_;

  std::mutex clocks_mutex_;
  std::map<uint32_t, ForeignClock> foreign_clocks_;

  mutable std::mutex sources_mutex_;
  std::vector<std::unique_ptr<SourceStrings>> sources_;

  std::thread delivery_;
  const std::shared_ptr<std::atomic<uint32_t>> wake_word_ = std::make_shared<std::atomic<uint32_t>>(0);
  std::atomic<bool> ending_{false};
  std::mutex flush_mutex_;
  std::condition_variable flush_done_;
  uint64_t flush_wanted_ = 0;
  uint64_t flush_finished_ = 0;
  bool delivery_done_ = false;
  uint64_t last_pair_stamp_ = 0;
  uint64_t delivery_cpu_ns_ = 0;

  std::atomic<uint64_t> rings_{0};  // bytes of all rings
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> batches_{0};

  std::mutex close_mutex_;
  std::vector<std::function<void()>> close_actions_;
};

// The session behind a handle, or NULL (error text set) for one that is closed or was never open. [any]
Session *find_session(sonde_session_t *handle) noexcept;

Result<sonde_session_t *> open_session(const sonde_session_options_t *options);
Result<void> close_session(sonde_session_t *handle);

// Runs `action` when the session is closed. [any]
void at_close(sonde_session_t *handle, std::function<void()> action);

// Locks and unlocks what a fork must find consistent; child_after_fork makes every inherited session inert.
void install_fork_handlers();

}  // namespace sonde::core
