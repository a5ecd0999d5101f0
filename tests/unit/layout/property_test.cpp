// The algebra's laws on random layouts of up to 64 bits.
#include "layout/actions.h"
#include "layout/matrix.h"
#include "layout/queries.h"
#include "layout/shapes.h"
#include "support.h"

namespace sonde::layout::test {
namespace {

class Laws : public LayoutTest {
 protected:
  RandomLayouts random_{arena_, 20240601};

  void TearDown() override { EXPECT_GT(checked_, 0u); }
  // Runs `body` on fresh memory for each case.
  template <typename Body>
  void each_case(Body &&body) {
    for (uint64_t i = 0; i < cases() && !HasFatalFailure(); ++i) {
      arena_.reset();
      body();
      ++checked_;
    }
  }
  std::vector<DimSize> dims(std::initializer_list<const char *> names, uint32_t most) {
    return random_.cut(names, static_cast<uint32_t>(random_.below(most + 1)));
  }
  uint64_t checked_ = 0;
};

TEST_F(Laws, ProductsAssociate) {
  each_case([&] {
    const Layout *const a = random_.any(dims({"i", "j"}, 21), dims({"x", "y"}, 21), true);
    const Layout *const b = random_.any(dims({"j", "k"}, 21), dims({"x", "y"}, 21), true);
    const Layout *const c = random_.any(dims({"k"}, 21), dims({"y", "z"}, 21), true);
    const Layout *const left = product(arena_, *product(arena_, *a, *b), *c);
    const Layout *const right = product(arena_, *a, *product(arena_, *b, *c));
    ASSERT_TRUE(equal(*left, *right)) << text_of(a) << "\n" << text_of(b) << "\n" << text_of(c);
  });
}

TEST_F(Laws, CompositionAssociatesAndIsApplication) {
  each_case([&] {
    const auto x = dims({"x1", "x2"}, 64);
    const auto y = dims({"y1", "y2", "y3"}, 64);
    const auto z = dims({"z1"}, 64);
    const auto w = dims({"w1", "w2"}, 64);
    const Layout *const a = random_.any(x, y, true);
    const Layout *const b = random_.any(y, z, true);
    const Layout *const c = random_.any(z, w, true);
    const Layout *const ab = compose(arena_, *a, *b);
    ASSERT_NE(ab, nullptr) << arena_.text();
    ASSERT_TRUE(equal(*compose(arena_, *ab, *c), *compose(arena_, *a, *compose(arena_, *b, *c))));
    for (int i = 0; i < 4; ++i) {
      const uint64_t point = random_.word() & low_mask(a->in_bits());
      ASSERT_EQ(ab->apply(point), b->apply(a->apply(point)));
    }
  });
}

TEST_F(Laws, InversesUndo) {
  each_case([&] {
    const auto bits = static_cast<uint32_t>(random_.below(65));
    const auto x = random_.cut({"x1", "x2", "x3"}, bits);
    const auto y = random_.cut({"y1", "y2"}, bits);
    const Layout *const layout = random_.invertible(x, y, true);
    const Layout *const back = invert(arena_, *layout);
    ASSERT_NE(back, nullptr) << arena_.text();
    ASSERT_TRUE(equal(*invert(arena_, *back), *layout));
    const Layout *const both = compose(arena_, *layout, *back);
    for (uint32_t bit = 0; bit < bits; ++bit) ASSERT_EQ(both->columns()[bit], uint64_t{1} << bit);
    ASSERT_EQ(both->offset(), 0u);
  });
}

TEST_F(Laws, PseudoinversesAreTheSmallestPreimages) {
  each_case([&] {
    const auto out_bits = static_cast<uint32_t>(random_.below(9));
    const auto in_bits = out_bits + static_cast<uint32_t>(random_.below(5));
    const Layout *const layout =
        random_.surjective(random_.cut({"a", "b"}, in_bits), random_.cut({"x", "y"}, out_bits));
    ASSERT_TRUE(is_surjective(*layout));
    const Layout *const inverse = pseudoinvert(arena_, *layout);
    ASSERT_NE(inverse, nullptr) << arena_.text();
    for (int i = 0; i < 4; ++i) {
      const uint64_t value = random_.word() & low_mask(out_bits);
      uint64_t smallest = 0;
      while (layout->apply(smallest) != value) ++smallest;
      ASSERT_EQ(inverse->apply(value), smallest) << text_of(layout);
    }
  });
}

TEST_F(Laws, InvertAndComposeSolvesTheEquation) {
  each_case([&] {
    const auto out_bits = static_cast<uint32_t>(random_.below(40));
    const auto outs = random_.cut({"x", "y"}, out_bits);
    const Layout *const outer = random_.surjective(random_.cut({"a", "b", "s"}, out_bits + 8), outs);
    const Layout *const layout = random_.any(dims({"s", "c"}, 40), outs);
    const Layout *const result = invert_and_compose(arena_, *layout, *outer);
    ASSERT_NE(result, nullptr) << arena_.text();
    ASSERT_TRUE(equal(*compose(arena_, *result, *outer), *layout)) << text_of(layout) << "\n" << text_of(outer);
  });
}

TEST_F(Laws, QuotientsMultiplyBack) {
  each_case([&] {
    const Layout *const a = random_.any(dims({"i", "j"}, 20), dims({"x", "y"}, 20));
    const Layout *const b = random_.any(dims({"i", "j"}, 20), dims({"x", "y"}, 20));
    const Layout *const both = product(arena_, *a, *b);
    const Layout *const left = divide_left(arena_, *both, *a);
    const Layout *const right = divide_right(arena_, *both, *b);
    ASSERT_TRUE(left != nullptr && equal(*left, *b)) << text_of(a) << "\n" << text_of(b);
    ASSERT_TRUE(right != nullptr && equal(*right, *a)) << text_of(a) << "\n" << text_of(b);
  });
}

// Whatever a division of two unrelated layouts answers, the answer multiplies back.
TEST_F(Laws, NoQuotientIsWrong) {
  uint64_t found = 0;
  each_case([&] {
    const Layout *const a = random_.any(dims({"i", "j"}, 4), dims({"x", "y"}, 3));
    const Layout *const b = random_.any(dims({"i", "j"}, 2), dims({"x", "y"}, 2));
    for (const bool left : {true, false}) {
      const Layout *const c = left ? divide_left(arena_, *a, *b) : divide_right(arena_, *a, *b);
      if (c == nullptr) continue;
      ++found;
      ASSERT_TRUE(equal(*(left ? product(arena_, *b, *c) : product(arena_, *c, *b)), *a))
          << text_of(a) << " / " << text_of(b) << " = " << text_of(c);
    }
  });
  EXPECT_GT(found, 0u);
}

TEST_F(Laws, ReshapesKeepTheMap) {
  each_case([&] {
    const auto in_bits = static_cast<uint32_t>(random_.below(65));
    const auto out_bits = static_cast<uint32_t>(random_.below(65));
    const auto ins = random_.cut({"a", "b"}, in_bits);
    const auto outs = random_.cut({"x", "y", "z"}, out_bits);
    const Layout *const layout = random_.any(ins, outs, true);
    const Layout *const flat = flatten(arena_, *flatten(arena_, *layout, Side::kIn), Side::kOut);
    const Layout *const cut = reshape(arena_, *reshape(arena_, *flat, Side::kIn, ins), Side::kOut, outs);
    ASSERT_TRUE(equal(*cut, *layout));
    const DimName order[] = {intern_dim("z"), intern_dim("x"), intern_dim("y")};
    const Layout *const turned = transpose(arena_, *layout, Side::kOut, order);
    ASSERT_TRUE(equal_as_maps(*turned, *layout));
    ASSERT_EQ(hash_as_map(*turned), hash_as_map(*layout));
    const DimName back[] = {intern_dim("x"), intern_dim("y"), intern_dim("z")};
    ASSERT_TRUE(equal(*transpose(arena_, *turned, Side::kOut, back), *layout));
  });
}

TEST_F(Laws, SubspacesHaveTheirDimensions) {
  each_case([&] {
    const auto outs = random_.cut({"x"}, static_cast<uint32_t>(random_.below(65)));
    const Layout *const a = random_.any(dims({"a"}, 64), outs);
    const Layout *const b = random_.any(dims({"b"}, 64), outs);
    ASSERT_EQ(kernel(arena_, *a)->in_bits() + rank(*a), a->in_bits());
    const Layout *const kernel_of_a = kernel(arena_, *a);
    for (const uint64_t vector : kernel_of_a->columns()) ASSERT_EQ(a->apply(vector), 0u);
    const Layout *const common = intersect_images(arena_, *a, *b);
    const Layout *const together = sum_of_images(arena_, *a, *b);
    ASSERT_EQ(common->in_bits() + together->in_bits(), rank(*a) + rank(*b));
    ASSERT_EQ(rank(*common), common->in_bits());
    const Layout *const test = cokernel(arena_, *a);
    ASSERT_EQ(test->out_bits() + rank(*a), a->out_bits());
    for (const uint64_t column : a->columns()) ASSERT_EQ(test->apply(column), 0u);
    const Layout *const test_b = cokernel(arena_, *b);
    for (const uint64_t column : common->columns()) {
      ASSERT_EQ(test->apply(column), 0u);
      ASSERT_EQ(test_b->apply(column), 0u);
    }
    uint64_t units[64];
    std::vector<uint64_t> whole(a->columns().begin(), a->columns().end());
    const uint32_t count = complement_basis(a->columns(), a->out_bits(), units);
    whole.insert(whole.end(), units, units + count);
    ASSERT_EQ(rank_of(whole), a->out_bits());
    ASSERT_EQ(count + rank(*a), a->out_bits());
  });
}

TEST_F(Laws, ActionsMoveValuesAsTheyMoveBases) {
  each_case([&] {
    const auto bits = static_cast<uint32_t>(1 + random_.below(6));
    const Layout *const layout = random_.any(random_.cut({"register"}, bits), random_.cut({"x"}, 8));
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < bits; ++i) order.push_back(i);
    for (uint32_t i = bits; i-- > 1;) std::swap(order[i], order[random_.below(i + 1)]);
    order.resize(random_.below(bits + 1));
    const ColumnAction action(order, dim::kRegister, bits);
    std::vector<uint64_t> values;
    for (uint64_t i = 0; i < uint64_t{1} << bits; ++i) values.push_back(layout->apply(i));
    const auto moved = action.apply(std::span<const uint64_t>(values));
    const Layout *const acted = action.apply(arena_, *layout);
    for (uint64_t i = 0; i < moved.size(); ++i) ASSERT_EQ(acted->apply(i), moved[i]);
  });
}

}  // namespace
}  // namespace sonde::layout::test
