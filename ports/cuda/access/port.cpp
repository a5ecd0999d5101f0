#include "port.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <sonde/ledger.h>
#include <sonde/spaces/access.h>

#include "common/services.h"

namespace sonde::cuda::access {

namespace {

constexpr char kOrigin[] = "cuda_access";

}  // namespace

void *RecordWriter::reserve(uint32_t bytes) {
  if (static_cast<uint64_t>(limit_ - cursor_) < bytes) {
    finish();
    const uint64_t ask = std::max<uint64_t>(kBufferBytes, bytes);
    if (services().capture->acquire(session_, stream_, ask, &base_) != SONDE_OK) {
      base_ = nullptr;
      services().capture->lose(session_, stream_, SONDE_LOSS_MEMORY_CAP, 1, bytes);
      return nullptr;
    }
    cursor_ = base_;
    limit_ = base_ + ask;
  }
  void *const room = cursor_;
  cursor_ += bytes;
  return room;
}

void RecordWriter::finish() {
  if (base_ == nullptr) return;
  const auto bytes = static_cast<uint64_t>(cursor_ - base_);
  if (bytes != 0) {
    services().capture->submit(session_, stream_, base_, bytes, watermark_);
  } else {
    services().capture->discard(session_, base_);
  }
  base_ = cursor_ = limit_ = nullptr;
}

uint32_t Port::features() const {
  const auto wants_type = [&](uint32_t type) { return wants(SONDE_SPACE_ACCESS, type); };
  uint32_t out = 0;
  if (wants_type(SONDE_ACCESS_OBJECT)) out |= kObjects;
  if (wants_type(SONDE_ACCESS_PAGES)) out |= kPages;
  if (wants_type(SONDE_ACCESS_INTERVALS)) out |= kIntervals;
  if (wants_type(SONDE_ACCESS_INSTRUCTION)) out |= kInstructions;
  if (wants_type(SONDE_ACCESS_INVALID)) out |= kCheck;
  if (wants_type(SONDE_ACCESS_EVENTS)) out |= kEvents;
  if (wants_type(SONDE_ACCESS_WARPS)) {
    uint32_t level = SONDE_LEVEL_NONE;
    (void)services().capture->level(session_, SONDE_SPACE_ACCESS, SONDE_ACCESS_WARPS, &level);
    out |= kRecords | (level >= SONDE_LEVEL_VALUES || (options_.collect & kValues) != 0 ? kValues : 0);
  }
  return out & options_.collect;
}

bool Port::wants(uint32_t space, uint32_t type) const {
  uint32_t level = SONDE_LEVEL_NONE;
  return services().capture->level(session_, space, type, &level) == SONDE_OK && level != SONDE_LEVEL_NONE;
}

sonde_status Port::start() {
  {
    const std::lock_guard hold(life_mutex_);
    if (running_) return services().host->set_error(SONDE_E_STATE, "cuda_access: the port is started already");
    process_ = getpid();
    running_ = true;
  }
  return demand();
}

sonde_status Port::demand() {
  if (getpid() != process_) return SONDE_OK;
  const std::lock_guard life(life_mutex_);
  if (!running_) return SONDE_OK;
  uint64_t types = 0;
  for (uint32_t type = SONDE_ACCESS_LAUNCH; type <= SONDE_ACCESS_TRANSFER; ++type) {
    if (wants(SONDE_SPACE_ACCESS, type)) types |= uint64_t{1} << type;
  }
  access_.store(types, std::memory_order_relaxed);
  {
    const std::lock_guard hold(mutex_);
    wish_ = options_.limits;
    wish_.features = features();
  }
  if (attached_) {
    Watcher::instance().refresh();
  } else if (types != 0) {
    attached_ = true;
    Watcher::instance().attach(this, options_.watcher);
  }
  return SONDE_OK;
}

Wish Port::wish() const {
  const std::lock_guard hold(mutex_);
  return wish_;
}

sonde_status Port::flush(bool forced) {
  if (!attached_ || getpid() != process_) return SONDE_OK;
  const sonde_status status = Watcher::instance().flush(forced ? 2'000'000'000 : 0);
  if (status == SONDE_E_TIMEOUT && forced) {
    return services().host->set_error(status, "cuda_access: watched kernels did not end within two seconds");
  }
  return SONDE_OK;
}

sonde_status Port::stop() {
  if (getpid() != process_) {
    running_ = false;
    return SONDE_OK;
  }
  const std::lock_guard life(life_mutex_);
  if (!running_) return SONDE_OK;
  running_ = false;
  if (!attached_) return SONDE_OK;
  attached_ = false;
  return Watcher::instance().detach(this);
}

void Port::attached(size_t record_threads) {
  streams_.assign(record_threads + 1, 0);
  for (uint64_t &stream : streams_) {
    if (services().capture->open_stream(session_, kOrigin, SONDE_CLOCK_STAMP, &stream) != SONDE_OK) {
      note(2, std::string("the session takes no stream: ") + services().host->last_error());
      stream = 0;
    }
  }
}

void Port::finish() {
  for (uint64_t &stream : streams_) {
    if (stream != 0) services().capture->close_stream(session_, stream);
  }
  streams_.clear();
}

void Port::lose(uint32_t cause, uint64_t records, uint64_t bytes) const {
  services().capture->lose(session_, stream(), cause, records, bytes);
}

void Port::note(uint32_t severity, const std::string &text) const {
  services().capture->note(session_, severity, kOrigin, text.c_str());
}

}  // namespace sonde::cuda::access
