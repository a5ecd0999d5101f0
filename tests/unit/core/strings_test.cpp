#include "core/strings.h"

#include "support.h"

namespace sonde::test {
namespace {

TEST(Strings, TheSameTextHasTheSameId) {
  core::StringTable table;
  const uint32_t first = table.intern("kernel");
  EXPECT_NE(first, 0u);
  EXPECT_EQ(table.intern("kernel"), first);
  EXPECT_NE(table.intern("kernel2"), first);
  EXPECT_EQ(table.intern(""), 0u);
  EXPECT_EQ(table.view(0), "");
}

TEST(Strings, KeepsEveryByte) {
  core::StringTable table;
  const std::string odd("a\0b\x9f\xff\n\"", 7);
  EXPECT_EQ(table.view(table.intern(odd)), odd);
}

TEST(Strings, CutsAtOneMebibyteAndHoldsLongOnes) {
  core::StringTable table;
  const std::string mangled(30'000, 'x');
  EXPECT_EQ(table.view(table.intern(mangled)), mangled);
  EXPECT_EQ(table.view(table.intern(std::string(2 << 20, 'y'))).size(), core::StringTable::kMaxBytes);
}

TEST(Strings, AnUnknownIdHasNoText) {
  core::StringTable table;
  EXPECT_EQ(table.view(12345).data(), nullptr);
}

// faults: 10^6 functions in one module table.
TEST(Strings, HoldsAMillionNames) {
  core::StringTable table;
  std::vector<uint32_t> ids;
  for (int i = 0; i < 1'000'000; ++i) ids.push_back(table.intern("function_" + std::to_string(i)));
  for (int i = 0; i < 1'000'000; i += 997)
    ASSERT_EQ(table.view(ids[static_cast<size_t>(i)]), "function_" + std::to_string(i));
  EXPECT_EQ(table.size(), 1'000'001u);
}

TEST(Strings, ThreadsAgreeOnIds) {
  core::StringTable table;
  std::vector<std::vector<uint32_t>> seen(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        const uint32_t id = table.intern("name" + std::to_string(i % 500));
        seen[t].push_back(id);
        if (table.view(id) != "name" + std::to_string(i % 500)) seen[t].push_back(0);
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (size_t t = 1; t < 4; ++t) EXPECT_EQ(seen[t], seen[0]);
}

}  // namespace
}  // namespace sonde::test
