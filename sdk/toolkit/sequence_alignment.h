// Which elements of two sequences are the same: a longest common subsequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sonde::toolkit {

// a[a] to a[a + length - 1] stand for b[b] to b[b + length - 1].
struct AlignedRun {
  size_t a = 0;
  size_t b = 0;
  size_t length = 0;

  friend bool operator==(const AlignedRun &, const AlignedRun &) = default;
};

struct Alignment {
  std::vector<AlignedRun> runs;  // ascending in both; neighbours are not adjacent in both sequences at once
  bool is_longest = true;        // no common subsequence is longer; false: `most_edits` was reached somewhere
};

// Myers' greedy algorithm in its linear-space form (E. W. Myers, "An O(ND) Difference Algorithm and Its Variations",
// Algorithmica 1, 1986), in a window: at most `most_edits` diagonals to each side are followed. Where a stretch differs
// by more, it is cut at elements that both have exactly once (patience), and without these where the furthest path
// ended. Time: O((n + m) min(d, most_edits)), d the number of elements that are not common; memory beside the
// result: O(min(n + m, most_edits)), and O(n + m) for a cut at unique elements.
Alignment align_sequences(std::span<const uint32_t> a, std::span<const uint32_t> b, size_t most_edits = 1024);

}  // namespace sonde::toolkit
