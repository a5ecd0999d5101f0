// Helpers of the memory analysis: ids, sets of bytes, peaks of growing intervals, sharing.
#include <gtest/gtest.h>
#include <sonde/toolkit/growing_peak.h>
#include <sonde/toolkit/id_map.h>
#include <sonde/toolkit/interval_colouring.h>
#include <sonde/toolkit/interval_set.h>

#include <map>
#include <set>
#include <vector>

#include "cases.h"

namespace sonde::toolkit {
namespace {

using testing::cases;
using testing::Random;

using Values = std::vector<uint64_t>;

Values values(const IntervalSet &set) { return {set.edges().begin(), set.edges().end()}; }

TEST(IdMap, FindsWhatWasSetAndNothingElse) {
  IdMap map;
  EXPECT_EQ(map.find(7), IdMap::kNone);
  map.erase(7);
  map.set(7, 70);
  map.set(8, 80);
  map.set(7, 71);
  EXPECT_EQ(map.find(7), 71u);
  EXPECT_EQ(map.find(8), 80u);
  EXPECT_EQ(map.find(9), IdMap::kNone);
  EXPECT_EQ(map.size(), 2u);
  map.erase(7);
  EXPECT_EQ(map.find(7), IdMap::kNone);
  EXPECT_EQ(map.find(8), 80u);
}

TEST(IdMap, AgreesWithAStandardMap) {
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    IdMap map;
    std::map<uint64_t, uint32_t> wanted;
    for (int step = 0; step < 400; ++step) {
      const auto id = static_cast<uint64_t>(random.between(1, 90));
      if (random.between(0, 2) == 0) {
        map.erase(id);
        wanted.erase(id);
      } else {
        map.set(id, static_cast<uint32_t>(step));
        wanted[id] = static_cast<uint32_t>(step);
      }
      ASSERT_EQ(map.size(), wanted.size()) << seed;
    }
    for (uint64_t id = 1; id <= 90; ++id) {
      const auto found = wanted.find(id);
      ASSERT_EQ(map.find(id), found == wanted.end() ? IdMap::kNone : found->second) << seed;
    }
  }
}

TEST(IntervalSet, JoinsNeighboursThatTouch) {
  IntervalSet set;
  set.unite(Values{0, 10, 20, 30});
  set.unite(Values{10, 12, 40, 50});
  EXPECT_EQ(values(set), (Values{0, 12, 20, 30, 40, 50}));
  EXPECT_EQ(set.bytes(), 32u);
  set.unite(Values{12, 20});
  EXPECT_EQ(values(set), (Values{0, 30, 40, 50}));
  set.unite(Values{5, 25});
  EXPECT_EQ(values(set), (Values{0, 30, 40, 50})) << "it was there";
}

TEST(IntervalSet, SubtractLeavesTheRest) {
  IntervalSet set;
  set.assign(Values{0, 10, 20, 30});
  set.subtract(Values{5, 25});
  EXPECT_EQ(values(set), (Values{0, 5, 25, 30}));
  set.subtract(Values{0, 1, 2, 3, 28, 100});
  EXPECT_EQ(values(set), (Values{1, 2, 3, 5, 25, 28}));
  set.subtract(Values{0, 100});
  EXPECT_TRUE(set.empty());
}

TEST(IntervalSet, CoarsenFillsTheNarrowestHoles) {
  // Holes of 1, 5, 1 and 3 bytes; two must go: the two of 1.
  IntervalSet set;
  set.assign(Values{0, 1, 2, 3, 8, 9, 10, 11, 14, 15});
  EXPECT_EQ(set.coarsen(5), 0u);
  EXPECT_EQ(set.coarsen(3), 2u);
  EXPECT_EQ(values(set), (Values{0, 3, 8, 11, 14, 15}));
}

TEST(IntervalSet, WidestHoleLooksAtBothEnds) {
  IntervalSet set;
  EXPECT_EQ(set.widest_hole(100).bytes, 100u) << "nothing is touched";
  set.assign(Values{10, 20, 25, 60});
  EXPECT_EQ(set.widest_hole(100).begin, 60u);
  EXPECT_EQ(set.widest_hole(100).bytes, 40u);
  EXPECT_EQ(set.widest_hole(65).begin, 0u);
  EXPECT_EQ(set.widest_hole(65).bytes, 10u) << "0..10 is the first of the widest";
  EXPECT_EQ(set.widest_hole(60).bytes, 10u);
}

TEST(IntervalSet, AgreesWithASetOfNumbers) {
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    IntervalSet set;
    std::set<uint64_t> wanted;
    for (int step = 0; step < 30; ++step) {
      Values edges;
      uint64_t at = static_cast<uint64_t>(random.between(0, 20));
      for (int i = 0; i < 3; ++i) {
        const uint64_t end = at + static_cast<uint64_t>(random.between(1, 10));
        edges.insert(edges.end(), {at, end});
        at = end + static_cast<uint64_t>(random.between(1, 15));
      }
      uint64_t both = 0;
      for (size_t i = 0; i < edges.size(); i += 2) {
        for (uint64_t byte = edges[i]; byte < edges[i + 1]; ++byte) both += wanted.count(byte);
      }
      ASSERT_EQ(overlap_bytes(edges, set.edges()), both) << seed;
      const bool adds = random.between(0, 1) == 0;
      for (size_t i = 0; i < edges.size(); i += 2) {
        for (uint64_t byte = edges[i]; byte < edges[i + 1]; ++byte) {
          if (adds) {
            wanted.insert(byte);
          } else {
            wanted.erase(byte);
          }
        }
      }
      adds ? set.unite(edges) : set.subtract(edges);
      ASSERT_EQ(set.bytes(), wanted.size()) << seed;
      for (size_t i = 1; i + 1 < set.edges().size(); ++i) ASSERT_LT(set.edges()[i], set.edges()[i + 1]) << seed;
    }
  }
}

// One moment with the uses of some objects.
void moment(GrowingPeak &peak, uint64_t tag, std::vector<std::pair<uint32_t *, uint64_t>> uses) {
  peak.open(tag);
  for (auto &[place, bytes] : uses) peak.use(*place, bytes);
  peak.close();
}

TEST(GrowingPeak, AnObjectIsNeededBetweenItsUses) {
  // a (10) at 1 and 3, b (7) at 2: at 2 both are needed.
  GrowingPeak peak;
  uint32_t a = GrowingPeak::kNever, b = GrowingPeak::kNever;
  moment(peak, 1, {{&a, 10}});
  moment(peak, 2, {{&b, 7}});
  EXPECT_EQ(peak.greatest().value, 10u) << "that a is used again is not known yet";
  moment(peak, 3, {{&a, 10}});
  EXPECT_EQ(peak.greatest().value, 17u);
  EXPECT_EQ(peak.greatest().tag, 2u);
}

TEST(GrowingPeak, WhatIsNotUsedAgainIsNotNeeded) {
  GrowingPeak peak;
  uint32_t a = GrowingPeak::kNever, b = GrowingPeak::kNever;
  moment(peak, 1, {{&a, 10}});
  peak.leave(a);
  moment(peak, 2, {{&b, 7}});
  peak.leave(b);
  EXPECT_EQ(peak.greatest().value, 10u);
  EXPECT_EQ(peak.greatest().tag, 1u);
}

TEST(GrowingPeak, AUseTwiceInOneMomentCountsOnce) {
  GrowingPeak peak;
  uint32_t a = GrowingPeak::kNever;
  moment(peak, 1, {{&a, 10}, {&a, 10}});
  moment(peak, 2, {{&a, 10}});
  EXPECT_EQ(peak.greatest().value, 10u);
}

TEST(GrowingPeak, BytesBeyond4GiBDoNotWrap) {
  GrowingPeak peak;
  uint32_t a = GrowingPeak::kNever, b = GrowingPeak::kNever;
  moment(peak, 1, {{&a, uint64_t{5} << 30}, {&b, uint64_t{6} << 30}});
  EXPECT_EQ(peak.greatest().value, uint64_t{11} << 30);
}

TEST(GrowingPeak, AgreesWithIntervalsThatAreKnownBeforehand) {
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    constexpr int kMoments = 60;
    struct Object {
      uint32_t place = GrowingPeak::kNever;
      uint64_t bytes = 0;
      int first = -1, last = -1;
    };
    std::vector<Object> done, live;
    GrowingPeak peak;
    for (int now = 0; now < kMoments; ++now) {
      while (live.size() < 6) {
        live.emplace_back();
        live.back().bytes = static_cast<uint64_t>(random.between(0, 20));
      }
      peak.open(static_cast<uint64_t>(now));
      for (Object &object : live) {
        if (random.between(0, 2) != 0) continue;
        peak.use(object.place, object.bytes);
        if (object.first < 0) object.first = now;
        object.last = now;
      }
      peak.close();
      if (random.between(0, 1) == 0) {
        const auto which = static_cast<size_t>(random.between(0, static_cast<int64_t>(live.size()) - 1));
        peak.leave(live[which].place);
        done.push_back(live[which]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    done.insert(done.end(), live.begin(), live.end());
    uint64_t most = 0;
    for (int now = 0; now < kMoments; ++now) {
      uint64_t sum = 0;
      for (const Object &object : done) {
        if (object.first >= 0 && object.first <= now && now <= object.last) sum += object.bytes;
      }
      most = std::max(most, sum);
    }
    ASSERT_EQ(peak.greatest().value, most) << seed;
  }
}

TEST(Sharing, NeedsThatDoNotMeetShareASlot) {
  // a and c share, b meets both.
  const std::vector<Need> needs = {{1, 2, 100}, {2, 3, 60}, {3, 4, 80}};
  EXPECT_EQ(needed_bound(needs), 160u) << "a and b at 2: 160; b and c at 3: 140";
  const SlotPlan plan = share_slots(needs);
  EXPECT_EQ(plan.bytes, 160u);
  EXPECT_EQ(plan.slot_of[0], plan.slot_of[2]);
  EXPECT_NE(plan.slot_of[0], plan.slot_of[1]);
}

TEST(Sharing, NeedsThatMeetInOneMomentDoNotShare) {
  EXPECT_EQ(share_slots(std::vector<Need>{{1, 2, 10}, {2, 3, 10}}).bytes, 20u);
  EXPECT_EQ(share_slots(std::vector<Need>{{1, 2, 10}, {3, 4, 10}}).bytes, 10u);
}

TEST(Sharing, OffsetsLetTwoSmallOnesUseOneLarge) {
  // Slots need 100 + 50; at offsets b and c lie side by side where a was.
  const std::vector<Need> needs = {{1, 1, 100}, {2, 3, 50}, {3, 4, 50}};
  EXPECT_EQ(share_slots(needs).bytes, 150u);
  const OffsetPlan plan = pack_offsets(needs);
  EXPECT_EQ(plan.bytes, 100u);
  EXPECT_EQ(plan.bytes, needed_bound(needs)) << "no packing takes less";
}

TEST(Sharing, NothingNeedsNothing) {
  EXPECT_EQ(needed_bound({}), 0u);
  EXPECT_EQ(share_slots({}).bytes, 0u);
  EXPECT_EQ(pack_offsets({}).bytes, 0u);
}

TEST(Sharing, PlansWorkAndTakeNoLessThanTheBound) {
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    std::vector<Need> needs;
    uint64_t sum = 0;
    for (int i = 0; i < 25; ++i) {
      const auto first = static_cast<uint64_t>(random.between(0, 30));
      needs.push_back(
          {first, first + static_cast<uint64_t>(random.between(0, 10)), static_cast<uint64_t>(random.between(1, 64))});
      sum += needs.back().bytes;
    }
    const SlotPlan slots = share_slots(needs);
    const OffsetPlan offsets = pack_offsets(needs);
    ASSERT_GE(slots.bytes, needed_bound(needs)) << seed;
    ASSERT_GE(offsets.bytes, needed_bound(needs)) << seed;
    ASSERT_LE(slots.bytes, sum) << seed;
    ASSERT_LE(offsets.bytes, sum) << seed;
    for (size_t a = 0; a < needs.size(); ++a) {
      ASSERT_GE(slots.slot_bytes[slots.slot_of[a]], needs[a].bytes) << seed;
      ASSERT_LE(offsets.offset_of[a] + needs[a].bytes, offsets.bytes) << seed;
      for (size_t b = 0; b < a; ++b) {
        if (needs[a].first > needs[b].last || needs[b].first > needs[a].last) continue;
        ASSERT_NE(slots.slot_of[a], slots.slot_of[b]) << seed;
        ASSERT_TRUE(offsets.offset_of[a] + needs[a].bytes <= offsets.offset_of[b] ||
                    offsets.offset_of[b] + needs[b].bytes <= offsets.offset_of[a])
            << seed;
      }
    }
  }
}

}  // namespace
}  // namespace sonde::toolkit
