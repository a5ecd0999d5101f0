// Small sums that several parts keep: times of a row, counts of stamps that cannot be right.
#pragma once

#include <sonde/toolkit/quantiles.h>
#include <sonde/toolkit/statistics.h>
#include <sonde/sonde.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace sonde::workload {

// How often something happened and how long it took where that is known.
struct Durations {
  explicit Durations(int64_t exact_values = toolkit::Quantiles::kDefaultExactLimit)
      : quantiles(static_cast<uint32_t>(exact_values)) {}

  uint64_t count = 0;  // all, timed or not
  toolkit::Statistics time;
  toolkit::Quantiles quantiles;

  void add(const Interval &interval) {
    ++count;
    if (!interval.valid()) return;
    time.add(interval.length_ns());
    quantiles.add(interval.length_ns());
  }
  void add_untimed() { ++count; }

  uint64_t untimed() const { return count - time.count(); }
  uint64_t total_ns() const { return static_cast<uint64_t>(std::max<int64_t>(time.sum_i64(), 0)); }
  // Cells of the usual columns; empty where nothing was timed.
  std::optional<double> mean() const { return time.count() == 0 ? std::nullopt : std::optional<double>(time.mean()); }
  std::optional<int64_t> min() const { return known(time.min()); }
  std::optional<int64_t> max() const { return known(time.max()); }
  std::optional<int64_t> percentile(uint32_t percent) const { return known(quantiles.quantile(percent, 100)); }

 private:
  std::optional<int64_t> known(int64_t value) const {
    return time.count() == 0 ? std::nullopt : std::optional<int64_t>(value);
  }
};

// Records whose stamps cannot be right, by SONDE_REPAIR_*.
struct InvalidTimes {
  static constexpr uint32_t kReasons = 5;
  std::array<uint64_t, kReasons> by_reason{};  // [0] unknown reasons

  void note(const Interval &interval) {
    if (!interval.valid()) ++by_reason[interval.repair < kReasons ? interval.repair : 0];
  }
  uint64_t total() const {
    uint64_t sum = 0;
    for (const uint64_t count : by_reason) sum += count;
    return sum;
  }
};

}  // namespace sonde::workload
