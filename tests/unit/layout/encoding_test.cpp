// Encodings with a shape against hand calculations, where the published vectors have none, and what does not fit.
#include "layout/encoding.h"

#include <random>

#include "layout/queries.h"
#include "vectors_fixture.h"

namespace sonde::layout::test {
namespace {

// --- What the vectors leave out ---

// PTX ISA, fragments of m8n8k4 with f64: of A, row = lane / 4 and column = lane mod 4; of B, row = lane mod 4 and
// column = lane / 4; of C, row = lane / 4 and column = 2 (lane mod 4) + register.
TEST_F(EncodingTest, DoublePrecisionMmaIsThatOfPtx) {
  const char *const mma =
      "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [8, 8]}>";
  check(mma, {8, 8}, "register (0,1); lane (0,2)(0,4)(1,0)(2,0)(4,0); warp; block -> dim0[8] dim1[8]");
  check(operand_of(mma, 0, 1), {8, 4}, "register; lane (0,1)(0,2)(1,0)(2,0)(4,0); warp; block -> dim0[8] dim1[4]");
  check(operand_of(mma, 1, 1), {4, 8}, "register; lane (1,0)(2,0)(0,1)(0,2)(0,4); warp; block -> dim0[4] dim1[8]");
}

// PTX ISA, fragments of m16n8k16 with 16-bit elements: of A, row = lane / 4 (+ 8 for registers 2, 3, 6, 7) and column =
// 2 (lane mod 4) + (register mod 2) (+ 8 for registers 4 to 7).
TEST_F(EncodingTest, HalfPrecisionOperandIsThatOfPtx) {
  check(operand_of(kMma16x8, 0, 2), {16, 16},
        "register (0,1)(8,0)(0,8); lane (0,2)(0,4)(1,0)(2,0)(4,0); warp; block -> dim0[16] dim1[16]");
}

// Warps of wgmma lie along M first. A has copies along K: of 4 x 2 warps, warp bit 2 selects N.
TEST_F(EncodingTest, OperandsOfWgmmaFollowItsWarps) {
  const char *const mma =
      "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, 32, 16]}>";
  check(operand_of(mma, 0, 2), {64, 16},
        "register (0,1)(8,0)(0,8); lane (0,2)(0,4)(1,0)(2,0)(4,0); warp (16,0)(32,0)(0,0); block -> dim0[64] "
        "dim1[16]");
}

// Blocks that split the result along N must all have all of A's K; those that split it along M share B.
TEST_F(EncodingTest, OperandsAreNotSplitAlongK) {
  const std::string mma =
      "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], CGALayout = [[0, 1], [1, 0]], "
      "instrShape = [16, 8]}>";
  check(operand_of(mma.c_str(), 0, 2), {32, 16},
        "register (0,1)(8,0)(0,8); lane (0,2)(0,4)(1,0)(2,0)(4,0); warp; block (0,0)(16,0) -> dim0[32] dim1[16]");
  check(operand_of(mma.c_str(), 1, 2), {16, 16},
        "register (1,0)(8,0); lane (2,0)(4,0)(0,1)(0,2)(0,4); warp; block (0,8)(0,0) -> dim0[16] dim1[16]");
}

// 64x4 has its result transposed: a lane holds 4 columns of its row. Its operand A is 64x64: each lane holds a row.
TEST_F(EncodingTest, MfmaOf64x4) {
  const char *const mfma =
      "#ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [64, 4, 4], isTransposed = true}>";
  check(mfma, {64, 4}, "register (0,1)(0,2); lane (1,0)(2,0)(4,0)(8,0)(16,0)(32,0); warp; block -> dim0[64] dim1[4]");
  check(operand_of(mfma, 0, 4), {64, 64},
        "register (0,1)(0,2)(0,4)(0,8)(0,16)(0,32); lane (1,0)(2,0)(4,0)(8,0)(16,0)(32,0); warp; block -> dim0[64] "
        "dim1[64]");
  // 4 lanes along N, so 16 along K with 4 elements each.
  check(operand_of(mfma, 1, 4), {64, 4},
        "register (1,0)(2,0); lane (0,1)(0,2)(4,0)(8,0)(16,0)(32,0); warp; block -> dim0[64] dim1[4]");
}

// Two 16x16 results below each other, the second in the registers behind those of the first; transposed, beside each
// other.
TEST_F(EncodingTest, WmmaOf32x16) {
  const auto wmma = [](const char *transposed) {
    return "#ttg.amd_wmma<{version = 3, isTranspose = " + std::string(transposed) +
           ", warpsPerCTA = [1, 1], instrShape = [32, 16, 32]}>";
  };
  check(wmma("false"), {32, 16},
        "register (1,0)(2,0)(4,0)(16,0); lane (0,1)(0,2)(0,4)(0,8)(8,0); warp; block -> dim0[32] dim1[16]");
  check(wmma("true"), {16, 32},
        "register (0,1)(0,2)(0,4)(0,16); lane (1,0)(2,0)(4,0)(8,0)(0,8); warp; block -> dim0[16] dim1[32]");
  // A: K = 0..15 in lanes 0..15, K = 16..31 in lanes 16..31, rows 16..31 in registers 16..31. B is short.
  check(operand_of(wmma("false").c_str(), 0, 16), {32, 32},
        "register (0,1)(0,2)(0,4)(0,8)(16,0); lane (1,0)(2,0)(4,0)(8,0)(0,16); warp; block -> dim0[32] dim1[32]");
  check(operand_of(wmma("false").c_str(), 1, 16), {32, 16},
        "register (1,0)(2,0)(4,0)(8,0); lane (0,1)(0,2)(0,4)(0,8)(16,0); warp; block -> dim0[32] dim1[16]");
  // Transposed, B is the long one.
  check(operand_of(wmma("true").c_str(), 0, 16), {16, 32},
        "register (0,1)(0,2)(0,4)(0,8); lane (1,0)(2,0)(4,0)(8,0)(0,16); warp; block -> dim0[16] dim1[32]");
  check(operand_of(wmma("true").c_str(), 1, 16), {32, 32},
        "register (1,0)(2,0)(4,0)(8,0)(0,16); lane (0,1)(0,2)(0,4)(0,8)(16,0); warp; block -> dim0[32] dim1[32]");
}

// Warps and tiles by count lie as the bases that they stand for: along N first, a warp's tiles before the warps.
TEST_F(EncodingTest, WmmaTilesByCountAndByBases) {
  const char *const counted =
      "#ttg.amd_wmma<{version = 2, isTranspose = false, warpsPerCTA = [2, 4], tilesPerWarp = [2, 1]}>";
  const char *const given =
      "#ttg.amd_wmma<{version = 2, isTranspose = false, ctaLayout = {register = [[1, 0]], warp = [[0, 1], [0, 2], [2, "
      "0]]}, instrShape = [16, 16, 16]}>";
  check(counted, {64, 64},
        "register (1,0)(2,0)(4,0)(16,0); lane (0,1)(0,2)(0,4)(0,8)(8,0); warp (0,16)(0,32)(32,0); block -> dim0[64] "
        "dim1[64]");
  EXPECT_TRUE(equal(*layout(counted, {64, 64}), *layout(given, {64, 64})));
  EXPECT_TRUE(equal(*layout(operand_of(counted, 1, 8), {32, 64}), *layout(operand_of(given, 1, 8), {32, 64})));
}

// Without a swizzle memory is row-major, or column-major when transposed, in blocks of at most 256 along each dim.
TEST_F(EncodingTest, NvmmaSharedWithoutSwizzle) {
  const char *const plain = "#ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>";
  const char *const turned = "#ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = true, elementBitWidth = 16}>";
  check(plain, {8}, "offset 1 2 4; block -> dim0[8]");
  check(plain, {4, 8}, "offset (0,1)(0,2)(0,4)(1,0)(2,0); block -> dim0[4] dim1[8]");
  check(turned, {4, 8}, "offset (1,0)(2,0)(0,1)(0,2)(0,4); block -> dim0[4] dim1[8]");
  check(turned, {2, 4, 2}, "offset (1,0,0)(0,0,1)(0,1,0)(0,2,0); block -> dim0[2] dim1[4] dim2[2]");
  check(plain, {2, 512},
        "offset (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(0,64)(0,128)(1,0)(0,256); block -> dim0[2] dim1[512]");
}

// Two blocks, each with half of the rows: the swizzle is that of a block's part.
TEST_F(EncodingTest, SharedMemoryOfSeveralBlocks) {
  check("#ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>",
        {16, 16}, "offset (0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8); block (8,0) -> dim0[16] dim1[16]");
  // 8 columns a block: vec * phase is taken modulo those.
  check("#ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0], CGALayout = [[0, 1]]}>", {4, 16},
        "offset (0,1)(0,2)(0,4)(1,4)(2,0); block (0,8) -> dim0[4] dim1[16]");
}

TEST_F(EncodingTest, PaddedSharedIsLinearBeforeItsPads) {
  check("#ttg.padded_shared<[8:+2] {order = [1, 0], shape = [4, 8]}>", {4, 8},
        "offset (0,1)(0,2)(0,4)(1,0)(2,0); block -> dim0[4] dim1[8]");
  check("#ttg.padded_shared<[8:+2] {order = [0, 1], shape = [4, 8]}>", {4, 8},
        "offset (1,0)(2,0)(0,1)(0,2)(0,4); block -> dim0[4] dim1[8]");
  check("#ttg.padded_shared<[4:+1] {offset = [[0, 1], [2, 0], [1, 0]], block = [[0, 0]]}>", {4, 2},
        "offset (0,1)(2,0)(1,0); block (0,0) -> dim0[4] dim1[2]");
  // Without a shape of its own it has the tensor's.
  check("#ttg.padded_shared<[4:+1] {order = [0]}>", {4}, "offset 1 2; block -> dim0[4]");
}

TEST_F(EncodingTest, PaddedAddresses) {
  const Padding one[] = {{8, 2}};
  EXPECT_EQ(padded_address(one, 7), 7u);
  EXPECT_EQ(padded_address(one, 8), 10u);   // 8 + 1 * 2
  EXPECT_EQ(padded_address(one, 16), 20u);  // 16 + 2 * 2
  EXPECT_EQ(padded_size(one, 16), 18u);     // the last is 15 + 2
  EXPECT_EQ(padded_size(one, 0), 0u);
  const Padding two[] = {{4, 1}, {16, 2}};
  EXPECT_EQ(padded_address(two, 17), 23u);  // 17 + 4 * 1 + 1 * 2
}

TEST_F(EncodingTest, LinearRepeatsInItsOrderAndDropsRegisters) {
  const char *const linear = "#ttg.linear<{register = [[0, 1]], lane = [[1, 0], [2, 0]], warp = [[0, 2]], block = []}>";
  check(linear, {4, 4}, "register (0,1); lane (1,0)(2,0); warp (0,2); block -> dim0[4] dim1[4]");
  // The registers touch dim 1 first: it repeats first.
  check(linear, {8, 8}, "register (0,1)(0,4)(4,0); lane (1,0)(2,0); warp (0,2); block -> dim0[8] dim1[8]");
  // Past the end lanes and warps hold copies, registers go.
  check(linear, {2, 1}, "register; lane (1,0)(0,0); warp (0,0); block -> dim0[2] dim1[1]");
  check("#ttg.generic_linear<{register = [], lane = [[1], [2], [4], [8]], warp = [[3]], block = []}>", {16},
        "register; lane 1 2 4 8; warp 3; block -> dim0[16]");
  check("#ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 0], [2, 2]]}, alignment = 16>", {4, 4},
        "offset (0,1)(0,2)(1,0)(2,2); block -> dim0[4] dim1[4]");
}

// 8 pieces of 16 rows; partition 0 has pieces 0, 2, 4, 6 one after the other, partition 1 the others.
TEST_F(EncodingTest, PartitionedSharedDealsPiecesOut) {
  check(
      "#ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = "
      "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}>",
      {128, 4}, "offset (0,1)(0,2)(1,0)(2,0)(4,0)(8,0)(32,0)(64,0); block; partition (16,0) -> dim0[128] dim1[4]");
  // Of padded memory the linear part; the shape is a piece's.
  check(
      "#ttg.partitioned_shared<{numPartitions = 2, numGroups = 1, partitionDim = 1, partitionLayout = "
      "#ttg.padded_shared<[4:+1] {order = [1, 0], shape = [2, 4]}>}>",
      {2, 8}, "offset (0,1)(0,2)(1,0); block; partition (0,4) -> dim0[2] dim1[8]");
}

TEST_F(EncodingTest, TensorMemoryWithHolesAndPairs) {
  const std::string rows = "row (1,0)(2,0)(4,0)(8,0)(16,0)(32,0)(64,0); ";
  // Every other column of 32 bits is used.
  check("#ttng.tensor_memory_encoding<blockM = 128, blockN = 4, colStride = 2>", {128, 4},
        rows + "col (0,0)(0,1)(0,2); block -> dim0[128] dim1[4]");
  check("#ttng.tensor_memory_encoding<blockM = 128, blockN = 4, colStride = 1, fp4Padded = true>", {128, 4},
        rows + "col (0,0)(0,1)(0,2); block -> dim0[128] dim1[4]");
  // Two blocks, each with 64 rows: rows 64 to 127 of its memory hold the right half (PTX ISA, data path layout B).
  check("#ttng.tensor_memory_encoding<blockM = 64, blockN = 8, colStride = 1, CGALayout = [[1, 0]], twoCTAs = true>",
        {128, 8}, "row (1,0)(2,0)(4,0)(8,0)(16,0)(32,0)(0,4); col (0,1)(0,2); block (64,0) -> dim0[128] dim1[8]");
  // A tensor that is narrower than blockN; tiles along M before those along N.
  check("#ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>", {256, 2},
        rows + "col (0,1)(128,0); block -> dim0[256] dim1[2]");
}

// MN first, the default: behind the first 64 rows the next, then K. A tensor of fewer than 64 rows leaves columns empty.
TEST_F(EncodingTest, ScalesInTensorMemory) {
  const char *const scales = "#ttng.tensor_memory_scales_encoding<>";
  check(scales, {256, 8},
        "row (1,0)(2,0)(4,0)(8,0)(16,0)(0,0)(0,0); col (0,1)(0,2)(32,0)(64,0)(128,0)(0,4); block -> dim0[256] "
        "dim1[8]");
  check(scales, {32, 2}, "row (1,0)(2,0)(4,0)(8,0)(16,0)(0,0)(0,0); col (0,1)(0,0)(0,0); block -> dim0[32] dim1[2]");
}

TEST_F(EncodingTest, ScalesInRegisters) {
  const auto scale = [](int index, const std::string &parent) {
    return "#sonde.scale_op<{opIdx = " + std::to_string(index) + ", parent = " + parent + "}>";
  };
  // SM 12.0, operand B: a quad shares a row of 8; warps along N lie along the first dim now, those along M hold copies.
  check(scale(1, "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"),
        {32, 2}, "register (0,1)(16,0); lane (0,0)(0,0)(1,0)(2,0)(4,0); warp (8,0)(0,0); block -> dim0[32] dim1[2]");
  // A of 32x32: lanes 0 to 31 the rows, the halves of the wave neighbouring scales along K.
  check(scale(0, "#ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 1], instrShape = [32, 32, 64], isTransposed = true}>"),
        {64, 8}, "register (0,2)(0,4); lane (1,0)(2,0)(4,0)(8,0)(16,0)(0,1); warp (32,0); block -> dim0[64] dim1[8]");
  // B of 16x16 with two tiles a warp along N.
  check(scale(1,
              "#ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 2], instrShape = [16, 16, 128], isTransposed = true, "
              "tilesPerWarp = [1, 2]}>"),
        {64, 8}, "register (0,4)(16,0); lane (1,0)(2,0)(4,0)(8,0)(0,1)(0,2); warp (32,0); block -> dim0[64] dim1[8]");
  // 4 scales a lane along K; lanes 16 to 31 have those of the warp's second tile, or copies.
  const char *const wmma =
      "#ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = [[1, 0]]}, instrShape = [16, 16, 128]}>";
  check(scale(0, wmma), {32, 4},
        "register (0,1)(0,2); lane (1,0)(2,0)(4,0)(8,0)(0,0); warp (16,0); block -> dim0[32] dim1[4]");
  check(scale(0, wmma), {64, 4},
        "register (0,1)(0,2); lane (1,0)(2,0)(4,0)(8,0)(32,0); warp (16,0); block -> dim0[64] dim1[4]");
}

// --- Questions and choices ---

TEST_F(EncodingTest, ShapeOfABlock) {
  const auto part = [&](const std::string &text, Sizes shape) {
    Sizes result(shape.size());
    EXPECT_TRUE(shape_per_cta(arena_, encoding(text), shape, result)) << arena_.text();
    return result;
  };
  const std::string blocked =
      "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0], CTAsPerCGA "
      "= "
      "[2, 4], CTASplitNum = [2, 1], CTAOrder = [1, 0]}>";
  EXPECT_EQ(part(blocked, {64, 64}), (Sizes{32, 64}));
  EXPECT_EQ(part(blocked, {1, 64}), (Sizes{1, 64}));  // no more parts than elements
  EXPECT_EQ(part("#ttg.slice<{dim = 0, parent = " + blocked + "}>", {64}), (Sizes{64}));
  EXPECT_EQ(part("#ttg.slice<{dim = 1, parent = " + blocked + "}>", {64}), (Sizes{32}));
  EXPECT_EQ(part("#ttg.linear<{register = [[1]], lane = [], warp = [], block = [[0], [2]]}>", {4}), (Sizes{2}));
  EXPECT_EQ(total_elements_per_thread(arena_, encoding(blocked), Sizes{64, 64}), 64u);  // 32 * 64 / 32 lanes
  EXPECT_EQ(encoding_rank(encoding("#ttg.slice<{dim = 0, parent = " + blocked + "}>")), 1u);
  EXPECT_EQ(encoding_rank(encoding("#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = "
                                   "16}>")),
            0u);
}

TEST_F(EncodingTest, MemoryHasNoRegisters) {
  EXPECT_EQ(total_elements_per_thread(arena_, encoding("#sonde.scale_shared<>"), Sizes{128, 4}), 0u);
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
}

TEST_F(EncodingTest, SwizzleForAnOperand) {
  const auto chosen = [&](int index, int width, Sizes shape, std::vector<uint32_t> order, uint32_t bits,
                          bool transposes = false) {
    const Encoding shared =
        swizzle_for_operand(arena_, encoding(operand_of(kMma16x8, index, width)), shape, order, bits, transposes);
    EXPECT_EQ(shared.kind, EncodingKind::kSwizzledShared) << arena_.text();
    EXPECT_EQ(shared.order, order);
    return Sizes{shared.vec, shared.per_phase, shared.max_phase};
  };
  // 64 columns of 16 bits fill the banks: a phase a row, 8 rows of 8 elements.
  EXPECT_EQ(chosen(0, 2, {64, 64}, {1, 0}, 16), (Sizes{8, 1, 8}));
  // 32 columns: two rows a phase, so half the phases.
  EXPECT_EQ(chosen(0, 2, {64, 32}, {1, 0}, 16), (Sizes{8, 2, 4}));
  // 32 bits, kWidth 1: 4 elements; A against the order of memory: 8 elements of 4 rows.
  EXPECT_EQ(chosen(0, 1, {64, 64}, {1, 0}, 32), (Sizes{4, 1, 8}));
  EXPECT_EQ(chosen(0, 1, {64, 64}, {0, 1}, 32), (Sizes{8, 1, 4}));
  EXPECT_EQ(chosen(0, 1, {64, 64}, {1, 0}, 32, true), (Sizes{8, 1, 4}));
  // f64: 4 rows of 4 elements; 1024 / (4 * 64) = 4 phases.
  EXPECT_EQ(chosen(1, 1, {16, 16}, {0, 1}, 64), (Sizes{4, 1, 4}));
}

TEST_F(EncodingTest, DefaultSwizzle) {
  const uint32_t order[] = {1, 0};
  EXPECT_EQ(default_swizzle_bytes(Sizes{64, 64}, order, 16), 128u);
  EXPECT_EQ(default_swizzle_bytes(Sizes{64, 32}, order, 16), 64u);
  EXPECT_EQ(default_swizzle_bytes(Sizes{8, 16}, order, 16), 32u);
  EXPECT_EQ(default_swizzle_bytes(Sizes{8, 8}, order, 16), 0u);    // 16 bytes
  EXPECT_EQ(default_swizzle_bytes(Sizes{4, 64}, order, 16), 0u);   // 4 rows
  EXPECT_EQ(default_swizzle_bytes(Sizes{4, 96}, order, 16), 0u);   // the same, 192 bytes
  EXPECT_EQ(default_swizzle_bytes(Sizes{8, 96}, order, 16), 64u);  // 192 = 3 * 64
  const uint32_t order3[] = {2, 1, 0};
  EXPECT_EQ(default_swizzle_bytes(Sizes{2, 4, 64}, order3, 16), 128u);  // 2 * 4 rows
}

// --- What does not fit ---

TEST_F(EncodingTest, ShapesThatHaveNoLayout) {
  const char *const one = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [4], warpsPerCTA = [4], order = [0]}>";
  check_fails(one, {48}, Fault::kUnsupported, "dim 0 of the shape is 48");
  check_fails(one, {0}, Fault::kUnsupported, "dim 0 of the shape is 0");
  check_fails(one, {}, Fault::kInvalid, "1 to 32 dims");
  check_fails(one, Sizes(33, 1), Fault::kUnsupported, "1 to 32 dims");
  check_fails(one, {uint64_t{1} << 40, uint64_t{1} << 40}, Fault::kUnsupported, "2^64");
  check_fails(one, {16, 16}, Fault::kInvalid, "sizePerThread = [1]");
  check_fails(Encoding{}, {16}, Fault::kInvalid, "no encoding");
}

TEST_F(EncodingTest, BlockedThatContradictsItself) {
  check_fails("#ttg.blocked<{sizePerThread = [3], threadsPerWarp = [4], warpsPerCTA = [4], order = [0]}>", {16},
              Fault::kInvalid, "sizePerThread must be a power of two, not 3");
  check_fails("#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [0, 0]}>",
              {16, 16}, Fault::kInvalid, "order = [0, 0]");
  check_fails(
      "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [4], warpsPerCTA = [4], order = [0], CTAsPerCGA = "
      "[2], CTASplitNum = [4], CTAOrder = [0]}>",
      {16}, Fault::kInvalid, "CTASplitNum = [4] has more parts than CTAsPerCGA = [2]");
  check_fails(
      "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [4], warpsPerCTA = [4], order = [0], CGALayout = "
      "[[1, 0]]}>",
      {16}, Fault::kInvalid, "CGALayout");
  // 2^40 in each of two in dims.
  check_fails(
      "#ttg.blocked<{sizePerThread = [1099511627776], threadsPerWarp = [1099511627776], warpsPerCTA = [4], "
      "order = [0]}>",
      {16}, Fault::kUnsupported, "64");
}

TEST_F(EncodingTest, SlicesAndOperandsOfWhatHasNone) {
  Encoding slice;
  slice.kind = EncodingKind::kSlice;
  check_fails(slice, {16}, Fault::kInvalid, "parent");
  check_fails("#ttg.slice<{dim = 2, parent = " + std::string(kMma16x8) + "}>", {16}, Fault::kInvalid, "dim 2");
  check_fails("#ttg.slice<{dim = 0, parent = #sonde.scale_shared<>}>", {16}, Fault::kInvalid, "scale_shared");
  Encoding operand;
  operand.kind = EncodingKind::kDotOperand;
  check_fails(operand, {16, 16}, Fault::kInvalid, "parent");
  check_fails(operand_of(kMma16x8, 2, 2), {16, 16}, Fault::kInvalid, "opIdx");
  check_fails(operand_of(kMma16x8, 0, 0), {16, 16}, Fault::kInvalid, "kWidth");
  check_fails(operand_of(kMma16x8, 0, 2), {16}, Fault::kInvalid, "2 dims");
  check_fails(operand_of("#sonde.scale_shared<>", 0, 2), {16, 16}, Fault::kInvalid, "scale_shared");
  check_fails(operand_of("#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, "
                         "16, 16]}>",
                         1, 2),
              {16, 16}, Fault::kInvalid, "shared memory");
}

TEST_F(EncodingTest, InstructionsThatDoNotExist) {
  check_fails("#ttg.nvidia_mma<{versionMajor = 1, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 16]}>",
              {16, 16}, Fault::kUnsupported, "version 1");
  check_fails("#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 12]}>",
              {16, 16}, Fault::kInvalid, "instrShape = [16, 12]");
  check_fails(
      "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1, 1], instrShape = [16, 16, 16]}>",
      {2, 64, 16}, Fault::kInvalid, "does not fit");
  check_fails("#ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [64, 4], isTransposed = false}>", {64, 4},
              Fault::kInvalid, "isTransposed");
  check_fails("#ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [8, 8], isTransposed = false}>", {64, 4},
              Fault::kInvalid, "instrShape = [8, 8]");
  check_fails("#ttg.amd_wmma<{version = 4, warpsPerCTA = [1, 1]}>", {16, 16}, Fault::kInvalid, "versions 1 to 3");
  check_fails("#ttg.amd_wmma<{version = 1, warpsPerCTA = [1, 1], instrShape = [32, 16, 16]}>", {32, 16},
              Fault::kInvalid, "32x16");
  check_fails("#ttg.amd_wmma<{version = 2, warpsPerCTA = [1, 1, 1, 1]}>", {1, 1, 16, 16}, Fault::kInvalid, "2 dims");
}

TEST_F(EncodingTest, MemoryThatDoesNotFit) {
  check_fails("#ttg.swizzled_shared<{vec = 1, perPhase = 0, maxPhase = 1, order = [1, 0]}>", {16, 16}, Fault::kInvalid,
              "perPhase");
  check_fails("#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 6, order = [1, 0]}>", {16, 16}, Fault::kInvalid,
              "maxPhase must be a power of two, not 6");
  check_fails("#ttg.nvmma_shared<{swizzlingByteWidth = 48, transposed = false, elementBitWidth = 16}>", {16, 16},
              Fault::kInvalid, "not 48");
  check_fails("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>", {16, 32},
              Fault::kInvalid, "needs at least 64");
  // Four rows under a 128 byte swizzle once were an assertion of the compiler.
  check_fails("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>", {4, 64},
              Fault::kInvalid, "at least 8 rows");
  check_fails("#ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16, rank = 3}>",
              {16, 16}, Fault::kInvalid, "rank = 3");
  check_fails("#ttg.padded_shared<[6:+1] {order = [0], shape = [16]}>", {16}, Fault::kInvalid, "an interval");
  check_fails("#ttg.padded_shared<[8:+1] {order = [0], shape = [16]}>", {32}, Fault::kInvalid, "not a tensor of [32]");
  check_fails("#ttg.shared_linear<{offset = [[1], [2]]}, alignment = 16>", {8}, Fault::kInvalid, "not a tensor of [8]");
  check_fails("#ttg.shared_linear<{offset = [[1], [4]]}, alignment = 16>", {8}, Fault::kInvalid, "do not reach");
  check_fails(
      "#ttg.partitioned_shared<{numPartitions = 4, numGroups = 4, partitionDim = 0, partitionLayout = "
      "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>}>",
      {8}, Fault::kInvalid, "16 pieces");
  check_fails("#ttng.tensor_memory_encoding<blockM = 32, blockN = 64, colStride = 1>", {64, 64}, Fault::kInvalid,
              "blockM");
  check_fails("#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>", {64, 64}, Fault::kInvalid,
              "smaller than the tile");
  check_fails("#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>", {2, 128, 64}, Fault::kInvalid,
              "3 dims");
  check_fails("#sonde.scale_shared<>", {64, 4}, Fault::kInvalid, "128 x 4");
}

TEST_F(EncodingTest, BasesThatAreNotLinearEnough) {
  check_fails("#ttg.linear<{register = [], lane = [[1], [3]], warp = [], block = []}>", {4}, Fault::kInvalid,
              "only generic_linear may combine them");
  check_fails("#ttg.generic_linear<{register = [], lane = [[1], [4]], warp = [], block = []}>", {8}, Fault::kInvalid,
              "do not reach");
  check_fails("#ttg.linear<{register = [], lane = [[1, 0], [2]], warp = [], block = []}>", {4, 1}, Fault::kInvalid,
              "basis [2] of lane");
}

TEST_F(EncodingTest, AFullArenaSaysSo) {
  Arena small(1);
  const Encoding blocked =
      encoding("#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [4], warpsPerCTA = [4], order = [0]}>");
  EXPECT_EQ(encoding_layout(small, blocked, Sizes{16}), nullptr);
  EXPECT_EQ(small.fault(), Fault::kFull);
}

// 12 bases and 6 dims are less than 200 bytes; the factors that a layout is built from are ten times that.
TEST_F(EncodingTest, AnArenaKeepsTheLayoutOnly) {
  Arena arena;
  const Encoding mma = encoding(kMma16x8);
  for (int i = 0; i < 300; ++i) ASSERT_NE(encoding_layout(arena, mma, Sizes{64, 64}), nullptr);
  EXPECT_EQ(arena.bytes(), Arena::kBlockBytes);
}

// Whatever the parameters are, there is a layout of exactly the shape, or a reason.
TEST_F(EncodingTest, AnyParametersGiveALayoutOrAReason) {
  std::mt19937_64 random(3);
  const auto below = [&](uint64_t end) { return random() % end; };
  const auto size = [&] { return below(8) == 0 ? below(300) : uint64_t{1} << below(8); };
  const auto list = [&](size_t count) {
    Sizes values;
    for (size_t i = 0; i < count; ++i) values.push_back(size());
    return values;
  };
  const auto bases = [&](size_t count) {
    Bases rows(below(5));
    for (auto &row : rows) {
      row.assign(below(16) == 0 ? below(4) : count, 0);
      if (!row.empty() && below(4) != 0) row[below(row.size())] = uint64_t{1} << below(6);
    }
    return rows;
  };
  const auto one = [&](size_t rank) {
    Encoding e;
    e.kind = static_cast<EncodingKind>(below(static_cast<uint64_t>(EncodingKind::kTensorMemoryScales) + 1));
    e.size_per_thread = list(rank);
    e.threads_per_warp = list(rank);
    e.warps_per_cta = list(rank);
    for (uint32_t i = 0; i < rank; ++i) e.order.insert(e.order.begin() + static_cast<long>(below(i + 1)), i);
    if (below(4) == 0) e.cga = {list(rank), list(rank), e.order, {}};
    if (below(4) == 0) e.cga.block = bases(rank);
    e.dim = static_cast<uint32_t>(below(3));
    e.operand_index = static_cast<uint32_t>(below(8) == 0 ? 2 : below(2));
    e.k_width = static_cast<uint32_t>(size());
    e.version_major = static_cast<uint32_t>(below(5));
    e.instruction_shape = below(2) == 0 ? Sizes{16, 8, 16} : Sizes{16, 16, 16};
    if (below(4) == 0) e.instruction_shape = list(below(4));
    e.is_transposed = below(2) == 0;
    if (below(2) == 0) e.tiles_per_warp = list(rank);
    e.element_bits = static_cast<uint32_t>(size());
    e.vec = size();
    e.per_phase = size();
    e.max_phase = size();
    e.swizzle_bytes = static_cast<uint32_t>(16 << below(4));
    if (below(4) == 0) e.swizzle_bytes = 0;
    e.transposed = below(2) == 0;
    e.fp4_padded = below(4) == 0;
    e.paddings = {{size(), size()}};
    e.register_bases = bases(rank);
    e.lane_bases = bases(rank);
    e.warp_bases = bases(rank);
    e.block_bases = bases(rank);
    e.offset_bases = bases(rank);
    e.partition_count = static_cast<uint32_t>(size());
    e.group_count = static_cast<uint32_t>(size());
    e.block_m = below(2) == 0 ? 64 : 128;
    e.block_n = size();
    e.column_stride = size();
    e.two_ctas = below(2) == 0;
    return e;
  };
  uint64_t made = 0;
  for (uint64_t i = 0; i < cases(); ++i) {
    arena_.reset();
    const size_t rank = 1 + below(3);
    Encoding e = one(rank);
    if (below(8) != 0) e.parent = std::make_shared<Encoding>(one(rank + (e.kind == EncodingKind::kSlice ? 1 : 0)));
    const Sizes shape = list(rank);
    arena_.fail(Fault::kNone, "");
    const Layout *const result = encoding_layout(arena_, e, shape);
    Sizes part(rank);
    if (result == nullptr) {
      ASSERT_NE(arena_.fault(), Fault::kNone) << attribute_text(e);
      ASSERT_FALSE(arena_.text().empty()) << attribute_text(e);
      continue;
    }
    ++made;
    ASSERT_EQ(result->outs().size(), rank);
    for (size_t d = 0; d < rank; ++d) {
      ASSERT_EQ(result->outs()[d].name, standard_dim(static_cast<uint32_t>(d)));
      ASSERT_EQ(uint64_t{1} << result->outs()[d].bits, shape[d]) << attribute_text(e);
    }
    ASSERT_TRUE(is_surjective(*result)) << attribute_text(e) << to_string(*result);
    ASSERT_TRUE(shape_per_cta(arena_, e, shape, part)) << attribute_text(e) << arena_.text();
  }
  EXPECT_GT(made, cases() / 20);
}

}  // namespace
}  // namespace sonde::layout::test
