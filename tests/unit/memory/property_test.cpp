// The analysis in one pass against the plain definitions on the whole story, over random programs.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

#include "script.h"

namespace sonde::memory {
namespace {

int cases() {
  const char *const text = std::getenv("SONDE_CASES");
  const int wanted = text == nullptr ? 0 : std::atoi(text);
  return wanted > 0 ? wanted : 200;
}

// What happened to one object, by the number of the event.
struct Life {
  uint64_t id = 0;
  uint64_t bytes = 0;
  int begin = 0;
  int end = -1;  // -1: never
  std::vector<int> uses;
};

struct Story {
  std::vector<Life> lives;
  std::vector<int> kernels;  // events
  int events = 0;

  uint64_t between(int from, int to) const {
    return static_cast<uint64_t>(
        std::count_if(kernels.begin(), kernels.end(), [&](int at) { return from < at && at < to; }));
  }
};

// 26 names, objects of 1 to 8 bytes, kernels that touch up to three of them.
Story play(Script &script, int seed) {
  std::mt19937_64 engine(static_cast<uint64_t>(seed));
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine); };
  Story story;
  std::map<char, size_t> live;
  const auto pick = [&] { return std::next(live.begin(), between(0, static_cast<int>(live.size()) - 1)); };
  for (; story.events < 150; ++story.events) {
    const int what = between(0, 9);
    if (live.empty() || (what < 3 && live.size() < 20)) {
      char name = 'a';
      while (live.count(name) != 0) ++name;
      const auto bytes = static_cast<uint64_t>(between(1, 8));
      script.allocate(name, bytes);
      live[name] = story.lives.size();
      story.lives.push_back({script.id(name), bytes, story.events, -1, {}});
    } else if (what < 5) {
      const auto found = pick();
      script.free(found->first);
      story.lives[found->second].end = story.events;
      live.erase(found);
    } else if (what < 6) {
      const auto found = pick();
      script.copy_out(found->first);
      story.lives[found->second].uses.push_back(story.events);
    } else {
      story.kernels.push_back(story.events);
      std::map<char, size_t> touched;
      for (int i = between(0, 3); i > 0; --i) touched.insert(*pick());
      for (const auto &[name, life] : touched) story.lives[life].uses.push_back(story.events);
      std::vector<char> names;
      for (const auto &[name, life] : touched) names.push_back(name);
      switch (names.size()) {
        case 0:
          script.kernel({});
          break;
        case 1:
          script.kernel({{names[0]}});
          break;
        case 2:
          script.kernel({{names[0]}, {names[1]}});
          break;
        default:
          script.kernel({{names[0]}, {names[1]}, {names[2]}});
      }
    }
  }
  script.finish();
  return story;
}

Options all_rows() {
  Options options;
  options.object_rows = 1000;
  return options;
}

TEST(Property, GapsAndPatternsAreThoseOfTheWholeStory) {
  std::array<uint64_t, kPatterns> seen{};
  for (int seed = 0; seed < cases(); ++seed) {
    Options options = all_rows();
    options.early_kernels.value = seed % 3 == 0 ? 0.1 : 2;
    options.late_kernels.value = seed % 3 == 1 ? 0.05 : 1;
    options.idle_kernels.value = seed % 3 == 2 ? 0.08 : 3;
    Script script(options);
    const Story story = play(script, seed);
    const uint64_t all = story.kernels.size();
    std::map<uint64_t, const Usage *> found;
    for (const Usage *const usage : script.group().worst.sorted()) found[usage->object.id] = usage;
    ASSERT_EQ(found.size(), story.lives.size()) << seed;
    if (all == 0) continue;
    std::array<uint64_t, kPatterns> wanted{};
    for (const Life &life : story.lives) {
      const Usage &usage = *found.at(life.id);
      const auto expect = [&](Pattern pattern, bool holds) {
        wanted[index_of(pattern)] += holds ? 1 : 0;
        ASSERT_EQ(usage.patterns.has(pattern), holds)
            << name_of(pattern) << " of object " << life.id << ", case " << seed;
      };
      const int end = life.end < 0 ? story.events : life.end;
      if (life.uses.empty()) {
        expect(Pattern::kUnusedAllocation, true);
        expect(Pattern::kEarlyAllocation, false);
      } else {
        const uint64_t early = story.between(life.begin, life.uses.front()),
                       late = story.between(life.uses.back(), end);
        ASSERT_EQ(usage.early_gap, early) << seed;
        ASSERT_EQ(usage.late_gap, late) << seed;
        expect(Pattern::kUnusedAllocation, false);
        expect(Pattern::kEarlyAllocation, options.early_kernels.reached(early, all));
        expect(Pattern::kLateDeallocation, life.end >= 0 && options.late_kernels.reached(late, all));
        uint64_t idle = 0;
        for (size_t i = 1; i < life.uses.size(); ++i) {
          idle += options.idle_kernels.reached(story.between(life.uses[i - 1], life.uses[i]), all) ? 1 : 0;
        }
        expect(Pattern::kTemporaryIdleness, idle != 0);
        ASSERT_EQ(usage.idle_count, idle) << seed;
      }
      expect(Pattern::kLeak, life.end < 0);
    }
    for (const Pattern pattern : {Pattern::kEarlyAllocation, Pattern::kLateDeallocation, Pattern::kTemporaryIdleness,
                                  Pattern::kUnusedAllocation, Pattern::kLeak}) {
      ASSERT_EQ(script.count(pattern), wanted[index_of(pattern)]) << name_of(pattern) << ", case " << seed;
      seen[index_of(pattern)] += wanted[index_of(pattern)];
    }
  }
  for (const Pattern pattern : {Pattern::kEarlyAllocation, Pattern::kLateDeallocation, Pattern::kTemporaryIdleness,
                                Pattern::kUnusedAllocation, Pattern::kLeak}) {
    EXPECT_GT(seen[index_of(pattern)], 0u) << name_of(pattern) << " must occur for the test to say anything";
  }
}

TEST(Property, PeaksAreThoseOfTheWholeStory) {
  for (int seed = 0; seed < cases(); ++seed) {
    Script script(all_rows());
    const Story story = play(script, seed);
    uint64_t peak = 0, needed = 0, first_to_end = 0, begin_to_last = 0;
    int peak_at = 0;
    for (int now = 0; now < story.events; ++now) {
      uint64_t alive = 0, between_uses = 0, from_first = 0, until_last = 0;
      for (const Life &life : story.lives) {
        const bool lives = life.begin <= now && (life.end < 0 || now < life.end);
        const bool is_used = !life.uses.empty();
        if (lives) alive += life.bytes;
        if (is_used && life.uses.front() <= now && now <= life.uses.back()) between_uses += life.bytes;
        if (is_used && life.uses.front() <= now && lives) from_first += life.bytes;
        // An object that is never used counts when it begins.
        if (life.begin <= now && now <= (is_used ? life.uses.back() : life.begin)) until_last += life.bytes;
      }
      if (alive > peak) {
        peak = alive;
        peak_at = now;
      }
      needed = std::max(needed, between_uses);
      first_to_end = std::max(first_to_end, from_first);
      begin_to_last = std::max(begin_to_last, until_last);
    }
    const Group &group = script.group();
    ASSERT_EQ(group.peak_bytes, peak) << seed;
    ASSERT_EQ(group.needed_peak(), needed) << seed;
    ASSERT_EQ(group.from_first_use_peak, first_to_end) << seed;
    ASSERT_EQ(group.until_last_use.greatest().value, begin_to_last) << seed;
    ASSERT_GE(group.shared.offsets_bytes, needed) << seed;
    ASSERT_EQ(group.shared.bound, needed) << seed;
    uint64_t alive_at_peak = 0, wanted = 0;
    for (const Usage &usage : group.ended_since_peak) alive_at_peak += usage.object.bytes;
    ASSERT_EQ(alive_at_peak, peak) << seed;
    // What patterns hold at the peak.
    for (const Life &life : story.lives) {
      if (life.begin > peak_at || (life.end >= 0 && life.end <= peak_at)) continue;
      if (!life.uses.empty() && peak_at < life.uses.front() && story.between(life.begin, life.uses.front()) != 0) {
        wanted += life.bytes;
      }
    }
    if (group.process->has_accesses()) {
      ASSERT_EQ(group.patterns[index_of(Pattern::kEarlyAllocation)].at_peak, wanted) << seed;
    }
  }
}

TEST(Property, SharedObjectsAreNeverUsedTogether) {
  size_t pairs = 0;
  for (int seed = 0; seed < cases(); ++seed) {
    Options options = all_rows();
    options.reuse_tolerance = seed % 2 == 0 ? 0 : 0.5;
    Script script(options);
    const Story story = play(script, seed);
    std::map<uint64_t, const Life *> lives;
    for (const Life &life : story.lives) lives[life.id] = &life;
    std::map<uint64_t, int> lent;
    pairs += script.group().shared.pairs.size();
    for (const SharedPair &pair : script.group().shared.pairs) {
      const Life &later = *lives.at(pair.later), &earlier = *lives.at(pair.earlier);
      ASSERT_LT(earlier.uses.back(), later.uses.front()) << seed;
      ASSERT_TRUE(earlier.end < 0 || earlier.end > later.begin) << "both were allocated at one time, case " << seed;
      ASSERT_EQ(++lent[pair.earlier], 1) << "lent once, case " << seed;
      const auto apart =
          static_cast<double>(std::max(later.bytes, earlier.bytes) - std::min(later.bytes, earlier.bytes));
      ASSERT_LE(apart, options.reuse_tolerance * static_cast<double>(std::max(later.bytes, earlier.bytes))) << seed;
    }
  }
  EXPECT_GT(pairs, 0u);
}

}  // namespace
}  // namespace sonde::memory
