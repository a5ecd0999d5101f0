// Within an object: dead writes, over-allocation, uneven access, slices.
#include <cmath>

#include "script.h"

namespace sonde::memory {
namespace {

constexpr Pattern kDead = Pattern::kDeadWrite, kOver = Pattern::kOverAllocation, kUneven = Pattern::kNonUniformAccess,
                  kSlices = Pattern::kStructuredAccess;

Touch reads(char object, std::vector<uint64_t> edges) { return {object, std::move(edges)}; }
Touch writes(char object, std::vector<uint64_t> edges) { return {object, {}, std::move(edges), {}, {}, 0, 1}; }
Touch pages(char object, std::vector<uint64_t> numbers, std::vector<uint64_t> counts) {
  return {object, {}, {}, std::move(numbers), std::move(counts)};
}

TEST(DeadWrite, ASetThatIsCopiedOver) {
  Script script;
  script.allocate('a', 100).set('a').copy_in('a').kernel({{'a'}}).free('a').finish();
  EXPECT_TRUE(script.has('a', kDead));
  EXPECT_EQ(script.usage('a').writes.dead, 1u);
  EXPECT_EQ(script.usage('a').writes.dead_bytes, 100u);
}

TEST(DeadWrite, ACopyOutBetweenIsARead) {
  Script script;
  script.allocate('a', 100).copy_in('a').copy_out('a').copy_in('a').kernel({{'a'}}).free('a').finish();
  EXPECT_FALSE(script.has('a', kDead));
}

TEST(DeadWrite, AReadOfOneByteIsEnough) {
  Script script;
  script.allocate('a', 100).copy_in('a').copy_out('a', 1, 99).copy_in('a').kernel({}).finish();
  EXPECT_FALSE(script.has('a', kDead));
}

TEST(DeadWrite, CopiesOfDifferentPartsDoNotOverwriteEachOther) {
  Script script;
  script.allocate('a', 100).copy_in('a', 50, 0).copy_in('a', 50, 50).kernel({{'a'}}).free('a').finish();
  EXPECT_FALSE(script.has('a', kDead));
}

TEST(DeadWrite, AllBytesMustBeOverwrittenByOneWriteOrSeveral) {
  Script script;
  script.allocate('a', 100).set('a').copy_in('a', 99, 0).kernel({{'a'}}).free('a').finish();
  EXPECT_FALSE(script.has('a', kDead)) << "one byte is left";
  Script other;
  other.allocate('a', 100).set('a').copy_in('a', 50, 0).copy_in('a', 50, 50).kernel({{'a'}}).free('a').finish();
  EXPECT_EQ(other.usage('a').writes.dead, 1u);
}

TEST(DeadWrite, AKernelOfWhichNoBytesAreKnownMayHaveRead) {
  Script script;
  script.allocate('a', 100).copy_in('a').kernel({{'a'}}).copy_in('a').kernel({{'a'}}).free('a').finish();
  EXPECT_FALSE(script.has('a', kDead));
}

TEST(DeadWrite, AKernelThatWritesAllOfItMakesTheSetUseless) {
  Script script;
  script.allocate('a', 100).set('a').kernel({writes('a', {0, 100})}).copy_out('a').free('a').finish();
  EXPECT_EQ(script.usage('a').writes.dead, 1u);
  EXPECT_EQ(script.usage('a').writes.by_kernels, 1u);
}

TEST(DeadWrite, AKernelThatReadsBeforeItWritesDoesNot) {
  Script script;
  Touch both = writes('a', {0, 100});
  both.read = {0, 4};
  both.reads = 1;
  script.allocate('a', 100).set('a').kernel({both}).finish();
  EXPECT_FALSE(script.has('a', kDead));
}

TEST(DeadWrite, AtomicsReadWhatTheyWrite) {
  Touch atomic = writes('a', {0, 100});
  atomic.writes = 0;
  atomic.atomics = 25;
  Script script;
  script.allocate('a', 100).set('a').kernel({atomic}).finish();
  EXPECT_FALSE(script.has('a', kDead));
}

TEST(DeadWrite, EdgesThatAreNotExactProveNoOverwriting) {
  Touch coarse = writes('a', {0, 100});
  coarse.granule = 4;
  Script script;
  script.allocate('a', 100).set('a').kernel({coarse}).finish();
  EXPECT_FALSE(script.has('a', kDead));
}

TEST(DeadWrite, AKernelThatWasNotWatchedMayHaveRead) {
  Script script;
  script.allocate('a', 100).set('a').kernel({}, SONDE_LAUNCH_SKIPPED).set('a').kernel({{'a'}}).free('a').finish();
  EXPECT_FALSE(script.has('a', kDead));
  EXPECT_TRUE(script.is_uncertain('a', kDead));
}

TEST(DeadWrite, BeyondSixtyFourWritesAtOneTimeTheOldestAreNotFollowed) {
  Script script;
  script.allocate('a', 100);
  for (uint64_t i = 0; i < 65; ++i) script.copy_in('a', 1, i);
  script.set('a').kernel({{'a'}}).free('a').finish();
  EXPECT_EQ(script.usage('a').writes.dead, 64u);
  EXPECT_EQ(script.usage('a').writes.not_followed, 1u);
}

// An object of 1000 bytes, of which a kernel reads some.
Script &read_of_1000(Script &script, std::vector<uint64_t> edges) {
  return script.allocate('a', 1000).kernel({reads('a', std::move(edges))}).free('a').finish();
}

TEST(OverAllocation, JudgesTheAccessRateBelowItsLimit) {
  Options options;
  options.over_allocation_bytes = 1;
  Script at_limit(options), below(options);
  read_of_1000(at_limit, {0, 800});
  EXPECT_DOUBLE_EQ(at_limit.usage('a').intra.access_rate, 0.8);
  EXPECT_FALSE(at_limit.has('a', kOver));
  read_of_1000(below, {0, 799});
  EXPECT_DOUBLE_EQ(below.usage('a').intra.access_rate, 0.799);
  EXPECT_TRUE(below.has('a', kOver));
  EXPECT_DOUBLE_EQ(below.usage('a').saved(kOver), 201.0 * 20) << "201 bytes for the 20 ns of its life";
}

TEST(OverAllocation, NeedsOneLargeUnusedPiece) {
  // 400 bytes unused: 200 + 200 is a fragmentation of one half, 199 + 201 less, 150 + 100 + 150 more.
  Options options;
  options.over_allocation_bytes = 1;
  Script half(options), more(options);
  read_of_1000(half, {200, 800});
  EXPECT_DOUBLE_EQ(half.usage('a').intra.fragmentation, 0.5);
  EXPECT_TRUE(half.has('a', kOver));
  read_of_1000(more, {150, 400, 500, 850});
  EXPECT_DOUBLE_EQ(more.usage('a').intra.fragmentation, 1 - 150.0 / 400);
  EXPECT_FALSE(more.has('a', kOver));
}

TEST(OverAllocation, NeedsAPieceWorthCutting) {
  Script at_limit, below;
  read_of_1000(at_limit, {512, 1000});
  EXPECT_TRUE(at_limit.has('a', kOver)) << "512 bytes unused";
  read_of_1000(below, {511, 1000});
  EXPECT_FALSE(below.has('a', kOver));
}

TEST(OverAllocation, SumsUpOverKernelsAndReadsOfTheHost) {
  Script script;
  script.allocate('a', 4000).copy_in('a').kernel({reads('a', {0, 1000})}).kernel({writes('a', {1000, 2000})});
  script.copy_out('a', 500, 2000).free('a').finish();
  EXPECT_EQ(script.usage('a').intra.accessed, 2500u) << "the copy in does not count: it would fill less then";
  EXPECT_EQ(script.usage('a').intra.widest_unused.begin, 2500u);
  EXPECT_EQ(script.usage('a').intra.widest_unused.bytes, 1500u);
  EXPECT_TRUE(script.has('a', kOver));
}

TEST(OverAllocation, PagesDoWhereBytesAreNotKnown) {
  // An object from 1,024 bytes into page 1 on, 3 pages long: pages 1 to 4. Touched: the 3,072 bytes in page 1.
  Script script;
  script.next().address = 4096 + 1024;
  script.allocate('a', 3 * 4096).kernel({pages('a', {1}, {7})}).free('a').finish();
  EXPECT_EQ(script.usage('a').intra.accessed, 3072u);
  EXPECT_TRUE(script.has('a', kOver));
}

TEST(OverAllocation, AUseOfUnknownBytesLeavesItOpen) {
  Script script;
  script.allocate('a', 4000).kernel({reads('a', {0, 100})}).kernel({{'a'}}).free('a').finish();
  EXPECT_FALSE(script.has('a', kOver));
  EXPECT_FALSE(script.usage('a').intra.has_bytes);
}

TEST(OverAllocation, BeyondTheIntervalLimitNarrowHolesCountAsTouched) {
  Options options;
  options.interval_limit = 2;
  options.over_allocation_bytes = 1;
  Script script(options);
  read_of_1000(script, {0, 10, 20, 30, 500, 510});
  EXPECT_TRUE(script.usage('a').intra.is_coarse);
  EXPECT_EQ(script.usage('a').intra.accessed, 40u) << "0 to 30 and 500 to 510";
}

TEST(OverAllocation, KernelsThatWereNotWatchedMakeItUncertain) {
  Script script;
  script.allocate('a', 4000).kernel({reads('a', {0, 100})}).kernel({}, SONDE_LAUNCH_SKIPPED).free('a').finish();
  EXPECT_FALSE(script.has('a', kOver));
  EXPECT_TRUE(script.is_uncertain('a', kOver));
}

Script &two_pages(Script &script, uint64_t first, uint64_t second) {
  script.next().address = 4096;
  return script.allocate('a', 2 * 4096).kernel({pages('a', {1, 2}, {first, second})}).free('a').finish();
}

TEST(NonUniformAccess, IsTheCoefficientOfVariationOverTouchedPages) {
  // 30 and 10: mean 20, deviation 10.
  Options options;
  options.frequency_cv = 0.5;
  Script script(options);
  two_pages(script, 30, 10);
  EXPECT_DOUBLE_EQ(script.usage('a').intra.variation, 0.5);
  EXPECT_TRUE(script.has('a', kUneven)) << "the limit is reached";
  Script below(options);
  two_pages(below, 29, 11);
  EXPECT_DOUBLE_EQ(below.usage('a').intra.variation, 0.45);
  EXPECT_FALSE(below.has('a', kUneven));
}

TEST(NonUniformAccess, EvenAccessHasNone) {
  Script script;
  two_pages(script, 12, 12);
  EXPECT_DOUBLE_EQ(script.usage('a').intra.variation, 0);
}

TEST(NonUniformAccess, ReachesItsDefaultWhereTheSpreadIsTheMean) {
  // 12 pages: one with 23, the others with 1 each: mean 34/12, deviation sqrt(11 * 22^2 / 144) = 6.08, ratio 2.15.
  Script script;
  script.next().address = 4096;
  script.allocate('a', 12 * 4096)
      .kernel({pages('a', {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {23, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})})
      .free('a')
      .finish();
  EXPECT_NEAR(script.usage('a').intra.variation, std::sqrt(11.0) * 22 / 12 / (34.0 / 12), 1e-12);
  EXPECT_TRUE(script.has('a', kUneven));
  EXPECT_NEAR(script.usage('a').intra.hottest_share, 24.0 / 34, 1e-12) << "a tenth of 12 pages are two";
}

TEST(NonUniformAccess, UntouchedPagesAndOneAloneSayNothing) {
  Options options;
  options.frequency_cv = 0;
  Script script(options);
  script.next().address = 4096;
  script.allocate('a', 10 * 4096).kernel({pages('a', {3}, {1000})}).free('a').finish();
  EXPECT_EQ(script.usage('a').intra.touched_parts, 1u);
  EXPECT_FALSE(script.has('a', kUneven));
}

TEST(NonUniformAccess, APageThatIsPartlyOfTheObjectIsWeighedByItsBytes) {
  // Half of page 1 and all of page 2, each byte accessed as often: 50 and 100.
  Script script;
  script.next().address = 4096 + 2048;
  script.allocate('a', 2048 + 4096).kernel({pages('a', {1, 2}, {50, 100})}).free('a').finish();
  EXPECT_NEAR(script.usage('a').intra.variation, 0, 1e-12);
}

TEST(NonUniformAccess, SeveralPagesShareAPartOfAVeryLargeObject) {
  // 4 pages, 2 parts: 10 + 30 and 20 + 20.
  Options options;
  options.frequency_bins = 2;
  Script script(options);
  script.next().address = 4096;
  script.allocate('a', 4 * 4096).kernel({pages('a', {1, 2, 3, 4}, {10, 30, 20, 20})}).free('a').finish();
  EXPECT_EQ(script.usage('a').intra.part_bytes, 8192u);
  EXPECT_DOUBLE_EQ(script.usage('a').intra.variation, 0);
}

TEST(StructuredAccess, TwoKernelsOnDisjointHalves) {
  Script script;
  script.allocate('a', 100).kernel({reads('a', {0, 50})}).kernel({writes('a', {50, 100})}).free('a').finish();
  EXPECT_EQ(script.usage('a').intra.slices, 2u);
  EXPECT_TRUE(script.has('a', kSlices)) << "a slice of exactly one half";
  EXPECT_DOUBLE_EQ(script.usage('a').saved(kSlices), 50.0 * script.usage('a').life_ns());
}

TEST(StructuredAccess, ALargerSliceThanItsShareIsNone) {
  Script script;
  script.allocate('a', 100).kernel({reads('a', {0, 51})}).kernel({writes('a', {51, 100})}).free('a').finish();
  EXPECT_EQ(script.usage('a').intra.largest_slice, 51u);
  EXPECT_FALSE(script.has('a', kSlices));
}

TEST(StructuredAccess, ConsecutiveUsesOfOneSliceAreOneStep) {
  Script script;
  script.allocate('a', 90);
  for (uint64_t i = 0; i < 3; ++i) {
    script.kernel({writes('a', {30 * i, 30 * i + 20})}).kernel({reads('a', {30 * i + 10, 30 * i + 30})});
  }
  script.free('a').finish();
  EXPECT_EQ(script.usage('a').intra.slices, 3u);
  EXPECT_EQ(script.usage('a').intra.largest_slice, 30u);
  EXPECT_TRUE(script.has('a', kSlices));
}

TEST(StructuredAccess, AStepThatComesBackEndsIt) {
  Script script;
  script.allocate('a', 90).kernel({reads('a', {0, 30})}).kernel({reads('a', {30, 60})}).kernel({reads('a', {29, 31})});
  script.free('a').finish();
  EXPECT_EQ(script.usage('a').intra.slices, 0u);
  EXPECT_FALSE(script.has('a', kSlices));
}

TEST(StructuredAccess, FillingItAsAWholeMayBeDoneSliceBySlice) {
  Script script;
  script.allocate('a', 90).copy_in('a').kernel({reads('a', {0, 45})}).kernel({reads('a', {45, 90})}).free('a').finish();
  EXPECT_TRUE(script.has('a', kSlices));
  Script other;
  other.allocate('a', 90)
      .kernel({writes('a', {0, 45})})
      .kernel({writes('a', {45, 90})})
      .copy_out('a')
      .free('a')
      .finish();
  EXPECT_FALSE(other.has('a', kSlices)) << "it is read as a whole";
}

}  // namespace
}  // namespace sonde::memory
