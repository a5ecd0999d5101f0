#include <gtest/gtest.h>
#include <sonde/toolkit/reorder.h>
#include <sonde/toolkit/sweep.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "cases.h"

namespace sonde::toolkit {
namespace {

using sonde::testing::cases;
using sonde::testing::Random;

using Piece = std::tuple<int64_t, int64_t, uint32_t>;

std::vector<Piece> sweep(const std::vector<std::pair<int64_t, int64_t>> &intervals) {
  std::vector<Piece> pieces;
  const auto give = [&](const Segment<1> &segment) {
    pieces.emplace_back(segment.begin, segment.end, segment.total());
  };
  SegmentSweep<1> sweep;
  for (const auto &[begin, end] : intervals) sweep.add(begin, end, 0, give);
  sweep.finish(give);
  return pieces;
}

TEST(SegmentSweep, CountsOverlapsAndGaps) {
  EXPECT_EQ(sweep({{0, 10}, {5, 15}, {20, 30}}),
            (std::vector<Piece>{{0, 5, 1}, {5, 10, 2}, {10, 15, 1}, {15, 20, 0}, {20, 30, 1}}));
}

TEST(SegmentSweep, SeesNoOverlapWhereOneEndsAndAnotherBegins) {
  EXPECT_EQ(sweep({{0, 10}, {10, 20}}), (std::vector<Piece>{{0, 10, 1}, {10, 20, 1}}));
}

TEST(SegmentSweep, OpensNothingForAnEmptyInterval) {
  EXPECT_EQ(sweep({{0, 10}, {4, 4}, {12, 12}, {14, 15}}),
            (std::vector<Piece>{{0, 4, 1}, {4, 10, 1}, {10, 12, 0}, {12, 14, 0}, {14, 15, 1}}));
}

TEST(SegmentSweep, CountsALongIntervalOverOthersOnce) {
  // 1.6 s that run past what follows: the union is 1.6 s, not the sum.
  int64_t busy = 0;
  const auto give = [&](const Segment<1> &segment) { busy += segment.total() > 0 ? segment.length() : 0; };
  SegmentSweep<1> sweep;
  sweep.add(0, 1'600'000'000, 0, give);
  sweep.add(100'000, 200'000, 0, give);
  sweep.finish(give);
  EXPECT_EQ(busy, 1'600'000'000);
}

TEST(SegmentSweep, CutsWhatComesLateAndCountsIt) {
  std::vector<Piece> pieces;
  const auto give = [&](const Segment<1> &segment) {
    pieces.emplace_back(segment.begin, segment.end, segment.total());
  };
  SegmentSweep<1> sweep;
  sweep.add(100, 110, 0, give);
  sweep.add(90, 105, 0, give);  // 10 of its 15 lie before 100
  sweep.add(10, 20, 0, give);   // lies wholly before
  sweep.finish(give);
  EXPECT_EQ(pieces, (std::vector<Piece>{{100, 105, 2}, {105, 110, 1}}));
  EXPECT_EQ(sweep.late(), 2u);
  EXPECT_EQ(sweep.late_time(), 20);
}

TEST(SegmentSweep, KeepsClassesApart) {
  std::vector<std::array<uint32_t, 2>> seen;
  const auto give = [&](const Segment<2> &segment) { seen.push_back(segment.active); };
  SegmentSweep<2> sweep;
  sweep.add(0, 10, 0, give);
  sweep.add(5, 20, 1, give);
  sweep.finish(give);
  EXPECT_EQ(seen, (std::vector<std::array<uint32_t, 2>>{{1, 0}, {1, 1}, {0, 1}}));
}

TEST(SegmentSweep, AgreesWithCountingEachInstant) {
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    constexpr int64_t kEnd = 60;
    std::vector<std::pair<int64_t, int64_t>> intervals(static_cast<size_t>(random.between(1, 12)));
    for (auto &[begin, end] : intervals) {
      begin = random.between(0, kEnd - 1);
      end = random.between(begin, kEnd);
    }
    std::sort(intervals.begin(), intervals.end());
    int64_t last = 0;
    std::vector<uint32_t> expected(kEnd, 0);
    for (const auto &[begin, end] : intervals) {
      last = std::max({last, begin, end});
      for (int64_t t = begin; t < end; ++t) ++expected[static_cast<size_t>(t)];
    }
    int64_t at = intervals.front().first;
    for (const auto &[begin, end, total] : sweep(intervals)) {
      ASSERT_EQ(begin, at) << "segments are contiguous, seed " << seed;
      ASSERT_LT(begin, end) << "seed " << seed;
      for (int64_t t = begin; t < end; ++t) ASSERT_EQ(total, expected[static_cast<size_t>(t)]) << "seed " << seed;
      at = end;
    }
    ASSERT_EQ(at, last) << "seed " << seed;
  }
}

TEST(ReorderBuffer, SortsWhatItsCapacityCovers) {
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    const int64_t capacity = random.between(0, 8);
    std::vector<std::pair<int64_t, int>> items(static_cast<size_t>(random.between(0, 60)));
    for (auto &[time, number] : items) time = random.between(0, 30);
    std::stable_sort(items.begin(), items.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    // Shuffled within blocks of capacity + 1, no item comes after more than `capacity` later ones.
    for (size_t i = 0; i < items.size(); i += static_cast<size_t>(capacity) + 1) {
      const auto block_end = std::min(items.size(), i + static_cast<size_t>(capacity) + 1);
      std::shuffle(items.begin() + static_cast<std::ptrdiff_t>(i),
                   items.begin() + static_cast<std::ptrdiff_t>(block_end), random.engine());
    }
    for (size_t i = 0; i < items.size(); ++i) items[i].second = static_cast<int>(i);
    std::vector<std::pair<int64_t, int>> expected = items;
    std::stable_sort(expected.begin(), expected.end(), [](const auto &a, const auto &b) { return a.first < b.first; });

    std::vector<std::pair<int64_t, int>> out;
    const auto give = [&](int64_t time, int number) { out.emplace_back(time, number); };
    ReorderBuffer<int> buffer(static_cast<size_t>(capacity));
    for (const auto &[time, number] : items) {
      buffer.push(time, number, give);
      ASSERT_LE(buffer.size(), static_cast<size_t>(capacity)) << "seed " << seed;
    }
    buffer.finish(give);
    ASSERT_EQ(out, expected) << "seed " << seed;
  }
}

TEST(ReorderBuffer, GivesOutLateWhatCameTooLate) {
  std::vector<int64_t> out;
  const auto give = [&](int64_t time, char) { out.push_back(time); };
  ReorderBuffer<char> buffer(1);
  for (const int64_t time : {10, 20, 30, 5}) buffer.push(time, 'x', give);
  buffer.finish(give);
  EXPECT_EQ(out, (std::vector<int64_t>{10, 20, 5, 30}));
}

}  // namespace
}  // namespace sonde::toolkit
