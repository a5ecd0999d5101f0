#include <gtest/gtest.h>
#include <sonde/toolkit/log2_histogram.h>
#include <sonde/toolkit/quantiles.h>
#include <sonde/toolkit/statistics.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cases.h"

namespace sonde::toolkit {
namespace {

using sonde::testing::cases;
using sonde::testing::Random;

TEST(Statistics, OfAWorkedExample) {
  // Sum 40, mean 5, squared distances 9+1+1+1+0+0+4+16 = 32, variance 32/8 = 4.
  Statistics statistics;
  for (const int64_t value : {2, 4, 4, 4, 5, 5, 7, 9}) statistics.add(value);
  EXPECT_EQ(statistics.count(), 8u);
  EXPECT_EQ(statistics.sum_i64(), 40);
  EXPECT_EQ(statistics.min(), 2);
  EXPECT_EQ(statistics.max(), 9);
  EXPECT_DOUBLE_EQ(statistics.mean(), 5);
  EXPECT_DOUBLE_EQ(statistics.variance(), 4);
}

TEST(Statistics, OfNothingAreZero) {
  const Statistics statistics;
  EXPECT_EQ(statistics.count(), 0u);
  EXPECT_EQ(statistics.min(), 0);
  EXPECT_EQ(statistics.max(), 0);
  EXPECT_EQ(statistics.mean(), 0);
  EXPECT_EQ(statistics.variance(), 0);
}

TEST(Statistics, KeepASmallSpreadAroundALargeMean) {
  // In doubles the squares (10^36) would swallow the spread: the distances are 1 and 1, so the variance is 1.
  Statistics statistics;
  statistics.add(1'000'000'000'000'000'000);
  statistics.add(1'000'000'000'000'000'002);
  EXPECT_DOUBLE_EQ(statistics.variance(), 1);
}

TEST(Statistics, HoldTheEndsOfTheRange) {
  Statistics statistics;
  statistics.add(INT64_MIN);
  statistics.add(INT64_MAX);
  // The sum is -1; each value lies (2^64 - 1) / 2 from the mean.
  EXPECT_EQ(statistics.sum_i64(), -1);
  EXPECT_DOUBLE_EQ(statistics.mean(), -0.5);
  EXPECT_DOUBLE_EQ(statistics.variance(), std::ldexp(1.0, 126));
  Statistics same;
  for (int i = 0; i < 5; ++i) same.add(INT64_MIN);
  EXPECT_EQ(same.sum_i64(), INT64_MIN) << "held at the end of int64";
  EXPECT_EQ(same.variance(), 0);
}

TEST(Statistics, AgreeWithTheDefinitionAndDoNotDependOnOrder) {
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    std::vector<int64_t> values(static_cast<size_t>(random.between(1, 50)));
    for (int64_t &value : values) value = random.between(-1000, 1000);
    long double mean = 0;
    for (const int64_t value : values) mean += static_cast<long double>(value);
    mean /= static_cast<long double>(values.size());
    long double variance = 0;
    for (const int64_t value : values)
      variance += (static_cast<long double>(value) - mean) * (static_cast<long double>(value) - mean);
    variance /= static_cast<long double>(values.size());

    Statistics all, first, second;
    for (size_t i = 0; i < values.size(); ++i) {
      all.add(values[i]);
      (i % 3 == 0 ? first : second).add(values[i]);
    }
    second.merge(first);
    ASSERT_NEAR(all.mean(), static_cast<double>(mean), 1e-9) << "seed " << seed;
    ASSERT_NEAR(all.variance(), static_cast<double>(variance), 1e-6) << "seed " << seed;
    ASSERT_EQ(all.variance(), second.variance()) << "seed " << seed;
    ASSERT_EQ(all.sum_i64(), second.sum_i64()) << "seed " << seed;
    ASSERT_EQ(all.min(), *std::min_element(values.begin(), values.end())) << "seed " << seed;
    ASSERT_EQ(second.max(), *std::max_element(values.begin(), values.end())) << "seed " << seed;
  }
}

TEST(Quantiles, AreTheNearestRank) {
  // Of 1..10: rank ceil(10/2) = 5, ceil(9) = 9, ceil(9.9) = 10.
  Quantiles quantiles;
  for (const int64_t value : {7, 1, 10, 3, 5, 9, 2, 8, 4, 6}) quantiles.add(value);
  EXPECT_TRUE(quantiles.exact());
  EXPECT_EQ(quantiles.median(), 5);
  EXPECT_EQ(quantiles.quantile(90, 100), 9);
  EXPECT_EQ(quantiles.quantile(99, 100), 10);
  EXPECT_EQ(quantiles.quantile(0, 100), 1);
  EXPECT_EQ(quantiles.quantile(100, 100), 10);
}

TEST(Quantiles, OfNothingAreZero) { EXPECT_EQ(Quantiles().median(), 0); }

TEST(Quantiles, AnswerWithTheMiddleOfABucketBeyondTheLimit) {
  // 1000 lies in [512, 1024), whose 128 parts are 4 wide: [1000, 1003], middle 1001.
  Quantiles quantiles(0);
  for (const int64_t value : {1000, 1000, 1000, 1, 5000}) quantiles.add(value);
  EXPECT_FALSE(quantiles.exact());
  EXPECT_EQ(quantiles.median(), 1001);
  EXPECT_EQ(quantiles.quantile(0, 1), 1);
  EXPECT_EQ(quantiles.quantile(1, 1), 5000);
}

TEST(Quantiles, HoldTheEndsOfTheRange) {
  Quantiles quantiles(0);
  for (const int64_t value : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX}) quantiles.add(value);
  EXPECT_EQ(quantiles.quantile(0, 1), INT64_MIN);
  EXPECT_EQ(quantiles.quantile(2, 5), -1);
  EXPECT_EQ(quantiles.median(), 0);
  EXPECT_EQ(quantiles.quantile(4, 5), 1);
  EXPECT_EQ(quantiles.quantile(1, 1), INT64_MAX);
}

TEST(Quantiles, StayWithinTheStatedErrorOfTheSortedValues) {
  for (int seed = 0; seed < cases(); ++seed) {
    Random random(seed);
    const auto limit = static_cast<uint32_t>(random.between(0, 40));
    Quantiles whole(limit), left(limit), right(limit);
    std::vector<int64_t> values(static_cast<size_t>(random.between(1, 120)));
    for (int64_t &value : values) {
      value = random.between(0, INT64_MAX) >> random.between(0, 62);
      if (random.between(0, 9) == 0) value = -value;
      whole.add(value);
      (random.between(0, 1) == 0 ? left : right).add(value);
    }
    left.merge(right);
    std::sort(values.begin(), values.end());
    for (const uint32_t percent : {0u, 1u, 25u, 50u, 90u, 99u, 100u}) {
      const size_t rank = std::max<size_t>(1, (values.size() * percent + 99) / 100);
      const int64_t expected = values[rank - 1];
      for (const Quantiles *const quantiles : {&whole, &left}) {
        const int64_t answer = quantiles->quantile(percent, 100);
        if (quantiles->exact()) {
          ASSERT_EQ(answer, expected) << "seed " << seed << " percent " << percent;
        } else {
          const double distance = std::fabs(static_cast<double>(answer) - static_cast<double>(expected));
          ASSERT_LE(distance, Quantiles::kRelativeError * std::fabs(static_cast<double>(expected)))
              << "seed " << seed << " percent " << percent;
        }
      }
    }
  }
}

TEST(Log2Histogram, PutsPowersOfTwoAtTheBeginOfTheirBucket) {
  Log2Histogram histogram;
  for (const uint64_t value : {0ull, 1ull, 4095ull, 4096ull, ~0ull}) histogram.add(value);
  EXPECT_EQ(histogram.count[0], 1u);
  EXPECT_EQ(histogram.count[1], 1u);
  EXPECT_EQ(histogram.count[12], 1u) << "[2048, 4096)";
  EXPECT_EQ(histogram.count[13], 1u) << "[4096, 8192)";
  EXPECT_EQ(histogram.count[64], 1u);
  EXPECT_EQ(Log2Histogram::low(13), 4096u);
  EXPECT_EQ(Log2Histogram::high(12), 4095u);
  EXPECT_EQ(Log2Histogram::high(64), UINT64_MAX);
}

}  // namespace
}  // namespace sonde::toolkit
