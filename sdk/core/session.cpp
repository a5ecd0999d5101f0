#include "core/session.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>

#include "core/spaces.h"
#include "core/strings.h"
#include "core/threads.h"

namespace sonde::core {
namespace {

constexpr uint64_t kDefaultDeadlineNs = 2'000'000'000;
constexpr uint64_t kLargestBatch = 1 << 20;
constexpr uint64_t kPairPeriodNs = 1'000'000'000;
constexpr uint64_t kBusyBytes = 64 * 1024;  // taken in one pass
constexpr uint64_t kBusyPeriodNs = 200'000;

uint64_t steady_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t deadline_after(uint64_t nanoseconds) {
  return steady_ns() + (nanoseconds == 0 ? kDefaultDeadlineNs : std::min<uint64_t>(nanoseconds, 1ull << 60));
}

uint64_t thread_cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::atomic<uint64_t> next_session_id{1};

}  // namespace

template <typename Visit>
void Session::for_subscribers(Visit &&visit) const {
  std::shared_ptr<const Subscribers> list;  // keeps this list while another thread replaces it
  {
    const std::lock_guard lock(subscribers_mutex_);
    list = subscribers_;
  }
  for (const auto &subscriber : *list) visit(*subscriber);
}

Session::Session(uint32_t slot, SessionOptions options, std::shared_ptr<LiveFile> live)
    : slot_(slot),
      id_(next_session_id.fetch_add(1)),
      process_(static_cast<uint64_t>(::getpid())),
      options_(std::move(options)),
      live_(std::move(live)),
      pool_(options_.memory_cap),
      subscribers_(std::make_shared<const Subscribers>()) {
  own_stream_ = std::make_shared<Stream>();
  own_stream_->id = next_stream_++;
  own_stream_->kind = SONDE_STREAM_PORT;
  own_stream_->name = "session";
  own_stream_->session = id_;
  own_stream_->announced = true;
  stamp_clock_ = calibrate_stamp();
}

Session::~Session() {
  if (is_inherited()) {
    // The threads of a parent do not exist here: their objects must not be joined or waited for.
    if (delivery_.joinable()) new (&delivery_) std::thread;
    return;
  }
  if (state() == SONDE_STATE_RUNNING) (void)stop(0);
  if (state() == SONDE_STATE_OPEN) {
    for_subscribers([&](Subscriber &subscriber) { subscriber.finish(); });
    for_subscribers([&](Subscriber &subscriber) { subscriber.join(deadline_after(0)); });
  }
  for (auto &[changed, drop] : demand_watchers_) {
    if (drop) drop();
  }
}

bool Session::is_inherited() const { return process_ != static_cast<uint64_t>(::getpid()); }

Result<void> Session::start() {
  if (state() != SONDE_STATE_OPEN) return Error{SONDE_E_STATE, "the session was started before; a session runs once"};
  stamp_clock_ = calibrate_stamp();
  state_.store(SONDE_STATE_RUNNING, std::memory_order_release);
  if (!stamp_is_reliable()) {
    note(1, "core", "this processor does not say that its cycle counter runs at a constant rate; times may be wrong");
  }
  emit_start();
  delivery_ = std::thread([this] { run_delivery(); });
  update_demand();
  return {};
}

Result<void> Session::flush(uint64_t deadline_ns) {
  if (state() != SONDE_STATE_RUNNING) return Error{SONDE_E_STATE, "flush: the session is not running"};
  const uint64_t deadline = deadline_after(deadline_ns);
  std::unique_lock lock(flush_mutex_);
  const uint64_t wanted = ++flush_wanted_;
  wake();
  const bool passed =
      flush_done_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline)),
                             [&] { return flush_finished_ >= wanted; });
  lock.unlock();
  if (passed) {
    bool idle = true;
    for_subscribers([&](Subscriber &subscriber) { idle = subscriber.wait_idle(deadline) && idle; });
    if (idle) return {};
  }
  return Error{SONDE_E_TIMEOUT, "flush: subscribers were still busy at the deadline"};
}

Result<void> Session::stop(uint64_t deadline_ns) {
  uint32_t expected = SONDE_STATE_RUNNING;
  if (!state_.compare_exchange_strong(expected, SONDE_STATE_STOPPED)) {
    return Error{SONDE_E_STATE, "stop: the session is not running"};
  }
  const uint64_t deadline = deadline_after(deadline_ns);
  update_demand();
  {
    const std::lock_guard lock(streams_mutex_);
    for (const auto &stream : streams_) stream->accepts.store(false, std::memory_order_release);
  }
  ending_.store(true, std::memory_order_release);
  wake();
  {
    std::unique_lock lock(flush_mutex_);
    if (!flush_done_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline)),
                                [&] { return delivery_done_; })) {
      lock.unlock();
      // A subscriber that must have everything holds the delivery thread up: it loses what it cannot take in time.
      for_subscribers([&](Subscriber &subscriber) { subscriber.abandon(); });
    }
  }
  if (delivery_.joinable()) delivery_.join();
  for_subscribers([&](Subscriber &subscriber) { subscriber.finish(); });
  for_subscribers([&](Subscriber &subscriber) { subscriber.join(deadline); });
  std::vector<std::shared_ptr<Subscriber>> ended;
  {
    const std::lock_guard lock(subscribers_mutex_);
    ended = ended_;
  }
  // One that left from inside its own callback may still be on its way out.
  for (const auto &subscriber : ended) subscriber->join(deadline);
  return {};
}

sonde_session_status_t Session::status() {
  sonde_session_status_t result{};
  result.struct_size = sizeof(result);
  result.state = state();
  result.records = records_.load(std::memory_order_relaxed);
  result.bytes = bytes_.load(std::memory_order_relaxed);
  result.batches = batches_.load(std::memory_order_relaxed);
  for (const sonde_loss_t &loss : ledger_.rows()) {
    if (loss.subscriber == 0 && loss.cause != SONDE_LOSS_LATE && loss.records != UINT64_MAX)
      result.lost_records += loss.records;
  }
  result.memory = pool_.used();
  result.memory_peak = pool_.peak();
  for_subscribers([&](Subscriber &subscriber) { result.helper_cpu_ns += subscriber.cpu_ns(); });
  result.helper_cpu_ns += __atomic_load_n(&delivery_cpu_ns_, __ATOMIC_RELAXED);
  const std::lock_guard lock(streams_mutex_);
  result.streams = next_stream_ - 1;
  return result;
}

// Rings share half the cap, each at most a quarter of what is left of it; the smallest ones may take another quarter of
// the cap. So a program with a few threads has large rings, and one with hundreds is captured all the same.
uint64_t Session::take_ring_bytes() {
  const uint64_t half = options_.memory_cap / 2;
  uint64_t used = rings_.load(std::memory_order_relaxed);
  uint64_t bytes = 0;
  do {
    bytes = options_.ring_bytes;
    while (bytes > kSmallestRing && bytes > (used < half ? (half - used) / 4 : 0)) bytes /= 2;
    if (used + bytes > options_.memory_cap / 4 * 3) return 0;
    // Threads that arrive together must each see what the others took.
  } while (!rings_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  if (bytes < options_.ring_bytes) {
    note(0, "core", "many threads emit: later ones have smaller rings, since rings may take half the memory cap");
  }
  return bytes;
}

std::shared_ptr<Stream> Session::add_thread_stream() {
  const uint64_t ring_bytes = take_ring_bytes();
  if (ring_bytes == 0) return nullptr;
  auto stream = std::make_shared<Stream>();
  if (!stream->ring.map(ring_bytes)) {
    rings_.fetch_sub(ring_bytes, std::memory_order_relaxed);
    return nullptr;
  }
  stream->thread = static_cast<uint64_t>(::gettid());
  stream->kind = SONDE_STREAM_THREAD;
  char name[32] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  stream->name = name;
  stream->session = id_;
  stream->policy = options_.policy;
  stream->stall_ns = options_.stall_ns;
  stream->wake_word = wake_word_;
  pool_.reserve(ring_bytes);
  const std::lock_guard lock(streams_mutex_);
  stream->id = next_stream_++;
  if (live_ != nullptr) {
    if (LiveStream *const row = live_->add_row(stream->id)) {
      stream->live = live_;
      stream->row = row;
    }
  }
  stream->accepts.store(state() == SONDE_STATE_RUNNING, std::memory_order_release);
  if (state() == SONDE_STATE_OPEN) stream->accepts.store(true, std::memory_order_release);
  streams_.push_back(stream);
  return stream;
}

Result<uint64_t> Session::open_port_stream(const char *name, uint32_t clock_id) {
  if (state() == SONDE_STATE_STOPPED) return Error{SONDE_E_STATE, "open_stream: the session has stopped"};
  if (auto line = clock(clock_id); !line && clock_id < SONDE_CLOCK_FIRST_FOREIGN) return line.error();
  auto stream = std::make_shared<Stream>();
  stream->kind = SONDE_STREAM_PORT;
  stream->clock = clock_id;
  stream->name = name == nullptr ? "" : name;
  stream->session = id_;
  stream->wake_word = wake_word_;
  const std::lock_guard lock(streams_mutex_);
  stream->id = next_stream_++;
  if (live_ != nullptr) {
    if (LiveStream *const row = live_->add_row(stream->id)) {
      stream->live = live_;
      stream->row = row;
    }
  }
  streams_.push_back(stream);
  announce(*stream);
  stream->announced = true;
  return stream->id;
}

Result<void> Session::close_port_stream(uint64_t id) {
  const std::lock_guard lock(streams_mutex_);
  for (const auto &stream : streams_) {
    if (stream->id == id && stream->kind == SONDE_STREAM_PORT) {
      stream->ended.store(true, std::memory_order_release);
      return {};
    }
  }
  return Error{SONDE_E_NOT_FOUND, "no stream " + std::to_string(id) + " of a port in this session"};
}

Result<void> Session::submit(uint64_t id, BufferRef buffer, uint64_t bytes, uint64_t watermark) {
  std::shared_ptr<Stream> stream;
  {
    const std::lock_guard lock(streams_mutex_);
    for (const auto &candidate : streams_) {
      if (candidate->id == id && candidate->kind == SONDE_STREAM_PORT) stream = candidate;
    }
  }
  if (stream == nullptr)
    return Error{SONDE_E_NOT_FOUND, "submit: no stream " + std::to_string(id) + " of a port in this session"};
  if (bytes > buffer.get()->capacity) return Error{SONDE_E_INVALID, "submit: more bytes than the buffer has"};
  if (bytes == 0) return {};
  const Survey totals = survey(buffer.data(), bytes, bytes);
  if (totals.malformed) ledger_.add(0, id, SONDE_LOSS_MALFORMED, 0, UINT64_MAX, bytes - totals.bytes);
  if (state() != SONDE_STATE_RUNNING) {
    ledger_.add(0, id, SONDE_LOSS_DEADLINE, 0, totals.count, totals.bytes);
    return Error{SONDE_E_STATE,
                 "submit: the session is not running; " + std::to_string(totals.count) + " records are lost"};
  }
  deliver_own(false);
  BatchInfo info;
  info.stream = id;
  info.sequence = stream->sequence++;
  add_to_counter(stream->row->published, totals.bytes);
  stream->delivered += totals.bytes;
  info.position = stream->delivered;
  info.watermark = watermark;
  if (auto line = clock(stream->clock)) {
    info.clock = *line;
  } else {
    return line.error();
  }
  deliver(make_batch(info, totals, std::move(buffer), handle()), false);
  add_to_counter(stream->row->delivered, totals.bytes);
  if (totals.malformed)
    return Error{SONDE_E_CORRUPT, "submit: the record at byte " + std::to_string(totals.bytes) +
                                      " contradicts itself; it and what follows are lost"};
  return {};
}

void Session::wake() { wake_waiter(*wake_word_); }

Result<sonde_clock_t> Session::clock(uint32_t id) {
  if (id == SONDE_CLOCK_STAMP) return stamp_clock_;
  if (id == SONDE_CLOCK_UNIX_NS) return unix_ns_clock();
  if (id == SONDE_CLOCK_MONOTONIC_NS) {
    sonde_clock_t line = unix_ns_clock();
    line.id = id;
    timespec now{};
    const ClockReading reading = read_clocks();
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    line.base_raw = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
    line.base_ns = reading.unix_ns;
    return line;
  }
  const std::lock_guard lock(clocks_mutex_);
  const auto found = foreign_clocks_.find(id);
  if (found != foreign_clocks_.end()) {
    if (auto line = found->second.line(id)) return *line;
  }
  return Error{SONDE_E_NOT_FOUND, "clock " + std::to_string(id) + " has no pair yet (pair_clock)"};
}

Result<void> Session::pair_clock(uint32_t id, uint64_t stamp, uint64_t reading, uint64_t uncertainty) {
  if (id < SONDE_CLOCK_FIRST_FOREIGN) return Error{SONDE_E_INVALID, "pair_clock: ids below 16 are the host's own"};
  {
    const std::lock_guard lock(clocks_mutex_);
    foreign_clocks_[id].add_pair(stamp_clock_, stamp, reading);
  }
  sonde_session_clock_pair_t pair{};
  SONDE_RECORD_INIT(&pair, SONDE_SPACE_SESSION, SONDE_SESSION_CLOCK_PAIR, stamp);
  pair.value = reading;
  pair.uncertainty = uncertainty;
  pair.clock = id;
  emit_own(&pair.header);
  return {};
}

Result<uint64_t> Session::subscribe(const sonde_subscription_t &subscription) {
  if (state() == SONDE_STATE_STOPPED) return Error{SONDE_E_STATE, "subscribe: the session has stopped"};
  if (subscription.on_batch == nullptr) return Error{SONDE_E_INVALID, "subscribe: on_batch is NULL"};
  if (subscription.interest_count > 0 && subscription.interests == nullptr)
    return Error{SONDE_E_INVALID, "subscribe: interests is NULL"};
  for (uint32_t i = 0; i < subscription.interest_count; ++i) {
    const sonde_interest_t &interest = subscription.interests[i];
    if (interest.space == 0 || interest.space >= SONDE_SPACE_COUNT || interest.level > SONDE_LEVEL_VALUES) {
      return Error{SONDE_E_RANGE, "subscribe: interest " + std::to_string(i) + " names space " +
                                      std::to_string(interest.space) + " at level " + std::to_string(interest.level) +
                                      "; spaces are 1 to 255, levels 0 to 5"};
    }
  }
  const uint64_t queue = subscription.queue_bytes == 0 ? options_.memory_cap / 4 : subscription.queue_bytes;
  uint64_t id = 0;
  {
    const std::lock_guard lock(subscribers_mutex_);
    id = next_subscription_++;
    auto next = std::make_shared<Subscribers>(*subscribers_);
    next->push_back(std::make_shared<Subscriber>(id, subscription, queue, ledger_,
                                                 [this](const std::string &text) { note(2, "core", text); }));
    subscribers_ = next;
  }
  update_demand();
  return id;
}

Result<void> Session::unsubscribe(uint64_t id) {
  std::shared_ptr<Subscriber> leaving;
  {
    const std::lock_guard lock(subscribers_mutex_);
    auto next = std::make_shared<Subscribers>();
    for (const auto &subscriber : *subscribers_) {
      if (subscriber->id() == id) {
        leaving = subscriber;
      } else {
        next->push_back(subscriber);
      }
    }
    if (leaving == nullptr) return Error{SONDE_E_NOT_FOUND, "no subscription " + std::to_string(id)};
    subscribers_ = next;
    ended_.push_back(leaving);
  }
  leaving->cancel();
  update_demand();
  return {};
}

Result<sonde_subscription_status_t> Session::subscription_status(uint64_t id) {
  const std::lock_guard lock(subscribers_mutex_);
  for (const auto *list : {subscribers_.get(), const_cast<const Subscribers *>(&ended_)}) {
    for (const auto &subscriber : *list) {
      if (subscriber->id() == id) return subscriber->status();
    }
  }
  return Error{SONDE_E_NOT_FOUND, "no subscription " + std::to_string(id)};
}

void Session::watch_demand(std::function<void()> changed, std::function<void()> drop) {
  const std::lock_guard lock(subscribers_mutex_);
  demand_watchers_.emplace_back(std::move(changed), std::move(drop));
}

void Session::update_demand() {
  std::vector<std::function<void()>> watchers;
  {
    const std::lock_guard lock(subscribers_mutex_);
    std::vector<sonde_interest_t> interests;
    for (const auto &subscriber : *subscribers_) {
      if (!subscriber->running()) continue;
      interests.insert(interests.end(), subscriber->interests().begin(), subscriber->interests().end());
    }
    demand_.set(interests, state() == SONDE_STATE_RUNNING);
    for (const auto &[changed, drop] : demand_watchers_) watchers.push_back(changed);
  }
  for (const auto &changed : watchers) changed();
}

void Session::emit_own(const sonde_record_t *record) {
  const auto *const bytes = reinterpret_cast<const uint8_t *>(record);
  const std::lock_guard lock(own_mutex_);
  own_records_.insert(own_records_.end(), bytes, bytes + SONDE_RECORD_BYTES(record));
}

void Session::note(uint32_t severity, std::string_view origin, std::string_view text) {
  {
    const std::lock_guard lock(own_mutex_);
    if (!notes_.emplace(std::string(origin) + '\0' + std::string(text), true).second) return;
  }
  sonde_session_note_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_SESSION, SONDE_SESSION_NOTE, sonde_stamp());
  record.severity = severity;
  record.origin = strings().intern(origin);
  record.text = strings().intern(text);
  emit_own(&record.header);
}

uint32_t Session::add_source() {
  const std::lock_guard lock(sources_mutex_);
  sources_.push_back(std::make_unique<SourceStrings>());
  return static_cast<uint32_t>(sources_.size());
}

void Session::set_string(uint32_t source, uint32_t id, std::string_view text) {
  const std::lock_guard lock(sources_mutex_);
  if (source == 0 || source > sources_.size()) return;
  SourceStrings &table = *sources_[source - 1];
  if (id >= table.texts.size()) table.texts.resize(static_cast<size_t>(id) + 1, nullptr);
  const uint64_t bytes = text.size() + 1;
  if (bytes > table.left) {
    table.left = std::max<uint64_t>(bytes, 64 * 1024);
    table.arena.push_back(std::make_unique<char[]>(table.left));
    table.next = table.arena.back().get();
  }
  if (!text.empty()) std::memcpy(table.next, text.data(), text.size());
  table.next[text.size()] = '\0';
  table.texts[id] = table.next;
  table.next += bytes;
  table.left -= bytes;
}

const char *Session::text(uint32_t source, uint32_t id) const {
  if (id == 0) return "";
  if (source == 0) return strings().view(id).data();
  const std::lock_guard lock(sources_mutex_);
  if (source > sources_.size() || id >= sources_[source - 1]->texts.size()) return nullptr;
  return sources_[source - 1]->texts[id];
}

void Session::feed(BatchInfo info, BufferRef buffer, bool wait) {
  const Survey totals = survey(buffer.data(), info.bytes, info.bytes);
  if (totals.malformed)
    ledger_.add(info.source, info.stream, SONDE_LOSS_MALFORMED, 0, UINT64_MAX, info.bytes - totals.bytes);
  if (totals.count == 0) return;
  deliver(make_batch(info, totals, std::move(buffer), handle()), wait);
}

void Session::drain_subscribers(uint64_t deadline_ns) {
  for_subscribers([&](Subscriber &subscriber) { (void)subscriber.wait_idle(deadline_ns); });
}

void Session::at_close(std::function<void()> action) {
  const std::lock_guard lock(close_mutex_);
  close_actions_.push_back(std::move(action));
}

void Session::run_close_actions() {
  std::vector<std::function<void()>> actions;
  {
    const std::lock_guard lock(close_mutex_);
    actions.swap(close_actions_);
  }
  // Last made, first undone.
  for (auto action = actions.rbegin(); action != actions.rend(); ++action) (*action)();
}

void Session::run_delivery() {
  become_helper_thread("sonde:delivery");
  for (;;) {
    const bool ending = ending_.load(std::memory_order_acquire);
    uint64_t wanted = 0;
    {
      const std::lock_guard lock(flush_mutex_);
      wanted = flush_wanted_;
    }
    const bool flushing = wanted > flush_finished_ || ending;
    wake_word_->store(0, std::memory_order_release);
    const uint64_t taken = pass(flushing);
    if (flushing) {
      {
        const std::lock_guard lock(flush_mutex_);
        flush_finished_ = wanted;
      }
      flush_done_.notify_all();
    }
    if (ending) break;
    __atomic_store_n(&delivery_cpu_ns_, thread_cpu_ns(), __ATOMIC_RELAXED);
    // While much comes in, short sleeps keep the rings nearly empty, so that a late wake finds room in them.
    wait_for_wake(*wake_word_, 0,
                  taken > kBusyBytes ? std::min(options_.period_ns, kBusyPeriodNs) : options_.period_ns);
  }
  emit_stop();
  deliver_own(true);
  __atomic_store_n(&delivery_cpu_ns_, thread_cpu_ns(), __ATOMIC_RELAXED);
  {
    const std::lock_guard lock(flush_mutex_);
    delivery_done_ = true;
  }
  flush_done_.notify_all();
}

// Bytes taken out of all rings.
uint64_t Session::pass(bool flushing) {
  uint64_t taken = 0;
  if (sonde_clock_duration_ns(&stamp_clock_, last_pair_stamp_, sonde_stamp()) >= static_cast<int64_t>(kPairPeriodNs))
    emit_clock_pair();
  std::vector<std::shared_ptr<Stream>> streams;
  {
    const std::lock_guard lock(streams_mutex_);
    streams = streams_;
  }
  for (const auto &stream : streams) {
    if (stream->kind != SONDE_STREAM_THREAD) continue;
    if (!stream->announced && read_counter(stream->row->published) != 0) {
      announce(*stream);
      stream->announced = true;
    }
  }
  deliver_own(true);
  for (const auto &stream : streams) {
    if (stream->kind != SONDE_STREAM_THREAD) continue;
    if (stream->policy == SONDE_POLICY_OVERWRITE && !flushing && !stream->ended.load(std::memory_order_acquire))
      continue;
    for (uint64_t bytes = drain(*stream, flushing); bytes != 0; bytes = drain(*stream, flushing)) taken += bytes;
  }
  reap();
  return taken;
}

// Moves what a stream's counters lost since the last look into the ledger and the next batch.
void Session::note_losses(Stream &stream, BatchInfo &info) {
  const auto take = [&](const uint64_t &counter, uint64_t &seen, uint32_t cause) {
    const uint64_t now = read_counter(counter);
    const uint64_t fresh = now - seen;
    seen = now;
    ledger_.add(0, stream.id, cause, 0, fresh, 0);
    return fresh;
  };
  info.lost_ring = take(stream.row->lost_full, stream.lost_full_seen, SONDE_LOSS_RING_FULL) +
                   take(stream.row->lost_big, stream.lost_big_seen, SONDE_LOSS_TOO_BIG);
  info.lost_overwritten = take(stream.row->lost_overwritten, stream.lost_overwritten_seen, SONDE_LOSS_OVERWRITTEN);
}

// Delivers at most one batch of a thread's stream; the bytes taken out of the ring.
uint64_t Session::drain(Stream &stream, bool flushing) {
  BatchInfo info;
  note_losses(stream, info);
  const bool overwriting = stream.policy == SONDE_POLICY_OVERWRITE;
  const uint64_t limit = std::min(kLargestBatch, stream.ring.bytes() / 4);
  const uint64_t wait_ns = flushing ? kDefaultDeadlineNs : 0;
  BufferRef buffer;
  Survey totals;
  uint64_t from = 0;
  uint64_t published = 0;
  if (overwriting) {
    // Twice the limit: the record that passes it comes along, and is at most half a ring.
    buffer = pool_.acquire(limit + stream.ring.bytes() / 2, wait_ns);
    if (!buffer) return 0;
    const OverwriteLock lock(stream);
    published = read_counter(stream.row->published);
    from = std::max(stream.tail.load(std::memory_order_acquire), stream.delivered);
    totals = survey(stream.ring.at(from), published - from, limit);
    std::memcpy(buffer.data(), stream.ring.at(from), totals.bytes);
    __atomic_store_n(&stream.row->delivered, from + totals.bytes, __ATOMIC_RELEASE);
  } else {
    published = read_counter(stream.row->published);
    from = stream.tail.load(std::memory_order_relaxed);
    // The copy comes first: it streams the thread's cache lines over, and the walk then finds them here.
    const uint64_t most = std::min(published - from, limit);
    if (most != 0) buffer = pool_.acquire(most, wait_ns);
    if (buffer) {
      std::memcpy(buffer.data(), stream.ring.at(from), most);
      totals = survey_part(buffer.data(), most, published - from);
    }
    if (!buffer || (totals.count == 0 && !totals.malformed)) {
      // No memory, or a single record larger than the copy: the walk goes over the ring.
      buffer.reset();
      totals = survey(stream.ring.at(from), published - from, limit);
      if (totals.count != 0) buffer = pool_.acquire(totals.bytes, wait_ns);
      if (buffer) std::memcpy(buffer.data(), stream.ring.at(from), totals.bytes);
    }
    if (!buffer && totals.count != 0) {
      // Full: the records wait in the ring, which drops new ones and counts them. At the end there is no later.
      if (!flushing) return 0;
      ledger_.add(0, stream.id, SONDE_LOSS_MEMORY_CAP, 0, totals.count, totals.bytes);
    }
  }
  uint64_t next = from + totals.bytes;
  if (totals.malformed) {
    // Sizes cannot be trusted from here on: what was published so far is given up, and counted.
    ledger_.add(0, stream.id, SONDE_LOSS_MALFORMED, 0, UINT64_MAX, published - next);
    next = published;
  }
  stream.delivered = next;
  __atomic_store_n(&stream.row->delivered, next, __ATOMIC_RELEASE);
  if (!overwriting) stream.tail.store(next, std::memory_order_release);
  if (buffer && totals.count != 0) {
    info.stream = stream.id;
    info.sequence = stream.sequence++;
    info.position = next;
    info.clock = stamp_clock_;
    deliver(make_batch(info, totals, std::move(buffer), handle()), false);
  }
  return next - from;
}

void Session::deliver_own(bool wait) {
  // One deliverer at a time keeps the order of the session's own records. A port does not wait for its turn: it may be
  // running on a subscriber's thread, which the present deliverer may be waiting for.
  std::unique_lock turn(own_delivery_mutex_, std::defer_lock);
  if (wait) {
    turn.lock();
  } else if (!turn.try_lock()) {
    return;
  }
  std::vector<uint8_t> records;
  {
    const std::lock_guard lock(own_mutex_);
    if (own_records_.empty() || state() == SONDE_STATE_OPEN) return;
    records.swap(own_records_);
  }
  BufferRef buffer = pool_.acquire(records.size(), kDefaultDeadlineNs);
  if (!buffer) {
    const std::lock_guard lock(own_mutex_);
    own_records_.insert(own_records_.begin(), records.begin(), records.end());  // tried again at the next pass
    return;
  }
  std::memcpy(buffer.data(), records.data(), records.size());
  const Survey totals = survey(buffer.data(), records.size(), UINT64_MAX);
  BatchInfo info;
  info.stream = own_stream_->id;
  info.sequence = own_stream_->sequence++;
  own_stream_->delivered += totals.bytes;
  info.position = own_stream_->delivered;
  info.clock = stamp_clock_;
  deliver(make_batch(info, totals, std::move(buffer), handle()), false);
}

void Session::deliver(const BatchRef &batch, bool wait) {
  records_.fetch_add(batch->view.count, std::memory_order_relaxed);
  bytes_.fetch_add(batch->view.bytes, std::memory_order_relaxed);
  batches_.fetch_add(1, std::memory_order_relaxed);
  for_subscribers([&](Subscriber &subscriber) { subscriber.push(batch, wait); });
}

void Session::announce(const Stream &stream) {
  sonde_session_stream_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_SESSION, SONDE_SESSION_STREAM, sonde_stamp());
  record.stream = stream.id;
  record.thread = stream.thread;
  record.kind = stream.kind;
  record.name = strings().intern(stream.name);
  emit_own(&record.header);
}

void Session::emit_start() {
  const auto read_line = [](const char *path) {
    std::ifstream file(path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::replace(text.begin(), text.end(), '\0', ' ');
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  };
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  char program[4096] = "";
  const ssize_t length = ::readlink("/proc/self/exe", program, sizeof(program) - 1);
  const ClockReading now = read_clocks();
  sonde_session_start_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_SESSION, SONDE_SESSION_START, now.stamp);
  record.unix_ns = static_cast<uint64_t>(now.unix_ns);
  record.process = process_;
  record.parent_process = static_cast<uint64_t>(::getppid());
  record.host = strings().intern(host);
  record.boot = strings().intern(read_line("/proc/sys/kernel/random/boot_id"));
  record.program = strings().intern(std::string_view(program, length > 0 ? static_cast<size_t>(length) : 0));
  record.command = strings().intern(read_line("/proc/self/cmdline"));
  {
    // First of all: notes made before the start follow it.
    const auto *const bytes = reinterpret_cast<const uint8_t *>(&record);
    const std::lock_guard lock(own_mutex_);
    own_records_.insert(own_records_.begin(), bytes, bytes + sizeof(record));
  }
  emit_clock_pair();
}

void Session::emit_clock_pair() {
  const ClockReading now = read_clocks();
  last_pair_stamp_ = now.stamp;
  sonde_session_clock_pair_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_SESSION, SONDE_SESSION_CLOCK_PAIR, now.stamp);
  record.value = static_cast<uint64_t>(now.unix_ns);
  record.uncertainty = now.uncertainty_ns;
  record.clock = SONDE_CLOCK_UNIX_NS;
  emit_own(&record.header);
}

void Session::emit_stop() {
  const ClockReading now = read_clocks();
  for (const sonde_loss_t &loss : ledger_.rows()) {
    if (loss.subscriber != 0) continue;
    sonde_session_loss_t record{};
    SONDE_RECORD_INIT(&record, SONDE_SPACE_SESSION, SONDE_SESSION_LOSS, now.stamp);
    record.stream = loss.stream;
    record.records = loss.records;
    record.bytes = loss.bytes;
    record.cause = loss.cause;
    emit_own(&record.header);
  }
  sonde_session_stop_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_SESSION, SONDE_SESSION_STOP, now.stamp);
  record.unix_ns = static_cast<uint64_t>(now.unix_ns);
  emit_own(&record.header);
}

void Session::reap() {
  const std::lock_guard lock(streams_mutex_);
  std::erase_if(streams_, [&](const std::shared_ptr<Stream> &stream) {
    if (!stream->ended.load(std::memory_order_acquire)) return false;
    if (stream->kind == SONDE_STREAM_THREAD) {
      if (stream->delivered != read_counter(stream->row->published)) return false;
      pool_.unreserve(stream->ring.bytes());
      rings_.fetch_sub(stream->ring.bytes(), std::memory_order_relaxed);
    }
    return true;
  });
}

}  // namespace sonde::core
