// sonde.cute/1 and sonde.layout_modular/1 as a program sees them.
#include "support.h"

namespace sonde::test {
namespace {

class CuteService : public LayoutServices {
 protected:
  const sonde_cute_t *parse(const std::string &text) {
    const sonde_cute_t *layout = nullptr;
    EXPECT_EQ(cute.parse(arena_, text.data(), text.size(), &layout), SONDE_OK) << error();
    return layout;
  }
  std::string print(const sonde_cute_t *layout) { return layout == nullptr ? "none" : text(cute.print, layout); }

  const sonde_cute_service_t &cute = service<sonde_cute_service_t>(SONDE_CUTE_SERVICE);
  const sonde_layout_modular_service_t &modular = service<sonde_layout_modular_service_t>(SONDE_LAYOUT_MODULAR_SERVICE);
};

// Vectors of CuTe's documentation and of pycute.
TEST_F(CuteService, Algebra) {
  const sonde_cute_t *out = nullptr;
  ASSERT_EQ(cute.compose(arena_, parse("(6,2):(8,2)"), "(4,3):(3,1)", &out), SONDE_OK) << error();
  EXPECT_EQ(print(out), "((2,2),3):((24,2),8)");
  ASSERT_EQ(cute.complement(arena_, parse("(2,2):(4,1)"), 24, &out), SONDE_OK) << error();
  EXPECT_EQ(print(out), "(2,3):(2,8)");
  ASSERT_EQ(cute.divide(arena_, parse("(4,2,3):(2,1,8)"), SONDE_CUTE_LOGICAL, "4:2", &out), SONDE_OK) << error();
  EXPECT_EQ(print(out), "((2,2),(2,3)):((4,1),(2,8))");
  ASSERT_EQ(cute.product(arena_, parse("(2,2):(4,1)"), SONDE_CUTE_LOGICAL, "6:1", &out), SONDE_OK) << error();
  EXPECT_EQ(print(out), "((2,2),(2,3)):((4,1),(2,8))");
  ASSERT_EQ(cute.transform(arena_, parse("(2,(1,6)):(1,(6,2))"), SONDE_CUTE_COALESCE, nullptr, &out), SONDE_OK);
  EXPECT_EQ(print(out), "12:1");
  ASSERT_EQ(cute.transform(arena_, parse("(2,4,6):(4,1,8)"), SONDE_CUTE_RIGHT_INVERSE, nullptr, &out), SONDE_OK);
  EXPECT_EQ(print(out), "(4,2,6):(2,1,8)");
}

// cutlass#2955: (3,2):(2,3) comes back there, which maps 3 to 3 where A(B(3)) is 8.
TEST_F(CuteService, WhatIsNoLayoutIsRefused) {
  const sonde_cute_t *out = nullptr;
  EXPECT_EQ(cute.compose(arena_, parse("(6,2):(1,7)"), "(3,2):(2,3)", &out), SONDE_E_NO_SOLUTION);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(cute.compose(arena_, parse("(4,6,8):(2,3,5)"), "6:3", &out), SONDE_E_NO_SOLUTION);
  EXPECT_EQ(cute.parse(arena_, "(2,3):(1", 8, &out), SONDE_E_PARSE);
  EXPECT_EQ(cute.transform(arena_, parse("2:1"), 99, nullptr, &out), SONDE_E_INVALID);
}

TEST_F(CuteService, ReadsAndSlices) {
  const sonde_cute_t *const layout = parse("((2,2),3):((24,2),8)");
  sonde_cute_info_t info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(cute.info(layout, &info), SONDE_OK);
  EXPECT_EQ(info.size, 12);
  EXPECT_EQ(info.cosize, 24 + 2 + 16 + 1);
  EXPECT_EQ(info.leaves, 3u);
  int64_t index = 0;
  ASSERT_EQ(cute.apply(layout, 5, &index), SONDE_OK);  // 5 = 1 + 0 * 2 + 1 * 4
  EXPECT_EQ(index, 24 + 8);
  EXPECT_EQ(cute.apply(layout, 12, &index), SONDE_E_RANGE);
  ASSERT_EQ(cute.coordinate_to_index(arena_, layout, "((1,0),1)", &index), SONDE_OK) << error();
  EXPECT_EQ(index, 32);
  EXPECT_EQ(text(cute.index_to_coordinate, arena_, layout, int64_t{5}), "((1,0),1)");
  const sonde_cute_t *part = nullptr;
  ASSERT_EQ(cute.slice(arena_, layout, "(_,2)", &part, &index), SONDE_OK) << error();
  EXPECT_EQ(index, 16);
}

// SM80_16x8_Row: lane and value bits over m + 16 n, as Triton's mma has them.
TEST_F(CuteService, GoesToLinearLayoutsAndBack) {
  const sonde_layout_dim_t ins[] = {{SONDE_DIM_LANE, 5, 0, 0}, {dim("value"), 2, 0, 0}};
  const sonde_layout_dim_t outs[] = {{SONDE_DIM_FIRST, 4, 0, 0}, {SONDE_DIM_FIRST + 1, 3, 0, 0}};
  const sonde_layout_t *linear = nullptr;
  ASSERT_EQ(cute.to_linear(arena_, "((4,8),(2,2)):((32,1),(16,8))", ins, 2, outs, 2, &linear), SONDE_OK) << error();
  EXPECT_EQ(json(linear),
            R"({"in": [["lane", [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]], ["value", [[0, 1], [8, 0]]]], )"
            R"("out": [["dim0", 16], ["dim1", 8]]})");
  uint32_t form = 9;
  char room[128] = {};
  uint64_t needed = 0;
  ASSERT_EQ(cute.from_linear(arena_, linear, SONDE_CUTE_FORM_STRIDES, &form, room, sizeof(room), &needed), SONDE_OK)
      << error();
  EXPECT_STREQ(room, "((4,8),(2,2)):((32,1),(16,8))");
  // 1 + 1 carries.
  EXPECT_EQ(cute.to_linear(arena_, "(2,2):(1,1)", ins + 1, 1, outs, 1, &linear), SONDE_E_NO_SOLUTION);
}

TEST_F(CuteService, SizesThatAreNoPowersOfTwo) {
  const sonde_modular_dim_t ins[] = {{SONDE_DIM_REGISTER, 0, 3}, {SONDE_DIM_LANE, 0, 32}};
  const sonde_modular_dim_t outs[] = {{SONDE_DIM_FIRST, 0, 96}};
  const uint64_t bases[] = {1, 2, 3, 6, 12, 24, 48};
  const sonde_modular_layout_t *layout = nullptr;
  ASSERT_EQ(modular.make(arena_, ins, 2, outs, 1, bases, &layout), SONDE_OK) << error();
  const uint64_t values[] = {2, 5};
  uint64_t out = 0;
  ASSERT_EQ(modular.apply(layout, values, &out), SONDE_OK);
  EXPECT_EQ(out, 17u);
  const uint64_t past[] = {3, 0};
  EXPECT_EQ(modular.apply(layout, past, &out), SONDE_E_RANGE);
  uint64_t input[2] = {};
  const uint64_t wanted = 77;
  ASSERT_EQ(modular.solve(arena_, layout, &wanted, input), SONDE_OK) << error();
  ASSERT_EQ(modular.apply(layout, input, &out), SONDE_OK);
  EXPECT_EQ(out, wanted);
  const uint64_t too_large = 96;
  EXPECT_EQ(modular.solve(arena_, layout, &too_large, input), SONDE_E_RANGE);
  // y mod 3 and y / 3 are no sums of the bits of y.
  const sonde_modular_layout_t *inverse = nullptr;
  EXPECT_EQ(modular.invert(arena_, layout, &inverse), SONDE_E_NO_SOLUTION);
  const sonde_layout_t *linear = nullptr;
  EXPECT_EQ(modular.to_linear(arena_, layout, &linear), SONDE_E_NO_SOLUTION);
}

}  // namespace
}  // namespace sonde::test
