// The paging simulator on sequences that are calculated by hand. Times are in ns; see round_numbers.h.
#include <gtest/gtest.h>

#include <bit>

#include "round_numbers.h"

namespace sonde::uvm {
namespace {

// A block brought in by one batch: 10 us for the batch, 1 us for the block, 32 pages of 1 us.
constexpr int64_t kFault = 43'000;
// A block evicted by the driver: 3 us and 32 pages of 2 us.
constexpr int64_t kEviction = 67'000;

TEST(TreePrefetcher, PagesOneAfterTheOtherComeInSixBatches) {
  uint32_t resident = 0;
  std::vector<int> batches;
  for (uint32_t page = 0; page < kBlockPages; ++page) {
    if ((resident >> page & 1) != 0) continue;
    const uint32_t pages = pages_to_migrate(resident, 1u << page, UINT32_MAX, 0.51);
    batches.push_back(std::popcount(pages));
    resident |= pages;
  }
  // Page 2 makes 3 of 4, page 4 makes 5 of 8, page 8 makes 9 of 16, page 16 makes 17 of 32.
  EXPECT_EQ(batches, (std::vector<int>{1, 1, 2, 4, 8, 16}));
}

TEST(TreePrefetcher, HalfOfASubtreeIsNotMoreThan51Percent) {
  EXPECT_EQ(pages_to_migrate(0, 0x1, UINT32_MAX, 0.51), 0x1u);
  EXPECT_EQ(pages_to_migrate(0x3, 0x10, UINT32_MAX, 0.51), 0x10u) << "3 of 8";
  EXPECT_EQ(pages_to_migrate(0, 0x3, UINT32_MAX, 0.49), 0xfu) << "2 of 4 are more than 49 %; 4 of 8 are not there";
}

TEST(TreePrefetcher, AboveOneItIsOff) {
  EXPECT_EQ(pages_to_migrate(0x7fffffff, 0x80000000, UINT32_MAX, 1.0), 0x80000000u);
}

TEST(TreePrefetcher, ASubtreeAtTheEndCountsThePagesThatItHas) {
  // An allocation of three pages: two of three are more than 51 %.
  EXPECT_EQ(pages_to_migrate(0x1, 0x2, 0x7, 0.51), 0x6u);
}

TEST(Simulator, ABlockThatIsMissedComesInABatch) {
  Blocks blocks(1);
  blocks.launch({0}, 500);
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited);
  EXPECT_EQ(result.total_ns, kFault + 500);
  EXPECT_EQ(result.fault_ns, kFault);
  EXPECT_EQ(result.compute_ns, 500);
  EXPECT_EQ(result.batches, 1u);
  EXPECT_EQ(result.demand_bytes, kBlockBytes);
  EXPECT_EQ(result.peak_bytes, kBlockBytes);
}

TEST(Simulator, AWindowOfOnePageNeedsSixBatches) {
  Blocks blocks(1);
  blocks.launch({0});
  PagingParameters parameters = round_numbers();
  parameters.window_bytes = kPageBytes;
  const SimulationResult result = simulate(blocks.trace, parameters, kUnlimited);
  EXPECT_EQ(result.batches, 6u);
  EXPECT_EQ(result.total_ns, 6 * 11'000 + 32'000);
}

TEST(Simulator, BlocksWithinTheWindowShareABatch) {
  Blocks blocks(2);
  // One launch walks over both side by side; a window of two blocks has room for both.
  blocks.launch({0, 1});
  PagingParameters parameters = round_numbers();
  parameters.window_bytes = 2 * kBlockBytes;
  const SimulationResult result = simulate(blocks.trace, parameters, kUnlimited);
  EXPECT_EQ(result.batches, 1u);
  EXPECT_EQ(result.total_ns, 10'000 + 2 * 1'000 + 64'000);
}

TEST(Simulator, WhatIsThereCostsNothing) {
  Blocks blocks(1);
  blocks.launch({0}, 100).launch({0}, 100);
  EXPECT_EQ(simulate(blocks.trace, round_numbers(), kUnlimited).total_ns, kFault + 200);
  Blocks resident(1, Home::kDevice);
  resident.launch({0}, 100);
  EXPECT_EQ(simulate(resident.trace, round_numbers(), kUnlimited).total_ns, 100);
}

TEST(Simulator, PagesThatNobodyTouchedAreMadeNotMoved) {
  Blocks blocks(1, Home::kNowhere);
  blocks.launch({0}, 0, true);
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited);
  EXPECT_EQ(result.total_ns, 16'000);
  EXPECT_EQ(result.demand_bytes, 0u);
}

TEST(Simulator, TheLastBlockOfAnAllocationHasThePagesThatItHas) {
  Trace trace;
  trace.allocate(3 * kPageBytes - 1);  // rounded to three pages
  trace.launch(trace.kernel("k"), trace.intern({{0, 0, 3, false, true, 1}}), 0);
  const SimulationResult result = simulate(trace, round_numbers(), kUnlimited);
  EXPECT_EQ(result.total_ns, 11'000 + 3'000);
  EXPECT_EQ(result.demand_bytes, 3 * kPageBytes);
}

TEST(Simulator, GapsBetweenLaunchesAreTime) {
  Blocks blocks(1, Home::kDevice);
  blocks.launch({0}, 100);
  blocks.trace.steps[0].gap_ns = 30;
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited);
  EXPECT_EQ(result.total_ns, 130);
  EXPECT_EQ(result.gap_ns, 30);
}

TEST(Simulator, ALaunchWaitsForThePrefetchThatItNeeds) {
  Blocks blocks(1);
  blocks.launch({0}, 100);
  const Schedule schedule{{{0, false, {fetch(0, 0)}}}, {}};
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited, schedule);
  // The call takes 5 us, the pages 32 us.
  EXPECT_EQ(result.total_ns, 37'100);
  EXPECT_EQ(result.wait_ns, 37'000);
  EXPECT_EQ(result.batches, 0u);
  EXPECT_EQ(result.prefetched_bytes, kBlockBytes);
}

TEST(Simulator, APrefetchRunsBesideALaunch) {
  Blocks blocks(2, Home::kHost);
  blocks.trace.allocations[0].home = Home::kDevice;
  blocks.launch({0}, 100'000).launch({1}, 100'000);
  const Schedule schedule{{{0, false, {fetch(1, 1)}}}, {}};
  EXPECT_EQ(simulate(blocks.trace, round_numbers(), kUnlimited, schedule).total_ns, 200'000);
}

TEST(Simulator, ABlockOnItsWayIsWaitedForWithoutAFault) {
  Blocks blocks(2);
  blocks.trace.allocations[0].home = Home::kDevice;
  blocks.launch({0}, 10'000).launch({1}, 1'000);
  const Schedule schedule{{{0, false, {fetch(1)}}}, {}};
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited, schedule);
  EXPECT_EQ(result.total_ns, 37'000 + 1'000);
  EXPECT_EQ(result.batches, 0u);
}

TEST(Simulator, APrefetchThatHasNotBegunDoesNotHelp) {
  Blocks blocks(2);
  blocks.launch({0}, 0).launch({1}, 0);
  // Both are asked for at once; the first is on the link until 37 us, and nobody waits for the second, which has its call
  // before it.
  const Schedule schedule{{{0, false, {fetch(0, 0), fetch(1)}}}, {}};
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited, schedule);
  EXPECT_EQ(result.batches, 1u);
  EXPECT_EQ(result.total_ns, 37'000 + kFault);
}

TEST(Simulator, WithoutRoomTheBlockThatCameFirstLeaves) {
  Blocks blocks(3);
  blocks.launch({0}).launch({1}).launch({0}).launch({2}).launch({0});
  const SimulationResult result = simulate(blocks.trace, round_numbers(), 2 * kBlockBytes);
  // Block 0 came first and leaves for 2, although it was used last; then it comes back for 1.
  EXPECT_EQ(result.total_ns, 4 * kFault + 2 * kEviction);
  EXPECT_EQ(result.evicted_bytes, 2 * kBlockBytes);
  EXPECT_TRUE(result.is_full);
  PagingParameters by_access = round_numbers();
  by_access.order_by_access = true;
  // Block 1 was not accessed for longest.
  EXPECT_EQ(simulate(blocks.trace, by_access, 2 * kBlockBytes).total_ns, 3 * kFault + kEviction);
}

TEST(Simulator, RoomForAllMeansNoEviction) {
  Blocks blocks(2);
  blocks.launch({0}).launch({1}).launch({0});
  EXPECT_FALSE(simulate(blocks.trace, round_numbers(), 2 * kBlockBytes).is_full);
  EXPECT_TRUE(simulate(blocks.trace, round_numbers(), 2 * kBlockBytes - 1).is_full);
}

TEST(Simulator, AnEvictionOfTheScheduleMakesRoomForThePrefetchBehindIt) {
  Blocks blocks(2);
  blocks.launch({0}).launch({1});
  const Schedule schedule{{{1, true, {evict(0), fetch(1, 1)}}}, {}};
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kBlockBytes, schedule);
  // 43 us: block 0 by a fault. Eviction: call 5, pages 64. Then the prefetch: call 5, pages 32.
  EXPECT_EQ(result.total_ns, 43'000 + 69'000 + 37'000);
  EXPECT_EQ(result.planned_evicted_bytes, kBlockBytes);
  EXPECT_FALSE(result.is_full);
}

TEST(Simulator, BothDirectionsRunAtOneTime) {
  Blocks blocks(3);
  blocks.trace.allocations[0].home = Home::kDevice;
  blocks.launch({}, 0).launch({1}, 0);
  // Without an order between them: the prefetch stands before the eviction.
  const Schedule schedule{{{1, true, {fetch(1, 1), evict(0)}}}, {}};
  EXPECT_EQ(simulate(blocks.trace, round_numbers(), kUnlimited, schedule).total_ns, 37'000);
}

TEST(Simulator, MovesThatWaitForTheDeviceBeginWhenItHasComeToTheLaunch) {
  Blocks blocks(2);
  blocks.trace.allocations[0].home = Home::kDevice;
  blocks.launch({0}, 50'000).launch({1}, 0);
  const Schedule at_once{{{1, false, {fetch(1, 1)}}}, {}};
  const Schedule gated{{{1, true, {fetch(1, 1)}}}, {}};
  // The host asks for the second launch at time 0, the device comes to it at 50 us.
  EXPECT_EQ(simulate(blocks.trace, round_numbers(), kUnlimited, at_once).total_ns, 50'000);
  EXPECT_EQ(simulate(blocks.trace, round_numbers(), kUnlimited, gated).total_ns, 87'000);
}

TEST(Simulator, TheHostTakesPagesBack) {
  Blocks blocks(1);
  blocks.launch({0}).host({0}).launch({0});
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited);
  // The host's faults: 7 us and 32 pages of 4 us.
  EXPECT_EQ(result.host_fault_ns, 135'000);
  EXPECT_EQ(result.total_ns, kFault + 135'000 + kFault);
  EXPECT_EQ(result.host_fault_bytes, kBlockBytes);
}

TEST(Simulator, WhatTheHostReadsOfReadMostlyMemoryStays) {
  Blocks blocks(1);
  blocks.launch({0}).host({0}, false).launch({0});
  const Schedule advice{{}, {{0, 0, kBlockPages, AdviceKind::kReadMostly}}};
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited, advice);
  EXPECT_EQ(result.total_ns, kFault) << "both have a copy from the beginning";
}

TEST(Simulator, ReadMostlyMemoryLeavesWithoutACopyUntilItIsWritten) {
  const Schedule advice{{}, {{0, 0, kBlockPages, AdviceKind::kReadMostly}}};
  Blocks read(2);
  read.launch({0}).launch({1});
  const SimulationResult kept = simulate(read.trace, round_numbers(), kBlockBytes, advice);
  EXPECT_EQ(kept.total_ns, kFault + 3'000 + kFault) << "the eviction costs its fixed part";
  EXPECT_EQ(kept.dropped_bytes, kBlockBytes);
  Blocks written(2);
  written.launch({0}, 0, true).launch({1});
  EXPECT_EQ(simulate(written.trace, round_numbers(), kBlockBytes, advice).total_ns, kFault + kEviction + kFault);
}

TEST(Simulator, MemoryThatPrefersTheHostIsReadOverTheLink) {
  const Schedule advice{{},
                        {{0, 0, kBlockPages, AdviceKind::kPreferHost}, {0, 0, kBlockPages, AdviceKind::kAccessedBy}}};
  Blocks blocks(1);
  blocks.launch({0}, 20'000).host({0}).launch({0}, 400'000);
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited, advice);
  // 32 pages of 10 us: 320 us instead of 20, and within the 400.
  EXPECT_EQ(result.total_ns, 320'000 + 400'000);
  EXPECT_EQ(result.remote_ns, 300'000);
  EXPECT_EQ(result.host_fault_ns, 0);
  EXPECT_EQ(result.batches, 0u);
}

TEST(Simulator, MemoryGoesWhenItsAllocationEnds) {
  Blocks blocks(2);
  blocks.launch({0}).launch({1});
  blocks.trace.allocations[0].end_step = 1;
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kBlockBytes);
  EXPECT_EQ(result.total_ns, 2 * kFault);
  EXPECT_FALSE(result.is_full);
}

TEST(Simulator, ADeviceWithoutRoomForABlockIsImpossible) {
  Blocks blocks(1);
  blocks.launch({0});
  EXPECT_TRUE(simulate(blocks.trace, round_numbers(), kBlockBytes - 1).is_impossible);
  EXPECT_FALSE(simulate(blocks.trace, round_numbers(), kBlockBytes).is_impossible);
}

TEST(Simulator, ALaunchThatTouchesMoreThanThereIsGoesThroughItInPieces) {
  Blocks blocks(3);
  blocks.launch({0, 1, 2});
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kBlockBytes);
  EXPECT_EQ(result.demand_bytes, 3 * kBlockBytes);
  EXPECT_EQ(result.evicted_bytes, 2 * kBlockBytes);
}

TEST(Simulator, MoreThan4GiBIsCountedInFull) {
  constexpr uint64_t kBytes = uint64_t{5} << 30;
  Trace trace;
  trace.allocate(kBytes);
  const auto pages = static_cast<uint32_t>(pages_of(kBytes));
  trace.launch(trace.kernel("k"), trace.intern({{0, 0, pages, false, true, 1}}), 0);
  const Schedule schedule{{{0, false, {{0, 0, pages, false, 0}}}}, {}};
  const SimulationResult result = simulate(trace, round_numbers(), kUnlimited, schedule);
  EXPECT_EQ(result.prefetched_bytes, kBytes);
  EXPECT_EQ(result.total_ns, 5'000 + int64_t{81'920} * 1'000);
}

TEST(Simulator, MoreThan65536AllocationsAreToldApart) {
  Blocks blocks(70'000);
  blocks.launch({0}).launch({65'536}).launch({0});
  const SimulationResult result = simulate(blocks.trace, round_numbers(), kUnlimited);
  EXPECT_EQ(result.demand_bytes, 2 * kBlockBytes);
}

TEST(Simulator, StepsThatFindAllThereAreSkippedWithoutADifference) {
  // The same with advice that touches nothing, which turns skipping off; evictions in between.
  Blocks blocks(4);
  for (int round = 0; round < 5; ++round) {
    blocks.launch({0}, 100).launch({0}, 100).launch({0, 1}, 50).launch({2}, 10).launch({0, 1}, 50).launch({3}, 10);
  }
  blocks.trace.allocate(kBlockBytes);
  const Schedule advice{{}, {{4, 0, kBlockPages, AdviceKind::kReadMostly}}};
  for (const uint64_t room : {2, 3, 4}) {
    const SimulationResult skipping = simulate(blocks.trace, round_numbers(), room * kBlockBytes);
    const SimulationResult whole = simulate(blocks.trace, round_numbers(), room * kBlockBytes, advice);
    EXPECT_EQ(skipping.total_ns, whole.total_ns) << room;
    EXPECT_EQ(skipping.evicted_bytes, whole.evicted_bytes) << room;
  }
}

TEST(Traces, TheBeginningHasAsManyAccessesAsAsked) {
  Blocks blocks(3);
  blocks.launch({0, 1}).launch({2}).launch({0});
  EXPECT_EQ(blocks.trace.block_accesses(), 4u);
  EXPECT_EQ(blocks.trace.beginning(3).steps.size(), 2u);
  EXPECT_EQ(blocks.trace.beginning(2).steps.size(), 1u);
  EXPECT_EQ(blocks.trace.beginning(0).steps.size(), 1u) << "at least one";
}

TEST(Simulator, NothingTakesNoTime) {
  const Trace trace;
  EXPECT_EQ(simulate(trace, round_numbers(), kUnlimited).total_ns, 0);
}

TEST(Simulator, TheSameArgumentsGiveTheSameResult) {
  Blocks blocks(5);
  blocks.launch({0, 1}, 300).launch({2, 3}, 200).launch({0, 4}, 100);
  EXPECT_EQ(simulate(blocks.trace, round_numbers(), 3 * kBlockBytes).total_ns,
            simulate(blocks.trace, round_numbers(), 3 * kBlockBytes).total_ns);
}

TEST(TouchOrder, SpansAreWalkedSideBySide) {
  Trace trace;
  trace.allocate(2 * kBlockBytes);
  trace.allocate(2 * kBlockBytes);
  const TouchSet set{{0, 0, 64, false, true, 1}, {1, 0, 64, true, false, 1}};
  const std::vector<BlockAccess> order = accesses_of(set, BlockMap(trace));
  ASSERT_EQ(order.size(), 4u);
  EXPECT_EQ(order[0].block, 0u);
  EXPECT_EQ(order[1].block, 2u);
  EXPECT_EQ(order[2].block, 1u);
  EXPECT_EQ(order[3].block, 3u);
  EXPECT_FLOAT_EQ(order[0].share, 0.25f);
  EXPECT_TRUE(order[1].is_written);
}

TEST(TouchSets, AreSharedByLaunchesThatTouchTheSame) {
  Blocks blocks(2);
  EXPECT_EQ(blocks.set({0, 1}), blocks.set({0, 1}));
  EXPECT_NE(blocks.set({0}), blocks.set({1}));
  EXPECT_NE(blocks.set({0}, true), blocks.set({0}, false));
  EXPECT_EQ(blocks.trace.intern({}), 0u);
}

TEST(Footprint, IsTheUnionOfAllTouches) {
  Trace trace;
  trace.allocate(100 * kPageBytes);
  // Pages 0 to 9, 5 to 14 and 20: sixteen pages.
  for (const PageSpan &span :
       {PageSpan{0, 0, 10, false, true, 1}, PageSpan{0, 5, 10, false, true, 1}, PageSpan{0, 20, 1, false, true, 1}}) {
    trace.launch(trace.kernel("k"), trace.intern({span}), 0);
  }
  EXPECT_EQ(trace.footprint(), 16 * kPageBytes);
  EXPECT_EQ(trace.greatest_step(), 10 * kPageBytes);
}

}  // namespace
}  // namespace sonde::uvm
