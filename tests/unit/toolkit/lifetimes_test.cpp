#include <gtest/gtest.h>
#include <sonde/toolkit/lifetime_map.h>

#include <vector>

#include "cases.h"

namespace sonde::toolkit {
namespace {

using sonde::testing::cases;
using sonde::testing::Random;
using Map = LifetimeMap<char>;

TEST(LifetimeMap, FindsTheFirstLifeOfAnAddressThatIsUsedAgain) {
  // Allocated with 1 KiB, freed, allocated with 2 KiB; a kernel of the first life is looked up late.
  Map map(16);
  map.begin(0x1000, 1024, 10, 'a');
  ASSERT_TRUE(map.end(0x1000, 20));
  map.begin(0x1000, 2048, 30, 'b');
  ASSERT_NE(map.find(0x1000, 15), nullptr);
  EXPECT_EQ(map.find(0x1000, 15)->value, 'a');
  EXPECT_EQ(map.find(0x1000, 15)->bytes, 1024u);
  EXPECT_EQ(map.find(0x1000 + 1500, 40)->value, 'b');
  EXPECT_EQ(map.find(0x1000 + 1500, 15), nullptr) << "beyond the first life's bytes";
  EXPECT_EQ(map.find(0x1000, 25), nullptr) << "between the lives";
  EXPECT_NE(map.find(0x1000, 15)->id, map.find(0x1000, 40)->id);
}

TEST(LifetimeMap, EndsWhatANewRangeOverlaps) {
  Map map;
  map.begin(100, 50, 1, 'a');
  map.begin(150, 50, 1, 'b');  // touches, does not overlap
  map.begin(300, 10, 1, 'c');
  const auto replaced = map.begin(140, 20, 5, 'd');
  ASSERT_EQ(replaced.size(), 2u);
  EXPECT_EQ(replaced[0].value, 'a');
  EXPECT_EQ(replaced[1].value, 'b');
  EXPECT_EQ(replaced[0].end, 5);
  EXPECT_EQ(map.live_bytes(), 30u);
  EXPECT_EQ(map.live_count(), 2u);
}

TEST(LifetimeMap, TakesAnEndWithoutABeginAsData) {
  Map map;
  EXPECT_FALSE(map.end(0x7ffc919e0000, 5));
  EXPECT_EQ(map.live_count(), 0u);
}

TEST(LifetimeMap, HoldsTheTopOfTheAddressSpace) {
  Map map;
  map.begin(0xffffffffffffff00, 0x100, 1, 'a');
  EXPECT_NE(map.find(0xffffffffffffffff, 1), nullptr);
  EXPECT_EQ(map.begin(0xfffffffffffffff0, 0x10, 2, 'b').size(), 1u);
}

TEST(LifetimeMap, ForgetsTheOldestEndedFirst) {
  Map map(2);
  for (int64_t i = 0; i < 3; ++i) {
    map.begin(static_cast<uint64_t>(i) * 100, 10, i * 10, 'x');
    map.end(static_cast<uint64_t>(i) * 100, i * 10 + 5);
  }
  EXPECT_EQ(map.find(0, 1), nullptr);
  EXPECT_NE(map.find(100, 11), nullptr);
  EXPECT_NE(map.find(200, 21), nullptr);
}

TEST(LifetimeMap, AgreesWithAListOfAllRanges) {
  struct Range {
    uint64_t address, bytes;
    int64_t begin, end;
    bool overlaps(uint64_t at, uint64_t length) const {
      return at < address + std::max<uint64_t>(bytes, 1) && address < at + std::max<uint64_t>(length, 1);
    }
  };
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    Map map(1000);
    std::vector<Range> ranges;
    int64_t time = 0;
    const int steps = static_cast<int>(random.between(1, 40));
    for (int step = 0; step < steps; ++step) {
      time += random.between(0, 3);
      const auto address = static_cast<uint64_t>(random.between(0, 40));
      if (random.between(0, 2) != 0) {
        const auto bytes = static_cast<uint64_t>(random.between(0, 12));
        size_t replaced = 0;
        for (Range &range : ranges) {
          if (range.end == Map::kAlive && range.overlaps(address, bytes)) {
            range.end = time;
            ++replaced;
          }
        }
        ranges.push_back({address, bytes, time, Map::kAlive});
        ASSERT_EQ(map.begin(address, bytes, time, 'x').size(), replaced) << "seed " << seed;
      } else {
        bool found = false;
        for (Range &range : ranges) {
          if (range.end == Map::kAlive && range.address == address) {
            range.end = time;
            found = true;
          }
        }
        ASSERT_EQ(map.end(address, time).has_value(), found) << "seed " << seed;
      }
      uint64_t live_bytes = 0;
      for (const Range &range : ranges) live_bytes += range.end == Map::kAlive ? range.bytes : 0;
      ASSERT_EQ(map.live_bytes(), live_bytes) << "seed " << seed;
    }
    for (uint64_t at = 0; at < 55; ++at) {
      for (int64_t moment = 0; moment <= time; ++moment) {
        const Range *expected = nullptr;
        for (const Range &range : ranges) {
          if (range.overlaps(at, 1) && range.begin <= moment && moment < range.end) expected = &range;
        }
        const Map::Object *const found = map.find(at, moment);
        ASSERT_EQ(found != nullptr, expected != nullptr) << "seed " << seed << " at " << at << " time " << moment;
        if (found != nullptr) {
          ASSERT_EQ(found->address, expected->address) << "seed " << seed;
          ASSERT_EQ(found->begin, expected->begin) << "seed " << seed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sonde::toolkit
