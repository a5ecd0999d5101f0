// What is proved of addresses, against values worked out by hand from the definitions in addresses.h.
#include <gtest/gtest.h>

#include <string>

#include "addresses.h"

namespace sonde::layout_lint {
namespace {

class Facts {
 public:
  explicit Facts(const std::string &body, const std::string &arguments =
                                              "%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, "
                                              "%m: i32 {tt.divisibility = 16 : i32}")
      : text_("module {\n  tt.func @f(" + arguments + ") {\n" + body + "    tt.return\n  }\n}\n") {
    ir::Error error;
    auto module = ir::Module::read(text_, &error);
    EXPECT_TRUE(module.has_value()) << error.place.line << ": " << error.text;
    module_ = std::move(*module);
    addresses_.emplace(*module_);
  }

  const Fact &operator[](std::string_view name) const {
    for (uint32_t value = 0; value < module_->values().size(); ++value) {
      if (module_->value(value).name == name) return addresses_->of(value);
    }
    static const Fact none;
    ADD_FAILURE() << "no value " << name;
    return none;
  }

 private:
  std::string text_;
  std::optional<ir::Module> module_;
  std::optional<Addresses> addresses_;
};

// Pointers x + 2 i bytes, i = 0..63, x a multiple of 16.
TEST(Addresses, PointersToARangeAreContiguous) {
  const Facts facts(R"(
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %s = tt.splat %x : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %p = tt.addptr %s, %r : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
)");
  const DimFact &dim = facts["p"].dims[0];
  EXPECT_EQ(dim.contiguity, 64u);
  EXPECT_EQ(dim.divisibility, 16u);
  EXPECT_EQ(dim.constancy, 1u);
  EXPECT_EQ(dim.stride, 2);
}

// x + 2 (130 i + j): rows 260 bytes apart, a multiple of 4, so rows begin at multiples of 4.
TEST(Addresses, RowsOfAConstantPitchKeepTheirDistance) {
  const Facts facts(R"(
    %c = arith.constant dense<130> : tensor<8x1xi32>
    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %i1 = tt.expand_dims %i {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %j1 = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %row = arith.muli %i1, %c : tensor<8x1xi32>
    %rows = tt.broadcast %row : tensor<8x1xi32> -> tensor<8x64xi32>
    %columns = tt.broadcast %j1 : tensor<1x64xi32> -> tensor<8x64xi32>
    %o = arith.addi %rows, %columns : tensor<8x64xi32>
    %s = tt.splat %x : !tt.ptr<f16> -> tensor<8x64x!tt.ptr<f16>>
    %p = tt.addptr %s, %o : tensor<8x64x!tt.ptr<f16>>, tensor<8x64xi32>
)");
  const Fact &fact = facts["p"];
  EXPECT_EQ(fact.dims[0].stride, 260);
  EXPECT_EQ(fact.dims[1].stride, 2);
  EXPECT_EQ(fact.dims[1].contiguity, 64u);
  EXPECT_EQ(fact.dims[1].divisibility, 4u);
}

// Rows an unknown number of elements apart: contiguous along j all the same, aligned to nothing but an element.
TEST(Addresses, RowsOfAnUnknownPitchAreContiguousWithin) {
  const Facts facts(R"(
    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %i1 = tt.expand_dims %i {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %j1 = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %ns = tt.splat %n : i32 -> tensor<8x1xi32>
    %row = arith.muli %i1, %ns : tensor<8x1xi32>
    %rows = tt.broadcast %row : tensor<8x1xi32> -> tensor<8x64xi32>
    %columns = tt.broadcast %j1 : tensor<1x64xi32> -> tensor<8x64xi32>
    %o = arith.addi %rows, %columns : tensor<8x64xi32>
    %s = tt.splat %x : !tt.ptr<f16> -> tensor<8x64x!tt.ptr<f16>>
    %p = tt.addptr %s, %o : tensor<8x64x!tt.ptr<f16>>, tensor<8x64xi32>
)");
  const Fact &fact = facts["p"];
  EXPECT_FALSE(fact.dims[0].stride.has_value());
  EXPECT_EQ(fact.dims[1].contiguity, 64u);
  EXPECT_EQ(fact.dims[1].divisibility, 2u);
}

// i < n: with n any number, no two neighbours are sure to agree; with a multiple of 16 each group of 16 agrees.
TEST(Addresses, MasksAgreeInGroupsThatDivideTheBound) {
  const Facts facts(R"(
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %ns = tt.splat %n : i32 -> tensor<64xi32>
    %ms = tt.splat %m : i32 -> tensor<64xi32>
    %a = arith.cmpi slt, %r, %ns : tensor<64xi32>
    %b = arith.cmpi slt, %r, %ms : tensor<64xi32>
    %c = arith.cmpi sle, %r, %ms : tensor<64xi32>
)");
  EXPECT_EQ(facts["a"].dims[0].constancy, 1u);
  EXPECT_EQ(facts["b"].dims[0].constancy, 16u);
  EXPECT_EQ(facts["c"].dims[0].constancy, 1u);  // i = m is in, i = m + 1 is out
}

// i mod 48 runs 0..47, 0..15: groups of 16. i / 8 is equal in groups of 8.
TEST(Addresses, RemaindersRunAndQuotientsStay) {
  const Facts facts(R"(
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %c48 = arith.constant dense<48> : tensor<64xi32>
    %c8 = arith.constant dense<8> : tensor<64xi32>
    %a = arith.remsi %r, %c48 : tensor<64xi32>
    %b = arith.divsi %r, %c8 : tensor<64xi32>
)");
  EXPECT_EQ(facts["a"].dims[0].contiguity, 16u);
  EXPECT_EQ(facts["a"].dims[0].divisibility, 16u);
  EXPECT_FALSE(facts["a"].dims[0].stride.has_value());
  EXPECT_EQ(facts["b"].dims[0].constancy, 8u);
  EXPECT_EQ(facts["b"].dims[0].contiguity, 1u);
}

// 16-bit pointers advanced by 32 elements (64 bytes) in each turn stay multiples of 16; by 3 elements (6 bytes) of 2.
TEST(Addresses, LoopsKeepWhatEveryTurnKeeps) {
  const Facts facts(R"(
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant dense<32> : tensor<64xi32>
    %c3 = arith.constant dense<3> : tensor<64xi32>
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %s = tt.splat %x : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %p = tt.addptr %s, %r : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %e:2 = scf.for %k = %c0 to %n step %c1 iter_args(%a = %p, %b = %p) -> (tensor<64x!tt.ptr<f16>>, tensor<64x!tt.ptr<f16>>)  : i32 {
      %a1 = tt.addptr %a, %c32 : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
      %b1 = tt.addptr %b, %c3 : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
      scf.yield %a1, %b1 : tensor<64x!tt.ptr<f16>>, tensor<64x!tt.ptr<f16>>
    }
)");
  EXPECT_EQ(facts["a"].dims[0].contiguity, 64u);
  EXPECT_EQ(facts["a"].dims[0].stride, 2);
  EXPECT_EQ(facts["a"].dims[0].divisibility, 16u);
  EXPECT_EQ(facts["b"].dims[0].stride, 2);
  EXPECT_EQ(facts["b"].dims[0].divisibility, 2u);
}

TEST(Addresses, HintsOfTheTextAreTaken) {
  const Facts facts(R"(
    %r = tt.load %q : tensor<64x!tt.ptr<i32>>
    %h = arith.addi %r, %r {tt.contiguity = dense<64> : tensor<1xi32>, tt.divisibility = dense<8> : tensor<1xi32>} : tensor<64xi32>
    %s = tt.splat %x : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %p = tt.addptr %s, %h : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %g = tt.addptr %s, %r : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
)");
  EXPECT_EQ(facts["p"].dims[0].stride, 2);
  EXPECT_EQ(facts["p"].dims[0].divisibility, 16u);
  EXPECT_EQ(facts["g"].dims[0].contiguity, 1u);
  EXPECT_FALSE(facts["g"].dims[0].stride.has_value());
  EXPECT_NE(facts["g"].lost_at, ir::kNone);
}

}  // namespace
}  // namespace sonde::layout_lint
