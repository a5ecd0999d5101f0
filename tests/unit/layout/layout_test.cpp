// Building, applying, comparing and printing layouts.
#include "layout/layout.h"

#include "support.h"

namespace sonde::layout::test {
namespace {

class LayoutObject : public LayoutTest {};

TEST_F(LayoutObject, AppliesPoints) {
  const Layout *const layout = L("in1 (4,2)(2,1)(1,0); in2 (1,2)(2,1) -> out1[8] out2[4]");
  const auto at = [&](uint64_t in1, uint64_t in2) {
    const uint64_t values[] = {in1, in2};
    uint64_t out[2] = {};
    EXPECT_TRUE(apply_dims(arena_, *layout, values, out)) << arena_.text();
    return std::pair(out[0], out[1]);
  };
  EXPECT_EQ(at(0, 0), (std::pair<uint64_t, uint64_t>(0, 0)));
  EXPECT_EQ(at(1, 0), (std::pair<uint64_t, uint64_t>(4, 2)));
  EXPECT_EQ(at(0, 1), (std::pair<uint64_t, uint64_t>(1, 2)));
}

// The worked example of layout.h.
TEST_F(LayoutObject, AppliesThePapersTile) {
  const Layout *const tile = L("register (0,1)(1,0); lane (0,2)(0,4)(0,8)(2,0)(4,0); warp (8,0) -> dim0[16] dim1[16]");
  const uint64_t values[] = {1, 9, 0};
  uint64_t out[2] = {};
  ASSERT_TRUE(apply_dims(arena_, *tile, values, out));
  EXPECT_EQ(out[0], 2u);
  EXPECT_EQ(out[1], 3u);
}

TEST_F(LayoutObject, RefusesPointsPastADim) {
  const Layout *const layout = L("in 1 2 -> out");
  uint64_t out = 0;
  const uint64_t value = 4;
  EXPECT_FALSE(apply_dims(arena_, *layout, {&value, 1}, {&out, 1}));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  EXPECT_FALSE(apply_dims(arena_, *layout, {}, {&out, 1}));
}

TEST_F(LayoutObject, RefusesWhatIsNoLayout) {
  const DimSize in{d("in"), 2};
  const DimSize out{d("out"), 2};
  const uint64_t rows[] = {1, 4};
  expect_none(make_from_bases(arena_, {&in, 1}, {&out, 1}, rows), Fault::kInvalid);
  EXPECT_NE(arena_.text().find("in=2"), std::string::npos) << arena_.text();
  expect_none(make_from_bases(arena_, {&in, 1}, {&out, 1}, {rows, 1}), Fault::kInvalid);
  const DimSize twice[] = {in, in};
  expect_none(make_layout(arena_, twice, {&out, 1}, {}), Fault::kInvalid);
  const DimSize wide{d("in"), 65};
  expect_none(make_layout(arena_, {&wide, 1}, {&out, 1}, {}), Fault::kUnsupported);
  const DimSize unnamed{0, 1};
  expect_none(make_layout(arena_, {&unnamed, 1}, {&out, 1}, {rows, 1}), Fault::kInvalid);
  expect_none(make_identity(arena_, 3, d("in"), d("out")), Fault::kInvalid);
  expect_none(make_strided(arena_, 4, 3, d("in"), d("out")), Fault::kInvalid);
  expect_none(make_zeros(arena_, 4, d("in"), d("out"), 0), Fault::kInvalid);
  const NamedBases gap{d("in"), {{1}, {4}}};
  const DimName outs[] = {d("out")};
  expect_none(make_inferred(arena_, {&gap, 1}, outs), Fault::kInvalid);
}

TEST_F(LayoutObject, StridesLeaveGaps) {
  const Layout *const layout = make_strided(arena_, 4, 8, d("in"), d("out"));
  expect(layout, "in 8 16 -> out[32]");
  EXPECT_FALSE(is_surjective(*layout));
  EXPECT_TRUE(is_injective(*layout));
  expect(make_strided(arena_, 1, 4, d("in"), d("out")), "in -> out[4]");
}

TEST_F(LayoutObject, AnArenaStopsAtItsCap) {
  Arena small(64 * 1024);
  const Layout *layout = nullptr;
  uint64_t made = 0;
  while ((layout = make_identity(small, 1 << 20, d("in"), d("out"))) != nullptr) ++made;
  EXPECT_EQ(small.fault(), Fault::kFull);
  EXPECT_EQ(made, 64u * 1024 / (sizeof(Layout) + 2 * sizeof(Dim) + 20 * sizeof(uint64_t)));
  small.reset();
  EXPECT_NE(make_identity(small, 1 << 20, d("in"), d("out")), nullptr);
}

TEST_F(LayoutObject, AMarkGivesBackWhatCameAfterIt) {
  const Layout *const kept = L("in 1 2 4 -> out");
  const std::string before = text_of(kept);
  const uint64_t reserved = arena_.bytes();
  for (int i = 0; i < 10000; ++i) {
    const Arena::Mark mark = arena_.mark();
    ASSERT_NE(identity(1 << 30, "in", "out"), nullptr);
    arena_.release(mark);
  }
  EXPECT_EQ(text_of(kept), before);
  EXPECT_LE(arena_.bytes(), reserved + Arena::kBlockBytes);
}

TEST_F(LayoutObject, EqualityHasThreeStrengths) {
  const Layout *const layout = L("a (1,0)(0,1); b (0,2) -> x y");
  const Layout *const reordered = L("b (2,0); a (0,1)(1,0) -> y x");
  EXPECT_FALSE(equal(*layout, *reordered));
  EXPECT_TRUE(equal_as_maps(*layout, *reordered));
  EXPECT_EQ(hash_as_map(*layout), hash_as_map(*reordered));
  EXPECT_NE(hash(*layout), hash(*reordered));
  const Layout *const larger = L("a (1,0)(0,1); b (0,2) -> x[8] y");
  EXPECT_FALSE(equal(*layout, *larger));
  EXPECT_TRUE(equal_but_out_sizes(*layout, *larger));
  EXPECT_FALSE(equal_as_maps(*layout, *larger));
  const Layout *const unit = L("a (1,0)(0,1); b (0,2); c -> x y");
  EXPECT_TRUE(equal_as_maps(*layout, *unit));
  EXPECT_EQ(hash_as_map(*layout), hash_as_map(*unit));
  EXPECT_EQ(hash(*layout), hash(*L("a (1,0)(0,1); b (0,2) -> x y")));
}

TEST_F(LayoutObject, PrintsAsTritonDoes) {
  EXPECT_EQ(to_string(*make_empty(arena_)), "\n(empty layout)");
  EXPECT_EQ(to_string(*L("register (0,1)(1,0); lane -> dim0 dim1")),
            "\n - register=1 -> (0, 1)\n   register=2 -> (1, 0)\n - lane is a size 1 dimension\n"
            "where out dims are: [dim0 (size 2), dim1 (size 2)]");
}

TEST_F(LayoutObject, PrintsPastThirtyTwoBits) {
  const std::string text = to_string(*identity(uint64_t{1} << 40, "in", "out"));
  EXPECT_NE(text.find("in=549755813888 -> (549755813888)"), std::string::npos) << text;
  EXPECT_NE(text.find("size 1099511627776"), std::string::npos) << text;
}

TEST_F(LayoutObject, NamesKeepTheirIds) {
  EXPECT_EQ(intern_dim("register"), dim::kRegister);
  EXPECT_EQ(intern_dim("lane"), dim::kLane);
  EXPECT_EQ(intern_dim("offset"), dim::kOffset);
  EXPECT_EQ(intern_dim("partition"), dim::kPartition);
  EXPECT_EQ(intern_dim("message"), dim::kMessage);
  EXPECT_EQ(intern_dim("dim0"), standard_dim(0));
  EXPECT_EQ(intern_dim("dim31"), standard_dim(31));
  EXPECT_EQ(dim_text(intern_dim("anything")), "anything");
  EXPECT_EQ(dim_text(0), "?");
  EXPECT_EQ(dim_text(4000000000u), "?");
}

}  // namespace
}  // namespace sonde::layout::test
