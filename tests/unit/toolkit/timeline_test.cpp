#include <gtest/gtest.h>
#include <sonde/toolkit/timeline.h>

#include <algorithm>
#include <map>

#include "cases.h"

namespace sonde::toolkit {
namespace {

using sonde::testing::cases;
using sonde::testing::Random;

TEST(Timeline, JoinsNeighboursWhenATimeDoesNotFit) {
  Timeline timeline(4);
  timeline.set(0, 10);
  timeline.set(1, 0);
  timeline.set(2, 5);
  timeline.set(3, 7);
  timeline.set(4, 1);  // does not fit 4 buckets of 1: now 2 wide
  const auto points = timeline.points();
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(timeline.width(), 2);
  EXPECT_EQ(points[0].begin, 0);
  EXPECT_EQ(points[0].last, 0u);
  EXPECT_EQ(points[0].peak, 10u);
  EXPECT_EQ(points[1].last, 7u);
  EXPECT_EQ(points[1].peak, 7u);
  EXPECT_EQ(points[2].last, 1u);
  EXPECT_EQ(points[2].peak, 7u) << "the level before the event held at the begin of its bucket";
}

TEST(Timeline, SpansTheWholeRangeOfTimes) {
  Timeline timeline(2);
  timeline.set(INT64_MIN, 1);
  timeline.set(INT64_MAX, 2);
  ASSERT_EQ(timeline.points().size(), 2u);
  EXPECT_EQ(timeline.points()[0].begin, INT64_MIN);
}

TEST(Timeline, NeverLosesAPeakAndStaysWithinItsBound) {
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    const auto limit = static_cast<uint32_t>(random.between(2, 9));
    Timeline timeline(limit);
    std::map<int64_t, uint64_t> levels;
    int64_t time = random.between(-50, 50);
    uint64_t peak = 0;
    uint64_t last = 0;
    for (int64_t i = random.between(1, 60); i > 0; --i) {
      time += random.between(0, 20);
      last = static_cast<uint64_t>(random.between(0, 100));
      timeline.set(time, last);
      peak = std::max(peak, last);
      levels[time] = last;
    }
    const auto points = timeline.points();
    ASSERT_LE(points.size(), limit) << "seed " << seed;
    uint64_t seen = 0;
    for (const auto &point : points) {
      seen = std::max(seen, point.peak);
      // The last level set before the bucket's end.
      auto it = levels.lower_bound(point.begin + timeline.width());
      ASSERT_NE(it, levels.begin()) << "seed " << seed;
      ASSERT_EQ(point.last, std::prev(it)->second) << "seed " << seed;
    }
    ASSERT_EQ(seen, peak) << "seed " << seed;
    ASSERT_EQ(points.back().last, last) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sonde::toolkit
