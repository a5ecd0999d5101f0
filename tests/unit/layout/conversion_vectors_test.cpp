// Parameters of encodings against the layouts that Triton's own conversion tests expect: 178 of them from a file, and
// forty more (K1 to K40) by way of their text.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "vectors_encoding.h"
#include "vectors_fixture.h"

namespace sonde::layout::test {
namespace {

TEST(ConversionVectors, EveryEncodingGivesTheExpectedBases) {
  const auto vectors = read_conversion_vectors(SONDE_TEST_SOURCE_DIR "/tests/data/layouts/conversions.json");
  ASSERT_EQ(vectors.size(), 178u);
  Arena arena;
  uint64_t mismatched = 0;
  std::map<std::string_view, uint64_t> by_kind;
  for (const ConversionVector &vector : vectors) {
    arena.reset();
    const Layout *const layout = encoding_layout(arena, vector.encoding, vector.shape);
    const Layout *const expected = layout == nullptr ? nullptr : layout_of_json(arena, vector.expected);
    ++by_kind[encoding_kind_text(vector.encoding.kind)];
    if (layout != nullptr && expected != nullptr && equal(*layout, *expected)) continue;
    ++mismatched;
    ADD_FAILURE() << vector.test << (layout == nullptr ? ": " + arena.text() : ": got" + to_string(*layout));
  }
  std::printf("%zu checked, %llu mismatched\n", vectors.size(), static_cast<unsigned long long>(mismatched));
  for (const auto &[kind, count] : by_kind) {
    std::printf("  %.*s %llu\n", static_cast<int>(kind.size()), kind.data(), static_cast<unsigned long long>(count));
  }
}

TEST_F(EncodingTest, BlockedVectors) {
  const char *const one = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [4], warpsPerCTA = [4], order = [0]}>";
  check(one, {16}, "register; lane 1 2; warp 4 8; block -> dim0[16]");             // K1
  check(one, {128}, "register 16 32 64; lane 1 2; warp 4 8; block -> dim0[128]");  // K4
  check(
      "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [4], warpsPerCTA = [4], order = [0], CTAsPerCGA = [4], "
      "CTASplitNum = [2], CTAOrder = [0]}>",
      {32}, "register; lane 1 2; warp 4 8; block 16 0 -> dim0[32]");  // K2
  check(
      "#ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1], "
      "CTAsPerCGA = [1, 2], CTASplitNum = [1, 2], CTAOrder = [0, 1]}>",
      {64, 128},
      "register (1,0)(2,0)(4,0)(0,16)(0,32); lane (8,0)(16,0)(32,0)(0,1)(0,2); warp (0,4)(0,8); block (0,64) -> "
      "dim0[64] dim1[128]");  // K3
  check("#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [4], warpsPerCTA = [4], order = [0]}>", {8},
        "register 1 2; lane 4 0; warp 0 0; block -> dim0[8]");  // K5
  check(
      "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0], "
      "CTAsPerCGA = [2, 2], CTASplitNum = [2, 1], CTAOrder = [1, 0]}>",
      {128, 16},
      "register (0,1)(0,2)(32,0); lane (0,4)(0,8)(1,0)(2,0)(4,0); warp (8,0)(16,0); block (0,0)(64,0) -> dim0[128] "
      "dim1[16]");  // K6
  check(
      "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [1], warpsPerCTA = [4], order = [0], CTAsPerCGA = [2], "
      "CTASplitNum = [2], CTAOrder = [0]}>",
      {4}, "register; lane; warp 1 0; block 2 -> dim0[4]");  // K7
  check(
      "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [1], warpsPerCTA = [1], order = [0], CTAsPerCGA = [4], "
      "CTASplitNum = [4], CTAOrder = [0]}>",
      {2}, "register; lane; warp; block 1 0 -> dim0[2]");  // K8
  check(
      "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], order = [1, 0], "
      "CTAsPerCGA = [2, 2], CTASplitNum = [2, 2], CTAOrder = [1, 0]}>",
      {1024, 128},
      "register (0,1)(1,0)(0,32)(16,0)(32,0)(64,0)(128,0)(256,0); lane (0,2)(0,4)(0,8)(2,0)(4,0); warp (0,16)(8,0); "
      "block (0,64)(512,0) -> dim0[1024] dim1[128]");  // K9
}

TEST_F(EncodingTest, NvidiaMmaVectors) {
  check(
      kMma16x8, {32, 32},
      "register (0,1)(8,0)(0,8)(0,16)(16,0); lane (0,2)(0,4)(1,0)(2,0)(4,0); warp; block -> dim0[32] dim1[32]");  // K10
  check("#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 16, 8]}>",
        {128, 16},
        "register (0,1)(8,0)(0,8)(64,0); lane (0,2)(0,4)(1,0)(2,0)(4,0); warp (16,0)(32,0); block -> dim0[128] "
        "dim1[16]");  // K11
  const char *const wide =
      "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, 32, 16]}>";
  check(wide, {64, 32},
        "register (0,1)(8,0)(0,8)(0,16); lane (0,2)(0,4)(1,0)(2,0)(4,0); warp (16,0)(32,0)(0,0); block -> dim0[64] "
        "dim1[32]");  // K12
  check(wide, {64, 64},
        "register (0,1)(8,0)(0,8)(0,16); lane (0,2)(0,4)(1,0)(2,0)(4,0); warp (16,0)(32,0)(0,32); block -> dim0[64] "
        "dim1[64]");  // K12
  check(
      "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [16, 1, 1], CTAsPerCGA = [4, 2, 2], "
      "CTASplitNum = [4, 2, 1], CTAOrder = [2, 1, 0], instrShape = [1, 16, 8]}>",
      {64, 128, 128},
      "register (0,0,1)(0,8,0)(0,0,8)(0,0,16)(0,0,32)(0,0,64)(0,16,0)(0,32,0); lane "
      "(0,0,2)(0,0,4)(0,1,0)(0,2,0)(0,4,0); warp (1,0,0)(2,0,0)(4,0,0)(8,0,0); block "
      "(0,0,0)(0,64,0)(16,0,0)(32,0,0) -> dim0[64] dim1[128] dim2[128]");  // K13
}

TEST_F(EncodingTest, DotOperandVectors) {
  const std::string a = operand_of(kMma16x8, 0, 8);
  check(
      a, {16, 64},
      "register (0,1)(0,2)(0,4)(8,0)(0,32); lane (0,8)(0,16)(1,0)(2,0)(4,0); warp; block -> dim0[16] dim1[64]");  // K14
  check(operand_of(kMma16x8, 1, 8), {64, 8},
        "register (1,0)(2,0)(4,0)(32,0); lane (8,0)(16,0)(0,1)(0,2)(0,4); warp; block -> dim0[64] dim1[8]");  // K15
  check(
      "#ttg.dot_op<{opIdx = 0, parent = #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [8, 4], "
      "warpsPerCTA = [2, 4], order = [1, 0]}>}>",
      {32, 16},
      "register (0,1)(0,2)(0,4)(0,8)(1,0); lane (0,0)(0,0)(2,0)(4,0)(8,0); warp (0,0)(0,0)(16,0); block -> dim0[32] "
      "dim1[16]");  // K16
  check("#ttg.slice<{dim = 1, parent = " + a + "}>", {16},
        "register 8; lane 0 0 1 2 4; warp; block -> dim0[16]");  // K17
  check(
      "#ttg.slice<{dim = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], "
      "instrShape = [16, 8]}>}>",
      {16}, "register 1; lane 2 4 0 0 0; warp 8 0; block -> dim0[16]");  // K18
}

TEST_F(EncodingTest, MfmaVectors) {
  check(kMfma32, {32, 32},
        "register (1,0)(2,0)(8,0)(16,0); lane (0,1)(0,2)(0,4)(0,8)(0,16)(4,0); warp (0,0)(0,0)(0,0); block -> "
        "dim0[32] dim1[32]");  // K19
  check(kMfma16, {16, 16},
        "register (1,0)(2,0); lane (0,1)(0,2)(0,4)(0,8)(4,0)(8,0); warp (0,0)(0,0)(0,0); block -> dim0[16] "
        "dim1[16]");  // K20
  check(
      "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 4], instrShape = [16, 16, 4], isTransposed = false, "
      "elementBitWidth = 64}>",
      {16, 16},
      "register (4,0)(8,0); lane (0,1)(0,2)(0,4)(0,8)(1,0)(2,0); warp (0,0)(0,0)(0,0); block -> dim0[16] "
      "dim1[16]");  // K21
  check(operand_of(kMfma32, 0, 4), {128, 128},
        "register (0,1)(0,2)(0,8)(0,16)(0,32)(0,64)(64,0); lane (1,0)(2,0)(4,0)(8,0)(16,0)(0,4); warp "
        "(0,0)(0,0)(32,0); block -> dim0[128] dim1[128]");  // K22
  check(operand_of(kMfma16, 1, 4), {128, 128},
        "register (1,0)(2,0)(16,0)(32,0)(64,0)(0,64); lane (0,1)(0,2)(0,4)(0,8)(4,0)(8,0); warp (0,16)(0,32)(0,0); "
        "block -> dim0[128] dim1[128]");  // K23
}

TEST_F(EncodingTest, WmmaVectors) {
  const auto wmma = [](int version, const char *shape) {
    return "#ttg.amd_wmma<{version = " + std::to_string(version) +
           ", isTranspose = false, ctaLayout = {warp = [[0, 1], [0, 2], [1, 0]]}, instrShape = " + shape + "}>";
  };
  check(wmma(1, "[16, 16, 16]"), {16, 16},
        "register (2,0)(4,0)(8,0); lane (0,1)(0,2)(0,4)(0,8)(1,0); warp (0,0)(0,0)(0,0); block -> dim0[16] "
        "dim1[16]");  // K24
  check(wmma(2, "[16, 16, 16]"), {16, 16},
        "register (1,0)(2,0)(4,0); lane (0,1)(0,2)(0,4)(0,8)(8,0); warp (0,0)(0,0)(0,0); block -> dim0[16] "
        "dim1[16]");  // K25
  check(operand_of(wmma(1, "[16, 16, 16]").c_str(), 0, 16), {16, 16},
        "register (0,1)(0,2)(0,4)(0,8); lane (1,0)(2,0)(4,0)(8,0)(0,0); warp (0,0)(0,0)(0,0); block -> dim0[16] "
        "dim1[16]");  // K26
  check(operand_of(wmma(3, "[16, 16, 32]").c_str(), 0, 8), {16, 32},
        "register (0,1)(0,2)(0,4)(0,16); lane (1,0)(2,0)(4,0)(8,0)(0,8); warp (0,0)(0,0)(0,0); block -> dim0[16] "
        "dim1[32]");  // K27
}

TEST_F(EncodingTest, SharedMemoryVectors) {
  const auto nvmma = [](int bytes, int bits, const char *more = "") {
    return "#ttg.nvmma_shared<{swizzlingByteWidth = " + std::to_string(bytes) +
           ", transposed = false, elementBitWidth = " + std::to_string(bits) + more + "}>";
  };
  check("#ttg.swizzled_shared<{vec = 2, perPhase = 2, maxPhase = 4, order = [1, 0]}>", {32, 32},
        "offset (0,1)(0,2)(0,4)(0,8)(0,16)(1,0)(2,2)(4,4)(8,0)(16,0); block -> dim0[32] dim1[32]");        // K28
  check(nvmma(32, 16), {8, 16}, "offset (0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8); block -> dim0[8] dim1[16]");  // K29
  check(nvmma(64, 16), {8, 32},
        "offset (0,1)(0,2)(0,4)(0,8)(0,16)(1,0)(2,8)(4,16); block -> dim0[8] dim1[32]");  // K30
  check(nvmma(128, 16), {8, 64},
        "offset (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32); block -> dim0[8] dim1[64]");  // K31
  check(nvmma(128, 32), {8, 64},
        "offset (0,1)(0,2)(0,4)(0,8)(0,16)(1,4)(2,8)(4,16)(0,32); block -> dim0[8] dim1[64]");  // K32
  check("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>", {128, 128},
        "offset (1,0)(2,0)(4,0)(8,0)(16,0)(4,1)(8,2)(16,4)(0,8)(0,16)(0,32)(0,64)(32,0)(64,0); block -> dim0[128] "
        "dim1[128]");  // K33
  check(nvmma(64, 32), {32, 4, 64},
        "offset (0,0,1)(0,0,2)(0,0,4)(0,0,8)(0,1,0)(0,2,4)(1,0,8)(2,0,0)(4,0,0)(8,0,0)(16,0,0)(0,0,16)(0,0,32); block "
        "-> dim0[32] dim1[4] dim2[64]");  // K34
  check(nvmma(128, 8, ", fp4Padded = true"), {32, 64},
        "offset (0,1)(0,2)(0,4)(0,0)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32)(8,0)(16,0); block -> dim0[32] dim1[64]");  // K35
  check("#ttg.amd_rotating_shared<{vec = 4, perPhase = 2, maxPhase = 4, order = [1, 0]}>", {64, 64},
        "offset (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,0)(2,4)(4,8)(8,4)(16,8)(32,0); block -> dim0[64] dim1[64]");  // K36
}

TEST_F(EncodingTest, TensorMemoryVectors) {
  const char *const half = "#ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>";
  const std::string columns = "; col (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)";
  check(half, {128, 64},
        "row (1,0)(2,0)(4,0)(8,0)(64,0)(16,0)(32,0)" + columns + "; block -> dim0[128] dim1[64]");  // K37
  check(half, {64, 64}, "row (1,0)(2,0)(4,0)(8,0)(0,0)(16,0)(32,0)" + columns + "; block -> dim0[64] dim1[64]");
  check(half, {64, 256},
        "row (1,0)(2,0)(4,0)(8,0)(0,64)(16,0)(32,0)" + columns + "(0,128); block -> dim0[64] dim1[256]");
  check(half, {256, 128},
        "row (1,0)(2,0)(4,0)(8,0)(64,0)(16,0)(32,0)" + columns + "(128,0)(0,64); block -> dim0[256] dim1[128]");
  check("#ttng.tensor_memory_scales_encoding<blockRepOrder = kThenMn>", {256, 8},
        "row (1,0)(2,0)(4,0)(8,0)(16,0)(0,0)(0,0); col (0,1)(0,2)(32,0)(64,0)(0,4)(128,0); block -> dim0[256] "
        "dim1[8]");  // K38
  check(
      "#sonde.scale_shared<>", {256, 16},
      "offset (0,1)(0,2)(32,0)(64,0)(1,0)(2,0)(4,0)(8,0)(16,0)(0,4)(0,8)(128,0); block -> dim0[256] dim1[16]");  // K39
  check(
      "#sonde.scale_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = "
      "[4, 1, 1], instrShape = [1, 16, 8]}>}>",
      {4, 128, 2},
      "register (0,0,1)(0,16,0)(0,32,0)(0,64,0); lane (0,8,0)(0,0,0)(0,1,0)(0,2,0)(0,4,0); warp (1,0,0)(2,0,0); "
      "block -> dim0[4] dim1[128] dim2[2]");  // K40
}

}  // namespace
}  // namespace sonde::layout::test
