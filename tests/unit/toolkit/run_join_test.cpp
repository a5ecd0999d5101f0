// Joining two runs: launches, ranges, times, addresses.
#include <gtest/gtest.h>
#include <sonde/toolkit/run_join.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "cases.h"

namespace sonde::toolkit {
namespace {

using testing::Random;
using Kind = AddressTranslation::Kind;

constexpr int64_t kForEver = std::numeric_limits<int64_t>::max();

JoinLane stream_lane(uint64_t stream, uint32_t device = 0) {
  JoinLane lane;
  lane.device = device;
  lane.stream = stream;
  return lane;
}

// Launches on one stream, a letter each.
JoinLaunches launches(std::string_view letters, uint64_t stream = 1) {
  JoinLaunches run;
  int64_t time = 0;
  for (const char letter : letters) run.add(stream_lane(stream), ++time, 0, 0, static_cast<uint32_t>(letter));
  return run;
}

TEST(JoinOfLaunches, OfOneRunWithItselfIsTheIdentity) {
  const JoinLaunches run = launches("abcabc");
  const Join join = join_launches(run, run);
  EXPECT_EQ(join.a_of_b, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(join.b_of_a, join.a_of_b);
  EXPECT_EQ(join.mismatches(), 0u);
}

TEST(JoinOfLaunches, PassesOverMissingAndExtraOnes) {
  const Join join = join_launches(launches("abcde"), launches("abxde"));
  EXPECT_EQ(join.a_of_b, (std::vector<uint32_t>{0, 1, kNoPartner, 3, 4}));
  EXPECT_EQ(join.only_a, 1u);
  EXPECT_EQ(join.only_b, 1u);
}

TEST(JoinOfLaunches, FindsNeighboursThatChangedPlaces) {
  const Join join = join_launches(launches("abxycd"), launches("abyxcd"));
  EXPECT_EQ(join.matched, 6u);
  EXPECT_EQ(join.out_of_order, 1u);
  EXPECT_EQ(join.a_of_b, (std::vector<uint32_t>{0, 1, 3, 2, 4, 5}));
}

TEST(JoinOfLaunches, LeavesApartWhatLiesTooFarApart) {
  JoinOptions options;
  options.most_apart = 3;
  const Join join = join_launches(launches("xabcdefgh"), launches("abcdefghx"), options);
  EXPECT_EQ(join.matched, 8u);
  EXPECT_EQ(join.only_a, 1u);
  EXPECT_EQ(join.only_b, 1u);
}

TEST(JoinOfLaunches, OrdersALaneByTimeNotByArrival) {
  JoinLaunches a;
  a.add(stream_lane(1), 20, 0, 0, 'b');
  a.add(stream_lane(1), 10, 0, 0, 'a');
  const Join join = join_launches(a, launches("ab"));
  EXPECT_EQ(join.a_of_b, (std::vector<uint32_t>{1, 0}));
}

TEST(JoinOfLaunches, MatchesNothingAcrossDevices) {
  JoinLaunches a;
  JoinLaunches b;
  a.add(stream_lane(1, 0), 1, 0, 0, 'a');
  b.add(stream_lane(1, 1), 1, 0, 0, 'a');
  EXPECT_EQ(join_launches(a, b).matched, 0u);
}

// An extra launch on one stream makes it resemble the other one more; order of first use decides among the similar.
TEST(JoinOfLaunches, DoesNotSwapStreamsForTheSakeOfOneLaunch) {
  JoinLaunches a;
  JoinLaunches b;
  int64_t time = 0;
  const auto add = [&time](JoinLaunches &run, uint64_t stream, int count) {
    for (int number = 0; number < count; ++number) run.add(stream_lane(stream), ++time, 0, 0, 'a');
  };
  add(a, 1, 100);
  add(a, 2, 101);
  add(b, 11, 101);
  add(b, 12, 102);
  EXPECT_EQ(join_launches(a, b).lane_a_of_b, (std::vector<uint32_t>{0, 1}));
}

// Any interleaving of streams, other handles, another order of first use: with kernels of its own each stream finds
// its partner, and order within it holds.
TEST(JoinOfLaunches, DoesNotDependOnInterleaving) {
  for (int seed = 0; seed < testing::cases(); ++seed) {
    Random random(seed);
    const auto streams = static_cast<size_t>(random.between(1, 5));
    std::vector<std::vector<uint32_t>> keys(streams);
    for (size_t stream = 0; stream < streams; ++stream) {
      const int64_t count = random.between(1, 30);
      for (int64_t number = 0; number < count; ++number) {
        keys[stream].push_back(static_cast<uint32_t>(100 * stream) + static_cast<uint32_t>(random.between(0, 3)));
      }
    }
    const auto interleave = [&](uint64_t first_handle, std::vector<std::pair<size_t, size_t>> &order) {
      JoinLaunches run;
      std::vector<size_t> next(streams, 0);
      int64_t time = 0;
      size_t left = 0;
      for (const auto &stream : keys) left += stream.size();
      while (left > 0) {
        const auto stream = static_cast<size_t>(random.between(0, static_cast<int64_t>(streams) - 1));
        if (next[stream] == keys[stream].size()) continue;
        run.add(stream_lane(first_handle + stream), ++time, 0, 0, keys[stream][next[stream]]);
        order.emplace_back(stream, next[stream]++);
        --left;
      }
      return run;
    };
    std::vector<std::pair<size_t, size_t>> a_order;
    std::vector<std::pair<size_t, size_t>> b_order;
    const JoinLaunches a = interleave(7, a_order);
    const JoinLaunches b = interleave(1000, b_order);
    const Join join = join_launches(a, b);
    ASSERT_EQ(join.mismatches(), 0u) << "seed " << seed;
    for (size_t index = 0; index < b_order.size(); ++index) {
      EXPECT_EQ(a_order[join.a_of_b[index]], b_order[index]) << "seed " << seed;
    }
  }
}

// Whatever is removed from and added to either run, partners have one key, no launch has two, and every one is counted.
TEST(JoinOfLaunches, IsAPartialMatching) {
  for (int seed = 0; seed < testing::cases(); ++seed) {
    Random random(seed);
    const auto random_run = [&random] {
      JoinLaunches run;
      const int64_t count = random.between(0, 80);
      for (int64_t number = 0; number < count; ++number) {
        run.add(stream_lane(static_cast<uint64_t>(random.between(1, 3))), random.between(0, 50), 0, 0,
                static_cast<uint32_t>(random.between(0, 4)));
      }
      return run;
    };
    const JoinLaunches a = random_run();
    const JoinLaunches b = random_run();
    const Join join = join_launches(a, b, {static_cast<size_t>(random.between(2, 20)), 8});
    uint64_t partners = 0;
    for (uint32_t index = 0; index < join.a_of_b.size(); ++index) {
      const uint32_t partner = join.a_of_b[index];
      if (partner == kNoPartner) continue;
      ++partners;
      EXPECT_EQ(join.b_of_a[partner], index);
      EXPECT_EQ(a.launches()[partner].key, b.launches()[index].key);
    }
    EXPECT_EQ(partners, join.matched);
    EXPECT_EQ(join.matched + join.only_a, a.launches().size());
    EXPECT_EQ(join.matched + join.only_b, b.launches().size());
  }
}

std::vector<JoinRange> ranges(const std::vector<uint64_t> &sizes, uint64_t first_address) {
  std::vector<JoinRange> made;
  for (size_t index = 0; index < sizes.size(); ++index) {
    made.push_back({first_address + index * 0x1000, sizes[index], static_cast<int64_t>(index), kForEver, 0});
  }
  return made;
}

TEST(JoinOfRanges, MatchesByOrderAndSize) {
  const Join join = join_ranges(ranges({8, 16, 24, 32}, 0x1000), ranges({8, 24, 32, 40}, 0x9000));
  EXPECT_EQ(join.a_of_b, (std::vector<uint32_t>{0, 2, 3, kNoPartner}));
  EXPECT_EQ(join.only_a, 1u);
  EXPECT_EQ(join.only_b, 1u);
}

TEST(JoinOfRanges, CountsOtherSizesBetweenTheSameNeighbours) {
  const Join join = join_ranges(ranges({8, 100, 24}, 0x1000), ranges({8, 200, 24}, 0x9000));
  EXPECT_EQ(join.a_of_b, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(join.size_differs, 1u);
  EXPECT_EQ(join.only_a + join.only_b, 0u);
}

TEST(LivesOfRanges, EndWithTheirFreeOrWithWhatOverlapsThem) {
  RangeLives lives;
  lives.release(30, 0, 0x1000);
  lives.allocate(10, 0, 0x1000, 0x100, 0, 1);
  lives.allocate(40, 0, 0x1080, 0x100, 0, 2);
  lives.allocate(50, 0, 0x1100, 0x100, 0, 3);  // over the second, whose free was not seen
  lives.allocate(45, 1, 0x1080, 0x10, 0, 4);   // a layer of its own
  lives.release(60, 0, 0x9999);
  uint64_t unmatched = 0;
  const std::vector<RangeLives::Life> found = lives.take(&unmatched);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(unmatched, 1u);
  std::vector<std::pair<uint64_t, int64_t>> ends;
  for (const RangeLives::Life &life : found) ends.emplace_back(life.tag, life.range.end_ns);
  EXPECT_EQ(ends, (std::vector<std::pair<uint64_t, int64_t>>{{1, 30}, {2, 50}, {4, kForEver}, {3, kForEver}}));
}

TEST(Warp, GoesThroughItsMomentsAndStraightBetweenThem) {
  const TimeWarp warp({{200, 1020}, {100, 1010}}, 0);
  EXPECT_EQ(warp(100), 1010);
  EXPECT_EQ(warp(150), 1015);
  EXPECT_EQ(warp(200), 1020);
  EXPECT_EQ(warp(90), 1000);
  EXPECT_EQ(warp(260), 1080);
}

TEST(Warp, WithoutMomentsIsTheOffset) { EXPECT_EQ(TimeWarp({}, -30)(100), 70); }

TEST(Warp, NeverDescendsAndKeepsMostMoments) {
  for (int seed = 0; seed < testing::cases(); ++seed) {
    Random random(seed);
    std::vector<std::pair<int64_t, int64_t>> moments;
    const int64_t count = random.between(0, 40);
    for (int64_t number = 0; number < count; ++number) {
      // In order but for some outliers.
      const int64_t disorder = random.between(0, 9) == 0 ? random.between(-2000, 2000) : 0;
      moments.emplace_back(number * 100 + random.between(0, 99), 50'000 + number * 10 + disorder);
    }
    const TimeWarp warp(moments, 0);
    int64_t last = warp(-500);
    for (int64_t ns = -499; ns < 4600; ns += random.between(1, 20)) {
      const int64_t now = warp(ns);
      ASSERT_GE(now, last) << "seed " << seed << " at " << ns;
      last = now;
    }
    size_t outliers = 0;
    for (int64_t number = 0; number < count; ++number) {
      if (moments[static_cast<size_t>(number)].second != 50'000 + number * 10) ++outliers;
    }
    EXPECT_GE(warp.moments() + outliers, static_cast<size_t>(count)) << "seed " << seed;
  }
}

RangeLives::Life life(uint64_t address, uint64_t bytes, int64_t begin, int64_t end, uint32_t layer = 0) {
  return {{address, bytes, begin, end, 0}, layer, 0};
}

TEST(Translation, FollowsTheRangeThatLivedThen) {
  AddressTranslation addresses({life(0x1000, 0x100, 10, 20), life(0x1000, 0x100, 20, 30)}, {0, 1},
                               {{0x5000, 0x100, 1, 2, 0}, {0x7000, 0x100, 2, 3, 0}});
  EXPECT_EQ(addresses.translate(0x1010, 15).address, 0x5010u);
  EXPECT_EQ(addresses.translate(0x1010, 20).address, 0x7010u);
  EXPECT_EQ(addresses.translate(0x1010, 10).address, 0x5010u);  // back in time
  EXPECT_EQ(addresses.translate(0x1010, 9).kind, Kind::kNoRange);
  EXPECT_EQ(addresses.translate(0x1010, 30).kind, Kind::kNoRange);
  EXPECT_EQ(addresses.translate(0x1100, 15).kind, Kind::kNoRange);
}

TEST(Translation, MarksWhatWouldBeMistakenForSomethingOfA) {
  AddressTranslation addresses({life(0x1000, 0x100, 0, kForEver), life(0x2000, 0x1000, 0, kForEver)},
                               {kNoPartner, kNoPartner}, {{0x2800, 0x10, 0, kForEver, 0}});
  const auto free_of_a = addresses.translate(0x1004, 5);
  EXPECT_EQ(free_of_a.address, 0x1004u);
  EXPECT_EQ(free_of_a.kind, Kind::kOnlyInB);
  EXPECT_FALSE(free_of_a.is_moved);
  // The whole range is marked, though this address alone is nothing in A.
  const auto marked = addresses.translate(0x2004, 5);
  EXPECT_EQ(marked.address, 0x2004u | AddressTranslation::kElsewhere);
  EXPECT_TRUE(marked.is_moved);
}

TEST(Translation, PrefersTheInnermostRangeThatHoldsAllBytes) {
  AddressTranslation addresses({life(0x1000, 0x1000, 0, kForEver), life(0x1000, 0x100, 0, kForEver, 1)}, {0, 1},
                               {{0x50000, 0x1000, 0, kForEver, 0}, {0x50800, 0x100, 0, kForEver, 0}});
  EXPECT_EQ(addresses.translate(0x1010, 1).address, 0x50810u);
  EXPECT_EQ(addresses.translate(0x1000, 1, 0x1000).address, 0x50000u);
  EXPECT_EQ(addresses.translate(0x1200, 1).address, 0x50200u);
}

// Against a search through all lives, at moments in random order.
TEST(Translation, IsThatOfAPlainSearch) {
  for (int seed = 0; seed < testing::cases(); ++seed) {
    Random random(seed);
    RangeLives events;
    const int64_t count = random.between(0, 60);
    for (int64_t number = 0; number < count; ++number) {
      const auto address = static_cast<uint64_t>(random.between(0, 30) * 16);
      const int64_t time = random.between(0, 100);
      if (random.between(0, 2) == 0) {
        events.release(time, 0, address);
      } else {
        events.allocate(time, 0, address, static_cast<uint64_t>(random.between(1, 64)), 0, 0);
      }
    }
    uint64_t unmatched = 0;
    const std::vector<RangeLives::Life> lives = events.take(&unmatched);
    std::vector<JoinRange> a;
    std::vector<uint32_t> partners;
    for (uint32_t index = 0; index < lives.size(); ++index) {
      a.push_back({0x10000 + index * 0x100, 64, 0, kForEver, 0});
      partners.push_back(index);
    }
    AddressTranslation addresses(lives, partners, a);
    for (int probe = 0; probe < 60; ++probe) {
      const auto address = static_cast<uint64_t>(random.between(0, 600));
      const int64_t time = random.between(-1, 101);
      uint64_t expected = address;
      int found = 0;
      for (uint32_t index = 0; index < lives.size(); ++index) {
        const JoinRange &range = lives[index].range;
        if (time < range.begin_ns || time >= range.end_ns) continue;
        if (address < range.address || address >= range.address + range.bytes) continue;
        expected = a[index].address + (address - range.address);
        ++found;
      }
      ASSERT_LE(found, 1) << "lives overlap, seed " << seed;
      EXPECT_EQ(addresses.translate(address, time).address, expected) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace sonde::toolkit
