// Analyses of distributed layouts: by hand, and against counting.
#include "layout/analysis.h"

#include <gtest/gtest.h>

#include <set>

#include "conversion_cases.h"
#include "layout/analysis_coalescing.h"
#include "layout/instruction_tiles.h"
#include "layout/plan.h"

namespace sonde::layout {
namespace {

using test::distributed;

class AnalysisTest : public ::testing::Test {
 protected:
  const Layout *offsets(const std::vector<uint64_t> &registers, const std::vector<uint64_t> &lanes, uint32_t bits,
                        const std::vector<uint64_t> &warps = {}) {
    std::vector<uint64_t> columns = registers;
    columns.insert(columns.end(), lanes.begin(), lanes.end());
    columns.insert(columns.end(), warps.begin(), warps.end());
    const std::vector<DimSize> ins = {{dim::kRegister, static_cast<uint32_t>(registers.size())},
                                      {dim::kLane, static_cast<uint32_t>(lanes.size())},
                                      {dim::kWarp, static_cast<uint32_t>(warps.size())}};
    const DimSize out{dim::kOffset, bits};
    return make_layout(arena_, ins, {&out, 1}, columns);
  }
  GlobalAccess access(const Layout *layout, uint32_t bits, const GlobalMemory &memory = {}) {
    GlobalAccess result;
    EXPECT_TRUE(global_access(arena_, *layout, bits, memory, result)) << arena_.text();
    return result;
  }

  Arena arena_;
};

TEST_F(AnalysisTest, FindsWhoRepeatsWhom) {
  const Layout *const layout = distributed(arena_, {2}, {{0}, {1}}, {{2}, {0}, {0}}, {{0}});
  const Broadcasts found = broadcasts_of(*layout);
  EXPECT_EQ(found.free_registers, 0b01u);
  EXPECT_EQ(found.free_lanes, 0b110u);
  EXPECT_EQ(found.free_warps, 0b1u);
  EXPECT_EQ(found.of_lanes(), 4u);
  EXPECT_EQ(found.copies_log2, 4u);  // 6 bits for 2
  // Two lanes that hold the same although no column is zero.
  EXPECT_EQ(broadcasts_of(*distributed(arena_, {1}, {}, {{1}, {1}})).copies_log2, 1u);
}

TEST_F(AnalysisTest, CountsRegistersOf32Bits) {
  const Layout *const layout = distributed(arena_, {4}, {{1}, {2}, {0}}, {{4}, {8}});
  Occupancy found;
  ASSERT_TRUE(occupancy(arena_, *layout, 16, found));
  EXPECT_EQ(found.elements, 8u);
  EXPECT_EQ(found.unique_elements, 4u);
  EXPECT_EQ(found.registers, 4u);
  EXPECT_EQ(found.unique_registers, 2u);
  ASSERT_TRUE(occupancy(arena_, *layout, 64, found));
  EXPECT_EQ(found.registers, 16u);
  ASSERT_TRUE(occupancy(arena_, *layout, 1, found));
  EXPECT_EQ(found.registers, 1u);
  EXPECT_FALSE(occupancy(arena_, *layout, 24, found));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
}

TEST_F(AnalysisTest, RunsMaySpanDims) {
  // 4 columns of a row in registers, then the next row: 8 in a run where rows lie side by side.
  const Layout *const layout = distributed(arena_, {3, 2}, {{0, 1}, {0, 2}, {1, 0}}, {{2, 0}, {4, 0}});
  const std::vector<uint32_t> row_major = {1, 0};
  const Layout *const dense = memory_offsets(arena_, *layout, row_major);
  EXPECT_EQ(contiguous_in_place(*dense), 8u);
  // Rows 16 elements apart end the run.
  const Layout *const pitched = memory_offsets(arena_, *layout, row_major, 4);
  EXPECT_EQ(contiguous_in_place(*pitched), 4u);
  EXPECT_EQ(pitched->out_bits(), 7u);
}

TEST_F(AnalysisTest, RegistersOutOfOrderStillMakeAVector) {
  const Layout *const layout = offsets({2, 1}, {4, 8}, 4);
  EXPECT_EQ(contiguous_in_place(*layout), 1u);
  EXPECT_EQ(contiguous_in_any_order(*layout), 4u);
  EXPECT_EQ(vector_elements(*layout, 32), 4u);
  EXPECT_EQ(vector_elements(*layout, 64), 2u);          // 128 bits
  EXPECT_EQ(vector_elements(*layout, 32, 128, 6), 2u);  // rows of 6 elements are aligned to 2
}

// Table of the paper's evaluation: [512, n] x f8 and f16 loads reach 8 n and 16 n bits, up to 128.
TEST_F(AnalysisTest, NarrowRowsLoadInWideVectorsWhenTheyLieDense) {
  // 4 warps, [512, 2] f8, 8 rows of 2 elements each lane: 16 elements in a run.
  const Layout *const layout = distributed(arena_, {9, 1}, {{0, 1}, {1, 0}, {2, 0}, {4, 0}},
                                           {{8, 0}, {16, 0}, {32, 0}, {64, 0}, {128, 0}}, {{256, 0}});
  const std::vector<uint32_t> row_major = {1, 0};
  EXPECT_EQ(vector_elements(*memory_offsets(arena_, *layout, row_major), 8) * 8, 128u);
}

TEST_F(AnalysisTest, ListsTheHoldersOfAnElement) {
  // (2, 3) of the paper's 16x16 example is register 1 of lane 9 of warp 0.
  const Layout *const layout =
      distributed(arena_, {4, 4}, {{0, 1}, {1, 0}}, {{0, 2}, {0, 4}, {0, 8}, {2, 0}, {4, 0}}, {{8, 0}});
  std::vector<Owner> owners;
  ASSERT_TRUE(owners_of(arena_, *layout, std::vector<uint64_t>{2, 3}, owners));
  EXPECT_EQ(owners, (std::vector<Owner>{{0, 0, 9, 1}}));
  const Layout *const repeated = distributed(arena_, {1}, {{1}}, {{0}}, {}, {{0}});
  ASSERT_TRUE(owners_of(arena_, *repeated, std::vector<uint64_t>{1}, owners));
  EXPECT_EQ(owners, (std::vector<Owner>{{0, 0, 0, 1}, {0, 0, 1, 1}, {1, 0, 0, 1}, {1, 0, 1, 1}}));
  EXPECT_FALSE(owners_of(arena_, *distributed(arena_, {1}, {{0}}, {}), std::vector<uint64_t>{1}, owners));
  EXPECT_EQ(arena_.fault(), Fault::kNoSolution);
  EXPECT_FALSE(owners_of(arena_, *repeated, std::vector<uint64_t>{2}, owners));
  EXPECT_EQ(arena_.fault(), Fault::kInvalid);
}

TEST_F(AnalysisTest, HoldersAreExactlyThoseThatMapThere) {
  std::mt19937_64 random(41);
  for (uint64_t i = 0; i < test::cases() / 4; ++i) {
    arena_.reset();
    test::RandomLayout wish;
    wish.dims = 5;
    wish.lanes = 3;
    wish.blocks = 1;
    wish.broadcasts = 0.3;
    wish.zero_registers = 1;
    const Layout *const layout = test::random_distributed(arena_, random, wish);
    const uint64_t element = random() % 32;
    std::set<Owner> expected;
    for (uint64_t flat = 0; flat < uint64_t{1} << layout->in_bits(); ++flat) {
      if (layout->apply(flat) != element) continue;
      expected.insert(
          {layout->ins()[3].of(flat), layout->ins()[2].of(flat), layout->ins()[1].of(flat), layout->ins()[0].of(flat)});
    }
    std::vector<Owner> owners;
    ASSERT_TRUE(owners_of(arena_, *layout, {&element, 1}, owners));
    ASSERT_EQ(owners, std::vector<Owner>(expected.begin(), expected.end())) << to_string(*layout);
    ASSERT_EQ(owners.size(), uint64_t{1} << broadcasts_of(*layout).copies_log2);
  }
}

TEST_F(AnalysisTest, WordsSideBySideAreFourSectors) {
  const GlobalAccess found = access(offsets({}, {1, 2, 4, 8, 16}, 5), 32);
  EXPECT_EQ(found.sectors, 4u);
  EXPECT_EQ(found.lines, 1u);
  EXPECT_EQ(found.wanted_bytes, 128u);
  EXPECT_EQ(found.fewest_sectors, 4u);
  EXPECT_DOUBLE_EQ(found.efficiency(), 1);
}

TEST_F(AnalysisTest, EverySecondWordWastesHalf) {
  const GlobalAccess found = access(offsets({}, {2, 4, 8, 16, 32}, 6), 32);
  EXPECT_EQ(found.sectors, 8u);
  EXPECT_EQ(found.lines, 2u);
  EXPECT_DOUBLE_EQ(found.efficiency(), 0.5);
}

TEST_F(AnalysisTest, AColumnTakesASectorForEachLane) {
  const GlobalAccess found = access(offsets({}, {1024, 2048, 4096, 8192, 16384}, 15), 16);
  EXPECT_EQ(found.sectors, 32u);
  EXPECT_EQ(found.lines, 32u);
  EXPECT_EQ(found.wanted_bytes, 64u);
  EXPECT_DOUBLE_EQ(found.efficiency(), 1.0 / 16);
}

TEST_F(AnalysisTest, VectorsOf128BitsTake16Sectors) {
  const GlobalAccess found = access(offsets({1, 2, 128}, {4, 8, 16, 32, 64}, 8), 32);
  EXPECT_EQ(found.access_bits, 128u);
  EXPECT_EQ(found.instructions, 2u);
  EXPECT_EQ(found.sectors, 16u);
  EXPECT_EQ(found.lines, 4u);
  EXPECT_EQ(found.sectors_in_all, 32u);
  EXPECT_EQ(found.different_sectors, 32u);
}

TEST_F(AnalysisTest, ABaseBesideASectorTakesOneMore) {
  // 128 bytes from byte 4 on: 5 sectors, 2 lines.
  GlobalMemory memory;
  memory.base_alignment = 4;
  const GlobalAccess found = access(offsets({}, {1, 2, 4, 8, 16}, 5), 32, memory);
  EXPECT_TRUE(found.is_simulated);
  EXPECT_EQ(found.sectors, 5u);
  EXPECT_EQ(found.lines, 2u);
  // A base aligned to 4 bytes allows no vector.
  EXPECT_EQ(access(offsets({1}, {2, 4, 8, 16, 32}, 6), 32, memory).access_bits, 32u);
}

TEST_F(AnalysisTest, BroadcastRegistersAreLoadedOnce) {
  EXPECT_EQ(access(offsets({0, 1}, {2, 4}, 3), 32).instructions, 1u);
}

TEST_F(AnalysisTest, SectorsByFormulaAreThoseOfTheRequests) {
  std::mt19937_64 random(42);
  for (uint64_t i = 0; i < test::cases(); ++i) {
    arena_.reset();
    const uint32_t bits = 1u << random() % 8;
    const uint32_t offset_bits = 6 + static_cast<uint32_t>(random() % 8);
    const auto vector = static_cast<uint32_t>(random() % 4);
    const auto value = [&]() -> uint64_t {
      const uint64_t any = random() % 4 == 0 ? random() : uint64_t{1} << random() % offset_bits;
      return random() % 8 == 0 ? 0 : any & low_mask(offset_bits) & ~low_mask(vector);
    };
    std::vector<uint64_t> registers;
    std::vector<uint64_t> lanes;
    std::vector<uint64_t> warps = {value()};
    for (uint32_t bit = 0; bit < vector; ++bit) registers.push_back(uint64_t{1} << bit);
    for (uint64_t more = random() % 3; more != 0; --more) registers.push_back(value());
    for (uint32_t bit = 0; bit < 5; ++bit) lanes.push_back(value());
    const Layout *const layout = offsets(registers, lanes, offset_bits, warps);
    GlobalMemory memory;
    memory.base_alignment = uint64_t{128} << random() % 3;
    const GlobalAccess by_formula = access(layout, bits, memory);
    GlobalAccess by_simulation;
    ASSERT_TRUE(
        simulate_global_access(arena_, *layout, bits, memory.base_alignment * (random() % 5), memory, by_simulation))
        << arena_.text();
    ASSERT_EQ(by_formula.access_bits, by_simulation.access_bits);
    ASSERT_EQ(by_formula.sectors, by_simulation.sectors) << to_string(*layout) << bits;
    ASSERT_EQ(by_formula.lines, by_simulation.lines) << to_string(*layout) << bits;
    ASSERT_EQ(by_formula.wanted_bytes, by_simulation.wanted_bytes) << to_string(*layout) << bits;
    ASSERT_EQ(by_formula.sectors_in_all, by_simulation.sectors_in_all) << to_string(*layout) << bits;
    ASSERT_EQ(by_formula.different_sectors, by_simulation.different_sectors) << to_string(*layout) << bits;
  }
}

// --- Instructions on a given memory ---

// 16x64 of 16 bits in rows of 128 bytes, the 16-byte pieces of row r exchanged by r mod 8 (published: columns
// (0,1)...(0,32), rows (1,8)(2,16)(4,32), then (8,0)).
const Layout *swizzled_rows(Arena &arena) {
  const std::vector<DimSize> ins = {{dim::kOffset, 10}};
  const std::vector<DimSize> outs = {{standard_dim(0), 4}, {standard_dim(1), 6}};
  const std::vector<uint64_t> rows = {0, 1, 0, 2, 0, 4, 0, 8, 0, 16, 0, 32, 1, 8, 2, 16, 4, 32, 8, 0};
  return make_from_bases(arena, ins, outs, rows);
}

TEST_F(AnalysisTest, LdmatrixLoadsAnOperandFromSwizzledRows) {
  // Left operand of a 16x8x16 multiply, K = 64.
  const Layout *const operand =
      distributed(arena_, {4, 6}, {{0, 1}, {8, 0}, {0, 8}, {0, 16}, {0, 32}}, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}});
  AccessOptions options;
  options.bits_per_element = 16;
  SharedSide side;
  ASSERT_TRUE(plan_shared_access(arena_, *operand, *swizzled_rows(arena_), false, options, side)) << arena_.text();
  EXPECT_EQ(side.access.instruction, SharedInstruction::kVector);
  EXPECT_EQ(side.access.vector_bits, 32u);
  EXPECT_EQ(side.access.instructions, 16u);
  EXPECT_EQ(side.banks.conflicts(), 0u);
  options.has_matrix = true;
  ASSERT_TRUE(plan_shared_access(arena_, *operand, *swizzled_rows(arena_), false, options, side)) << arena_.text();
  EXPECT_EQ(side.access.instruction, SharedInstruction::kMatrix);
  EXPECT_EQ(side.access.matrices, 4u);
  EXPECT_EQ(side.access.instructions, 4u);  // 16x64 are 16 matrices
  EXPECT_EQ(side.banks.conflicts(), 0u);
  EXPECT_EQ(side.banks.wavefronts, 4u);
}

TEST_F(AnalysisTest, TransLoadsAnOperandAcrossTheRows) {
  // Right operand, K = 16 along the rows' index, N = 64 along the rows: lanes run over K, memory over N.
  const Layout *const operand =
      distributed(arena_, {4, 6}, {{1, 0}, {8, 0}, {0, 8}, {0, 16}, {0, 32}}, {{2, 0}, {4, 0}, {0, 1}, {0, 2}, {0, 4}});
  AccessOptions options;
  options.bits_per_element = 16;
  options.has_matrix = true;
  SharedSide side;
  ASSERT_TRUE(plan_shared_access(arena_, *operand, *swizzled_rows(arena_), false, options, side)) << arena_.text();
  EXPECT_EQ(side.access.instruction, SharedInstruction::kTransposedMatrix);
  EXPECT_EQ(side.access.matrices, 4u);
  EXPECT_EQ(side.access.instructions, 4u);
  EXPECT_EQ(side.banks.conflicts(), 0u);
}

TEST_F(AnalysisTest, PaddedRowsAreSimulated) {
  // Columns of 32 words, read down: 32 wavefronts without padding, one with a word after each row.
  const std::vector<DimSize> ins = {{dim::kOffset, 10}};
  const std::vector<DimSize> outs = {{standard_dim(0), 5}, {standard_dim(1), 5}};
  std::vector<uint64_t> columns;
  for (uint32_t bit = 0; bit < 10; ++bit) columns.push_back(uint64_t{1} << (bit + 5) % 10);
  const Layout *const rows = make_layout(arena_, ins, outs, columns);  // offset: dim1 fastest
  const Layout *const down =
      distributed(arena_, {5, 5}, {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}}, {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}});
  AccessOptions options;
  options.most_vector_bits = 32;
  SharedSide side;
  ASSERT_TRUE(plan_shared_access(arena_, *down, *rows, false, options, side)) << arena_.text();
  EXPECT_EQ(side.banks.wavefronts, 32u);
  const Padding padding{32, 1};
  options.paddings = {&padding, 1};
  ASSERT_TRUE(plan_shared_access(arena_, *down, *rows, false, options, side)) << arena_.text();
  EXPECT_EQ(side.banks.wavefronts, 1u);
  EXPECT_EQ(side.access.vector_bits, 32u);
}

// Each element of a matrix instruction, by the pointers and the published shape of the fragment.
TEST_F(AnalysisTest, MatrixFragmentsHaveThePublishedShape) {
  SharedAccess access;
  access.instruction = SharedInstruction::kMatrix;
  access.row_bits = 3;
  access.matrices = 4;
  // Lane 13 holds elements 2 and 3 of row 3 of each matrix; matrix 2 is pointed to by lanes 16 to 23.
  EXPECT_EQ(matrix_place(access, 16, false, 13, 0).pointing_lane, 3u);
  EXPECT_EQ(matrix_place(access, 16, false, 13, 0).column, 2u);
  EXPECT_EQ(matrix_place(access, 16, false, 13, 1).column, 3u);
  EXPECT_EQ(matrix_place(access, 16, false, 13, 5).pointing_lane, 19u);
  EXPECT_EQ(matrix_place(access, 16, false, 13, 5).column, 3u);
  // Transposed: lane 13 holds rows 2 and 3 of column 3.
  access.instruction = SharedInstruction::kTransposedMatrix;
  EXPECT_EQ(matrix_place(access, 16, false, 13, 0).pointing_lane, 2u);
  EXPECT_EQ(matrix_place(access, 16, false, 13, 0).column, 3u);
  EXPECT_EQ(matrix_place(access, 16, false, 13, 1).pointing_lane, 3u);
  EXPECT_EQ(matrix_place(access, 16, false, 13, 1).column, 3u);
}

// Random maps that an instruction's tile divides: what the pointers and fragments say is where the map says.
TEST_F(AnalysisTest, MatrixInstructionsMoveWhatTheirMapsSay) {
  std::mt19937_64 random(43);
  std::array<uint64_t, 3> seen{};
  for (uint64_t i = 0; i < test::cases(); ++i) {
    arena_.reset();
    const bool transposed = random() % 2 == 0;
    const bool is_store = random() % 2 == 0;
    const uint32_t bits = transposed ? 8u << random() % 2 : 8u << random() % 3;
    const uint32_t row_log2 = 7 - lowest_bit(bits);
    const uint32_t offset_bits = row_log2 + 3 + static_cast<uint32_t>(random() % 4);
    // Units of whole rows, in any order, some twice.
    const auto row = [&] { return uint64_t{1} << (row_log2 + random() % (offset_bits - row_log2)); };
    std::vector<uint64_t> registers;
    std::vector<uint64_t> lanes;
    if (transposed) {
      lanes = {row(), row(), 1, 2, 4};
      if (bits == 8) registers.push_back(8);
      for (uint64_t more = 1 + random() % 4; more != 0; --more) registers.push_back(row());
    } else {
      const uint32_t packed = 5 - lowest_bit(bits);
      for (uint32_t bit = 0; bit < packed; ++bit) registers.push_back(uint64_t{1} << bit);
      lanes = {uint64_t{1} << packed, uint64_t{2} << packed, row(), row(), row()};
      for (uint64_t more = random() % 4; more != 0; --more) registers.push_back(row());
    }
    std::shuffle(registers.begin(), registers.end(), random);
    const Layout *const map = offsets(registers, lanes, offset_bits, {row()});
    InstructionLimits limits;
    limits.has_byte_transpose = true;
    SharedAccess access;
    const auto instruction = transposed ? SharedInstruction::kTransposedMatrix : SharedInstruction::kMatrix;
    if (!divide_by_instruction(arena_, *map, dim::kOffset, bits, instruction, is_store, limits, access)) {
      // Four rows of bytes need two registers, and there may be one.
      ASSERT_TRUE(transposed && bits == 8 && registers.size() == 2 && !is_store) << arena_.text() << to_string(*map);
      continue;
    }
    ++seen[access.matrices / 2];
    ASSERT_EQ(access.instructions << access.moved, uint64_t{1} << registers.size());
    for (uint64_t warp = 0; warp < 2; ++warp) {
      for (uint32_t lane = 0; lane < 32; ++lane) {
        for (uint32_t number = 0; number < 1u << registers.size(); ++number) {
          uint64_t reg = 0;
          for (uint32_t bit = 0; bit < access.register_bits; ++bit) {
            reg |= (number >> bit & 1u) << access.register_order[bit];
          }
          const MatrixPlace place =
              matrix_place(access, bits, is_store, lane, number & static_cast<uint32_t>(low_mask(access.moved)));
          const Layout &address = *access.address;
          const uint64_t pointed = address.apply(address.ins()[0].at(number >> access.moved) |
                                                 address.ins()[1].at(place.pointing_lane) | address.ins()[2].at(warp));
          ASSERT_EQ(pointed + place.column,
                    map->apply(map->ins()[0].at(reg) | map->ins()[1].at(lane) | map->ins()[2].at(warp)))
              << instruction_text(instruction, is_store) << " of " << bits << " bits" << to_string(*map);
        }
      }
    }
  }
  EXPECT_GT(seen[0], test::cases() / 50);  // one, two and four matrices at once
  EXPECT_GT(seen[1], test::cases() / 50);
  EXPECT_GT(seen[2], test::cases() / 50);
}

}  // namespace
}  // namespace sonde::layout
