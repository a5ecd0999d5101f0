// Schedules as plans, and the file that holds one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "plan_text.h"
#include "round_numbers.h"

namespace sonde::uvm {
namespace {

// Two allocations, of which the plan knows the second by ordinal 5; a graph launch of two nodes is launch 3.
Trace with_a_graph() {
  Trace trace;
  trace.allocate(kBlockBytes);
  trace.allocate(3 * kPageBytes - 100);
  trace.allocations[1].ordinal = 5;
  const uint32_t kernel = trace.kernel("_Z1kv");
  for (const uint64_t launch : {2, 3, 3, 4}) {
    Step &step = trace.launch(kernel, 0, 1000);
    step.launch = launch;
    step.is_graph = launch == 3;
    step.occurrence = launch == 3 ? 0 : static_cast<uint32_t>(launch);
  }
  return trace;
}

TEST(PlanOfASchedule, NamesAllocationsAndLaunchesAsTheProgramCountsThem) {
  const Trace trace = with_a_graph();
  const Schedule schedule{
      {{0, true, {{0, 0, 32, true, kNone}, {1, 1, 2, false, 2}}}, {2, false, {{0, 4, 4, false, 3}}}},
      {{1, 0, 3, AdviceKind::kAccessedBy}}};
  const toolkit::PagingPlan plan = plan_of(trace, schedule);
  ASSERT_EQ(plan.allocations.size(), 2u);
  EXPECT_EQ(plan.allocations[1].allocation, 5u);
  EXPECT_EQ(plan.allocations[1].bytes, 3 * kPageBytes - 100);
  EXPECT_EQ(plan.allocations[1].advise[0].bytes, 3 * kPageBytes - 100) << "not past the allocation's end";
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(plan.steps[0].launch, 2u);
  EXPECT_EQ(plan.steps[0].kernel, "_Z1kv");
  EXPECT_EQ(plan.steps[0].occurrence, 2u);
  EXPECT_TRUE(plan.steps[0].waits_for_device);
  EXPECT_TRUE(plan.steps[0].moves[0].is_eviction);
  EXPECT_EQ(plan.steps[0].moves[0].needed, toolkit::PlannedMove::kNobody);
  EXPECT_EQ(plan.steps[0].moves[1].allocation, 5u);
  EXPECT_EQ(plan.steps[0].moves[1].offset, kPageBytes);
  EXPECT_EQ(plan.steps[0].moves[1].bytes, 2 * kPageBytes - 100);
  EXPECT_EQ(plan.steps[0].moves[1].needed, 3u);
  EXPECT_EQ(plan.steps[1].launch, 3u) << "a node of the graph stands for its launch";
  EXPECT_EQ(plan.steps[1].kernel, "");
  EXPECT_EQ(plan.steps[1].moves[0].needed, 4u);
}

TEST(PlanOfASchedule, AndBackIsTheSame) {
  const Trace trace = with_a_graph();
  const Schedule schedule{{{0, true, {{0, 0, 32, true, kNone}, {1, 1, 2, false, 1}}}},
                          {{1, 0, 3, AdviceKind::kAccessedBy}}};
  uint64_t unknown = 0;
  const Schedule back = schedule_of(trace, plan_of(trace, schedule), unknown);
  EXPECT_EQ(unknown, 0u);
  ASSERT_EQ(back.groups.size(), 1u);
  EXPECT_EQ(back.groups[0].step, 0u);
  EXPECT_EQ(back.groups[0].moves[1].first, 1u);
  EXPECT_EQ(back.groups[0].moves[1].count, 2u);
  EXPECT_EQ(back.groups[0].moves[1].needed, 1u);
  ASSERT_EQ(back.advice.size(), 1u);
  EXPECT_EQ(back.advice[0].kind, AdviceKind::kAccessedBy);
}

TEST(PlanOfASchedule, WhatTheTraceDoesNotHaveIsCounted) {
  const Trace trace = with_a_graph();
  toolkit::PagingPlan plan;
  plan.allocations = {{0, kBlockBytes, {}}, {5, 17, {}}};
  toolkit::PlannedStep step;
  step.launch = 2;
  step.moves = {{false, 0, 0, kBlockBytes, 4}, {false, 5, 0, 17, 4}};
  plan.steps.push_back(step);
  step.launch = 99;
  step.moves.resize(1);
  plan.steps.push_back(step);
  uint64_t unknown = 0;
  const Schedule schedule = schedule_of(trace, plan, unknown);
  EXPECT_EQ(unknown, 2u) << "another size, and a launch behind the end";
  EXPECT_EQ(schedule.moves(), 1u);
}

class PlanFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("sonde-plan-" + std::to_string(getpid()) + ".yaml")).string();
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string read() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string path_;
};

TEST_F(PlanFile, IsWrittenAndWrittenOver) {
  std::string error;
  const std::string first = plan_file_text({}, "one\ntwo");
  EXPECT_NE(first.find("# one\n# two\n"), std::string::npos);
  ASSERT_TRUE(write_plan_file(path_, first, false, error)) << error;
  EXPECT_EQ(read(), first);
  ASSERT_TRUE(write_plan_file(path_, plan_file_text({}, "other"), false, error)) << error;
  EXPECT_NE(read(), first);
}

TEST_F(PlanFile, AnEditIsKeptUnlessAsked) {
  std::string error;
  std::string text = plan_file_text({}, "");
  EXPECT_TRUE(is_unedited(text));
  text[text.find("steps: []") + 7] = '{';
  EXPECT_FALSE(is_unedited(text));
  std::ofstream(path_) << text;
  EXPECT_FALSE(write_plan_file(path_, plan_file_text({}, ""), false, error));
  EXPECT_NE(error.find("was edited"), std::string::npos);
  EXPECT_EQ(read(), text);
  EXPECT_TRUE(write_plan_file(path_, plan_file_text({}, ""), true, error));
  EXPECT_NE(read(), text);
}

TEST_F(PlanFile, AFileThatIsNoPlanIsKept) {
  std::string error;
  std::ofstream(path_) << "analyses: {}\n";
  EXPECT_FALSE(write_plan_file(path_, plan_file_text({}, ""), false, error));
  EXPECT_EQ(read(), "analyses: {}\n");
}

TEST_F(PlanFile, AFolderThatIsNotThereIsAnError) {
  std::string error;
  EXPECT_FALSE(write_plan_file("/nowhere/at/all/plan.yaml", plan_file_text({}, ""), false, error));
  EXPECT_NE(error.find("cannot be written"), std::string::npos);
}

}  // namespace
}  // namespace sonde::uvm
