// Versions of the live ranges as device code sees them: lookups, what they share, and their memory.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include <sonde/spaces/access.h>

#include "space.h"

namespace sonde::cuda::access {
namespace {

std::vector<std::unique_ptr<uint8_t[]>> memory;  // of the device

// Device memory is host memory, and copies are made at once.
SanitizerApi memory_alone() {
  SanitizerApi api;
  api.allocate = [](Context, void **out, size_t bytes) -> SanitizerResult {
    memory.push_back(std::make_unique<uint8_t[]>(bytes));
    *out = memory.back().get();
    return kSanitizerSuccess;
  };
  api.copy_to_device = [](void *to, const void *from, size_t bytes, StreamHandle) -> SanitizerResult {
    std::memcpy(to, from, bytes);
    return kSanitizerSuccess;
  };
  api.synchronize = [](StreamHandle) -> SanitizerResult { return kSanitizerSuccess; };
  return api;
}

class Tables : public ::testing::Test {
 protected:
  ~Tables() override { memory.clear(); }
  Tables() : space_(api_, nullptr, 0, SpaceOptions{}) {}

  // As device code looks an address up: the last position that begins at or before it, if that has not ended there.
  static uint32_t locate(const Table &table, uint64_t address) {
    uint32_t position = 0;
    for (uint32_t step = table.entries / 2; step != 0; step >>= 1) {
      if (table.device_ranges()[position + step].begin <= address) position += step;
    }
    return address < table.device_ranges()[position].end ? position : 0;
  }

  void expect_lookups_match(const Table &table, uint64_t address) {
    const LiveRange *const range = live_.find(address);
    const uint32_t position = locate(table, address);
    ASSERT_EQ(position != 0, range != nullptr) << address;
    if (position != 0) {
      ASSERT_EQ(table.ranges[position - 1].ordinal, range->ordinal) << address;
    }
  }

  SanitizerApi api_ = memory_alone();
  LiveRanges live_;
  Space space_;
};

TEST_F(Tables, WithoutRangesNothingIsFound) {
  const auto table = space_.table(live_, kObjects);
  ASSERT_NE(table, nullptr);
  for (const uint64_t address : {uint64_t{0}, uint64_t{4096}, UINT64_MAX}) EXPECT_EQ(locate(*table, address), 0u);
}

TEST_F(Tables, LookupsFindTheRangeOfEachAddress) {
  std::mt19937_64 random(11);
  // Counts on both sides of powers of two, where the table's length changes.
  for (const uint64_t count : {1, 2, 3, 6, 7, 13, 14, 15, 62, 63, 1000}) {
    live_ = LiveRanges();
    for (uint64_t i = 0; i < count; ++i) {
      live_.allocate(4096 + i * 4096, 1 + random() % 4096, SONDE_OBJECT_IS_ALLOCATION);
    }
    const auto table = space_.table(live_, kObjects);
    ASSERT_NE(table, nullptr);
    for (const LiveRange &range : live_.ranges()) {
      for (const uint64_t address : {range.begin - 1, range.begin, range.end - 1, range.end}) {
        expect_lookups_match(*table, address);
      }
    }
    for (int i = 0; i < 1000; ++i) expect_lookups_match(*table, random() % (4096 * (count + 3)));
    expect_lookups_match(*table, UINT64_MAX);
  }
}

TEST_F(Tables, MoreThan65536RangesAndObjectsOfMoreThan4GiBAreFound) {
  constexpr uint64_t kBase = uint64_t{0x7f} << 40;
  live_.allocate(kBase, uint64_t{40} << 30, SONDE_OBJECT_IS_ALLOCATION);
  live_.allocate(kBase + (uint64_t{50} << 30), uint64_t{9} << 30, SONDE_OBJECT_IS_ALLOCATION);
  for (uint64_t i = 0; i < 70000; ++i) live_.announce(kBase + i * 8192, 5000, i + 100, 0);
  const auto table = space_.table(live_, kObjects);
  ASSERT_EQ(table->ranges.size(), live_.ranges().size());
  std::mt19937_64 random(12);
  for (int i = 0; i < 20000; ++i) expect_lookups_match(*table, kBase + random() % (uint64_t{60} << 30));
}

TEST_F(Tables, EachPageAndEach64KiBOfARangeHasAPlaceOfItsOwn) {
  live_.allocate(5000, 10000, SONDE_OBJECT_IS_ALLOCATION);    // pages 1 to 3
  live_.allocate(15000, 100, SONDE_OBJECT_IS_ALLOCATION);     // page 3 again, of another range
  live_.allocate(70000, 200000, SONDE_OBJECT_IS_ALLOCATION);  // pages 17 to 65, pieces of 64 KiB 1 to 4
  const auto table = space_.table(live_, kPages | kIntervals);
  EXPECT_EQ(table->page_counters, 3u + 1 + 49);
  EXPECT_EQ(table->directory_entries, 1u + 1 + 4);
  std::vector<int> pages(table->page_counters);
  std::vector<int> pieces(table->directory_entries);
  for (size_t i = 0; i < table->ranges.size(); ++i) {
    const LiveRange &range = table->ranges[i];
    for (uint64_t page = range.begin >> 12; page <= (range.end - 1) >> 12; ++page) {
      ++pages.at(page + static_cast<uint64_t>(table->device_page_offsets()[i + 1]));
    }
    for (uint64_t piece = range.begin >> kChunkShift; piece <= (range.end - 1) >> kChunkShift; ++piece) {
      ++pieces.at(piece + static_cast<uint64_t>(table->device_directory_offsets()[i + 1]));
    }
  }
  EXPECT_EQ(pages, std::vector<int>(pages.size(), 1));
  EXPECT_EQ(pieces, std::vector<int>(pieces.size(), 1));
}

TEST_F(Tables, PagesGrowWhereThereWouldBeTooMany) {
  // 1 TiB in pages of 4 KiB would be 2^28 counters; there are at most 2^26.
  live_.allocate(uint64_t{1} << 44, uint64_t{1} << 40, SONDE_OBJECT_IS_ALLOCATION);
  const auto table = space_.table(live_, kPages);
  EXPECT_EQ(table->page_shift, 14u);
  EXPECT_EQ(table->page_counters, uint64_t{1} << 26);
}

TEST_F(Tables, AVersionServesUntilSomethingChanges) {
  live_.allocate(4096, 4096, SONDE_OBJECT_IS_ALLOCATION);
  const auto first = space_.table(live_, kObjects);
  EXPECT_EQ(space_.table(live_, kPages), first);
  live_.allocate(65536, 4096, SONDE_OBJECT_IS_ALLOCATION);
  const auto second = space_.table(live_, kObjects);
  EXPECT_NE(second, first);
  EXPECT_EQ(locate(*first, 65536), 0u);
  EXPECT_NE(locate(*second, 65536), 0u);
}

TEST_F(Tables, WhereAccessesAreCheckedRemaindersAreNotLive) {
  live_.allocate(4096, 4096, SONDE_OBJECT_IS_ALLOCATION);
  live_.announce(4096, 1000, 9, 0);
  EXPECT_NE(locate(*space_.table(live_, kObjects), 6000), 0u);
  EXPECT_EQ(locate(*space_.table(live_, kCheck), 6000), 0u);
  EXPECT_NE(locate(*space_.table(live_, kCheck), 4096), 0u);
  EXPECT_NE(locate(*space_.table(live_, kObjects), 6000), 0u);
}

TEST_F(Tables, MemoryOfAVersionThatNobodyHasServesAgain) {
  const size_t before = memory.size();
  for (uint64_t i = 0; i < 100; ++i) {
    live_.allocate(4096, 4096 + i, SONDE_OBJECT_IS_ALLOCATION);
    ASSERT_NE(space_.table(live_, kObjects), nullptr);
  }
  EXPECT_LE(memory.size() - before, 2u);
  // Those that launches hold keep theirs.
  std::vector<std::shared_ptr<const Table>> held;
  for (uint64_t i = 0; i < 10; ++i) {
    live_.allocate(4096, 8192 + i, SONDE_OBJECT_IS_ALLOCATION);
    held.push_back(space_.table(live_, kObjects));
  }
  for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i]->device_ranges()[1].end, 4096 + 8192 + i);
}

}  // namespace
}  // namespace sonde::cuda::access
