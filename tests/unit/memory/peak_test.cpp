// Peaks, how low they can get, and who could share memory.
#include "script.h"

namespace sonde::memory {
namespace {

TEST(Peak, IsTheMostAtOneTime) {
  // 100, 300, 200, 250.
  Script script;
  script.allocate('a', 100).at(5000).allocate('b', 200).free('a').allocate('c', 50).kernel({}).finish();
  EXPECT_EQ(script.group().peak_bytes, 300u);
  EXPECT_EQ(script.group().peak_ns, 5000);
  EXPECT_EQ(script.group().alive_at_end, 2u);
  EXPECT_EQ(script.group().alive_bytes_at_end, 250u);
}

TEST(Peak, KnowsWhoLivedThen) {
  // a and b live at the peak of 300; c comes when a has gone.
  Script script;
  script.allocate('a', 100).allocate('b', 200).free('a').allocate('c', 50).free('c').free('b').kernel({}).finish();
  const std::vector<Usage> &alive = script.group().ended_since_peak;
  ASSERT_EQ(alive.size(), 2u);
  EXPECT_EQ(alive[0].object.id, script.id('b')) << "the largest first";
  EXPECT_EQ(alive[1].object.id, script.id('a'));
}

TEST(Peak, AHigherOneForgetsWhoLivedBefore) {
  Script script;
  script.allocate('a', 100).free('a').allocate('b', 90).allocate('c', 20).free('b').free('c').finish();
  EXPECT_EQ(script.group().peak_bytes, 110u);
  ASSERT_EQ(script.group().ended_since_peak.size(), 2u);
  EXPECT_EQ(script.group().ended_since_peak[0].object.id, script.id('b'));
}

TEST(Peak, OfEqualOnesTheFirstStands) {
  Script script;
  script.at(100).allocate('a', 100).free('a').at(900).allocate('b', 100).finish();
  EXPECT_EQ(script.group().peak_ns, 100);
}

TEST(Peak, DevicesAndLevelsAreApart) {
  Script script;
  script.allocate('a', kMiB).tensor('t', 'a', 0, 1024);
  script.next().device = 1;
  script.allocate('b', 2 * kMiB).finish();
  EXPECT_EQ(script.group().peak_bytes, kMiB);
  EXPECT_EQ(script.group(ObjectLevel::kTensor).peak_bytes, 1024u);
  EXPECT_EQ(script.group(ObjectLevel::kAllocation, 0, 1).peak_bytes, 2 * kMiB);
}

TEST(Peak, MovingBeginsAndEndsLowersIt) {
  // All three are made at the start and freed at the end, 600 at one time. Used: a by kernels 0 and 1, b by 1, c by 2.
  //   begin at first use, end as it is: kernel 2 sees a, b and c: 600
  //   begin as it is, end at last use: kernel 0 sees a, b, c (b, c wait): 600
  //   both: kernel 1 sees a + b = 300, kernel 2 sees c = 300
  Script script;
  script.allocate('a', 100)
      .allocate('b', 200)
      .allocate('c', 300)
      .kernel({{'a'}})
      .kernel({{'a'}, {'b'}})
      .kernel({{'c'}});
  script.free('a').free('b').free('c').finish();
  EXPECT_EQ(script.group().peak_bytes, 600u);
  EXPECT_EQ(script.group().from_first_use_peak, 600u);
  EXPECT_EQ(script.group().until_last_use.greatest().value, 600u);
  EXPECT_EQ(script.group().needed_peak(), 300u);
  EXPECT_EQ(script.group().touched_peak, 300u) << "the most that one kernel touches, first reached by a and b";
  EXPECT_EQ(script.group().touched_peak_launch, 1u);
}

TEST(Peak, AnObjectIsNeededWhileItRests) {
  // a is used by kernels 0 and 2, b by 1: at 1 both are needed, although that kernel touches b alone.
  Script script;
  script.allocate('a', 100)
      .kernel({{'a'}})
      .allocate('b', 30)
      .kernel({{'b'}})
      .free('b')
      .kernel({{'a'}})
      .free('a')
      .finish();
  EXPECT_EQ(script.group().needed_peak(), 130u);
  EXPECT_EQ(script.group().touched_peak, 100u);
}

TEST(Peak, UnusedObjectsAreNeverNeeded) {
  Script script;
  script.allocate('a', 1000).allocate('b', 10).kernel({{'b'}}).free('a').free('b').finish();
  EXPECT_EQ(script.group().peak_bytes, 1010u);
  EXPECT_EQ(script.group().needed_peak(), 10u);
}

TEST(Peak, EachPatternSaysWhatItHoldsThen) {
  // At the peak (when d begins): a is over, b waits, c was never used, d is used at once, i rests.
  Script script;
  script.allocate('a', 1).allocate('b', 20).allocate('c', 300).allocate('i', 4000).kernel({{'a'}, {'i'}}).kernel({});
  script.allocate('d', 50000).kernel({{'d'}}).kernel({{'b'}, {'i'}}).kernel({});
  for (const char name : {'a', 'b', 'c', 'd', 'i'}) script.free(name);
  script.finish();
  const auto at_peak = [&](Pattern pattern) { return script.group().patterns[index_of(pattern)].at_peak; };
  EXPECT_EQ(script.group().peak_bytes, 54321u);
  EXPECT_EQ(at_peak(Pattern::kLateDeallocation), 1u) << "b, d and i are late too, but not at the peak";
  EXPECT_EQ(at_peak(Pattern::kEarlyAllocation), 20u);
  EXPECT_EQ(at_peak(Pattern::kUnusedAllocation), 300u);
  EXPECT_EQ(at_peak(Pattern::kTemporaryIdleness), 4000u);
}

TEST(Peak, IdlenessBeforeTheLastPeakDoesNotCountThere) {
  // i rests over the first peak; a higher one comes when it is in use again.
  Script script;
  script.allocate('i', 100).kernel({{'i'}}).allocate('a', 10).kernel({{'a'}}).kernel({{'i'}}).free('a');
  script.allocate('b', 50).kernel({{'i'}, {'b'}}).free('b').free('i').finish();
  EXPECT_EQ(script.group().peak_bytes, 150u);
  EXPECT_TRUE(script.has('i', Pattern::kTemporaryIdleness));
  EXPECT_EQ(script.group().patterns[index_of(Pattern::kTemporaryIdleness)].at_peak, 0u);
}

TEST(Sharing, AnEqualObjectWhoseLastUseIsOverLendsItsMemory) {
  // Both are allocated from 1010 (b's begin) to 1050 (a's free, after b's kernel): 40 ns, 100 bytes.
  Script script;
  script.at(1000)
      .allocate('a', 100)
      .allocate('b', 100)
      .kernel({{'a'}})
      .kernel({{'b'}})
      .at(1050)
      .free('a')
      .free('b')
      .finish();
  ASSERT_EQ(script.group().shared.pairs.size(), 1u);
  const SharedPair &pair = script.group().shared.pairs[0];
  EXPECT_EQ(pair.later, script.id('b'));
  EXPECT_EQ(pair.earlier, script.id('a'));
  EXPECT_EQ(pair.bytes, 100u);
  EXPECT_DOUBLE_EQ(pair.byte_ns, 100.0 * 40);
  EXPECT_EQ(pair.at_peak, 100u);
  EXPECT_TRUE(script.has('b', Pattern::kRedundantAllocation));
  EXPECT_FALSE(script.has('a', Pattern::kRedundantAllocation));
  EXPECT_EQ(script.group().shared.offsets_bytes, 100u);
}

TEST(Sharing, AKernelThatUsesBothKeepsThemApart) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).kernel({{'a'}}).kernel({{'a'}, {'b'}}).kernel({{'b'}}).finish();
  EXPECT_EQ(script.count(Pattern::kRedundantAllocation), 0u);
  EXPECT_EQ(script.group().shared.offsets_bytes, 200u);
}

TEST(Sharing, MemoryThatWasFreedBeforeIsReusedAlready) {
  Script script;
  script.allocate('a', 100).kernel({{'a'}}).free('a').allocate('b', 100).kernel({{'b'}}).free('b').finish();
  EXPECT_EQ(script.count(Pattern::kRedundantAllocation), 0u);
}

TEST(Sharing, ToleranceIsOfTheLargerSizeAndIncludesItsBoundary) {
  // 90 of 100 is a tenth less.
  for (const bool is_within : {true, false}) {
    Options options;
    options.reuse_tolerance = is_within ? 0.1 : 0.09;
    Script script(options);
    script.allocate('a', 100).allocate('b', 90).kernel({{'a'}}).kernel({{'b'}}).free('a').free('b').finish();
    EXPECT_EQ(script.count(Pattern::kRedundantAllocation), is_within ? 1u : 0u);
    Script other(options);
    other.allocate('a', 90).allocate('b', 100).kernel({{'a'}}).kernel({{'b'}}).free('a').free('b').finish();
    EXPECT_EQ(other.count(Pattern::kRedundantAllocation), is_within ? 1u : 0u) << "the earlier one may be the smaller";
  }
}

TEST(Sharing, TheClosestSizeIsTaken) {
  Options options;
  options.reuse_tolerance = 0.5;
  Script script(options);
  script.allocate('a', 140).allocate('b', 110).allocate('c', 100).kernel({{'a'}, {'b'}}).kernel({{'c'}}).finish();
  ASSERT_EQ(script.group().shared.pairs.size(), 1u);
  EXPECT_EQ(script.group().shared.pairs[0].earlier, script.id('b'));
}

TEST(Sharing, EachIsTakenOnceAndChainsArise) {
  // d = a b; e = c d, all of one size: c can use a's memory or b's, e the other's.
  Script script;
  script.allocate('a', 64).allocate('b', 64).allocate('c', 64).allocate('d', 64).allocate('e', 64);
  script.kernel({{'a'}, {'b'}, {'d'}}).kernel({{'c'}, {'d'}, {'e'}});
  for (const char name : {'a', 'b', 'c', 'd', 'e'}) script.free(name);
  script.finish();
  EXPECT_EQ(script.count(Pattern::kRedundantAllocation), 2u);
  EXPECT_EQ(script.group().peak_bytes, 320u);
  EXPECT_EQ(script.group().needed_peak(), 192u);
  EXPECT_EQ(script.group().shared.slots, 3u);
  EXPECT_EQ(script.group().shared.slots_bytes, 192u);
}

TEST(Sharing, SaysWhenTheTwoAreOnDifferentStreams) {
  Script script;
  script.allocate('a', 64).allocate('b', 64).on(1).kernel({{'a'}}).on(2).kernel({{'b'}}).free('a').free('b').finish();
  ASSERT_EQ(script.group().shared.pairs.size(), 1u);
  EXPECT_TRUE(script.group().shared.pairs[0].is_across_streams);
}

TEST(Sharing, TheSmallestAreLeftOutBeyondTheLimit) {
  Options options;
  options.pack_objects = 2;
  Script script(options);
  script.allocate('a', 10).allocate('b', 30).allocate('c', 20).kernel({{'a'}, {'b'}, {'c'}}).finish();
  EXPECT_EQ(script.group().shared.objects, 2u);
  EXPECT_EQ(script.group().shared.left_out, 1u);
  EXPECT_EQ(script.group().shared.left_out_largest, 10u);
  EXPECT_EQ(script.group().shared.offsets_bytes, 50u);
  EXPECT_EQ(script.group().needed_peak(), 60u) << "which counts all";
}

TEST(Sharing, AnObjectThatMayHaveBeenUsedUnseenLendsNothing) {
  Script script;
  script.allocate('a', 100).allocate('b', 100).kernel({{'a'}}).kernel({{'b'}},
                                                                      SONDE_LAUNCH_WATCHED | SONDE_LAUNCH_UNPATCHED);
  script.free('a').free('b').finish();
  EXPECT_EQ(script.count(Pattern::kRedundantAllocation), 0u);
}

}  // namespace
}  // namespace sonde::memory
