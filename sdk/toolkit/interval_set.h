// Sets of whole numbers as disjoint intervals, and what they have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sonde::toolkit {

// Edges are begin and end in turn, ends exclusive, ascending and disjoint: the form of sonde.access.intervals.
using Edges = std::span<const uint64_t>;

inline uint64_t edge_bytes(Edges edges) {
  uint64_t sum = 0;
  for (size_t i = 0; i + 1 < edges.size(); i += 2) sum += edges[i + 1] - edges[i];
  return sum;
}

// Numbers that lie in both.
inline uint64_t overlap_bytes(Edges a, Edges b) {
  uint64_t sum = 0;
  for (size_t i = 0, j = 0; i + 1 < a.size() && j + 1 < b.size();) {
    const uint64_t begin = std::max(a[i], b[j]), end = std::min(a[i + 1], b[j + 1]);
    if (begin < end) sum += end - begin;
    (a[i + 1] < b[j + 1] ? i : j) += 2;
  }
  return sum;
}

// Costs are linear in the intervals of both sides, and a lookup where one interval holds all.
class IntervalSet {
 public:
  Edges edges() const { return edges_; }
  bool empty() const { return edges_.empty(); }
  size_t intervals() const { return edges_.size() / 2; }
  uint64_t bytes() const { return edge_bytes(edges_); }
  void clear() { edges_.clear(); }
  void assign(Edges edges) { edges_.assign(edges.begin(), edges.end()); }

  // One interval of the set holds [begin, end).
  bool holds(uint64_t begin, uint64_t end) const {
    const auto after = std::upper_bound(edges_.begin(), edges_.end(), begin);
    const size_t at = static_cast<size_t>(after - edges_.begin());
    return at % 2 == 1 && end <= edges_[at];
  }

  // Neighbours that touch become one.
  void unite(Edges other) {
    if (other.empty()) return;
    if (other.size() == 2 && holds(other[0], other[1])) return;
    merged_.clear();
    for (size_t i = 0, j = 0; i < edges_.size() || j < other.size();) {
      const bool mine = j >= other.size() || (i < edges_.size() && edges_[i] <= other[j]);
      const uint64_t begin = mine ? edges_[i] : other[j], end = mine ? edges_[i + 1] : other[j + 1];
      (mine ? i : j) += 2;
      if (!merged_.empty() && begin <= merged_.back()) {
        merged_.back() = std::max(merged_.back(), end);
      } else {
        merged_.push_back(begin);
        merged_.push_back(end);
      }
    }
    edges_.swap(merged_);
  }

  void subtract(Edges other) {
    if (other.empty() || edges_.empty()) return;
    merged_.clear();
    size_t j = 0;
    for (size_t i = 0; i < edges_.size(); i += 2) {
      uint64_t begin = edges_[i];
      const uint64_t end = edges_[i + 1];
      while (j < other.size() && other[j + 1] <= begin) j += 2;
      for (size_t k = j; k < other.size() && other[k] < end; k += 2) {
        if (other[k] > begin) {
          merged_.push_back(begin);
          merged_.push_back(other[k]);
        }
        begin = std::max(begin, other[k + 1]);
      }
      if (begin < end) {
        merged_.push_back(begin);
        merged_.push_back(end);
      }
    }
    edges_.swap(merged_);
  }

  // Fills the narrowest holes until at most `most` intervals are left; gives the bytes that were filled in.
  uint64_t coarsen(size_t most) {
    if (intervals() <= most || most == 0) return 0;
    std::vector<uint64_t> holes;
    for (size_t i = 1; i + 1 < edges_.size(); i += 2) holes.push_back(edges_[i + 1] - edges_[i]);
    const size_t fill = intervals() - most;
    std::nth_element(holes.begin(), holes.begin() + static_cast<std::ptrdiff_t>(fill - 1), holes.end());
    const uint64_t widest = holes[fill - 1];
    size_t of_widest = 0;  // how many of exactly that width are filled
    for (size_t i = 0; i < fill; ++i) of_widest += holes[i] == widest ? 1 : 0;
    uint64_t filled = 0;
    merged_.assign(1, edges_[0]);
    for (size_t i = 1; i + 1 < edges_.size(); i += 2) {
      const uint64_t hole = edges_[i + 1] - edges_[i];
      if (hole < widest || (hole == widest && of_widest != 0)) {
        if (hole == widest) --of_widest;
        filled += hole;
      } else {
        merged_.push_back(edges_[i]);
        merged_.push_back(edges_[i + 1]);
      }
    }
    merged_.push_back(edges_.back());
    edges_.swap(merged_);
    return filled;
  }

  // The widest stretch of [0, size) that the set leaves out.
  struct Hole {
    uint64_t begin = 0;
    uint64_t bytes = 0;
  };
  Hole widest_hole(uint64_t size) const {
    Hole widest;
    uint64_t at = 0;
    for (size_t i = 0; i + 1 < edges_.size() && at < size; i += 2) {
      const uint64_t begin = std::min(edges_[i], size);
      if (begin > at && begin - at > widest.bytes) widest = {at, begin - at};
      at = std::max(at, edges_[i + 1]);
    }
    if (at < size && size - at > widest.bytes) widest = {at, size - at};
    return widest;
  }

 private:
  std::vector<uint64_t> edges_;
  std::vector<uint64_t> merged_;  // kept, so that steady work does not allocate
};

}  // namespace sonde::toolkit
