// Where a program is in its plan.
#include <gtest/gtest.h>

#include "follower.h"

namespace sonde::cuda::paging {
namespace {

using toolkit::PagingPlan;
using toolkit::PlannedAllocation;
using toolkit::PlannedStep;

PlannedStep step(uint64_t launch, const char *kernel, uint64_t occurrence = PlannedStep::kAny) {
  PlannedStep out;
  out.launch = launch;
  out.kernel = kernel;
  out.occurrence = occurrence;
  return out;
}

TEST(PlanFollower, FiresEachStepAtItsLaunch) {
  PagingPlan plan;
  plan.steps = {step(0, "a"), step(2, "b")};
  Follower follower(plan, {});
  EXPECT_EQ(follower.launch("a"), 0u);
  EXPECT_EQ(follower.launch("b"), Follower::kNothing);
  EXPECT_EQ(follower.launch("b"), 1u);
  EXPECT_EQ(follower.position(), 2u);
  EXPECT_EQ(follower.counts().missed, 0u);
}

TEST(PlanFollower, WithoutAnOccurrenceTheKernelOfTheLaunchMustBeThePlans) {
  PagingPlan plan;
  plan.steps = {step(0, "a")};
  Follower follower(plan, {});
  EXPECT_EQ(follower.launch("b"), Follower::kNothing);
  EXPECT_EQ(follower.counts().missed, 1u);
  EXPECT_EQ(follower.counts().other_kernel, 1u);
  EXPECT_EQ(follower.launch("a"), Follower::kNothing) << "its launch has gone by";
}

TEST(PlanFollower, AnOccurrenceFindsItsLaunchWithinTheSlack) {
  // Two launches more than planned come before: the third launch of b is at 5 instead of 3.
  PagingPlan plan;
  plan.steps = {step(3, "b", 2)};
  Follower follower(plan, {.slack = 2});
  for (const char *kernel : {"b", "b", "x", "x", "x"}) EXPECT_EQ(follower.launch(kernel), Follower::kNothing);
  EXPECT_EQ(follower.launch("b"), 0u);
  EXPECT_EQ(follower.counts().shifted, 1u);
  EXPECT_EQ(follower.position(), 3u) << "the launch counts as the planned one";
}

TEST(PlanFollower, BeyondTheSlackAStepIsMissed) {
  PagingPlan plan;
  plan.steps = {step(1, "b", 0)};
  Follower follower(plan, {.slack = 2});
  for (int launch = 0; launch < 4; ++launch) EXPECT_EQ(follower.launch("x"), Follower::kNothing);
  // Launch 3 was the last one at which it could have come.
  EXPECT_EQ(follower.counts().missed, 1u);
  EXPECT_EQ(follower.launch("b"), Follower::kNothing);
}

TEST(PlanFollower, AStepMayComeEarlyByTheSlackAndNoMore) {
  PagingPlan plan;
  plan.steps = {step(3, "b", 0)};
  Follower near(plan, {.slack = 2});
  (void)near.launch("x");
  EXPECT_EQ(near.launch("b"), 0u) << "at 1 instead of 3";
  Follower far(plan, {.slack = 2});
  EXPECT_EQ(far.launch("b"), Follower::kNothing) << "at 0 instead of 3";
}

TEST(PlanFollower, AStepThatIsLateDoesNotHoldBackTheNext) {
  PagingPlan plan;
  plan.steps = {step(1, "a", 0), step(2, "b", 0)};
  Follower follower(plan, {.slack = 4});
  (void)follower.launch("x");
  EXPECT_EQ(follower.launch("b"), 1u);
  EXPECT_EQ(follower.launch("a"), 0u);
}

TEST(PlanFollower, GivesUpAfterMoreMismatchesThanAllowed) {
  PagingPlan plan;
  plan.steps = {step(0, "a"), step(1, "a"), step(2, "x"), step(3, "x")};
  Follower follower(plan, {.slack = 16, .mismatches = 1});
  (void)follower.launch("x");
  EXPECT_FALSE(follower.has_departed()) << "one mismatch is allowed";
  (void)follower.launch("x");
  EXPECT_TRUE(follower.has_departed());
  EXPECT_EQ(follower.launch("x"), Follower::kNothing) << "nothing fires any more";
  EXPECT_NE(follower.counts().first_mismatch.find("launch 0 should be of a"), std::string::npos);
}

TEST(PlanFollower, GraphLaunchesAreAKernelWithoutAName) {
  PagingPlan plan;
  plan.steps = {step(1, "", 1)};
  Follower follower(plan, {});
  EXPECT_EQ(follower.launch(""), Follower::kNothing);
  EXPECT_EQ(follower.launch(""), 0u);
}

TEST(PlanFollower, AllocationsAreCountedInOrderAndCheckedBySize) {
  PagingPlan plan;
  plan.allocations = {{0, 100, {}}, {2, 300, {}}, {3, 400, {}}};
  Follower follower(plan, {});
  EXPECT_EQ(follower.allocate(100), &plan.allocations[0]);
  EXPECT_EQ(follower.allocate(300), nullptr) << "allocation 1 is not the plan's";
  EXPECT_EQ(follower.allocate(300), &plan.allocations[1]);
  EXPECT_EQ(follower.allocate(401), nullptr);
  EXPECT_EQ(follower.counts().other_size, 1u);
  EXPECT_EQ(follower.counts().allocations, 4u);
  EXPECT_EQ(follower.counts().first_mismatch, "managed allocation 3 should have 400 bytes, it has 401");
}

TEST(PlanFollower, MismatchesOfSizesAndOfLaunchesAddUp) {
  PagingPlan plan;
  plan.allocations = {{0, 100, {}}};
  plan.steps = {step(0, "a")};
  Follower follower(plan, {.slack = 0, .mismatches = 1});
  (void)follower.allocate(1);
  EXPECT_FALSE(follower.has_departed());
  (void)follower.launch("b");
  EXPECT_TRUE(follower.has_departed());
}

TEST(PlanFollower, AnEmptyPlanOnlyCounts) {
  const PagingPlan plan;
  Follower follower(plan, {});
  EXPECT_EQ(follower.launch("a"), Follower::kNothing);
  EXPECT_EQ(follower.allocate(1), nullptr);
  EXPECT_EQ(follower.counts().launches, 1u);
  EXPECT_FALSE(follower.has_departed());
}

}  // namespace
}  // namespace sonde::cuda::paging
