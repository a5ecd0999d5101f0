// Gathers within a warp and permutations of K: by hand, and carried out on data.
#include "layout/gather.h"

#include <gtest/gtest.h>

#include "conversion_cases.h"

namespace sonde::layout {
namespace {

using test::distributed;
using test::Points;

constexpr DimName kAxis = standard_dim(0);

class GatherTest : public ::testing::Test {
 protected:
  // Every value of the result against the tensor, element by element.
  void expect_gathers(const GatherPlan &plan, std::mt19937_64 &random, uint64_t words = 1) {
    const Layout &source = *plan.source;
    const Layout &index = *plan.index;
    std::vector<uint64_t> data(uint64_t{1} << source.in_bits());
    for (uint64_t flat = 0; flat < data.size(); ++flat) data[flat] = source.apply(flat) + 100000;
    // An index for each element of the index's tensor, the same for all its holders.
    const uint64_t along = uint64_t{1} << source.find_out(kAxis)->bits;
    std::vector<uint64_t> wanted(uint64_t{1} << index.out_bits());
    for (uint64_t &value : wanted) value = random() % along;
    std::vector<uint64_t> indices(uint64_t{1} << index.in_bits());
    for (uint64_t flat = 0; flat < indices.size(); ++flat) indices[flat] = wanted[index.apply(flat)];
    std::vector<uint64_t> result;
    uint64_t shuffles = 0;
    ASSERT_TRUE(execute_gather(arena_, plan, data, indices, result, &shuffles)) << arena_.text();
    for (uint64_t flat = 0; flat < result.size(); ++flat) {
      const uint64_t at = index.apply(flat);
      uint64_t place = source.find_out(kAxis)->at(indices[flat]);
      for (const Dim &out : index.outs()) {
        if (out.name != kAxis) place |= source.find_out(out.name)->at(out.of(at));
      }
      ASSERT_EQ(result[flat], place + 100000) << to_string(source) << to_string(index);
    }
    ASSERT_EQ(shuffles * words, plan.shuffles);
  }

  Arena arena_;
  std::mt19937_64 random_{31};
};

TEST_F(GatherTest, TwoRegistersOfAColumnTakeTwoShufflesAndASelect) {
  // 64 elements: lanes are the low 5 bits, the register the highest. 32 indices, one a lane.
  const Layout *const source = distributed(arena_, {6}, {{32}}, {{1}, {2}, {4}, {8}, {16}});
  const Layout *const index = distributed(arena_, {5}, {}, {{1}, {2}, {4}, {8}, {16}});
  GatherPlan plan;
  ASSERT_TRUE(plan_gather(arena_, *source, *index, kAxis, 32, plan)) << arena_.text();
  EXPECT_EQ(plan.candidates, 2u);
  EXPECT_EQ(plan.shuffles, 2u);
  EXPECT_EQ(plan.selects, 1u);
  EXPECT_EQ(plan.rounds, 32u);
  // Index 37 = 0b100101: register 1, lane 5, whoever asks.
  EXPECT_EQ(plan.holder->apply(37 << 5), 1u | 5u << 1);
  EXPECT_EQ(plan.holder->apply(3 | 37 << 5), 1u | 5u << 1);
  expect_gathers(plan, random_);
}

TEST_F(GatherTest, ColumnsStayWithTheirLanes) {
  // 8 rows along the axis by 16 columns: lanes 1, 2 and the registers along the axis, lanes 4 to 16 and a warp columns.
  const Layout *const source =
      distributed(arena_, {3, 4}, {{4, 0}}, {{1, 0}, {2, 0}, {0, 1}, {0, 2}, {0, 4}}, {{0, 8}});
  const Layout *const index = distributed(arena_, {2, 4}, {}, {{1, 0}, {2, 0}, {0, 1}, {0, 2}, {0, 4}}, {{0, 8}});
  GatherPlan plan;
  ASSERT_TRUE(plan_gather(arena_, *source, *index, kAxis, 64, plan)) << arena_.text();
  EXPECT_EQ(plan.rounds, 4u);
  EXPECT_EQ(plan.shuffles, 4u);  // 2 candidates of 2 words
  expect_gathers(plan, random_, 2);
}

TEST_F(GatherTest, WarpsAlongTheAxisDoNotStayWithinAWarp) {
  const Layout *const across = distributed(arena_, {3}, {}, {{1}, {2}}, {{4}});
  const Layout *const index = distributed(arena_, {2}, {}, {{1}, {2}}, {{0}});
  GatherPlan plan;
  EXPECT_FALSE(plan_gather(arena_, *across, *index, kAxis, 32, plan));
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

TEST_F(GatherTest, ColumnsInOtherLanesDoNotStayWithinALane) {
  const Layout *const source = distributed(arena_, {1, 2}, {{1, 0}}, {{0, 1}, {0, 2}});
  const Layout *const index = distributed(arena_, {1, 2}, {{1, 0}}, {{0, 2}, {0, 1}});
  GatherPlan plan;
  EXPECT_FALSE(plan_gather(arena_, *source, *index, kAxis, 32, plan));
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

TEST_F(GatherTest, RandomGathersFindTheirElements) {
  for (uint64_t i = 0; i < test::cases() / 2; ++i) {
    arena_.reset();
    // Bits of the axis and of the columns are dealt out: columns to lanes, warps and registers alike on both sides, the
    // axis to lanes and registers.
    const uint32_t source_axis = 1 + static_cast<uint32_t>(random_() % 5);
    const uint32_t index_axis = 1 + static_cast<uint32_t>(random_() % 5);
    const uint32_t column_bits = static_cast<uint32_t>(random_() % 5);
    Points lanes_of_source;
    Points lanes_of_index;
    Points registers_of_source;
    Points registers_of_index;
    Points warps;
    uint32_t taken_source = 0;
    uint32_t taken_index = 0;
    uint32_t taken_columns = 0;
    for (uint32_t lane = 0; lane < 4; ++lane) {
      const auto along = [](uint32_t &taken, uint32_t bits) {
        return std::vector<uint64_t>{taken < bits ? uint64_t{1} << taken++ : 0, 0};
      };
      if (random_() % 2 == 0 && taken_columns < column_bits) {
        lanes_of_source.push_back({0, uint64_t{1} << taken_columns});
        lanes_of_index.push_back({0, uint64_t{1} << taken_columns++});
      } else {
        lanes_of_source.push_back(along(taken_source, source_axis));
        lanes_of_index.push_back(along(taken_index, index_axis));
      }
    }
    if (random_() % 2 == 0 && taken_columns < column_bits) warps.push_back({0, uint64_t{1} << taken_columns++});
    while (taken_source < source_axis) registers_of_source.push_back({uint64_t{1} << taken_source++, 0});
    while (taken_index < index_axis) registers_of_index.push_back({uint64_t{1} << taken_index++, 0});
    while (taken_columns < column_bits) {
      registers_of_source.push_back({0, uint64_t{1} << taken_columns});
      registers_of_index.push_back({0, uint64_t{1} << taken_columns++});
    }
    std::shuffle(registers_of_source.begin(), registers_of_source.end(), random_);
    std::shuffle(registers_of_index.begin(), registers_of_index.end(), random_);
    const Layout *const source =
        distributed(arena_, {source_axis, column_bits}, registers_of_source, lanes_of_source, warps);
    const Layout *const index =
        distributed(arena_, {index_axis, column_bits}, registers_of_index, lanes_of_index, warps);
    GatherPlan plan;
    ASSERT_TRUE(plan_gather(arena_, *source, *index, kAxis, 32, plan)) << arena_.text();
    ASSERT_NO_FATAL_FAILURE(expect_gathers(plan, random_));
  }
}

TEST_F(GatherTest, AnIndexPastTheAxisIsRefused) {
  const Layout *const layout = distributed(arena_, {2}, {{1}}, {{2}});
  GatherPlan plan;
  ASSERT_TRUE(plan_gather(arena_, *layout, *layout, kAxis, 32, plan)) << arena_.text();
  std::vector<uint64_t> result;
  const std::vector<uint64_t> data(4);
  EXPECT_FALSE(execute_gather(arena_, plan, data, std::vector<uint64_t>{0, 1, 2, 4}, result));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
}

// The operands of a 16x8 multiply with two elements a register: A over (M, K), B over (K, N), K = 16.
class DotShuffleTest : public GatherTest {
 protected:
  const Layout *left() {
    return distributed(arena_, {4, 4}, {{0, 1}, {8, 0}, {0, 8}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}});
  }
  const Layout *right() {
    return distributed(arena_, {4, 3}, {{1, 0}, {8, 0}}, {{2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}});
  }
};

TEST_F(DotShuffleTest, BringsAThreadsElementsTogether) {
  DotShuffle shuffle;
  ASSERT_TRUE(plan_dot_shuffle(arena_, {left(), standard_dim(1), 8}, {right(), standard_dim(0), 16}, 128, shuffle))
      << arena_.text();
  // K bits 1 and 8 are a thread's own: 1 -> 1, 8 -> 2, 2 -> 4, 4 -> 8.
  const auto columns = shuffle.permutation->columns();
  EXPECT_EQ(std::vector<uint64_t>(columns.begin(), columns.end()), (std::vector<uint64_t>{1, 4, 8, 2}));
  EXPECT_EQ(shuffle.narrow_before, 2u);
  EXPECT_EQ(shuffle.narrow_after, 4u);
  EXPECT_TRUE(shuffle.is_worthwhile());
  EXPECT_EQ(shuffle.wide_before, 2u);
  EXPECT_EQ(shuffle.wide_after, 4u);
  // The product's sum has the same pairs: where A's hardware index held k, B's with the same k still meets it.
  for (uint64_t a = 0; a < 256; ++a) {
    const uint64_t k = left()->outs()[1].of(left()->apply(a));
    EXPECT_EQ(shuffle.narrow->outs()[1].of(shuffle.narrow->apply(a)), shuffle.permutation->apply(k));
  }
  for (uint64_t b = 0; b < 128; ++b) {
    const uint64_t k = right()->outs()[0].of(right()->apply(b));
    EXPECT_EQ(shuffle.wide->outs()[0].of(shuffle.wide->apply(b)), shuffle.permutation->apply(k));
  }
}

TEST_F(DotShuffleTest, LeavesWhatIsContiguousAlready) {
  const Layout *const wide_rows =
      distributed(arena_, {4, 4}, {{0, 1}, {0, 2}, {8, 0}}, {{0, 4}, {0, 8}, {1, 0}, {2, 0}, {4, 0}});
  DotShuffle shuffle;
  ASSERT_TRUE(plan_dot_shuffle(arena_, {wide_rows, standard_dim(1), 8}, {right(), standard_dim(0), 16}, 128, shuffle));
  EXPECT_FALSE(shuffle.is_worthwhile());
  EXPECT_TRUE(equal(*shuffle.narrow, *wide_rows));
  EXPECT_TRUE(equal(*shuffle.wide, *right()));
}

TEST_F(DotShuffleTest, RefusesOperandsOfDifferentK) {
  DotShuffle shuffle;
  EXPECT_FALSE(plan_dot_shuffle(arena_, {left(), standard_dim(1), 8}, {right(), standard_dim(1), 16}, 128, shuffle));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
}

// Sums of products are the same with both operands permuted, whatever the layouts.
TEST_F(DotShuffleTest, KeepsEverySum) {
  for (uint64_t i = 0; i < std::min<uint64_t>(test::cases(), 20000); ++i) {
    arena_.reset();
    const uint32_t k_bits = 2 + static_cast<uint32_t>(random_() % 4);
    const auto operand = [&](bool k_first) {
      test::RandomLayout wish;
      wish.dims = k_bits + 2;
      wish.lanes = 3;
      wish.warps = 0;
      const Layout &flat = *test::random_distributed(arena_, random_, wish);
      std::vector<DimSize> ins;
      for (const Dim &in : flat.ins()) ins.push_back({in.name, in.bits});
      const std::vector<DimSize> outs = {{standard_dim(0), k_first ? k_bits : 2},
                                         {standard_dim(1), k_first ? 2 : k_bits}};
      return make_layout(arena_, ins, outs, flat.columns());
    };
    const Layout *const a = operand(false);
    const Layout *const b = operand(true);
    DotShuffle shuffle;
    ASSERT_TRUE(plan_dot_shuffle(arena_, {a, standard_dim(1), 8}, {b, standard_dim(0), 16}, 128, shuffle));
    ASSERT_TRUE(is_invertible(*shuffle.permutation));
    ASSERT_GE(shuffle.narrow_after, shuffle.narrow_before);
    // Each hardware index takes element pi(k) from memory where it took k: the sum runs over the same pairs.
    for (const auto &[before, after, dim_index] : {std::tuple{a, shuffle.narrow, 1}, std::tuple{b, shuffle.wide, 0}}) {
      const Dim &k = before->outs()[static_cast<size_t>(dim_index)];
      for (uint64_t flat = 0; flat < uint64_t{1} << before->in_bits(); ++flat) {
        ASSERT_EQ(k.of(after->apply(flat)), shuffle.permutation->apply(k.of(before->apply(flat))));
        ASSERT_EQ(after->apply(flat) & ~k.mask(), before->apply(flat) & ~k.mask());
      }
    }
  }
}

}  // namespace
}  // namespace sonde::layout
