// Bins that grow, heat maps, and the greatest of a stream.
#include <gtest/gtest.h>
#include <sonde/toolkit/address_time_grid.h>
#include <sonde/toolkit/bin_axis.h>
#include <sonde/toolkit/top_list.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace sonde::toolkit {
namespace {

std::vector<uint64_t> amounts(const TimeBins &bins) { return bins.amounts(); }

TEST(TimeBins, KeepTheFinestWidthWhileEverythingFits) {
  TimeBins bins(4);
  bins.add(10, 1);
  bins.add(13, 2);
  EXPECT_EQ(bins.width(), 1);
  EXPECT_EQ(bins.begin_of(0), 10);
  EXPECT_EQ(amounts(bins), (std::vector<uint64_t>{1, 0, 0, 2}));
}

TEST(TimeBins, DoubleWhereOneMoreDoesNotFit) {
  TimeBins bins(4);
  bins.add(10, 1);
  bins.add(13, 2);
  bins.add(14, 4);  // 10 to 14 are five bins; of width 2 they are those of 10, 12 and 14
  EXPECT_EQ(bins.width(), 2);
  EXPECT_EQ(bins.begin_of(0), 10);
  EXPECT_EQ(amounts(bins), (std::vector<uint64_t>{1, 2, 4}));
}

TEST(TimeBins, GrowTowardsEarlierTimesToo) {
  TimeBins bins(4);
  bins.add(10, 1);
  bins.add(8, 2);
  EXPECT_EQ(bins.width(), 1);
  EXPECT_EQ(amounts(bins), (std::vector<uint64_t>{2, 0, 1}));
  bins.add(-1, 4);  // -1 to 10: of width 4 the bins of -4, 0, 4 and 8
  EXPECT_EQ(bins.width(), 4);
  EXPECT_EQ(bins.begin_of(0), -4);
  EXPECT_EQ(amounts(bins), (std::vector<uint64_t>{4, 0, 0, 3}));
}

TEST(TimeBins, HoldTheWholeRangeOfTimes) {
  TimeBins bins(2);
  bins.add(INT64_MIN, 1);
  bins.add(INT64_MAX, 2);
  EXPECT_EQ(amounts(bins), (std::vector<uint64_t>{1, 2}));
}

TEST(TimeBins, DoNotDependOnTheOrder) {
  std::mt19937_64 random(1);
  std::vector<std::pair<int64_t, uint64_t>> items;
  for (int i = 0; i < 200; ++i) items.emplace_back(static_cast<int64_t>(random() % 1'000'000), random() % 100);
  TimeBins forward(16), other(16);
  for (const auto &[time, amount] : items) forward.add(time, amount);
  std::shuffle(items.begin(), items.end(), random);
  for (const auto &[time, amount] : items) other.add(time, amount);
  EXPECT_EQ(forward.width(), other.width());
  EXPECT_EQ(forward.begin_of(0), other.begin_of(0));
  EXPECT_EQ(amounts(forward), amounts(other));
}

TEST(TimeBins, TheLeastWidthIsThePowerOfTwoBelowTheOneAskedFor) {
  TimeBins bins(4, 1000);
  bins.add(0, 1);
  EXPECT_EQ(bins.width(), 512);
}

struct Cell {
  uint64_t address;
  std::vector<uint64_t> amounts;
  bool operator==(const Cell &) const = default;
};

std::vector<Cell> cells(const AddressTimeGrid &grid) {
  std::vector<Cell> out;
  grid.for_each_row([&](uint64_t address, const std::vector<uint64_t> &row) {
    Cell cell{address, row};
    cell.amounts.resize(grid.columns());
    out.push_back(cell);
  });
  return out;
}

TEST(AddressTimeGrid, SumsByBlockAndTime) {
  AddressTimeGrid grid(4, 4, 256);
  grid.add(0x1000, 5, 1);
  grid.add(0x10ff, 5, 2);  // the same block of 256 bytes
  grid.add(0x1100, 6, 4);
  EXPECT_EQ(grid.block(), 256u);
  EXPECT_EQ(cells(grid), (std::vector<Cell>{{0x1000, {3, 0}}, {0x1100, {0, 4}}}));
}

TEST(AddressTimeGrid, BlocksDoubleWhereAddressesLieApart) {
  AddressTimeGrid grid(2, 4, 256);
  grid.add(0x1000, 5, 1);
  grid.add(0x1100, 6, 2);
  grid.add(0x1300, 6, 4);  // 0x1000 to 0x1300 are four blocks of 256, two of 512
  EXPECT_EQ(grid.block(), 512u);
  EXPECT_EQ(cells(grid), (std::vector<Cell>{{0x1000, {1, 2}}, {0x1200, {0, 4}}}));
}

TEST(AddressTimeGrid, NothingIsLostWhateverComes) {
  std::mt19937_64 random(7);
  AddressTimeGrid grid(8, 8, 64);
  uint64_t given = 0;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t amount = random() % 10;
    given += amount;
    grid.add(random() % (uint64_t{1} << 40), static_cast<int64_t>(random() % 1'000'000'000), amount);
  }
  uint64_t held = 0;
  size_t rows = 0;
  grid.for_each_row([&](uint64_t, const std::vector<uint64_t> &row) {
    ++rows;
    EXPECT_LE(row.size(), 8u);
    for (const uint64_t amount : row) held += amount;
  });
  EXPECT_EQ(held, given);
  EXPECT_LE(rows, 8u);
}

std::vector<std::string> names(const TopList<std::string> &list) {
  std::vector<std::string> out;
  for (const auto *const entry : list.sorted()) out.push_back(entry->item);
  return out;
}

TEST(TopList, KeepsTheGreatest) {
  TopList<std::string> list(2);
  list.add(3, "three");
  list.add(1, "one");
  list.add(2, "two");
  EXPECT_EQ(names(list), (std::vector<std::string>{"three", "two"}));
  EXPECT_EQ(list.offered(), 3u);
}

TEST(TopList, OfEqualOnesKeepsTheFirst) {
  TopList<std::string> list(2);
  list.add(1, "a");
  list.add(1, "b");
  list.add(1, "c");
  EXPECT_EQ(names(list), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(list.takes(1));
  EXPECT_TRUE(list.takes(2));
}

TEST(TopList, OfNoPlacesKeepsNothing) {
  TopList<std::string> list(0);
  list.add(9, "a");
  EXPECT_TRUE(list.sorted().empty());
}

}  // namespace
}  // namespace sonde::toolkit
