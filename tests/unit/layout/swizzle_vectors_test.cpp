// The published swizzle vectors, bit for bit.
#include <gtest/gtest.h>

#include <fstream>

#include "vectors_swizzle.h"

namespace sonde::layout::test {
namespace {

TEST(SwizzleVectors, AllAreReproduced) {
  std::ifstream file(SONDE_TEST_SOURCE_DIR "/tests/data/layouts/swizzle.json");
  ASSERT_TRUE(file) << "tests/data/layouts/swizzle.json is missing";
  const nlohmann::json vectors = nlohmann::json::parse(file);
  ASSERT_EQ(vectors.size(), 267u);
  Arena arena;
  for (const nlohmann::json &vector : vectors) {
    arena.reset();
    EXPECT_EQ(mismatch_of_swizzle(arena, vector), "") << vector.dump();
  }
}

}  // namespace
}  // namespace sonde::layout::test
