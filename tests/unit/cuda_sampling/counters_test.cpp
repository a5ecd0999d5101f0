// Hardware counters with a CUPTI of the tests' own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <sonde/spaces/sample.h>

#include "driving.h"

namespace sonde::test {
namespace {

class KernelCounters : public testing::Test {
 protected:
  void SetUp() override {
    fake().reset();
    claim_refusal.clear();
    claims.clear();
    claims_held = 0;
    session.want_all(SONDE_SPACE_SAMPLE);
    config.values["cupti"] = SONDE_FAKE_SAMPLING;
    config.values["metrics.0"] = "sm__cycles_elapsed.max";
    config.values["metrics.1"] = "dram__bytes_read.sum";
    std::lock_guard<std::recursive_mutex> hold(fake().mutex);
    fake().contexts[context].id = 7;
  }
  void TearDown() override {
    if (instance != nullptr) port()->destroy(instance);
    EXPECT_EQ(claims_held, 0);
    EXPECT_EQ(fake().wrong_order, 0u);
    EXPECT_EQ(fake().range_starts, fake().range_stops);
  }

  void start() {
    ASSERT_EQ(port()->create(&session, &config, &instance), SONDE_OK);
    ASSERT_EQ(port()->start(instance), SONDE_OK);
  }
  void stop() { EXPECT_EQ(port()->stop(instance), SONDE_OK); }

  // One launch as CUPTI tells of it: entered, left.
  void launch(const char *symbol, uint32_t correlation, void *where = nullptr) {
    Callback callback = nullptr;
    void *user = nullptr;
    {
      std::lock_guard<std::recursive_mutex> hold(fake().mutex);
      callback = fake().callback;
      user = fake().user;
    }
    if (callback == nullptr) return;
    DriverCallData call = {};
    call.symbol = symbol;
    call.context = where != nullptr ? where : context;
    call.correlation = correlation;
    callback(user, kDomainDriver, kDriverLaunchCalls[3], &call);
    call.site = kCallLeaves;
    callback(user, kDomainDriver, kDriverLaunchCalls[3], &call);
  }
  std::vector<sonde_sample_counter_t> counters() const {
    return session.emitted_of<sonde_sample_counter_t>(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_COUNTER);
  }

  sonde_session_t session;
  sonde_config_t config;
  void *instance = nullptr;
  void *const context = handle(0x2000);
};

TEST_F(KernelCounters, EachLaunchGivesAValueForEachMetric) {
  start();
  EXPECT_EQ(claims, "cuda.device counters cuda_sampling\n");
  launch("first", 11);
  launch("second", 12);
  stop();
  const auto found = counters();
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(text_of(found[0].function), "first");
  EXPECT_EQ(text_of(found[0].metric), "sm__cycles_elapsed.max");
  EXPECT_EQ(text_of(found[0].unit), "cycle");
  EXPECT_EQ(found[0].value, 1000.0);
  EXPECT_EQ(text_of(found[1].metric), "dram__bytes_read.sum");
  EXPECT_EQ(text_of(found[1].unit), "byte");
  EXPECT_EQ(found[1].value, 1001.0);
  EXPECT_EQ(found[3].value, 2001.0);
  EXPECT_EQ(text_of(found[3].function), "second");
  EXPECT_EQ(found[0].launch, 1u);
  EXPECT_EQ(found[3].launch, 2u);
  EXPECT_EQ(found[3].correlation, 12u);
  EXPECT_EQ(found[0].passes, 3u);
  EXPECT_EQ(found[0].context, 7u);
  EXPECT_EQ(found[0].device, 3u);
  EXPECT_EQ(found[0].replay, SONDE_COUNTER_KERNEL_REPLAY);
  EXPECT_LE(found[0].header.time, found[0].end);
  EXPECT_EQ(fake().range_disables, 1u);
  EXPECT_EQ(fake().host_ends, 1u);
}

TEST_F(KernelCounters, AGraphsKernelsAreOneLaunch) {
  fake().kernels = 3;
  start();
  launch(nullptr, 11);
  stop();
  const auto found = counters();
  ASSERT_EQ(found.size(), 6u);
  EXPECT_EQ(found[5].value, 1021.0);  // the third range's second metric
  for (const auto &one : found) EXPECT_EQ(one.launch, 1u);
}

TEST_F(KernelCounters, AnUnknownMetricIsNamed) {
  config.values["metrics.2"] = "no__such.metric";
  start();
  launch("first", 11);
  launch("first", 12);
  stop();
  EXPECT_TRUE(
      session.noted(3, "no counters of context 7 because this device does not have the metrics no__such.metric"))
      << session.all_notes();
  EXPECT_TRUE(counters().empty());
  EXPECT_EQ(fake().range_starts, 0u);
}

TEST_F(KernelCounters, WhatIsNotDecodedIsLostAndCounted) {
  start();
  fake().decode_result = 999;
  launch("first", 11);
  fake().decode_result = kCuptiSuccess;
  fake().dropped_ranges = 2;
  launch("first", 12);
  stop();
  EXPECT_EQ(session.lost(SONDE_LOSS_VENDOR), 2u + 2 * 2u);  // a launch of two metrics, then two ranges of two
  EXPECT_TRUE(session.noted(2, "counters of a launch are lost")) << session.all_notes();
  EXPECT_EQ(counters().size(), 2u);
}

TEST_F(KernelCounters, MissingPrivilegesAreTheReasonForNoData) {
  fake().profile_result = kCuptiInsufficientPrivileges;
  start();
  launch("first", 11);
  stop();
  EXPECT_TRUE(session.noted(3, "NVreg_RestrictProfilingToAdminUsers")) << session.all_notes();
}

TEST_F(KernelCounters, ARefusedClaimIsTheReasonForNoData) {
  claim_refusal = "cuda.device is held by `cuda` in mode activity";
  start();
  EXPECT_TRUE(session.noted(3, "no counters because cuda.device is held by `cuda`")) << session.all_notes();
  EXPECT_EQ(fake().subscribes, 0u);
}

TEST_F(KernelCounters, ASecondSessionIsRefused) {
  start();
  sonde_session_t other;
  other.want_all(SONDE_SPACE_SAMPLE);
  void *second = nullptr;
  ASSERT_EQ(port()->create(&other, &config, &second), SONDE_OK);
  ASSERT_EQ(port()->start(second), SONDE_OK);
  EXPECT_TRUE(other.noted(3, "another session of this process counts already")) << other.all_notes();
  port()->destroy(second);
  launch("first", 11);
  stop();
  EXPECT_EQ(counters().size(), 2u);
}

TEST_F(KernelCounters, LaunchesOfManyThreadsAreCountedOneAtATime) {
  start();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint32_t i = 1; i <= 50; ++i) launch("first", i);
    });
  }
  for (auto &thread : threads) thread.join();
  stop();
  const auto found = counters();
  ASSERT_EQ(found.size(), 400u);
  std::vector<int> seen(201);
  for (const auto &one : found) ++seen[one.launch];
  for (int launch = 1; launch <= 200; ++launch) EXPECT_EQ(seen[launch], 2) << launch;
}

TEST_F(KernelCounters, StoppingWhileThreadsLaunchIsSafe) {
  start();
  std::atomic<bool> on{true};
  std::thread program([&] {
    while (on) launch("first", 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop();
  on = false;
  program.join();
  EXPECT_EQ(counters().size(), 2 * fake().range_stops);
}

TEST_F(KernelCounters, NothingIsCountedWhileNobodyWantsIt) {
  session.unwant_all();
  start();
  EXPECT_EQ(fake().subscribes, 0u);
  session.want(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_COUNTER);
  ASSERT_EQ(port()->demand(instance), SONDE_OK);
  launch("first", 11);
  session.unwant_all();
  ASSERT_EQ(port()->demand(instance), SONDE_OK);
  EXPECT_EQ(fake().unsubscribes, 1u);
  EXPECT_EQ(counters().size(), 2u);
}

TEST_F(KernelCounters, AForkedChildCountsNothing) {
  start();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    launch("first", 11);  // the inherited subscription must lead nowhere
    _exit(fake().range_starts == 0 && port()->stop(instance) == SONDE_OK ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  launch("first", 12);
  stop();
  EXPECT_EQ(counters().size(), 2u);
}

}  // namespace
}  // namespace sonde::test
