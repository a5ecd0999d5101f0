// The line reader of the toolkit on a cubin made by nvcc, and on damaged ones; code objects from pieces.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include <sonde/toolkit/code_store.h>
#include <sonde/toolkit/cubin_lines.h>

namespace sonde::toolkit {
namespace {

std::vector<uint8_t> hot_line() {
  std::ifstream file(SONDE_TEST_SOURCE_DIR "/tests/data/cubins/hot_line.cubin", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

CubinLines lines_of(const std::vector<uint8_t> &image) {
  std::string error;
  auto lines = CubinLines::read(image, error);
  EXPECT_TRUE(lines) << error;
  return lines ? std::move(*lines) : CubinLines();
}

constexpr char kFile[] = "/tmp/cubins/hot_line.cu";

// The expected lines are those of the source file, where the functions' bodies stand.
TEST(CubinLines, AnInlinedInstructionHasTheWholeStack) {
  const CubinLines lines = lines_of(hot_line());
  const std::vector<SourceFrame> expected = {{kFile, 3, "_Z5innerfi"}, {kFile, 6, "_Z6middlefi"}, {kFile, 10, "hot"}};
  EXPECT_EQ(lines.find("hot", 0x200), expected);
  EXPECT_EQ(frame_text(expected[0]), "/tmp/cubins/hot_line.cu:3@_Z5innerfi");
}

TEST(CubinLines, TheFirstInstructionIsTheKernelsOwn) {
  const CubinLines lines = lines_of(hot_line());
  EXPECT_EQ(lines.find("hot", 0), (std::vector<SourceFrame>{{kFile, 7, "hot"}}));
  EXPECT_EQ(lines.find("_Z6secondIdEvPT_", 0x10), (std::vector<SourceFrame>{{kFile, 16, "_Z6secondIdEvPT_"}}));
}

TEST(CubinLines, AFunctionInsideItsKernelsSectionIsFoundByBothNames) {
  const CubinLines lines = lines_of(hot_line());
  const std::vector<SourceFrame> expected = {{kFile, 1, "_Z3farf"}};
  EXPECT_EQ(lines.find("$hot$_Z3farf", 0), expected);
  EXPECT_EQ(lines.find("_Z3farf", 0), expected);
  EXPECT_EQ(lines.find("hot", 0x880), expected);  // the symbol table puts it there
}

TEST(CubinLines, WhatIsNotThereHasNoLine) {
  const CubinLines lines = lines_of(hot_line());
  EXPECT_TRUE(lines.find("cold", 0).empty());
  EXPECT_TRUE(lines.find("hot", 2432).empty());  // its size in the symbol table
  EXPECT_TRUE(lines.find("_Z6secondIdEvPT_", 384).empty());
  EXPECT_TRUE(lines.find("hot", UINT64_MAX).empty());
}

TEST(CubinLines, AnotherFileIsRefusedWithTheReason) {
  std::string error;
  EXPECT_FALSE(CubinLines::read({}, error));
  EXPECT_EQ(error, "not a 64-bit little-endian ELF file");
  auto image = hot_line();
  image[18] = 62;
  EXPECT_FALSE(CubinLines::read(image, error));
  EXPECT_EQ(error, "ELF machine 62 where 190 (NVIDIA CUDA) was expected");
}

TEST(CubinLines, AnUnknownDwarfVersionIsRefusedWithThePlace) {
  auto image = hot_line();
  std::string error;
  // The version follows the length of the table, whose section begins with the length.
  const uint8_t pattern[] = {2, 0, 0x34, 0, 0, 0};  // version 2, header of 52 bytes
  const auto found = std::search(image.begin(), image.end(), std::begin(pattern), std::end(pattern));
  ASSERT_NE(found, image.end());
  *found = 5;
  EXPECT_FALSE(CubinLines::read(image, error));
  EXPECT_EQ(error, ".debug_line + 0: a line table of DWARF version 5, versions 2 to 4 are read");
}

TEST(CubinLines, EveryTruncationIsReadOrRefused) {
  const auto image = hot_line();
  for (size_t bytes = 0; bytes < image.size(); bytes += 7) {
    std::string error;
    const std::vector<uint8_t> part(image.begin(), image.begin() + static_cast<ptrdiff_t>(bytes));
    const auto lines = CubinLines::read(part, error);
    EXPECT_NE(lines.has_value(), !error.empty());
  }
}

TEST(CubinLines, DamagedBytesNeverLeadOutside) {
  const auto image = hot_line();
  std::mt19937 random(20);
  for (int i = 0; i < 3000; ++i) {
    auto damaged = image;
    for (int j = 0; j < 4; ++j) damaged[random() % damaged.size()] = static_cast<uint8_t>(random());
    std::string error;
    const auto lines = CubinLines::read(damaged, error);
    if (!lines) continue;
    for (const auto &function : lines->functions()) {
      for (uint64_t pc = 0; pc < 0x400; pc += 16) lines->find(function.name, pc);
    }
  }
}

// ---- pieces --------------------------------------------------------------------------------------------------------

struct Piece {
  sonde_object_code_t record;
  uint8_t data[16];
};

Piece piece(uint64_t hash, uint64_t bytes, uint64_t offset, uint32_t count) {
  Piece made = {};
  SONDE_RECORD_INIT(&made.record, SONDE_SPACE_OBJECT, SONDE_OBJECT_CODE, 0);
  made.record.header.size8 = sizeof(made) / 8;
  made.record.hash = hash;
  made.record.bytes = bytes;
  made.record.offset = offset;
  made.record.data = {sizeof(made.record), count};
  for (uint32_t i = 0; i < count && i < 16; ++i) made.data[i] = static_cast<uint8_t>(offset + i);
  return made;
}

bool add(CodeStore &store, const Piece &made) { return store.add(&made.record.header); }

TEST(CodeStore, PiecesInAnyOrderMakeTheWhole) {
  CodeStore store;
  EXPECT_EQ(store.missing(1), UINT64_MAX);
  EXPECT_TRUE(add(store, piece(1, 20, 16, 4)));
  EXPECT_EQ(store.missing(1), 16u);
  EXPECT_TRUE(store.find(1).empty());
  EXPECT_TRUE(add(store, piece(1, 20, 0, 16)));
  EXPECT_TRUE(add(store, piece(1, 20, 0, 16)));  // again: no harm
  const auto whole = store.find(1);
  ASSERT_EQ(whole.size(), 20u);
  for (uint8_t i = 0; i < 20; ++i) EXPECT_EQ(whole[i], i);
  EXPECT_EQ(store.hashes(), std::vector<uint64_t>{1});
}

TEST(CodeStore, PiecesThatContradictAreRefused) {
  CodeStore store;
  EXPECT_FALSE(add(store, piece(1, 20, 18, 4)));  // past the end
  EXPECT_FALSE(add(store, piece(1, 20, 0, 17)));  // more than the record holds
  EXPECT_FALSE(add(store, piece(1, 20, 0, 0)));
  EXPECT_FALSE(add(store, piece(1, UINT64_MAX, 0, 4)));
  EXPECT_TRUE(store.hashes().empty());
  ASSERT_TRUE(add(store, piece(1, 20, 4, 8)));
  EXPECT_FALSE(add(store, piece(1, 24, 12, 8)));  // another size
  EXPECT_FALSE(add(store, piece(1, 20, 0, 8)));   // overlaps
  EXPECT_FALSE(add(store, piece(1, 20, 8, 8)));
  EXPECT_EQ(store.missing(1), 12u);
}

}  // namespace
}  // namespace sonde::toolkit
