// Traces from what the history of memory tells, scripted by hand.
#include <gtest/gtest.h>

#include <deque>

#include <sonde/spaces/memory.h>

#include "profile.h"

namespace sonde::uvm {
namespace {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::ObjectLevel;
using toolkit::OperationKind;

class ProfileOf {
 public:
  explicit ProfileOf(ProfileOptions options = {})
      : profile(options, [this](uint32_t name) -> const std::string & { return names[name]; }) {}

  MemoryObject &allocate(uint64_t address, uint64_t bytes, uint32_t kind = SONDE_MEMORY_MANAGED) {
    return begin(ObjectLevel::kAllocation, address, bytes, kind);
  }
  MemoryObject &tensor(uint64_t address, uint64_t bytes) {
    return begin(ObjectLevel::kTensor, address, bytes, SONDE_MEMORY_MANAGED);
  }
  MemoryObject &begin(ObjectLevel level, uint64_t address, uint64_t bytes, uint32_t kind) {
    MemoryObject object;
    object.id = objects.size() + 1;
    object.level = level;
    object.kind = kind;
    object.address = address;
    object.bytes = bytes;
    object.begin_ns = time_ns;
    objects.push_back(object);
    profile.object_begins(objects.back());
    return objects.back();
  }
  void end(MemoryObject &object) {
    object.end = toolkit::ObjectEnd::kFreed;
    object.end_ns = time_ns;
    profile.object_ends(object);
  }

  MemoryOperation next(uint32_t name = 1) {
    MemoryOperation operation;
    operation.name = name;
    operation.launch = ++launches;
    operation.correlation = 100 + launches;
    operation.time_ns = time_ns += 1000;
    operation.launch_flags = SONDE_LAUNCH_WATCHED;
    operation.grid[0] = operation.block[0] = 1;
    return operation;
  }
  // A launch that reads bytes [begin, end) of an object, or writes them; and how long it took.
  void launch(const MemoryObject &object, uint64_t begin, uint64_t end, bool writes, int64_t ns, uint32_t name = 1) {
    const uint64_t edges[] = {begin, end};
    MemoryTouch touch;
    touch.object = &object;
    (writes ? touch.write_edges : touch.read_edges) = edges;
    const MemoryOperation operation = next(name);
    profile.operation(operation, std::span(&touch, 1));
    profile.kernel(0, operation.correlation, 0, operation.time_ns + 500'000, operation.time_ns + 500'000 + ns);
  }
  const Trace &trace() {
    profile.finish();
    EXPECT_EQ(profile.traces().size(), 1u);
    static const Trace none;
    return profile.traces().empty() ? none : profile.traces()[0];
  }

  std::vector<std::string> names{"", "kernel", "other"};
  Profile profile;
  std::deque<MemoryObject> objects;
  int64_t time_ns = 1'000'000;
  uint64_t launches = 0;
};

constexpr uint64_t kAddress = uint64_t{1} << 40;

TEST(Profile, BytesBecomeWholePages) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes);
  one.launch(object, kPageBytes - 1, kPageBytes + 1, false, 100);
  one.launch(object, 2 * kPageBytes, 3 * kPageBytes, true, 100);
  const Trace &trace = one.trace();
  ASSERT_EQ(trace.steps.size(), 2u);
  const TouchSet &first = trace.sets[trace.steps[0].touches];
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].first, 0u);
  EXPECT_EQ(first[0].count, 2u);
  EXPECT_FALSE(first[0].is_written);
  const TouchSet &second = trace.sets[trace.steps[1].touches];
  EXPECT_EQ(second[0].first, 2u);
  EXPECT_EQ(second[0].count, 1u) << "the end is exclusive";
  EXPECT_TRUE(second[0].is_written);
}

TEST(Profile, SpansAreCutWhereWritingBegins) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes);
  const uint64_t read[] = {0, 4 * kPageBytes};
  const uint64_t written[] = {2 * kPageBytes, 6 * kPageBytes};
  MemoryTouch touch;
  touch.object = &object;
  touch.read_edges = read;
  touch.write_edges = written;
  touch.read_bytes = 3 * kPageBytes;  // of six touched pages: traffic 0.5
  one.profile.operation(one.next(), std::span(&touch, 1));
  const Trace &trace = one.trace();
  const TouchSet &set = trace.sets[trace.steps[0].touches];
  ASSERT_EQ(set.size(), 3u);
  EXPECT_TRUE(set[0].is_read && !set[0].is_written);
  EXPECT_TRUE(set[1].is_read && set[1].is_written);
  EXPECT_TRUE(!set[2].is_read && set[2].is_written);
  EXPECT_FLOAT_EQ(set[0].traffic, 0.5f);
}

TEST(Profile, PagesOfAHistogramAreTouches) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes);
  // Pages of 4 KiB: the first of the object, and one in its third page of 64 KiB.
  const uint64_t pages[] = {kAddress / 4096, kAddress / 4096 + 33};
  const uint64_t counts[] = {1, 1};
  MemoryTouch touch;
  touch.object = &object;
  touch.pages = pages;
  touch.page_counts = counts;
  touch.page_bytes = 4096;
  touch.reads = 2;
  one.profile.operation(one.next(), std::span(&touch, 1));
  const TouchSet &set = one.trace().sets[1];
  ASSERT_EQ(set.size(), 2u);
  EXPECT_EQ(set[1].first, 2u);
  EXPECT_EQ(set[1].count, 1u);
}

TEST(Profile, WithoutBytesTheTouchedTensorsStandForThem) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes);
  const MemoryObject &tensor = one.tensor(kAddress + 4 * kPageBytes, kPageBytes);
  MemoryTouch touches[2];
  touches[0].object = &object;
  touches[0].writes = 1;
  touches[1].object = &tensor;
  touches[1].writes = 1;
  one.profile.operation(one.next(), touches);
  const TouchSet &set = one.trace().sets[1];
  ASSERT_EQ(set.size(), 1u);
  EXPECT_EQ(set[0].first, 4u);
  EXPECT_TRUE(set[0].is_written);
  EXPECT_FALSE(set[0].is_read);
  EXPECT_EQ(one.profile.counts().by_tensors, 1u);
}

TEST(Profile, WithoutBytesAndTensorsTheWholeAllocationDoes) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes);
  MemoryTouch touch;
  touch.object = &object;
  touch.reads = 1;
  one.profile.operation(one.next(), std::span(&touch, 1));
  EXPECT_EQ(one.trace().sets[1][0].count, 10u);
  EXPECT_EQ(one.profile.counts().whole, 1u);
}

TEST(Profile, ManyRangesAreJoinedOverTheirSmallestGaps) {
  ProfileOptions options;
  options.most_spans = 2;
  ProfileOf one(options);
  const MemoryObject &object = one.allocate(kAddress, 100 * kPageBytes);
  // Pages 0, 2 and 50: the gap of one page is joined.
  const uint64_t edges[] = {0, 1, 2 * kPageBytes, 2 * kPageBytes + 1, 50 * kPageBytes, 50 * kPageBytes + 1};
  MemoryTouch touch;
  touch.object = &object;
  touch.read_edges = edges;
  one.profile.operation(one.next(), std::span(&touch, 1));
  const TouchSet &set = one.trace().sets[1];
  ASSERT_EQ(set.size(), 2u);
  EXPECT_EQ(set[0].count, 3u);
  EXPECT_EQ(set[1].first, 50u);
  EXPECT_EQ(one.profile.counts().joined_spans, 1u);
}

TEST(Profile, ALaunchTakesWhatTheFastestOfItsShapeTook) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes);
  one.launch(object, 0, kPageBytes, false, 9'000);
  one.launch(object, 0, kPageBytes, false, 400);
  one.launch(object, 0, kPageBytes, false, 500);
  const Trace &trace = one.trace();
  for (const Step &step : trace.steps) EXPECT_EQ(step.duration_ns, 400);
  EXPECT_EQ(one.profile.counts().timed, 3u);
  EXPECT_EQ(one.profile.counts().estimated, 0u);
}

TEST(Profile, ALaunchThatWasOnlySeenFaultingIsEstimatedFromItsBytes) {
  ProfileOptions options;
  options.device_rate = 65.536e9;  // a page in 1 us
  ProfileOf one(options);
  const MemoryObject &object = one.allocate(kAddress, 100 * kPageBytes);
  one.launch(object, 0, 20 * kPageBytes, false, 900'000);
  const Trace &trace = one.trace();
  EXPECT_EQ(trace.steps[0].duration_ns, 20'000);
  EXPECT_TRUE(trace.steps[0].is_estimated);
}

TEST(Profile, GapsAreTimesInWhichTheDeviceRanNothing) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes);
  // Launches are 1 us apart; the first kernel runs for 300 ns, so 700 ns are idle.
  one.launch(object, 0, kPageBytes, false, 300);
  one.launch(object, 0, kPageBytes, false, 300);
  const Trace &trace = one.trace();
  EXPECT_EQ(trace.steps[0].gap_ns, 0u);
  EXPECT_EQ(trace.steps[1].gap_ns, 700u);
}

TEST(Profile, WhatComesBeforeTheFirstTouchIsLeftOutButCounts) {
  ProfileOf one;
  one.profile.operation(one.next(2), {});
  one.profile.operation(one.next(1), {});
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes);
  one.launch(object, 0, kPageBytes, false, 300);
  const Trace &trace = one.trace();
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_EQ(trace.steps[0].launch, 2u);
  EXPECT_EQ(trace.steps[0].occurrence, 1u) << "the kernel was launched once before";
  EXPECT_EQ(trace.launches(), 3u);
}

TEST(Profile, NodesOfOneGraphLaunchAreOneLaunch) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes);
  one.launch(object, 0, kPageBytes, false, 300);
  for (uint64_t node = 1; node <= 4; ++node) {
    const uint64_t edges[] = {0, 1};
    MemoryTouch touch;
    touch.object = &object;
    touch.read_edges = edges;
    MemoryOperation operation = one.next();
    operation.graph_exec = 3;
    operation.graph_node = node;
    operation.correlation = node <= 2 ? 50 : 51;  // two launches of two nodes
    one.profile.operation(operation, std::span(&touch, 1));
  }
  const Trace &trace = one.trace();
  ASSERT_EQ(trace.steps.size(), 5u);
  EXPECT_EQ(trace.steps[1].launch, 1u);
  EXPECT_EQ(trace.steps[2].launch, 1u);
  EXPECT_EQ(trace.steps[3].launch, 2u);
  EXPECT_EQ(trace.steps[2].occurrence, 0u);
  EXPECT_EQ(trace.steps[4].occurrence, 1u) << "graph launches are counted as one kernel";
  EXPECT_EQ(trace.launches(), 3u);
}

TEST(Profile, AnAddressThatIsUsedAgainIsAnotherAllocation) {
  ProfileOf one;
  MemoryObject &first = one.allocate(kAddress, 10 * kPageBytes);
  one.launch(first, 0, kPageBytes, false, 300);
  one.time_ns += 10;
  one.end(first);
  one.time_ns += 10;
  const MemoryObject &second = one.allocate(kAddress, 10 * kPageBytes);
  one.launch(second, 0, kPageBytes, false, 300);
  const Trace &trace = one.trace();
  ASSERT_EQ(trace.allocations.size(), 2u);
  EXPECT_EQ(trace.sets[trace.steps[0].touches][0].allocation, 0u);
  EXPECT_EQ(trace.sets[trace.steps[1].touches][0].allocation, 1u);
  EXPECT_EQ(trace.allocations[0].end_step, 1u);
  EXPECT_EQ(trace.allocations[1].begin_step, 1u);
  EXPECT_EQ(trace.allocations[1].end_step, kNone);
}

TEST(Profile, MemoryThatIsNotManagedStandsForItWhereThereIsNone) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 10 * kPageBytes, SONDE_MEMORY_DEVICE);
  one.launch(object, 0, kPageBytes, false, 300);
  EXPECT_EQ(one.trace().allocations.size(), 1u);
  EXPECT_TRUE(one.profile.counts().is_all_memory);

  ProfileOf both;
  const MemoryObject &device = both.allocate(kAddress, 10 * kPageBytes, SONDE_MEMORY_DEVICE);
  const MemoryObject &managed = both.allocate(2 * kAddress, 10 * kPageBytes);
  both.launch(device, 0, kPageBytes, false, 300);
  both.launch(managed, 0, kPageBytes, false, 300);
  EXPECT_EQ(both.trace().allocations.size(), 1u) << "the managed one alone";
  EXPECT_FALSE(both.profile.counts().is_all_memory);

  ProfileOptions only;
  only.memory = Memory::kManaged;
  ProfileOf none(only);
  const MemoryObject &other = none.allocate(kAddress, 10 * kPageBytes, SONDE_MEMORY_DEVICE);
  none.launch(other, 0, kPageBytes, false, 300);
  none.profile.finish();
  EXPECT_TRUE(none.profile.traces().empty());
}

TEST(Profile, MigrationsTellWherePagesWere) {
  ProfileOf one;
  const MemoryObject &moved = one.allocate(kAddress, 32 * kPageBytes);
  const MemoryObject &made = one.allocate(2 * kAddress, 32 * kPageBytes);
  one.launch(moved, 0, kPageBytes, false, 300);
  one.launch(made, 0, kPageBytes, true, 300);
  one.profile.migration(0, one.time_ns + 100, kAddress, 2 * kPageBytes, false, false);
  const Trace &trace = one.trace();
  EXPECT_EQ(trace.allocations[0].home, Home::kHost);
  EXPECT_EQ(trace.allocations[1].home, Home::kNowhere) << "nothing of it came from the host";
}

TEST(Profile, ManyMigrationsMayNotBeAll) {
  // Two records are trusted to be all, three are not: what was not reported may have come from the host too.
  ProfileOptions options;
  options.trusted_migrations = 2;
  for (const int records : {2, 3}) {
    ProfileOf one(options);
    const MemoryObject &moved = one.allocate(kAddress, 32 * kPageBytes);
    const MemoryObject &other = one.allocate(2 * kAddress, 32 * kPageBytes);
    one.launch(moved, 0, kPageBytes, false, 300);
    one.launch(other, 0, kPageBytes, true, 300);
    for (int i = 0; i < records; ++i) {
      one.profile.migration(0, one.time_ns + 100 + i, kAddress + static_cast<uint64_t>(i) * 2 * kPageBytes, kPageBytes,
                            false, false);
    }
    EXPECT_EQ(one.trace().allocations[1].home, records == 2 ? Home::kNowhere : Home::kHost) << records;
  }
}

TEST(Profile, WithoutMigrationsPagesAreTheHosts) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 32 * kPageBytes);
  one.launch(object, 0, kPageBytes, true, 300);
  EXPECT_EQ(one.trace().allocations[0].home, Home::kHost);
  ProfileOptions nowhere;
  nowhere.home = HomeRule::kNowhere;
  ProfileOf other(nowhere);
  const MemoryObject &second = other.allocate(kAddress, 32 * kPageBytes);
  other.launch(second, 0, kPageBytes, true, 300);
  EXPECT_EQ(other.trace().allocations[0].home, Home::kNowhere);
}

TEST(Profile, PagesThatGoBackAreATouchOfTheHostBetweenItsLaunches) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 32 * kPageBytes);
  one.launch(object, 0, 4 * kPageBytes, true, 300);
  const int64_t between = one.time_ns + 500;
  one.launch(object, 0, 4 * kPageBytes, true, 300);
  one.profile.migration(0, between, kAddress, kPageBytes, true, false);
  one.profile.migration(0, between + 1, kAddress + 3 * kPageBytes, kPageBytes, true, false);
  one.profile.migration(0, between + 2, kAddress, 32 * kPageBytes, true, true);  // the driver's own eviction is none
  const Trace &trace = one.trace();
  ASSERT_EQ(trace.steps.size(), 3u);
  EXPECT_TRUE(trace.steps[1].is_host());
  const TouchSet &set = trace.sets[trace.steps[1].touches];
  ASSERT_EQ(set.size(), 2u);
  EXPECT_EQ(set[1].first, 3u);
  EXPECT_EQ(trace.allocations[0].host_touches, 1u);
  EXPECT_EQ(trace.allocations[0].device_touches, 2u);
}

TEST(Profile, OneDeviceIsPlannedFor) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 32 * kPageBytes);
  one.launch(object, 0, kPageBytes, false, 300);
  one.launch(object, 0, kPageBytes, false, 300);
  const uint64_t edges[] = {0, 1};
  MemoryTouch touch;
  touch.object = &object;
  touch.read_edges = edges;
  MemoryOperation operation = one.next();
  operation.device = 1;
  one.profile.operation(operation, std::span(&touch, 1));
  one.launch(object, 0, kPageBytes, false, 300);
  const Trace &trace = one.trace();
  EXPECT_EQ(trace.device, 0u);
  ASSERT_EQ(trace.steps.size(), 3u);
  EXPECT_EQ(trace.steps[2].launch, 3u) << "launches of the other device count";
  EXPECT_EQ(one.profile.counts().other_devices, 1u);
}

TEST(Profile, TouchesThatComeLateAreAddedToTheirLaunch) {
  ProfileOf one;
  const MemoryObject &object = one.allocate(kAddress, 32 * kPageBytes);
  one.launch(object, 0, kPageBytes, false, 300);
  MemoryOperation operation = one.next();
  one.profile.operation(operation, {});
  const uint64_t edges[] = {5 * kPageBytes, 6 * kPageBytes};
  MemoryTouch touch;
  touch.object = &object;
  touch.read_edges = edges;
  operation.is_late = true;
  one.profile.operation(operation, std::span(&touch, 1));
  const Trace &trace = one.trace();
  ASSERT_EQ(trace.steps.size(), 2u);
  EXPECT_EQ(trace.sets[trace.steps[1].touches][0].first, 5u);
}

TEST(Profile, LaunchesBeyondTheLimitAreCountedAndLeftOut) {
  ProfileOptions options;
  options.most_launches = 2;
  ProfileOf one(options);
  const MemoryObject &object = one.allocate(kAddress, 32 * kPageBytes);
  for (int index = 0; index < 3; ++index) one.launch(object, 0, kPageBytes, false, 300);
  EXPECT_EQ(one.trace().steps.size(), 2u);
  EXPECT_EQ(one.profile.counts().left_out, 1u);
}

TEST(Profile, AnAllocationWithoutBytesIsNone) {
  ProfileOf one;
  one.allocate(kAddress, 0);
  const MemoryObject &object = one.allocate(kAddress, 1);
  one.launch(object, 0, 1, false, 300);
  EXPECT_EQ(one.trace().allocations.size(), 1u);
}

TEST(Profile, IncompleteLaunchesAreCounted) {
  ProfileOf one;
  MemoryOperation operation = one.next();
  operation.launch_flags |= SONDE_LAUNCH_INCOMPLETE;
  one.profile.operation(operation, {});
  operation = one.next();
  operation.launch_flags = SONDE_LAUNCH_SKIPPED;
  one.profile.operation(operation, {});
  EXPECT_EQ(one.profile.counts().incomplete, 2u);
  EXPECT_EQ(one.profile.counts().watched, 1u);
  one.profile.finish();
  EXPECT_TRUE(one.profile.traces().empty());
}

}  // namespace
}  // namespace sonde::uvm
