#include "core/subscriber.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "core/threads.h"

namespace sonde::core {
namespace {

constexpr uint32_t kErrorsBeforeEnd = 16;

uint64_t clock_ns(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::chrono::steady_clock::time_point at(uint64_t deadline_ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(std::min<uint64_t>(deadline_ns, INT64_MAX)));
}

}  // namespace

Subscriber::Subscriber(uint64_t id, const sonde_subscription_t &subscription, uint64_t queue_bytes, Ledger &ledger,
                       std::function<void(const std::string &)> on_failed)
    : id_(id),
      policy_(subscription.queue_policy),
      queue_bytes_(queue_bytes),
      name_(subscription.name == nullptr ? "subscriber" : subscription.name),
      interests_(subscription.interests, subscription.interests + subscription.interest_count),
      on_batch_(subscription.on_batch),
      on_end_(subscription.on_end),
      user_(subscription.user),
      drop_user_(subscription.drop_user),
      ledger_(ledger),
      on_failed_(std::move(on_failed)) {
  for (const sonde_interest_t &interest : interests_) {
    if (interest.level != 0 && interest.types != 0) {
      wanted_spaces_ |= uint64_t{1} << (interest.space < 64 ? interest.space : 0);
    }
  }
  figures_.struct_size = sizeof(figures_);
  figures_.running = 1;
  thread_ = std::thread([this] { run(); });
}

Subscriber::~Subscriber() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void Subscriber::push(const BatchRef &batch, bool wait) {
  const sonde_batch_t &view = batch->view;
  if ((view.spaces & wanted_spaces_) == 0) return;
  std::unique_lock lock(mutex_);
  const auto has_room = [&] {
    return cancelled_ || finishing_ || queue_.empty() || queued_bytes_ + view.bytes <= queue_bytes_;
  };
  if (!has_room()) {
    if (!wait && policy_ != SONDE_QUEUE_WAIT) {
      ++figures_.lost_batches;
      figures_.lost_records += view.count;
      ++lost_since_;
      lock.unlock();
      ledger_.add(view.source, view.stream, SONDE_LOSS_QUEUE_FULL, id_, view.count, view.bytes);
      return;
    }
    changed_.wait(lock, has_room);
  }
  if (abandoned_) {
    ++figures_.lost_batches;
    figures_.lost_records += view.count;
    lock.unlock();
    ledger_.add(view.source, view.stream, SONDE_LOSS_DEADLINE, id_, view.count, view.bytes);
    return;
  }
  if (cancelled_ || finishing_) return;
  queue_.push_back({batch, lost_since_});
  lost_since_ = 0;
  queued_bytes_ += view.bytes;
  lock.unlock();
  changed_.notify_all();
}

void Subscriber::finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  changed_.notify_all();
}

void Subscriber::cancel() {
  std::unique_lock lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
  if (thread_.get_id() == std::this_thread::get_id()) return;
  changed_.wait(lock, [this] { return done_; });
}

void Subscriber::abandon() {
  {
    const std::lock_guard lock(mutex_);
    if (done_) return;
    drop_queue(SONDE_LOSS_DEADLINE);
    abandoned_ = cancelled_ = true;
  }
  changed_.notify_all();
}

bool Subscriber::wait_idle(uint64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, at(deadline_ns), [this] { return done_ || (queue_.empty() && !busy_); });
}

void Subscriber::join(uint64_t deadline_ns) {
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, at(deadline_ns), [this] { return done_; })) {
      drop_queue(SONDE_LOSS_DEADLINE);
      cancelled_ = true;
      changed_.notify_all();
    }
  }
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
}

bool Subscriber::running() const {
  const std::lock_guard lock(mutex_);
  return !done_ && !cancelled_;
}

sonde_subscription_status_t Subscriber::status() const {
  const std::lock_guard lock(mutex_);
  sonde_subscription_status_t copy = figures_;
  copy.running = done_ ? 0 : 1;
  return copy;
}

uint64_t Subscriber::cpu_ns() const {
  const std::lock_guard lock(mutex_);
  return cpu_ns_;
}

void Subscriber::run() {
  become_helper_thread("sonde:" + name_);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return cancelled_ || finishing_ || !queue_.empty(); });
    if (cancelled_) break;
    if (queue_.empty()) break;  // finishing, and all is done
    Item item = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= item.batch->view.bytes;
    busy_ = true;
    lock.unlock();
    changed_.notify_all();
    handle(item.batch, item.lost_before);
    item.batch = {};
    lock.lock();
    busy_ = false;
    cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (queue_.empty()) changed_.notify_all();
  }
  queue_.clear();
  queued_bytes_ = 0;
  lock.unlock();
  if (on_end_ != nullptr) on_end_(user_);
  if (drop_user_ != nullptr) drop_user_(user_);
  lock.lock();
  cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  done_ = true;
  changed_.notify_all();
}

void Subscriber::handle(const BatchRef &batch, uint64_t lost_before) {
  DeliveredBatch delivered{batch->view, batch.get()};
  delivered.view.lost_queue = lost_before;
  const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
  const sonde_status status = on_batch_(user_, &delivered.view);
  const uint64_t spent = clock_ns(CLOCK_MONOTONIC) - begin;
  bool failed_for_good = false;
  {
    const std::lock_guard lock(mutex_);
    ++figures_.batches;
    figures_.records += batch->view.count;
    figures_.busy_ns += spent;
    figures_.longest_ns = std::max(figures_.longest_ns, spent);
    if (status == SONDE_E_STOP) {
      cancelled_ = true;
    } else if (status < 0) {
      ++figures_.errors;
      if (++errors_in_a_row_ >= kErrorsBeforeEnd) cancelled_ = failed_for_good = true;
    } else {
      errors_in_a_row_ = 0;
    }
    if (failed_for_good) drop_queue(SONDE_LOSS_SUBSCRIBER);
  }
  if (status < 0 && status != SONDE_E_STOP) {
    ledger_.add(batch->view.source, batch->view.stream, SONDE_LOSS_SUBSCRIBER, id_, batch->view.count,
                batch->view.bytes);
  }
  if (failed_for_good && on_failed_) {
    on_failed_("subscriber '" + name_ + "' failed " + std::to_string(kErrorsBeforeEnd) +
               " times in a row and was switched off; its last error: " + last_error());
  }
}

// With mutex_ held: counts and forgets what is queued.
void Subscriber::drop_queue(uint32_t cause) {
  for (const Item &item : queue_) {
    const sonde_batch_t &view = item.batch->view;
    ++figures_.lost_batches;
    figures_.lost_records += view.count;
    ledger_.add(view.source, view.stream, cause, id_, view.count, view.bytes);
  }
  queue_.clear();
  queued_bytes_ = 0;
}

}  // namespace sonde::core
