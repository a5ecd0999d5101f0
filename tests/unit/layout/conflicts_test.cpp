// Bank conflicts: by hand, and formula against simulation.
#include "layout/conflicts.h"

#include <gtest/gtest.h>

#include "conversion_cases.h"
#include "layout/algebra.h"
#include "layout/swizzle.h"

namespace sonde::layout {
namespace {

class ConflictsTest : public ::testing::Test {
 protected:
  // (register, lane) -> offset
  const Layout *map(const std::vector<uint64_t> &registers, const std::vector<uint64_t> &lanes, uint32_t offset_bits,
                    uint64_t base = 0) {
    std::vector<uint64_t> columns = registers;
    columns.insert(columns.end(), lanes.begin(), lanes.end());
    const std::vector<DimSize> ins = {{dim::kRegister, static_cast<uint32_t>(registers.size())},
                                      {dim::kLane, static_cast<uint32_t>(lanes.size())}};
    const DimSize out{dim::kOffset, offset_bits};
    return make_layout(arena_, ins, {&out, 1}, columns, base);
  }
  BankAccess formula(const Layout *layout, uint32_t bits, const SharedMemory &memory = {}) {
    BankAccess access;
    EXPECT_TRUE(bank_access(arena_, *layout, dim::kOffset, bits, memory, access)) << arena_.text();
    return access;
  }
  BankAccess simulation(const Layout *layout, uint32_t bits, const SharedMemory &memory = {},
                        std::span<const Padding> paddings = {}) {
    BankAccess access;
    EXPECT_TRUE(simulate_bank_access(arena_, *layout, dim::kOffset, bits, memory, paddings, access)) << arena_.text();
    return access;
  }

  Arena arena_;
};

TEST_F(ConflictsTest, ARowOfWordsHasNone) {
  const BankAccess access = formula(map({}, {1, 2, 4, 8, 16}, 5), 32);
  EXPECT_EQ(access.phases, 1u);
  EXPECT_EQ(access.wavefronts, 1u);
  EXPECT_EQ(access.conflicts(), 0u);
}

TEST_F(ConflictsTest, EverySecondWordTakesTwoWavefronts) {
  EXPECT_EQ(formula(map({}, {2, 4, 8, 16, 32}, 6), 32).wavefronts, 2u);
}

TEST_F(ConflictsTest, AColumnOf32WordsTakes32Wavefronts) {
  const BankAccess access = formula(map({}, {32, 64, 128, 256, 512}, 10), 32);
  EXPECT_EQ(access.wavefronts, 32u);
  EXPECT_EQ(access.conflicts_per_phase, 31u);
  EXPECT_EQ(access.conflicts(), 31u);
}

TEST_F(ConflictsTest, LanesThatReadOneWordShareIt) {
  // All lanes read word 0.
  EXPECT_EQ(formula(map({}, {0, 0, 0, 0, 0}, 5), 32).wavefronts, 1u);
  // Two lanes for each word of 16 bits elements.
  EXPECT_EQ(formula(map({}, {1, 2, 4, 8, 16}, 5), 16).wavefronts, 1u);
}

TEST_F(ConflictsTest, VectorsOf128BitsTakeFourPhases) {
  // 32 lanes of 4 words each, one after the other: 128 words, 32 banks, 4 wavefronts at best.
  const BankAccess access = formula(map({1, 2}, {4, 8, 16, 32, 64}, 7), 32);
  EXPECT_EQ(access.access_bits, 128u);
  EXPECT_EQ(access.phases, 4u);
  EXPECT_EQ(access.wavefronts, 4u);
  EXPECT_EQ(access.conflicts(), 0u);
}

TEST_F(ConflictsTest, PaddingMendsAColumn) {
  // Rows of 32 words read by column: 32 wavefronts; one word more for each row: none too many.
  const Layout *const column = map({}, {32, 64, 128, 256, 512}, 10);
  const Padding padding{32, 1};
  EXPECT_EQ(simulation(column, 32).wavefronts, 32u);
  EXPECT_EQ(simulation(column, 32, {}, {&padding, 1}).wavefronts, 1u);
  EXPECT_EQ(padded_address({&padding, 1}, 70), 72u);
}

TEST_F(ConflictsTest, PaddingNarrowsVectorsThatWouldRunOverIt) {
  const Padding padding{32, 1};
  EXPECT_EQ(simulation(map({1, 2}, {4, 8, 16, 32, 64}, 7), 32, {}, {&padding, 1}).access_bits, 32u);
  const Padding wide{32, 4};
  EXPECT_EQ(simulation(map({1, 2}, {4, 8, 16, 32, 64}, 7), 32, {}, {&wide, 1}).access_bits, 128u);
}

TEST_F(ConflictsTest, WavesOf64TakeTwoPhasesOf32Banks) {
  const Layout *const row = map({}, {1, 2, 4, 8, 16, 32}, 6);
  EXPECT_EQ(formula(row, 32).wavefronts, 2u);
  SharedMemory memory;
  memory.banks = 64;
  EXPECT_EQ(formula(row, 32, memory).wavefronts, 1u);
}

TEST_F(ConflictsTest, CountsOneRequestByItsAddresses) {
  std::vector<uint64_t> addresses(32);
  for (uint64_t lane = 0; lane < 32; ++lane) addresses[lane] = lane * 33 * 32;  // a padded column
  EXPECT_EQ(simulate_wavefronts(addresses, 32, {}), 1u);
  for (uint64_t lane = 0; lane < 32; ++lane) addresses[lane] = lane * 3 * 32;  // 3 is prime to 32
  EXPECT_EQ(simulate_wavefronts(addresses, 32, {}), 1u);
  for (uint64_t lane = 0; lane < 32; ++lane) addresses[lane] = lane * 6 * 32;  // 16 banks, 2 words each
  EXPECT_EQ(simulate_wavefronts(addresses, 32, {}), 2u);
}

TEST_F(ConflictsTest, ARowThatLiesOverTwoBlocksIsInTwoMemories) {
  // Lanes 16 and up read the other block's words, which would be in the same banks of one memory.
  const std::vector<DimSize> ins = {{dim::kRegister, 0}, {dim::kLane, 5}};
  const std::vector<DimSize> outs = {{dim::kOffset, 6}, {dim::kBlock, 1}};
  const std::vector<uint64_t> columns = {1, 2, 4, 8, 64};
  const Layout *const over_blocks = make_layout(arena_, ins, outs, columns);
  EXPECT_EQ(formula(over_blocks, 32).wavefronts, 1u);
  EXPECT_EQ(simulation(over_blocks, 32).wavefronts, 1u);
  EXPECT_EQ(formula(map({}, {1, 2, 4, 8, 32}, 6), 32).wavefronts, 2u);
}

TEST_F(ConflictsTest, FormulaIsSimulationForLinearMaps) {
  std::mt19937_64 random(5);
  for (uint64_t i = 0; i < test::cases(); ++i) {
    arena_.reset();
    SharedMemory memory;
    memory.banks = 8u << random() % 4;
    const uint32_t bits = 1u << random() % 8;
    const uint32_t offset_bits = 4 + static_cast<uint32_t>(random() % 9);
    const uint32_t lane_bits = 3 + static_cast<uint32_t>(random() % 4);
    const auto value = [&]() -> uint64_t {
      switch (random() % 4) {
        case 0:
          return 0;
        case 1:
          return random() & low_mask(offset_bits);
        default:
          return uint64_t{1} << random() % offset_bits;
      }
    };
    // Some maps vectorise: the first registers are 1, 2, ... and lanes stay clear of them.
    const auto vector = static_cast<uint32_t>(random() % 4);
    std::vector<uint64_t> registers;
    std::vector<uint64_t> lanes;
    for (uint32_t bit = 0; bit < vector; ++bit) registers.push_back(uint64_t{1} << bit);
    for (uint64_t extra = random() % 3; extra != 0; --extra) registers.push_back(value() & ~low_mask(vector));
    for (uint32_t bit = 0; bit < lane_bits; ++bit) lanes.push_back(value() & ~low_mask(vector));
    if (random() % 8 == 0) memory.phase_lanes = random() & low_mask(lane_bits);
    const uint64_t base = random() % 4 == 0 ? random() & low_mask(offset_bits) & ~low_mask(vector) : 0;
    const Layout *const layout = map(registers, lanes, offset_bits, base);
    const BankAccess by_formula = formula(layout, bits, memory);
    const BankAccess by_simulation = simulation(layout, bits, memory);
    ASSERT_EQ(by_formula.access_bits, by_simulation.access_bits) << to_string(*layout) << bits;
    ASSERT_EQ(by_formula.phases, by_simulation.phases) << to_string(*layout) << bits;
    ASSERT_EQ(by_formula.wavefronts, by_simulation.wavefronts) << to_string(*layout) << bits;
    ASSERT_EQ(by_formula.total, by_simulation.total) << to_string(*layout) << bits;
    ASSERT_EQ(by_formula.conflicts_per_phase, by_simulation.conflicts_per_phase) << to_string(*layout) << bits;
  }
}

// The counts that the swizzle predicts, the lemma and the simulation, on memory layouts that the swizzle finds. The lemma
// speaks of vectors of at least a bank that both sides move whole.
TEST_F(ConflictsTest, LemmaAndPredictionAreSimulationForSwizzles) {
  std::mt19937_64 random(6);
  uint64_t compared = 0;
  for (uint64_t i = 0; i < test::cases(); ++i) {
    arena_.reset();
    test::RandomLayout wish;
    wish.dims = 8 + static_cast<uint32_t>(random() % 6);
    wish.warps = static_cast<uint32_t>(random() % 3);
    wish.lanes = 4 + static_cast<uint32_t>(random() % 3);
    const Layout *const source = test::random_distributed(arena_, random, wish);
    const Layout *const destination = test::random_distributed(arena_, random, wish);
    SwizzleOptions options;
    options.bits_per_element = 8u << random() % 4;
    options.banks = random() % 2 == 0 ? 32 : 64;
    Swizzle swizzle;
    ASSERT_TRUE(optimal_swizzle(arena_, *source, *destination, options, swizzle)) << arena_.text();
    const Layout *const inverse = invert(arena_, *swizzle.memory);
    for (const Layout *side : {source, destination}) {
      const Layout *const places = compose(arena_, *side, *inverse);
      // vector, bank and segment are one offset.
      uint32_t offset_bits = 0;
      for (const DimName name : {dim::kVector, dim::kBank, dim::kSegment}) offset_bits += places->find_out(name)->bits;
      const std::vector<DimSize> outs = {
          {dim::kOffset, offset_bits}, {dim::kBlock, 0}, {dim::kReps, places->find_out(dim::kReps)->bits}};
      std::vector<DimSize> ins;
      for (const Dim &in : places->ins()) ins.push_back({in.name, in.bits});
      const Layout *const offsets = make_layout(arena_, ins, outs, places->columns());
      SharedMemory memory;
      memory.banks = options.banks;
      const BankAccess simulated = simulation(offsets, options.bits_per_element, memory);
      const uint64_t vector_bits = uint64_t{options.bits_per_element} << places->find_out(dim::kVector)->bits;
      if (vector_bits < 32 || simulated.access_bits != vector_bits) continue;
      ++compared;
      const auto lemma = wavefronts_by_span(*swizzle.memory, *side, options.bits_per_element, options.banks);
      ASSERT_TRUE(lemma.has_value());
      ASSERT_EQ(*lemma, simulated.wavefronts) << to_string(*source) << to_string(*destination);
      const uint64_t predicted = side == source ? swizzle.write_conflicts : swizzle.read_conflicts;
      ASSERT_EQ(predicted, simulated.conflicts_per_phase) << to_string(*source) << to_string(*destination);
    }
  }
  EXPECT_GT(compared, test::cases() / 2);
}

// Waves of 64 lanes, of which lanes 0, 1, 2, 3, 16, 17, 18 and 19 (and so on) are served together at 128 bits.
TEST_F(ConflictsTest, PredictionIsSimulationForPhasesOfOtherLanes) {
  std::mt19937_64 random(7);
  uint64_t compared = 0;
  for (uint64_t i = 0; i < test::cases(); ++i) {
    arena_.reset();
    test::RandomLayout wish;
    wish.dims = 9 + static_cast<uint32_t>(random() % 4);
    wish.warps = 1;
    wish.lanes = 6;
    const Layout *const source = test::random_distributed(arena_, random, wish);
    // Two registers are the same on both sides, a vector of 128 bits; the rest is dealt out again.
    std::vector<uint64_t> columns(source->columns().begin(), source->columns().end());
    const uint32_t registers = source->ins()[0].bits;
    if (registers < 2) continue;
    std::shuffle(columns.begin() + 2, columns.end(), random);
    if (std::find(columns.begin() + 2, columns.begin() + registers, uint64_t{0}) != columns.begin() + registers)
      continue;
    std::vector<DimSize> ins;
    for (const Dim &in : source->ins()) ins.push_back({in.name, in.bits});
    const DimSize tensor{standard_dim(0), wish.dims};
    const Layout *const destination = make_layout(arena_, ins, {&tensor, 1}, columns);
    SwizzleOptions options;
    options.bits_per_element = 32;
    options.banks = random() % 2 == 0 ? 32 : 64;
    const AccessTile &tile = options.banks == 32 ? kWave64VectorTile : kWave64VectorTile64Banks;
    options.source_tile = &tile;
    options.destination_tile = &tile;
    Swizzle swizzle;
    ASSERT_TRUE(optimal_swizzle(arena_, *source, *destination, options, swizzle)) << arena_.text();
    if (swizzle.memory->ins()[0].bits != 2) continue;
    const Layout *const inverse = invert(arena_, *swizzle.memory);
    SharedMemory memory;
    memory.banks = options.banks;
    for (const uint8_t lane : tile.address_lanes()) memory.phase_lanes |= uint64_t{1} << lane;
    for (const Layout *side : {source, destination}) {
      const Layout *const places = compose(arena_, *side, *inverse);
      const uint32_t reps = places->find_out(dim::kReps)->bits;
      const std::vector<DimSize> outs = {{dim::kOffset, places->out_bits() - reps}, {dim::kReps, reps}};
      const Layout *const offsets = make_layout(arena_, ins, outs, places->columns());
      const BankAccess simulated = simulation(offsets, 32, memory);
      ASSERT_EQ(simulated.access_bits, 128u);
      ASSERT_EQ(side == source ? swizzle.write_conflicts : swizzle.read_conflicts, simulated.conflicts_per_phase)
          << to_string(*source) << to_string(*destination);
      ++compared;
    }
  }
  EXPECT_GT(compared, test::cases() / 4);
}

TEST_F(ConflictsTest, RefusesWhatItCannotCount) {
  BankAccess access;
  EXPECT_FALSE(bank_access(arena_, *map({}, {1}, 1), dim::kBank, 32, {}, access));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
  SharedMemory memory;
  memory.banks = 48;
  EXPECT_FALSE(bank_access(arena_, *map({}, {1}, 1), dim::kOffset, 32, memory, access));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
}

}  // namespace
}  // namespace sonde::layout
