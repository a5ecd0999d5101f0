// Parameters of encodings against the layouts that Triton's own conversion tests expect.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "vectors_encoding.h"

namespace sonde::layout::test {
namespace {

TEST(ConversionVectors, EveryEncodingGivesTheExpectedBases) {
  const auto vectors = read_conversion_vectors(SONDE_TEST_SOURCE_DIR "/tests/data/layouts/conversions.json");
  ASSERT_EQ(vectors.size(), 178u);
  Arena arena;
  uint64_t mismatched = 0;
  std::map<std::string_view, uint64_t> by_kind;
  for (const ConversionVector &vector : vectors) {
    arena.reset();
    const Layout *const layout = encoding_layout(arena, vector.encoding, vector.shape);
    const Layout *const expected = layout == nullptr ? nullptr : layout_of_json(arena, vector.expected);
    ++by_kind[encoding_kind_text(vector.encoding.kind)];
    if (layout != nullptr && expected != nullptr && equal(*layout, *expected)) continue;
    ++mismatched;
    ADD_FAILURE() << vector.test << (layout == nullptr ? ": " + arena.text() : ": got" + to_string(*layout));
  }
  std::printf("%zu checked, %llu mismatched\n", vectors.size(), static_cast<unsigned long long>(mismatched));
  for (const auto &[kind, count] : by_kind) {
    std::printf("  %.*s %llu\n", static_cast<int>(kind.size()), kind.data(), static_cast<unsigned long long>(count));
  }
}

}  // namespace
}  // namespace sonde::layout::test
