// The swizzle vectors of tests/data/layouts/swizzle.json against optimal_swizzle, bit for bit.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "layout/swizzle.h"

namespace sonde::layout::test {

inline const Layout *register_layout_of_json(Arena &arena, const nlohmann::json &bases, uint32_t dims) {
  std::vector<DimSize> ins;
  std::vector<uint64_t> columns;
  for (const auto &[name, key] : {std::pair{dim::kRegister, "register"}, {dim::kLane, "lane"}, {dim::kWarp, "warp"}}) {
    const auto values = bases.at(key).get<std::vector<uint64_t>>();
    ins.push_back({name, static_cast<uint32_t>(values.size())});
    columns.insert(columns.end(), values.begin(), values.end());
  }
  const DimSize out{standard_dim(0), dims};
  return make_layout(arena, ins, {&out, 1}, columns);
}

// Empty when the vector's swizzle and conflicts come out; otherwise what came out instead.
inline std::string mismatch_of_swizzle(Arena &arena, const nlohmann::json &vector) {
  const auto dims = vector.at("dim").get<uint32_t>();
  const Layout *const source = register_layout_of_json(arena, vector.at("src"), dims);
  const Layout *const destination = register_layout_of_json(arena, vector.at("dst"), dims);
  SwizzleOptions options;
  options.bits_per_element = vector.at("bitwidth").get<uint32_t>();
  Swizzle swizzle;
  if (source == nullptr || destination == nullptr || !optimal_swizzle(arena, *source, *destination, options, swizzle)) {
    return arena.text();
  }
  bool matches = swizzle.read_conflicts == vector.at("conflicts_read").get<uint64_t>() &&
                 swizzle.write_conflicts == vector.at("conflicts_write").get<uint64_t>();
  for (const auto &[name, key] :
       {std::pair{dim::kVector, "vector"}, {dim::kBank, "bank"}, {dim::kSegment, "segment"}, {dim::kReps, "reps"}}) {
    const auto columns = swizzle.memory->columns_of(*swizzle.memory->find_in(name));
    matches = matches && std::vector<uint64_t>(columns.begin(), columns.end()) ==
                             vector.at("smem").at(key).get<std::vector<uint64_t>>();
  }
  return matches ? "" : to_string(*swizzle.memory);
}

}  // namespace sonde::layout::test
