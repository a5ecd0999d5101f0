// The algebra on published vectors (Triton's LinearLayoutTest, as facts), and on what Triton gets wrong.
#include "layout/algebra.h"

#include "layout/shapes.h"
#include "support.h"

namespace sonde::layout::test {
namespace {

class Algebra : public LayoutTest {};

TEST_F(Algebra, ProductsOfIdentities) {
  expect(times(identity(16, "in", "out"), identity(32, "in", "out")), "in 1 2 4 8 16 32 64 128 256 -> out");
  expect(times(identity(8, "in", "out"), zeros(16, "in", "out")), "in 1 2 4 0 0 0 0 -> out");
  expect(times(identity(4, "in", "out1"), identity(8, "in", "out2")), "in (1,0)(2,0)(0,1)(0,2)(0,4) -> out1 out2");
  expect(times(identity(0, "in", "out"), zeros(4, "in", "out")), "in 0 0 -> out");
  expect(times(zeros(16, "in", "out1"), L("in -> out2")), "in (0,0)(0,0)(0,0)(0,0) -> out1 out2");
}

TEST_F(Algebra, TheEmptyLayoutIsTheUnitOfTheProduct) {
  const Layout *const some = L("in1 (1,0)(0,1); in2 (2,0) -> out1 out2");
  EXPECT_TRUE(equal(*times(make_empty(arena_), some), *some));
  EXPECT_TRUE(equal(*times(some, make_empty(arena_)), *some));
}

TEST_F(Algebra, OrdersThatContradictEachOtherHaveNoSupremum) {
  const auto common = [&](std::vector<DimName> a, std::vector<DimName> b) {
    std::vector<DimName> result;
    EXPECT_TRUE(supremum(arena_, a, b, result)) << arena_.text();
    return result;
  };
  using Names = std::vector<DimName>;
  EXPECT_EQ(common({d("a"), d("b")}, {d("a"), d("c")}), (Names{d("a"), d("b"), d("c")}));
  EXPECT_EQ(common({d("a"), d("b")}, {d("b"), d("c")}), (Names{d("a"), d("b"), d("c")}));
  EXPECT_EQ(common({d("a"), d("b"), d("c")}, {d("a"), d("d")}), (Names{d("a"), d("b"), d("c"), d("d")}));
  EXPECT_EQ(common({}, {d("a")}), Names{d("a")});
  EXPECT_EQ(common({}, {}), Names{});
  Names result;
  EXPECT_FALSE(supremum(arena_, Names{d("a"), d("b")}, Names{d("b"), d("a")}, result));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  expect_none(product(arena_, *L("a 1; b 2 -> o"), *L("b 1; a 2 -> o")), Fault::kInvalid);
}

TEST_F(Algebra, Composes) {
  const Layout *const first = L("in1 (1,1)(0,1); in2 (1,0)(1,2) -> out1 out2");
  const Layout *const second = L("out1 (2,2)(1,0); out2 (1,1)(2,1) -> out3 out4");
  const Layout *const wanted = L("in1 (3,3)(1,1); in2 (2,2)(0,3) -> out3 out4");
  EXPECT_EQ(text_of(compose(arena_, *first, *second)), text_of(wanted));
  EXPECT_FALSE(is_surjective(*wanted));
}

TEST_F(Algebra, ComposesWhateverTheOrderOfTheMiddleDims) {
  const Layout *const first = L("in (1,2)(0,1) -> a b");
  const Layout *const second = L("b 1 2; a 4 -> out");
  // (a=1, b=2) -> 4 ^ 2; (a=0, b=1) -> 1
  expect(compose(arena_, *first, *second), "in 6 1 -> out");
  expect_none(compose(arena_, *first, *L("a 1 2 -> out")), Fault::kInvalid);
  expect_none(compose(arena_, *second, *second), Fault::kInvalid);
}

TEST_F(Algebra, InvertsAndComposes) {
  expect(invert_and_compose(arena_, *L("in1 2 1 4 -> out"), *L("in2 4 1 2 -> out")), "in1 4 2 1 -> in2");
  expect(invert_and_compose(arena_, *L("in1 2 1 4 -> out"), *L("in2 0 2 1 4 -> out")), "in1 2 4 8 -> in2[16]");
  expect(invert_and_compose(arena_, *L("in 1 2 4 -> out"), *L("in 0 4 1 2 -> out")), "in 4 8 2 -> in[16]");
  expect(invert_and_compose(arena_, *L("in 1 2 4 -> out"), *L("in 0 4 1 2 0 -> out")), "in 4 8 2 -> in[32]");
  expect(invert_and_compose(arena_, *L("in1 1 2 4 -> out"), *L("in2 4 1 2 0 -> out")), "in1 2 4 1 -> in2[16]");
}

TEST_F(Algebra, ExtraBroadcastDimsMapToThemselves) {
  expect(invert_and_compose(arena_, *L("in1 2 1 4; in2 0 -> out"), *L("in 4 1 2 -> out")), "in1 4 2 1; in2 0 -> in");
  expect(invert_and_compose(arena_, *L("in1 1 2 4; in2 0 -> out"), *L("in3 1 2 4; in4 0 -> out")),
         "in1 (1,0)(2,0)(4,0); in2 (0,0) -> in3[8] in4[2]");
  expect(invert_and_compose(arena_, *L("in1 1 2; in2 0 -> out"), *L("in3 2 1; in4 0 -> out")),
         "in1 (2,0)(1,0); in2 (0,0) -> in3[4] in4[2]");
}

TEST_F(Algebra, InvertsALargerMemoryLayout) {
  const Layout *const registers =
      L("register (0,1)(0,2)(0,4)(0,32)(32,0); lane (0,8)(0,16)(1,0)(2,0)(4,0); warp (8,0)(16,0) -> dim0[64] dim1[64]");
  const Layout *const memory =
      L("offset (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(0,64)(1,8)(2,16)(4,32)(8,0)(16,0)(32,0)(64,0)(128,0); block -> dim0 "
        "dim1");
  expect(invert_and_compose(arena_, *registers, *memory),
         "register (1,0)(2,0)(4,0)(32,0)(4096,0); lane (8,0)(16,0)(136,0)(272,0)(544,0); warp (1024,0)(2048,0) -> "
         "offset[32768] block[1]");
}

TEST_F(Algebra, AnIdenticalDimStaysInPlaceWhateverTheOutSizes) {
  const Layout *const layout =
      L("offset (0,1)(0,2)(0,4)(0,16)(32,0)(64,0)(128,0); lane (1,0)(2,0)(4,0)(8,0)(0,8); "
        "warp (0,0)(16,0); block (0,0) -> dim0 dim1");
  const Layout *const outer = L(
      "offset (0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(0,64)(1,0)(2,0)(4,0)(8,0)(16,0)(32,0)(64,0)(128,0); block (0,0) -> dim0 "
      "dim1");
  const Layout *const result = invert_and_compose(arena_, *layout, *outer);
  ASSERT_NE(result, nullptr) << arena_.text();
  const Dim &in = *result->find_in(d("block"));
  EXPECT_EQ(result->columns_of(in)[0], result->find_out(d("block"))->at(1));
}

// The values of one dim lie in the other dim of `outer`, whose own columns are identical: nothing of the rest reaches
// them, so the solution must use the identical dim too.
TEST_F(Algebra, AnIdenticalDimStillServesTheOthers) {
  expect(invert_and_compose(arena_, *L("x 1 2; y 3 -> out"), *L("x 1 2 -> out")), "x 1 2; y 3 -> x");
}

TEST_F(Algebra, LeastSolutions) {
  expect(least_solution(arena_, *L("s (1,1)(2,0) -> x[4] y[2]"), *L("v (1,3) -> y[2] x[4]")), "v 3 -> s[4]");
  expect_none(least_solution(arena_, *L("s (1,1)(2,0) -> x[4] y[2]"), *L("v (0,1) -> x[4] y[2]")), Fault::kNoSolution);
  expect_none(least_solution(arena_, *L("s (1,1)(2,0) -> x[4] y[2]"), *L("v 1 -> x[4]")), Fault::kInvalid);
  // 3 = 1 ^ 2 uses the first independent columns; column 2 alone would have fewer bits.
  expect(least_solution(arena_, *L("s 1 2 3 -> out"), *L("v 3 -> out")), "v 3 -> s[8]");
}

TEST_F(Algebra, MemoryThatABlockKeepsToItself) {
  const Layout *const whole = L("offset (1,0); block (0,0) -> dim0 dim1[2]");
  const Layout *const lanes = L("lane (0,0)(0,0)(0,0)(0,0)(0,0); block (1,0) -> dim0 dim1[2]");
  expect(invert_and_compose_block_local(arena_, *lanes, *whole),
         "lane (0,0)(0,0)(0,0)(0,0)(0,0); block (1,1) -> offset block");
  expect(invert_and_compose_block_local(arena_, *L("register; block 1 2 -> dim0"), *L("offset 2; block 1 0 -> dim0")),
         "register; block (0,1)(1,2) -> offset[2] block[4]");
}

TEST_F(Algebra, Divides) {
  const Layout *const whole = L("in1 (1,1)(2,2)(0,8)(0,4); in2 (0,2)(0,1) -> out1 out2");
  const Layout *const first = L("in1 (1,1)(2,2); in2 (0,2)(0,1) -> out1 out2");
  const Layout *const second = L("in1 (0,2)(0,1); in2 -> out1 out2");
  EXPECT_EQ(text_of(times(first, second)), text_of(whole));
  EXPECT_EQ(text_of(divide_left(arena_, *whole, *first)), text_of(second));
  EXPECT_EQ(text_of(divide_right(arena_, *whole, *second)), text_of(first));
}

TEST_F(Algebra, DividesADimAway) {
  expect(divide_left(arena_, *L("in2 (0,1)(1,0); in1 (2,0)(0,2) -> out1 out2"), *L("in2 (0,1)(1,0) -> out1 out2")),
         "in2; in1 (1,0)(0,1) -> out1 out2");
  expect(divide_right(arena_, *L("in2 (1,0)(0,2); in1 (0,1)(0,2) -> out1 out2"), *L("in2 1; in1 1 -> out2")),
         "in2 (1,0); in1 (0,1) -> out1 out2");
  expect(divide_left(arena_, *identity(8, "in", "out"), *identity(8, "in", "out")), "in -> out");
  expect_none(divide_left(arena_, *identity(8, "in", "out"), *L("in 1; other 2 -> out")), Fault::kNoSolution);
}

// What Triton's right division does not check: out dims that the divisor lacks, and head bases too large.
TEST_F(Algebra, RefusesQuotientsThatDoNotMultiplyBack) {
  expect_none(divide_right(arena_, *L("i (1,0)(1,1) -> o1 o2"), *L("i 1 -> o2")), Fault::kNoSolution);
  expect_none(divide_right(arena_, *L("i 2 2 -> o[4]"), *L("i 1 -> o[2]")), Fault::kNoSolution);
}

TEST_F(Algebra, InvertsWhatIsInvertible) {
  expect(invert(arena_, *L("in 2 1 4 -> out")), "out 2 1 4 -> in");
  expect_none(invert(arena_, *L("in 1 2 0 -> out")), Fault::kNoSolution);
  expect_none(invert(arena_, *L("in 1 1 -> out[4]")), Fault::kNoSolution);
  // A release build of Triton's does not return from this one.
  expect_none(pseudoinvert(arena_, *L("in 1 2 -> out[8]")), Fault::kNoSolution);
}

// fp4 in pairs of 16: offset = floor(i / 8) * 16 + i mod 8 for the row-major element i = 4 r + c.
TEST_F(Algebra, PseudoinvertSkipsPadding) {
  const Layout *const padded = L("offset (0,1)(0,2)(1,0)(0,0)(2,0)(4,0)(8,0) -> row column");
  const Layout *const inverse = pseudoinvert(arena_, *padded);
  ASSERT_NE(inverse, nullptr) << arena_.text();
  for (uint64_t row = 0; row < 16; ++row) {
    for (uint64_t column = 0; column < 4; ++column) {
      const uint64_t element = 4 * row + column;
      EXPECT_EQ(inverse->apply(row | column << 4), element / 8 * 16 + element % 8);
    }
  }
}

TEST_F(Algebra, SubspacesOfALayout) {
  const Layout *const layout = L("in 1 2 3 4 4 -> out[16]");
  expect(kernel(arena_, *layout), "basis 7 24 -> in[32]");  // 1^2^3 = 0 and 4^4 = 0
  expect(image(arena_, *layout), "basis 1 2 4 -> out[16]");
  const Layout *const test = cokernel(arena_, *layout);
  expect(test, "out 0 0 0 1 -> basis");
  expect(intersect_images(arena_, *L("a 1 6 -> out[8]"), *L("b 7 2 -> out[8]")), "basis 7 -> out[8]");
  EXPECT_EQ(sum_of_images(arena_, *L("a 1 6 -> out[8]"), *L("b 7 2 -> out[8]"))->in_bits(), 3u);
}

TEST_F(Algebra, ConcatenatesAndAdds) {
  expect(concat_ins(arena_, *L("a 1 2 -> o[4]"), *L("b 3 -> o[4]")), "a 1 2; b 3 -> o[4]");
  expect(concat_outs(arena_, *L("a 1 2 -> o[4]"), *L("a 1 0 -> p[2]")), "a (1,1)(2,0) -> o p");
  expect(sum(arena_, *L("a 1 2 -> o[4]"), *L("a 3 3 -> o[4]")), "a 2 1 -> o[4]");
  expect_none(concat_ins(arena_, *L("a 1 2 -> o[4]"), *L("a 3 -> o[4]")), Fault::kInvalid);
  expect_none(concat_outs(arena_, *L("a 1 2 -> o[4]"), *L("a 1 -> p[2]")), Fault::kInvalid);
}

// 40 bits: sizes past 2^32, where 32-bit totals report 256.
TEST_F(Algebra, SizesAreSixtyFourBits) {
  const Layout *const wide = times(identity(uint64_t{1} << 40, "in", "out"), identity(1u << 24, "in2", "out2"));
  EXPECT_EQ(wide->in_bits(), 64u);
  EXPECT_TRUE(is_invertible(*wide));
  EXPECT_EQ(wide->apply(uint64_t{1} << 63), uint64_t{1} << 63);
  EXPECT_TRUE(equal(*invert(arena_, *invert(arena_, *wide)), *wide));
  expect_none(product(arena_, *wide, *identity(2, "in", "out")), Fault::kUnsupported);
}

TEST_F(Algebra, OffsetsGoThroughEverything) {
  const DimSize in{d("in"), 3};
  const DimSize middle{d("middle"), 3};
  const uint64_t reversed[] = {4, 2, 1};
  // y = reverse(x) ^ 5 is its own kind of flip: the inverse of the map must undo it.
  const Layout *const flip = make_layout(arena_, {&in, 1}, {&middle, 1}, reversed, 5);
  const Layout *const back = invert(arena_, *flip);
  ASSERT_NE(back, nullptr) << arena_.text();
  const Layout *const both = compose(arena_, *flip, *back);
  for (uint64_t x = 0; x < 8; ++x) {
    EXPECT_EQ(flip->apply(x), ((x & 1) << 2 | (x & 2) | x >> 2) ^ 5);
    EXPECT_EQ(both->apply(x), x);
  }
}

}  // namespace
}  // namespace sonde::layout::test
