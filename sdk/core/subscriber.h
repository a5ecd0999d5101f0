// A subscriber: its queue, its thread, its figures.
#pragma once

#include <sonde/delivery.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/batch.h"
#include "core/ledger.h"

namespace sonde::core {

// What a callback receives: the public batch, and behind it the shared one for retain.
struct DeliveredBatch {
  sonde_batch_t view;
  Batch *shared;
};

class Subscriber {
 public:
  // `ledger` and `on_failed` (called once when the subscription ends by errors) outlive the subscriber.
  Subscriber(uint64_t id, const sonde_subscription_t &subscription, uint64_t queue_bytes, Ledger &ledger,
             std::function<void(const std::string &)> on_failed);
  ~Subscriber();
  Subscriber(const Subscriber &) = delete;
  Subscriber &operator=(const Subscriber &) = delete;

  uint64_t id() const { return id_; }
  const std::vector<sonde_interest_t> &interests() const { return interests_; }

  // Queues a batch if a space of it is wanted. Full queue: the batch is lost and counted, or, with `wait` or
  // SONDE_QUEUE_WAIT, the caller waits. [any]
  void push(const BatchRef &batch, bool wait);

  // No batch follows: the thread works the queue off, calls on_end and drops user. [any]
  void finish();

  // Ends now: what is queued is not delivered. From another thread it returns when the thread is done. [any]
  void cancel();

  // Gives up at a session's deadline: what is queued and what still comes is lost and counted. [any]
  void abandon();

  // Waits until everything queued so far is handled. False at the deadline (steady clock ns). [any]
  bool wait_idle(uint64_t deadline_ns);

  // Waits for the thread after finish; at the deadline what is queued is dropped and counted. [control]
  void join(uint64_t deadline_ns);

  bool running() const;
  sonde_subscription_status_t status() const;
  uint64_t cpu_ns() const;

 private:
  void run();
  void handle(const BatchRef &batch, uint64_t lost_before);
  void drop_queue(uint32_t cause);

  const uint64_t id_;
  const uint32_t policy_;
  const uint64_t queue_bytes_;
  const std::string name_;
  const std::vector<sonde_interest_t> interests_;
  uint64_t wanted_spaces_ = 0;
  sonde_status (*const on_batch_)(void *, const sonde_batch_t *);
  void (*const on_end_)(void *);
  void *const user_;
  const sonde_drop_user_t drop_user_;
  Ledger &ledger_;
  const std::function<void(const std::string &)> on_failed_;

  struct Item {
    BatchRef batch;
    uint64_t lost_before;
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  uint64_t queued_bytes_ = 0;
  uint64_t lost_since_ = 0;  // batches lost since the last one queued
  bool busy_ = false;
  bool finishing_ = false;
  bool cancelled_ = false;
  bool abandoned_ = false;
  bool done_ = false;
  uint32_t errors_in_a_row_ = 0;
  uint64_t cpu_ns_ = 0;
  sonde_subscription_status_t figures_{};
  std::thread thread_;
};

}  // namespace sonde::core
