// Conversion plans: by hand, and carried out on data.
#include "layout/plan.h"

#include <gtest/gtest.h>

#include <map>

#include "conversion_cases.h"
#include "layout/algebra.h"

namespace sonde::layout {
namespace {

using test::distributed;

class PlanTest : public ::testing::Test {
 protected:
  const Plan *plan(const Layout *source, const Layout *destination, PlanOptions options = {}) {
    EXPECT_NE(source, nullptr) << arena_.text();
    EXPECT_NE(destination, nullptr) << arena_.text();
    const Plan *const result = plan_conversion(arena_, *source, *destination, options);
    EXPECT_NE(result, nullptr) << arena_.text() << to_string(*source) << to_string(*destination);
    return result;
  }

  // Whether the plan, carried out on a tensor of different values, gives what the definition gives.
  ::testing::AssertionResult converts(const Plan &made, const Layout &source, const Layout &destination,
                                      bool by_rounds = false, ExecutionCounts *counts = nullptr) {
    std::vector<uint64_t> data(uint64_t{1} << source.in_bits());
    for (uint64_t flat = 0; flat < data.size(); ++flat) data[flat] = source.apply(flat) * 7 + 1;
    std::vector<uint64_t> result;
    std::vector<uint64_t> expected;
    if (!execute(arena_, made, data, result, counts, by_rounds) ||
        !convert_directly(arena_, source, destination, data, expected)) {
      return ::testing::AssertionFailure() << arena_.text() << to_string(source) << to_string(destination);
    }
    if (result == expected) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << plan_text(made.kind) << " gives other data" << to_string(source)
                                         << to_string(destination);
  }

  Arena arena_;
};

TEST_F(PlanTest, TheSameLayoutNeedsNothing) {
  const Plan *const made = plan(test::mma_128(arena_), test::mma_128(arena_));
  EXPECT_EQ(made->kind, PlanKind::kNothing);
  EXPECT_EQ(made->reduced->in_bits(), 0u);
}

TEST_F(PlanTest, BroadcastRegistersNeedNothing) {
  const Layout *const plain = distributed(arena_, {2}, {{1}}, {{2}});
  const Layout *const repeated = distributed(arena_, {2}, {{0}, {1}}, {{2}});
  EXPECT_EQ(plan(plain, repeated)->kind, PlanKind::kNothing);
  EXPECT_EQ(plan(repeated, plain)->kind, PlanKind::kNothing);
  EXPECT_EQ(plan(repeated, plain)->source_broadcasts.of_registers(), 2u);
  EXPECT_TRUE(converts(*plan(plain, repeated), *plain, *repeated));
  EXPECT_TRUE(converts(*plan(repeated, plain), *repeated, *plain));
}

TEST_F(PlanTest, RegistersInAnotherOrderArePermuted) {
  const Layout *const a = distributed(arena_, {3}, {{1}, {2}}, {{4}});
  const Layout *const b = distributed(arena_, {3}, {{2}, {1}}, {{4}});
  const Plan *const made = plan(a, b);
  EXPECT_EQ(made->kind, PlanKind::kRegisters);
  // out[i] = in[C(i)]: 0, 2, 1, 3.
  const std::vector<uint64_t> from = {made->reduced->apply(0), made->reduced->apply(1), made->reduced->apply(2),
                                      made->reduced->apply(3)};
  EXPECT_EQ(from, (std::vector<uint64_t>{0, 2, 1, 3}));
  EXPECT_TRUE(converts(*made, *a, *b));
}

TEST_F(PlanTest, ARegisterAndALaneExchangedTakeOneShuffleForTwoRegisters) {
  const Layout *const a = distributed(arena_, {2}, {{1}}, {{2}});
  const Layout *const b = distributed(arena_, {2}, {{2}}, {{1}});
  const Plan *const made = plan(a, b);
  ASSERT_EQ(made->kind, PlanKind::kShuffles);
  EXPECT_EQ(made->shuffles->mixed_count, 1u);
  EXPECT_FALSE(made->shuffles->moves_lanes);
  EXPECT_EQ(made->shuffles->shuffles, 1u);  // half of 2 registers
  EXPECT_EQ(made->shuffles->selects, 3u);   // one and a half times 2
  EXPECT_TRUE(converts(*made, *a, *b));
  // The paper's way moves both registers, one a round.
  ASSERT_TRUE(made->shuffles->rounds.exists);
  EXPECT_EQ(made->shuffles->rounds.round_bits, 1u);
  EXPECT_EQ(made->shuffles->rounds.shuffles, 2u);
  EXPECT_TRUE(converts(*made, *a, *b, true));
}

TEST_F(PlanTest, SmallElementsAreShuffledInPacks) {
  // 16 registers of 8 bits; register 1 and lane 1 exchanged. Packs of 4: 4 registers of 32 bits, 2 shuffles, 6 selects.
  const Layout *const a = distributed(arena_, {5}, {{1}, {2}, {4}, {8}}, {{16}});
  const Layout *const b = distributed(arena_, {5}, {{16}, {2}, {4}, {8}}, {{1}});
  PlanOptions options;
  options.bits_per_element = 8;
  const Plan *const made = plan(a, b, options);
  ASSERT_EQ(made->kind, PlanKind::kShuffles);
  EXPECT_EQ(made->shuffles->packed_log2, 2u);
  EXPECT_EQ(made->shuffles->shuffles, 2u);
  EXPECT_EQ(made->shuffles->selects, 6u);
  // V = registers 2 and 4: words of 32 bits; R = register 8 and the pair's: 4 rounds.
  EXPECT_EQ(made->shuffles->rounds.vector_count, 2u);
  EXPECT_EQ(made->shuffles->rounds.shuffles, 4u);
  EXPECT_TRUE(converts(*made, *a, *b));
  EXPECT_TRUE(converts(*made, *a, *b, true));
}

TEST_F(PlanTest, LanesInAnotherOrderTakeOneShuffleEach) {
  const Layout *const a = distributed(arena_, {3}, {{1}}, {{2}, {4}});
  const Layout *const b = distributed(arena_, {3}, {{1}}, {{4}, {2}});
  const Plan *const made = plan(a, b);
  ASSERT_EQ(made->kind, PlanKind::kShuffles);
  EXPECT_EQ(made->shuffles->mixed_count, 0u);
  EXPECT_TRUE(made->shuffles->moves_lanes);
  EXPECT_EQ(made->shuffles->shuffles, 2u);  // of 2 registers
  EXPECT_EQ(made->shuffles->selects, 0u);
  EXPECT_TRUE(converts(*made, *a, *b));
}

TEST_F(PlanTest, TwoTranspositionsGoThroughMemoryUnlessAllowed) {
  const Layout *const a = distributed(arena_, {4}, {{1}, {2}}, {{4}, {8}});
  const Layout *const b = distributed(arena_, {4}, {{4}, {8}}, {{1}, {2}});
  EXPECT_EQ(plan(a, b)->kind, PlanKind::kSharedMemory);
  EXPECT_TRUE(converts(*plan(a, b), *a, *b));
  PlanOptions options;
  options.most_transpositions = 2;
  const Plan *const made = plan(a, b, options);
  ASSERT_EQ(made->kind, PlanKind::kShuffles);
  // m = 2, R = 4: 2 m R selects, (1 - 1/4) R shuffles.
  EXPECT_EQ(made->shuffles->mixed_count, 2u);
  EXPECT_EQ(made->shuffles->selects, 16u);
  EXPECT_EQ(made->shuffles->shuffles, 3u);
  EXPECT_TRUE(converts(*made, *a, *b));
}

TEST_F(PlanTest, WarpsInAnotherOrderGoThroughMemory) {
  const Layout *const a = distributed(arena_, {3}, {{1}}, {{2}}, {{4}});
  const Layout *const b = distributed(arena_, {3}, {{4}}, {{2}}, {{1}});
  const Plan *const made = plan(a, b);
  EXPECT_EQ(made->kind, PlanKind::kSharedMemory);
  EXPECT_EQ(made->shuffles, nullptr);
  EXPECT_TRUE(converts(*made, *a, *b));
}

TEST_F(PlanTest, BlocksInAnotherOrderGoThroughDistributedMemory) {
  const Layout *const a = distributed(arena_, {3}, {{1}}, {{2}}, {}, {{4}});
  const Layout *const b = distributed(arena_, {3}, {{4}}, {{2}}, {}, {{1}});
  const Plan *const made = plan(a, b);
  EXPECT_EQ(made->kind, PlanKind::kDistributedSharedMemory);
  EXPECT_TRUE(converts(*made, *a, *b));
}

// 128x128 of 16 bits from rows to a matrix multiply, 4 warps: 128 elements each thread.
TEST_F(PlanTest, RowsBecomeMatrixMultiplyOutput) {
  PlanOptions options;
  options.bits_per_element = 16;
  const Layout *const source = test::mma_128(arena_);
  const Layout *const destination = test::blocked_128(arena_);
  const Plan *const made = plan(source, destination, options);
  ASSERT_EQ(made->kind, PlanKind::kSharedMemory);
  const SharedPlan &shared = *made->shared;
  // Vector (0,1)(0,64)(64,0): 8 elements, 128 bits, registers of both sides; nothing left to repeat.
  EXPECT_EQ(shared.store.access.vector_bits, 128u);
  EXPECT_EQ(shared.load.access.vector_bits, 128u);
  EXPECT_EQ(shared.store.access.instructions, 16u);
  EXPECT_EQ(shared.load.access.instructions, 16u);
  EXPECT_EQ(shared.repetitions, 1u);
  EXPECT_EQ(shared.bytes, 32768u);
  // 32 lanes of 16 bytes: 4 wavefronts at best, and that is what it takes.
  EXPECT_EQ(shared.store.banks.wavefronts, 4u);
  EXPECT_EQ(shared.load.banks.wavefronts, 4u);
  EXPECT_EQ(shared.store.banks.conflicts() + shared.load.banks.conflicts(), 0u);
  EXPECT_TRUE(converts(*made, *source, *destination));
}

TEST_F(PlanTest, MatrixInstructionsTakeLessMemory) {
  PlanOptions options;
  options.bits_per_element = 16;
  options.has_store_matrix = true;
  options.has_load_matrix = true;
  const Layout *const source = test::mma_128(arena_);
  const Layout *const destination = test::blocked_128(arena_);
  const Plan *const made = plan(source, destination, options);
  ASSERT_EQ(made->kind, PlanKind::kSharedMemory);
  const SharedPlan &shared = *made->shared;
  // Published: st.v4 and ldmatrix, and (64,0)(0,64) pass one after the other: a quarter of 32 KiB, 4 times.
  EXPECT_EQ(shared.store.access.instruction, SharedInstruction::kVector);
  EXPECT_EQ(shared.store.access.vector_bits, 128u);
  EXPECT_EQ(shared.load.access.instruction, SharedInstruction::kMatrix);
  EXPECT_EQ(shared.load.access.matrices, 4u);
  EXPECT_EQ(shared.load.access.vector_bits, 128u);  // four registers of 32 bits
  EXPECT_EQ(shared.repetitions, 4u);
  EXPECT_EQ(shared.bytes, 8192u);
  EXPECT_EQ(shared.bytes_in_all, 32768u);
  EXPECT_EQ(shared.store.banks.conflicts() + shared.load.banks.conflicts(), 0u);
  EXPECT_TRUE(converts(*made, *source, *destination));
}

TEST_F(PlanTest, TransposedMatricesLoadAColumnMajorOperand) {
  // Rows of 8 contiguous elements on one side, columns on the other: what .trans is for.
  const Layout *const rows =
      distributed(arena_, {5, 5}, {{0, 1}, {0, 2}, {0, 4}, {16, 0}, {0, 16}}, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {0, 8}});
  const Layout *const operand =
      distributed(arena_, {5, 5}, {{1, 0}, {8, 0}, {0, 8}, {16, 0}, {0, 16}}, {{2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}});
  PlanOptions options;
  options.bits_per_element = 16;
  options.has_load_matrix = true;
  const Plan *const made = plan(rows, operand, options);
  ASSERT_EQ(made->kind, PlanKind::kSharedMemory);
  EXPECT_EQ(made->shared->store.access.instruction, SharedInstruction::kVector);
  EXPECT_EQ(made->shared->load.access.instruction, SharedInstruction::kTransposedMatrix);
  EXPECT_EQ(made->shared->store.banks.conflicts() + made->shared->load.banks.conflicts(), 0u);
  EXPECT_TRUE(converts(*made, *rows, *operand));
}

TEST_F(PlanTest, TensorsWithTheirDimsInAnotherOrderAreTheSame) {
  const Layout *const a = distributed(arena_, {1, 2}, {{1, 0}}, {{0, 1}, {0, 2}});
  const std::vector<DimSize> ins = {{dim::kLane, 2}, {dim::kRegister, 1}};
  const std::vector<DimSize> outs = {{standard_dim(1), 2}, {standard_dim(0), 1}};
  const std::vector<uint64_t> rows = {1, 0, 2, 0, 0, 1};
  const Layout *const b = make_from_bases(arena_, ins, outs, rows);
  EXPECT_EQ(plan(a, b)->kind, PlanKind::kNothing);
}

TEST_F(PlanTest, AnOffsetMovesTheWholeTensor) {
  const std::vector<DimSize> ins = {{dim::kRegister, 1}, {dim::kLane, 5}};
  const DimSize out{standard_dim(0), 6};
  const std::vector<uint64_t> columns = {1, 2, 4, 8, 16, 32};
  const Layout *const plain = make_layout(arena_, ins, {&out, 1}, columns);
  const Layout *const other_register = make_layout(arena_, ins, {&out, 1}, columns, 1);
  const Layout *const other_lane = make_layout(arena_, ins, {&out, 1}, columns, 6);
  EXPECT_EQ(plan(plain, other_register)->kind, PlanKind::kRegisters);
  EXPECT_TRUE(converts(*plan(plain, other_register), *plain, *other_register));
  EXPECT_EQ(plan(plain, other_lane)->kind, PlanKind::kSharedMemory);
  EXPECT_TRUE(converts(*plan(plain, other_lane), *plain, *other_lane));
  EXPECT_TRUE(converts(*plan(other_lane, plain), *other_lane, *plain));
}

// Registers agree, so they are kept and the lanes solved without them; the offset needs a register all the same.
TEST_F(PlanTest, AnOffsetInADimThatAgreesIsFound) {
  const std::vector<DimSize> ins = {{dim::kRegister, 1}, {dim::kLane, 2}};
  const DimSize out{standard_dim(0), 3};
  const Layout *const a = make_layout(arena_, ins, {&out, 1}, std::vector<uint64_t>{1, 2, 4});
  const Layout *const b = make_layout(arena_, ins, {&out, 1}, std::vector<uint64_t>{1, 6, 4}, 1);
  const Plan *const made = plan(a, b);
  ASSERT_NE(made, nullptr);
  // Lane 1 of b is 6 = lanes 1 and 2 of a, that is 0b110 flattened.
  EXPECT_EQ(made->conversion->columns()[1], 0b110u);
  EXPECT_EQ(made->conversion->offset(), 1u);
  EXPECT_TRUE(converts(*made, *a, *b));
}

TEST_F(PlanTest, RefusesWhatIsNoConversion) {
  const Layout *const a = distributed(arena_, {3}, {{1}}, {{2}, {4}});
  EXPECT_EQ(plan_conversion(arena_, *a, *distributed(arena_, {2}, {{1}}, {{2}}), {}), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  EXPECT_EQ(plan_conversion(arena_, *make_identity(arena_, 8, dim::kOffset, standard_dim(0)), *a, {}), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  // The source holds only even elements.
  EXPECT_EQ(plan_conversion(arena_, *distributed(arena_, {3}, {{0}}, {{2}, {4}}), *a, {}), nullptr);
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
}

// A destination whose lanes run over what some of the source's registers hold, and the other way round, as matrix
// instructions want it: lanes 1 and 2, or lanes 4 to 16 for the transposing ones.
const Layout *for_matrices(Arena &arena, std::mt19937_64 &random, const Layout &layout, bool transposes) {
  std::vector<uint64_t> columns(layout.columns().begin(), layout.columns().end());
  std::vector<DimSize> ins;
  for (const Dim &in : layout.ins()) ins.push_back({in.name, in.bits});
  const uint32_t registers = ins[0].bits;
  const uint32_t exchanged = transposes ? 3 : 2;
  if (registers > exchanged && ins[1].bits == 5) {
    for (uint32_t i = 0; i < exchanged; ++i) std::swap(columns[i], columns[registers + (transposes ? 2 : 0) + i]);
    std::shuffle(columns.begin(), columns.begin() + registers, random);
  }
  const DimSize out{standard_dim(0), layout.out_bits()};
  return make_layout(arena, ins, {&out, 1}, columns);
}

// Columns of two layouts that differ by a few exchanges, so that every kind of plan occurs.
const Layout *changed(Arena &arena, std::mt19937_64 &random, const Layout &layout) {
  std::vector<uint64_t> columns(layout.columns().begin(), layout.columns().end());
  std::vector<DimSize> ins;
  for (const Dim &in : layout.ins()) ins.push_back({in.name, in.bits});
  const uint64_t most = 1 + random() % 4;
  uint64_t reach = columns.size();
  if (random() % 2 == 0) reach = ins[0].bits + (random() % 2 == 0 ? ins[1].bits : 0);
  for (uint64_t i = 0; reach > 1 && i < most; ++i) std::swap(columns[random() % reach], columns[random() % reach]);
  const DimSize out{standard_dim(0), layout.out_bits()};
  return make_layout(arena, ins, {&out, 1}, columns);
}

TEST_F(PlanTest, EveryPlanDoesWhatItsLayoutsSay) {
  std::mt19937_64 random(21);
  std::map<PlanKind, uint64_t> kinds;
  std::map<SharedInstruction, uint64_t> instructions;
  uint64_t by_rounds = 0;
  for (uint64_t i = 0; i < test::cases(); ++i) {
    arena_.reset();
    test::RandomLayout wish;
    wish.dims = 4 + static_cast<uint32_t>(random() % (i % 64 == 0 ? 13 : i % 16 == 0 ? 10 : 7));
    wish.lanes = i % 4 == 0 ? static_cast<uint32_t>(random() % 7) : 5;
    wish.warps = static_cast<uint32_t>(random() % 3);
    wish.blocks = static_cast<uint32_t>(random() % 3 == 0 ? random() % 3 : 0);
    wish.broadcasts = random() % 2 == 0 ? 0 : 0.15;
    wish.zero_registers = random() % 4 == 0 ? 1 + random() % 2 : 0;
    const Layout *const source = test::random_distributed(arena_, random, wish);
    const Layout *destination = source;
    switch (random() % 5) {
      case 0:
        break;
      case 1:
        destination = test::random_distributed(arena_, random, wish);
        break;
      case 2:
        destination = for_matrices(arena_, random, *source, random() % 2 == 0);
        break;
      default:
        destination = changed(arena_, random, *source);
        break;
    }
    PlanOptions options;
    options.bits_per_element = 1u << random() % 8;
    options.most_transpositions = static_cast<uint32_t>(random() % 4);
    options.only_memory = random() % 8 == 0;
    options.has_load_matrix = random() % 2 == 0;
    options.has_store_matrix = random() % 2 == 0;
    if (random() % 4 == 0) options.memory.banks = 64;
    if (i % 8 == 7) {
      destination = for_matrices(arena_, random, *source, i % 16 == 7);
      options.bits_per_element = 16;
    }
    const Plan *const made = plan(source, destination, options);
    ASSERT_NE(made, nullptr);
    ++kinds[made->kind];
    ExecutionCounts counts;
    ASSERT_TRUE(converts(*made, *source, *destination, false, &counts));
    if (made->kind == PlanKind::kShuffles) {
      // Registers of 32 bits against elements.
      const uint64_t words = std::max<uint64_t>(1, options.bits_per_element / 32);
      ASSERT_EQ(made->shuffles->shuffles, (counts.shuffles.shuffles * words) >> made->shuffles->packed_log2);
      ASSERT_EQ(made->shuffles->selects, (counts.shuffles.selects * words) >> made->shuffles->packed_log2);
      if (made->shuffles->rounds.exists) {
        ++by_rounds;
        ASSERT_TRUE(converts(*made, *source, *destination, true, &counts));
        ASSERT_EQ(made->shuffles->rounds.shuffles, counts.shuffles.shuffles * words);
      }
    }
    if (made->shared != nullptr) {
      ++instructions[made->shared->store.access.instruction];
      ++instructions[made->shared->load.access.instruction];
      ASSERT_FALSE(made->shared->is_fallback);
    }
  }
  if (test::cases() < 2000) return;
  for (const PlanKind kind : {PlanKind::kNothing, PlanKind::kRegisters, PlanKind::kShuffles, PlanKind::kSharedMemory,
                              PlanKind::kDistributedSharedMemory}) {
    EXPECT_GT(kinds[kind], 20u) << plan_text(kind);
    RecordProperty(std::string("plans, ") + plan_text(kind), std::to_string(kinds[kind]));
  }
  EXPECT_GT(by_rounds, 20u);
  EXPECT_GT(instructions[SharedInstruction::kMatrix], 10u);
  EXPECT_GT(instructions[SharedInstruction::kTransposedMatrix], 5u);
}

TEST_F(PlanTest, ThereAndBackIsTheIdentity) {
  std::mt19937_64 random(22);
  for (uint64_t i = 0; i < test::cases() / 2; ++i) {
    arena_.reset();
    test::RandomLayout wish;
    wish.dims = 6 + static_cast<uint32_t>(random() % 5);
    wish.warps = static_cast<uint32_t>(random() % 3);
    wish.blocks = static_cast<uint32_t>(random() % 2);
    wish.zero_registers = static_cast<uint32_t>(random() % 2);
    const Layout *const source = test::random_distributed(arena_, random, wish);
    const Layout *const destination =
        random() % 2 == 0 ? test::random_distributed(arena_, random, wish) : changed(arena_, random, *source);
    PlanOptions options;
    options.bits_per_element = 8u << random() % 4;
    options.most_transpositions = 3;
    std::vector<uint64_t> data(uint64_t{1} << source->in_bits());
    for (uint64_t flat = 0; flat < data.size(); ++flat) data[flat] = source->apply(flat) + 1000;
    std::vector<uint64_t> there;
    std::vector<uint64_t> back;
    ASSERT_TRUE(execute(arena_, *plan(source, destination, options), data, there)) << arena_.text();
    ASSERT_TRUE(execute(arena_, *plan(destination, source, options), there, back)) << arena_.text();
    ASSERT_EQ(back, data) << to_string(*source) << to_string(*destination);
  }
}

// Bases that are sums: no permutations, so no shuffles, and sometimes no swizzle.
TEST_F(PlanTest, LayoutsThatAreNoPermutationsConvertToo) {
  std::mt19937_64 random(23);
  for (uint64_t i = 0; i < test::cases(); ++i) {
    arena_.reset();
    test::RandomLayout wish;
    wish.dims = 4 + static_cast<uint32_t>(random() % 6);
    wish.lanes = static_cast<uint32_t>(random() % 6);
    wish.warps = static_cast<uint32_t>(random() % 3);
    wish.blocks = static_cast<uint32_t>(random() % 2);
    const auto mixed = [&](const Layout &layout) {
      std::vector<uint64_t> columns(layout.columns().begin(), layout.columns().end());
      for (uint64_t k = 1 + random() % 3; k != 0 && columns.size() > 1; --k) {
        const uint64_t to = random() % columns.size();
        const uint64_t from = random() % columns.size();
        if (to != from) columns[to] ^= columns[from];
      }
      std::vector<DimSize> ins;
      for (const Dim &in : layout.ins()) ins.push_back({in.name, in.bits});
      const DimSize out{standard_dim(0), layout.out_bits()};
      return make_layout(arena_, ins, {&out, 1}, columns, random() % 2 == 0 ? random() & low_mask(out.bits) : 0);
    };
    const Layout *const source = mixed(*test::random_distributed(arena_, random, wish));
    const Layout *const destination =
        mixed(random() % 2 == 0 ? *source : *test::random_distributed(arena_, random, wish));
    PlanOptions options;
    options.bits_per_element = 8u << random() % 4;
    options.has_load_matrix = random() % 2 == 0;
    const Plan *const made = plan(source, destination, options);
    ASSERT_NE(made, nullptr);
    ASSERT_TRUE(converts(*made, *source, *destination));
  }
}

// A vector that both sides' registers hold is moved whole by both.
TEST_F(PlanTest, BothSidesMoveTheWholeVector) {
  std::mt19937_64 random(25);
  for (uint64_t i = 0; i < test::cases() / 2; ++i) {
    arena_.reset();
    test::RandomLayout wish;
    wish.dims = 8 + static_cast<uint32_t>(random() % 4);
    wish.lanes = 5 + static_cast<uint32_t>(random() % 2);
    wish.warps = static_cast<uint32_t>(random() % 3);
    const Layout *const source = test::random_distributed(arena_, random, wish);
    const Layout *const destination = test::random_distributed(arena_, random, wish);
    PlanOptions options;
    options.bits_per_element = 8u << random() % 4;
    options.only_memory = true;
    const Plan *const made = plan(source, destination, options);
    ASSERT_NE(made, nullptr);
    const SharedPlan &shared = *made->shared;
    const auto columns = shared.swizzle.memory->columns_of(shared.swizzle.memory->ins()[0]);
    const auto holds = [](const Layout &side, uint64_t column) {
      const auto registers = side.columns_of(side.ins()[0]);
      return std::find(registers.begin(), registers.end(), column) != registers.end();
    };
    // Where registers do not fill a bank, warps do; those are moved by themselves.
    if (!std::all_of(columns.begin(), columns.end(),
                     [&](uint64_t column) { return holds(*source, column) && holds(*destination, column); })) {
      continue;
    }
    const uint64_t vector = uint64_t{options.bits_per_element} << columns.size();
    ASSERT_GE(shared.store.access.vector_bits, std::min<uint64_t>(vector, 128)) << to_string(*source);
    ASSERT_GE(shared.load.access.vector_bits, std::min<uint64_t>(vector, 128)) << to_string(*destination);
  }
}

// What the plan says of banks, instruction by instruction, is what the addresses give.
TEST_F(PlanTest, BankConflictsOfPlansAreThoseOfTheirAddresses) {
  std::mt19937_64 random(24);
  for (uint64_t i = 0; i < test::cases() / 2; ++i) {
    arena_.reset();
    test::RandomLayout wish;
    wish.dims = 8 + static_cast<uint32_t>(random() % 4);
    wish.warps = static_cast<uint32_t>(random() % 3);
    const Layout *const source = test::random_distributed(arena_, random, wish);
    const Layout *const destination = test::random_distributed(arena_, random, wish);
    PlanOptions options;
    options.bits_per_element = 8u << random() % 3;
    options.only_memory = true;
    options.has_load_matrix = true;
    options.has_store_matrix = true;
    const Plan *const made = plan(source, destination, options);
    ASSERT_NE(made, nullptr);
    for (const SharedSide *side : {&made->shared->store, &made->shared->load}) {
      const Layout &address = *side->access.address;
      const Dim &lane = address.ins()[1];
      const bool is_matrix = side->access.matrices != 0;
      const uint64_t request = is_matrix ? 128 : side->access.vector_bits;
      const uint64_t lanes = is_matrix ? uint64_t{side->access.matrices} << side->access.row_bits : 32;
      std::vector<uint64_t> bits;
      for (uint64_t l = 0; l < lanes; ++l) {
        bits.push_back(address.outs()[0].of(address.apply(lane.at(l))) * options.bits_per_element);
      }
      ASSERT_EQ(side->banks.wavefronts, simulate_wavefronts(bits, request, options.memory))
          << instruction_text(side->access.instruction, side == &made->shared->store) << to_string(*source)
          << to_string(*destination);
    }
  }
}

}  // namespace
}  // namespace sonde::layout
