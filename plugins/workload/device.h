// What one device of one process did: busy and idle time, overlap, gaps, streams.
#pragma once

#include <sonde/toolkit/log2_histogram.h>
#include <sonde/toolkit/quantiles.h>
#include <sonde/toolkit/reorder.h>
#include <sonde/toolkit/statistics.h>
#include <sonde/toolkit/sweep.h>

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "options.h"

namespace sonde::workload {

// Kinds of activity; a blocking copy is one between host and device that is synchronous or uses pageable memory.
enum class ActivityKind : uint8_t { kKernel, kBlockingCopy, kCopy, kSet };

// An interval on the device with stamps that can be right.
struct Activity {
  int64_t end = 0;
  ActivityKind kind = ActivityKind::kKernel;
  uint32_t label = 0;  // interned name
  uint32_t context = 0;
  uint64_t stream = 0;
};

struct Gap {
  int64_t begin = 0;
  int64_t length = 0;
  uint32_t before = 0;  // label of the activity that ended last before it
  uint32_t after = 0;   // label of the one that ended it
};

// A stream's activities in order of begin.
struct Stream {
  uint64_t kernels = 0;
  uint64_t copies = 0;
  uint64_t sets = 0;
  int64_t total_ns = 0;  // sum of lengths
  int64_t busy_ns = 0;   // length of their union; less than the sum where they overlap
  int64_t first_ns = INT64_MAX;
  int64_t open_until = INT64_MIN;
  toolkit::Statistics gap;
  toolkit::Quantiles gap_quantiles{256};

  void add(int64_t begin, const Activity &activity);
};

// Runs of short kernels with idle time between them.
struct LaunchBound {
  uint64_t phases = 0;
  uint64_t kernels = 0;
  int64_t idle_ns = 0;
  int64_t span_ns = 0;
  int64_t longest_begin = 0;
  int64_t longest_span = 0;
};

// Feed with add in any order, then finish. Copies are cheap enough to finish a copy while the run goes on.
// Memory: reorder_records * 48 bytes, and a few KB for each stream.
class Device {
 public:
  static constexpr size_t kLevels = 64;  // kernels at one time that are counted apart

  explicit Device(const Options &options) : options_(&options), order_(static_cast<size_t>(options.reorder_records)) {}

  void add(int64_t begin, const Activity &activity);
  void finish();

  // The rest holds after finish. Times of the device's span, from the first begin to the last end.
  int64_t first_ns() const { return first_; }
  int64_t last_ns() const { return open_until_; }
  int64_t span_ns() const { return busy_ + idle_; }
  int64_t busy_ns() const { return busy_; }  // something ran; each instant counted once
  int64_t idle_ns() const { return idle_; }
  int64_t kernel_busy_ns() const { return kernel_busy_; }  // at least one kernel ran
  double idle_share() const;
  // Time with that many kernels at once; the last level stands for itself and more.
  const std::array<int64_t, kLevels> &time_at_level() const { return at_level_; }
  // Time in which a blocking copy ran, no kernel did, and kernels came before and after.
  int64_t exposed_copy_ns() const { return exposed_copies_; }
  uint64_t blocking_copies() const { return blocking_copies_; }
  const LaunchBound &launch_bound() const { return launch_bound_; }
  // Stretches in which nothing ran.
  const toolkit::Statistics &gaps() const { return gaps_; }
  const toolkit::Log2Histogram &gap_histogram() const { return gap_histogram_; }
  // The longest ones, longest first, then earliest.
  const std::vector<Gap> &longest_gaps() const { return longest_; }
  // By (context, stream).
  const std::map<std::tuple<uint32_t, uint64_t>, Stream> &streams() const { return streams_; }
  // Activities that came after the order had passed them: what they ran before that is missing from busy time.
  uint64_t late() const { return sweep_.late(); }
  int64_t late_ns() const { return sweep_.late_time(); }

 private:
  static constexpr size_t kKernelClass = 0, kBlockingClass = 1, kOtherClass = 2, kClasses = 3;

  struct Phase {
    uint64_t kernels = 0;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t idle = 0;
  };

  void in_order(int64_t begin, const Activity &activity);
  void note_gap(const Gap &gap);
  void note_kernel(int64_t begin, int64_t end, int64_t gap);
  void close_phase();
  void note_segment(const toolkit::Segment<kClasses> &segment);

  const Options *options_;
  toolkit::ReorderBuffer<Activity> order_;
  toolkit::SegmentSweep<kClasses> sweep_;
  bool any_ = false;
  bool kernel_seen_ = false;
  int64_t first_ = 0;
  int64_t open_until_ = 0;
  uint32_t open_label_ = 0;
  int64_t busy_ = 0;
  int64_t idle_ = 0;
  int64_t kernel_busy_ = 0;
  int64_t exposed_copies_ = 0;
  int64_t exposed_pending_ = 0;  // becomes exposed when a kernel follows
  uint64_t blocking_copies_ = 0;
  std::array<int64_t, kLevels> at_level_{};
  toolkit::Statistics gaps_;
  toolkit::Log2Histogram gap_histogram_;
  std::vector<Gap> longest_;
  LaunchBound launch_bound_;
  Phase phase_;
  std::map<std::tuple<uint32_t, uint64_t>, Stream> streams_;
};

}  // namespace sonde::workload
