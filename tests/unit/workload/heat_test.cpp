// Hot objects and hot blocks, by hand.
#include "heat.h"

#include <gtest/gtest.h>

#include "scripted.h"

namespace sonde::workload {
namespace {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;

class HeatTest : public ::testing::Test {
 protected:
  HeatTest() { options.block_bytes = 4096; }

  void tell(const MemoryOperation &operation, const std::vector<MemoryTouch> &touches) {
    heat.operation(operation, touches);
  }
  std::vector<const ObjectHeat *> objects(toolkit::ObjectLevel level = kAllocationLevel) {
    std::vector<const ObjectHeat *> out;
    for (const auto *const entry : heat.objects(level).sorted()) out.push_back(&entry->item);
    return out;
  }
  std::vector<std::pair<uint64_t, uint64_t>> blocks() {  // address, accesses
    std::vector<std::pair<uint64_t, uint64_t>> out;
    for (const auto *const entry : heat.blocks().sorted()) out.emplace_back(entry->item.address, entry->weight);
    return out;
  }

  Options options;
  Heat heat{options};
  Script script;
};

TEST_F(HeatTest, ObjectsComeByAccesses) {
  const MemoryObject a = script.object(0x1000, 100), b = script.object(0x2000, 100);
  tell(script.launch(), {Script::touch(a, 5, 1), Script::touch(b, 10)});
  tell(script.launch(), {Script::touch(a, 7)});
  heat.object_ends(a);
  heat.object_ends(b);
  ASSERT_EQ(objects().size(), 2u);
  EXPECT_EQ(objects()[0]->object.address, 0x1000u);
  EXPECT_EQ(objects()[0]->accesses(), 13u);  // 5 + 1 + 7
  EXPECT_EQ(objects()[0]->launches, 2u);
  EXPECT_EQ(objects()[0]->bytes, 52u);
  EXPECT_EQ(objects()[1]->accesses(), 10u);
}

TEST_F(HeatTest, AnAddressThatIsUsedAgainIsAnotherObject) {
  const MemoryObject a = script.object(0x1000, 100), again = script.object(0x1000, 100);
  tell(script.launch(), {Script::touch(a, 5)});
  heat.object_ends(a);
  tell(script.launch(), {Script::touch(again, 3)});
  heat.object_ends(again);
  ASSERT_EQ(objects().size(), 2u);
  EXPECT_EQ(objects()[0]->accesses(), 5u);
  EXPECT_EQ(objects()[1]->accesses(), 3u);
}

TEST_F(HeatTest, OnlyTheHottestStay) {
  options.hot_objects = 1;
  Heat few(options);
  const MemoryObject a = script.object(0x1000, 100), b = script.object(0x2000, 100);
  few.operation(script.launch(), std::vector<MemoryTouch>{Script::touch(a, 1), Script::touch(b, 2)});
  few.object_ends(a);
  few.object_ends(b);
  ASSERT_EQ(few.objects(kAllocationLevel).sorted().size(), 1u);
  EXPECT_EQ(few.objects(kAllocationLevel).sorted()[0]->item.object.address, 0x2000u);
}

TEST_F(HeatTest, PagesFallIntoBlocksOfTheAllocation) {
  options.block_bytes = 8192;
  Heat wide(options);
  const MemoryObject a = script.object(0x10000, 0x8000);
  const uint64_t pages[] = {0x10, 0x11, 0x12}, counts[] = {1, 2, 4};  // of 4 KiB
  MemoryTouch touch = Script::touch(a, 7);
  touch.pages = pages;
  touch.page_counts = counts;
  touch.page_bytes = 4096;
  wide.operation(script.launch(100), std::vector<MemoryTouch>{touch});
  wide.object_ends(a);
  const auto sorted = wide.blocks().sorted();
  ASSERT_EQ(sorted.size(), 2u);
  EXPECT_EQ(sorted[0]->item.address, 0x12000u);
  EXPECT_EQ(sorted[0]->weight, 4u);
  EXPECT_EQ(sorted[1]->item.address, 0x10000u);
  EXPECT_EQ(sorted[1]->weight, 3u);  // both pages of the block
  EXPECT_EQ(sorted[0]->item.bytes, 8192u);
  EXPECT_FALSE(sorted[0]->item.is_whole);
}

TEST_F(HeatTest, WithoutPagesTheAllocationIsTheBlock) {
  const MemoryObject a = script.object(0x1000, 100);
  tell(script.launch(), {Script::touch(a, 5)});
  heat.object_ends(a);
  EXPECT_EQ(blocks(), (std::vector<std::pair<uint64_t, uint64_t>>{{0x1000, 5}}));
  EXPECT_TRUE(heat.blocks().sorted()[0]->item.is_whole);
}

TEST_F(HeatTest, BlocksOfALargeAllocationDouble) {
  options.object_blocks = 2;
  Heat few(options);
  const MemoryObject a = script.object(0, uint64_t{1} << 33);
  const uint64_t pages[] = {0, (uint64_t{1} << 33) / 4096 - 1}, counts[] = {1, 2};
  MemoryTouch touch = Script::touch(a, 3);
  touch.pages = pages;
  touch.page_counts = counts;
  touch.page_bytes = 4096;
  few.operation(script.launch(), std::vector<MemoryTouch>{touch});
  few.object_ends(a);
  ASSERT_EQ(few.blocks().sorted().size(), 2u);
  EXPECT_EQ(few.blocks().sorted()[0]->item.bytes, uint64_t{1} << 32);  // two blocks of half of it
}

TEST_F(HeatTest, TimeIsInBins) {
  options.time_bins = 2;
  Heat few(options);
  const MemoryObject a = script.object(0x1000, 100);
  few.operation(script.launch(0), std::vector<MemoryTouch>{Script::touch(a, 1)});
  few.operation(script.launch(3), std::vector<MemoryTouch>{Script::touch(a, 2)});
  few.operation(script.launch(7), std::vector<MemoryTouch>{Script::touch(a, 4)});  // 0 to 7 are two bins of 4
  few.object_ends(a);
  const ObjectHeat &found = few.objects(kAllocationLevel).sorted()[0]->item;
  EXPECT_EQ(found.width_ns, 4);
  EXPECT_EQ(found.times, (std::vector<uint64_t>{3, 4}));
}

TEST_F(HeatTest, OperationsOfTheHostAreNoHeat) {
  const MemoryObject a = script.object(0x1000, 100);
  tell(script.copy(), {Script::touch(a, 1)});
  heat.object_ends(a);
  ASSERT_EQ(objects().size(), 1u);
  EXPECT_EQ(objects()[0]->accesses(), 0u);
  EXPECT_EQ(objects()[0]->host_operations, 1u);
  EXPECT_TRUE(blocks().empty());
}

TEST_F(HeatTest, WhatIsHeldEndsWithItsObjects) {
  for (uint64_t i = 0; i < 1000; ++i) {
    const MemoryObject a = script.object(0x1000, 100);
    tell(script.launch(static_cast<int64_t>(i)), {Script::touch(a, 1)});
    EXPECT_EQ(heat.live(), 1u);
    heat.object_ends(a);
  }
  EXPECT_EQ(heat.live(), 0u);
  EXPECT_EQ(heat.totals().at(Heat::total_key(0, 0)).accesses, 1000u);
  EXPECT_EQ(objects().size(), 100u);
}

}  // namespace
}  // namespace sonde::workload
