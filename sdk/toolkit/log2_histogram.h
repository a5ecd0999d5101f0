// Counts of non-negative integers by power of two.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace sonde::toolkit {

// Bucket 0 holds 0; bucket b > 0 holds [2^(b-1), 2^b).
struct Log2Histogram {
  static constexpr uint32_t kBuckets = 65;

  static constexpr uint32_t bucket_of(uint64_t value) { return static_cast<uint32_t>(std::bit_width(value)); }
  static constexpr uint64_t low(uint32_t bucket) { return bucket == 0 ? 0 : uint64_t{1} << (bucket - 1); }
  // Greatest value of the bucket.
  static constexpr uint64_t high(uint32_t bucket) { return bucket == 0 ? 0 : low(bucket) + (low(bucket) - 1); }

  void add(uint64_t value) {
    const uint32_t bucket = bucket_of(value);
    ++count[bucket];
    total[bucket] += value;
  }

  std::array<uint64_t, kBuckets> count{};
  std::array<uint64_t, kBuckets> total{};  // sum of the values in the bucket, modulo 2^64
};

}  // namespace sonde::toolkit
