#include "store/recorder.h"

#include <sonde/capture.h>
#include <sonde/schema.h>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/services.h"
#include "core/session.h"
#include "core/spaces.h"
#include "core/threads.h"
#include "store/writer_checks.h"

namespace sonde::store {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kDefaultSealNs = 200'000'000;

int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string first_line(const char *path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

FileTexts describe_process() {
  FileTexts texts;
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) texts.host = host;
  char program[4096] = {};
  if (::readlink("/proc/self/exe", program, sizeof program - 1) > 0) texts.program = program;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::stringstream words;
  words << file.rdbuf();
  texts.command = words.str();
  if (!texts.command.empty() && texts.command.back() == '\0') texts.command.pop_back();
  std::replace(texts.command.begin(), texts.command.end(), '\0', ' ');
  constexpr size_t kMostCommand = 1 << 16;  // the header is read as a whole
  if (texts.command.size() > kMostCommand) texts.command.resize(kMostCommand);
  texts.boot = first_line("/proc/sys/kernel/random/boot_id");
  return texts;
}

// Default chunks are a thirty-second of the memory cap, so that what encoding holds stays small beside it.
uint64_t chunk_bytes_for(uint64_t wanted, uint64_t cap) {
  if (wanted != 0) return std::clamp(wanted, kMinChunkRecordBytes, kMaxChunkRecordBytes);
  return std::clamp(std::bit_floor(cap / 32), kMinChunkRecordBytes, kDefaultChunkRecordBytes);
}

Result<std::vector<sonde_interest_t>> interests_in(const char *spaces) {
  std::vector<sonde_interest_t> interests;
  std::istringstream names(spaces == nullptr ? core::space_names() : std::string(spaces) + " sonde.session");
  for (std::string name; names >> name;) {
    Result<uint32_t> space = core::find_space(name);
    if (!space) return space.error();
    interests.push_back({*space, SONDE_LEVEL_RECORDS, UINT64_MAX});
  }
  return interests;
}

}  // namespace

Recorder::Recorder(sonde_session_t *session, std::string path, const sonde_writer_options_t &options,
                   uint64_t queue_bytes)
    : path_(std::move(path)),
      process_(static_cast<uint64_t>(::getpid())),
      queue_bytes_(queue_bytes),
      seal_ns_(options.seal_ns == 0 ? kDefaultSealNs : options.seal_ns),
      spills_(options.when_full == SONDE_FULL_SPILL),
      session_(session) {}

Result<std::shared_ptr<Recorder>> Recorder::start(sonde_session_t *handle, const std::string &path, const char *spaces,
                                                  const sonde_writer_options_t &options) {
  core::Session *const session = core::find_session(handle);
  if (session == nullptr) return Error{SONDE_E_INVALID, last_error()};
  if (session->state() != SONDE_STATE_OPEN) {
    return Error{SONDE_E_STATE, "a recording must be set up before its session starts"};
  }
  if (Result<void> good = check_writer_options(options); !good) return good.error();
  if (Result<void> good = check_new_file(path); !good) return good.error();

  const uint64_t cap = session->pool().cap();
  // A quarter of the cap for both queues together: three quarters of it here, the rest with the subscriber.
  const uint64_t queues = cap / 4;
  std::shared_ptr<Recorder> recorder(new Recorder(handle, path, options, queues / 4 * 3));
  ChunkWriterOptions writing;
  writing.path = path;
  writing.chunk_bytes = chunk_bytes_for(options.chunk_bytes, cap);
  writing.file_limit = options.file_limit;
  writing.level = options.level == 0 ? 3 : options.level;
  writing.sync = options.sync != 0;
  writing.start.process = recorder->process_;
  writing.start.parent_process = static_cast<uint64_t>(::getppid());
  writing.start.start_ns = unix_ns();
  writing.start.memory_bound = cap + writing.chunk_bytes;
  writing.start.texts = describe_process();
  ChunkWriterHooks hooks;
  Recorder *const self = recorder.get();
  hooks.ledger = [self] { return self->ledger(); };
  hooks.lose = [self](uint64_t stream, uint64_t records, uint64_t bytes) {
    const std::lock_guard lock(self->session_mutex_);
    core::Session *const session = self->open_session();
    if (session != nullptr) session->ledger().add(0, stream, SONDE_LOSS_DISK, 0, records, bytes);
  };
  hooks.fail = [self](const Error &error) {
    if (self->failure_noted_) return;
    self->failure_noted_ = true;
    const std::lock_guard lock(self->session_mutex_);
    core::Session *const session = self->open_session();
    if (session != nullptr) session->note(2, "store", error.text);
  };
  recorder->writer_ = std::make_unique<ChunkWriter>(std::move(writing), std::move(hooks));
  recorder->count_memory();
  if (Result<void> subscribed = recorder->subscribe(spaces); !subscribed) {
    recorder->detach();
    return subscribed.error();
  }
  core::at_close(handle, [recorder] { recorder->detach(); });
  return recorder;
}

Result<void> Recorder::subscribe(const char *spaces) {
  Result<std::vector<sonde_interest_t>> interests = interests_in(spaces);
  if (!interests) return interests.error();
  sonde_subscription_t subscription{};
  subscription.struct_size = sizeof subscription;
  subscription.queue_policy = SONDE_QUEUE_DROP;
  subscription.queue_bytes = std::max<uint64_t>(queue_bytes_ / 3, 1);
  subscription.name = "recording";
  subscription.interests = interests->data();
  subscription.interest_count = static_cast<uint32_t>(interests->size());
  subscription.on_batch = &Recorder::on_batch;
  subscription.on_end = &Recorder::on_end;
  // The session keeps the recorder as long as it may call it.
  subscription.user = new std::shared_ptr<Recorder>(shared_from_this());
  subscription.drop_user = [](void *user) { delete static_cast<std::shared_ptr<Recorder> *>(user); };
  thread_ = std::thread([this] { run(); });
  const auto &delivery = service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE);
  uint64_t id = 0;
  if (delivery.subscribe(session_, &subscription, &id) != SONDE_OK) {
    const Error error{SONDE_E_INVALID, last_error()};
    delete static_cast<std::shared_ptr<Recorder> *>(subscription.user);
    end();
    return error;
  }
  subscription_ = id;
  return {};
}

Recorder::~Recorder() {
  if (!thread_.joinable()) return;
  if (process_ != static_cast<uint64_t>(::getpid())) {
    thread_.detach();  // a forked child: the thread is the parent's
    return;
  }
  end();
}

sonde_status Recorder::on_batch(void *user, const sonde_batch_t *batch) {
  return at_boundary([&] { return (*static_cast<std::shared_ptr<Recorder> *>(user))->keep(*batch); });
}

void Recorder::on_end(void *user) { (*static_cast<std::shared_ptr<Recorder> *>(user))->end(); }

sonde_status Recorder::keep(const sonde_batch_t &batch) {
  if (batch.source != 0) return SONDE_OK;  // a replay in the same session is in a file already
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty() || queued_bytes_ + batch.bytes <= queue_bytes_; });
  }
  const auto &delivery = service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE);
  const sonde_batch_t *kept = nullptr;
  if (const sonde_status status = delivery.retain(&batch, &kept); status != SONDE_OK) return status;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({kept, batch.bytes});
    queued_bytes_ += batch.bytes;
    if (queued_bytes_ > queue_bytes_ / 3 * 2) spilling_ = spills_;
  }
  changed_.notify_all();
  return SONDE_OK;
}

// Waits until everything kept is written or counted as lost.
void Recorder::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(mutex_);
  ended_ = true;
}

void Recorder::run() {
  core::become_helper_thread("sonde:record");
  const auto &delivery = service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE);
  Clock::time_point seal_at{};
  bool started = false;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto woken = [this] { return ending_ || !queue_.empty(); };
    if (started) {
      changed_.wait_until(lock, seal_at, woken);
    } else {
      changed_.wait(lock, woken);
    }
    const bool spill = spilling_;
    const bool overdue = started && Clock::now() >= seal_at;
    if (queue_.empty()) {
      const bool ending = ending_;
      lock.unlock();
      if (ending || overdue) writer_->seal(false);
      if (ending) return;
    } else {
      const Kept kept = queue_.front();
      queue_.pop_front();
      lock.unlock();
      writer_->add(*kept.batch, spill);
      delivery.release(kept.batch);
      if (overdue) writer_->seal(spill);
      lock.lock();
      queued_bytes_ -= kept.bytes;
      if (queued_bytes_ <= queue_bytes_ / 3) spilling_ = false;
      lock.unlock();
      changed_.notify_all();
    }
    const bool was_started = started && !overdue;
    started = writer_->started();
    if (started && !was_started) seal_at = Clock::now() + std::chrono::nanoseconds(seal_ns_);
    count_memory();
    lock.lock();
  }
}

// What the encoder holds counts against the session's cap.
void Recorder::count_memory() {
  const uint64_t memory = writer_ == nullptr ? 0 : writer_->memory();
  if (memory == counted_memory_) return;
  const std::lock_guard lock(session_mutex_);
  core::Session *const session = open_session();
  if (session == nullptr) return;
  core::BufferPool &pool = session->pool();
  if (memory > counted_memory_) {
    pool.reserve(memory - counted_memory_);
  } else {
    pool.unreserve(counted_memory_ - memory);
  }
  counted_memory_ = memory;
}

// Losses of the program's streams, and this recording's own; those of other subscribers are not losses of the file.
std::vector<sonde_loss_t> Recorder::ledger() {
  const std::lock_guard lock(session_mutex_);
  core::Session *const session = open_session();
  if (session == nullptr) return last_ledger_;
  std::vector<sonde_loss_t> rows = session->ledger().rows();
  const uint64_t own = subscription_;
  std::erase_if(rows, [own](const sonde_loss_t &row) {
    return row.source != 0 || (row.subscriber != 0 && row.subscriber != own);
  });
  for (sonde_loss_t &row : rows) row.subscriber = 0;
  return rows;
}

// With session_mutex_ held: NULL after the session's close, and in a forked child.
core::Session *Recorder::open_session() const { return session_ == nullptr ? nullptr : core::find_session(session_); }

void Recorder::detach() {
  std::vector<sonde_loss_t> rows = ledger();
  const std::lock_guard lock(session_mutex_);
  if (core::Session *const session = open_session(); session != nullptr) {
    last_ledger_ = std::move(rows);
    session->pool().unreserve(counted_memory_);
  }
  counted_memory_ = 0;
  session_ = nullptr;
}

Result<void> Recorder::finish() {
  if (process_ != static_cast<uint64_t>(::getpid())) {
    return Error{SONDE_E_STATE, "the recording belongs to the process that forked this one"};
  }
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) return Error{SONDE_E_STATE, "the session of the recording has not stopped"};
  }
  const Result<void> finished = writer_->finish(unix_ns());
  // The session may live on and keep this object; what it holds goes now.
  writer_.reset();
  count_memory();
  if (!finished) return finished;
  // Everything is in the file, so nothing remains that the live file could tell.
  ::unlink((path_ + ".live").c_str());
  return {};
}

}  // namespace sonde::store
