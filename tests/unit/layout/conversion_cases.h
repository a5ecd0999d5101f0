// Register layouts for the tests of swizzles, plans and analyses: written as bases, or random.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "layout/layout.h"

namespace sonde::layout::test {

using Points = std::vector<std::vector<uint64_t>>;

// A layout from (register, lane, warp, block) to dim0, dim1, ... of the sizes 2^bits. nullptr when the bases do not fit.
inline const Layout *distributed(Arena &arena, const std::vector<uint32_t> &out_bits, const Points &registers,
                                 const Points &lanes, const Points &warps = {}, const Points &blocks = {}) {
  std::vector<DimSize> ins;
  std::vector<uint64_t> rows;
  for (const auto &[name, points] : {std::pair<DimName, const Points &>{dim::kRegister, registers},
                                     {dim::kLane, lanes},
                                     {dim::kWarp, warps},
                                     {dim::kBlock, blocks}}) {
    ins.push_back({name, static_cast<uint32_t>(points.size())});
    for (const auto &point : points) rows.insert(rows.end(), point.begin(), point.end());
  }
  std::vector<DimSize> outs;
  for (uint32_t i = 0; i < out_bits.size(); ++i) outs.push_back({standard_dim(i), out_bits[i]});
  return make_from_bases(arena, ins, outs, rows);
}

// 128x128 of 4 warps, 8 elements of a row for each of 16 lanes, and the output of a 16x8 matrix multiply.
inline const Layout *blocked_128(Arena &arena) {
  return distributed(arena, {7, 7}, {{0, 1}, {0, 2}, {0, 4}, {0, 64}, {16, 0}, {32, 0}, {64, 0}},
                     {{0, 8}, {0, 16}, {0, 32}, {1, 0}, {2, 0}}, {{4, 0}, {8, 0}});
}
inline const Layout *mma_128(Arena &arena) {
  return distributed(arena, {7, 7}, {{0, 1}, {8, 0}, {0, 8}, {0, 16}, {0, 32}, {0, 64}, {64, 0}},
                     {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}, {{16, 0}, {32, 0}});
}

inline uint64_t cases(uint64_t usual = 2000) {
  const char *const text = std::getenv("SONDE_CASES");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

// A random distributed layout (register, lane, warp, block) -> dim0 of 2^dims: every unit vector once, zero columns as
// broadcasts in between.
struct RandomLayout {
  uint32_t dims = 8;
  uint32_t lanes = 5;
  uint32_t warps = 2;
  uint32_t blocks = 0;
  double broadcasts = 0.1;      // chance that a lane, warp or block bit is a broadcast
  uint32_t zero_registers = 0;  // added at random places
};

inline const Layout *random_distributed(Arena &arena, std::mt19937_64 &random, const RandomLayout &wish) {
  std::vector<uint64_t> units(wish.dims);
  for (uint32_t i = 0; i < wish.dims; ++i) units[i] = uint64_t{1} << i;
  std::shuffle(units.begin(), units.end(), random);
  const auto take = [&](uint32_t count) {
    std::vector<uint64_t> columns;
    for (uint32_t i = 0; i < count; ++i) {
      if (units.empty() || std::uniform_real_distribution<>(0, 1)(random) < wish.broadcasts) {
        columns.push_back(0);
      } else {
        columns.push_back(units.back());
        units.pop_back();
      }
    }
    return columns;
  };
  const std::vector<uint64_t> blocks = take(wish.blocks);
  const std::vector<uint64_t> warps = take(wish.warps);
  const std::vector<uint64_t> lanes = take(wish.lanes);
  std::vector<uint64_t> registers = units;
  for (uint32_t i = 0; i < wish.zero_registers; ++i) {
    registers.insert(registers.begin() + static_cast<ptrdiff_t>(random() % (registers.size() + 1)), 0);
  }
  std::vector<uint64_t> columns = registers;
  for (const auto *part : {&lanes, &warps, &blocks}) columns.insert(columns.end(), part->begin(), part->end());
  const std::vector<DimSize> ins = {{dim::kRegister, static_cast<uint32_t>(registers.size())},
                                    {dim::kLane, wish.lanes},
                                    {dim::kWarp, wish.warps},
                                    {dim::kBlock, wish.blocks}};
  const DimSize out{standard_dim(0), wish.dims};
  return make_layout(arena, ins, {&out, 1}, columns);
}

}  // namespace sonde::layout::test
