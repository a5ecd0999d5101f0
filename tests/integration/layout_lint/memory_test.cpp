// Accesses to shared and global memory, with values calculated by hand.
#include "lint_case.h"

namespace sonde::layout_lint {
namespace {

// Lane i holds row i of 32x32 words, stored row after row: a row is 32 words, all banks once. A lane stores 4 words
// (128 bits) at a time, 8 times. A phase has 8 lanes; their rows begin in the same bank, so 4 banks have 8 words each:
// 8 wavefronts where 1 would do. 4 phases: 32 wavefronts for 4, 28 lost; 8 instructions: 224.
constexpr const char *kRows =
    "#rows = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [32, 1], warpsPerCTA = [1, 1], order = [1, 0]}>\n";

std::string store_of_rows(const std::string &shared) {
  return module_text(kRows + shared, "%v: tensor<32x32xf32, #rows>",
                     "    %m = ttg.local_alloc %v : (tensor<32x32xf32, #rows>) -> !ttg.memdesc<32x32xf32, #shared, "
                     "#smem> loc(\"k.py\":7:4)\n");
}

TEST(SharedMemory, RowsInTheSameBanksConflict) {
  const FileResult result =
      lint(store_of_rows("#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>\n"));
  const Site &site = site_of(result, "ttg.local_alloc");
  EXPECT_EQ(site.plan, "registers to shared memory") << site.reason;
  EXPECT_EQ(site.instruction, "st.shared");
  EXPECT_EQ(site.vector_bits, 128u);
  EXPECT_EQ(site.instructions, 8u);
  EXPECT_EQ(site.store_conflicts, 224u);
  EXPECT_EQ(site.shared_bytes, 4096u);
  EXPECT_EQ(rules_of(site), std::vector<std::string>{"bank_conflicts"});
  EXPECT_EQ(site.file, "k.py");
  EXPECT_EQ(site.line, 7u);
  EXPECT_EQ(site.kernel, "kernel");
}

// Chunk c of row r lies at c xor (r mod 8): the 8 lanes of a phase store to 8 different groups of 4 banks.
TEST(SharedMemory, ASwizzleOfEightChunksTakesTheConflictsAway) {
  const FileResult result =
      lint(store_of_rows("#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>\n"));
  const Site &site = site_of(result, "ttg.local_alloc");
  EXPECT_EQ(site.store_conflicts, 0u);
  EXPECT_TRUE(site.issues.empty());
}

// With 4 phases of the swizzle two of the 8 lanes meet: 2 wavefronts for 1, 4 lost by an instruction, 32 by all.
TEST(SharedMemory, ANarrowSwizzleTakesHalfOfThem) {
  const std::string text =
      store_of_rows("#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>\n");
  EXPECT_EQ(site_of(lint(text), "ttg.local_alloc").store_conflicts, 32u);
  Options tolerant;
  tolerant.least_conflicts = 33;
  EXPECT_TRUE(site_of(lint(text, tolerant), "ttg.local_alloc").issues.empty());
}

// Operand A of an MMA, 16x64 of 16 bits: 16 tiles of 8x8, read by ldmatrix. Rows are 128 bytes: without a swizzle the 8
// rows of a tile lie in the same 4 banks, 8 wavefronts for 1; 7 lost by each of 16 tiles. .x4 reads 4 tiles at once.
std::string operand_load(const std::string &shared) {
  return module_text(
      "#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = "
      "[16, 8]}>\n#shared = " +
          shared + "\n",
      "%m: !ttg.memdesc<16x64xf16, #shared, #smem>",
      "    %a = ttg.local_load %m : !ttg.memdesc<16x64xf16, #shared, #smem> -> tensor<16x64xf16, "
      "#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>\n");
}

TEST(SharedMemory, MatrixRowsInTheSameBanksConflict) {
  const FileResult result =
      lint(operand_load("#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>"));
  const Site &site = site_of(result, "ttg.local_load");
  EXPECT_EQ(site.instruction, "ldmatrix") << site.reason;
  EXPECT_EQ(site.instructions, 4u);
  EXPECT_EQ(site.load_conflicts, 112u);
}

TEST(SharedMemory, MatrixRowsThatAreSwizzledDoNot) {
  const FileResult result =
      lint(operand_load("#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"));
  EXPECT_EQ(site_of(result, "ttg.local_load").instruction, "ldmatrix");
  EXPECT_EQ(site_of(result, "ttg.local_load").load_conflicts, 0u);
}

// The memory's fastest dim is M: a lane's two elements along K are a row apart, so ldmatrix transposes.
TEST(SharedMemory, ATransposedOperandIsReadWithTransposition) {
  const FileResult result =
      lint(operand_load("#ttg.swizzled_shared<{vec = 8, perPhase = 4, maxPhase = 2, order = [0, 1]}>"));
  EXPECT_EQ(site_of(result, "ttg.local_load").instruction, "ldmatrix.trans");
  Options without;
  without.matrix_instructions = "off";
  EXPECT_EQ(site_of(lint(operand_load("#ttg.swizzled_shared<{vec = 8, perPhase = 4, maxPhase = 2, order = [0, 1]}>"),
                         without),
                    "ttg.local_load")
                .instruction,
            "ld.shared");
}

constexpr const char *kFours =
    "#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>\n";

// Body of a load of 256 words at x + stride * i.
std::string load_of(const std::string &offsets, const std::string &mask = "") {
  return module_text(kFours, "%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32",
                     "    %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #b>\n" + offsets +
                         "    %s = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #b>\n"
                         "    %p = tt.addptr %s, %o : tensor<256x!tt.ptr<f32>, #b>, tensor<256xi32, #b>\n" +
                         (mask.empty() ? "    %v = tt.load %p : tensor<256x!tt.ptr<f32>, #b>\n" : mask),
                     2);
}

constexpr const char *kPlain =
    "    %c0 = arith.constant dense<0> : tensor<256xi32, #b>\n"
    "    %o = arith.addi %r, %c0 : tensor<256xi32, #b>\n";

// 32 lanes of 16 bytes side by side: 512 bytes, 16 sectors.
TEST(GlobalMemory, NeighboursAreCoalesced) {
  const Site site = site_of(lint(load_of(kPlain)), "tt.load");
  EXPECT_EQ(site.vector_bits, 128u) << site.reason;
  EXPECT_EQ(site.instructions, 1u);
  EXPECT_EQ(site.sectors, 16u);
  EXPECT_EQ(site.sectors_most, 17u);  // the base is a multiple of 16 only
  EXPECT_EQ(site.efficiency, 1.0);
  EXPECT_EQ(site.destination_copies, 1u);
  EXPECT_TRUE(site.issues.empty());
}

// Every second word: a lane's 4 words are 8 bytes apart, so 4 instructions of 32 bits; lanes are 32 bytes apart: each
// request has 32 sectors for 128 bytes.
TEST(GlobalMemory, AStrideOfTwoWastesSevenEighthsOfARequest) {
  const Site site = site_of(lint(load_of("    %c2 = arith.constant dense<2> : tensor<256xi32, #b>\n"
                                         "    %o = arith.muli %r, %c2 : tensor<256xi32, #b>\n")),
                            "tt.load");
  EXPECT_EQ(site.vector_bits, 32u);
  EXPECT_EQ(site.instructions, 4u);
  EXPECT_EQ(site.sectors, 32u);
  EXPECT_EQ(site.efficiency, 0.125);
  EXPECT_EQ(rules_of(site), std::vector<std::string>{"uncoalesced_access"});
}

// A mask with an unknown bound may end anywhere: single words, four instructions, neighbours 16 bytes apart: 16 sectors
// for 128 bytes, a quarter.
TEST(GlobalMemory, AMaskNarrowsTheAccess) {
  const std::string mask =
      "    %ns = tt.splat %n : i32 -> tensor<256xi32, #b>\n"
      "    %k = arith.cmpi slt, %r, %ns : tensor<256xi32, #b>\n"
      "    %v = tt.load %p, %k : tensor<256x!tt.ptr<f32>, #b>\n";
  const Site site = site_of(lint(load_of(kPlain, mask)), "tt.load");
  EXPECT_EQ(site.vector_bits, 32u);
  EXPECT_EQ(site.sectors, 16u);
  EXPECT_EQ(site.efficiency, 0.25);
  Options strict;
  strict.least_vector_bits = 64;
  const Site judged = site_of(lint(load_of(kPlain, mask), strict), "tt.load");
  ASSERT_TRUE(breaks(judged, "narrow_access"));
  EXPECT_NE(judged.issues[0].message.find("the mask may change"), std::string::npos);
}

TEST(GlobalMemory, AddressesFromDataAreNotJudged) {
  const Site site = site_of(lint(load_of("    %o = tt.load %q : tensor<256x!tt.ptr<i32>, #b>\n")), "tt.load", 1);
  EXPECT_EQ(site.plan, "global memory to registers");
  EXPECT_FALSE(site.sectors.has_value());
  ASSERT_EQ(site.unseen.size(), 1u);
  EXPECT_EQ(site.unseen[0].rule, "uncoalesced_access");
  EXPECT_NE(site.unseen[0].reason.find("they come from tt.load"), std::string::npos) << site.unseen[0].reason;
}

// 8 words for 2 warps of 32 lanes with 4 words each: 2 lanes would do; 16 lanes and both warps hold the same.
TEST(GlobalMemory, SmallTilesAreLoadedManyTimes) {
  const std::string text = module_text(kFours, "%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}",
                                       "    %s = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>, #b>\n"
                                       "    %v = tt.load %s : tensor<8x!tt.ptr<f32>, #b>\n",
                                       2);
  const Site site = site_of(lint(text), "tt.load");
  EXPECT_EQ(site.destination_copies, 32u);
  EXPECT_TRUE(breaks(site, "duplicated_access"));
}

TEST(GlobalMemory, AScalarIsOneAddress) {
  const std::string text =
      module_text("", "%x: !tt.ptr<f32>", "    %v = tt.load %x : !tt.ptr<f32>\n    tt.store %x, %v : !tt.ptr<f32>\n");
  EXPECT_EQ(site_of(lint(text), "tt.load").plan, "one address, by all threads");
  EXPECT_EQ(site_of(lint(text), "tt.store").plan, "one address, by one thread");
}

// 16 rows of 64 bytes have room for a swizzle of 64 bytes.
TEST(HardwareCopies, ANarrowSwizzleIsReported) {
  const auto text = [](const std::string &width) {
    return module_text("#shared = #ttg.nvmma_shared<{swizzlingByteWidth = " + width +
                           ", transposed = false, elementBitWidth = 32}>\n#bar = #ttg.swizzled_shared<{vec = 1, "
                           "perPhase = 1, maxPhase = 1, order = [0]}>\n",
                       "%d: !tt.tensordesc<tensor<16x16xf32, #shared>>, %m: !ttg.memdesc<16x16xf32, #shared, #smem, "
                       "mutable>, %b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %i: i32, %t: i1",
                       "    ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %t : "
                       "!tt.tensordesc<tensor<16x16xf32, #shared>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> "
                       "!ttg.memdesc<16x16xf32, #shared, #smem, mutable>\n");
  };
  const Site narrow = site_of(lint(text("32")), "ttng.async_tma_copy_global_to_local");
  EXPECT_EQ(narrow.plan, "hardware copy: global memory to shared memory");
  EXPECT_EQ(narrow.shared_bytes, 1024u);
  EXPECT_EQ(rules_of(narrow), std::vector<std::string>{"narrow_swizzle"});
  EXPECT_TRUE(site_of(lint(text("64")), "ttng.async_tma_copy_global_to_local").issues.empty());
}

}  // namespace
}  // namespace sonde::layout_lint
