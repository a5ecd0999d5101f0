// A level over time in a bounded number of points.
#pragma once

#include <cstdint>
#include <vector>

namespace sonde::toolkit {

// Keeps at most `points` buckets of equal width from the first time on. When a time does not fit, neighbours are
// joined and the width doubles, so peaks are never lost: each bucket holds the greatest level that held in it, and
// the level at its end.
class Timeline {
 public:
  struct Point {
    int64_t begin;  // of the bucket
    uint64_t last;  // level at its end
    uint64_t peak;  // greatest level during it
  };

  // points >= 2; `width` is the finest width.
  explicit Timeline(uint32_t points, int64_t width = 1);

  // The level from `time` on. Times must not run backwards; one that does counts at the last time.
  void set(int64_t time, uint64_t level);

  int64_t width() const { return static_cast<int64_t>(width_); }
  // Buckets in which the level was set, in order; between them it stands still.
  std::vector<Point> points() const;

 private:
  struct Bucket {
    uint64_t last = 0;
    uint64_t peak = 0;
    bool set = false;
  };

  void halve();

  uint32_t limit_;
  uint64_t width_;
  bool started_ = false;
  int64_t first_ = 0;
  int64_t last_time_ = 0;
  uint64_t level_ = 0;
  std::vector<Bucket> buckets_;
};

}  // namespace sonde::toolkit
