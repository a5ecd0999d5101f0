#include <sonde/toolkit/quantiles.h>
#include <sonde/toolkit/statistics.h>

#include <algorithm>
#include <bit>

namespace sonde::toolkit {
namespace {

constexpr uint32_t kPartBits = 7;  // a power of two is cut into 2^7 parts: half a part is 1/256 of the value
constexpr uint32_t kParts = 1u << kPartBits;

int32_t bucket_of_magnitude(uint64_t value) {
  if (value < kParts) return static_cast<int32_t>(value);
  const uint32_t shift = 63u - static_cast<uint32_t>(std::countl_zero(value)) - kPartBits;
  return static_cast<int32_t>(kParts + shift * kParts + ((value >> shift) & (kParts - 1)));
}

uint64_t middle_of_magnitude(int32_t bucket) {
  const auto index = static_cast<uint32_t>(bucket);
  if (index < kParts) return index;
  const uint32_t shift = (index - kParts) / kParts;
  const uint64_t low = uint64_t{kParts + (index - kParts) % kParts} << shift;
  return low + ((uint64_t{1} << shift) - 1) / 2;
}

}  // namespace

// Negative values mirror the others one bucket down: -1 is bucket -2, so that the order of buckets is that of values.
int32_t Quantiles::bucket_of(int64_t value) {
  if (value >= 0) return bucket_of_magnitude(static_cast<uint64_t>(value));
  return -1 - bucket_of_magnitude(uint64_t{0} - static_cast<uint64_t>(value));
}

int64_t Quantiles::middle_of(int32_t bucket) {
  if (bucket >= 0) return static_cast<int64_t>(std::min<uint64_t>(middle_of_magnitude(bucket), INT64_MAX));
  const uint64_t magnitude = middle_of_magnitude(-1 - bucket);
  return static_cast<int64_t>(uint64_t{0} - magnitude);
}

void Quantiles::count_in(int32_t bucket, uint64_t times) {
  if (counts_.empty()) {
    first_bucket_ = bucket;
    counts_.push_back(0);
  } else if (bucket < first_bucket_) {
    counts_.insert(counts_.begin(), static_cast<size_t>(first_bucket_ - bucket), 0);
    first_bucket_ = bucket;
  } else if (static_cast<size_t>(bucket - first_bucket_) >= counts_.size()) {
    counts_.resize(static_cast<size_t>(bucket - first_bucket_) + 1, 0);
  }
  counts_[static_cast<size_t>(bucket - first_bucket_)] += times;
}

void Quantiles::leave_exact() {
  for (const int64_t value : values_) count_in(bucket_of(value), 1);
  values_.clear();
  values_.shrink_to_fit();
}

void Quantiles::add(int64_t value) {
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  ++count_;
  if (counts_.empty() && count_ <= exact_limit_) {
    values_.push_back(value);
    return;
  }
  if (counts_.empty()) leave_exact();
  count_in(bucket_of(value), 1);
}

void Quantiles::merge(const Quantiles &other) {
  if (other.count_ == 0) return;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  if (counts_.empty() && other.counts_.empty() && count_ <= exact_limit_) {
    values_.insert(values_.end(), other.values_.begin(), other.values_.end());
    return;
  }
  leave_exact();
  for (const int64_t value : other.values_) count_in(bucket_of(value), 1);
  for (size_t i = 0; i < other.counts_.size(); ++i) {
    if (other.counts_[i] != 0) count_in(other.first_bucket_ + static_cast<int32_t>(i), other.counts_[i]);
  }
}

int64_t Quantiles::quantile(uint32_t numerator, uint32_t denominator) const {
  if (count_ == 0) return 0;
  const Uint128 scaled = Uint128{count_} * numerator + denominator - 1;
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(scaled / denominator), 1, count_);
  if (rank == 1) return min_;
  if (rank == count_) return max_;
  if (counts_.empty()) {
    std::vector<int64_t> sorted = values_;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(rank - 1), sorted.end());
    return sorted[rank - 1];
  }
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::clamp(middle_of(first_bucket_ + static_cast<int32_t>(i)), min_, max_);
  }
  return max_;
}

}  // namespace sonde::toolkit
