// What the tests of capture files share: services, sessions, a folder that goes away, a subscriber that keeps all.
#pragma once

#include <gtest/gtest.h>
#include <sonde/capture.h>
#include <sonde/delivery.h>
#include <sonde/session.h>
#include <sonde/store.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "core/services.h"
#include "store/install.h"

namespace sonde::store::testing {

// Deadline of stops and flushes: far beyond what a loaded machine needs.
inline constexpr uint64_t kPatienceNs = 120'000'000'000;

// Sanitizers hold memory and take time of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline void install_services() {
  core::install();
  store::install();
}
inline const sonde_session_service_t &sessions() {
  install_services();
  return service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
}
inline const sonde_capture_service_t &capture() {
  install_services();
  return service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
}
inline const sonde_delivery_service_t &delivery() {
  install_services();
  return service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE);
}
inline const sonde_store_service_t &store_service() {
  install_services();
  return service<sonde_store_service_t>(SONDE_STORE_SERVICE);
}

#define SONDE_ASSERT_OK(call) ASSERT_EQ(call, SONDE_OK) << ::sonde::last_error()
#define SONDE_EXPECT_OK(call) EXPECT_EQ(call, SONDE_OK) << ::sonde::last_error()

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sonde_store_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;

  std::string file(const std::string &name) const { return path_ + "/" + name; }
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

inline std::vector<uint8_t> read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string &path, const std::vector<uint8_t> &bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// A session that is closed at the end of its scope.
class TestSession {
 public:
  explicit TestSession(uint64_t memory_cap = 0, const std::string &live_path = {}, uint64_t ring_bytes = 0,
                       uint32_t policy = SONDE_POLICY_DROP, uint64_t stall_ns = 0) {
    sonde_session_options_t options{};
    options.struct_size = sizeof options;
    options.memory_cap = memory_cap;
    options.ring_bytes = ring_bytes;
    options.policy = policy;
    options.stall_ns = stall_ns;
    options.live_path = live_path.empty() ? nullptr : live_path.c_str();
    if (sessions().open(&options, &handle_) != SONDE_OK) {
      std::fprintf(stderr, "cannot open a session: %s\n", last_error());
      std::abort();
    }
  }
  ~TestSession() { close(); }
  TestSession(const TestSession &) = delete;
  TestSession &operator=(const TestSession &) = delete;

  void close() {
    if (handle_ != nullptr) sessions().close(handle_);
    handle_ = nullptr;
  }
  operator sonde_session_t *() const { return handle_; }

  sonde_session_status_t status() const {
    sonde_session_status_t status{};
    status.struct_size = sizeof status;
    sessions().status(handle_, &status);
    return status;
  }

  std::vector<sonde_loss_t> losses() const {
    std::vector<sonde_loss_t> rows(256);
    uint64_t count = 0;
    sessions().losses(handle_, rows.data(), rows.size(), &count);
    rows.resize(std::min<uint64_t>(count, rows.size()));
    return rows;
  }

 private:
  sonde_session_t *handle_ = nullptr;
};

// Keeps everything that a session delivers.
class Collector {
 public:
  struct Batch {
    uint32_t source;
    uint64_t stream, sequence, position, watermark, count, first_time, last_time, lost_ring, lost_overwritten;
    sonde_clock_t clock;
    std::vector<uint8_t> data;
  };

  // `spaces`: numbers; empty: all that are registered now.
  void attach(sonde_session_t *session, std::vector<uint32_t> spaces = {}) {
    if (spaces.empty()) {
      for (uint32_t space = 1; space < SONDE_SPACE_COUNT; ++space) {
        const sonde_schema_t *schema = nullptr;
        if (capture().schema(space, &schema) == SONDE_OK) spaces.push_back(space);
      }
    }
    std::vector<sonde_interest_t> interests;
    for (const uint32_t space : spaces) interests.push_back({space, SONDE_LEVEL_RECORDS, UINT64_MAX});
    sonde_subscription_t subscription{};
    subscription.struct_size = sizeof subscription;
    subscription.queue_policy = SONDE_QUEUE_WAIT;
    subscription.name = "collector";
    subscription.interests = interests.data();
    subscription.interest_count = static_cast<uint32_t>(interests.size());
    subscription.on_batch = [](void *user, const sonde_batch_t *batch) -> sonde_status {
      static_cast<Collector *>(user)->take(*batch);
      return SONDE_OK;
    };
    subscription.user = this;
    uint64_t id = 0;
    ASSERT_EQ(delivery().subscribe(session, &subscription, &id), SONDE_OK) << last_error();
  }

  std::vector<Batch> batches;

  // All records of a stream, in order.
  std::vector<uint8_t> records(uint32_t source, uint64_t stream) const {
    std::vector<uint8_t> all;
    for (const Batch &batch : batches) {
      if (batch.source == source && batch.stream == stream) all.insert(all.end(), batch.data.begin(), batch.data.end());
    }
    return all;
  }

  // Records of one space, whatever the stream.
  std::vector<uint8_t> of_space(uint32_t space) const {
    std::vector<uint8_t> all;
    for (const Batch &batch : batches) {
      for (size_t at = 0; at < batch.data.size();) {
        const auto *const record = reinterpret_cast<const sonde_record_t *>(batch.data.data() + at);
        if (record->space == space) {
          all.insert(all.end(), batch.data.begin() + static_cast<std::ptrdiff_t>(at),
                     batch.data.begin() + static_cast<std::ptrdiff_t>(at + SONDE_RECORD_BYTES(record)));
        }
        at += SONDE_RECORD_BYTES(record);
      }
    }
    return all;
  }

 private:
  void take(const sonde_batch_t &batch) {
    batches.push_back({batch.source, batch.stream, batch.sequence, batch.position, batch.watermark, batch.count,
                       batch.first_time, batch.last_time, batch.lost_ring, batch.lost_overwritten, *batch.clock,
                       std::vector<uint8_t>(batch.data, batch.data + batch.bytes)});
  }
};

// An opened capture.
class TestCapture {
 public:
  explicit TestCapture(const std::string &path) : status_(store_service().open(path.c_str(), &handle_)) {
    if (status_ != SONDE_OK) error_ = last_error();
  }
  ~TestCapture() {
    if (handle_ != nullptr) store_service().close(handle_);
  }
  TestCapture(const TestCapture &) = delete;
  TestCapture &operator=(const TestCapture &) = delete;

  sonde_status status() const { return status_; }
  const std::string &error() const { return error_; }
  operator sonde_capture_t *() const { return handle_; }

  uint64_t sources() const {
    uint64_t count = 0;
    store_service().source_count(handle_, &count);
    return count;
  }
  sonde_source_info_t info(uint64_t index = 0) const {
    sonde_source_info_t info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(store_service().source_at(handle_, index, &info), SONDE_OK) << last_error();
    return info;
  }
  std::vector<sonde_loss_t> losses() const {
    uint64_t count = 0;
    EXPECT_EQ(store_service().losses(handle_, nullptr, 0, &count), SONDE_OK) << last_error();
    std::vector<sonde_loss_t> rows(count);
    EXPECT_EQ(store_service().losses(handle_, rows.data(), rows.size(), &count), SONDE_OK) << last_error();
    return rows;
  }
  std::vector<sonde_loss_t> losses(uint32_t cause) const {
    std::vector<sonde_loss_t> rows;
    for (const sonde_loss_t &row : losses()) {
      if (row.cause == cause) rows.push_back(row);
    }
    return rows;
  }

  // Replays into a new session and returns what came.
  Collector replay(std::vector<uint32_t> spaces = {}) const {
    Collector collector;
    TestSession session;
    collector.attach(session, std::move(spaces));
    EXPECT_EQ(sessions().start(session), SONDE_OK) << last_error();
    EXPECT_EQ(store_service().replay(handle_, session, nullptr, nullptr), SONDE_OK) << last_error();
    EXPECT_EQ(sessions().stop(session, kPatienceNs), SONDE_OK) << last_error();
    std::erase_if(collector.batches, [](const Collector::Batch &batch) { return batch.source == 0; });
    return collector;
  }

 private:
  sonde_capture_t *handle_ = nullptr;
  sonde_status status_;
  std::string error_;
};

}  // namespace sonde::store::testing
