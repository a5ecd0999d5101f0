#include <sonde/toolkit/sequence_alignment.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace sonde::toolkit {
namespace {

using Sequence = std::span<const uint32_t>;

// The part of both sequences between two points, ends exclusive.
struct Box {
  size_t a_begin = 0;
  size_t a_end = 0;
  size_t b_begin = 0;
  size_t b_end = 0;
  bool has_unique = true;  // false: a box around it had no unique elements to cut at
};

class Aligner {
 public:
  Aligner(Sequence a, Sequence b, size_t most_edits) : a_(a), b_(b), most_edits_(std::max<size_t>(most_edits, 2)) {}

  Alignment run() {
    // A task is a box, or a run that comes after the boxes before it.
    tasks_.push_back({{0, a_.size(), 0, b_.size(), true}, {}});
    while (!tasks_.empty()) {
      const Task task = tasks_.back();
      tasks_.pop_back();
      if (task.run.length != 0) {
        emit(task.run);
      } else {
        solve(task.box);
      }
    }
    return std::move(result_);
  }

 private:
  struct Task {
    Box box;
    AlignedRun run;
  };
  struct Point {
    size_t a = 0;
    size_t b = 0;
  };

  void emit(const AlignedRun &run) {
    if (!result_.runs.empty()) {
      AlignedRun &last = result_.runs.back();
      if (last.a + last.length == run.a && last.b + last.length == run.b) {
        last.length += run.length;
        return;
      }
    }
    result_.runs.push_back(run);
  }

  // A common beginning and a common end belong to some longest common subsequence.
  void solve(Box box) {
    AlignedRun head{box.a_begin, box.b_begin, 0};
    while (box.a_begin < box.a_end && box.b_begin < box.b_end && a_[box.a_begin] == b_[box.b_begin]) {
      ++box.a_begin;
      ++box.b_begin;
      ++head.length;
    }
    if (head.length != 0) emit(head);
    AlignedRun tail;
    while (box.a_begin < box.a_end && box.b_begin < box.b_end && a_[box.a_end - 1] == b_[box.b_end - 1]) {
      --box.a_end;
      --box.b_end;
      ++tail.length;
    }
    tail.a = box.a_end;
    tail.b = box.b_end;
    if (tail.length != 0) tasks_.push_back({{}, tail});
    if (box.a_begin == box.a_end || box.b_begin == box.b_end) return;
    if (const std::optional<Point> middle = middle_point(box)) {
      split(box, *middle);
      return;
    }
    result_.is_longest = false;
    if (box.has_unique && cut_at_unique(box)) return;
    box.has_unique = false;
    split(box, furthest_);
  }

  void split(const Box &box, Point at) {
    tasks_.push_back({{at.a, box.a_end, at.b, box.b_end, box.has_unique}, {}});
    tasks_.push_back({{box.a_begin, at.a, box.b_begin, at.b, box.has_unique}, {}});
  }

  // A point of a shortest path of edits, with at least one edit on each side: the paths from both ends, one edit longer
  // at a time, meet there. Nothing when they do not within most_edits_; then furthest_ is where one of them came
  // furthest. The box begins and ends with elements that differ.
  std::optional<Point> middle_point(const Box &box) {
    const Sequence a = a_.subspan(box.a_begin, box.a_end - box.a_begin);
    const Sequence b = b_.subspan(box.b_begin, box.b_end - box.b_begin);
    const auto n = static_cast<int64_t>(a.size());
    const auto m = static_cast<int64_t>(b.size());
    const int64_t delta = n - m;
    const bool is_odd = (delta & 1) != 0;
    const int64_t most = std::min<int64_t>((n + m + 1) / 2, static_cast<int64_t>(most_edits_));
    // By diagonal k = x - y: how far the best path came in a; from the end in the reversed sequences for backward_.
    const size_t middle = static_cast<size_t>(most) + 1;
    forward_.assign(2 * middle + 1, 0);
    backward_.assign(2 * middle + 1, 0);
    const auto at = [middle](std::vector<int64_t> &reach, int64_t k) -> int64_t & {
      return reach[static_cast<size_t>(static_cast<int64_t>(middle) + k)];
    };
    for (int64_t d = 0; d <= most; ++d) {
      // Diagonals that lie in the box.
      const int64_t low = -(d - 2 * std::max<int64_t>(0, d - m));
      const int64_t high = d - 2 * std::max<int64_t>(0, d - n);
      for (const bool is_forward : {true, false}) {
        std::vector<int64_t> &own = is_forward ? forward_ : backward_;
        std::vector<int64_t> &other = is_forward ? backward_ : forward_;
        for (int64_t k = low; k <= high; k += 2) {
          const bool goes_down = k == -d || (k != d && at(own, k - 1) < at(own, k + 1));
          int64_t x = d == 0 ? 0 : goes_down ? at(own, k + 1) : at(own, k - 1) + 1;
          int64_t y = x - k;
          if (is_forward) {
            while (x < n && y < m && a[static_cast<size_t>(x)] == b[static_cast<size_t>(y)]) ++x, ++y;
          } else {
            while (x < n && y < m && a[static_cast<size_t>(n - 1 - x)] == b[static_cast<size_t>(m - 1 - y)]) ++x, ++y;
          }
          at(own, k) = x;
          const int64_t opposite = delta - k;
          const int64_t reached = is_forward ? d - 1 : d;  // edits that the other side made
          if (is_odd != is_forward || opposite < -reached || opposite > reached) continue;
          if (x + at(other, opposite) < n) continue;
          if (!is_forward) {
            x = n - x;
            y = m - y;
          }
          return Point{box.a_begin + static_cast<size_t>(x), box.b_begin + static_cast<size_t>(y)};
        }
      }
      if (d == most) remember_furthest(box, low, high, n, m, at);
    }
    return std::nullopt;
  }

  template <typename At>
  void remember_furthest(const Box &box, int64_t low, int64_t high, int64_t n, int64_t m, const At &at) {
    int64_t best = -1;
    for (int64_t k = low; k <= high; k += 2) {
      const int64_t ahead = at(forward_, k);
      if (2 * ahead - k > best && ahead <= n && ahead - k <= m) {
        best = 2 * ahead - k;
        furthest_ = {box.a_begin + static_cast<size_t>(ahead), box.b_begin + static_cast<size_t>(ahead - k)};
      }
      const int64_t behind = at(backward_, k);
      if (2 * behind - k > best && behind <= n && behind - k <= m) {
        best = 2 * behind - k;
        furthest_ = {box.a_end - static_cast<size_t>(behind), box.b_end - static_cast<size_t>(behind - k)};
      }
    }
  }

  // Cuts a box at the longest ascending chain of elements that stand in it once in a and once in b.
  bool cut_at_unique(const Box &box) {
    struct Places {
      size_t a = 0;
      size_t b = 0;
      uint32_t in_a = 0;
      uint32_t in_b = 0;
    };
    std::unordered_map<uint32_t, Places> places;
    for (size_t index = box.a_begin; index < box.a_end; ++index) {
      Places &place = places[a_[index]];
      place.a = index;
      ++place.in_a;
    }
    for (size_t index = box.b_begin; index < box.b_end; ++index) {
      const auto found = places.find(b_[index]);
      if (found == places.end()) continue;
      found->second.b = index;
      ++found->second.in_b;
    }
    std::vector<Point> unique;
    for (const auto &[element, place] : places) {
      if (place.in_a == 1 && place.in_b == 1) unique.push_back({place.a, place.b});
    }
    if (unique.empty()) return false;
    std::sort(unique.begin(), unique.end(), [](const Point &left, const Point &right) { return left.a < right.a; });
    const std::vector<Point> chain = ascending_chain(unique);
    size_t a_end = box.a_end;
    size_t b_end = box.b_end;
    for (size_t index = chain.size(); index-- > 0;) {
      const Point &point = chain[index];
      tasks_.push_back({{point.a + 1, a_end, point.b + 1, b_end, true}, {}});
      tasks_.push_back({{}, {point.a, point.b, 1}});
      a_end = point.a;
      b_end = point.b;
    }
    tasks_.push_back({{box.a_begin, a_end, box.b_begin, b_end, true}, {}});
    return true;
  }

  // The longest subsequence that ascends in b too, by patience sorting.
  static std::vector<Point> ascending_chain(const std::vector<Point> &points) {
    constexpr size_t kNone = SIZE_MAX;
    std::vector<size_t> tops;  // of each pile
    std::vector<size_t> before(points.size(), kNone);
    for (size_t index = 0; index < points.size(); ++index) {
      const auto pile = std::lower_bound(tops.begin(), tops.end(), points[index].b,
                                         [&](size_t top, size_t b) { return points[top].b < b; });
      if (pile != tops.begin()) before[index] = *std::prev(pile);
      if (pile == tops.end()) {
        tops.push_back(index);
      } else {
        *pile = index;
      }
    }
    std::vector<Point> chain;
    for (size_t index = tops.back(); index != kNone; index = before[index]) chain.push_back(points[index]);
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  const Sequence a_;
  const Sequence b_;
  const size_t most_edits_;
  std::vector<Task> tasks_;
  std::vector<int64_t> forward_;
  std::vector<int64_t> backward_;
  Point furthest_;
  Alignment result_;
};

}  // namespace

Alignment align_sequences(std::span<const uint32_t> a, std::span<const uint32_t> b, size_t most_edits) {
  return Aligner(a, b, most_edits).run();
}

}  // namespace sonde::toolkit
