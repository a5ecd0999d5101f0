// Working sets and footprints, by hand.
#include "working_sets.h"

#include <gtest/gtest.h>

#include "scripted.h"

namespace sonde::workload {
namespace {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;

constexpr uint32_t kName = 7, kOther = 1;
constexpr uint64_t kGi = uint64_t{1} << 30;

class WorkingSetsTest : public ::testing::Test {
 protected:
  void tell(const MemoryOperation &operation, const std::vector<MemoryTouch> &touches, uint32_t name = kName) {
    sets.operation(operation, name, sum_up(operation, touches));
  }
  const WorkingSetRow &row(uint32_t name = kName, uint32_t device = 0) {
    const WorkingSetRow *const found = sets.kernels().find({0, device, name});
    EXPECT_NE(found, nullptr);
    return *found;
  }

  Options options;
  WorkingSets sets{options, kOther};
  Script script;
};

TEST_F(WorkingSetsTest, AWorkingSetIsTheBytesOfTheTouchedObjects) {
  const MemoryObject a = script.object(0x1000, 100), b = script.object(0x2000, 50), c = script.object(0x3000, 7);
  tell(script.launch(), {Script::touch(a, 1), Script::touch(b, 0, 1)});  // 100 + 50, one access is enough
  tell(script.launch(), {Script::touch(c, 1000)});                       // 7
  EXPECT_EQ(row().launches, 2u);
  EXPECT_EQ(row().watched, 2u);
  EXPECT_EQ(row().objects[0].statistics.min(), 7);
  EXPECT_EQ(row().objects[0].statistics.max(), 150);
  EXPECT_EQ(row().objects[0].statistics.mean(), 78.5);  // (150 + 7) / 2
  EXPECT_EQ(row().read_bytes, 4u * 1001);
  EXPECT_EQ(row().write_bytes, 4u);
}

TEST_F(WorkingSetsTest, PercentilesAreNearestRank) {
  std::vector<MemoryObject> objects;
  for (uint64_t i = 1; i <= 10; ++i) objects.push_back(script.object(0x1000 * i, i));
  for (const MemoryObject &object : objects) tell(script.launch(), {Script::touch(object, 1)});
  EXPECT_EQ(row().objects[0].quantiles.median(), 5);           // rank ceil(10 * 1/2) = 5
  EXPECT_EQ(row().objects[0].quantiles.quantile(90, 100), 9);  // rank 9
}

TEST_F(WorkingSetsTest, LevelsAreKeptApart) {
  const MemoryObject whole = script.object(0x1000, 1000);
  const MemoryObject part = script.object(0x1100, 10, kTensorLevel);
  tell(script.launch(), {Script::touch(whole, 4), Script::touch(part, 4)});
  EXPECT_EQ(row().objects[0].statistics.max(), 1000);
  EXPECT_EQ(row().objects[1].statistics.max(), 10);
  EXPECT_EQ(row().read_bytes, 16u) << "requested bytes count once";
}

TEST_F(WorkingSetsTest, BeyondFourGibibytesNothingWraps) {
  const MemoryObject a = script.object(kGi, 5 * kGi), b = script.object(8 * kGi, 6 * kGi);
  tell(script.launch(), {Script::touch(a, 1), Script::touch(b, 1)});
  EXPECT_EQ(row().objects[0].statistics.max(), static_cast<int64_t>(11 * kGi));
}

TEST_F(WorkingSetsTest, MoreThan65536TensorsAreAllCounted) {
  std::vector<MemoryObject> tensors;
  for (uint64_t i = 0; i < 70'000; ++i) tensors.push_back(script.object(0x1000 + 16 * i, 16, kTensorLevel));
  std::vector<MemoryTouch> touches;
  for (const MemoryObject &tensor : tensors) touches.push_back(Script::touch(tensor, 1));
  tell(script.launch(), touches);
  EXPECT_EQ(row().objects[1].statistics.max(), 70'000 * 16);
  EXPECT_EQ(row().counts.statistics.max(), 70'000);
}

TEST_F(WorkingSetsTest, TouchedBytesAreTheUnionOfReadAndWrittenOnes) {
  const MemoryObject a = script.object(0x1000, 1000);
  const uint64_t read[] = {0, 100, 200, 300}, written[] = {50, 150, 250, 260};
  MemoryTouch touch = Script::touch(a, 1, 1);
  touch.read_edges = read;
  touch.write_edges = written;
  tell(script.launch(), {touch});
  EXPECT_EQ(row().touched.statistics.max(), 250);  // [0, 150) and [200, 300)
}

TEST_F(WorkingSetsTest, WithoutIntervalsOfEveryObjectTouchedBytesAreUnknown) {
  const MemoryObject a = script.object(0x1000, 1000), b = script.object(0x2000, 1000);
  const uint64_t read[] = {0, 100};
  MemoryTouch exact = Script::touch(a, 1);
  exact.read_edges = read;
  tell(script.launch(), {exact, Script::touch(b, 1)});
  EXPECT_EQ(row().touched.count(), 0u);
}

TEST_F(WorkingSetsTest, AZeroSizedObjectAddsNothing) {
  const MemoryObject empty = script.object(0x1000, 0);
  tell(script.launch(), {Script::touch(empty, 1)});
  EXPECT_EQ(row().objects[0].statistics.max(), 0);
  EXPECT_EQ(row().watched, 1u);
}

TEST_F(WorkingSetsTest, ALaunchThatWasNotWatchedIsInNoDistribution) {
  MemoryOperation skipped = script.launch();
  skipped.launch_flags = SONDE_LAUNCH_SKIPPED;
  tell(skipped, {});
  EXPECT_EQ(row().launches, 1u);
  EXPECT_EQ(row().watched, 0u);
  EXPECT_EQ(row().objects[0].count(), 0u);
}

TEST_F(WorkingSetsTest, AWatchedLaunchWithoutAccessesHasAnEmptyWorkingSet) {
  tell(script.launch(), {});
  EXPECT_EQ(row().watched, 1u);
  EXPECT_EQ(row().objects[0].statistics.max(), 0);
}

TEST_F(WorkingSetsTest, ALaunchWhoseTouchesAreElsewhereIsNotTakenForAnEmptyOne) {
  tell(script.launch(0, 100), {});  // 100 accesses, no touch
  EXPECT_EQ(row().watched, 0u);
}

TEST_F(WorkingSetsTest, TouchesThatCameLateAreCountedApart) {
  const MemoryObject a = script.object(0x1000, 100);
  MemoryOperation launch = script.launch(0, 1);
  tell(launch, {});
  launch.is_late = true;
  tell(launch, {Script::touch(a, 1)});
  EXPECT_EQ(row().launches, 1u);
  EXPECT_EQ(row().watched, 0u);
  EXPECT_EQ(row().late, 1u);
}

TEST_F(WorkingSetsTest, DevicesAreKeptApart) {
  const MemoryObject a = script.object(0x1000, 100, kAllocationLevel, 0);
  const MemoryObject b = script.object(0x1000, 30, kAllocationLevel, 1);
  tell(script.launch(0, 0, 0), {Script::touch(a, 1)});
  tell(script.launch(0, 0, 1), {Script::touch(b, 1)});
  EXPECT_EQ(row(kName, 0).objects[0].statistics.max(), 100);
  EXPECT_EQ(row(kName, 1).objects[0].statistics.max(), 30);
  EXPECT_EQ(sets.devices().at({0, 0}).objects[0].statistics.max(), 100);
  EXPECT_EQ(sets.devices().at({0, 1}).objects[0].statistics.max(), 30);
}

TEST_F(WorkingSetsTest, KernelsBeyondTheLimitShareARow) {
  options.name_limit = 1;
  WorkingSets few(options, kOther);
  const MemoryObject a = script.object(0x1000, 100);
  for (uint32_t name = 10; name < 13; ++name) {
    const MemoryOperation launch = script.launch();
    const std::vector<MemoryTouch> touches{Script::touch(a, 1)};
    few.operation(launch, name, sum_up(launch, touches));
  }
  EXPECT_EQ(few.kernels().find({0, 0, 10})->launches, 1u);
  EXPECT_EQ(few.kernels().find({0, 0, kOther})->launches, 2u);
}

TEST_F(WorkingSetsTest, AFootprintIsTheMostAliveAtOneTime) {
  const MemoryObject a = script.object(0x1000, 100), b = script.object(0x2000, 50), c = script.object(0x3000, 70);
  sets.object_begins(a);
  sets.object_begins(b);       // 150
  sets.object_ends(freed(a));  // 50
  sets.object_begins(c);       // 120
  const Footprint &footprint = sets.footprints().at({0, 0, kAllocationLevel});
  EXPECT_EQ(footprint.peak_bytes, 150u);
  EXPECT_EQ(footprint.bytes, 120u);
}

TEST_F(WorkingSetsTest, MemoryOfTheHostIsInNoFootprint) {
  sets.object_begins(script.object(0x1000, 100, kTensorLevel, UINT32_MAX));
  EXPECT_TRUE(sets.footprints().empty());
}

TEST(UnionBytes, OfListsThatTouchNestAndOverlap) {
  const auto bytes = [](std::vector<uint64_t> a, std::vector<uint64_t> b) { return WorkingSets::union_bytes(a, b); };
  EXPECT_EQ(bytes({}, {}), 0u);
  EXPECT_EQ(bytes({0, 10}, {}), 10u);
  EXPECT_EQ(bytes({0, 10}, {10, 20}), 20u);  // neighbours
  EXPECT_EQ(bytes({0, 10}, {2, 5}), 10u);    // inside
  EXPECT_EQ(bytes({0, 10}, {5, 15}), 15u);   // across
  EXPECT_EQ(bytes({0, 1, 9, 10}, {0, 10}), 10u);
  EXPECT_EQ(bytes({0, 5 * kGi}, {4 * kGi, 6 * kGi}), 6 * kGi);
}

}  // namespace
}  // namespace sonde::workload
