// The live ranges: what an allocation, and a tensor cut out of it, leave behind.
#include "live_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <sonde/spaces/access.h>

namespace sonde::cuda::access {
namespace {

constexpr uint32_t kAllocation = SONDE_OBJECT_IS_ALLOCATION;
constexpr uint32_t kTensor = SONDE_OBJECT_IS_TENSOR;
constexpr uint32_t kRemainder = SONDE_OBJECT_IS_REMAINDER;
constexpr uint32_t kStatic = SONDE_OBJECT_IS_STATIC;

// "[begin,end) kind ordinal" of each range.
std::string text_of(const LiveRanges &live) {
  std::string out;
  for (const LiveRange &range : live.ranges()) {
    static constexpr const char *kKinds[] = {"?", "allocation", "tensor", "remainder", "static"};
    out += "[" + std::to_string(range.begin) + "," + std::to_string(range.end) + ") " + kKinds[range.kind] + " " +
           std::to_string(range.ordinal) + "\n";
  }
  return out;
}

TEST(LiveRanges, AllocationsLieInOrderOfAddress) {
  LiveRanges live;
  EXPECT_EQ(live.allocate(3000, 100, kAllocation), 1u);
  EXPECT_EQ(live.allocate(1000, 100, kStatic), 2u);
  EXPECT_EQ(text_of(live), "[1000,1100) static 2\n[3000,3100) allocation 1\n");
}

TEST(LiveRanges, ARangeOfNoAddressesIsRefused) {
  LiveRanges live;
  EXPECT_EQ(live.allocate(1000, 0, kAllocation), 0u);
  EXPECT_EQ(live.allocate(UINT64_MAX - 10, 100, kAllocation), 0u);
  live.announce(1000, 0, 1, 0);
  live.announce(UINT64_MAX - 10, 100, 2, 0);
  EXPECT_TRUE(live.ranges().empty());
}

TEST(LiveRanges, TheEndOfARangeIsNotInIt) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  EXPECT_EQ(live.find(999), nullptr);
  ASSERT_NE(live.find(1000), nullptr);
  ASSERT_NE(live.find(1099), nullptr);
  EXPECT_EQ(live.find(1100), nullptr);
}

TEST(LiveRanges, ATensorInTheMiddleLeavesARemainderOnEachSide) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.announce(1020, 30, 7, 5);
  EXPECT_EQ(text_of(live), "[1000,1020) remainder 1\n[1020,1050) tensor 7\n[1050,1100) remainder 1\n");
  EXPECT_EQ(live.find(1030)->name, 5u);
  EXPECT_EQ(live.find(1000)->name, 0u);
}

TEST(LiveRanges, TensorsThatFillAnAllocationLeaveNoRemainder) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.announce(1000, 60, 7, 0);
  live.announce(1060, 40, 8, 0);
  EXPECT_EQ(text_of(live), "[1000,1060) tensor 7\n[1060,1100) tensor 8\n");
}

TEST(LiveRanges, RemaindersMergeWhenTheTensorBetweenThemEnds) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.announce(1020, 10, 7, 0);
  live.announce(1030, 10, 8, 0);
  EXPECT_TRUE(live.retire(1020));
  EXPECT_EQ(text_of(live), "[1000,1030) remainder 1\n[1030,1040) tensor 8\n[1040,1100) remainder 1\n");
  EXPECT_TRUE(live.retire(1030));
  EXPECT_EQ(text_of(live), "[1000,1100) remainder 1\n");
  EXPECT_FALSE(live.retire(1030));
}

TEST(LiveRanges, RemaindersOfNeighbouringAllocationsStayApart) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.allocate(1100, 100, kAllocation);
  live.announce(1090, 10, 7, 0);
  live.announce(1100, 10, 8, 0);
  live.retire(1090);
  live.retire(1100);
  EXPECT_EQ(text_of(live), "[1000,1100) remainder 1\n[1100,1200) remainder 2\n");
}

TEST(LiveRanges, ATensorEndsThoseThatItOverlaps) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.announce(1000, 20, 7, 0);
  live.announce(1020, 20, 8, 0);
  live.announce(1040, 20, 9, 0);
  live.announce(1010, 40, 10, 0);
  EXPECT_EQ(text_of(live), "[1000,1010) remainder 1\n[1010,1050) tensor 10\n[1050,1100) remainder 1\n");
  EXPECT_EQ(live.freed(1005)->ordinal, 7u);
  EXPECT_EQ(live.freed(1055)->ordinal, 9u);
}

TEST(LiveRanges, ATensorMayLieInNoKnownAllocation) {
  LiveRanges live;
  live.announce(5000, 100, 7, 0);
  EXPECT_EQ(text_of(live), "[5000,5100) tensor 7\n");
  EXPECT_EQ(live.find(5000)->allocation, 0u);
  EXPECT_TRUE(live.retire(5000));
  EXPECT_TRUE(live.ranges().empty());
}

TEST(LiveRanges, ATensorAcrossTwoAllocationsEndsWithTheFirst) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.allocate(1100, 100, kAllocation);
  live.announce(1050, 100, 7, 0);
  EXPECT_EQ(text_of(live), "[1000,1050) remainder 1\n[1050,1100) tensor 7\n[1100,1200) allocation 2\n");
}

TEST(LiveRanges, ReleaseEndsTheTensorsOfAnAllocation) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.allocate(1100, 50, kAllocation);
  live.announce(1020, 30, 7, 0);
  const std::optional<LiveRange> whole = live.release(1000);
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->begin, 1000u);
  EXPECT_EQ(whole->end, 1100u);
  EXPECT_EQ(whole->ordinal, 1u);
  EXPECT_EQ(text_of(live), "[1100,1150) allocation 2\n");
  EXPECT_FALSE(live.retire(1020));
  EXPECT_EQ(live.freed(1020)->ordinal, 7u);
}

TEST(LiveRanges, ReleaseOfWhatBeginsNowhereChangesNothing) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.announce(1020, 30, 7, 0);
  const uint64_t version = live.version();
  EXPECT_FALSE(live.release(2000).has_value());
  EXPECT_FALSE(live.release(1010).has_value());
  // A tensor or a remainder begins here, an allocation does not.
  EXPECT_FALSE(live.release(1020).has_value());
  EXPECT_FALSE(live.release(1050).has_value());
  EXPECT_EQ(live.version(), version);
}

TEST(LiveRanges, AnAddressThatIsUsedAgainIsAnotherRange) {
  LiveRanges live;
  EXPECT_EQ(live.allocate(1000, 100, kAllocation), 1u);
  live.release(1000);
  EXPECT_EQ(live.find(1000), nullptr);
  EXPECT_EQ(live.allocate(1000, 100, kAllocation), 2u);
  EXPECT_EQ(live.find(1000)->ordinal, 2u);
}

TEST(LiveRanges, AnAllocationOverAnOlderOneEndsAllOfIt) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.announce(1080, 20, 7, 0);
  // Its release was not seen, and the runtime hands out part of its addresses again.
  live.allocate(1000, 50, kAllocation);
  EXPECT_EQ(text_of(live), "[1000,1050) allocation 2\n");
}

TEST(LiveRanges, ForgottenTensorsLeaveTheirAllocations) {
  LiveRanges live;
  live.allocate(1000, 100, kAllocation);
  live.allocate(1100, 100, kAllocation);
  live.announce(1020, 10, 7, 0);
  live.announce(1030, 70, 8, 0);
  live.announce(5000, 10, 9, 0);
  live.forget_tensors();
  EXPECT_EQ(text_of(live), "[1000,1100) remainder 1\n[1100,1200) allocation 2\n");
  EXPECT_EQ(live.freed(1020), nullptr);
  EXPECT_FALSE(live.retire(1020));
}

TEST(LiveRanges, TheVersionChangesWithEveryChange) {
  LiveRanges live;
  uint64_t last = live.version();
  const auto changed = [&] { return std::exchange(last, live.version()) != live.version(); };
  live.allocate(1000, 100, kAllocation);
  EXPECT_TRUE(changed());
  live.announce(1000, 10, 1, 0);
  EXPECT_TRUE(changed());
  (void)live.find(1000);
  (void)live.freed(1000);
  EXPECT_FALSE(changed());
  live.retire(1000);
  EXPECT_TRUE(changed());
  live.release(1000);
  EXPECT_TRUE(changed());
}

TEST(LiveRanges, MoreThan65536RangesAndMoreThanFourGiB) {
  LiveRanges live;
  constexpr uint64_t kBase = uint64_t{0x7f} << 40;
  constexpr uint64_t kBytes = uint64_t{40} << 30;
  constexpr uint64_t kTensors = 70000;
  constexpr uint64_t kStep = 512 << 10;
  ASSERT_EQ(live.allocate(kBase, kBytes, kAllocation), 1u);
  for (uint64_t i = 0; i < kTensors; ++i) live.announce(kBase + i * kStep, kStep - 512, i + 10, 0);
  ASSERT_EQ(live.ranges().size(), 2 * kTensors);
  EXPECT_EQ(live.find(kBase + 69999 * kStep + 5)->ordinal, 69999u + 10);
  EXPECT_EQ(live.find(kBase + 69999 * kStep + kStep - 512)->kind, kRemainder);
  const LiveRange tail = live.ranges().back();
  EXPECT_EQ(tail.end - tail.begin, kBytes - (kTensors - 1) * kStep - (kStep - 512));
  EXPECT_GT(tail.end - tail.begin, uint64_t{4} << 30);
  EXPECT_EQ(live.release(kBase)->end, kBase + kBytes);
  EXPECT_TRUE(live.ranges().empty());
}

TEST(LiveRanges, TheNearestRangeOfAGapIsTheOneAtLessDistance) {
  LiveRanges live;
  int64_t distance = 0;
  EXPECT_EQ(nearest_range(live.ranges(), 5, &distance), nullptr);
  live.allocate(1000, 100, kAllocation);
  live.allocate(1200, 100, kAllocation);
  EXPECT_EQ(nearest_range(live.ranges(), 1100, &distance)->begin, 1000u);
  EXPECT_EQ(distance, 1);
  EXPECT_EQ(nearest_range(live.ranges(), 1199, &distance)->begin, 1200u);
  EXPECT_EQ(distance, -1);
  EXPECT_EQ(nearest_range(live.ranges(), 990, &distance)->begin, 1000u);
  EXPECT_EQ(distance, -10);
  EXPECT_EQ(nearest_range(live.ranges(), 1500, &distance)->begin, 1200u);
  EXPECT_EQ(distance, 201);
}

TEST(LiveRanges, FreedIsTheRangeThatEndedLast) {
  LiveRanges live;
  EXPECT_EQ(live.freed(1050), nullptr);
  live.allocate(1000, 100, kAllocation);
  live.release(1000);
  live.allocate(1040, 20, kAllocation);
  live.release(1040);
  EXPECT_EQ(live.freed(1050)->ordinal, 2u);
  EXPECT_EQ(live.freed(1060)->ordinal, 1u);
  EXPECT_EQ(live.freed(1100), nullptr);
}

TEST(LiveRanges, TheLast65536EndsAreKnown) {
  LiveRanges live;
  for (uint64_t i = 0; i <= 65536; ++i) {
    live.allocate(1000 + i * 10, 10, kAllocation);
    live.release(1000 + i * 10);
  }
  EXPECT_EQ(live.freed(1000), nullptr);
  EXPECT_EQ(live.freed(1010)->ordinal, 2u);
  EXPECT_EQ(live.freed(1000 + 65536 * 10)->ordinal, 65537u);
}

// ---- against a model: what each byte belongs to ----------------------------------------------------------------------

class Model {
 public:
  static constexpr uint64_t kBytes = 96;

  void allocate(uint64_t address, uint64_t bytes, uint32_t kind) {
    for (uint64_t at = address; at < address + bytes; ++at) {
      if (allocation_[at] != 0) {
        end(allocation_, allocation_[at]);
      } else if (tensor_[at] != 0) {
        end(tensor_, tensor_[at]);
      }
    }
    ++last_;
    kinds_[last_] = kind;
    for (uint64_t at = address; at < address + bytes; ++at) allocation_[at] = last_;
  }

  void release(uint64_t address) {
    const uint64_t allocation = allocation_[address];
    if (allocation == 0 || (address > 0 && allocation_[address - 1] == allocation)) return;
    end(allocation_, allocation);
  }

  void announce(uint64_t address, uint64_t bytes, uint64_t ordinal) {
    for (uint64_t at = address; at < address + bytes; ++at) {
      if (tensor_[at] != 0) retire_ordinal(tensor_[at]);
    }
    // Of the allocations that it meets, it lies in the first alone.
    uint64_t in = 0;
    for (uint64_t at = address; at < address + bytes && in == 0; ++at) in = allocation_[at];
    for (uint64_t at = address; at < address + bytes; ++at) {
      if (allocation_[at] == in) tensor_[at] = ordinal;
    }
    if (in != 0) pooled_[in] = true;
  }

  void retire(uint64_t address) {
    const uint64_t tensor = tensor_[address];
    if (tensor == 0 || (address > 0 && tensor_[address - 1] == tensor)) return;
    retire_ordinal(tensor);
  }

  std::string text() const {
    std::string out;
    for (uint64_t at = 0; at < kBytes;) {
      uint64_t last = at + 1;
      while (last < kBytes && allocation_[last] == allocation_[at] && tensor_[last] == tensor_[at]) ++last;
      if (tensor_[at] != 0) {
        out += "[" + std::to_string(at) + "," + std::to_string(last) + ") tensor " + std::to_string(tensor_[at]) + "\n";
      } else if (allocation_[at] != 0) {
        const uint64_t ordinal = allocation_[at];
        const bool pooled = pooled_.contains(ordinal);
        out += "[" + std::to_string(at) + "," + std::to_string(last) + ") " +
               (pooled                          ? "remainder"
                : kinds_.at(ordinal) == kStatic ? "static"
                                                : "allocation") +
               " " + std::to_string(ordinal) + "\n";
      }
      at = last;
    }
    return out;
  }

  // Ordinal of what the byte belongs to, 0 for nothing.
  uint64_t at(uint64_t address) const { return tensor_[address] != 0 ? tensor_[address] : allocation_[address]; }

 private:
  void retire_ordinal(uint64_t ordinal) { std::replace(std::begin(tensor_), std::end(tensor_), ordinal, uint64_t{0}); }

  void end(uint64_t (&owners)[kBytes], uint64_t ordinal) {
    for (uint64_t at = 0; at < kBytes; ++at) {
      if (owners[at] == ordinal) allocation_[at] = tensor_[at] = 0;
    }
  }

  uint64_t allocation_[kBytes] = {};
  uint64_t tensor_[kBytes] = {};
  std::map<uint64_t, uint32_t> kinds_;
  std::map<uint64_t, bool> pooled_;
  uint64_t last_ = 0;
};

uint64_t cases() {
  const char *const text = std::getenv("SONDE_CASES");
  return text != nullptr ? std::max<uint64_t>(std::strtoull(text, nullptr, 10), 1) : 2000;
}

TEST(LiveRanges, RandomHistoriesMatchAModelOfEachByte) {
  std::mt19937_64 random(20250);
  for (uint64_t round = 0; round < cases() / 20 + 1; ++round) {
    LiveRanges live;
    Model model;
    uint64_t ordinal = 1000;
    std::string history;
    for (int step = 0; step < 60; ++step) {
      const uint64_t address = random() % 80;
      const uint64_t bytes = 1 + random() % 16;
      switch (random() % 5) {
        case 0: {
          const uint32_t kind = random() % 4 == 0 ? kStatic : kAllocation;
          history += "allocate " + std::to_string(address) + " " + std::to_string(bytes) + "\n";
          live.allocate(address, bytes, kind);
          model.allocate(address, bytes, kind);
          break;
        }
        case 1: {
          history += "release " + std::to_string(address) + "\n";
          live.release(address);
          model.release(address);
          break;
        }
        case 2:
        case 3:
          history += "announce " + std::to_string(address) + " " + std::to_string(bytes) + "\n";
          live.announce(address, bytes, ++ordinal, 0);
          model.announce(address, bytes, ordinal);
          break;
        default:
          history += "retire " + std::to_string(address) + "\n";
          live.retire(address);
          model.retire(address);
          break;
      }
      ASSERT_EQ(text_of(live), model.text()) << history;
      for (uint64_t at = 0; at < Model::kBytes; ++at) {
        const LiveRange *const range = live.find(at);
        ASSERT_EQ(range != nullptr ? range->ordinal : 0, model.at(at)) << at << " after\n" << history;
        if (range != nullptr) continue;
        // The nearest by walking outwards; of two at one distance, the one before.
        int64_t expected = 0;
        for (int64_t away = 1; away < 200 && expected == 0; ++away) {
          if (static_cast<int64_t>(at) >= away && model.at(at - away) != 0) {
            expected = away;
          } else if (at + away < Model::kBytes && model.at(at + away) != 0) {
            expected = -away;
          }
        }
        int64_t distance = 0;
        const LiveRange *const nearest = nearest_range(live.ranges(), at, &distance);
        ASSERT_EQ(nearest != nullptr ? distance : 0, expected) << at << " after\n" << history;
        if (nearest != nullptr) {
          ASSERT_EQ(nearest->ordinal, model.at(at - expected));
        }
      }
    }
  }
}

}  // namespace
}  // namespace sonde::cuda::access
