// Emitting: order, drops, policies, demand, re-entrancy.
#include <sys/resource.h>

#include <numeric>
#include <random>

#include "support.h"

namespace sonde::test {
namespace {

TEST(Emit, DeliversEveryRecordInTheOrderOfItsThread) {
  sonde_session_options_t options{};
  options.ring_bytes = 8 << 20;  // holds them all, so that a busy machine drops none
  TestSession session(options);
  Collector collector(session, test_space());
  session.start();
  for (uint64_t i = 0; i < 100'000; ++i) ASSERT_TRUE(session.emit(i));
  session.stop();
  const auto records = collector.numbers();
  ASSERT_EQ(records.size(), 100'000u);
  for (uint64_t i = 0; i < records.size(); ++i) ASSERT_EQ(records[i].number, i);
  EXPECT_EQ(session.status().lost_records, 0u);
  EXPECT_TRUE(collector.ended);
  EXPECT_TRUE(collector.dropped);
}

TEST(Emit, KeepsTheThreadsApart) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 20'000;
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&session, t] {
      for (uint64_t i = 0; i < kEach; ++i) session.emit(i, t);
    });
  }
  for (std::thread &thread : threads) thread.join();
  session.stop();
  std::vector<uint64_t> next(kThreads, 0);
  for (const Numbered &record : collector.numbers()) ASSERT_EQ(record.number, next.at(record.thread)++);
  const uint64_t delivered = std::accumulate(next.begin(), next.end(), uint64_t{0});
  EXPECT_EQ(delivered + session.lost(SONDE_LOSS_RING_FULL), kThreads * kEach);
  std::map<uint64_t, uint64_t> sequences;
  for (const sonde_batch_t &batch : collector.batches) EXPECT_EQ(batch.sequence, sequences[batch.stream]++);
}

// A ring of the smallest size whose delivery is held up must drop, and the drops must add up.
TEST(Emit, CountsWhatAFullRingDrops) {
  sonde_session_options_t options{};
  options.ring_bytes = 64 * 1024;
  options.memory_cap = 1 << 20;
  TestSession session(options);
  Collector collector(session, test_space(), 1, SONDE_QUEUE_WAIT);
  std::atomic<bool> go{false};
  collector.on_batch = [&](const sonde_batch_t &) {
    while (!go) std::this_thread::yield();
    return SONDE_OK;
  };
  session.start();
  constexpr uint64_t kAttempts = 200'000;
  uint64_t taken = 0;
  for (uint64_t i = 0; i < kAttempts; ++i) taken += session.emit(i) ? 1 : 0;
  go = true;
  session.stop();
  EXPECT_LT(taken, kAttempts);
  EXPECT_EQ(collector.numbers().size(), taken);
  EXPECT_EQ(session.lost(SONDE_LOSS_RING_FULL), kAttempts - taken);
  uint64_t told = 0;
  for (const sonde_batch_t &batch : collector.batches) told += batch.lost_ring;
  EXPECT_LE(told, kAttempts - taken);
}

TEST(Emit, RefusesARecordLargerThanHalfTheRing) {
  sonde_session_options_t options{};
  options.ring_bytes = 64 * 1024;
  TestSession session(options);
  Collector collector(session, test_space());
  session.start();
  std::vector<uint64_t> words(5000, 0);
  auto *const record = reinterpret_cast<sonde_record_t *>(words.data());
  *record = {static_cast<uint16_t>(words.size()), 2, static_cast<uint16_t>(test_space()), 1, sonde_stamp()};
  EXPECT_EQ(api().capture.emit(session.get(), record), SONDE_E_FULL);
  session.stop();
  EXPECT_EQ(session.lost(SONDE_LOSS_TOO_BIG), 1u);
  EXPECT_TRUE(collector.numbers().empty());
}

TEST(Emit, RefusesAHeaderThatContradictsItself) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  for (const sonde_record_t header :
       {sonde_record_t{1, 1, static_cast<uint16_t>(test_space()), 1, 1},
        sonde_record_t{2, 3, static_cast<uint16_t>(test_space()), 1, 1}, sonde_record_t{2, 2, 0, 1, 1},
        sonde_record_t{2, 2, 5, 0, 1}, sonde_record_t{2, 2, 5, 64, 1}, sonde_record_t{2, 2, 256, 1, 1}}) {
    EXPECT_EQ(api().capture.emit(session.get(), &header), SONDE_E_INVALID);
  }
  session.stop();
  EXPECT_EQ(session.lost(SONDE_LOSS_MALFORMED), 6u);
}

// Inline writers are not checked one by one; the delivery thread finds the first bad size and gives up the rest of
// what was published, counted.
TEST(Emit, GivesUpWhatFollowsAMalformedRecordInTheRing) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  ASSERT_TRUE(session.emit(1));
  sonde_writer_t *const writer = session.writer();
  Numbered bad = numbered(2);
  bad.header.size8 = 1;
  ASSERT_EQ(sonde_write(&api().capture, writer, &bad, sizeof(bad)), 1);
  session.flush();
  ASSERT_TRUE(session.emit(3));
  session.stop();
  const auto records = collector.numbers();
  ASSERT_GE(records.size(), 1u);
  EXPECT_EQ(records.front().number, 1u);
  EXPECT_EQ(records.back().number, 3u);
  EXPECT_EQ(session.lost(SONDE_LOSS_MALFORMED), UINT64_MAX) << "the number is unknown";
}

TEST(Emit, StallWaitsForRoomThenDrops) {
  sonde_session_options_t options{};
  options.ring_bytes = 64 * 1024;
  options.policy = SONDE_POLICY_STALL;
  options.stall_ns = 2'000'000'000;
  TestSession session(options);
  Collector collector(session, test_space());
  session.start();
  for (uint64_t i = 0; i < 100'000; ++i) ASSERT_TRUE(session.emit(i)) << "a thread that may wait loses nothing";
  session.stop();
  EXPECT_EQ(collector.numbers().size(), 100'000u);
}

// faults: a ring of 4 that takes 10 must say 6, and of which kind.
TEST(Emit, OverwriteKeepsTheNewestAndCountsTheRest) {
  sonde_session_options_t options{};
  options.ring_bytes = 64 * 1024;
  options.policy = SONDE_POLICY_OVERWRITE;
  TestSession session(options);
  Collector collector(session, test_space());
  session.start();
  constexpr uint64_t kAll = 50'000;
  for (uint64_t i = 0; i < kAll; ++i) ASSERT_TRUE(session.emit(i)) << "overwriting always takes the newest";
  session.flush();
  const auto records = collector.numbers();
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.back().number, kAll - 1);
  for (size_t i = 1; i < records.size(); ++i) ASSERT_EQ(records[i].number, records[i - 1].number + 1);
  EXPECT_EQ(session.lost(SONDE_LOSS_OVERWRITTEN), kAll - records.size());
  // Nothing delivered once is delivered again, and nothing in between is lost.
  ASSERT_TRUE(session.emit(kAll));
  session.stop();
  EXPECT_EQ(collector.numbers().size(), records.size() + 1);
  EXPECT_EQ(session.lost(SONDE_LOSS_OVERWRITTEN), kAll - records.size());
}

TEST(Emit, OverwriteSurvivesFlushesWhileTheThreadWrites) {
  sonde_session_options_t options{};
  options.ring_bytes = 64 * 1024;
  options.policy = SONDE_POLICY_OVERWRITE;
  TestSession session(options);
  Collector collector(session, test_space());
  session.start();
  std::atomic<bool> stop{false};
  uint64_t emitted = 0;
  std::thread thread([&] {
    while (!stop || emitted < 10'000) emitted += session.emit(emitted) ? 1 : 0;
  });
  for (int i = 0; i < 50; ++i) session.flush();
  stop = true;
  thread.join();
  session.stop();
  const auto records = collector.numbers();
  for (size_t i = 1; i < records.size(); ++i) ASSERT_GT(records[i].number, records[i - 1].number);
  EXPECT_EQ(session.lost(SONDE_LOSS_MALFORMED), 0u) << "a torn record must never be read as one";
  EXPECT_EQ(records.size() + session.lost(SONDE_LOSS_OVERWRITTEN), emitted);
}

TEST(Emit, DemandFollowsTheSubscribers) {
  TestSession session;
  const uint64_t *word = nullptr;
  ASSERT_EQ(api().capture.demand(session.get(), test_space(), &word), SONDE_OK);
  EXPECT_FALSE(sonde_wants(word, 1));
  Collector collector(session, test_space());
  EXPECT_FALSE(sonde_wants(word, 1)) << "nothing is wanted before the start";
  session.start();
  EXPECT_TRUE(sonde_wants(word, 1));
  uint32_t level = 0;
  ASSERT_EQ(api().capture.level(session.get(), test_space(), 1, &level), SONDE_OK);
  EXPECT_EQ(level, SONDE_LEVEL_RECORDS);
  ASSERT_EQ(api().delivery.unsubscribe(session.get(), collector.id), SONDE_OK);
  EXPECT_FALSE(sonde_wants(word, 1));
  session.stop();
}

TEST(Emit, TellsWatchersOfDemand) {
  TestSession session;
  std::atomic<int> changes{0};
  ASSERT_EQ(api().capture.watch_demand(
                session.get(), [](void *user) { ++*static_cast<std::atomic<int> *>(user); }, &changes, nullptr),
            SONDE_OK);
  Collector collector(session, test_space());
  EXPECT_EQ(changes, 1);
  session.start();
  EXPECT_EQ(changes, 2);
  session.stop();
  EXPECT_EQ(changes, 3);
}

TEST(Emit, LeavesOutWhatTheToolItselfDoes) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  ASSERT_TRUE(session.emit(1));
  api().capture.enter();
  EXPECT_EQ(api().capture.inside(), 1u);
  EXPECT_FALSE(session.emit(2));
  api().capture.enter();
  api().capture.leave();
  EXPECT_FALSE(session.emit(3)) << "enter and leave nest";
  api().capture.leave();
  EXPECT_EQ(api().capture.inside(), 0u);
  ASSERT_TRUE(session.emit(4));
  session.stop();
  const auto records = collector.numbers();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].number, 4u);
}

TEST(Emit, TakesNothingFromASubscribersThread) {
  TestSession session;
  Collector collector(session, test_space());
  std::atomic<bool> taken{false};
  collector.on_batch = [&](const sonde_batch_t &) {
    taken = taken || session.emit(99);
    return SONDE_OK;
  };
  session.start();
  session.emit(1);
  session.flush();
  session.stop();
  EXPECT_FALSE(taken);
  EXPECT_EQ(collector.numbers().size(), 1u);
}

TEST(Emit, ReapsTheRingsOfThreadsThatEnded) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  for (uint64_t i = 0; i < 200; ++i) {
    std::thread([&] { session.emit(i); }).join();
    if (i % 20 == 19) session.flush();
  }
  session.flush();
  EXPECT_LE(session.status().memory, 64u << 20) << "200 rings of 1 MiB do not pile up";
  EXPECT_LT(session.status().memory, 24u << 20);
  session.stop();
  EXPECT_EQ(collector.numbers().size(), 200u) << "what an ended thread left in its ring is delivered";
}

// A program with more threads than rings fit into the cap: all are captured, in smaller rings.
TEST(Emit, ManyThreadsShareTheCap) {
  sonde_session_options_t options{};
  options.memory_cap = 16 << 20;
  TestSession session(options);
  Collector collector(session, test_space());
  session.start();
  std::atomic<int> waiting{0};
  std::atomic<bool> come{false};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 60; ++t) {
    threads.emplace_back([&, t] {
      while (!come) std::this_thread::yield();  // they arrive together: none may count on room that another takes
      session.emit(0, t);
      ++waiting;
      while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      session.emit(1, t);
    });
  }
  come = true;
  while (waiting < 60) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_LE(session.status().memory, options.memory_cap) << "60 rings of 1 MiB would pass it";
  go = true;
  for (std::thread &thread : threads) thread.join();
  session.stop();
  EXPECT_EQ(collector.numbers().size(), 120u);
  EXPECT_LE(session.status().memory_peak, options.memory_cap);
}

// What a thread takes depends on the sum of all before it, so any order gives the same sum; two that read the same sum
// would take too much. Nothing is delivered before the start, so the session's memory is its rings.
TEST(Emit, RingsTakenAtOnceShareTheCapAsThoseTakenInTurn) {
  constexpr int kThreads = 8;
  const auto rings = [](bool together) {
    sonde_session_options_t options{};
    options.memory_cap = 16 << 20;
    const TestSession session(options);
    std::atomic<int> ready{0};
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        ++ready;
        while (ready < kThreads || (!together && done < t)) std::this_thread::yield();
        session.writer();
        ++done;
        while (done < kThreads) std::this_thread::yield();
      });
    }
    while (done < kThreads) std::this_thread::yield();
    const uint64_t memory = session.status().memory;
    for (std::thread &thread : threads) thread.join();
    return memory;
  };
  const uint64_t in_turn = rings(false);
  for (int round = 0; round < 200; ++round) ASSERT_EQ(rings(true), in_turn) << "round " << round;
}

TEST(Emit, VariableTailsArriveWhole) {
  TestSession session;
  Collector collector(session, test_space());
  session.start();
  std::mt19937_64 random(7);
  std::vector<std::vector<uint64_t>> sent;
  for (uint32_t i = 0; i < cases() * 10; ++i) {
    std::vector<uint64_t> words(4 + random() % 200);
    std::generate(words.begin(), words.end(), std::ref(random));
    *reinterpret_cast<sonde_record_t *>(words.data()) = {static_cast<uint16_t>(words.size()), 4,
                                                         static_cast<uint16_t>(test_space()), 2, i + 1};
    while (api().capture.emit(session.get(), reinterpret_cast<const sonde_record_t *>(words.data())) != SONDE_OK)
      std::this_thread::yield();
    sent.push_back(std::move(words));
  }
  session.stop();
  const auto records = collector.records();
  ASSERT_EQ(records.size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    ASSERT_EQ(records[i].size(), sent[i].size() * 8);
    ASSERT_EQ(std::memcmp(records[i].data(), sent[i].data(), records[i].size()), 0);
  }
}

}  // namespace
}  // namespace sonde::test
