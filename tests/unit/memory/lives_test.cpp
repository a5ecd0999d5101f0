// Patterns of time: early, late, idle, unused, leaked; thresholds at their boundary; what counts as a use.
#include "script.h"

namespace sonde::memory {
namespace {

constexpr Pattern kEarly = Pattern::kEarlyAllocation, kLate = Pattern::kLateDeallocation,
                  kIdle = Pattern::kTemporaryIdleness, kUnused = Pattern::kUnusedAllocation, kLeak = Pattern::kLeak;

TEST(EarlyAllocation, OneKernelBetweenBeginAndFirstUseIsEnough) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).kernel({{'a'}}).kernel({{'b'}}).free('a').free('b').finish();
  EXPECT_FALSE(script.has('a', kEarly)) << "no kernel lies strictly between";
  EXPECT_TRUE(script.has('b', kEarly));
  EXPECT_EQ(script.usage('b').early_gap, 1u);
  EXPECT_EQ(script.count(kEarly), 1u);
}

TEST(EarlyAllocation, AThresholdOfThreeTakesThreeAndNotTwo) {
  Options options;
  options.early_kernels.value = 3;
  Script script(options);
  script.allocate('a', 100).kernels(2).kernel({{'a'}}).allocate('b', 100).kernels(3).kernel({{'b'}}).finish();
  EXPECT_EQ(script.usage('a').early_gap, 2u);
  EXPECT_FALSE(script.has('a', kEarly));
  EXPECT_EQ(script.usage('b').early_gap, 3u);
  EXPECT_TRUE(script.has('b', kEarly));
}

TEST(EarlyAllocation, CostsBytesTimesTheTimeUntilTheFirstUse) {
  // 100 bytes from 1000 to 1500 ns.
  Script script;
  script.at(1000).allocate('a', 100).at(1200).kernel({}).at(1500).kernel({{'a'}}).free('a').finish();
  EXPECT_DOUBLE_EQ(script.usage('a').saved(kEarly), 100.0 * 500);
  EXPECT_DOUBLE_EQ(script.usage('a').wasted(), 100.0 * 500);
  EXPECT_DOUBLE_EQ(script.objects.totals(ObjectLevel::kAllocation, kEarly).byte_ns, 100.0 * 500);
}

TEST(EarlyAllocation, ObjectsBeyond4GiBDoNotWrap) {
  // 6 GiB for 20 ns.
  Script script;
  script.at(0).allocate('a', 6 * kGiB).kernel({}).at(20).kernel({{'a'}}).free('a').finish();
  EXPECT_DOUBLE_EQ(script.usage('a').saved(kEarly), 6.0 * 1073741824.0 * 20);
  EXPECT_EQ(script.group().peak_bytes, 6442450944u);
}

TEST(EarlyAllocation, AShareBelowOneIsOfAllKernelsOfTheProcess) {
  // 4 kernels in all: half of them are 2. a waits for 1, b for 2.
  Options options;
  options.early_kernels.value = 0.5;
  Script script(options);
  script.allocate('a', 100).allocate('b', 100).kernels(1).kernel({{'a'}}).kernel({{'b'}}).kernels(1);
  script.free('a').free('b').finish();
  EXPECT_EQ(script.usage('a').early_gap, 1u);
  EXPECT_FALSE(script.has('a', kEarly));
  EXPECT_EQ(script.usage('b').early_gap, 2u);
  EXPECT_TRUE(script.has('b', kEarly));
}

TEST(EarlyAllocation, KernelsThatComeAfterTheObjectsEndRaiseTheLimitOfAShare) {
  // When a ends, its gap of 2 is half of 4 kernels; at the end it is a fifth of 10.
  Options options;
  options.early_kernels.value = 0.5;
  Script script(options);
  script.allocate('a', 100).kernels(2).kernel({{'a'}}).kernels(1).free('a').kernels(6).finish();
  EXPECT_FALSE(script.has('a', kEarly));
  EXPECT_EQ(script.count(kEarly), 0u);
}

TEST(EarlyAllocation, AShareOfNothingStillNeedsOneKernelBetween) {
  Options options;
  options.early_kernels.value = 0;
  Script script(options);
  script.allocate('a', 100).kernel({{'a'}}).allocate('b', 100).kernel({}).kernel({{'b'}}).finish();
  EXPECT_FALSE(script.has('a', kEarly));
  EXPECT_TRUE(script.has('b', kEarly));
}

TEST(EarlyAllocation, EachThresholdIsItsOwn) {
  // The late threshold is a share that is not reached; the early one stays at 1 kernel.
  Options options;
  options.late_kernels.value = 0.9;
  Script script(options);
  script.allocate('a', 100).kernels(1).kernel({{'a'}}).kernels(1).free('a').finish();
  EXPECT_TRUE(script.has('a', kEarly));
  EXPECT_EQ(script.usage('a').late_gap, 1u);
  EXPECT_FALSE(script.has('a', kLate)) << "1 of 3 kernels is less than 0.9";
}

TEST(EarlyAllocation, EqualStampsAreInTheOrderOfTheirEvents) {
  Script script;
  script.at(5).allocate('a', 100).at(5).kernel({}).at(5).kernel({{'a'}}).at(5).free('a').finish();
  EXPECT_TRUE(script.has('a', kEarly)) << "a kernel lies between, whatever the clock says";
  EXPECT_DOUBLE_EQ(script.usage('a').saved(kEarly), 0);
  EXPECT_FALSE(script.has('a', kLate));
}

TEST(EarlyAllocation, AnObjectFromBeforeTheCaptureMayHaveBeenUsedBefore) {
  Script script;
  script.next().is_before_capture = true;
  script.allocate('a', 100).kernels(3).kernel({{'a'}}).free('a').finish();
  EXPECT_FALSE(script.has('a', kEarly));
}

TEST(EarlyAllocation, AnAddressUsedAgainIsAnotherObject) {
  // The first life uses the address at once; the second waits for two kernels.
  Script script;
  script.next().address = 0x1000;
  script.allocate('a', 100).kernel({{'a'}}).free('a');
  script.next().address = 0x1000;
  script.allocate('b', 100).kernels(2).kernel({{'b'}}).free('b').finish();
  EXPECT_FALSE(script.has('a', kEarly));
  EXPECT_EQ(script.usage('b').early_gap, 2u);
}

TEST(EarlyAllocation, TheMemoryAwareRuleAsksForAFreeMeanwhile) {
  Options options;
  options.memory_aware = true;
  Script script(options);
  // Between a's begin and its first use c is freed, so a could have lain there; nothing is freed while b waits.
  script.allocate('c', 50).kernel({{'c'}}).allocate('a', 100).free('c').kernels(1).kernel({{'a'}});
  script.allocate('b', 100).kernels(1).kernel({{'b'}}).free('a').free('b').finish();
  EXPECT_EQ(script.usage('a').freed_meanwhile, 1u);
  EXPECT_TRUE(script.has('a', kEarly));
  EXPECT_EQ(script.usage('b').early_gap, 1u);
  EXPECT_FALSE(script.has('b', kEarly));
}

TEST(LateDeallocation, OneKernelBetweenLastUseAndFreeIsEnough) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).kernel({{'a'}}).kernel({{'b'}}).free('a').free('b').finish();
  EXPECT_EQ(script.usage('a').late_gap, 1u);
  EXPECT_TRUE(script.has('a', kLate));
  EXPECT_EQ(script.usage('b').late_gap, 0u);
  EXPECT_FALSE(script.has('b', kLate));
}

TEST(LateDeallocation, CostsBytesTimesTheTimeSinceTheLastUse) {
  Script script;
  script.allocate('a', 8).at(1000).kernel({{'a'}}).kernel({}).at(4000).free('a').finish();
  EXPECT_DOUBLE_EQ(script.usage('a').saved(kLate), 8.0 * 3000);
}

TEST(LateDeallocation, ACopyOutOfTheResultsIsTheirLastUse) {
  Script script;
  script.allocate('a', 100).kernel({{'a'}}).kernels(3).copy_out('a').free('a').finish();
  EXPECT_FALSE(script.has('a', kLate));
  EXPECT_EQ(script.usage('a').late_gap, 0u);
  EXPECT_TRUE(script.has('a', kIdle)) << "it rested until then";
}

TEST(LateDeallocation, WithoutTheHostsUsesItIsLateAsPublished) {
  Options options;
  options.host_uses = HostUses::kNone;
  Script script(options);
  script.allocate('a', 100).kernel({{'a'}}).kernels(3).copy_out('a').free('a').finish();
  EXPECT_EQ(script.usage('a').late_gap, 3u);
  EXPECT_TRUE(script.has('a', kLate));
}

TEST(LateDeallocation, TheMemoryAwareRuleAsksForAnAllocationMeanwhile) {
  Options options;
  options.memory_aware = true;
  Script script(options);
  script.allocate('a', 100).allocate('b', 100).kernel({{'a'}, {'b'}}).kernels(1).free('a');
  script.allocate('c', 10).free('b').kernel({{'c'}}).free('c').finish();
  EXPECT_FALSE(script.has('a', kLate)) << "nobody asked for memory";
  EXPECT_TRUE(script.has('b', kLate)) << "c did";
  EXPECT_EQ(script.usage('b').allocated_meanwhile, 1u);
}

TEST(LateDeallocation, AnObjectThatWasReplacedHasNoFreeToMove) {
  Script script;
  script.allocate('a', 100).kernel({{'a'}}).kernels(3).free('a', ObjectEnd::kReplaced).finish();
  EXPECT_FALSE(script.has('a', kLate));
  EXPECT_FALSE(script.has('a', kLeak)) << "its free was missed, or its address would not have been handed out again";
}

TEST(TemporaryIdleness, OneKernelBetweenTwoUsesIsEnough) {
  Script script;
  script.allocate('a', 100).kernel({{'a'}}).kernel({{'a'}}).free('a').finish();
  EXPECT_FALSE(script.has('a', kIdle));
  Script other;
  other.allocate('a', 100).at(0).kernel({{'a'}}).kernel({}).at(500).kernel({{'a'}}).free('a').finish();
  EXPECT_TRUE(other.has('a', kIdle));
  EXPECT_EQ(other.usage('a').longest_idle, 1u);
  EXPECT_DOUBLE_EQ(other.usage('a').saved(kIdle), 100.0 * 500);
}

TEST(TemporaryIdleness, SumsUpTheStretchesThatReachTheThreshold) {
  // Gaps of 2, 1 and 3 kernels; threshold 2.
  Options options;
  options.idle_kernels.value = 2;
  Script script(options);
  script.allocate('a', 10).kernel({{'a'}}).kernels(2).kernel({{'a'}}).kernels(1).kernel({{'a'}}).kernels(3);
  script.kernel({{'a'}}).free('a').finish();
  EXPECT_EQ(script.usage('a').idle_count, 2u);
  EXPECT_EQ(script.usage('a').longest_idle, 3u);
  // Events are 10 ns apart: 30 ns and 40 ns.
  EXPECT_DOUBLE_EQ(script.usage('a').saved(kIdle), 10.0 * (30 + 40));
}

TEST(TemporaryIdleness, AShareIsOfAllKernels) {
  // 8 kernels: a quarter is 2.
  Options options;
  options.idle_kernels.value = 0.25;
  Script script(options);
  script.allocate('a', 10).allocate('b', 10).kernel({{'a'}, {'b'}}).kernels(1).kernel({{'a'}}).kernel({{'b'}});
  script.kernels(4).free('a').free('b').finish();
  EXPECT_EQ(script.usage('b').longest_idle, 2u);
  EXPECT_TRUE(script.has('b', kIdle));
  EXPECT_FALSE(script.has('a', kIdle)) << "1 of 8";
}

TEST(TemporaryIdleness, SaysWhetherTheSpaceWasAskedFor) {
  Options options;
  options.memory_aware = true;
  Script script(options);
  script.allocate('a', 10).allocate('b', 10).kernel({{'a'}, {'b'}}).kernels(1).kernel({{'a'}});
  script.allocate('c', 5).kernel({{'b'}, {'c'}}).finish();
  EXPECT_FALSE(script.has('a', kIdle));
  EXPECT_TRUE(script.has('b', kIdle)) << "c was made while b rested";
}

TEST(UnusedAllocation, NoKernelAndNoReadOfTheHost) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).allocate('c', 100).allocate('d', 100).kernel({{'d'}});
  script.copy_in('b').copy_out('c').free('a').free('b').free('c').free('d').finish();
  EXPECT_TRUE(script.has('a', kUnused));
  EXPECT_TRUE(script.has('b', kUnused)) << "written, and nobody looked";
  EXPECT_FALSE(script.has('c', kUnused)) << "somebody looked";
  EXPECT_FALSE(script.has('d', kUnused));
  EXPECT_EQ(script.count(kUnused), 2u);
  EXPECT_DOUBLE_EQ(script.usage('a').saved(kUnused), 100.0 * (script.usage('a').object.end_ns - 1000));
}

TEST(UnusedAllocation, AWriteOfTheHostIsNoUseEvenWhereAllItsOperationsAre) {
  Options options;
  options.host_uses = HostUses::kAll;
  Script script(options);
  script.allocate('a', 100).copy_in('a').kernel({}).free('a').finish();
  EXPECT_TRUE(script.has('a', kUnused));
}

TEST(UnusedAllocation, ACopyWithinTheDeviceUsesBothEnds) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).kernel({}).copy_within('a', 'b').free('a').free('b').finish();
  EXPECT_EQ(script.usage('a').uses, 1u);
  EXPECT_EQ(script.usage('b').uses, 1u);
  EXPECT_FALSE(script.has('a', kUnused));
}

TEST(UnusedAllocation, AtomicsAreUsesAndPrefetchesAreNot) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).kernel({{'a', {}, {}, {}, {}, 0, 0, 5}}).prefetch('b');
  script.free('a').free('b').finish();
  EXPECT_FALSE(script.has('a', kUnused));
  EXPECT_TRUE(script.has('b', kUnused));
}

TEST(UnusedAllocation, AZeroSizeObjectHoldsNothing) {
  Script script;
  script.allocate('a', 0).kernel({}).free('a').finish();
  EXPECT_FALSE(script.has('a', kUnused));
  EXPECT_EQ(script.group().begins, 1u) << "it is counted all the same";
}

TEST(UnusedAllocation, MoreThan65536TensorsAreAllSeen) {
  Options options;
  options.object_rows = 3;
  Objects objects(options);
  constexpr uint64_t kTensors = 70000;
  std::deque<MemoryObject> live;
  for (uint64_t i = 1; i <= kTensors; ++i) {
    MemoryObject &object = live.emplace_back();
    object.id = i;
    object.level = ObjectLevel::kTensor;
    object.kind = SONDE_MEMORY_DEVICE;
    object.address = i << 20;
    object.bytes = kMiB;
    objects.object_begins(object);
  }
  MemoryOperation kernel;
  kernel.launch_flags = SONDE_LAUNCH_WATCHED;
  MemoryTouch touch;
  touch.object = &live[69999];
  touch.reads = 1;
  objects.operation(kernel, {&touch, 1});
  for (MemoryObject &object : live) {
    object.end = ObjectEnd::kFreed;
    objects.object_ends(object);
  }
  objects.finish();
  EXPECT_EQ(objects.totals(ObjectLevel::kTensor, kUnused).objects, kTensors - 1);
  const Group &group = *objects.groups().at({0, ObjectLevel::kTensor, 0});
  EXPECT_EQ(group.peak_bytes, kTensors * kMiB);
  EXPECT_EQ(group.worst.sorted().size(), 3u);
  EXPECT_EQ(group.worst.left_out(), kTensors - 3);
}

TEST(Leak, AnAllocationWithoutAFreeIsLeaked) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).at(2000).kernel({{'a'}, {'b'}}).free('b').at(2500).kernel({}).finish();
  EXPECT_TRUE(script.has('a', kLeak));
  EXPECT_FALSE(script.has('b', kLeak));
  EXPECT_FALSE(script.has('a', kLate)) << "there is no free to move";
  EXPECT_DOUBLE_EQ(script.usage('a').saved(kLeak), 100.0 * 500) << "from its last use to the last event";
}

TEST(Leak, WhatLivedBeforeTheCaptureIsNot) {
  Script script;
  script.next().is_before_capture = true;
  script.allocate('a', 100);
  script.next().is_implicit = true;
  script.allocate('b', 100).kernel({{'a'}, {'b'}}).finish();
  EXPECT_EQ(script.count(kLeak), 0u);
}

TEST(Leak, VariablesOfAModuleCannotBeFreed) {
  Script script;
  script.next().kind = SONDE_MEMORY_DEVICE_STATIC;
  script.allocate('a', 100).kernels(1).finish();
  EXPECT_FALSE(script.has('a', kLeak));
  EXPECT_FALSE(script.has('a', kUnused));
}

TEST(Leak, NeedsNoAccesses) {
  Script script;
  script.allocate('a', 100).allocate('b', 50).free('b').finish();
  EXPECT_EQ(script.count(kLeak), 1u);
  EXPECT_EQ(script.count(kUnused), 0u) << "without a watched kernel nothing is known of uses";
  EXPECT_FALSE(script.has('b', kUnused));
}

TEST(Segments, AreLeftToTheirTensors) {
  Script script;
  script.allocate('s', kMiB).tensor('t', 's', 0, 1024).kernels(2).kernel({{'t'}, {'s'}}).free('t').finish();
  EXPECT_FALSE(script.has('s', kEarly)) << "a caching allocator made it";
  EXPECT_FALSE(script.has('s', kLeak));
  EXPECT_TRUE(script.has('t', kEarly));
  EXPECT_EQ(script.count(kEarly, ObjectLevel::kTensor), 1u);

  Options options;
  options.judge_segments = true;
  Script all(options);
  all.allocate('s', kMiB).tensor('t', 's', 0, 1024).kernels(2).kernel({{'t'}, {'s'}}).free('t').finish();
  EXPECT_TRUE(all.has('s', kEarly));
  EXPECT_TRUE(all.has('s', kLeak));
}

TEST(Certainty, AKernelThatWasNotWatchedMayHaveUsedWhatRests) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).kernel({}, SONDE_LAUNCH_SKIPPED).kernel({{'a'}});
  script.kernel({{'b'}}).kernels(1).free('a').free('b').finish();
  EXPECT_FALSE(script.has('a', kEarly));
  EXPECT_TRUE(script.is_uncertain('a', kEarly));
  EXPECT_TRUE(script.has('a', kLate)) << "after its last use every kernel was watched";
  EXPECT_EQ(script.objects.totals(ObjectLevel::kAllocation, kEarly).uncertain, 2u);
}

TEST(Certainty, AnIncompleteKernelHidesIdlenessAndUnusedObjects) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).kernel({{'a'}});
  script.kernel({}, SONDE_LAUNCH_WATCHED | SONDE_LAUNCH_INCOMPLETE).kernel({{'a'}}).free('a').free('b').finish();
  EXPECT_FALSE(script.has('a', kIdle));
  EXPECT_TRUE(script.is_uncertain('a', kIdle));
  EXPECT_FALSE(script.has('b', kUnused));
  EXPECT_TRUE(script.is_uncertain('b', kUnused));
}

TEST(Certainty, AnIncompleteKernelThatUsesTheObjectEndsTheGapButTaintsTheNext) {
  Script script;
  script.allocate('a', 100).kernels(1).kernel({{'a'}}, SONDE_LAUNCH_WATCHED | SONDE_LAUNCH_INCOMPLETE);
  script.kernels(1).free('a').finish();
  EXPECT_TRUE(script.has('a', kEarly)) << "the kernels before were watched";
  EXPECT_TRUE(script.has('a', kLate)) << "so were those after";
}

TEST(Certainty, WatchedKernelsMayBeTrustedAndSkippedOnesNot) {
  Options options;
  options.trust_watched = true;
  Script script(options);
  script.allocate('a', 100).kernel({}, SONDE_LAUNCH_WATCHED | SONDE_LAUNCH_INCOMPLETE).kernel({{'a'}}).free('a');
  script.allocate('b', 100).kernel({}, SONDE_LAUNCH_SKIPPED).kernel({{'b'}}).free('b').finish();
  EXPECT_TRUE(script.has('a', kEarly));
  EXPECT_FALSE(script.has('b', kEarly));
  EXPECT_TRUE(script.is_uncertain('b', kEarly));
  EXPECT_EQ(script.objects.processes().at(0).trusted, 1u);
  EXPECT_EQ(script.objects.processes().at(0).incomplete, 1u);
}

TEST(Certainty, ATouchThatComesTooLateLeavesNothingToConclude) {
  Script script;
  script.allocate('a', 100).kernels(2).kernel({{'a'}}).kernel({{'a'}}, SONDE_LAUNCH_WATCHED, true).free('a').finish();
  EXPECT_FALSE(script.has('a', kEarly));
  EXPECT_TRUE(script.is_uncertain('a', kEarly));
}

TEST(Processes, CountTheirOwnKernels) {
  Script script;
  script.of(1).allocate('a', 100).of(2).kernels(5).of(1).kernel({{'a'}}).free('a').finish();
  EXPECT_EQ(script.usage('a').early_gap, 0u);
  EXPECT_EQ(script.objects.processes().at(2).launches, 5u);
}

}  // namespace
}  // namespace sonde::memory
