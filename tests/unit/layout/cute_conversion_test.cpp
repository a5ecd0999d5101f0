// CuTe layouts as linear layouts and back: published pairs, and the exactness of every conversion on random layouts.
#include "layout/cute_convert.h"

#include "support.h"

namespace sonde::layout::test {
namespace {

class CuteConversions : public LayoutTest {
 protected:
  const CuteLayout &read(std::string_view text) {
    const CuteLayout *const layout = parse_cute(arena_, text);
    EXPECT_NE(layout, nullptr) << text << ": " << arena_.text();
    return *layout;
  }
  const CuteComposed &read_composed(std::string_view text) {
    const CuteComposed *const composed = parse_cute_composed(arena_, text);
    EXPECT_NE(composed, nullptr) << text << ": " << arena_.text();
    return *composed;
  }
  // Through one in dim and one out dim.
  const Layout *linear(std::string_view text) {
    const CuteComposed &composed = read_composed(text);
    const CuteLayout &flat = *coalesce(arena_, composed.layout());
    const CuteLayout &one = *make_cute_modes(arena_, std::vector{&flat});
    const CuteComposed simple(composed.swizzle(), composed.offset(), one);
    return linear_from_cute(arena_, simple, std::vector{intern_dim("in")}, intern_dim("out"));
  }
  std::string cute(const Layout *layout, CuteForm most = CuteForm::kXorStrides) {
    CuteConversion result;
    if (!cute_from_linear(arena_, *layout, most, result)) {
      return arena_.fault() == Fault::kNoSolution ? "none" : "fault: " + arena_.text();
    }
    switch (result.form) {
      case CuteForm::kStrides:
        return result.composed->offset() == 0
                   ? to_string(result.composed->layout())
                   : std::to_string(result.composed->offset()) + " o " + to_string(result.composed->layout());
      case CuteForm::kSwizzled:
        return to_string(*result.composed);
      default:
        return "xor " + to_string(*result.strides);
    }
  }
};

TEST_F(CuteConversions, StridesWithoutCarriesAreLinear) {
  expect(linear("4:5"), "in 5 10 -> out");  // no power of two, yet 5 and 10 share no bit
  expect(linear("((2,2),(2,2)):((1,2),(0,4))"), "in 1 2 0 4 -> out");
  EXPECT_EQ(linear("(2,2):(1,1)"), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
  EXPECT_EQ(linear("4:3"), nullptr);  // 3 + 6 = 9, 3 ^ 6 = 5
  EXPECT_EQ(linear("(2,3):(1,2)"), nullptr);
  EXPECT_NE(arena_.text().find("no power of two"), std::string::npos) << arena_.text();
}

TEST_F(CuteConversions, OffsetsMakeAffineLayouts) {
  const Layout *const shifted = linear("Sw<0,0,0> o 8 o 8:1");
  ASSERT_NE(shifted, nullptr) << arena_.text();
  EXPECT_EQ(shifted->offset(), 8u);
  // 4, 8: an offset within a column that flips more bits.
  const Layout *const carried = linear("4 o 2:4");
  ASSERT_NE(carried, nullptr) << arena_.text();
  EXPECT_EQ(carried->offset(), 4u);
  EXPECT_EQ(carried->columns()[0], 12u);
  EXPECT_EQ(linear("4 o 4:4"), nullptr);  // 4, 8, 12, 16: 4 ^ 8 ^ 12 ^ 16 is not 0
  // Reversal: 7 - x = 7 ^ x.
  const Layout *const reversed = linear("7 o 8:-1");
  ASSERT_NE(reversed, nullptr) << arena_.text();
  EXPECT_EQ(reversed->offset(), 7u);
  EXPECT_EQ(cute(reversed), "7 o 8:-1");
  EXPECT_EQ(linear("6 o 4:-1"), nullptr);  // 6, 5, 4, 3
}

TEST_F(CuteConversions, SwizzlesAreLinear) {
  const Layout *const swizzle = linear_from_cute(arena_, CuteSwizzle{3, 4, 3}, 10, intern_dim("in"), intern_dim("out"));
  expect(swizzle, "in 1 2 4 8 16 32 64 144 288 576 -> out");
  EXPECT_EQ(cute(swizzle), "Sw<3,4,3> o 0 o 1024:1");
  EXPECT_EQ(cute(swizzle, CuteForm::kStrides), "none");
  const Layout *const down = linear_from_cute(arena_, CuteSwizzle{1, 0, -2}, 3, intern_dim("in"), intern_dim("out"));
  expect(down, "in 5 2 4 -> out");
  EXPECT_EQ(linear_from_cute(arena_, CuteSwizzle{3, 4, 3}, 9, intern_dim("in"), intern_dim("out")), nullptr);
}

// Shared memory of warp-group instructions: element (row, column) of 8 rows of S bytes lies at byte
// S row + 16 (chunk ^ row / (128 / S)) + ..., chunks of 16 bytes; CuTe has the same as a swizzle of byte addresses.
TEST_F(CuteConversions, SwizzledSharedMemoryIsCuTesSwizzle) {
  for (const uint32_t width : {8u, 16u, 32u}) {
    const uint32_t bytes = width / 8;
    for (const uint32_t swizzle : {32u, 64u, 128u}) {
      const uint32_t columns = swizzle / bytes;
      const uint32_t vector = 128 / width;
      std::vector<uint64_t> rows;  // offset -> (column, row)
      for (uint32_t c = 1; c < columns; c *= 2) rows.insert(rows.end(), {c, 0});
      for (uint32_t r = 1; r < 8; r *= 2) {
        rows.insert(rows.end(), {vector * ((r / (128 / swizzle)) % (swizzle / 16)), r});
      }
      const uint32_t bits = log2_floor(columns);
      const std::vector<DimSize> tensor{{intern_dim("column"), bits}, {intern_dim("row"), 3}};
      const std::vector<DimSize> offset{{intern_dim("offset"), bits + 3}};
      const Layout *const memory = make_from_bases(arena_, offset, tensor, rows);
      const Layout *const address = invert(arena_, *memory);
      ASSERT_NE(address, nullptr) << arena_.text();
      std::vector<uint64_t> in_bytes;
      for (const uint64_t column : address->columns()) in_bytes.push_back(column * bytes);
      const std::vector<DimSize> wide{{intern_dim("address"), bits + 3 + log2_floor(bytes)}};
      const uint32_t moved = log2_floor(swizzle / 16);
      EXPECT_EQ(cute(make_layout(arena_, tensor, wide, in_bytes)),
                "Sw<" + std::to_string(moved) + ",4,3> o 0 o (" + std::to_string(columns) + ",8):(" +
                    std::to_string(bytes) + "," + std::to_string(swizzle) + ")");
    }
  }
  // 128 bytes, 16-bit elements, as published: the bases of the offset over (row, column).
  const Layout *const published =
      parse(arena_, "offset (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(1,8)(2,16)(4,32) -> row column");
  EXPECT_EQ(cute(invert(arena_, *published)), "Sw<3,3,3> o 0 o (8,64):(64,1)");  // in elements of two bytes
}

TEST_F(CuteConversions, MatrixTilesAreCuTesThreadValueLayouts) {
  // Triton's 16x8 accumulator tile is CuTe's SM80_16x8_Row, element (m, n) at m + 16 n.
  const Layout *const tile = parse(arena_, "lane (0,2)(0,4)(1,0)(2,0)(4,0); register (0,1)(8,0) -> dim0 dim1");
  EXPECT_EQ(cute(tile), "((4,8),(2,2)):((32,1),(16,8))");
  const std::vector<DimSize> ins{{intern_dim("lane"), 5}, {intern_dim("register"), 2}};
  const std::vector<DimSize> outs{{intern_dim("dim0"), 4}, {intern_dim("dim1"), 3}};
  const Layout *const back = linear_from_cute(arena_, read("((4,8),(2,2)):((32,1),(16,8))"), ins, outs);
  ASSERT_NE(back, nullptr) << arena_.text();
  EXPECT_TRUE(equal(*back, *tile));
}

TEST_F(CuteConversions, OperandTilesAreCuTesThreadValueLayouts) {
  // SM80_16x8x16 with 16-bit operands: A as (m, k) at m + 16 k, B as (n, k) at n + 8 k. A thread holds pairs along k; four
  // threads hold a row's 8, eight threads rows; A goes on 8 rows down, and both 8 along k.
  const Layout *const a = parse(arena_, "lane (0,2)(0,4)(1,0)(2,0)(4,0); register (0,1)(8,0)(0,8) -> m k");
  EXPECT_EQ(cute(a), "((4,8),(2,2,2)):((32,1),(16,8,128))");
  const Layout *const b = parse(arena_, "lane (0,2)(0,4)(1,0)(2,0)(4,0); register (0,1)(0,8) -> n k");
  EXPECT_EQ(cute(b), "((4,8),(2,2)):((16,1),(8,64))");
}

TEST_F(CuteConversions, WhatNoSwizzleMakesHasXorStrides) {
  // 1, 3, 2: three columns in two bits share them whatever is swizzled.
  EXPECT_EQ(cute(parse(arena_, "in 1 3 2 -> out"), CuteForm::kSwizzled), "none");
  EXPECT_EQ(cute(parse(arena_, "in 1 3 2 -> out")), "xor (2,2,2):(1,3,2)");
  // The paper's example: (4,4):(f1,f5) is ((2,2),(2,2)):((f1,f2),(f5,f10)).
  EXPECT_EQ(apply_xor_strides(read("(4,4):(1,5)"), 3 + 4 * 2), 3 ^ 10);
  const std::vector<DimSize> ins{{intern_dim("in"), 4}};
  const std::vector<DimSize> outs{{intern_dim("out"), 4}};
  expect(linear_from_xor_strides(arena_, read("(4,4):(1,5)"), 0, ins, outs), "in 1 2 5 10 -> out");
  EXPECT_EQ(linear_from_xor_strides(arena_, read("(3,4):(1,5)"), 0, ins, outs), nullptr);
}

TEST_F(CuteConversions, PaddedMemoryHasIntegerStrides) {
  const Padding rows[] = {{32, 4}};
  EXPECT_EQ(to_string(*cute_from_padding(arena_, 8, rows)), "(32,8):(1,36)");
  const Padding both[] = {{32, 4}, {128, 8}};  // after 128 elements, 4 * 4 + 8 = 24 pads
  const CuteLayout &padded = *cute_from_padding(arena_, 9, both);
  EXPECT_EQ(to_string(padded), "(32,4,4):(1,36,152)");
  for (int64_t o = 0; o < 512; ++o) ASSERT_EQ(padded.apply(o), o + o / 32 * 4 + o / 128 * 8);
  const Padding wrong[] = {{32, 4}, {32, 8}};
  EXPECT_EQ(cute_from_padding(arena_, 9, wrong), nullptr);
}

TEST_F(CuteConversions, RefusesSizesThatDoNotFit) {
  const std::vector<DimSize> ins{{intern_dim("in"), 3}};
  const std::vector<DimSize> outs{{intern_dim("out"), 2}};
  EXPECT_EQ(linear_from_cute(arena_, read("4:1"), ins, outs), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  EXPECT_EQ(linear_from_cute(arena_, read("8:1"), ins, outs), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  EXPECT_EQ(linear_from_cute(arena_, read("8:-1"), ins, outs), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

// --- Laws ---

TEST_F(CuteConversions, ConvertsExactlyTheAffineFunctions) {
  std::mt19937_64 random(11);
  uint64_t found = 0;
  for (uint64_t round = 0; round < cases(); ++round) {
    arena_.reset();
    std::vector<CuteLeaf> leaves;
    uint64_t bits = 0;
    for (uint64_t leaf = random() % 4; bits < 8; ++leaf) {
      const uint64_t more = 1 + random() % 2;
      bits += more;
      int64_t stride = static_cast<int64_t>(random() % 3 == 0 ? random() % 24 : uint64_t{1} << random() % 9);
      if (random() % 4 == 0) stride = -stride;
      leaves.push_back({int64_t{1} << more, stride});
      if (leaf > 3) break;
    }
    const CuteLayout &layout = *make_cute_flat(arena_, leaves);
    int64_t offset = -layout.lowest();
    if (random() % 2 == 0) offset += static_cast<int64_t>(random() % 16);
    CuteSwizzle swizzle;
    if (random() % 2 == 0) swizzle = {2, 1, random() % 2 == 0 ? 2 : -2};
    const CuteComposed &composed = *make_cute_composed(arena_, swizzle, offset, layout);
    // f(x) ^ f(y) ^ f(z) = f(x ^ y ^ z) says affine; with z = 0, and y a single bit, that is all of it.
    bool affine = true;
    for (int64_t x = 0; affine && x < layout.size(); ++x) {
      for (int64_t y = 1; affine && y < layout.size(); y *= 2) {
        affine = (composed.apply(x ^ y) ^ composed.apply(x)) == (composed.apply(y) ^ composed.apply(0));
      }
    }
    const std::vector<DimSize> ins{{intern_dim("in"), static_cast<uint32_t>(bits)}};
    const std::vector<DimSize> outs{{intern_dim("out"), 20}};
    const Layout *const result = linear_from_cute(arena_, composed, ins, outs);
    ASSERT_EQ(result != nullptr, affine) << to_string(composed) << ": " << arena_.text();
    if (result == nullptr) {
      ASSERT_EQ(arena_.fault(), Fault::kNoSolution);
      continue;
    }
    ++found;
    for (int64_t x = 0; x < layout.size(); ++x) {
      ASSERT_EQ(result->apply(static_cast<uint64_t>(x)), static_cast<uint64_t>(composed.apply(x)));
    }
  }
  EXPECT_GT(found, cases() / 10);
  EXPECT_LT(found, cases() * 9 / 10);
}

TEST_F(CuteConversions, LinearLayoutsKeepTheirValuesInEveryForm) {
  std::mt19937_64 random(12);
  uint64_t forms[3] = {};
  for (uint64_t round = 0; round < cases(); ++round) {
    arena_.reset();
    const auto in_bits = static_cast<uint32_t>(1 + random() % 7);
    const uint32_t out_bits = 9;
    std::vector<uint64_t> columns;
    // Disjoint columns, swizzled ones, or any.
    const uint64_t kind = random() % 3;
    std::vector<uint64_t> bit_owners(out_bits);
    for (uint64_t &owner : bit_owners) owner = random() % (in_bits + 1);
    for (uint32_t i = 0; i < in_bits; ++i) {
      uint64_t column = 0;
      for (uint32_t bit = 0; bit < out_bits; ++bit) column |= static_cast<uint64_t>(bit_owners[bit] == i) << bit;
      columns.push_back(kind == 2 ? random() % 512 : column);
    }
    const CuteSwizzle swizzle{2, static_cast<uint32_t>(random() % 3), random() % 2 == 0 ? 3 : -3};
    if (kind == 1) {
      for (uint64_t &column : columns) column = static_cast<uint64_t>(swizzle.apply(static_cast<int64_t>(column)));
    }
    const std::vector<DimSize> ins{{intern_dim("a"), in_bits / 2}, {intern_dim("b"), in_bits - in_bits / 2}};
    const std::vector<DimSize> outs{{intern_dim("out"), out_bits}};
    const Layout &layout = *make_layout(arena_, ins, outs, columns, random() % 2 == 0 ? random() % 512 : 0);
    CuteConversion result;
    ASSERT_TRUE(cute_from_linear(arena_, layout, CuteForm::kXorStrides, result)) << arena_.text();
    ++forms[static_cast<int>(result.form)];
    ASSERT_TRUE(kind != 0 || result.form == CuteForm::kStrides);
    ASSERT_TRUE(kind != 1 || result.form != CuteForm::kXorStrides);
    for (int64_t x = 0; x < int64_t{1} << in_bits; ++x) {
      const int64_t value = result.form == CuteForm::kXorStrides
                                ? apply_xor_strides(*result.strides, x) ^ static_cast<int64_t>(result.offset)
                                : result.composed->apply(x);
      ASSERT_EQ(static_cast<uint64_t>(value), layout.apply(static_cast<uint64_t>(x)));
    }
    // Integer strides are found whenever they exist: f(x) - f(0) must add up from the bits.
    bool adds_up = true;
    for (uint64_t x = 0; adds_up && x < uint64_t{1} << in_bits; ++x) {
      int64_t total = static_cast<int64_t>(layout.apply(0));
      for (uint64_t rest = x; rest != 0; rest &= rest - 1) {
        total += static_cast<int64_t>(layout.apply(rest & -rest)) - static_cast<int64_t>(layout.apply(0));
      }
      adds_up = total == static_cast<int64_t>(layout.apply(x));
    }
    ASSERT_EQ(result.form == CuteForm::kStrides, adds_up);
    // And back.
    const Layout *const back = result.form == CuteForm::kXorStrides
                                   ? linear_from_xor_strides(arena_, *result.strides, result.offset, ins, outs)
                                   : linear_from_cute(arena_, *result.composed, ins, outs);
    ASSERT_NE(back, nullptr) << arena_.text();
    ASSERT_TRUE(equal(*back, layout));
  }
  for (const uint64_t count : forms) EXPECT_GT(count, cases() / 20);
}

}  // namespace
}  // namespace sonde::layout::test
