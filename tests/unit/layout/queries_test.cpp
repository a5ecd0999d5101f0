// Questions and actions, on published vectors.
#include "layout/queries.h"

#include "layout/actions.h"
#include "layout/shapes.h"
#include "support.h"

namespace sonde::layout::test {
namespace {

class Queries : public LayoutTest {
 protected:
  static std::vector<DimName> names(std::initializer_list<const char *> texts) {
    std::vector<DimName> result;
    for (const char *const text : texts) result.push_back(d(text));
    return result;
  }
};

TEST_F(Queries, ConsecutiveElements) {
  EXPECT_EQ(consecutive_in_out(*identity(1, "in", "out")), 1u);
  EXPECT_EQ(consecutive_in_out(*identity(4, "in", "out")), 4u);
  EXPECT_EQ(consecutive_in_out(*times(identity(4, "in1", "out"), identity(8, "in2", "out"))), 4u);
  EXPECT_EQ(consecutive_in_out(*times(zeros(4, "in", "out"), identity(4, "in", "out"))), 1u);
  EXPECT_EQ(consecutive_in_out(*L("in 1 2 4 9 -> out[16]")), 1u);
  EXPECT_EQ(consecutive_in_out(*L("in 1 2 4 10 -> out[16]")), 2u);
  EXPECT_EQ(consecutive_in_out(*L("in 1 4 2 -> out")), 2u);
  EXPECT_EQ(consecutive_in_out(*L("in 1 2 4; in2 8 18 -> out[32]")), 2u);
}

TEST_F(Queries, ContiguousAlongAnOutDim) {
  EXPECT_EQ(contiguous_along(*identity(8, "in", "out"), d("out")), 8u);
  EXPECT_EQ(contiguous_along(*L("in 3 -> out[4]"), d("out")), 1u);
  EXPECT_EQ(contiguous_along(*L("lhs 3; rhs 1 -> out[4]"), d("out")), 4u);
  EXPECT_EQ(contiguous_along(*L("in 1 4 -> out[8]"), d("out")), 2u);
  EXPECT_EQ(contiguous_along(*L("in 1 4; free 2 -> out[8]"), d("out")), 8u);
}

TEST_F(Queries, FreeVariables) {
  using Masks = std::vector<uint64_t>;
  EXPECT_EQ(free_variable_masks(*identity(4, "in", "out")), Masks{0});
  EXPECT_EQ(free_variable_masks(*zeros(16, "in", "out")), Masks{0b1111});
  const Layout *const mixed = times(times(identity(2, "in", "out"), zeros(4, "in", "out")),
                                    times(identity(4, "in", "out"), zeros(2, "in", "out")));
  EXPECT_EQ(free_variable_masks(*mixed), Masks{0b100110});
  EXPECT_EQ(free_variable_masks(*L("in1 (1,1)(2,2)(0,0); in2 (1,0)(0,1)(2,0) -> out1[4] out2[4]")),
            (Masks{0b100, 0b010}));
}

TEST_F(Queries, Quotients) {
  const Layout *const layout = L("d1 (1,0); d2 (0,0) -> d1[2] d2[1]");
  const Layout *const rest = quotient(arena_, *layout, names({"d1"}));
  expect(rest, "d2 0 -> d2");
  expect_none(quotient(arena_, *rest, names({"d2"})), Fault::kNoSolution);
  const Layout *const three = L("d1 (1,0,2)(2,0,1); d2 (0,1,0)(0,2,0)(0,4,0); d3 (0,0,1)(0,0,2) -> d1 d2 d3");
  expect(quotient(arena_, *three, names({"d2"})), "d1 (1,2)(2,1); d3 (0,1)(0,2) -> d1 d3");
  expect_none(
      quotient(arena_, *L("d1 (1,0,2)(2,0,1); d2 (0,1,0)(0,2,0)(0,4,0); d3 (0,1,1)(0,0,2) -> d1 d2 d3"), names({"d2"})),
      Fault::kNoSolution);
  const Layout *const several = times(times(identity(8, "a", "a"), identity(2, "b", "b")), identity(4, "c", "c"));
  EXPECT_EQ(text_of(quotient(arena_, *several, names({"a", "c"}))), text_of(identity(2, "b", "b")));
}

TEST_F(Queries, SquareIdentity) {
  const Layout *const layout = L("in1 (1,1)(2,2)(4,4); in2 (2,1)(1,2) -> in1[8] in2[8]");
  EXPECT_TRUE(square_is_identity(*layout, names({"in1"})));
  EXPECT_FALSE(square_is_identity(*layout, names({"in2"})));
  EXPECT_FALSE(is_trivial_over(*layout, names({"in1"})));
  EXPECT_FALSE(is_identity_on_out(*layout, d("in1")));
  // block feeds offset too, yet out dim block depends on it alone.
  const Layout *const feeds = L("lane (1,0); block (2,1) -> offset block");
  EXPECT_TRUE(is_identity_on_out(*feeds, d("block")));
  EXPECT_FALSE(is_trivial_over(*feeds, names({"block"})));
}

TEST_F(Queries, Masks) {
  const Layout *const layout = L("x (1,8)(2,16); y (4,1); broadcast (0,0) -> out0[8] out1[32]");
  EXPECT_EQ(output_basis_mask(*layout, names({"x"}), d("out0")), 0b0011u);
  EXPECT_EQ(output_basis_mask(*layout, names({"x", "y"}), d("out0")), 0b0111u);
  EXPECT_EQ(output_basis_mask(*layout, names({"x", "broadcast"}), d("out1")), 0b11000u);
  EXPECT_EQ(input_basis_mask(*layout, d("x"), names({"out0"})), 0b11u);
  EXPECT_EQ(input_basis_mask(*layout, d("broadcast"), names({"out0", "out1"})), 0u);
  EXPECT_TRUE(sublayout_is_zero(*layout, names({"broadcast"}), names({"out0"})));
  EXPECT_FALSE(sublayout_is_zero(*layout, names({"y"}), names({"out1"})));
  EXPECT_TRUE(sublayout_is_zero(*layout, {}, names({"out0"})));
}

TEST_F(Queries, IdentityPrefixes) {
  const Layout *const layout = L("x 1 2 8; other 4 -> x[16]");
  const IdentityPrefix prefix = identity_prefix(arena_, *layout, d("x"), d("x"), 8);
  EXPECT_EQ(prefix.size, 4u);
  expect(prefix.quotient, "x 2; other 1 -> x[4]");
  EXPECT_EQ(identity_prefix(arena_, *layout, d("x"), d("x"), 2).size, 2u);
}

TEST_F(Queries, Kinds) {
  EXPECT_TRUE(is_permutation_with_broadcasts(*L("register (0,1)(0,0); lane (1,0) -> x y")));
  EXPECT_FALSE(is_permutation_with_broadcasts(*L("register (0,1)(0,1) -> x y")));
  EXPECT_FALSE(is_permutation_with_broadcasts(*L("register (1,1) -> x y")));
  EXPECT_TRUE(is_memory_layout(*L("offset (0,1)(1,1) -> x y")));
  EXPECT_FALSE(is_memory_layout(*L("offset (0,1)(0,0) -> x[1] y[4]")));
}

TEST_F(Queries, WhatACompilerAsksOfAnEncoding) {
  const Layout *const layout = L("register (0,1)(0,0)(2,0); lane (1,0) -> dim0[4] dim1[2]");
  using Sizes = std::vector<uint64_t>;
  EXPECT_EQ(bases_per_dim(*layout, d("register")), (Sizes{2, 2}));
  EXPECT_EQ(bases_per_dim(*layout, d("register"), false), (Sizes{2, 4}));
  const uint32_t rest[] = {0, 1};
  EXPECT_EQ(order_per_dim(*layout, d("register"), rest), (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(contiguous_per_thread(*layout), (Sizes{1, 2}));
  EXPECT_EQ(elements_per_thread(*layout), 8u);
  EXPECT_EQ(unique_elements_per_thread(*layout), 4u);
}

TEST_F(Queries, ActionsMoveBasesAndValues) {
  const ColumnAction swap({1, 0}, d("in"), 3);
  expect(swap.apply(arena_, *L("in 1 2 4 -> out")), "in 2 1 -> out[8]");
  const std::vector<int> values{1, 2, 3, 4, 5, 6, 7, 8};
  const ColumnAction turn({2, 0, 1}, d("in"), 3);
  EXPECT_EQ(turn.apply(std::span<const int>(values)), (std::vector<int>{1, 5, 2, 6, 3, 7, 4, 8}));
  const ColumnAction drop({2, 1}, d("in"), 3);
  EXPECT_EQ(drop.apply(std::span<const int>(values)), (std::vector<int>{1, 5, 3, 7}));
  EXPECT_TRUE(turn.inverse().after(turn).is_identity());
  EXPECT_FALSE(turn.is_identity());
  expect_none(swap.apply(arena_, *L("in 1 2 -> out")), Fault::kInvalid);
}

TEST_F(Queries, RegistersForADivision) {
  const Layout *const a = L("register 4 1 8 2; lane 16 -> offset");
  const auto action = registers_for_division(*a, *identity(4, "register", "offset"), true);
  ASSERT_TRUE(action.has_value());
  EXPECT_EQ(action->permutation(), (std::vector<uint32_t>{1, 3, 0, 2}));
  // A divisor larger than the layout is no match, from either side.
  EXPECT_FALSE(registers_for_division(*L("register 1 -> offset"), *identity(8, "register", "offset"), false));
  EXPECT_FALSE(registers_for_division(*L("register 1 2 4 -> offset"), *L("register 1 -> offset[16]"), false));
  const Vectorisation wide = largest_vectorisation(arena_, *a, 16);
  EXPECT_EQ(wide.elements, 8u);  // 128 bits
  EXPECT_EQ(largest_vectorisation(arena_, *a, 64).elements, 2u);
  EXPECT_EQ(largest_vectorisation(arena_, *L("register 2 1; lane 5 -> offset[8]"), 16).elements, 1u)
      << "a lane touches the lowest bit";
}

TEST_F(Queries, RegistersThatMayBeAdded) {
  const AdditiveStrides found = additive_strides(*L("register 1 2 4 0; lane 2 -> offset[8]"), 4);
  EXPECT_EQ(found.strides, 1u);
  EXPECT_EQ(found.action.permutation(), (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST_F(Queries, Repetitions) {
  expect(repetitions(arena_, *L("in (1,0)(0,1) -> out0 out1"), *L("in 1 -> out0")), "in (0,0)(0,1) -> out0[2] out1[2]");
  expect_none(repetitions(arena_, *L("in (0,1)(1,0) -> out0 out1"), *L("in 1 -> out0")), Fault::kNoSolution);
  expect_none(repetitions(arena_, *L("in (1,0)(1,1) -> out0 out1"), *L("in 1 -> out0")), Fault::kNoSolution);
}

TEST_F(Queries, BroadcastRegisters) {
  const Layout *const layout = L("register 1 0 2 -> x");
  expect(drop_broadcast_registers(*layout).apply(arena_, *layout), "register 1 2 -> x");
  EXPECT_EQ(broadcast_sources(*layout), (std::vector<uint64_t>{0, 1, 0, 1, 2, 3, 2, 3}));
}

}  // namespace
}  // namespace sonde::layout::test
