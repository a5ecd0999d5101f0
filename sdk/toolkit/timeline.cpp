#include <sonde/toolkit/timeline.h>

#include <algorithm>

namespace sonde::toolkit {

Timeline::Timeline(uint32_t points, int64_t width)
    : limit_(std::max(points, 2u)), width_(static_cast<uint64_t>(std::max<int64_t>(width, 1))) {}

void Timeline::set(int64_t time, uint64_t level) {
  if (!started_) {
    started_ = true;
    first_ = last_time_ = time;
  }
  time = std::max(time, last_time_);
  last_time_ = time;
  const uint64_t distance = static_cast<uint64_t>(time) - static_cast<uint64_t>(first_);
  while (distance / width_ >= limit_) halve();
  const size_t index = distance / width_;
  if (index >= buckets_.size()) buckets_.resize(index + 1);
  Bucket &bucket = buckets_[index];
  // The level before this event held in the first part of its bucket.
  if (!bucket.set) bucket.peak = level_;
  bucket.set = true;
  bucket.peak = std::max(bucket.peak, level);
  bucket.last = level_ = level;
}

void Timeline::halve() {
  for (size_t i = 0; i < buckets_.size(); i += 2) {
    Bucket joined = buckets_[i];
    if (i + 1 < buckets_.size() && buckets_[i + 1].set) {
      const Bucket &second = buckets_[i + 1];
      joined.peak = joined.set ? std::max(joined.peak, second.peak) : second.peak;
      joined.last = second.last;
      joined.set = true;
    }
    buckets_[i / 2] = joined;
  }
  buckets_.resize((buckets_.size() + 1) / 2);
  width_ *= 2;
}

std::vector<Timeline::Point> Timeline::points() const {
  std::vector<Point> result;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (!buckets_[i].set) continue;
    const auto begin = static_cast<uint64_t>(first_) + i * width_;
    result.push_back({static_cast<int64_t>(begin), buckets_[i].last, buckets_[i].peak});
  }
  return result;
}

}  // namespace sonde::toolkit
