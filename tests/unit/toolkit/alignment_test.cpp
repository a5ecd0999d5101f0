// Alignments against the quadratic dynamic programme, and what must hold of any alignment.
#include <gtest/gtest.h>
#include <sonde/toolkit/sequence_alignment.h>

#include <algorithm>
#include <vector>

#include "cases.h"

namespace sonde::toolkit {
namespace {

using testing::Random;
using Sequence = std::vector<uint32_t>;

// Length of a longest common subsequence, by the textbook recurrence.
size_t longest(const Sequence &a, const Sequence &b) {
  std::vector<size_t> row(b.size() + 1, 0);
  for (const uint32_t element : a) {
    size_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = element == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

// Elements matched; fails the test where the runs are no common subsequence.
size_t matched(const Sequence &a, const Sequence &b, const Alignment &alignment) {
  size_t a_end = 0;
  size_t b_end = 0;
  size_t count = 0;
  for (const AlignedRun &run : alignment.runs) {
    EXPECT_GT(run.length, 0u);
    EXPECT_GE(run.a, a_end);
    EXPECT_GE(run.b, b_end);
    if (count != 0) {
      EXPECT_FALSE(run.a == a_end && run.b == b_end) << "two runs that are one";
    }
    if (run.a + run.length > a.size() || run.b + run.length > b.size()) {
      ADD_FAILURE() << "a run past the end";
      return count;
    }
    EXPECT_TRUE(std::equal(a.begin() + run.a, a.begin() + run.a + run.length, b.begin() + run.b));
    a_end = run.a + run.length;
    b_end = run.b + run.length;
    count += run.length;
  }
  return count;
}

Sequence random_sequence(Random &random, int64_t most, int64_t letters) {
  Sequence sequence(static_cast<size_t>(random.between(0, most)));
  for (uint32_t &element : sequence) element = static_cast<uint32_t>(random.between(1, letters));
  return sequence;
}

// `sequence` with elements inserted, removed and changed.
Sequence edited(Random &random, Sequence sequence, int64_t edits, int64_t letters) {
  for (int64_t edit = 0; edit < edits; ++edit) {
    const auto at = random.between(0, static_cast<int64_t>(sequence.size()));
    const auto letter = static_cast<uint32_t>(random.between(1, letters));
    const auto place = sequence.begin() + at;
    if (random.between(0, 2) == 0 || place == sequence.end()) {
      sequence.insert(place, letter);
    } else if (random.between(0, 1) == 0) {
      sequence.erase(place);
    } else {
      *place = letter;
    }
  }
  return sequence;
}

TEST(Alignment, OfEmptySequencesIsEmpty) {
  EXPECT_TRUE(align_sequences({}, {}).runs.empty());
  const Sequence one = {1};
  EXPECT_TRUE(align_sequences(one, {}).runs.empty());
  EXPECT_TRUE(align_sequences({}, one).runs.empty());
}

TEST(Alignment, OfOneSequenceWithItselfIsOneRun) {
  const Sequence a = {1, 2, 1, 2, 3};
  EXPECT_EQ(align_sequences(a, a).runs, (std::vector<AlignedRun>{{0, 0, 5}}));
}

TEST(Alignment, PassesOverAnExtraElement) {
  const Sequence a = {1, 2, 3, 4};
  const Sequence b = {1, 2, 9, 3, 4};
  EXPECT_EQ(align_sequences(a, b).runs, (std::vector<AlignedRun>{{0, 0, 2}, {2, 3, 2}}));
  EXPECT_EQ(align_sequences(b, a).runs, (std::vector<AlignedRun>{{0, 0, 2}, {3, 2, 2}}));
}

// The example of Myers' paper: ABCABBA and CBABAC differ by 5 edits, so (7 + 6 - 5) / 2 = 4 elements are common.
TEST(Alignment, OfThePapersExampleHasFourElements) {
  const Sequence a = {1, 2, 3, 1, 2, 2, 1};
  const Sequence b = {3, 2, 1, 2, 1, 3};
  const Alignment alignment = align_sequences(a, b);
  EXPECT_EQ(matched(a, b, alignment), 4u);
  EXPECT_TRUE(alignment.is_longest);
}

TEST(Alignment, IsLongestForRandomSequences) {
  for (int seed = 0; seed < testing::cases(); ++seed) {
    Random random(seed);
    const int64_t letters = random.between(1, 12);
    const Sequence a = random_sequence(random, 60, letters);
    const Sequence b = random_sequence(random, 60, letters);
    const Alignment alignment = align_sequences(a, b);
    EXPECT_TRUE(alignment.is_longest) << "seed " << seed;
    EXPECT_EQ(matched(a, b, alignment), longest(a, b)) << "seed " << seed;
  }
}

TEST(Alignment, IsLongestForEditedSequences) {
  for (int seed = 0; seed < testing::cases(); ++seed) {
    Random random(seed);
    const int64_t letters = random.between(1, 6);
    const Sequence a = random_sequence(random, 300, letters);
    const Sequence b = edited(random, a, random.between(0, 12), letters);
    EXPECT_EQ(matched(a, b, align_sequences(a, b)), longest(a, b)) << "seed " << seed;
  }
}

TEST(Alignment, StaysACommonSubsequenceInANarrowWindow) {
  for (int seed = 0; seed < testing::cases(); ++seed) {
    Random random(seed);
    const int64_t letters = random.between(1, 40);
    const Sequence a = random_sequence(random, 120, letters);
    const Sequence b = random_sequence(random, 120, letters);
    const Alignment alignment = align_sequences(a, b, static_cast<size_t>(random.between(0, 8)));
    const size_t count = matched(a, b, alignment);
    if (alignment.is_longest) {
      EXPECT_EQ(count, longest(a, b)) << "seed " << seed;
    }
  }
}

// A warm-up of 3000 launches in one run only, before and after what both have: far more than the window of 16.
TEST(Alignment, FindsItsWayBackAtUniqueElementsAfterALongStretch) {
  Sequence common;
  for (uint32_t element = 0; element < 500; ++element) common.push_back(element % 7 == 0 ? 100'000 + element : 1);
  Sequence a = {2};
  a.insert(a.end(), 3000, 5);
  a.insert(a.end(), common.begin(), common.end());
  a.insert(a.end(), 3000, 6);
  Sequence b = {3};
  b.insert(b.end(), common.begin(), common.end());
  b.push_back(4);
  const Alignment alignment = align_sequences(a, b, 16);
  EXPECT_EQ(matched(a, b, alignment), common.size());
}

// A training loop of 40 kernels, 2500 times, where one run lacks 200 launches here and there.
TEST(Alignment, OfALongPeriodicSequenceIsExact) {
  Random random(1);
  Sequence a;
  for (uint32_t index = 0; index < 100'000; ++index) a.push_back(index % 40);
  Sequence b = a;
  for (int edit = 0; edit < 200; ++edit) b.erase(b.begin() + random.between(0, static_cast<int64_t>(b.size()) - 1));
  const Alignment alignment = align_sequences(a, b);
  EXPECT_TRUE(alignment.is_longest);
  EXPECT_EQ(matched(a, b, alignment), b.size());
}

}  // namespace
}  // namespace sonde::toolkit
