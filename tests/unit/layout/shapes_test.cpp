// Reshapes, transposes, sublayouts on published vectors; and both ways to make an out dim smaller.
#include "layout/shapes.h"

#include "support.h"

namespace sonde::layout::test {
namespace {

class Shapes : public LayoutTest {
 protected:
  static std::vector<DimName> names(std::initializer_list<const char *> texts) {
    std::vector<DimName> result;
    for (const char *const text : texts) result.push_back(d(text));
    return result;
  }
};

TEST_F(Shapes, Reshapes) {
  const DimSize ins[] = {{d("in3"), 1}, {d("in4"), 3}};
  expect(reshape(arena_, *L("in1 1 4 8; in2 2 -> out"), Side::kIn, ins), "in3 1; in4 4 8 2 -> out");
  const DimSize outs[] = {{d("out2"), 1}, {d("out3"), 3}};
  expect(reshape(arena_, *L("in1 1 4 8; in2 3 -> out[16]"), Side::kOut, outs),
         "in1 (1,0)(0,2)(0,4); in2 (1,1) -> out2[2] out3[8]");
  expect(flatten(arena_, *L("in1 (1,0)(4,1)(8,4); in2 (3,2) -> out1[16] out2[8]"), Side::kOut),
         "in1 1 20 72; in2 35 -> out1[128]");
  expect(flatten(arena_, *L("in1 1 2; in2 4 -> out"), Side::kIn), "in1 1 2 4 -> out");
  expect_none(reshape(arena_, *L("in 1 2 -> out"), Side::kIn, outs), Fault::kInvalid);
  EXPECT_TRUE(flatten(arena_, *make_empty(arena_), Side::kIn)->ins().empty());
}

TEST_F(Shapes, Transposes) {
  expect(transpose(arena_, *L("in1 (4,2)(2,1)(1,0) -> out1[8] out2[4]"), Side::kOut, names({"out2", "out1"})),
         "in1 (2,4)(1,2)(0,1) -> out2[4] out1[8]");
  expect(transpose(arena_, *L("a 1 2; b 4 -> out"), Side::kIn, names({"b", "a"})), "b 4; a 1 2 -> out");
  expect_none(transpose(arena_, *L("a 1 2; b 4 -> out"), Side::kIn, names({"a", "a"})), Fault::kInvalid);
  expect_none(transpose(arena_, *L("a 1 2; b 4 -> out"), Side::kIn, names({"a"})), Fault::kInvalid);
}

TEST_F(Shapes, SqueezesAndUnsqueezes) {
  const Layout *const layout = L("a (1,0)(2,0) -> x y");
  expect(squeeze(arena_, *layout, Side::kOut, d("y")), "a 1 2 -> x");
  expect_none(squeeze(arena_, *layout, Side::kOut, d("x")), Fault::kInvalid);
  expect_none(squeeze(arena_, *layout, Side::kOut, d("z")), Fault::kInvalid);
  // The bases keep an entry for each out dim.
  expect(unsqueeze(arena_, *squeeze(arena_, *layout, Side::kOut, d("y")), Side::kOut, d("z")), "a (1,0)(2,0) -> x z");
  expect(unsqueeze(arena_, *layout, Side::kIn, d("b")), "a (1,0)(2,0); b -> x y");
  expect_none(unsqueeze(arena_, *layout, Side::kIn, d("a")), Fault::kInvalid);
}

TEST_F(Shapes, Resizes) {
  expect(resize_in(arena_, *identity(4, "in", "out"), d("in"), 4), "in 1 2 0 0 -> out");
  expect(resize_in(arena_, *identity(4, "in", "out"), d("in"), 1), "in 1 -> out[4]");
  const Layout *const layout = L("in 5 2 -> out[8]");
  expect(resize_out(arena_, *layout, d("out"), 2, Resize::kZero), "in 0 2 -> out[4]");
  expect(resize_out(arena_, *layout, d("out"), 2, Resize::kModulo), "in 1 2 -> out[4]");
  expect_none(resize_out(arena_, *layout, d("out"), 4, Resize::kZero), Fault::kInvalid);
  expect_none(resize_in(arena_, *layout, d("in"), 65), Fault::kUnsupported);
}

TEST_F(Shapes, RenamesAtOnce) {
  const Renaming swap[] = {{d("a"), d("b")}, {d("b"), d("a")}};
  expect(rename(arena_, *L("a 1 2; b 4 -> out"), Side::kIn, swap), "b 1 2; a 4 -> out");
  const Renaming clash[] = {{d("a"), d("b")}};
  expect_none(rename(arena_, *L("a 1 2; b 4 -> out"), Side::kIn, clash), Fault::kInvalid);
  const Renaming absent[] = {{d("c"), d("x")}};
  expect_none(rename(arena_, *L("a 1 2; b 4 -> out"), Side::kIn, absent), Fault::kInvalid);
}

TEST_F(Shapes, Sublayouts) {
  const Layout *const layout = L("in1 (1,0)(0,1)(2,0); in2 (0,1) -> out1 out2");
  expect(sublayout(arena_, *layout, names({"in1", "in2"}), names({"out1"})), "in1 1 0 2; in2 0 -> out1");
  const Layout *const no_outs = sublayout(arena_, *layout, names({"in1"}), {});
  EXPECT_EQ(no_outs->in_bits(), 3u);
  EXPECT_TRUE(no_outs->outs().empty());
  const Layout *const no_ins = sublayout(arena_, *layout, {}, names({"out1"}));
  EXPECT_TRUE(no_ins->ins().empty());
  EXPECT_EQ(no_ins->outs()[0].bits, 2u);
  expect_none(sublayout(arena_, *layout, names({"in3"}), {}), Fault::kInvalid);
  expect_none(sublayout(arena_, *layout, {}, names({"in1"})), Fault::kInvalid);
}

TEST_F(Shapes, RemovesZeroBases) {
  expect(remove_zero_bases(arena_, *L("register (1,0)(0,0)(0,1); lane (0,0) -> x y"), d("register")),
         "register (1,0)(0,1); lane (0,0) -> x y");
}

TEST_F(Shapes, FitsATensor) {
  const DimSize small[] = {{d("dim0"), 1}, {d("dim1"), 0}};
  const Layout *const layout = L("register (1,0)(2,0)(0,0)(0,1); lane (4,0) -> dim0 dim1");
  expect(not_larger(arena_, *layout, small), "register (1,0)(0,0)(0,0)(0,0); lane (0,0) -> dim0[2] dim1[1]");
  // The basis that was 0 before is a broadcast of the layout's own.
  expect(not_larger(arena_, *layout, small, false), "register (1,0)(0,0); lane (0,0) -> dim0[2] dim1[1]");
  const DimSize large[] = {{d("dim0"), 4}, {d("dim1"), 2}};
  expect(not_smaller(arena_, *layout, large),
         "register (1,0)(2,0)(0,0)(0,1)(8,0)(0,2); lane (4,0) -> dim0[16] dim1[4]");
}

TEST_F(Shapes, IdentitiesOfATensor) {
  const uint64_t shape[] = {4, 2};
  const uint32_t order[] = {1, 0};
  expect(identity_nd(arena_, d("offset"), shape, order), "offset (1,0)(0,1)(0,2) -> dim1[2] dim0[4]");
  const uint64_t odd[] = {3, 2};
  expect_none(identity_nd(arena_, d("offset"), odd, order), Fault::kUnsupported);
  const uint32_t wrong[] = {2, 0};
  expect_none(identity_nd(arena_, d("offset"), shape, wrong), Fault::kInvalid);
}

// Row-major: element (r, c) of 4x2 is number 2 r + c, which is (i / 4, i mod 4) of 2x4.
TEST_F(Shapes, ReshapesTensorsRowMajor) {
  const Layout *const layout = L("lane (0,1)(1,0)(2,0) -> dim0[4] dim1[2]");
  const uint64_t shape[] = {2, 4};
  expect(reshape_tensor(arena_, *layout, shape), "lane (0,1)(0,2)(1,0) -> dim0[2] dim1[4]");
  const uint32_t order[] = {1, 0};
  expect(transpose_tensor(arena_, *layout, order), "lane (1,0)(0,1)(0,2) -> dim0[2] dim1[4]");
  expect(remove_tensor_dim(arena_, *layout, 0), "lane 1 0 0 -> dim0[2]");
  expect_none(remove_tensor_dim(arena_, *layout, 2), Fault::kInvalid);
}

// Values that are not reached stay so: nothing infers sizes again.
TEST_F(Shapes, TransposesWhatIsNotSurjective) {
  const uint32_t order[] = {1, 0};
  expect(transpose_tensor(arena_, *L("lane (0,1) -> dim0[4] dim1[2]"), order), "lane (1,0) -> dim0[2] dim1[4]");
}

}  // namespace
}  // namespace sonde::layout::test
