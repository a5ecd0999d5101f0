// Belady's rule against brute force, and the optimum on sequences calculated by hand.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "optimum.h"
#include "planner.h"
#include "round_numbers.h"

namespace sonde::uvm {
namespace {

// The least misses over all choices of victims: sets of what is in the room, step by step.
uint64_t least_misses(const std::vector<uint32_t> &sequence, uint32_t room) {
  std::map<std::set<uint32_t>, uint64_t> states{{{}, 0}};
  for (const uint32_t thing : sequence) {
    std::map<std::set<uint32_t>, uint64_t> next;
    const auto offer = [&](std::set<uint32_t> state, uint64_t misses) {
      const auto [place, is_new] = next.try_emplace(std::move(state), misses);
      if (!is_new) place->second = std::min(place->second, misses);
    };
    for (const auto &[state, misses] : states) {
      if (state.count(thing) != 0) {
        offer(state, misses);
        continue;
      }
      std::set<uint32_t> with = state;
      with.insert(thing);
      if (with.size() <= room) {
        offer(with, misses + 1);
        continue;
      }
      for (const uint32_t victim : state) {
        std::set<uint32_t> without = with;
        without.erase(victim);
        offer(std::move(without), misses + 1);
      }
    }
    states = std::move(next);
  }
  uint64_t least = UINT64_MAX;
  for (const auto &[state, misses] : states) least = std::min(least, misses);
  return least;
}

uint64_t cases() {
  const char *text = std::getenv("SONDE_CASES");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 2000;
}

TEST(Belady, MissesAsLittleAsAnyChoiceOfVictims) {
  std::mt19937 random(1);
  for (uint64_t round = 0; round < cases() / 4; ++round) {
    const uint32_t things = 2 + random() % 5;
    const uint32_t room = 1 + random() % 4;
    std::vector<uint32_t> sequence(1 + random() % 14);
    for (uint32_t &thing : sequence) thing = random() % things;
    ASSERT_EQ(belady_misses(sequence, room), least_misses(sequence, room)) << "round " << round;
  }
}

TEST(Belady, ThePublishedExample) {
  // Silberschatz, Operating System Concepts, optimal replacement: 9 faults with three frames.
  EXPECT_EQ(belady_misses({7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1}, 3), 9u);
}

TEST(Optimum, TransfersOverlapWithWhatCameBefore) {
  Blocks blocks(2);
  blocks.launch({0}, 100'000).launch({1}, 100'000);
  // Block 0 is there at 32 us, block 1 at 64 us, long before it is needed.
  const Optimum best = optimum(blocks.trace, round_numbers(), kUnlimited);
  EXPECT_EQ(best.total_ns, 232'000);
  EXPECT_EQ(best.to_device_bytes, 2 * kBlockBytes);
  EXPECT_EQ(best.to_host_bytes, 0u);
}

TEST(Optimum, WithoutRoomABlockWaitsForItsVictim) {
  Blocks blocks(2);
  blocks.launch({0}, 100'000).launch({1}, 100'000);
  // Block 0: 32 us, used until 132, out until 196; block 1 until 228.
  const Optimum best = optimum(blocks.trace, round_numbers(), kBlockBytes);
  EXPECT_EQ(best.total_ns, 328'000);
  EXPECT_EQ(best.to_host_bytes, kBlockBytes);
}

TEST(Optimum, TheBlockThatIsNeededLastLeaves) {
  Blocks blocks(3);
  blocks.launch({0}).launch({1}).launch({2}).launch({0}).launch({1});
  // With room for two: 1 leaves for 2 (0 is needed sooner), then 2, which is never needed again, leaves for 1.
  const Optimum best = optimum(blocks.trace, round_numbers(), 2 * kBlockBytes);
  EXPECT_EQ(best.to_device_bytes, 4 * kBlockBytes);
  EXPECT_EQ(best.to_host_bytes, 2 * kBlockBytes);
}

TEST(Optimum, WhatNobodyTouchedIsNotMoved) {
  Blocks blocks(1, Home::kNowhere);
  blocks.launch({0}, 500, true);
  const Optimum best = optimum(blocks.trace, round_numbers(), kUnlimited);
  EXPECT_EQ(best.total_ns, 500);
  EXPECT_EQ(best.to_device_bytes, 0u);
}

TEST(Optimum, TooLongATraceIsNotCalculated) {
  Blocks blocks(2);
  blocks.launch({0}).launch({1});
  EXPECT_FALSE(optimum(blocks.trace, round_numbers(), kUnlimited, 2).is_too_long);
  EXPECT_TRUE(optimum(blocks.trace, round_numbers(), kUnlimited, 1).is_too_long);
  EXPECT_TRUE(optimum(blocks.trace, round_numbers(), kBlockBytes - 1).is_impossible);
}

// Least misses are not least time in every single case, so sums are compared.
TEST(Optimum, IsBelowPlansAndBelowNoPlan) {
  std::mt19937 random(2);
  double sum_best = 0;
  double sum_none = 0;
  double sum_plan = 0;
  for (uint64_t round = 0; round < cases() / 20; ++round) {
    Blocks blocks(2 + random() % 10);
    const auto count = static_cast<uint32_t>(blocks.trace.allocations.size());
    for (uint32_t launch = 0; launch < 5 + random() % 30; ++launch) {
      blocks.launch({static_cast<uint32_t>(random() % count)}, static_cast<int64_t>(random() % 60'000));
    }
    const uint64_t capacity = (1 + random() % count) * kBlockBytes;
    const int64_t best = optimum(blocks.trace, round_numbers(), capacity).total_ns;
    PlannerOptions options;
    options.least_bytes = 0;
    const MadePlan plan = make_plan(blocks.trace, round_numbers(), capacity, options);
    sum_best += static_cast<double>(best);
    sum_none += static_cast<double>(simulate(blocks.trace, round_numbers(), capacity).total_ns);
    sum_plan += static_cast<double>(simulate(blocks.trace, round_numbers(), capacity, plan.schedule).total_ns);
  }
  EXPECT_LT(sum_best, sum_plan);
  EXPECT_LT(sum_plan, sum_none);
}

TEST(TransferBound, IsTheGreaterOfTransferAndKernels) {
  Blocks blocks(2);
  blocks.launch({0}, 10'000).launch({1}, 10'000).launch({0}, 10'000);
  EXPECT_EQ(transfer_bound_ns(blocks.trace, round_numbers()), 64'000);
  blocks.launch({1}, 70'000);
  EXPECT_EQ(transfer_bound_ns(blocks.trace, round_numbers()), 100'000);
}

}  // namespace
}  // namespace sonde::uvm
