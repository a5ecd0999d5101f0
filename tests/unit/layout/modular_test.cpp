// Layouts of any sizes: hand calculations, agreement with linear layouts on powers of two, and every answer (also "no
// solution") against trying all inputs.
#include "layout/modular.h"

#include "support.h"

namespace sonde::layout::test {
namespace {

class Modular : public LayoutTest {
 protected:
  // 96 elements over 32 lanes of 3 registers.
  const ModularLayout &registers_and_lanes() {
    const ModularSize ins[] = {{dim::kRegister, 3}, {dim::kLane, 32}};
    const ModularSize outs[] = {{standard_dim(0), 96}};
    const uint64_t bases[] = {1, 2, 3, 6, 12, 24, 48};
    const ModularLayout *const layout = make_modular(arena_, ins, outs, bases);
    EXPECT_NE(layout, nullptr) << arena_.text();
    return *layout;
  }
  const ModularLayout &strided(uint64_t size, uint64_t stride, uint64_t out_size, const char *in = "in",
                               const char *out = "out") {
    const ModularLayout *const layout =
        make_modular_strided(arena_, size, stride, intern_dim(in), {intern_dim(out), out_size});
    EXPECT_NE(layout, nullptr) << arena_.text();
    return *layout;
  }
};

uint64_t value(const ModularLayout &layout, uint64_t flat) {
  std::vector<uint64_t> out(layout.outs().size());
  layout.apply(flat, out);
  return out[0];
}

// All inputs with their values.
std::vector<std::pair<uint64_t, std::vector<uint64_t>>> table(const ModularLayout &layout) {
  std::vector<std::pair<uint64_t, std::vector<uint64_t>>> result;
  for (uint64_t flat = 0; flat < uint64_t{1} << layout.in_bits(); ++flat) {
    if (!layout.is_input(flat)) continue;
    result.emplace_back(flat, std::vector<uint64_t>(layout.outs().size()));
    layout.apply(flat, result.back().second);
  }
  return result;
}

const ModularLayout &any_modular(Arena &arena, std::mt19937_64 &random, std::span<const ModularSize> ins,
                                 std::span<const ModularSize> outs) {
  std::vector<uint64_t> bases;
  for (const ModularSize &in : ins) {
    const bool strided = random() % 2 == 0;
    for (uint64_t step = 1; step < in.size; step *= 2) {
      for (size_t o = 0; o < outs.size(); ++o) {
        const bool follows = strided && step > 1;
        const uint64_t before = follows ? bases[bases.size() - outs.size()] : 0;
        uint64_t next = follows ? before * 2 % outs[o].size : random() % outs[o].size;
        if (!follows && random() % 3 == 0) next = 0;
        bases.push_back(next);
      }
    }
  }
  return *make_modular(arena, ins, outs, bases);
}

std::vector<ModularSize> any_sizes(std::mt19937_64 &random, const char *prefix, uint64_t most_dims, uint64_t most) {
  std::vector<ModularSize> sizes;
  const uint64_t count = 1 + random() % most_dims;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t size = random() % 2 == 0 ? uint64_t{1} << random() % 4 : 1 + random() % most;
    sizes.push_back({intern_dim(prefix + std::to_string(i)), size});
  }
  return sizes;
}

TEST_F(Modular, AppliesTheWorkedExample) {
  const ModularLayout &layout = registers_and_lanes();
  EXPECT_EQ(layout.inputs(), 96u);
  EXPECT_EQ(value(layout, 2 | 5 << 2), 17u);  // register 2, lane 5: 2 + 3 * 5
  EXPECT_FALSE(layout.is_input(3));           // there is no register 3
  EXPECT_TRUE(layout.is_input(2 | 31 << 2));
  EXPECT_EQ(value(layout, 2 | 31 << 2), 95u);
  // Modulo 7, 5 * 4 = 20 = 6; and 5 * 6 = 30 = 2.
  EXPECT_EQ(value(strided(7, 5, 7), 4), 6u);
  EXPECT_EQ(value(strided(7, 5, 7), 6), 2u);
}

TEST_F(Modular, RefusesWhatDoesNotFit) {
  const ModularSize in{dim::kLane, 5};
  const ModularSize out{standard_dim(0), 6};
  const uint64_t past[] = {1, 2, 6};
  EXPECT_EQ(make_modular(arena_, {&in, 1}, {&out, 1}, past), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  const uint64_t few[] = {1, 2};
  EXPECT_EQ(make_modular(arena_, {&in, 1}, {&out, 1}, few), nullptr);
  const ModularSize empty{dim::kLane, 0};
  EXPECT_EQ(make_modular(arena_, {&empty, 1}, {&out, 1}, {}), nullptr);
  const ModularSize large{dim::kLane, UINT64_MAX};
  EXPECT_EQ(make_modular(arena_, {&large, 1}, {&out, 1}, {}), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kUnsupported);
  EXPECT_EQ(linear_from_modular(arena_, registers_and_lanes()), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

TEST_F(Modular, SolvesTheWorkedExample) {
  const ModularLayout &layout = registers_and_lanes();
  for (uint64_t y = 0; y < 96; ++y) {
    uint64_t input = 0;
    ASSERT_TRUE(solve(arena_, layout, {&y, 1}, input)) << arena_.text();
    EXPECT_EQ(input, y % 3 | (y / 3) << 2);
  }
  // Its inverse takes remainders and quotients, which are no sums over the bits of y: 3 = 1 + 2 has lane 1.
  EXPECT_EQ(invert(arena_, layout), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution) << arena_.text();
}

TEST_F(Modular, InvertsMultiplicationsModuloAPrime) {
  // 5 * 3 = 15 = 1 modulo 7.
  const ModularLayout *const inverse = invert(arena_, strided(7, 5, 7));
  ASSERT_NE(inverse, nullptr) << arena_.text();
  EXPECT_TRUE(equal(*inverse, strided(7, 3, 7, "out", "in")));
  // Modulo 2^61 - 1, far past what can be tried: 2^60 * 2 = 2^61 = 1.
  const uint64_t prime = (uint64_t{1} << 61) - 1;
  const ModularLayout *const large = invert(arena_, strided(prime, uint64_t{1} << 60, prime));
  ASSERT_NE(large, nullptr) << arena_.text();
  EXPECT_TRUE(equal(*large, strided(prime, 2, prime, "out", "in")));
  // 3 divides 9.
  EXPECT_EQ(invert(arena_, strided(9, 3, 9)), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
  EXPECT_EQ(invert(arena_, strided(9, 1, 11)), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

TEST_F(Modular, SolvesCongruencesAtAnySize) {
  // x modulo two primes; 10^11 < 1000003 * 999983, so the remainders name x.
  const ModularSize in{intern_dim("x"), 100000000000};
  const ModularSize outs[] = {{intern_dim("p"), 1000003}, {intern_dim("q"), 999983}};
  std::vector<uint64_t> bases;
  for (uint64_t step = 1; step < in.size; step *= 2) bases.insert(bases.end(), {step % 1000003, step % 999983});
  const ModularLayout &layout = *make_modular(arena_, {&in, 1}, outs, bases);
  for (const uint64_t x : {uint64_t{0}, uint64_t{31415926535}, uint64_t{99999999999}}) {
    const uint64_t wanted[] = {x % 1000003, x % 999983};
    uint64_t input = 0;
    ASSERT_TRUE(solve(arena_, layout, wanted, input)) << arena_.text();
    EXPECT_EQ(input, x);
  }
  const uint64_t beyond[] = {100000000001 % 1000003, 100000000001 % 999983};
  uint64_t input = 0;
  EXPECT_FALSE(solve(arena_, layout, beyond, input));
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

TEST_F(Modular, SolvesNumberSystemsAtAnySize) {
  // 10^6 * 10^6 values in one dim of 10^12 + 1: y = a + 10^6 b.
  const ModularSize ins[] = {{intern_dim("a"), 1000000}, {intern_dim("b"), 1000000}};
  const ModularSize out{intern_dim("y"), 1000000000001};
  std::vector<uint64_t> bases;
  for (uint64_t step = 1; step < 1000000; step *= 2) bases.push_back(step);
  for (uint64_t step = 1; step < 1000000; step *= 2) bases.push_back(step * 1000000);
  const ModularLayout &layout = *make_modular(arena_, ins, {&out, 1}, bases);
  const uint64_t y = 271828182845;
  uint64_t input = 0;
  ASSERT_TRUE(solve(arena_, layout, {&y, 1}, input)) << arena_.text();
  EXPECT_EQ(layout.ins()[0].of(input), 182845u);
  EXPECT_EQ(layout.ins()[1].of(input), 271828u);
  const uint64_t last = 1000000000000;
  EXPECT_FALSE(solve(arena_, layout, {&last, 1}, input));
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

TEST_F(Modular, SaysWhenItCannotTell) {
  // 48 bits with arbitrary steps: a subset sum.
  std::mt19937_64 random(5);
  const ModularSize in{intern_dim("in"), uint64_t{1} << 48};
  const ModularSize out{intern_dim("out"), (uint64_t{1} << 61) - 1};
  std::vector<uint64_t> bases;
  for (int bit = 0; bit < 48; ++bit) bases.push_back(random() >> 4);
  const uint64_t y = 12345;
  uint64_t input = 0;
  EXPECT_FALSE(solve(arena_, *make_modular(arena_, {&in, 1}, {&out, 1}, bases), {&y, 1}, input));
  EXPECT_EQ(arena_.fault(), Fault::kUnsupported);
  // All steps even, the size too: an odd value is out of reach, however many bits there are.
  const ModularSize even{intern_dim("out"), (uint64_t{1} << 61) - 2};
  for (uint64_t &basis : bases) basis = basis / 4 * 2;
  EXPECT_FALSE(solve(arena_, *make_modular(arena_, {&in, 1}, {&even, 1}, bases), {&y, 1}, input));
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

TEST_F(Modular, MultipliesSizes) {
  // 3 registers by 32 lanes, as the worked example.
  const ModularLayout *const made =
      product(arena_, strided(3, 1, 3, "register", "dim0"), strided(32, 1, 32, "lane", "dim0"));
  ASSERT_NE(made, nullptr) << arena_.text();
  EXPECT_TRUE(equal(*made, registers_and_lanes()));
  // A shared in dim of 3 and 2 values: v mod 3 and v / 3. Values 0, 1, 2, 8, 9, 10 are no sum over the bits of v.
  EXPECT_EQ(product(arena_, strided(3, 1, 8, "in", "out"), strided(2, 1, 3, "in", "out")), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
  // With 3 in place of 8 they are 0 ... 5.
  const ModularLayout *const dense = product(arena_, strided(3, 1, 3), strided(2, 1, 2));
  ASSERT_NE(dense, nullptr) << arena_.text();
  EXPECT_TRUE(equal(*dense, strided(6, 1, 6)));
}

TEST_F(Modular, ComposesMultiplications) {
  // 3 (4 x) = 12 x = 2 x modulo 10.
  const ModularLayout *const both = compose(arena_, strided(10, 4, 10, "x", "y"), strided(10, 3, 10, "y", "z"));
  ASSERT_NE(both, nullptr) << arena_.text();
  EXPECT_TRUE(equal(*both, strided(10, 2, 10, "x", "z")));
  // The low bits of a sum modulo 10 are no xor of bits: 3 = 1 + 2, but 5 + ... wraps.
  const ModularSize y{intern_dim("y"), 10};
  const ModularSize z{intern_dim("z"), 16};
  const uint64_t bits[] = {1, 2, 4, 8};
  EXPECT_EQ(compose(arena_, strided(10, 3, 10, "x", "y"), *make_modular(arena_, {&y, 1}, {&z, 1}, bits)), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

TEST_F(Modular, AgreesWithLinearLayoutsOnPowersOfTwo) {
  std::mt19937_64 random(21);
  uint64_t inverted = 0;
  for (uint64_t round = 0; round < cases(); ++round) {
    arena_.reset();
    const auto any = [&](std::vector<DimSize> ins, std::vector<DimSize> outs) {
      uint32_t in_bits = 0;
      uint32_t out_bits = 0;
      for (const DimSize &in : ins) in_bits += in.bits;
      for (const DimSize &out : outs) out_bits += out.bits;
      std::vector<uint64_t> columns(in_bits);
      for (uint64_t &column : columns) column = random() & low_mask(out_bits);
      return make_layout(arena_, ins, outs, columns);
    };
    const DimName a = intern_dim("a");
    const DimName b = intern_dim("b");
    const DimName c = intern_dim("c");
    const DimName d = intern_dim("d");
    const Layout *const first = any({{a, 3}, {b, 2}}, {{c, 2}, {d, 3}});
    const Layout *const second = any({{d, 3}, {c, 3}}, {{a, 4}, {b, 2}});
    const ModularLayout *const first_modular = modular_from_linear(arena_, *first);
    const ModularLayout *const second_modular = modular_from_linear(arena_, *second);
    ASSERT_TRUE(equal(*linear_from_modular(arena_, *first_modular), *first));
    const ModularLayout *const composed = compose(arena_, *first_modular, *second_modular);
    ASSERT_NE(composed, nullptr) << arena_.text();
    ASSERT_TRUE(equal(*linear_from_modular(arena_, *composed), *compose(arena_, *first, *second)));
    const Layout *const other = any({{a, 1}, {b, 2}}, {{c, 1}, {d, 2}});
    const ModularLayout *const multiplied = product(arena_, *first_modular, *modular_from_linear(arena_, *other));
    ASSERT_NE(multiplied, nullptr) << arena_.text();
    ASSERT_TRUE(equal(*linear_from_modular(arena_, *multiplied), *product(arena_, *first, *other)));
    const Layout *const inverse = invert(arena_, *first);
    const ModularLayout *const inverse_modular = invert(arena_, *first_modular);
    ASSERT_EQ(inverse != nullptr, inverse_modular != nullptr) << arena_.text();
    if (inverse == nullptr) {
      ASSERT_EQ(arena_.fault(), Fault::kNoSolution);
      continue;
    }
    ++inverted;
    ASSERT_TRUE(equal(*linear_from_modular(arena_, *inverse_modular), *inverse));
  }
  EXPECT_GT(inverted, cases() / 10);  // about 0.3 of random 5 x 5 matrices are invertible
}

TEST_F(Modular, SolvesExactlyWhatHasASolution) {
  std::mt19937_64 random(22);
  uint64_t found = 0;
  uint64_t none = 0;
  for (uint64_t round = 0; round < cases(); ++round) {
    arena_.reset();
    const ModularLayout &layout =
        any_modular(arena_, random, any_sizes(random, "in", 3, 12), any_sizes(random, "out", 2, 40));
    const auto all = table(layout);
    for (int i = 0; i < 4; ++i) {
      std::vector<uint64_t> wanted;
      for (const ModularDim &out : layout.outs()) wanted.push_back(random() % out.size);
      const bool exists = std::any_of(all.begin(), all.end(), [&](const auto &each) { return each.second == wanted; });
      uint64_t input = 0;
      ASSERT_EQ(solve(arena_, layout, wanted, input), exists) << to_string(layout) << arena_.text();
      ++(exists ? found : none);
      if (!exists) {
        ASSERT_EQ(arena_.fault(), Fault::kNoSolution);
        continue;
      }
      ASSERT_TRUE(layout.is_input(input));
      std::vector<uint64_t> reached(wanted.size());
      layout.apply(input, reached);
      ASSERT_EQ(reached, wanted);
    }
  }
  EXPECT_GT(found, cases() / 2);
  EXPECT_GT(none, cases() / 2);
}

TEST_F(Modular, ComposesExactlyWhatIsALayout) {
  std::mt19937_64 random(23);
  uint64_t found = 0;
  uint64_t none = 0;
  for (uint64_t round = 0; round < cases(); ++round) {
    arena_.reset();
    const auto between = any_sizes(random, "between", 2, 12);
    const ModularLayout &inner = any_modular(arena_, random, any_sizes(random, "in", 2, 9), between);
    const ModularLayout &outer = any_modular(arena_, random, between, any_sizes(random, "out", 2, 12));
    const auto through = [&](uint64_t flat) {
      std::vector<uint64_t> middle(inner.outs().size());
      std::vector<uint64_t> last(outer.outs().size());
      inner.apply(flat, middle);
      uint64_t next = 0;
      for (size_t i = 0; i < middle.size(); ++i) next |= middle[i] << outer.ins()[i].shift;
      outer.apply(next, last);
      return last;
    };
    bool exists = true;
    for (const auto &[flat, ignored] : table(inner)) {
      std::vector<uint64_t> sum(outer.outs().size(), 0);
      for (uint64_t rest = flat; rest != 0; rest &= rest - 1) {
        const auto part = through(rest & -rest);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] = modular_sum(outer.outs()[i], sum[i], part[i]);
      }
      exists = exists && sum == through(flat);
    }
    const ModularLayout *const result = compose(arena_, inner, outer);
    ASSERT_EQ(result != nullptr, exists) << to_string(inner) << to_string(outer) << arena_.text();
    ++(exists ? found : none);
    if (result == nullptr) {
      ASSERT_EQ(arena_.fault(), Fault::kNoSolution);
      continue;
    }
    for (const auto &[flat, values] : table(*result)) ASSERT_EQ(values, through(flat));
  }
  EXPECT_GT(found, cases() / 10);
  EXPECT_GT(none, cases() / 10);
}

TEST_F(Modular, ProductsAreTheDefinition) {
  std::mt19937_64 random(24);
  uint64_t found = 0;
  for (uint64_t round = 0; round < cases(); ++round) {
    arena_.reset();
    const ModularLayout &inner =
        any_modular(arena_, random, any_sizes(random, "in", 2, 6), any_sizes(random, "out", 2, 6));
    const ModularLayout &outer =
        any_modular(arena_, random, any_sizes(random, "in", 2, 6), any_sizes(random, "out", 2, 6));
    const ModularLayout *const result = product(arena_, inner, outer);
    if (result == nullptr) {
      ASSERT_EQ(arena_.fault(), Fault::kNoSolution) << arena_.text();
      continue;
    }
    ++found;
    for (const auto &[flat, values] : table(*result)) {
      uint64_t inner_flat = 0;
      uint64_t outer_flat = 0;
      for (const ModularDim &in : result->ins()) {
        const ModularDim *const a = inner.find_in(in.name);
        const ModularDim *const b = outer.find_in(in.name);
        const uint64_t index = in.of(flat);
        const uint64_t inside = a == nullptr ? 1 : a->size;
        if (a != nullptr) inner_flat |= index % inside << a->shift;
        if (b != nullptr) outer_flat |= index / inside << b->shift;
      }
      std::vector<uint64_t> low(inner.outs().size());
      std::vector<uint64_t> high(outer.outs().size());
      inner.apply(inner_flat, low);
      outer.apply(outer_flat, high);
      for (size_t o = 0; o < values.size(); ++o) {
        const ModularDim *const a = inner.find_out(result->outs()[o].name);
        const ModularDim *const b = outer.find_out(result->outs()[o].name);
        uint64_t wanted = a == nullptr ? 0 : low[static_cast<size_t>(a - inner.outs().data())];
        if (b != nullptr) {
          wanted += high[static_cast<size_t>(b - outer.outs().data())] * (a == nullptr ? 1 : a->size);
        }
        ASSERT_EQ(values[o], wanted);
      }
    }
  }
  EXPECT_GT(found, cases() / 10);
}

TEST_F(Modular, InvertsExactlyWhatHasAnInverse) {
  std::mt19937_64 random(25);
  uint64_t found = 0;
  for (uint64_t round = 0; round < cases(); ++round) {
    arena_.reset();
    const uint64_t size = 2 + random() % 14;
    const ModularSize in{intern_dim("in"), size};
    const ModularSize out{intern_dim("out"), size};
    const ModularLayout &layout = any_modular(arena_, random, {&in, 1}, {&out, 1});
    std::vector<uint64_t> preimage(size, size);
    bool exists = true;
    for (uint64_t x = 0; x < size; ++x) {
      exists = exists && preimage[value(layout, x)] == size;
      preimage[value(layout, x)] = x;
    }
    // Its values at the bits must add up.
    for (uint64_t y = 0; exists && y < size; ++y) {
      uint64_t sum = 0;
      for (uint64_t rest = y; rest != 0; rest &= rest - 1) {
        sum = modular_sum(layout.ins()[0], sum, preimage[rest & -rest]);
      }
      exists = sum == preimage[y];
    }
    const ModularLayout *const inverse = invert(arena_, layout);
    ASSERT_EQ(inverse != nullptr, exists) << to_string(layout) << arena_.text();
    if (inverse == nullptr) {
      ASSERT_EQ(arena_.fault(), Fault::kNoSolution) << arena_.text();
      continue;
    }
    ++found;
    for (uint64_t y = 0; y < size; ++y) ASSERT_EQ(value(*inverse, y), preimage[y]);
  }
  EXPECT_GT(found, cases() / 20);
}

TEST_F(Modular, InvertAndComposeGoesThroughTheOuterLayout) {
  std::mt19937_64 random(26);
  uint64_t found = 0;
  for (uint64_t round = 0; round < cases(); ++round) {
    arena_.reset();
    const auto outs = any_sizes(random, "out", 2, 12);
    const ModularLayout &layout = any_modular(arena_, random, any_sizes(random, "in", 2, 9), outs);
    const ModularLayout &outer = any_modular(arena_, random, any_sizes(random, "memory", 2, 12), outs);
    const ModularLayout *const between = invert_and_compose(arena_, layout, outer);
    if (between == nullptr) {
      ASSERT_TRUE(arena_.fault() == Fault::kNoSolution || arena_.fault() == Fault::kUnsupported) << arena_.text();
      continue;
    }
    ++found;
    for (const auto &[flat, values] : table(*between)) {
      uint64_t next = 0;
      for (size_t i = 0; i < values.size(); ++i) next |= values[i] << outer.ins()[i].shift;
      std::vector<uint64_t> reached(outs.size());
      std::vector<uint64_t> wanted(outs.size());
      outer.apply(next, reached);
      layout.apply(flat, wanted);
      ASSERT_EQ(reached, wanted);
    }
  }
  EXPECT_GT(found, cases() / 20);
}

}  // namespace
}  // namespace sonde::layout::test
