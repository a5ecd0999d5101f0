// Delivery: queues, slow and failing subscribers, retained batches, ports.
#include <sonde/spaces/device.h>
#include <sonde/spaces/session.h>

#include "support.h"

namespace sonde::test {
namespace {

TEST(Delivery, ASlowSubscriberLosesItsOwnAndDelaysNobody) {
  sonde_session_options_t options{};
  options.period_ns = 200'000;
  TestSession session(options);
  Collector slow(session, test_space(), 4096);
  Collector quick(session, test_space());
  std::atomic<bool> go{false};
  slow.on_batch = [&](const sonde_batch_t &) {
    while (!go) std::this_thread::yield();
    return SONDE_OK;
  };
  session.start();
  for (uint64_t i = 0; i < 50'000; ++i) {
    session.emit(i);
    if (i % 1000 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  while (quick.numbers().size() + session.lost(SONDE_LOSS_RING_FULL) < 50'000) std::this_thread::yield();
  go = true;
  session.stop();
  sonde_subscription_status_t figures{};
  ASSERT_EQ(api().delivery.status(session.get(), slow.id, &figures), SONDE_OK);
  EXPECT_GT(figures.lost_batches, 0u);
  EXPECT_EQ(figures.lost_records, session.lost(SONDE_LOSS_QUEUE_FULL));
  EXPECT_EQ(
      figures.records + figures.lost_records, session.status().records - 0u - [&] {
        uint64_t own = 0;  // the session's own records have no test.core space and are not queued for either
        sonde_subscription_status_t other{};
        api().delivery.status(session.get(), quick.id, &other);
        own = session.status().records - other.records;
        return own;
      }());
  EXPECT_EQ(session.status().lost_records, session.lost(SONDE_LOSS_RING_FULL)) << "a subscriber's losses are its own";
}

TEST(Delivery, TheNextBatchTellsHowManyWereMissed) {
  sonde_session_options_t options{};
  options.period_ns = 100'000;
  TestSession session(options);
  Collector slow(session, test_space(), 1);
  std::atomic<bool> go{false};
  slow.on_batch = [&](const sonde_batch_t &) {
    while (!go) std::this_thread::yield();
    return SONDE_OK;
  };
  session.start();
  const auto send = [&](uint64_t number) {
    const uint64_t before = session.status().records;
    session.emit(number);
    while (session.status().records == before) std::this_thread::yield();
  };
  send(0);  // handled: holds the thread
  while (slow.numbers().empty()) std::this_thread::yield();
  for (uint64_t i = 1; i <= 4; ++i) send(i);  // one fits the queue, the others do not
  go = true;
  session.flush();
  send(5);
  session.stop();
  uint64_t missed = 0;
  for (const sonde_batch_t &batch : slow.batches) missed += batch.lost_queue;
  EXPECT_EQ(missed, session.lost(SONDE_LOSS_QUEUE_FULL));
  EXPECT_EQ(slow.numbers().back().number, 5u);
}

TEST(Delivery, AFailingSubscriberIsSwitchedOffAndNoted) {
  sonde_session_options_t options{};
  options.period_ns = 100'000;
  TestSession session(options);
  Collector failing(session, test_space());
  Collector notes(session, SONDE_SPACE_SESSION);
  failing.on_batch = [](const sonde_batch_t &) {
    host_table()->set_error(SONDE_E_USER, "broken on purpose");
    return SONDE_E_USER;
  };
  session.start();
  for (uint64_t i = 0; i < 20; ++i) {
    session.emit(i);
    session.flush();
  }
  sonde_subscription_status_t figures{};
  ASSERT_EQ(api().delivery.status(session.get(), failing.id, &figures), SONDE_OK);
  EXPECT_EQ(figures.errors, 16u);
  session.stop();
  EXPECT_EQ(session.lost(SONDE_LOSS_SUBSCRIBER), 16u);
  std::string text;
  for (const auto &bytes : notes.records()) {
    const auto *const note = reinterpret_cast<const sonde_session_note_t *>(bytes.data());
    if (note->header.type != SONDE_SESSION_NOTE) continue;
    const char *found = "";
    ASSERT_EQ(api().capture.text(session.get(), 0, note->text, &found), SONDE_OK);
    text += found;
  }
  EXPECT_NE(text.find("'collector' failed 16 times"), std::string::npos) << text;
  EXPECT_NE(text.find("broken on purpose"), std::string::npos) << text;
}

TEST(Delivery, UnsubscribingInsideACallbackTakesEffectAfterIt) {
  TestSession session;
  Collector collector(session, test_space());
  collector.on_batch = [&](const sonde_batch_t &) { return api().delivery.unsubscribe(session.get(), collector.id); };
  session.start();
  session.emit(1);
  session.flush();
  session.emit(2);
  session.stop();
  EXPECT_EQ(collector.numbers().size(), 1u);
  EXPECT_TRUE(collector.dropped);
}

TEST(Delivery, ARetainedBatchOutlivesItsCallback) {
  TestSession session;
  Collector collector(session, test_space());
  std::vector<const sonde_batch_t *> kept;
  collector.on_batch = [&](const sonde_batch_t &batch) {
    const sonde_batch_t *copy = nullptr;
    const sonde_status status = api().delivery.retain(&batch, &copy);
    kept.push_back(copy);
    return status;
  };
  session.start();
  for (uint64_t i = 0; i < 1000; ++i) session.emit(i);
  session.flush();
  const uint64_t held = session.status().memory;
  uint64_t next = 0;
  for (const sonde_batch_t *batch : kept) {
    for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
         record = sonde_batch_next(batch, record)) {
      EXPECT_EQ(reinterpret_cast<const Numbered *>(record)->number, next++);
    }
    EXPECT_EQ(api().delivery.release(batch), SONDE_OK);
  }
  EXPECT_EQ(next, 1000u);
  EXPECT_LE(session.status().memory, held);
  session.stop();
}

TEST(Delivery, APortsBuffersArriveWithTheirWatermark) {
  TestSession session;
  Collector collector(session, SONDE_SPACE_DEVICE);
  session.start();
  uint64_t stream = 0;
  ASSERT_EQ(api().capture.open_stream(session.get(), "device", SONDE_CLOCK_STAMP, &stream), SONDE_OK);
  uint8_t *buffer = nullptr;
  ASSERT_EQ(api().capture.acquire(session.get(), stream, 4096, &buffer), SONDE_OK);
  auto *const kernels = reinterpret_cast<sonde_device_kernel_t *>(buffer);
  for (int i = 0; i < 3; ++i) {
    kernels[i] = {};
    SONDE_RECORD_INIT(&kernels[i], SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, sonde_stamp());
    kernels[i].end = kernels[i].header.time + 10;
  }
  kernels[1].end = kernels[1].header.time - 1;
  ASSERT_EQ(api().capture.submit(session.get(), stream, buffer, 3 * sizeof(sonde_device_kernel_t), 77), SONDE_OK);
  session.stop();
  ASSERT_EQ(collector.records().size(), 3u);
  ASSERT_EQ(collector.batches.size(), 1u);
  EXPECT_EQ(collector.batches[0].watermark, 77u);
  EXPECT_EQ(collector.batches[0].repair_count, 1u);
  EXPECT_EQ(collector.batches[0].stream, stream);
}

TEST(Delivery, AMalformedBufferIsTakenUpToTheFault) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  uint64_t stream = 0;
  ASSERT_EQ(api().capture.open_stream(session.get(), "bad", SONDE_CLOCK_STAMP, &stream), SONDE_OK);
  uint8_t *buffer = nullptr;
  ASSERT_EQ(api().capture.acquire(session.get(), stream, 4096, &buffer), SONDE_OK);
  auto *const records = reinterpret_cast<Numbered *>(buffer);
  records[0] = numbered(0);
  records[1] = numbered(1);
  records[1].header.size8 = 60'000;
  EXPECT_EQ(api().capture.submit(session.get(), stream, buffer, 2 * sizeof(Numbered), 0), SONDE_E_CORRUPT);
  session.stop();
  EXPECT_EQ(collector.numbers().size(), 1u);
  EXPECT_EQ(session.lost(SONDE_LOSS_MALFORMED), UINT64_MAX);
}

TEST(Delivery, WhatComesAfterTheStopIsRefusedAndCounted) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  uint64_t stream = 0;
  ASSERT_EQ(api().capture.open_stream(session.get(), "late", SONDE_CLOCK_STAMP, &stream), SONDE_OK);
  uint8_t *buffer = nullptr;
  ASSERT_EQ(api().capture.acquire(session.get(), stream, 4096, &buffer), SONDE_OK);
  *reinterpret_cast<Numbered *>(buffer) = numbered(1);
  session.stop();
  EXPECT_EQ(api().capture.submit(session.get(), stream, buffer, sizeof(Numbered), 0), SONDE_E_STATE);
  EXPECT_EQ(session.lost(SONDE_LOSS_DEADLINE), 1u);
  EXPECT_FALSE(session.emit(2));
}

// A subscriber that must have everything and never returns cannot hold a stop up beyond its deadline.
TEST(Delivery, AStuckSubscriberIsGivenUpAtTheDeadline) {
  TestSession session;
  Collector stuck(session, test_space(), 1, SONDE_QUEUE_WAIT);
  std::atomic<bool> go{false};
  stuck.on_batch = [&](const sonde_batch_t &) {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return SONDE_OK;
  };
  session.start();
  for (uint64_t i = 0; i < 5; ++i) {
    session.emit(i);
    (void)api().sessions.flush(session.get(), 5'000'000);
  }
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    go = true;
  });
  EXPECT_EQ(api().sessions.stop(session.get(), 50'000'000), SONDE_OK);
  release.join();
  EXPECT_EQ(stuck.numbers().size() + session.lost(SONDE_LOSS_DEADLINE), 5u);
  EXPECT_GT(session.lost(SONDE_LOSS_DEADLINE), 0u);
}

}  // namespace
}  // namespace sonde::test
