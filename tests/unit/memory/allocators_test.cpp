// Caching allocators, pools, frees of nothing, and frees on other streams.
#include <sonde/spaces/memory.h>

#include "pools.h"
#include "script.h"

namespace sonde::memory {
namespace {

const Space &space(const Script &script) { return *script.objects.fragmentation().spaces().at({0, 0}); }

TEST(Fragmentation, ReservedIsOfSegmentsAndUsedOfTheirTensors) {
  Script script;
  script.allocate('x', 500).allocate('s', 1000).tensor('a', 's', 0, 300).tensor('b', 's', 600, 100).finish();
  EXPECT_EQ(space(script).reserved, 1000u) << "nothing is cut from x";
  EXPECT_EQ(space(script).used, 400u);
  EXPECT_EQ(space(script).largest_gap(), 300u) << "300 to 600 and 700 to 1000";
  EXPECT_EQ(space(script).gap_count, 2u);
}

TEST(Fragmentation, AFreedTensorJoinsTheGapsBesideIt) {
  Script script;
  script.allocate('s', 1000).tensor('a', 's', 100, 100).tensor('b', 's', 300, 100).tensor('c', 's', 500, 100);
  EXPECT_EQ(space(script).largest_gap(), 400u);
  script.free('b');
  EXPECT_EQ(space(script).largest_gap(), 400u) << "200 to 500 is 300";
  EXPECT_EQ(space(script).gap_count, 3u);
  script.free('c');
  EXPECT_EQ(space(script).largest_gap(), 800u);
  EXPECT_EQ(space(script).gap_count, 2u) << "0 to 100 and 200 to 1000";
  script.free('a');
  EXPECT_EQ(space(script).largest_gap(), 1000u);
  EXPECT_EQ(space(script).used, 0u);
}

TEST(Fragmentation, ASegmentThatIsFreedTakesItsGapsAlong) {
  Script script;
  script.allocate('s', 1000).tensor('a', 's', 0, 400).allocate('r', 300).tensor('b', 'r', 0, 100);
  EXPECT_EQ(space(script).reserved_peak, 1300u);
  EXPECT_EQ(space(script).used_at_reserved_peak, 500u);
  script.free('a').free('s');
  EXPECT_EQ(space(script).reserved, 300u);
  EXPECT_EQ(space(script).largest_gap(), 200u);
  script.finish();
  ASSERT_EQ(space(script).largest.size(), 2u);
  EXPECT_EQ(space(script).segments, 1u);
  EXPECT_EQ(space(script).segments_seen, 2u);
}

TEST(Fragmentation, GrowthIsForcedWhereAsMuchWasFree) {
  // 200 + 200 are free in s when r (400) is made: exactly as much, in pieces too small.
  Script script;
  script.allocate('s', 800).tensor('a', 's', 200, 400).allocate('r', 400).tensor('b', 'r', 0, 400).finish();
  EXPECT_EQ(space(script).forced, 1u);
  EXPECT_EQ(space(script).forced_bytes, 400u);
  Script other;
  other.allocate('s', 799).tensor('a', 's', 200, 400).allocate('r', 400).tensor('b', 'r', 0, 400).finish();
  EXPECT_EQ(space(other).forced, 0u) << "399 were free";
}

TEST(Fragmentation, TensorsInNoKnownAllocationAreCounted) {
  Script script;
  script.next().level = ObjectLevel::kTensor;
  script.allocate('t', 100).finish();
  EXPECT_EQ(space(script).outside, 1u);
  EXPECT_EQ(space(script).reserved, 0u);
}

MemoryObject block(uint64_t id, uint64_t address, uint64_t bytes) {
  MemoryObject object;
  object.id = id;
  object.pool = 7;
  object.address = address;
  object.bytes = bytes;
  object.end = ObjectEnd::kFreed;
  return object;
}

TEST(Pools, GrowToNewAddressesWhereHolesAreTooSmall) {
  // Four blocks of 100 side by side; two that are no neighbours are freed; 200 fit nowhere.
  Pools pools;
  for (uint64_t i = 0; i < 4; ++i) pools.begins(block(i, 1000 + 100 * i, 100));
  pools.ends(block(0, 1000, 100));
  pools.ends(block(2, 1200, 100));
  pools.begins(block(5, 1400, 200));
  const PoolRow &row = pools.rows().at({0, 7});
  EXPECT_EQ(row.forced, 1u);
  EXPECT_EQ(row.forced_bytes, 200u);
  EXPECT_EQ(row.footprint(), 600u);
  EXPECT_EQ(row.live_peak, 400u);
  EXPECT_FALSE(row.is_recorded);
}

TEST(Pools, ReuseOfAddressesAndGrowthOfAFullOneAreNotForced) {
  Pools pools;
  pools.begins(block(0, 1000, 100));
  pools.begins(block(1, 1100, 100));
  pools.ends(block(0, 1000, 100));
  pools.begins(block(2, 1000, 100));
  pools.begins(block(3, 1200, 100));
  EXPECT_EQ(pools.rows().at({0, 7}).forced, 0u);
}

TEST(Pools, KeepWhatTheRuntimeTold) {
  Pools pools;
  sonde_memory_pool_t record{};
  record.pool = 9;
  record.reserved_bytes = 32 * kMiB;
  record.used_bytes = 9 * kMiB;
  pools.record(0, SONDE_MEMORY_POOL_TRIM, record, 10);
  record.reserved_bytes = record.used_bytes = 0;
  pools.record(0, SONDE_MEMORY_POOL_DESTROY, record, 30);
  record.reserved_bytes = kMiB;
  pools.record(0, SONDE_MEMORY_POOL_TRIM, record, 20);  // told late
  const PoolRow &row = pools.rows().at({0, 9});
  EXPECT_EQ(row.reserved_peak, 32 * kMiB);
  EXPECT_EQ(row.used_peak, 9 * kMiB);
  EXPECT_EQ(row.reserved, 0u) << "of the latest moment";
  EXPECT_TRUE(row.is_destroyed);
  EXPECT_EQ(row.trims, 2u);
}

TEST(UnmatchedFrees, AreListedByAddress) {
  Pools pools;
  for (const int64_t time : {10, 20}) {
    MemoryObject object;
    object.address = 0xdead;
    object.end_ns = time;
    pools.unmatched_free(object);
  }
  ASSERT_EQ(pools.unmatched().size(), 1u);
  EXPECT_EQ(pools.unmatched()[0].count, 2u);
  EXPECT_EQ(pools.unmatched()[0].first_ns, 10);
  EXPECT_EQ(pools.unmatched()[0].last_ns, 20);
  for (uint64_t i = 0; i <= 1500; ++i) {
    MemoryObject object;
    object.address = i;
    pools.unmatched_free(object);
  }
  EXPECT_EQ(pools.unmatched().size(), 1000u);
  EXPECT_EQ(pools.unmatched_count(), 1502u) << "address 0 may be freed";
  EXPECT_EQ(pools.unmatched_not_listed(), 501u);
}

// Stream-ordered memory, used on stream 8 at 2000 ns and freed on stream 9 at 3000.
Script &used_on_8_freed_on_9(Script &script) {
  script.next().is_stream_ordered = true;
  return script.on(8).allocate('a', 100).at(2000).kernel({{'a'}}).on(9).at(3000).free('a').finish();
}

Ordering ordering(const Script &script) {
  EXPECT_EQ(script.objects.stream_order().cases().size(), 1u);
  return script.objects.stream_order().cases().at(0).ordering;
}

TEST(StreamOrder, WithoutSynchronisationsNothingIsKnown) {
  Script script;
  used_on_8_freed_on_9(script);
  EXPECT_EQ(ordering(script), Ordering::kUnknown);
  EXPECT_EQ(script.objects.stream_order().frees(), 1u);
}

TEST(StreamOrder, AWaitForTheStreamOfTheUseOrdersThem) {
  Script script;
  script.objects.stream_order().sync(0, SONDE_SYNC_STREAM, 8, 2000, 3000);
  used_on_8_freed_on_9(script);
  EXPECT_EQ(ordering(script), Ordering::kShown) << "from the use to the free, both ends included";
}

TEST(StreamOrder, AWaitThatBeginsBeforeTheUseOrEndsAfterTheFreeDoesNot) {
  Script before, after, other;
  before.objects.stream_order().sync(0, SONDE_SYNC_STREAM, 8, 1999, 2500);
  used_on_8_freed_on_9(before);
  EXPECT_EQ(ordering(before), Ordering::kNotShown);
  after.objects.stream_order().sync(0, SONDE_SYNC_STREAM, 8, 2500, 3001);
  used_on_8_freed_on_9(after);
  EXPECT_EQ(ordering(after), Ordering::kNotShown);
  other.objects.stream_order().sync(0, SONDE_SYNC_STREAM, 9, 2500, 2600);
  used_on_8_freed_on_9(other);
  EXPECT_EQ(ordering(other), Ordering::kNotShown) << "the stream of the free says nothing of the use";
}

TEST(StreamOrder, AWaitForTheContextOrdersThemWhateverTheStream) {
  Script script;
  script.objects.stream_order().sync(0, SONDE_SYNC_CONTEXT, UINT64_MAX, 2100, 2200);
  used_on_8_freed_on_9(script);
  EXPECT_EQ(ordering(script), Ordering::kShown);
}

TEST(StreamOrder, AnEventMayOrderThem) {
  Script waits, elsewhere, host;
  waits.objects.stream_order().sync(0, SONDE_SYNC_STREAM_WAIT_EVENT, 9, 2100, 2101);
  used_on_8_freed_on_9(waits);
  EXPECT_EQ(ordering(waits), Ordering::kPossible);
  elsewhere.objects.stream_order().sync(0, SONDE_SYNC_STREAM_WAIT_EVENT, 10, 2100, 2101);
  used_on_8_freed_on_9(elsewhere);
  EXPECT_EQ(ordering(elsewhere), Ordering::kNotShown) << "another stream waited";
  host.objects.stream_order().sync(0, SONDE_SYNC_EVENT, UINT64_MAX, 2100, 2200);
  used_on_8_freed_on_9(host);
  EXPECT_EQ(ordering(host), Ordering::kPossible);
}

TEST(StreamOrder, SynchronisationsMayBeToldInAnyOrder) {
  Script script;
  script.objects.stream_order().sync(0, SONDE_SYNC_STREAM, 8, 9000, 9100);
  script.objects.stream_order().sync(0, SONDE_SYNC_STREAM, 8, 2100, 2200);
  used_on_8_freed_on_9(script);
  EXPECT_EQ(ordering(script), Ordering::kShown);
}

TEST(StreamOrder, TheDefaultStreamMayWaitForTheOther) {
  Script script;
  script.objects.stream_order().sync(0, SONDE_SYNC_STREAM, 5, 2100, 2200);
  script.next().is_stream_ordered = true;
  script.on(8).allocate('a', 100).kernel({{'a'}}).on(0).free('a').finish();
  EXPECT_EQ(ordering(script), Ordering::kPossible);
}

TEST(StreamOrder, AFreeOnTheStreamOfItsLastUsesIsInOrder) {
  Script script;
  script.next().is_stream_ordered = true;
  script.on(8).allocate('a', 100).kernel({{'a'}}).free('a').finish();
  EXPECT_TRUE(script.objects.stream_order().cases().empty());
  EXPECT_EQ(script.objects.stream_order().frees(), 1u);
}

}  // namespace
}  // namespace sonde::memory
