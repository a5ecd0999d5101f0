// What is published: findings with their verdicts at the thresholds, tables, and the words on extrapolation.
#include <gtest/gtest.h>

#include "fake_host.h"
#include "publish.h"
#include "round_numbers.h"

namespace sonde::uvm {
namespace {

using testing::FakeFinding;
using testing::FakeHost;

class Published : public ::testing::Test {
 protected:
  Published()
      : profile({}, [](uint32_t) -> const std::string & {
          static const std::string name = "kernel";
          return name;
        }) {}

  void SetUp() override { FakeHost::get().reset(); }

  void publish(const Trace &trace, uint64_t capacity) {
    Results results{options, profile, history, parameters, {}, false, &trace, {}, "plan.yaml", {}, {}, {}};
    results.outcome = plan_and_predict(trace, parameters, capacity, options, nullptr);
    publish(results);
  }
  void publish(const Results &results) {
    const Host host(FakeHost::table());
    publish_tables(results, host, FakeHost::session());
    publish_findings(results, host, FakeHost::session());
  }
  static FakeFinding finding(const std::string &rule) {
    const auto found = FakeHost::get().find("uvm." + rule);
    EXPECT_EQ(found.size(), 1u) << rule;
    return found.empty() ? FakeFinding{} : found[0];
  }

  Options options;
  Profile profile;
  toolkit::MemoryHistoryCounts history;
  PagingParameters parameters = round_numbers();
};

TEST_F(Published, WhatFitsIsNotExtrapolated) {
  Blocks blocks(2);
  blocks.launch({0}, 1'000).launch({1}, 1'000);
  publish(blocks.trace, 2 * kBlockBytes);
  EXPECT_EQ(finding("oversubscription").verdict, SONDE_VERDICT_OK);
  EXPECT_EQ(finding("launch_too_large").verdict, SONDE_VERDICT_OK);
  EXPECT_EQ(finding("object_level").verdict, SONDE_VERDICT_OK);
  const FakeFinding plan = finding("prefetch");
  EXPECT_EQ(plan.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(plan.message.find("extrapolation"), std::string::npos);
  // Two faults of 43 us and 2 us of kernels; planned, the blocks are there at 37 and 69 us.
  EXPECT_EQ(plan.evidence.at("no_prefetch").str(), "88000");
  EXPECT_EQ(plan.evidence.at("plan").str(), "70000");
  EXPECT_DOUBLE_EQ(plan.gain_seconds, 18e-6);
  EXPECT_EQ(plan.advice, "sonde run -c plan.yaml -- PROGRAM");
}

TEST_F(Published, OneByteLessIs) {
  Blocks blocks(2);
  blocks.launch({0}, 1'000).launch({1}, 1'000);
  publish(blocks.trace, 2 * kBlockBytes - 1);
  EXPECT_EQ(finding("oversubscription").verdict, SONDE_VERDICT_VIOLATION);
  for (const char *rule : {"oversubscription", "prefetch", "object_level"}) {
    EXPECT_NE(finding(rule).message.find("extrapolation"), std::string::npos) << rule;
  }
  EXPECT_EQ(finding("launch_too_large").verdict, SONDE_VERDICT_OK);
}

TEST_F(Published, ALaunchThatDoesNotFitIsNamed) {
  Blocks blocks(2);
  blocks.launch({0, 1}, 1'000);
  publish(blocks.trace, 2 * kBlockBytes - 1);
  EXPECT_EQ(finding("launch_too_large").verdict, SONDE_VERDICT_VIOLATION);
}

TEST_F(Published, ThePlanIsNamedOnlyWhereItSavesEnough) {
  Blocks blocks(2);
  blocks.launch({0}, 1'000).launch({1}, 1'000);
  // (88 - 70) / 88 = 0.2045.
  options.least_gain = 0.204;
  publish(blocks.trace, kUnlimited);
  EXPECT_EQ(finding("prefetch").verdict, SONDE_VERDICT_VIOLATION);
  FakeHost::get().reset();
  options.least_gain = 0.205;
  publish(blocks.trace, kUnlimited);
  EXPECT_EQ(finding("prefetch").verdict, SONDE_VERDICT_OK);
}

TEST_F(Published, WholeAllocationsThatHurtAreRefusedWithNumbers) {
  // Each launch touches one block of an allocation of eight; room for four.
  Trace trace;
  trace.allocate(8 * kBlockBytes);
  trace.allocate(8 * kBlockBytes);
  const uint32_t kernel = trace.kernel("k");
  for (uint32_t launch = 0; launch < 10; ++launch) {
    trace.launch(kernel, trace.intern({{launch % 2, 0, kBlockPages, false, true, 1}}), 1'000);
  }
  publish(trace, 4 * kBlockBytes);
  const FakeFinding objects = finding("object_level");
  EXPECT_EQ(objects.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_NE(objects.message.find("refused"), std::string::npos);
  EXPECT_GT(objects.evidence.at("each_launch").i64, objects.evidence.at("no_prefetch").i64);
}

TEST_F(Published, PingPongNeedsMigrationsToLook) {
  Blocks blocks(1);
  blocks.launch({0}).launch({0});
  publish(blocks.trace, kUnlimited);
  EXPECT_EQ(finding("ping_pong").verdict, SONDE_VERDICT_UNSUPPORTED);
}

TEST_F(Published, TurnsAreCountedFromTheThreshold) {
  for (const uint64_t turns : {2, 3}) {
    FakeHost::get().reset();
    Blocks blocks(1);
    for (uint64_t turn = 0; turn < turns; ++turn) blocks.launch({0}).host({0});
    blocks.launch({0});
    blocks.trace.allocations[0].host_touches = turns;
    blocks.trace.allocations[0].device_touches = turns + 1;
    profile.migration(0, 1, 0, 1, true, false);  // migrations were seen
    publish(blocks.trace, kUnlimited);
    EXPECT_EQ(finding("ping_pong").verdict, turns == 3 ? SONDE_VERDICT_VIOLATION : SONDE_VERDICT_OK);
  }
}

TEST_F(Published, TablesSayWhatIsTouchedAndMoved) {
  Blocks blocks(2);
  blocks.launch({0}, 1'000).launch({1}, 1'000).launch({0}, 1'000);
  publish(blocks.trace, kUnlimited);
  const auto &objects = FakeHost::get().find_table("objects");
  ASSERT_EQ(objects.rows.size(), 2u);
  EXPECT_EQ(objects.at(0, "launches").str(), "2");
  EXPECT_EQ(objects.at(0, "next_use").f64, 2.0);
  EXPECT_EQ(objects.at(1, "next_use").str(), "");
  EXPECT_EQ(objects.at(0, "touched").str(), std::to_string(kBlockBytes));
  // Two of three launches in 3 us.
  EXPECT_NEAR(objects.at(0, "heat").f64, 2 / 3e-6, 1);
  EXPECT_EQ(FakeHost::get().find_table("ranges").rows.size(), 2u);
  const auto &launches = FakeHost::get().find_table("launches");
  ASSERT_EQ(launches.rows.size(), 1u);
  EXPECT_EQ(launches.at(0, "touched").str(), std::to_string(3 * kBlockBytes));
  const auto &schedule = FakeHost::get().find_table("schedule");
  ASSERT_EQ(schedule.rows.size(), 2u);
  EXPECT_EQ(schedule.at(1, "move").str(), "prefetch");
  EXPECT_EQ(schedule.at(1, "needed").str(), "1");
  const auto &prediction = FakeHost::get().find_table("prediction");
  EXPECT_EQ(prediction.rows.size(), 6u);
  EXPECT_EQ(prediction.at(0, "capacity").str(), "") << "there is no limit";
  EXPECT_EQ(FakeHost::get().find_table("parameters").rows.size(), parameter_names().size());
}

TEST_F(Published, WithoutAccessesThereIsOnlyTheReason) {
  const Results results{options, profile, history, parameters, {}, false, nullptr, {}, {}, {}, {}, {}};
  publish(results);
  const FakeFinding data = finding("data");
  EXPECT_EQ(data.verdict, SONDE_VERDICT_UNSUPPORTED);
  EXPECT_NE(data.reason.find("cuda_access"), std::string::npos);
  EXPECT_TRUE(FakeHost::get().tables.empty());
}

TEST_F(Published, APlanThatWasNotAppliedIsAViolationOrCouldNotBeLookedAt) {
  options.is_applied = true;
  Results results{options, profile, history, parameters, {}, false, nullptr, {}, {}, {}, {}, {}};
  publish(results);
  EXPECT_EQ(finding("applied").verdict, SONDE_VERDICT_UNSUPPORTED) << "nobody said anything";
  FakeHost::get().reset();
  results.applied.notes = {"applied: all"};
  publish(results);
  EXPECT_EQ(finding("applied").verdict, SONDE_VERDICT_OK);
  FakeHost::get().reset();
  results.applied.warnings = {"departs"};
  publish(results);
  EXPECT_EQ(finding("applied").verdict, SONDE_VERDICT_VIOLATION);
  FakeHost::get().reset();
  results.applied.no_data = "no CUPTI";
  publish(results);
  EXPECT_EQ(finding("applied").reason, "no CUPTI");
}

}  // namespace
}  // namespace sonde::uvm
