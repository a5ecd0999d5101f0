// What the tests of the core share: a space of their own, records of it, and a subscriber that keeps what it gets.
#pragma once

#include <gtest/gtest.h>
#include <sonde/capture.h>
#include <sonde/delivery.h>
#include <sonde/session.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/services.h"

namespace sonde::test {

// A 32-byte record with a running number.
struct Numbered {
  sonde_record_t header;
  uint64_t number;
  uint64_t thread;
};

struct Api {
  const sonde_session_service_t &sessions;
  const sonde_capture_service_t &capture;
  const sonde_delivery_service_t &delivery;
};

inline const Api &api() {
  core::install();
  static const Api tables{service<sonde_session_service_t>(SONDE_SESSION_SERVICE),
                          service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE),
                          service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE)};
  return tables;
}

inline uint32_t test_space() {
  static const uint32_t number = [] {
    static const sonde_field_t fields[] = {SONDE_FIELD(Numbered, number, SONDE_KIND_UINT, "", ""),
                                           SONDE_FIELD(Numbered, thread, SONDE_KIND_ID, "", "")};
    static const sonde_record_type_t types[] = {
        {1, sizeof(Numbered), "numbered", "a test record", fields, 2, sizeof(sonde_field_t)}};
    const sonde_schema_t schema = {sizeof(sonde_schema_t),      1, "test.core", "of the tests", types,
                                   sizeof(sonde_record_type_t), 0};
    uint32_t made = 0;
    EXPECT_EQ(api().capture.register_space(&schema, &made), SONDE_OK);
    return made;
  }();
  return number;
}

inline Numbered numbered(uint64_t number, uint64_t thread = 0) {
  Numbered record{};
  SONDE_RECORD_INIT(&record, test_space(), 1, sonde_stamp());
  record.number = number;
  record.thread = thread;
  return record;
}

// A session that closes itself.
class TestSession {
 public:
  explicit TestSession(sonde_session_options_t options = {}) {
    options.struct_size = sizeof(options);
    EXPECT_EQ(api().sessions.open(&options, &handle_), SONDE_OK) << last();
  }
  ~TestSession() {
    if (handle_ != nullptr) close();
  }
  TestSession(const TestSession &) = delete;
  TestSession &operator=(const TestSession &) = delete;

  sonde_session_t *get() const { return handle_; }
  void start() { ASSERT_EQ(api().sessions.start(handle_), SONDE_OK) << last(); }
  void flush() { ASSERT_EQ(api().sessions.flush(handle_, 10'000'000'000), SONDE_OK) << last(); }
  void stop() { ASSERT_EQ(api().sessions.stop(handle_, 10'000'000'000), SONDE_OK) << last(); }
  void close() {
    EXPECT_EQ(api().sessions.close(handle_), SONDE_OK) << last();
    handle_ = nullptr;
  }
  sonde_writer_t *writer() const {
    sonde_writer_t *made = nullptr;
    EXPECT_EQ(api().capture.writer(handle_, &made), SONDE_OK) << last();
    return made;
  }
  bool emit(uint64_t number, uint64_t thread = 0) const {
    const Numbered record = numbered(number, thread);
    return sonde_write(&api().capture, writer(), &record, sizeof(record)) == 1;
  }
  sonde_session_status_t status() const {
    sonde_session_status_t result{};
    EXPECT_EQ(api().sessions.status(handle_, &result), SONDE_OK);
    return result;
  }
  // Records lost for a cause, over all streams.
  uint64_t lost(uint32_t cause) const {
    uint64_t count = 0;
    EXPECT_EQ(api().sessions.losses(handle_, nullptr, 0, &count), SONDE_OK);
    std::vector<sonde_loss_t> rows(count);
    EXPECT_EQ(api().sessions.losses(handle_, rows.data(), rows.size(), &count), SONDE_OK);
    uint64_t records = 0;
    for (const sonde_loss_t &row : rows) {
      if (row.cause == cause) records += row.records;
    }
    return records;
  }
  static std::string last() { return host_table()->last_error(); }

 private:
  sonde_session_t *handle_ = nullptr;
};

// Keeps every record of one space that it receives, as bytes.
class Collector {
 public:
  Collector(const TestSession &session, uint32_t space, uint64_t queue_bytes = 0, uint32_t policy = SONDE_QUEUE_DROP) {
    const sonde_interest_t interest = {space, SONDE_LEVEL_RECORDS, UINT64_MAX};
    sonde_subscription_t subscription{};
    subscription.struct_size = sizeof(subscription);
    subscription.queue_policy = policy;
    subscription.queue_bytes = queue_bytes;
    subscription.name = "collector";
    subscription.interests = &interest;
    subscription.interest_count = 1;
    subscription.on_batch = [](void *user, const sonde_batch_t *batch) {
      return static_cast<Collector *>(user)->take(*batch);
    };
    subscription.on_end = [](void *user) { static_cast<Collector *>(user)->ended = true; };
    subscription.user = this;
    subscription.drop_user = [](void *user) { static_cast<Collector *>(user)->dropped = true; };
    space_ = space;
    EXPECT_EQ(api().delivery.subscribe(session.get(), &subscription, &id), SONDE_OK) << TestSession::last();
  }

  std::vector<Numbered> numbers() {
    const std::lock_guard lock(mutex_);
    std::vector<Numbered> result;
    for (const auto &record : records_) {
      if (record.size() == sizeof(Numbered)) {
        result.emplace_back();
        std::memcpy(&result.back(), record.data(), sizeof(Numbered));
      }
    }
    return result;
  }
  std::vector<std::vector<uint8_t>> records() {
    const std::lock_guard lock(mutex_);
    return records_;
  }

  uint64_t id = 0;
  std::atomic<bool> ended{false};
  std::atomic<bool> dropped{false};
  std::function<sonde_status(const sonde_batch_t &)> on_batch;  // runs after keeping
  std::vector<sonde_batch_t> batches;                           // pointers in it are stale

 private:
  sonde_status take(const sonde_batch_t &batch) {
    {
      const std::lock_guard lock(mutex_);
      batches.push_back(batch);
      for (const sonde_record_t *record = sonde_batch_next(&batch, nullptr); record != nullptr;
           record = sonde_batch_next(&batch, record)) {
        if (record->space != space_) continue;
        const auto *const bytes = reinterpret_cast<const uint8_t *>(record);
        records_.emplace_back(bytes, bytes + SONDE_RECORD_BYTES(record));
      }
    }
    return on_batch ? on_batch(batch) : SONDE_OK;
  }

  uint32_t space_ = 0;
  std::mutex mutex_;
  std::vector<std::vector<uint8_t>> records_;
};

inline uint32_t cases() {
  const char *const wanted = std::getenv("SONDE_CASES");
  return wanted == nullptr ? 200 : static_cast<uint32_t>(std::strtoul(wanted, nullptr, 10));
}

}  // namespace sonde::test
