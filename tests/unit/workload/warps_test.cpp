// Divergence, reuse by scope, patterns and heat of words, by hand.
#include "warps.h"

#include <gtest/gtest.h>
#include <sonde/toolkit/warp_records.h>

#include <cmath>
#include <cstring>

#include "access_patterns.h"
#include "scripted.h"

namespace sonde::workload {
namespace {

template <typename Part>
void feed(Part &part, const std::vector<WarpEntry> &entries) {
  const std::vector<uint64_t> words = packed(entries);
  toolkit::WarpRecords records({reinterpret_cast<const uint8_t *>(words.data()), words.size() * 8});
  toolkit::WarpAccess access;
  while (records.next(access)) part.add(access);
  ASSERT_FALSE(records.damaged());
}

WarpEntry entry(uint32_t block, uint32_t pc, uint64_t base, uint32_t kind = 1) {
  WarpEntry out;
  out.block = block;
  out.pc = pc;
  out.base = base;
  out.kind = kind;
  return out;
}

// Divergence ---------------------------------------------------------------------------------------------------------

TEST(BlockDivergence, EqualBlocksDoNotVary) {
  const Options options;
  BlockDivergence divergence(options);
  feed(divergence, {entry(0, 16, 0), entry(1, 16, 128), entry(2, 16, 256)});
  const DivergenceResult result = *divergence.finish();
  EXPECT_EQ(result.blocks, 3u);
  EXPECT_EQ(result.variation, 0);
  EXPECT_EQ(result.exact_clusters, 1u);
  EXPECT_EQ(result.clusters.size(), 1u);
}

TEST(BlockDivergence, VariationIsDeviationByMean) {
  const Options options;
  BlockDivergence divergence(options);
  // 32 and 96 accesses: mean 64, deviation 32, variation 0.5.
  feed(divergence, {entry(0, 16, 0), entry(1, 16, 0), entry(1, 16, 0), entry(1, 16, 0, 2)});
  const DivergenceResult result = *divergence.finish();
  EXPECT_EQ(result.least, 32u);
  EXPECT_EQ(result.greatest, 96u);
  EXPECT_DOUBLE_EQ(result.variation, 0.5);
  EXPECT_EQ(result.exact_clusters, 2u);
  // The vectors (32) and (96) point the same way.
  ASSERT_EQ(result.clusters.size(), 1u);
  EXPECT_EQ(result.clusters[0].blocks, 2u);
  EXPECT_EQ(result.clusters[0].reads, 32u);
}

TEST(BlockDivergence, BlocksThatGoOtherWaysAreOtherClusters) {
  const Options options;
  BlockDivergence divergence(options);
  feed(divergence, {entry(0, 16, 0), entry(1, 32, 0), entry(2, 16, 0)});
  const DivergenceResult result = *divergence.finish();
  EXPECT_EQ(result.variation, 0) << "as many accesses";
  EXPECT_EQ(result.exact_clusters, 2u);
  ASSERT_EQ(result.clusters.size(), 2u);
  EXPECT_EQ(result.clusters[0].blocks, 2u);
  EXPECT_EQ(result.clusters[1].first_block, 1u);
}

TEST(BlockDivergence, ClustersByCosineFromTheThresholdOn) {
  EXPECT_DOUBLE_EQ(cosine({3, 4}, {3, 4}), 1);
  EXPECT_DOUBLE_EQ(cosine({3, 4}, {4, 3}), 0.96);  // 24 / 25
  EXPECT_DOUBLE_EQ(cosine({1}, {0, 1}), 0);
  EXPECT_DOUBLE_EQ(cosine({}, {}), 1);
  EXPECT_DOUBLE_EQ(cosine({}, {1}), 0);
  std::vector<WarpEntry> entries;
  for (int i = 0; i < 3; ++i) entries.push_back(entry(0, 16, 0));
  for (int i = 0; i < 4; ++i) entries.push_back(entry(0, 32, 0));
  for (int i = 0; i < 4; ++i) entries.push_back(entry(1, 16, 0));
  for (int i = 0; i < 3; ++i) entries.push_back(entry(1, 32, 0));
  Options options;
  options.divergence_cosine = 0.96;
  BlockDivergence at(options);
  feed(at, entries);
  EXPECT_EQ(at.finish()->clusters.size(), 1u);
  options.divergence_cosine = 0.9601;
  BlockDivergence above(options);
  feed(above, entries);
  EXPECT_EQ(above.finish()->clusters.size(), 2u);
}

TEST(BlockDivergence, OfTooManyBlocksAPartStays) {
  Options options;
  options.divergence_blocks = 4;
  BlockDivergence divergence(options);
  std::vector<WarpEntry> entries;
  for (uint32_t block = 0; block < 10; ++block) entries.push_back(entry(block, 16, 0));
  feed(divergence, entries);
  const DivergenceResult result = *divergence.finish();
  EXPECT_EQ(result.period, 4u);  // 0, 2, 4, 6 fill it; with 8 only multiples of 4 stay
  EXPECT_EQ(result.blocks, 3u);  // 0, 4, 8
}

TEST(BlockDivergence, OfNothingThereIsNoResult) {
  const Options options;
  EXPECT_FALSE(BlockDivergence(options).finish());
}

// Reuse ----------------------------------------------------------------------------------------------------------------

const ReuseNode &node(const ReuseScopes &scopes, uint32_t pc) { return scopes.graph().nodes.at(pc); }
uint64_t words(const ReuseNode &of, ReuseScope scope) { return of.in.of(scope); }

TEST(ReuseScopes, TheFirstUseIsCold) {
  const Options options;
  ReuseScopes scopes(options);
  feed(scopes, {entry(0, 16, 0)});
  EXPECT_EQ(words(node(scopes, 16), ReuseScope::kCold), 32u);
  EXPECT_EQ(node(scopes, 16).sectors, 4u);  // 128 bytes
  EXPECT_EQ(node(scopes, 16).addresses, 32u);
}

TEST(ReuseScopes, TheSameLaneIsWithinTheThread) {
  const Options options;
  ReuseScopes scopes(options);
  feed(scopes, {entry(0, 16, 0), entry(0, 32, 0)});
  EXPECT_EQ(words(node(scopes, 32), ReuseScope::kThread), 32u);
  EXPECT_EQ((scopes.graph().edges.at({16, 32}).of(ReuseScope::kThread)), 32u);
}

TEST(ReuseScopes, OtherLanesWarpsAndBlocksAreFurtherAway) {
  const Options options;
  ReuseScopes scopes(options);
  WarpEntry other_lane = entry(0, 32, 4);  // lane i touches what lane i + 1 had
  other_lane.mask = 0x7fffffff;
  WarpEntry other_warp = entry(0, 48, 0);
  other_warp.warp = 1;
  feed(scopes, {entry(0, 16, 0), other_lane, other_warp, entry(1, 64, 0)});
  EXPECT_EQ(words(node(scopes, 32), ReuseScope::kWarp), 31u);
  EXPECT_EQ(words(node(scopes, 48), ReuseScope::kBlock), 32u);
  EXPECT_EQ(words(node(scopes, 64), ReuseScope::kGrid), 32u);
}

TEST(ReuseScopes, WideAccessesAreSeveralWords) {
  const Options options;
  ReuseScopes scopes(options);
  WarpEntry wide = entry(0, 16, 0);
  wide.size = 16;
  wide.stride = 16;
  feed(scopes, {wide});
  EXPECT_EQ(words(node(scopes, 16), ReuseScope::kCold), 128u);  // 4 words a lane
  EXPECT_EQ(node(scopes, 16).sectors, 16u);
}

TEST(ReuseScopes, LanesThatShareAWordReadItOnce) {
  const Options options;
  ReuseScopes scopes(options);
  WarpEntry broadcast = entry(0, 16, 0);
  broadcast.stride = 0;
  feed(scopes, {broadcast});
  EXPECT_EQ(node(scopes, 16).in.total(), 1u);
  EXPECT_EQ(node(scopes, 16).repeated, 31u);
  EXPECT_EQ(node(scopes, 16).addresses, 1u);
}

TEST(ReuseScopes, SharedMemoryIsEachBlocksOwn) {
  const Options options;
  ReuseScopes scopes(options);
  WarpEntry first = entry(0, 16, 0), second = entry(1, 16, 0), global = entry(0, 32, 0);
  first.memory = second.memory = 1;
  feed(scopes, {first, second, global});
  EXPECT_EQ(words(node(scopes, 16), ReuseScope::kCold), 64u);
  EXPECT_EQ(words(node(scopes, 32), ReuseScope::kCold), 32u);
}

TEST(ReuseScopes, MemoryIsBoundedAndTotalsAreScaled) {
  Options options;
  options.reuse_words = 1024;
  ReuseScopes scopes(options);
  std::vector<WarpEntry> entries;
  for (uint32_t i = 0; i < 2048; ++i) entries.push_back(entry(i, 16, uint64_t{128} * i));  // 65,536 words
  feed(scopes, entries);
  feed(scopes, entries);
  EXPECT_GE(scopes.period(), 64u);
  // 131,072 accesses to words; each that is watched stands for `period`: a binomial estimate. Its standard deviation is at most
  // sqrt(2 * 131072 * 128) = 5,793, as both passes see the same words; five of them.
  EXPECT_NEAR(static_cast<double>(node(scopes, 16).in.total()), 131'072, 5 * 5793);
  // The second pass finds only words of the first.
  EXPECT_GT(words(node(scopes, 16), ReuseScope::kThread), 0u);
}

// Patterns -------------------------------------------------------------------------------------------------------------

class PatternTest : public ::testing::Test {
 protected:
  // An instruction with that many words of each scope.
  ReuseNode &add(uint32_t pc, uint64_t cold, uint64_t thread, uint64_t warp, uint64_t block, uint64_t grid) {
    ReuseNode &node = graph.nodes[pc];
    node.in.words[0] = cold;
    node.in.words[1] = thread;
    node.in.words[2] = warp;
    node.in.words[3] = block;
    node.in.words[4] = grid;
    node.kind = 1;
    node.size = 4;
    node.accesses = 1;
    node.lanes = 32;
    node.addresses = 32;
    node.sectors = 4;
    return node;
  }
  void edge(uint32_t from, uint32_t to, ReuseScope scope, uint64_t words) {
    graph.edges[{from, to}].words[static_cast<size_t>(scope)] += words;
  }
  bool has(uint32_t pc, Pattern pattern, std::optional<Strength> strength = {}) {
    for (const PatternHit &hit : find_patterns(graph, options)) {
      if (hit.pc == pc && hit.pattern == pattern) return !strength || hit.strength == *strength;
    }
    return false;
  }

  Options options;
  ReuseGraph graph;
};

TEST_F(PatternTest, AtomicContentionByWordsFromElsewhere) {
  // Beyond a half of the words from other warps and blocks: high; 15 %: medium; 3 %: low.
  add(1, 490, 0, 0, 255, 255).kind = 3;
  add(2, 500, 0, 0, 250, 250).kind = 3;
  add(3, 849, 0, 0, 0, 151).kind = 3;
  add(4, 850, 0, 0, 0, 150).kind = 3;
  add(5, 969, 0, 0, 0, 31).kind = 3;
  add(6, 970, 0, 0, 0, 30).kind = 3;
  EXPECT_TRUE(has(1, Pattern::kAtomicContention, Strength::kHigh));
  EXPECT_TRUE(has(2, Pattern::kAtomicContention, Strength::kMedium)) << "exactly a half is not beyond it";
  EXPECT_TRUE(has(3, Pattern::kAtomicContention, Strength::kMedium));
  EXPECT_TRUE(has(4, Pattern::kAtomicContention, Strength::kLow));
  EXPECT_TRUE(has(5, Pattern::kAtomicContention, Strength::kLow));
  EXPECT_FALSE(has(6, Pattern::kAtomicContention));
}

TEST_F(PatternTest, AtomicContentionWithinAWarp) {
  add(1, 499, 0, 501, 0, 0).kind = 3;
  add(2, 799, 0, 201, 0, 0).kind = 3;
  add(3, 800, 0, 200, 0, 0).kind = 3;
  EXPECT_TRUE(has(1, Pattern::kAtomicContention, Strength::kMedium));
  EXPECT_TRUE(has(2, Pattern::kAtomicContention, Strength::kLow));
  EXPECT_FALSE(has(3, Pattern::kAtomicContention));
  add(4, 499, 0, 501, 0, 0).kind = 1;
  EXPECT_FALSE(has(4, Pattern::kAtomicContention)) << "no atomic operation";
}

TEST_F(PatternTest, AThreadThatReadsAgainWhatItRead) {
  add(1, 100, 0, 0, 0, 0);
  add(2, 0, 100, 0, 0, 0);
  edge(1, 2, ReuseScope::kThread, 100);
  EXPECT_TRUE(has(2, Pattern::kReadAfterRead));
  edge(1, 2, ReuseScope::kWarp, 1);
  EXPECT_FALSE(has(2, Pattern::kReadAfterRead)) << "one word came from another thread";
}

TEST_F(PatternTest, AThreadThatReadsOrOverwritesWhatItWrote) {
  add(1, 100, 0, 0, 0, 0).kind = 2;
  add(2, 0, 100, 0, 0, 0);
  add(3, 0, 100, 0, 0, 0).kind = 2;
  edge(1, 2, ReuseScope::kThread, 100);
  edge(1, 3, ReuseScope::kThread, 100);
  EXPECT_TRUE(has(2, Pattern::kReadAfterWrite));
  EXPECT_TRUE(has(3, Pattern::kWriteAfterWrite));
  graph.nodes[2].in.words[0] = 1;
  EXPECT_FALSE(has(2, Pattern::kReadAfterWrite)) << "a word is used for the first time";
}

TEST_F(PatternTest, PredecessorsOfTwoKindsAreNoRedundancy) {
  add(1, 100, 0, 0, 0, 0);
  add(2, 100, 0, 0, 0, 0).kind = 2;
  add(3, 0, 100, 0, 0, 0);
  edge(1, 3, ReuseScope::kThread, 50);
  edge(2, 3, ReuseScope::kThread, 50);
  EXPECT_FALSE(has(3, Pattern::kReadAfterRead));
  EXPECT_FALSE(has(3, Pattern::kReadAfterWrite));
}

TEST_F(PatternTest, ReuseOfBlocksAndOfTheGrid) {
  add(1, 399, 0, 0, 0, 601);
  add(2, 400, 0, 0, 0, 600);
  add(3, 399, 200, 200, 201, 0);
  add(4, 400, 200, 200, 200, 0);
  add(5, 399, 200, 200, 201, 0).memory = 1;
  EXPECT_TRUE(has(1, Pattern::kGridReuse));
  EXPECT_FALSE(has(2, Pattern::kGridReuse)) << "exactly 60 % is not beyond it";
  EXPECT_TRUE(has(3, Pattern::kBlockReuse));
  EXPECT_FALSE(has(4, Pattern::kBlockReuse));
  EXPECT_FALSE(has(5, Pattern::kBlockReuse)) << "shared memory is there for that";
}

TEST_F(PatternTest, UncoalescedByDensityAndColdWords) {
  // Density = sectors / lanes * 32 / 4: 8 sectors of 32 lanes are 2, 16 are 4.
  ReuseNode &node = add(1, 701, 299, 0, 0, 0);
  node.sectors = 8;
  EXPECT_EQ(density(node), 2);
  EXPECT_FALSE(has(1, Pattern::kUncoalesced)) << "exactly 2 is not beyond it";
  node.sectors = 9;
  EXPECT_TRUE(has(1, Pattern::kUncoalesced, Strength::kMedium));
  node.in.words[0] = 700;
  node.in.words[1] = 300;
  EXPECT_FALSE(has(1, Pattern::kUncoalesced)) << "exactly 70 % is not beyond it";
  ReuseNode &strong = add(2, 901, 99, 0, 0, 0);
  strong.sectors = 17;
  EXPECT_TRUE(has(2, Pattern::kUncoalesced, Strength::kHigh));
  strong.sectors = 16;
  EXPECT_TRUE(has(2, Pattern::kUncoalesced, Strength::kMedium));
}

TEST_F(PatternTest, StreamingByDensityAndColdWords) {
  add(1, 801, 199, 0, 0, 0);
  add(2, 800, 200, 0, 0, 0);
  add(3, 951, 49, 0, 0, 0);
  add(4, 950, 50, 0, 0, 0);
  EXPECT_TRUE(has(1, Pattern::kStreaming, Strength::kMedium));
  EXPECT_FALSE(has(2, Pattern::kStreaming));
  EXPECT_TRUE(has(3, Pattern::kStreaming, Strength::kHigh));
  EXPECT_TRUE(has(4, Pattern::kStreaming, Strength::kMedium));
}

TEST_F(PatternTest, BroadcastByDistinctAddresses) {
  ReuseNode &node = add(1, 1000, 0, 0, 0, 0);
  node.lanes = 1000;
  node.addresses = 250;
  EXPECT_FALSE(has(1, Pattern::kBroadcast)) << "exactly a quarter is not below it";
  node.addresses = 249;
  EXPECT_TRUE(has(1, Pattern::kBroadcast, Strength::kMedium));
  node.addresses = 100;
  EXPECT_TRUE(has(1, Pattern::kBroadcast, Strength::kMedium));
  node.addresses = 99;
  EXPECT_TRUE(has(1, Pattern::kBroadcast, Strength::kHigh));
}

TEST_F(PatternTest, InstructionsWithFewWordsAreNotJudged) {
  add(1, 99, 0, 0, 0, 0);
  EXPECT_FALSE(has(1, Pattern::kStreaming));
  add(1, 100, 0, 0, 0, 0);
  EXPECT_TRUE(has(1, Pattern::kStreaming));
}

// Words ----------------------------------------------------------------------------------------------------------------

TEST(WordHeat, CountsWordsAndWarpsOfASector) {
  const Options options;
  WordHeat heat(options);
  WarpEntry second = entry(0, 32, 0);
  second.warp = 1;
  second.mask = 1;  // lane 0 alone: word 0
  feed(heat, {entry(0, 16, 0), second});
  const std::vector<SectorHeat> sectors = heat.hottest();
  ASSERT_EQ(sectors.size(), 4u);  // 128 bytes
  EXPECT_EQ(sectors[0].address, 0u);
  EXPECT_EQ(sectors[0].accesses[0], 2u);
  EXPECT_EQ(sectors[0].accesses[1], 1u);
  EXPECT_EQ(sectors[0].accesses[SectorHeat::kWhole], 9u);
  EXPECT_EQ(sectors[0].distinct_warps(0), 2u);
  EXPECT_EQ(sectors[0].distinct_warps(7), 1u);
  EXPECT_EQ(sectors[0].distinct_warps(SectorHeat::kWhole), 2u);
  EXPECT_EQ(sectors[0].pc_count, 2u);
  EXPECT_EQ(sectors[0].pcs[1], 32u);
}

TEST(WordHeat, AWideAccessTouchesSeveralWordsAndCountsOnceForTheSector) {
  const Options options;
  WordHeat heat(options);
  WarpEntry wide = entry(0, 16, 16);
  wide.size = 16;
  wide.mask = 1;
  feed(heat, {wide});
  const SectorHeat sector = heat.hottest().at(0);
  EXPECT_EQ(sector.accesses, (std::array<uint64_t, 9>{0, 0, 0, 0, 1, 1, 1, 1, 1}));
}

TEST(WordHeat, LooksAtTheChosenBlocksAlone) {
  Options options;
  options.word_heat_blocks = {3};
  WordHeat heat(options);
  feed(heat, {entry(0, 16, 0), entry(3, 16, 1024)});
  for (const SectorHeat &sector : heat.hottest()) {
    EXPECT_EQ(sector.block, 3u);
    EXPECT_GE(sector.address, 1024u);
  }
  EXPECT_EQ(heat.sectors(), 4u);
}

TEST(WordHeat, WarpsBeyondTheThirtySecondAreNotMistaken) {
  const Options options;
  WordHeat heat(options);
  WarpEntry high = entry(0, 16, 0);
  high.warp = 33;
  feed(heat, {high});
  EXPECT_EQ(heat.hottest().at(0).warps[0], uint64_t{1} << 33);
}

TEST(WordHeat, MemoryIsBounded) {
  Options options;
  options.word_heat_limit = 2;
  WordHeat heat(options);
  feed(heat, {entry(0, 16, 0)});
  EXPECT_EQ(heat.sectors(), 2u);
  EXPECT_EQ(heat.left_out(), 16u);  // lanes of the other two sectors
}

// Launches ------------------------------------------------------------------------------------------------------------

class WarpsTest : public ::testing::Test {
 protected:
  void add(uint64_t launch, const std::vector<WarpEntry> &entries) {
    const std::vector<uint64_t> data = packed(entries);
    std::vector<uint64_t> words(sizeof(sonde_access_warps_t) / 8 + data.size());
    sonde_access_warps_t head{};
    head.header = {static_cast<uint16_t>(words.size()), sizeof(head) / 8, SONDE_SPACE_ACCESS, SONDE_ACCESS_WARPS, 1};
    head.launch = launch;
    head.count = entries.size();
    head.data = {sizeof(head), static_cast<uint32_t>(data.size() * 8)};
    std::memcpy(words.data(), &head, sizeof(head));
    std::copy(data.begin(), data.end(), words.begin() + sizeof(head) / 8);
    warps.add(0, launch, reinterpret_cast<const sonde_record_t *>(words.data()), book);
  }
  void launch(uint64_t number, uint32_t name) {
    LaunchFacts facts;
    facts.launch = number;
    facts.kernel = {0, 0, name};
    book.add(facts);
    warps.launch(facts);
  }

  Options options;
  LaunchBook book{64};
  Warps warps{options, 1};
};

TEST_F(WarpsTest, RecordsComeBeforeTheirLaunch) {
  add(1, {entry(0, 16, 0)});
  launch(1, 5);
  warps.finish();
  EXPECT_EQ(warps.kernels().find({0, 0, 5})->accesses, 1u);
  EXPECT_EQ(warps.unknown(), 0u);
}

TEST_F(WarpsTest, RecordsMayComeALittleAfterItToo) {
  add(1, {entry(0, 16, 0)});
  launch(1, 5);
  add(1, {entry(1, 16, 0)});
  warps.finish();
  EXPECT_EQ(warps.kernels().find({0, 0, 5})->launches, 1u);
  EXPECT_EQ(warps.kernels().find({0, 0, 5})->worst.blocks, 2u);
}

TEST_F(WarpsTest, ALaunchThatNeverComesIsCounted) {
  add(1, {entry(0, 16, 0)});
  warps.finish();
  EXPECT_EQ(warps.unknown(), 1u);
  EXPECT_TRUE(warps.kernels().empty());
}

TEST_F(WarpsTest, OpenLaunchesAreBounded) {
  options.warp_launches = 2;
  for (uint64_t number = 1; number <= 5; ++number) add(number, {entry(0, 16, 0)});
  EXPECT_EQ(warps.cut(), 3u);
}

TEST_F(WarpsTest, WordsAreShownOfTheFirstLaunches) {
  for (uint64_t number = 1; number <= 3; ++number) {
    add(number, {entry(0, 16, 0)});
    launch(number, 5);
  }
  warps.finish();
  const WarpRow &row = *warps.kernels().find({0, 0, 5});
  ASSERT_EQ(row.sectors.size(), 1u);
  EXPECT_EQ(row.sectors[0].launch, 1u);
  EXPECT_EQ(row.graph.nodes.at(16).in.of(ReuseScope::kCold), 96u) << "each launch begins anew";
}

TEST(LaunchBook, ForgetsTheOldest) {
  LaunchBook book(64);
  for (uint64_t number = 1; number <= 65; ++number) {
    LaunchFacts facts;
    facts.launch = number;
    book.add(facts);
  }
  EXPECT_EQ(book.find(0, 1), nullptr);  // 65 took its place
  EXPECT_NE(book.find(0, 2), nullptr);
  EXPECT_NE(book.find(0, 65), nullptr);
  EXPECT_EQ(book.find(1, 2), nullptr);
}

}  // namespace
}  // namespace sonde::workload
