// Layouts through sonde.hpp.
#include <gtest/gtest.h>
#include <sonde/sonde.hpp>

#include <vector>

namespace {

using sonde::Layout;

class CppLayouts : public testing::Test {
 protected:
  sonde::Host host{sonde_host()};
  sonde::LayoutArena arena{host};
};

TEST_F(CppLayouts, ReadAsTheHeaderSays) {
  const Layout tile = arena.layout({{"register", {{0, 1}, {1, 0}}}, {"lane", {{0, 2}, {0, 4}}}}, {"dim0", "dim1"});
  EXPECT_EQ(tile.apply({1, 2}), (std::vector<uint64_t>{0, 5}));
  EXPECT_TRUE(tile.is_invertible());
  const Layout back = tile.invert();
  for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(back(tile(i)), i);
  EXPECT_EQ(arena.from_json(tile.to_json()), tile);
  EXPECT_EQ(arena.from_bytes(tile.to_bytes()), tile);
  EXPECT_EQ(tile.table(3, 4)[1], tile(4));
  EXPECT_EQ(tile.transpose(SONDE_SIDE_OUT, {"dim1", "dim0"}).equal(tile, SONDE_LAYOUT_EQUAL_AS_MAPS), true);
  EXPECT_EQ(tile.hash(), arena.from_json(tile.to_json()).hash());
}

TEST_F(CppLayouts, MultiplyAndDivide) {
  const Layout small = arena.identity(4, "in", "out");
  const Layout both = small * arena.identity(8, "in", "out");
  EXPECT_EQ(both, arena.identity(32, "in", "out"));
  ASSERT_TRUE(both.divide_left(small).has_value());
  EXPECT_EQ(*both.divide_left(small), arena.identity(8, "in", "out"));
  EXPECT_FALSE(both.divide_left(arena.strided(2, 2, "in", "out")).has_value());
}

TEST_F(CppLayouts, FailuresAreExceptions) {
  const Layout tile = arena.identity(8, "in", "out");
  try {
    (void)tile.compose(tile);
    FAIL() << "compose with the wrong dims succeeded";
  } catch (const sonde::Failure &failure) {
    EXPECT_EQ(failure.status(), SONDE_E_INVALID);
  }
  EXPECT_THROW((void)arena.identity(3, "in", "out"), sonde::Failure);
  EXPECT_THROW((void)tile.apply({1, 2}), sonde::Failure);
}

TEST_F(CppLayouts, SurviveTheirArenasMove) {
  sonde::LayoutArena first(host);
  const Layout tile = first.identity(8, "in", "out");
  const sonde::LayoutArena second = std::move(first);
  EXPECT_EQ(tile.invert()(5), 5u);
}

}  // namespace
