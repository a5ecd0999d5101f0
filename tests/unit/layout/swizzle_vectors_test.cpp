// The published swizzle vectors, bit for bit.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "layout/swizzle.h"

namespace sonde::layout {
namespace {

using nlohmann::json;

const Layout *register_layout(Arena &arena, const json &bases, uint32_t dims) {
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

TEST(SwizzleVectors, AllAreReproduced) {
  std::ifstream file(SONDE_TEST_SOURCE_DIR "/tests/data/layouts/swizzle.json");
  ASSERT_TRUE(file) << "tests/data/layouts/swizzle.json is missing";
  const json vectors = json::parse(file);
  ASSERT_EQ(vectors.size(), 267u);
  Arena arena;
  size_t checked = 0;
  size_t mismatched = 0;
  for (const json &vector : vectors) {
    arena.reset();
    const auto dims = vector.at("dim").get<uint32_t>();
    const Layout *const source = register_layout(arena, vector.at("src"), dims);
    const Layout *const destination = register_layout(arena, vector.at("dst"), dims);
    ASSERT_NE(source, nullptr) << arena.text();
    ASSERT_NE(destination, nullptr) << arena.text();
    SwizzleOptions options;
    options.bits_per_element = vector.at("bitwidth").get<uint32_t>();
    Swizzle swizzle;
    ASSERT_TRUE(optimal_swizzle(arena, *source, *destination, options, swizzle)) << arena.text();
    bool matches = swizzle.read_conflicts == vector.at("conflicts_read").get<uint64_t>() &&
                   swizzle.write_conflicts == vector.at("conflicts_write").get<uint64_t>();
    for (const auto &[name, key] :
         {std::pair{dim::kVector, "vector"}, {dim::kBank, "bank"}, {dim::kSegment, "segment"}, {dim::kReps, "reps"}}) {
      const auto columns = swizzle.memory->columns_of(*swizzle.memory->find_in(name));
      matches = matches && std::vector<uint64_t>(columns.begin(), columns.end()) ==
                               vector.at("smem").at(key).get<std::vector<uint64_t>>();
    }
    ++checked;
    if (!matches) {
      ++mismatched;
      if (mismatched < 4) ADD_FAILURE() << vector.dump() << to_string(*swizzle.memory);
    }
  }
  EXPECT_EQ(checked, 267u);
  EXPECT_EQ(mismatched, 0u);
}

}  // namespace
}  // namespace sonde::layout
