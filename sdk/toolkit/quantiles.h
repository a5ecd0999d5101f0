// Quantiles of a stream of integers in bounded memory.
#pragma once

#include <cstdint>
#include <vector>

namespace sonde::toolkit {

// Exact up to `exact_limit` values; beyond that a histogram whose buckets are single numbers below 128 and 128 equal
// parts of each power of two above (as in HdrHistogram), which answers with the middle of the bucket.
//
// Definition: the quantile n/d of k values is the value of rank ceil(k * n / d) in ascending order, at least the
// first (nearest rank), so it is always one of the values while exact. The bound on the error of the histogram is
// kRelativeError of the exact answer; ranks are exact, the least and greatest value too.
// Memory: 8 * exact_limit bytes, or 8 bytes a bucket between the least and the greatest value: 7,296 buckets cover
// all of 0 to 2^63, so 58 KB, twice that when there are negative values too.
class Quantiles {
 public:
  static constexpr uint32_t kDefaultExactLimit = 1024;
  static constexpr double kRelativeError = 1.0 / 256;

  explicit Quantiles(uint32_t exact_limit = kDefaultExactLimit) : exact_limit_(exact_limit) {}

  void add(int64_t value);
  void merge(const Quantiles &other);

  uint64_t count() const { return count_; }
  bool exact() const { return count_ <= exact_limit_ && counts_.empty(); }
  // 0 when there is nothing. 0 <= numerator <= denominator, denominator > 0.
  int64_t quantile(uint32_t numerator, uint32_t denominator) const;
  int64_t median() const { return quantile(1, 2); }

 private:
  static int32_t bucket_of(int64_t value);
  static int64_t middle_of(int32_t bucket);
  void count_in(int32_t bucket, uint64_t times);
  void leave_exact();

  uint32_t exact_limit_;
  uint64_t count_ = 0;
  int64_t min_ = INT64_MAX;
  int64_t max_ = INT64_MIN;
  std::vector<int64_t> values_;   // while exact
  std::vector<uint64_t> counts_;  // of buckets first_bucket_, first_bucket_ + 1, ...
  int32_t first_bucket_ = 0;
};

}  // namespace sonde::toolkit
