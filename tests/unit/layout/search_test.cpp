// Layouts found from constraints, checked against the constraints by counting, and conflicts against a simulation of
// the banks, word by word.
#include "layout/search.h"

#include "layout/matrix.h"

#include <map>
#include <set>

#include "support.h"

namespace sonde::layout::test {
namespace {

// The most words that one bank serves for the first lanes that the banks serve at once, registers in `mask` being moved
// together, all other registers 0.
uint64_t simulated(const Layout &registers, const Layout &memory, uint32_t element_bits, uint64_t mask,
                   uint32_t banks) {
  std::map<uint64_t, uint64_t> offset_of;
  for (uint64_t offset = 0; offset < uint64_t{1} << memory.in_bits(); ++offset) {
    offset_of[memory.apply(offset)] = offset;
  }
  const Dim &lane = *registers.find_in(dim::kLane);
  const Dim &own = *registers.find_in(dim::kRegister);
  const uint64_t access_bits = element_bits * (uint64_t{1} << std::popcount(mask));
  const uint64_t served = banks * 32 / std::max<uint64_t>(access_bits, 32);
  uint64_t worst = 0;
  for (uint64_t first = 0; first < uint64_t{1} << lane.bits; first += served) {
    std::map<uint64_t, std::set<uint64_t>> words_of_bank;
    for (uint64_t i = first; i < std::min(first + served, uint64_t{1} << lane.bits); ++i) {
      for (uint64_t part = mask;; part = (part - 1) & mask) {
        const uint64_t bit = offset_of.at(registers.apply(own.at(part) | lane.at(i))) * element_bits;
        for (uint64_t word = bit / 32; word <= (bit + element_bits - 1) / 32; ++word) {
          words_of_bank[word % banks].insert(word);
        }
        if (part == 0) break;
      }
    }
    for (const auto &[bank, words] : words_of_bank) worst = std::max<uint64_t>(worst, words.size());
  }
  return worst;
}

class Search : public LayoutTest {
 protected:
  const Layout *find(const RegisterRequest &request) { return find_register_layout(arena_, request); }
  std::string reason(const RegisterRequest &request, Fault fault = Fault::kNoSolution) {
    expect_none(find_register_layout(arena_, request), fault);
    return arena_.text();
  }
};

TEST_F(Search, FindsTheUsualLayoutOfATile) {
  // 128 x 64 halves, 16 bytes a load, 8 lanes along each row of 128 bytes: what a coalesced blocked layout is.
  RegisterRequest request;
  request.shape = {128, 64};
  request.element_bits = 16;
  request.vector_bits = 128;
  request.lane_run = 64;
  request.warps_per_dim = {4, 1};
  expect(find(request),
         "register (0,1)(0,2)(0,4)(16,0)(32,0)(64,0); lane (0,8)(0,16)(0,32)(1,0)(2,0); warp (4,0)(8,0) -> dim0 dim1");
  // Column-major, two warps along the columns; 32-bit vectors; warps take the lowest bits left of their dim.
  request.order = {0, 1};
  request.vector_bits = 32;
  request.lane_run = 64;
  request.warps_per_dim = {2, 2};
  expect(find(request),
         "register (1,0)(0,2)(0,4)(0,8)(0,16)(0,32); lane (2,0)(4,0)(8,0)(16,0)(32,0); warp (64,0)(0,1) -> dim0 dim1");
}

TEST_F(Search, DuplicatesWhatIsSmallerThanTheWarps) {
  RegisterRequest request;
  request.shape = {16};
  expect(find(request), "register; lane 1 2 4 8 0; warp 0 0 -> dim0");
  request.registers = 4;
  expect(find(request), "register 0 0; lane 1 2 4 8 0; warp 0 0 -> dim0");
  request.contiguous = {4};
  expect(find(request), "register 1 2; lane 4 8 0 0 0; warp 0 0 -> dim0");
  request.warps_per_dim = {4};
  expect(find(request), "register 1 2; lane 0 0 0 0 0; warp 4 8 -> dim0");
}

TEST_F(Search, KeepsFixedBases) {
  RegisterRequest request;
  request.shape = {32, 32};
  request.fixed = {{dim::kLane, 4, {0, 1}}, {dim::kRegister, 1, {1, 1}}};
  const Layout *const layout = find(request);
  ASSERT_NE(layout, nullptr) << arena_.text();
  EXPECT_TRUE(is_invertible(*layout));
  // Left of 10 bits: all but (0, 1), and (1, 1) makes (1, 0). 3 registers, 5 lanes, 2 warps.
  expect(layout, "register (8,0)(1,1)(16,0); lane (0,2)(0,4)(0,8)(0,16)(0,1); warp (2,0)(4,0) -> dim0 dim1");
}

TEST_F(Search, SaysWhyThereIsNone) {
  RegisterRequest request;
  request.shape = {128, 64};
  request.registers = 8;  // 2^3 * 2^5 * 2^2 < 2^13
  EXPECT_NE(reason(request).find("do not hold"), std::string::npos) << arena_.text();
  request.registers = 0;
  request.warps_per_dim = {8, 1};
  EXPECT_NE(reason(request).find("more than the 4"), std::string::npos) << arena_.text();
  request.warps_per_dim = {};
  request.contiguous = {1, 128};
  EXPECT_NE(reason(request).find("dim1 has 64"), std::string::npos) << arena_.text();
  request.contiguous = {};
  request.vector_bits = 64;
  request.fixed = {{dim::kLane, 0, {0, 1}}};  // which the vector needs in a register
  EXPECT_NE(reason(request).find("the vector needs (0, 1)"), std::string::npos) << arena_.text();
  request.fixed = {{dim::kRegister, 0, {1, 0}}};
  EXPECT_NE(reason(request).find("register bit 0 is (1, 0)"), std::string::npos) << arena_.text();
  request.fixed = {{dim::kLane, 5, {1, 0}}};
  EXPECT_NE(reason(request).find("no lane bit 5"), std::string::npos) << arena_.text();
  request.fixed = {};
  request.shape = {48};
  reason(request, Fault::kInvalid);
  request.shape = {64};
  request.order = {1};
  reason(request, Fault::kInvalid);
}

TEST_F(Search, AvoidsBankConflictsOfAGivenMemory) {
  // Row-major 32 x 32 words: a row lies in 32 banks, a column in one.
  const Layout *const rows = parse(arena_, "offset (0,1)(0,2)(0,4)(0,8)(0,16)(1,0)(2,0)(4,0)(8,0)(16,0) -> dim0 dim1");
  RegisterRequest request;
  request.shape = {32, 32};
  request.warps = 1;
  request.order = {0, 1};  // down the columns, if nothing forbids it
  expect(find(request), "register (0,1)(0,2)(0,4)(0,8)(0,16); lane (1,0)(2,0)(4,0)(8,0)(16,0); warp -> dim0 dim1");
  request.memory = rows;
  expect(find(request), "register (1,0)(2,0)(4,0)(8,0)(16,0); lane (0,1)(0,2)(0,4)(0,8)(0,16); warp -> dim0 dim1");
  // Two lanes fixed to one bank: none, unless the memory is swizzled.
  request.fixed = {{dim::kLane, 0, {1, 0}}};
  EXPECT_NE(reason(request).find("wavefronts"), std::string::npos) << arena_.text();
  request.memory = parse(arena_, "offset (0,1)(0,2)(0,4)(0,8)(0,16)(1,1)(2,2)(4,4)(8,8)(16,16) -> dim0 dim1");
  const Layout *const swizzled = find(request);
  ASSERT_NE(swizzled, nullptr) << arena_.text();
  EXPECT_EQ(simulated(*swizzled, *request.memory, 32, 0, 32), 1u);
}

TEST_F(Search, FindsMemoryForATranspose) {
  // 32 x 32 words written along rows and read along columns: each needs all banks.
  const Layout *const rows =
      parse(arena_, "register (1,0)(2,0)(4,0)(8,0)(16,0); lane (0,1)(0,2)(0,4)(0,8)(0,16); warp -> dim0 dim1");
  const Layout *const columns =
      parse(arena_, "register (0,1)(0,2)(0,4)(0,8)(0,16); lane (1,0)(2,0)(4,0)(8,0)(16,0); warp -> dim0 dim1");
  const Layout *const memory = find_memory_layout(arena_, *rows, columns, 32, 0);
  ASSERT_NE(memory, nullptr) << arena_.text();
  EXPECT_EQ(simulated(*rows, *memory, 32, 0, 32), 1u);
  EXPECT_EQ(simulated(*columns, *memory, 32, 0, 32), 1u);
  // Without a swizzle the columns would take 32 wavefronts, which the simulation and the count agree on.
  const Layout *const plain = parse(arena_, "offset (0,1)(0,2)(0,4)(0,8)(0,16)(1,0)(2,0)(4,0)(8,0)(16,0) -> dim0 dim1");
  WarpAccess access;
  ASSERT_TRUE(warp_access(arena_, *columns, *plain, 32, 32, 32, access)) << arena_.text();
  EXPECT_EQ(access.wavefronts, 32u);
  EXPECT_EQ(simulated(*columns, *plain, 32, 0, 32), 32u);
  // They share no register, so no vectors of two.
  expect_none(find_memory_layout(arena_, *rows, columns, 32, 64), Fault::kNoSolution);
}

// --- Laws ---

// A random layout of `bits` tensor bits over two dims: a permutation of unit columns, with duplicates now and then.
const Layout *any_registers(Arena &arena, std::mt19937_64 &random, uint32_t bits) {
  std::vector<uint64_t> columns;
  for (uint32_t bit = 0; bit < bits; ++bit) columns.push_back(uint64_t{1} << bit);
  std::shuffle(columns.begin(), columns.end(), random);
  if (random() % 4 == 0) columns[bits - 1 - random() % 4] ^= columns[0];  // no longer a permutation
  uint32_t lanes = 5;
  std::vector<uint64_t> all(columns.begin(), columns.begin() + (bits - 5));
  if (random() % 4 == 0) {  // a lane bit that holds the same
    all.push_back(columns[bits - 5]);
    columns[bits - 5] = 0;
  }
  const auto registers = static_cast<uint32_t>(all.size());
  all.insert(all.end(), columns.begin() + (bits - 5), columns.end());
  const std::vector<DimSize> ins{{dim::kRegister, registers}, {dim::kLane, lanes}};
  const std::vector<DimSize> outs{{standard_dim(0), bits / 2}, {standard_dim(1), bits - bits / 2}};
  return make_layout(arena, ins, outs, all);
}

TEST_F(Search, MemoryIsFreeOfConflictsOnBothSides) {
  std::mt19937_64 random(31);
  const uint64_t rounds = std::max<uint64_t>(cases() / 10, 20);  // each simulates a whole memory
  uint64_t found = 0;
  uint64_t vectors = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    arena_.reset();
    const auto bits = static_cast<uint32_t>(7 + random() % 4);
    const uint32_t element_bits = 8u << random() % 4;
    const Layout &a = *any_registers(arena_, random, bits);
    const Layout &b = *any_registers(arena_, random, bits);
    const bool alone = random() % 4 == 0;
    const uint32_t banks = random() % 4 == 0 ? 64 : 32;
    const uint32_t vector_bits = random() % 2 == 0 ? 0 : element_bits;
    const Layout *const memory = find_memory_layout(arena_, a, alone ? nullptr : &b, element_bits, vector_bits, banks);
    ASSERT_NE(memory, nullptr) << to_string(a) << to_string(b) << arena_.text();
    ++found;
    ASSERT_TRUE(is_invertible(*memory));
    for (const Layout *const each : {&a, &b}) {
      if (alone && each == &b) continue;
      // As wide as the lowest offsets are registers of both: at least what was asked for.
      uint32_t width = element_bits;
      WarpAccess access;
      for (uint32_t wider = element_bits; vector_bits == 0 && wider <= 128; wider *= 2) {
        WarpAccess both;
        if (warp_access(arena_, a, *memory, element_bits, wider, banks, both) &&
            (alone || warp_access(arena_, b, *memory, element_bits, wider, banks, both)) && both.wavefronts == 1) {
          width = wider;
        }
      }
      ASSERT_TRUE(warp_access(arena_, *each, *memory, element_bits, width, banks, access)) << arena_.text();
      ASSERT_EQ(access.wavefronts, 1u);
      ASSERT_EQ(simulated(*each, *memory, element_bits, access.registers, banks), 1u) << to_string(*memory);
      vectors += width > element_bits;
    }
  }
  EXPECT_EQ(found, rounds);
  EXPECT_GT(vectors, rounds / 10);
}

TEST_F(Search, TheCountOfWavefrontsIsTheSimulation) {
  std::mt19937_64 random(32);
  const uint64_t rounds = std::max<uint64_t>(cases() / 10, 20);
  std::set<uint64_t> seen;
  for (uint64_t round = 0; round < rounds; ++round) {
    arena_.reset();
    const auto bits = static_cast<uint32_t>(7 + random() % 4);
    const uint32_t element_bits = 8u << random() % 5;
    const Layout &registers = *any_registers(arena_, random, bits);
    const Layout &order = *any_registers(arena_, random, bits);  // its columns, as a memory
    std::vector<uint64_t> columns;
    for (const uint64_t column : order.columns()) {
      if (column != 0) columns.push_back(column);
    }
    // Vectors where the layouts happen to allow them: the first registers in front.
    const auto own = registers.columns_of(registers.ins()[0]);
    for (size_t i = 0; i < 2; ++i) {
      std::iter_swap(columns.begin() + static_cast<std::ptrdiff_t>(i),
                     std::find(columns.begin(), columns.end() - 1, own[i]));
    }
    const DimSize offset{dim::kOffset, static_cast<uint32_t>(columns.size())};
    const std::vector<DimSize> outs{{standard_dim(0), bits / 2}, {standard_dim(1), bits - bits / 2}};
    const Layout *const memory = make_layout(arena_, {&offset, 1}, outs, columns);
    if (memory == nullptr || !is_invertible(*memory)) continue;
    const uint32_t vector_bits = std::min(element_bits << random() % 3, 128u);
    WarpAccess access;
    if (!warp_access(arena_, registers, *memory, element_bits, vector_bits, 32, access)) {
      ASSERT_EQ(arena_.fault(), Fault::kNoSolution) << arena_.text();
      continue;
    }
    seen.insert(access.wavefronts);
    ASSERT_EQ(access.wavefronts, simulated(registers, *memory, element_bits, access.registers, 32))
        << to_string(registers) << to_string(*memory) << element_bits << " " << vector_bits;
  }
  EXPECT_GE(seen.size(), 3u);
}

TEST_F(Search, FindsAConflictFreeLayoutExactlyWhereThereIsOne) {
  std::mt19937_64 random(34);
  const uint64_t rounds = std::max<uint64_t>(cases() / 20, 20);
  uint64_t found = 0;
  uint64_t none = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    arena_.reset();
    // 32 words in a memory of 8 banks of any invertible kind, 8 lanes, one of them fixed.
    std::vector<uint64_t> columns(5);
    const DimSize offset{dim::kOffset, 5};
    const std::vector<DimSize> outs{{standard_dim(0), 2}, {standard_dim(1), 3}};
    const Layout *memory = nullptr;
    while (memory == nullptr || !is_invertible(*memory)) {
      for (uint64_t &column : columns) column = random() % 3 == 0 ? random() % 32 : uint64_t{1} << random() % 5;
      memory = make_layout(arena_, {&offset, 1}, outs, columns);
    }
    RegisterRequest request;
    request.shape = {4, 8};
    request.lanes = 8;
    request.warps = 1;
    request.banks = 8;
    request.memory = memory;
    request.registers = random() % 2 == 0 ? 4 : 0;  // 4 leave no room for duplicates
    request.fixed = {{dim::kLane, static_cast<uint32_t>(random() % 3), {random() % 4, random() % 8}}};
    const uint64_t fixed = request.fixed[0].values[0] | request.fixed[0].values[1] << 2;
    if (fixed == 0) continue;

    bool exists = false;
    const uint64_t choices[] = {0, 1, 2, 4, 8, 16};
    for (const uint64_t one : choices) {
      for (const uint64_t two : choices) {
        if (request.registers != 0 && (one == 0 || two == 0)) continue;
        std::vector<uint64_t> lanes{one, two};
        lanes.insert(lanes.begin() + request.fixed[0].bit, fixed);
        // Registers complete the rest.
        std::vector<uint64_t> all;
        for (const uint64_t lane : lanes) {
          if (lane != 0) all.push_back(lane);
        }
        if (rank_of(all) != all.size()) continue;
        std::vector<uint64_t> registers;
        for (const uint64_t unit : choices) {
          if (unit == 0) continue;
          all.push_back(unit);
          if (rank_of(all) == all.size()) {
            registers.push_back(unit);
          } else {
            all.pop_back();
          }
        }
        const auto count = static_cast<uint32_t>(registers.size());
        registers.insert(registers.end(), lanes.begin(), lanes.end());
        const std::vector<DimSize> ins{{dim::kRegister, count}, {dim::kLane, 3}};
        exists = exists || simulated(*make_layout(arena_, ins, outs, registers), *memory, 32, 0, 8) == 1;
      }
    }
    const Layout *const layout = find(request);
    ASSERT_EQ(layout != nullptr, exists) << to_string(*memory) << arena_.text();
    ++(exists ? found : none);
    if (layout == nullptr) {
      ASSERT_EQ(arena_.fault(), Fault::kNoSolution);
    } else {
      ASSERT_EQ(simulated(*layout, *memory, 32, 0, 8), 1u);
    }
  }
  EXPECT_GT(found, rounds / 10);
  EXPECT_GT(none, 0u);
}

TEST_F(Search, RegisterLayoutsMeetTheirConstraints) {
  std::mt19937_64 random(33);
  uint64_t found = 0;
  for (uint64_t round = 0; round < cases(); ++round) {
    arena_.reset();
    RegisterRequest request;
    request.shape = {uint64_t{1} << random() % 7, uint64_t{1} << random() % 7};
    request.element_bits = 8u << random() % 3;
    request.warps = 1u << random() % 4;
    if (random() % 2 == 0) request.order = {0, 1};
    if (random() % 2 == 0) request.vector_bits = std::min(request.element_bits << random() % 4, 128u);
    if (random() % 2 == 0) request.lane_run = uint64_t{1} << random() % 7;
    if (random() % 3 == 0) request.contiguous = {uint64_t{1} << random() % 3, uint64_t{1} << random() % 3};
    if (random() % 3 == 0) request.warps_per_dim = {uint64_t{1} << random() % 2, uint64_t{1} << random() % 3};
    if (random() % 3 == 0) request.registers = uint64_t{1} << random() % 8;
    const Layout *const layout = find(request);
    if (layout == nullptr) {
      ASSERT_EQ(arena_.fault(), Fault::kNoSolution) << arena_.text();
      continue;
    }
    ++found;
    ASSERT_TRUE(is_surjective(*layout));
    const Dim &own = layout->ins()[0];
    const Dim &lane = layout->ins()[1];
    ASSERT_TRUE(request.registers == 0 || request.registers == uint64_t{1} << own.bits);
    const uint32_t fast = request.order.empty() ? 1 : 0;
    const auto in_memory = [&](uint64_t flat) {
      const uint64_t value = layout->apply(flat);
      return layout->outs()[fast].of(value) + layout->outs()[1 - fast].of(value) * request.shape[fast];
    };
    const uint64_t vector = std::max<uint64_t>(request.vector_bits / request.element_bits, 1);
    for (uint64_t i = 0; i < std::max(request.lane_run, vector); ++i) {
      ASSERT_EQ(in_memory(own.at(i % vector) | lane.at(i / vector)), i);
    }
    for (uint32_t d = 0; d < request.contiguous.size(); ++d) {
      std::set<uint64_t> held;
      for (uint64_t r = 0; r < uint64_t{1} << own.bits; ++r) {
        const uint64_t value = layout->apply(own.at(r));
        if (layout->outs()[1 - d].of(value) == 0) held.insert(layout->outs()[d].of(value));
      }
      for (uint64_t i = 0; i < request.contiguous[d]; ++i) ASSERT_TRUE(held.contains(i));
    }
    for (uint32_t d = 0; d < request.warps_per_dim.size(); ++d) {
      std::set<uint64_t> places;
      for (uint64_t w = 0; w < request.warps; ++w) {
        places.insert(layout->outs()[d].of(layout->apply(layout->ins()[2].at(w))));
      }
      ASSERT_EQ(places.size(), request.warps_per_dim[d]);
    }
  }
  EXPECT_GT(found, cases() / 4);
  EXPECT_LT(found, cases());
}

}  // namespace
}  // namespace sonde::layout::test
