// Plans of small traces, and the look-ahead distance by hand. See round_numbers.h for the costs.
#include <gtest/gtest.h>

#include <numeric>

#include "planner.h"
#include "round_numbers.h"
#include "segments.h"

namespace sonde::uvm {
namespace {

PlannerOptions options() {
  PlannerOptions out;
  out.slack = 1;
  out.least_bytes = 0;
  return out;
}

// Launches of 10 us each.
std::vector<int64_t> every_10_us(size_t count) {
  std::vector<int64_t> begins(count);
  for (size_t index = 0; index < count; ++index) begins[index] = static_cast<int64_t>(index) * 10'000;
  return begins;
}

TEST(LookAhead, AFetchIsAskedForAtTheLastLaunchBeforeItHasToBegin) {
  // One page: a call of 5 us and 1 us. Needed at 50 us it has to begin at 44, during launch 4.
  EXPECT_EQ(latest_steps(every_10_us(6), {5}, {kPageBytes}, round_numbers(), 1), (std::vector<uint32_t>{4}));
}

TEST(LookAhead, ALaunchThatBeginsExactlyThenIsEarlyEnough) {
  // Five pages: 10 us. Needed at 50, at the latest from 40, when launch 4 begins; one page more is too much.
  EXPECT_EQ(latest_steps(every_10_us(6), {5}, {5 * kPageBytes}, round_numbers(), 1), (std::vector<uint32_t>{4}));
  EXPECT_EQ(latest_steps(every_10_us(6), {5}, {6 * kPageBytes}, round_numbers(), 1), (std::vector<uint32_t>{3}));
}

TEST(LookAhead, FetchesForOneLaunchQueueUp) {
  // The second has to begin at 44, so the first at 38.
  EXPECT_EQ(latest_steps(every_10_us(6), {5, 5}, {kPageBytes, kPageBytes}, round_numbers(), 1),
            (std::vector<uint32_t>{3, 4}));
}

TEST(LookAhead, SlackMultipliesWhatAFetchTakes) {
  // 12 us each: 38 and 26.
  EXPECT_EQ(latest_steps(every_10_us(6), {5, 5}, {kPageBytes, kPageBytes}, round_numbers(), 2),
            (std::vector<uint32_t>{2, 3}));
}

TEST(LookAhead, WhatCannotBeInTimeIsAskedForAtOnce) {
  EXPECT_EQ(latest_steps(every_10_us(6), {2}, {100 * kPageBytes}, round_numbers(), 1), (std::vector<uint32_t>{0}));
}

TEST(LookAhead, ALaterFetchMayPushAnEarlierOneForward) {
  // Needed at 10 us: must begin at 4. The one needed at 50 takes 45 us, so it must begin at 5; that leaves the first -1.
  EXPECT_EQ(latest_steps(every_10_us(6), {1, 5}, {kPageBytes, 40 * kPageBytes}, round_numbers(), 1),
            (std::vector<uint32_t>{0, 0}));
}

TEST(Segments, AreCutWhereTouchesBeginAndEnd) {
  Trace trace;
  trace.allocate(100 * kPageBytes);
  const uint32_t left = trace.intern({{0, 0, 10, false, true, 1}});
  const uint32_t right = trace.intern({{0, 5, 10, true, false, 1}});
  const Segments segments = cut_segments(trace, Level::kTensor, UINT64_MAX / 2);
  ASSERT_EQ(segments.all.size(), 3u) << "pages 0 to 4, 5 to 9, 10 to 14; what nobody touches is none";
  EXPECT_EQ(segments.of_set[left], (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(segments.of_set[right], (std::vector<uint32_t>{1, 2}));
  EXPECT_FALSE(segments.is_written[0]);
  EXPECT_TRUE(segments.is_written[1]);
}

TEST(Segments, AtTheLevelOfObjectsAreWholeAllocations) {
  Trace trace;
  trace.allocate(100 * kPageBytes);
  trace.allocate(100 * kPageBytes);
  trace.intern({{0, 7, 1, false, true, 1}});
  const Segments segments = cut_segments(trace, Level::kObject, UINT64_MAX / 2);
  ASSERT_EQ(segments.all.size(), 1u);
  EXPECT_EQ(segments.all[0].count, 100u);
}

TEST(Segments, AreNoGreaterThanAChunk) {
  Trace trace;
  trace.allocate(100 * kPageBytes);
  trace.intern({{0, 0, 100, false, true, 1}});
  const Segments segments = cut_segments(trace, Level::kTensor, 40 * kPageBytes);
  ASSERT_EQ(segments.all.size(), 3u);
  EXPECT_EQ(segments.all[2].count, 20u);
}

TEST(Planner, WithRoomForAllNothingIsEvicted) {
  Blocks blocks(3);
  blocks.launch({0}, 10'000).launch({1}, 10'000).launch({2}, 10'000);
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), kUnlimited, options());
  EXPECT_EQ(plan.schedule.bytes(false), 3 * kBlockBytes);
  EXPECT_EQ(plan.schedule.bytes(true), 0u);
  for (const MoveGroup &group : plan.schedule.groups) EXPECT_FALSE(group.waits_for_device);
}

TEST(Planner, EachFetchIsAskedForAsLateAsItMay) {
  // A block takes 37 us, a launch 100 us: block 1 is asked for at launch 0, block 2 at launch 1.
  Blocks blocks(3);
  blocks.launch({0}, 100'000).launch({1}, 100'000).launch({2}, 100'000);
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), kUnlimited, options());
  ASSERT_EQ(plan.schedule.groups.size(), 2u);
  EXPECT_EQ(plan.schedule.groups[0].moves.size(), 2u);
  EXPECT_EQ(plan.schedule.groups[1].step, 1u);
  EXPECT_EQ(plan.schedule.groups[1].moves[0].needed, 2u);
  EXPECT_EQ(plan.facts.greatest_distance, 1u);
  EXPECT_EQ(simulate(blocks.trace, round_numbers(), kUnlimited, plan.schedule).total_ns, 337'000);
}

TEST(Planner, WhatOneLaunchNeedsIsOneCallForEachAllocationWhereThereIsRoom) {
  // Two allocations of eight blocks, cut into pieces of one block: two moves, asked for when the first piece has to be.
  Trace trace;
  trace.allocate(8 * kBlockBytes);
  trace.allocate(8 * kBlockBytes);
  const uint32_t kernel = trace.kernel("k");
  for (int launch = 0; launch < 100; ++launch) trace.launch(kernel, 0, 10'000);
  const uint32_t both =
      trace.intern({{0, 0, 8 * kBlockPages, false, true, 1}, {1, 0, 8 * kBlockPages, true, false, 1}});
  trace.launch(kernel, both, 10'000);
  PlannerOptions pieces = options();
  pieces.chunk_bytes = kBlockBytes;
  const MadePlan plan = make_plan(trace, round_numbers(), kUnlimited, pieces);
  ASSERT_EQ(plan.schedule.groups.size(), 1u);
  EXPECT_EQ(plan.schedule.groups[0].moves.size(), 2u);
  // Sixteen pieces of 37 us before 1,000 us: from 408 us on, during launch 40.
  EXPECT_EQ(plan.schedule.groups[0].step, 40u);
}

TEST(Planner, WithoutRoomTheLastUseIsFollowedByAnEviction) {
  Blocks blocks(2);
  blocks.launch({0}, 10'000).launch({0}, 10'000).launch({1}, 10'000);
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), kBlockBytes, options());
  ASSERT_EQ(plan.schedule.groups.size(), 2u);
  const MoveGroup &second = plan.schedule.groups[1];
  EXPECT_EQ(second.step, 2u);
  EXPECT_TRUE(second.waits_for_device);
  ASSERT_EQ(second.moves.size(), 2u);
  EXPECT_TRUE(second.moves[0].is_eviction);
  EXPECT_EQ(second.moves[0].allocation, 0u);
  EXPECT_FALSE(second.moves[1].is_eviction);
}

TEST(Planner, WhatIsNeededLastIsEvicted) {
  // Room for two. Block 1 is needed again after 0.
  Blocks blocks(3);
  blocks.launch({0}).launch({1}).launch({2}).launch({0}).launch({1});
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), 2 * kBlockBytes, options());
  std::vector<uint32_t> evicted;
  for (const MoveGroup &group : plan.schedule.groups) {
    for (const Move &move : group.moves) {
      if (move.is_eviction) evicted.push_back(move.allocation);
    }
  }
  EXPECT_EQ(evicted, (std::vector<uint32_t>{1, 2}));
}

TEST(Planner, WhatDoesNotFitBesideItsOwnLaunchIsLeftToTheDriver) {
  Blocks blocks(3);
  blocks.launch({0, 1, 2}, 1'000);
  const MadePlan fits = make_plan(blocks.trace, round_numbers(), 3 * kBlockBytes, options());
  EXPECT_EQ(fits.facts.left_to_driver, 0u);
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), 3 * kBlockBytes - 1, options());
  EXPECT_EQ(plan.facts.left_to_driver, 1u);
  EXPECT_EQ(plan.schedule.bytes(false), 2 * kBlockBytes);
}

TEST(Planner, NothingIsFetchedBeforeItsAllocationIsThere) {
  Blocks blocks(1);
  blocks.launch({0}, 10'000);
  blocks.launch({0}, 10'000);
  const uint32_t late = blocks.trace.allocate(kBlockBytes);
  blocks.launch({late}, 10'000);
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), kUnlimited, options());
  ASSERT_EQ(plan.schedule.groups.size(), 2u);
  EXPECT_EQ(plan.schedule.groups[1].step, 2u);
}

TEST(Planner, NothingIsFetchedBeforeTheHostHasTouchedIt) {
  Blocks blocks(2);
  blocks.launch({0}, 100'000).host({1}).launch({1}, 1'000);
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), kUnlimited, options());
  ASSERT_EQ(plan.schedule.groups.size(), 2u);
  EXPECT_EQ(plan.schedule.groups[1].step, 2u);
}

TEST(Planner, WhatTheHostTookBackIsFetchedAgain) {
  Blocks blocks(1);
  blocks.launch({0}, 1'000).host({0}).launch({0}, 1'000);
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), kUnlimited, options());
  EXPECT_EQ(plan.schedule.bytes(false), 2 * kBlockBytes);
}

TEST(Planner, MemoryOfAnEndedAllocationServesTheNext) {
  Blocks blocks(2);
  blocks.launch({0}).launch({1});
  blocks.trace.allocations[0].end_step = 1;
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), kBlockBytes, options());
  EXPECT_EQ(plan.schedule.bytes(true), 0u) << "it is freed, not evicted";
  EXPECT_EQ(plan.schedule.bytes(false), 2 * kBlockBytes);
}

TEST(Planner, SmallRangesAreLeftToTheDriver) {
  Blocks blocks(1);
  blocks.launch({0});
  PlannerOptions small = options();
  small.least_bytes = kBlockBytes;
  EXPECT_EQ(make_plan(blocks.trace, round_numbers(), kUnlimited, small).facts.too_small, 0u);
  small.least_bytes = kBlockBytes + 1;
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), kUnlimited, small);
  EXPECT_EQ(plan.facts.too_small, 1u);
  EXPECT_TRUE(plan.schedule.is_empty());
}

// Turns of host and device on block 0; reading it over the link costs 320 us a launch, moving it 32 and 128 us a turn
// and the other.
Blocks turns(uint32_t count, float traffic) {
  Blocks blocks(1);
  TouchSet touched{{0, 0, kBlockPages, false, true, traffic}};
  const uint32_t set = blocks.trace.intern(std::move(touched));
  for (uint32_t turn = 0; turn <= count; ++turn) {
    if (turn % 2 == 0) {
      blocks.trace.launch(blocks.kernel, set, 1'000);
    } else {
      blocks.host({0});
    }
  }
  return blocks;
}

TEST(Planner, ABufferThatGoesBackAndForthStaysOnTheHostWhereThatIsCheaper) {
  // A tenth of its bytes is read: 32 us a launch. Three turns: two launches, 64 us; moving 1.5 times 160 us.
  const MadePlan kept = make_plan(turns(3, 0.1f).trace, round_numbers(), kUnlimited, options());
  EXPECT_EQ(kept.facts.kept_on_host_bytes, kBlockBytes);
  ASSERT_EQ(kept.schedule.advice.size(), 2u);
  EXPECT_EQ(kept.schedule.advice[0].kind, AdviceKind::kPreferHost);
  EXPECT_EQ(kept.schedule.advice[1].kind, AdviceKind::kAccessedBy);
  EXPECT_TRUE(kept.schedule.groups.empty());
  // All of it: two launches of 320 us are more than 240.
  EXPECT_EQ(make_plan(turns(3, 1).trace, round_numbers(), kUnlimited, options()).facts.kept_on_host_bytes, 0u);
}

TEST(Planner, FewerTurnsThanPingPongAreNone) {
  EXPECT_EQ(make_plan(turns(2, 0.01f).trace, round_numbers(), kUnlimited, options()).facts.kept_on_host_bytes, 0u);
}

TEST(Planner, WhatTheDeviceNeverWritesAndTheHostTouchesIsReadMostly) {
  Blocks read(1);
  read.launch({0}).host({0}, false).launch({0});
  EXPECT_EQ(make_plan(read.trace, round_numbers(), kUnlimited, options()).facts.read_mostly_bytes, kBlockBytes);
  Blocks written(1);
  written.launch({0}, 0, true).host({0}, false).launch({0});
  EXPECT_EQ(make_plan(written.trace, round_numbers(), kUnlimited, options()).facts.read_mostly_bytes, 0u);
}

TEST(Planner, WhatHalfOfTheLaunchesTouchIsPinnedWhenMemoryIsShort) {
  Blocks blocks(3);
  blocks.launch({0}).launch({1}).launch({0}).launch({2});
  // Block 0: two of four launches.
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), 2 * kBlockBytes, options());
  EXPECT_EQ(plan.facts.pinned_bytes, kBlockBytes);
  ASSERT_EQ(plan.schedule.advice.size(), 1u);
  EXPECT_EQ(plan.schedule.advice[0].kind, AdviceKind::kPreferDevice);
  EXPECT_EQ(plan.schedule.advice[0].allocation, 0u);
  PlannerOptions strict = options();
  strict.pin_share = 0.51;
  EXPECT_EQ(make_plan(blocks.trace, round_numbers(), 2 * kBlockBytes, strict).facts.pinned_bytes, 0u);
  EXPECT_EQ(make_plan(blocks.trace, round_numbers(), kUnlimited, options()).facts.pinned_bytes, 0u)
      << "with room nothing has to be pinned";
}

TEST(Planner, EndsWhereItHasAsManyMovesAsAllowed) {
  Blocks blocks(4);
  blocks.launch({0}).launch({1}).launch({2}).launch({3});
  PlannerOptions few = options();
  few.most_moves = 2;
  const MadePlan plan = make_plan(blocks.trace, round_numbers(), kUnlimited, few);
  EXPECT_TRUE(plan.facts.is_cut);
  EXPECT_EQ(plan.schedule.bytes(false), 2 * kBlockBytes);
  few.most_moves = 5;
  EXPECT_FALSE(make_plan(blocks.trace, round_numbers(), kUnlimited, few).facts.is_cut);
}

TEST(Planner, AnEmptyTraceHasAnEmptyPlan) {
  const Trace trace;
  EXPECT_TRUE(make_plan(trace, round_numbers(), kUnlimited, options()).schedule.is_empty());
}

TEST(Planner, NeighboursAreOneMove) {
  Schedule schedule{{{0, false, {{0, 0, 4, false, 3}, {0, 4, 4, false, 3}, {0, 8, 4, false, 5}, {1, 12, 4, false, 5}}}},
                    {{0, 4, 4, AdviceKind::kReadMostly}, {0, 0, 4, AdviceKind::kReadMostly}}};
  join_neighbours(schedule);
  ASSERT_EQ(schedule.groups[0].moves.size(), 3u) << "another launch, another allocation: another move";
  EXPECT_EQ(schedule.groups[0].moves[0].count, 8u);
  ASSERT_EQ(schedule.advice.size(), 1u);
  EXPECT_EQ(schedule.advice[0].count, 8u);
}

TEST(WholeObjects, ArePrefetchedBeforeEachLaunchThatTouchesThem) {
  Trace trace;
  trace.allocate(4 * kBlockBytes);
  trace.launch(trace.kernel("k"), trace.intern({{0, 3, 1, false, true, 1}}), 0);
  trace.launch(0, 0, 0);
  const Schedule schedule = whole_objects_at_each_launch(trace);
  ASSERT_EQ(schedule.groups.size(), 1u) << "the second launch touches nothing";
  EXPECT_EQ(schedule.groups[0].moves[0].count, 4 * kBlockPages);
  EXPECT_EQ(schedule.groups[0].moves[0].needed, 0u);
}

}  // namespace
}  // namespace sonde::uvm
