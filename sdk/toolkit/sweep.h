// Sweeps over overlapping intervals: busy time, idle gaps and degrees of overlap from one walk.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace sonde::toolkit {

// A stretch of time in which the same number of intervals of each class is open.
template <size_t Classes>
struct Segment {
  int64_t begin;
  int64_t end;
  std::array<uint32_t, Classes> active;

  int64_t length() const { return end - begin; }
  uint32_t total() const {
    uint32_t sum = 0;
    for (const uint32_t count : active) sum += count;
    return sum;
  }
};

// Takes intervals in order of begin and gives segments: contiguous, in order, of positive length, from the first
// begin to the last end. The sum of the lengths where total() > 0 is the length of the union of the intervals, each
// instant counted once however many overlap. Intervals are half open, [begin, end): one that ends where another
// begins does not overlap it, and one of length 0 opens nothing.
// An interval that begins before the last begin is late: its part before that is left out and counted.
// Cost O(log n) an interval, memory O(n), n being the intervals open at once.
template <size_t Classes = 1>
class SegmentSweep {
 public:
  // give(const Segment<Classes> &) receives the segments that are now complete.
  template <typename Give>
  void add(int64_t begin, int64_t end, size_t interval_class, Give &&give) {
    if (!started_) {
      started_ = true;
      now_ = begin;
    }
    if (begin < now_) {
      ++late_;
      late_time_ += std::min(end, now_) - begin;
      begin = now_;
    }
    advance(begin, give);
    if (begin >= end) return;
    ++active_[interval_class];
    ends_.push_back({end, interval_class});
    std::push_heap(ends_.begin(), ends_.end(), ends_later);
  }

  // Closes what is open; the sweep may then be read no further.
  template <typename Give>
  void finish(Give &&give) {
    while (!ends_.empty()) advance(ends_.front().time, give);
  }

  int64_t now() const { return now_; }
  // Intervals that began before an earlier one, and how much of them was left out.
  uint64_t late() const { return late_; }
  int64_t late_time() const { return late_time_; }

 private:
  struct End {
    int64_t time;
    size_t interval_class;
  };
  static bool ends_later(const End &a, const End &b) { return a.time > b.time; }

  template <typename Give>
  void advance(int64_t time, Give &give) {
    while (!ends_.empty() && ends_.front().time <= time) {
      const End next = ends_.front();
      std::pop_heap(ends_.begin(), ends_.end(), ends_later);
      ends_.pop_back();
      step(next.time, give);
      --active_[next.interval_class];
    }
    step(time, give);
  }

  template <typename Give>
  void step(int64_t time, Give &give) {
    if (time > now_) give(Segment<Classes>{now_, time, active_});
    now_ = std::max(now_, time);
  }

  bool started_ = false;
  int64_t now_ = 0;
  std::array<uint32_t, Classes> active_{};
  std::vector<End> ends_;
  uint64_t late_ = 0;
  int64_t late_time_ = 0;
};

}  // namespace sonde::toolkit
