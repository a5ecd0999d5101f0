// Count, least, greatest, sum, mean and variance of a stream of integers, exact in any order.
#pragma once

#include <cstdint>

namespace sonde::toolkit {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

// Holds sums in 128 bits and sums of squares in 192, so nothing rounds or overflows for up to 2^63 values of any
// int64; only the results of mean() and variance() are rounded, once. Merging and order do not change any result.
class Statistics {
 public:
  void add(int64_t value);
  void merge(const Statistics &other);

  uint64_t count() const { return count_; }
  int64_t min() const { return count_ == 0 ? 0 : min_; }
  int64_t max() const { return count_ == 0 ? 0 : max_; }
  Int128 sum() const { return sum_; }
  // The sum, held at the ends of int64 when it lies outside.
  int64_t sum_i64() const;
  // 0 when there is nothing.
  double mean() const;
  // Population variance: the mean square of the distance from the mean.
  double variance() const;

 private:
  uint64_t count_ = 0;
  int64_t min_ = INT64_MAX;
  int64_t max_ = INT64_MIN;
  Int128 sum_ = 0;
  Uint128 squares_low_ = 0;
  uint64_t squares_high_ = 0;
};

}  // namespace sonde::toolkit
