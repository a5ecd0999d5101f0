// The port `cuda_sampling` with a CUPTI of the tests' own: from what CUPTI hands out to records.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include <sonde/spaces/object.h>
#include <sonde/spaces/sample.h>
#include <sonde/toolkit/code_store.h>

#include "driving.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sonde::test {
namespace {

using namespace std::chrono_literals;

class Sampling : public testing::Test {
 protected:
  void SetUp() override {
    fake().reset();
    claim_refusal.clear();
    claims_held = 0;
    claims.clear();
    session.want_all(SONDE_SPACE_SAMPLE);
    session.want_all(SONDE_SPACE_OBJECT);
    config.values["cupti"] = SONDE_FAKE_SAMPLING;
    config.values["drain_period"] = "5000000";
  }
  void TearDown() override {
    if (instance != nullptr) port()->destroy(instance);
    EXPECT_EQ(fake().same_buffer, 0u);
    EXPECT_EQ(claims_held, 0);
  }

  void start() {
    ASSERT_EQ(port()->create(&session, &config, &instance), SONDE_OK);
    ASSERT_EQ(port()->start(instance), SONDE_OK);
  }
  void stop() { EXPECT_EQ(port()->stop(instance), SONDE_OK); }

  template <typename Record>
  std::vector<Record> records(uint32_t type) const {
    return session.submitted<Record>(SONDE_SPACE_SAMPLE, type);
  }
  uint64_t sum_of_samples() const {
    uint64_t sum = 0;
    for (const auto &pc : records<sonde_sample_pc_t>(SONDE_SAMPLE_PC)) sum += pc.samples;
    return sum;
  }
  static bool wait_for(const std::function<bool()> &condition) {
    for (int i = 0; i < 400; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return condition();
  }

  sonde_session_t session;
  sonde_config_t config;
  void *instance = nullptr;
  void *const context = handle(0x2000);
};

TEST_F(Sampling, BothHalvesOfAStallReasonMeetInOneRecord) {
  start();
  make_context(context, 7);
  const auto code = some_code(1);
  const uint64_t checksum = load_module(context, code);
  FakeSample sample = sample_at(checksum, 0x40, 0, 10);
  sample.stalls = {{0, 10}, {1, 4}, {2, 3}};
  sample.function_index = 15;
  add_sample(context, sample);
  stop();
  const auto pcs = records<sonde_sample_pc_t>(SONDE_SAMPLE_PC);
  ASSERT_EQ(pcs.size(), 2u);
  EXPECT_EQ(text_of(pcs[0].stall), "long_scoreboard");
  EXPECT_EQ(pcs[0].samples, 10u);
  EXPECT_EQ(pcs[0].latency, 4u);
  EXPECT_EQ(text_of(pcs[1].stall), "selected");
  EXPECT_EQ(pcs[1].samples, 3u);
  EXPECT_EQ(pcs[1].latency, 0u);
  EXPECT_EQ(pcs[0].module, XXH3_64bits(code.data(), code.size()));
  EXPECT_EQ(pcs[0].pc, 0x40u);
  EXPECT_EQ(text_of(pcs[0].function), "hot");
  EXPECT_EQ(pcs[0].function_index, 15u);
  EXPECT_EQ(pcs[0].context, 7u);
  EXPECT_EQ(pcs[0].device, 3u);
  EXPECT_EQ(pcs[0].flags, 0u);
  EXPECT_LE(pcs[0].header.time, pcs[0].end);
  const auto windows = records<sonde_sample_window_t>(SONDE_SAMPLE_WINDOW);
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].samples, 13u);
  EXPECT_EQ(windows[0].recorded, 13u);
  EXPECT_EQ(windows[0].pcs, 1u);
  EXPECT_EQ(windows[0].mode, SONDE_SAMPLE_CONTINUOUS);
}

TEST_F(Sampling, StallReasonsAreNamedOncePerContext) {
  start();
  make_context(context, 7);
  stop();
  const auto reasons = records<sonde_sample_stall_reason_t>(SONDE_SAMPLE_STALL_REASON);
  ASSERT_EQ(reasons.size(), 3u);
  EXPECT_EQ(text_of(reasons[1].vendor), "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued");
  EXPECT_EQ(text_of(reasons[1].stall), "long_scoreboard");
  EXPECT_EQ(reasons[0].flags, 0u);
  EXPECT_EQ(reasons[1].flags, 1u);
  EXPECT_EQ(reasons[1].context, 7u);
}

TEST_F(Sampling, AStallReasonWithoutANameKeepsItsNumber) {
  start();
  make_context(context, 7);
  add_sample(context, sample_at(load_module(context, some_code(2)), 0, 99, 5));
  stop();
  const auto pcs = records<sonde_sample_pc_t>(SONDE_SAMPLE_PC);
  ASSERT_EQ(pcs.size(), 1u);
  EXPECT_EQ(text_of(pcs[0].stall), "unknown_99");
  EXPECT_EQ(pcs[0].samples, 5u);
}

TEST_F(Sampling, ASampledInstructionHasItsLineOnce) {
  start();
  make_context(context, 7);
  const auto cubin = read_file("hot_line.cubin");
  ASSERT_FALSE(cubin.empty());
  const uint64_t checksum = load_module(context, cubin);
  // Lines from the source: `inner` at line 3 was inlined into `middle` (6), which was inlined into `hot` (10).
  add_sample(context, sample_at(checksum, 0xa0, 0, 1));
  ASSERT_TRUE(wait_for([&] { return sum_of_samples() == 1; }));
  add_sample(context, sample_at(checksum, 0xa0, 0, 1));
  stop();
  const auto lines = records<sonde_sample_line_t>(SONDE_SAMPLE_LINE);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(text_of(lines[0].file), "/tmp/cubins/hot_line.cu");
  EXPECT_EQ(lines[0].line, 3u);
  EXPECT_EQ(lines[0].pc, 0xa0u);
  ASSERT_EQ(lines[0].frames.count, 3u);
  EXPECT_EQ(sum_of_samples(), 2u);
}

TEST_F(Sampling, CodeIsStoredOnceWhateverLoadsIt) {
  start();
  make_context(context, 7);
  make_context(handle(0x3000), 8);
  const auto code = some_code(3, 700'000);  // more than one record takes
  load_module(context, code);
  load_module(context, code);
  load_module(handle(0x3000), code);
  stop();
  toolkit::CodeStore store;
  uint64_t pieces = 0;
  const uint64_t hash = XXH3_64bits(code.data(), code.size());
  for (const auto &batch : session.batches) {
    for (size_t at = 0; at < batch.size();) {
      const auto *record = reinterpret_cast<const sonde_record_t *>(batch.data() + at);
      if (record->space == SONDE_SPACE_OBJECT && record->type == SONDE_OBJECT_CODE) {
        EXPECT_TRUE(store.add(record));
        pieces += reinterpret_cast<const sonde_object_code_t *>(record)->hash == hash ? 1 : 0;
      }
      at += SONDE_RECORD_BYTES(record);
    }
  }
  EXPECT_EQ(pieces, 6u);  // 700,000 bytes in pieces of 131,072
  const auto found = store.find(hash);
  ASSERT_EQ(found.size(), code.size());
  EXPECT_TRUE(std::equal(found.begin(), found.end(), code.begin()));
}

TEST_F(Sampling, CodeBeyondItsLimitIsNotedAndItsSamplesKept) {
  config.values["code_bytes"] = "10";
  start();
  make_context(context, 7);
  add_sample(context, sample_at(load_module(context, some_code(4)), 0, 0, 5));
  stop();
  EXPECT_TRUE(session.noted(1, "beyond `code_bytes`")) << session.all_notes();
  EXPECT_EQ(sum_of_samples(), 5u);
}

TEST_F(Sampling, AContextThatExistsAlreadyIsSampled) {
  {
    std::lock_guard<std::recursive_mutex> hold(fake().mutex);
    fake().contexts[handle(0x1000)].id = 1;
  }
  start();
  EXPECT_EQ(fake().enables, 1u);
  add_sample(handle(0x1000), sample_at(42, 0, 0, 5));
  stop();
  const auto pcs = records<sonde_sample_pc_t>(SONDE_SAMPLE_PC);
  ASSERT_EQ(pcs.size(), 1u);
  EXPECT_EQ(pcs[0].module, 42u);
  EXPECT_EQ(pcs[0].flags, 1u);
  EXPECT_TRUE(session.noted(1, "1 sampled modules were loaded before")) << session.all_notes();
}

TEST_F(Sampling, AllSamplesArriveWhileAProgramMakesThemFasterThanOneReadTakes) {
  config.values["pcs_per_copy"] = "64";
  start();
  make_context(context, 7);
  const uint64_t checksum = load_module(context, some_code(5));
  constexpr uint64_t kThreads = 3;
  constexpr uint64_t kEach = 2000;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEach; ++i) add_sample(context, sample_at(checksum, (t * kEach + i) * 16, 0, 2));
    });
  }
  for (auto &thread : threads) thread.join();
  stop();
  // What is left at the end fits into one buffer of 64 only if the thread drained in between.
  EXPECT_EQ(sum_of_samples(), kThreads * kEach * 2);
  EXPECT_EQ(session.lost(SONDE_LOSS_MEMORY_CAP), 0u);
}

TEST_F(Sampling, WhatTheHardwareDroppedIsInTheLedger) {
  start();
  make_context(context, 7);
  {
    std::lock_guard<std::recursive_mutex> hold(fake().mutex);
    fake().contexts[context].dropped = 17;
  }
  stop();
  EXPECT_EQ(session.lost(SONDE_LOSS_VENDOR), 17u);
  const auto windows = records<sonde_sample_window_t>(SONDE_SAMPLE_WINDOW);
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].dropped, 17u);
}

TEST_F(Sampling, AFullHardwareBufferIsALossOfUnknownSize) {
  start();
  make_context(context, 7);
  {
    std::lock_guard<std::recursive_mutex> hold(fake().mutex);
    fake().contexts[context].full = true;
  }
  ASSERT_TRUE(wait_for([&] { return session.lost(SONDE_LOSS_VENDOR) == UINT64_MAX; }));
  stop();
  EXPECT_TRUE(session.noted(2, "buffer of PC samples was full")) << session.all_notes();
  const auto windows = records<sonde_sample_window_t>(SONDE_SAMPLE_WINDOW);
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0].flags, 1u);
}

TEST_F(Sampling, SamplesThatCuptiKeepsUntilTheEndAreRecorded) {
  fake().hand_out_at_disable = true;
  start();
  make_context(context, 7);
  add_sample(context, sample_at(load_module(context, some_code(6)), 0, 0, 9));
  stop();
  EXPECT_EQ(sum_of_samples(), 9u);
}

TEST_F(Sampling, SamplesOfADestroyedContextAreRecorded) {
  start();
  make_context(context, 7);
  add_sample(context, sample_at(load_module(context, some_code(7)), 0, 0, 9));
  destroy_context(context);
  stop();
  EXPECT_EQ(sum_of_samples(), 9u);
  EXPECT_EQ(fake().unknown_context, 0u);
}

TEST_F(Sampling, ContinuousSamplesAreReadBeforeTheirModuleGoes) {
  config.values["drain_period"] = "60000000000";
  start();
  make_context(context, 7);
  add_sample(context, sample_at(load_module(context, some_code(8)), 0, 0, 9));
  const uint64_t before = fake().reads;
  unload_module(context);
  EXPECT_EQ(fake().reads, before + 1);
  stop();
  EXPECT_EQ(sum_of_samples(), 9u);
}

TEST_F(Sampling, SerializedKernelsAreReadOneByOneWithTheirLaunch) {
  config.values["mode"] = "serialized";
  config.values["drain_period"] = "60000000000";
  start();
  make_context(context, 7);
  EXPECT_EQ(fake().contexts[context].mode, kSamplingKernelSerialized);
  const uint64_t checksum = load_module(context, some_code(9));
  for (uint32_t launch = 1; launch <= 3; ++launch) {
    FakeSample sample = sample_at(checksum, 0, 0, launch);
    sample.correlation = launch;
    add_sample(context, sample);
    DriverCallData call = {};
    call.site = kCallLeaves;
    call.context = context;
    fake().callback(fake().user, kDomainDriver, kDriverLaunchCalls[3], &call);
    EXPECT_TRUE(fake().contexts[context].samples.empty());
  }
  stop();
  const auto pcs = records<sonde_sample_pc_t>(SONDE_SAMPLE_PC);
  ASSERT_EQ(pcs.size(), 3u);
  for (uint32_t launch = 1; launch <= 3; ++launch) {
    EXPECT_EQ(pcs[launch - 1].correlation, launch);
    EXPECT_EQ(pcs[launch - 1].samples, launch);
  }
}

TEST_F(Sampling, RangesAreSwitchedWhereLaunchesBegin) {
  config.values["mode"] = "ranges";
  config.values["on"] = "1000000";
  config.values["off"] = "1000000";
  start();
  make_context(context, 7);
  EXPECT_EQ(fake().contexts[context].start_stop, 1u);
  const uint64_t checksum = load_module(context, some_code(13));
  uint64_t sampled = 0;
  for (int launch = 0; launch < 200; ++launch) {
    DriverCallData call = {};
    call.context = context;
    fake().in_launch = true;
    fake().callback(fake().user, kDomainDriver, kDriverLaunchCalls[3], &call);
    fake().in_launch = false;
    call.site = kCallLeaves;
    fake().callback(fake().user, kDomainDriver, kDriverLaunchCalls[3], &call);
    if (fake().contexts[context].started) {
      ++sampled;
      add_sample(context, sample_at(checksum, 0, 0, 1));
    }
    std::this_thread::sleep_for(200us);
  }
  stop();
  EXPECT_GE(fake().starts, 3u);
  EXPECT_EQ(fake().starts, fake().stops);
  EXPECT_EQ(fake().starts_outside_launch, 0u);
  EXPECT_LT(sampled, 200u);
  EXPECT_EQ(sum_of_samples(), sampled);
}

TEST_F(Sampling, RangesWithoutAPauseFollowEachOther) {
  config.values["mode"] = "ranges";
  config.values["on"] = "1000000";
  config.values["off"] = "0";
  start();
  make_context(context, 7);
  for (int launch = 0; launch < 50; ++launch) {
    DriverCallData call = {};
    call.context = context;
    fake().in_launch = true;
    fake().callback(fake().user, kDomainDriver, kDriverLaunchCalls[3], &call);
    fake().in_launch = false;
    EXPECT_TRUE(fake().contexts[context].started);
    std::this_thread::sleep_for(200us);
  }
  EXPECT_GE(fake().starts, 3u);
  stop();
  EXPECT_EQ(fake().starts, fake().stops);
}

TEST_F(Sampling, OptionsReachCupti) {
  config.values["period"] = "12";
  config.values["hardware_bytes"] = "1048576";
  start();
  make_context(context, 7);
  EXPECT_EQ(fake().contexts[context].period, 12u);
  EXPECT_EQ(fake().contexts[context].hardware_bytes, 1048576u);
  EXPECT_EQ(fake().contexts[context].sleep_span, 5u);  // the drain period of these tests, in milliseconds
  stop();
}

TEST_F(Sampling, APeriodThatCuptiDoesNotKnowIsRefused) {
  config.values["period"] = "3";
  EXPECT_EQ(port()->create(&session, &config, &instance), SONDE_E_INVALID);
  EXPECT_EQ(instance, nullptr);
}

TEST_F(Sampling, StoppingWhileThreadsLaunchLosesNothingThatWasThere) {
  start();
  make_context(context, 7);
  const uint64_t checksum = load_module(context, some_code(10));
  for (int i = 0; i < 100; ++i) add_sample(context, sample_at(checksum, 16 * i, 0, 1));
  std::atomic<bool> on{true};
  std::thread program([&] {
    for (uint8_t i = 0; on; ++i) {
      load_module(context, some_code(static_cast<uint8_t>(100 + i % 8)));
      unload_module(context);
      make_context(handle(0x4000 + i % 4), 20 + i % 4);
      destroy_context(handle(0x4000 + i % 4));
    }
  });
  std::this_thread::sleep_for(30ms);
  stop();
  on = false;
  program.join();
  EXPECT_EQ(sum_of_samples(), 100u);
}

TEST_F(Sampling, TwoSessionsGetTheSameSamples) {
  sonde_session_t other;
  other.want_all(SONDE_SPACE_SAMPLE);
  start();
  void *second = nullptr;
  ASSERT_EQ(port()->create(&other, &config, &second), SONDE_OK);
  ASSERT_EQ(port()->start(second), SONDE_OK);
  make_context(context, 7);
  add_sample(context, sample_at(load_module(context, some_code(11)), 0, 0, 9));
  port()->destroy(second);
  stop();
  EXPECT_EQ(sum_of_samples(), 9u);
  EXPECT_EQ(other.submitted<sonde_sample_pc_t>(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_PC).size(), 1u);
  EXPECT_EQ(fake().subscribes, 1u);
  EXPECT_EQ(fake().unsubscribes, 1u);
}

TEST_F(Sampling, NothingIsSampledWhileNobodyWantsIt) {
  session.unwant_all();
  start();
  EXPECT_EQ(fake().subscribes, 0u);
  EXPECT_EQ(claims_held, 0);
  session.want(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_PC);
  ASSERT_EQ(port()->demand(instance), SONDE_OK);
  EXPECT_EQ(fake().subscribes, 1u);
  EXPECT_EQ(claims_held, 1);
  EXPECT_EQ(claims, "cuda.device pc_sampling cuda_sampling\n");
  session.unwant_all();
  ASSERT_EQ(port()->demand(instance), SONDE_OK);
  EXPECT_EQ(fake().unsubscribes, 1u);
  EXPECT_EQ(claims_held, 0);
}

TEST_F(Sampling, OnlyContinuousSamplingSharesTheDeviceWithActivity) {
  config.values["beside_activity"] = "true";
  start();
  EXPECT_EQ(claims, "cuda.device activity cuda_sampling\n");
  stop();
  port()->destroy(instance);
  config.values["mode"] = "serialized";
  start();
  EXPECT_EQ(claims, "cuda.device activity cuda_sampling\ncuda.device pc_sampling cuda_sampling\n");
  stop();
}

TEST_F(Sampling, ARefusedClaimIsTheReasonForNoData) {
  claim_refusal = "cuda.device is held by `cuda` in mode activity";
  start();
  EXPECT_TRUE(session.noted(3, "no PC samples because cuda.device is held by `cuda`")) << session.all_notes();
  EXPECT_EQ(fake().subscribes, 0u);
}

TEST_F(Sampling, AnotherProfilerIsTheReasonForNoData) {
  fake().subscribe_result = kCuptiMultipleSubscribers;
  start();
  EXPECT_TRUE(session.noted(3, "another profiler holds CUPTI's subscription")) << session.all_notes();
}

TEST_F(Sampling, MissingPrivilegesAreTheReasonForNoData) {
  fake().enable_result = kCuptiInsufficientPrivileges;
  start();
  make_context(context, 7);
  EXPECT_TRUE(session.noted(3, "NVreg_RestrictProfilingToAdminUsers")) << session.all_notes();
  stop();
}

TEST_F(Sampling, AForkedChildSamplesNothingAndDoesNotHang) {
  start();
  make_context(context, 7);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    const bool fine = port()->flush(instance, 1) == SONDE_OK && port()->stop(instance) == SONDE_OK;
    unload_module(context);  // the inherited subscription must lead nowhere
    _exit(fine ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  add_sample(context, sample_at(load_module(context, some_code(12)), 0, 0, 9));
  stop();
  EXPECT_EQ(sum_of_samples(), 9u);
}

}  // namespace
}  // namespace sonde::test
