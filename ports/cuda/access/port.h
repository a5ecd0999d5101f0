// One session's view of device code.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <sonde/port.h>

#include "watcher.h"

namespace sonde::cuda::access {

struct PortOptions {
  uint32_t collect = kObjects;  // features that may be switched on where the session wants them
  Wish limits;                  // periods, filters, floor
  WatcherSettings watcher;
};

// Whole records into buffers of a session's stream. One thread at a time.
class RecordWriter {
 public:
  RecordWriter(sonde_session_t *session, uint64_t stream, uint64_t watermark)
      : session_(session), stream_(stream), watermark_(watermark) {}
  ~RecordWriter() { finish(); }
  RecordWriter(const RecordWriter &) = delete;
  RecordWriter &operator=(const RecordWriter &) = delete;

  // Room for a record of `bytes` (a multiple of 8); null when the session has none, which is counted.
  void *reserve(uint32_t bytes);
  void finish();

 private:
  static constexpr uint64_t kBufferBytes = 256 << 10;

  sonde_session_t *session_;
  uint64_t stream_;
  uint64_t watermark_;
  uint8_t *base_ = nullptr;
  uint8_t *cursor_ = nullptr;
  uint8_t *limit_ = nullptr;
};

class Port {
 public:
  Port(sonde_session_t *session, PortOptions options) : session_(session), options_(std::move(options)) {}

  sonde_status start();
  sonde_status demand();
  sonde_status flush(bool forced);
  sonde_status stop();

  // For the watcher.
  Wish wish() const;
  void attached(size_t record_threads);
  void finish();
  bool wants_access(uint32_t type) const { return (access_.load(std::memory_order_relaxed) >> type & 1) != 0; }
  bool wants(uint32_t space, uint32_t type) const;
  void lose(uint32_t cause, uint64_t records, uint64_t bytes) const;
  void note(uint32_t severity, const std::string &text) const;
  uint64_t stream() const { return streams_.empty() ? 0 : streams_[0]; }
  uint64_t record_stream(size_t number) const { return number + 1 < streams_.size() ? streams_[number + 1] : 0; }
  sonde_session_t *session() const { return session_; }

 private:
  uint32_t features() const;

  sonde_session_t *session_;
  PortOptions options_;
  std::atomic<uint64_t> access_{0};
  mutable std::mutex mutex_;
  Wish wish_;
  std::vector<uint64_t> streams_;  // results, then one for each thread that carries records
  std::mutex life_mutex_;
  bool running_ = false;
  bool attached_ = false;
  int process_ = 0;
};

}  // namespace sonde::cuda::access
