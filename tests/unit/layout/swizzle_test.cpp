// Swizzles by hand and from published examples (columns as (dim0, dim1)).
#include "layout/swizzle.h"

#include <gtest/gtest.h>

#include "conversion_cases.h"

namespace sonde::layout {
namespace {

using test::Points;

class SwizzleTest : public ::testing::Test {
 protected:
  Points points(const Swizzle &swizzle, DimName name) {
    Points result;
    const Layout &memory = *swizzle.memory;
    for (const uint64_t column : memory.columns_of(*memory.find_in(name))) {
      std::vector<uint64_t> point;
      for (const Dim &out : memory.outs()) point.push_back(out.of(column));
      result.push_back(point);
    }
    return result;
  }

  void expect(const Swizzle &swizzle, const Points &vector, const Points &bank, const Points &segment,
              const Points &reps) {
    EXPECT_EQ(points(swizzle, dim::kVector), vector);
    EXPECT_EQ(points(swizzle, dim::kBank), bank);
    EXPECT_EQ(points(swizzle, dim::kSegment), segment);
    EXPECT_EQ(points(swizzle, dim::kBlock), Points{});
    EXPECT_EQ(points(swizzle, dim::kReps), reps);
    EXPECT_EQ(swizzle.read_conflicts, 0u);
    EXPECT_EQ(swizzle.write_conflicts, 0u);
  }

  Swizzle swizzle(const Layout *source, const Layout *destination, uint32_t bits) {
    Swizzle result;
    SwizzleOptions options;
    options.bits_per_element = bits;
    EXPECT_NE(source, nullptr) << arena_.text();
    EXPECT_NE(destination, nullptr) << arena_.text();
    EXPECT_TRUE(optimal_swizzle(arena_, *source, *destination, options, result)) << arena_.text();
    return result;
  }

  Arena arena_;
};

TEST_F(SwizzleTest, TransposesBytes) {
  const Layout *const matrix =
      test::distributed(arena_, {7, 7}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 0}, {2, 0}},
                        {{0, 16}, {0, 32}, {0, 64}, {4, 0}, {8, 0}}, {{16, 0}, {32, 0}, {64, 0}});
  const Layout *const transposed =
      test::distributed(arena_, {7, 7}, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 1}, {0, 2}},
                        {{16, 0}, {32, 0}, {64, 0}, {0, 4}, {0, 8}}, {{0, 16}, {0, 32}, {0, 64}});
  expect(swizzle(matrix, transposed, 8), {{0, 1}, {0, 2}, {1, 0}, {2, 0}}, {{0, 16}, {0, 32}, {0, 64}},
         {{4, 0}, {8, 0}, {0, 4}, {0, 8}, {16, 16}, {32, 32}, {64, 64}}, {});
}

TEST_F(SwizzleTest, ServesASmallMatrixMultiply) {
  const Layout *const blocked =
      test::distributed(arena_, {4, 4}, {{0, 1}, {0, 2}, {0, 4}}, {{0, 8}, {1, 0}, {2, 0}, {4, 0}, {8, 0}});
  const Layout *const mma =
      test::distributed(arena_, {4, 4}, {{0, 1}, {8, 0}, {0, 8}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}});
  expect(swizzle(blocked, mma, 16), {{0, 1}}, {{0, 8}, {1, 0}, {2, 0}, {4, 0}, {0, 2}}, {{8, 2}, {0, 12}}, {});
}

TEST_F(SwizzleTest, HandlesElementsOfFourBits) {
  const Layout *const blocked =
      test::distributed(arena_, {4, 8}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {4, 0}, {8, 0}},
                        {{0, 32}, {0, 64}, {0, 128}, {1, 0}, {2, 0}});
  const Layout *const mma =
      test::distributed(arena_, {4, 8}, {{0, 1}, {0, 2}, {0, 4}, {8, 0}, {0, 32}, {0, 64}, {0, 128}},
                        {{0, 8}, {0, 16}, {1, 0}, {2, 0}, {4, 0}});
  expect(swizzle(blocked, mma, 4), {{0, 1}, {0, 2}, {0, 4}, {8, 0}}, {{0, 32}, {0, 64}, {0, 128}, {1, 0}},
         {{4, 0}, {2, 32}, {0, 72}, {0, 144}}, {});
}

TEST_F(SwizzleTest, TransposesFloats) {
  const Layout *const matrix =
      test::distributed(arena_, {5, 4}, {{4, 0}, {8, 0}, {16, 0}}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {1, 0}}, {{2, 0}});
  const Layout *const transposed =
      test::distributed(arena_, {5, 4}, {{0, 2}, {0, 4}, {0, 8}}, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}}, {{0, 1}});
  expect(swizzle(matrix, transposed, 32), {}, {{0, 2}, {0, 4}, {0, 8}, {1, 0}, {0, 1}},
         {{2, 1}, {4, 2}, {8, 4}, {16, 8}}, {});
}

TEST_F(SwizzleTest, FillsABankFromTheWarpsOfTheOtherSide) {
  const Layout *const matrix =
      test::distributed(arena_, {7, 7}, {{1, 0}, {2, 0}, {4, 0}, {0, 32}, {0, 64}},
                        {{8, 0}, {16, 0}, {32, 0}, {64, 0}, {0, 1}}, {{0, 2}, {0, 4}, {0, 8}, {0, 16}});
  const Layout *const transposed =
      test::distributed(arena_, {7, 7}, {{0, 1}, {0, 2}, {0, 4}, {32, 0}, {64, 0}},
                        {{0, 8}, {0, 16}, {0, 32}, {0, 64}, {1, 0}}, {{2, 0}, {4, 0}, {8, 0}, {16, 0}});
  expect(swizzle(matrix, transposed, 16), {{2, 0}}, {{0, 32}, {0, 64}, {8, 0}, {0, 8}, {0, 16}},
         {{4, 0}, {0, 2}, {0, 4}, {9, 0}, {16, 8}, {32, 16}, {64, 32}, {0, 65}}, {});
}

TEST_F(SwizzleTest, TurnsAMatrixMultiplyIntoRows) {
  expect(swizzle(test::mma_128(arena_), test::blocked_128(arena_), 16), {{0, 1}, {0, 64}, {64, 0}},
         {{0, 8}, {0, 16}, {0, 32}}, {{2, 0}, {4, 0}, {8, 0}, {16, 0}, {32, 0}, {1, 8}, {0, 18}, {0, 36}}, {});
}

TEST_F(SwizzleTest, PassesWhatBothSidesRepeatThroughTheSameMemory) {
  expect(swizzle(test::mma_128(arena_), test::blocked_128(arena_), 32), {{0, 1}, {0, 64}}, {{0, 8}, {0, 16}, {0, 32}},
         {{2, 0}, {4, 0}, {8, 0}, {16, 0}, {32, 0}, {1, 8}, {0, 18}, {0, 36}}, {{64, 0}});
}

TEST_F(SwizzleTest, ChoosesMatrixInstructions) {
  const std::vector<AccessTile> tiles = {kVectorTile, kMatrixTile, kTransposedMatrixTile};
  Swizzle result;
  SwizzleOptions options;
  options.bits_per_element = 16;
  ASSERT_TRUE(
      optimal_swizzle_for(arena_, *test::mma_128(arena_), *test::blocked_128(arena_), options, tiles, tiles, result))
      << arena_.text();
  EXPECT_EQ(result.source_tile, 0);       // st.shared.v4
  EXPECT_EQ(result.destination_tile, 1);  // ldmatrix
  expect(result, {{0, 1}, {0, 8}, {0, 16}}, {{1, 0}, {0, 2}, {0, 32}},
         {{4, 0}, {8, 0}, {16, 0}, {32, 0}, {2, 2}, {0, 36}}, {{64, 0}, {0, 64}});
}

TEST_F(SwizzleTest, TakesPlainAccessesWhereNoTileFits) {
  // No common registers and no lanes of one side among the registers of the other: no 128 bits are contiguous in both.
  const Layout *const a = test::distributed(arena_, {6}, {{1}}, {{2}, {4}, {8}, {16}, {32}});
  const Layout *const b = test::distributed(arena_, {6}, {{32}}, {{1}, {2}, {4}, {8}, {16}});
  const std::vector<AccessTile> tiles = {kVectorTile, kMatrixTile};
  Swizzle chosen;
  SwizzleOptions options;
  options.bits_per_element = 32;
  ASSERT_TRUE(optimal_swizzle_for(arena_, *a, *b, options, tiles, tiles, chosen)) << arena_.text();
  EXPECT_EQ(chosen.source_tile, -1);
  EXPECT_EQ(chosen.destination_tile, -1);
  EXPECT_TRUE(equal(*chosen.memory, *swizzle(a, b, 32).memory));
}

// With 32 lanes and 32 banks, and vectors of at least a bank, a segment never has to come from a wavefront's lanes.
TEST_F(SwizzleTest, NeedsNoConflictsWhenAVectorFillsABank) {
  std::mt19937_64 random(11);
  for (uint64_t i = 0; i < test::cases(); ++i) {
    arena_.reset();
    test::RandomLayout wish;
    wish.dims = 8 + static_cast<uint32_t>(random() % 7);
    wish.warps = static_cast<uint32_t>(random() % 3);
    const Layout *const source = test::random_distributed(arena_, random, wish);
    const Layout *const destination = test::random_distributed(arena_, random, wish);
    const Swizzle result = swizzle(source, destination, 32u << random() % 3);
    ASSERT_EQ(result.read_conflicts, 0u) << to_string(*source) << to_string(*destination);
    ASSERT_EQ(result.write_conflicts, 0u) << to_string(*source) << to_string(*destination);
    ASSERT_TRUE(is_invertible(*result.memory));
  }
}

TEST_F(SwizzleTest, ServesSixtyFourLanesAndBanks) {
  // As published for 64 banks: 64x128 of 16 bits, from 8-wide rows to the output of a 32x32 matrix multiply.
  const Layout *const blocked =
      test::distributed(arena_, {6, 7}, {{1, 0}, {2, 0}, {0, 1}, {0, 2}, {0, 4}},
                        {{0, 8}, {0, 16}, {0, 32}, {0, 64}, {4, 0}, {8, 0}}, {{16, 0}, {32, 0}});
  const Layout *const mma =
      test::distributed(arena_, {6, 7}, {{1, 0}, {2, 0}, {8, 0}, {16, 0}, {32, 0}, {0, 32}, {0, 64}},
                        {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {4, 0}}, {{0, 0}, {0, 0}});
  Swizzle result;
  SwizzleOptions options;
  options.bits_per_element = 16;
  options.banks = 64;
  ASSERT_TRUE(optimal_swizzle(arena_, *blocked, *mma, options, result)) << arena_.text();
  EXPECT_EQ(result.read_conflicts, 0u);
  EXPECT_EQ(result.write_conflicts, 0u);
  EXPECT_EQ(points(result, dim::kVector), (Points{{1, 0}, {2, 0}}));
  // 64 banks of 32 bits are 32 vectors of 64 bits.
  EXPECT_EQ(points(result, dim::kBank).size(), 5u);
}

TEST_F(SwizzleTest, RefusesZeroRegistersAndOtherTensors) {
  const Layout *const with_zero = test::distributed(arena_, {3}, {{1}, {0}}, {{2}, {4}});
  const Layout *const good = test::distributed(arena_, {3}, {{1}}, {{2}, {4}});
  const Layout *const larger = test::distributed(arena_, {4}, {{1}, {8}}, {{2}, {4}});
  Swizzle result;
  SwizzleOptions options;
  EXPECT_FALSE(optimal_swizzle(arena_, *with_zero, *good, options, result));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  EXPECT_FALSE(optimal_swizzle(arena_, *good, *larger, options, result));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  options.bits_per_element = 24;
  EXPECT_FALSE(optimal_swizzle(arena_, *good, *good, options, result));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
}

}  // namespace
}  // namespace sonde::layout
