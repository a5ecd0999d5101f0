// A line of numbers cut into a bounded number of bins that grow with what they must hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sonde::toolkit {

// Bins are aligned to multiples of their width, a power of two, so bins of two axes of one width are the same stretches, and
// the bins in the end do not depend on the order of what came.
class BinAxis {
 public:
  // Where the bins in use went: bin i of before is bin (i + before_first) >> halvings minus the first one now.
  struct Change {
    uint32_t halvings = 0;  // neighbours joined so many times
    int64_t old_first = 0;  // number of the first bin in use before
    size_t old_count = 0;   // bins in use before
    bool any = false;
  };

  // limit >= 2; the least width is the greatest power of two not above `width`.
  explicit BinAxis(uint32_t limit, uint64_t width = 1) : limit_(std::max(limit, 2u)) {
    while (shift_ < 62 && (uint64_t{2} << shift_) <= width) ++shift_;
  }

  bool empty() const { return count_ == 0; }
  uint64_t width() const { return uint64_t{1} << shift_; }
  size_t count() const { return count_; }
  int64_t begin_of(size_t bin) const {
    return static_cast<int64_t>(static_cast<uint64_t>(first_ + static_cast<int64_t>(bin)) << shift_);
  }

  // Index of the bin of `value` after making room for it.
  size_t fit(int64_t value, Change &change) {
    change = {0, first_, count_, false};
    int64_t number = value >> shift_;
    if (count_ == 0) {
      first_ = number;
      count_ = 1;
      change.any = true;
      return 0;
    }
    int64_t last = first_ + static_cast<int64_t>(count_) - 1;
    if (number >= first_ && number <= last) return static_cast<size_t>(number - first_);
    int64_t least = std::min(first_, number), greatest = std::max(last, number);
    // Unsigned, since the distance of two int64 may not fit one.
    while (static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least) >= limit_) {
      ++shift_;
      ++change.halvings;
      least >>= 1;
      greatest >>= 1;
      number >>= 1;
    }
    change.any = true;
    first_ = least;
    count_ = static_cast<size_t>(greatest - least) + 1;
    return static_cast<size_t>(number - first_);
  }

  // Moves what belongs to bins as `change` says; `join(into, from)` adds up.
  template <typename Value, typename Join>
  void apply(const Change &change, std::vector<Value> &values, Join &&join) const {
    if (!change.any) return;
    if (change.halvings == 0 && change.old_first == first_) {
      values.resize(count_);
      return;
    }
    std::vector<Value> moved(count_);
    for (size_t i = 0; i < change.old_count && i < values.size(); ++i) {
      const int64_t number = (change.old_first + static_cast<int64_t>(i)) >> change.halvings;
      join(moved[static_cast<size_t>(number - first_)], values[i]);
    }
    values = std::move(moved);
  }

 private:
  uint64_t limit_;
  uint32_t shift_ = 0;
  int64_t first_ = 0;  // number of the first bin in use, in widths from 0
  size_t count_ = 0;
};

// Amounts over time. Memory: 8 bytes a bin between the first and the last that was used.
class TimeBins {
 public:
  explicit TimeBins(uint32_t bins, uint64_t width = 1) : axis_(bins, width) {}

  void add(int64_t time, uint64_t amount) {
    BinAxis::Change change;
    const size_t bin = axis_.fit(time, change);
    axis_.apply(change, amounts_, [](uint64_t &into, uint64_t from) { into += from; });
    amounts_[bin] += amount;
  }

  int64_t width() const { return static_cast<int64_t>(axis_.width()); }
  const std::vector<uint64_t> &amounts() const { return amounts_; }
  int64_t begin_of(size_t bin) const { return axis_.begin_of(bin); }

 private:
  BinAxis axis_;
  std::vector<uint64_t> amounts_;
};

}  // namespace sonde::toolkit
