// Layouts through sonde.hpp.
#include <gtest/gtest.h>
#include <sonde/sonde.hpp>

#include <string>
#include <utility>
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

TEST_F(CppLayouts, HaveCuteModularAndSearch) {
  const sonde::Cute a(arena, "(6,2):(8,2)");
  ASSERT_TRUE(a.compose("(4,3):(3,1)").has_value());
  EXPECT_EQ(a.compose("(4,3):(3,1)")->print(), "((2,2),3):((24,2),8)");
  EXPECT_FALSE(sonde::Cute(arena, "(6,2):(1,7)").compose("(3,2):(2,3)").has_value());
  EXPECT_EQ(a(7), 8 + 2);
  EXPECT_EQ(a.size(), 12);
  EXPECT_EQ(sonde::Cute(arena, "(2,(1,6)):(1,(6,2))").transform(SONDE_CUTE_COALESCE)->print(), "12:1");
  ASSERT_TRUE(sonde::Cute(arena, "4:5").to_linear({{"i", 4}}, {{"o", 16}}).has_value());
  EXPECT_EQ((*sonde::Cute(arena, "4:5").to_linear({{"i", 4}}, {{"o", 16}}))(3), 15u);
  EXPECT_FALSE(sonde::Cute(arena, "(2,2):(1,1)").to_linear({{"i", 4}}, {{"o", 4}}).has_value());
  EXPECT_THROW(sonde::Cute(arena, "(2"), sonde::Failure);

  const sonde::ModularLayout thirds(arena, {{"register", 3, {{1}, {2}}}, {"lane", 32, {{3}, {6}, {12}, {24}, {48}}}},
                                    {{"dim0", 96}});
  EXPECT_EQ(thirds.apply({2, 5}), std::vector<uint64_t>{17});
  ASSERT_TRUE(thirds.solve({77}).has_value());
  EXPECT_EQ(thirds.apply(*thirds.solve({77})), std::vector<uint64_t>{77});
  EXPECT_FALSE(thirds.invert().has_value());

  const uint64_t shape[] = {64, 64};
  sonde_register_request_t request{};
  request.rank = 2;
  request.shape = shape;
  request.element_bits = 16;
  request.lanes = 32;
  request.warps = 4;
  request.vector_bits = 128;
  ASSERT_TRUE(sonde::find_registers(arena, request).has_value());
  EXPECT_TRUE(sonde::find_registers(arena, request)->is_surjective());
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

TEST_F(CppLayouts, ComeFromEncodings) {
  // 2 elements a thread along dim1, 8 lanes by 4, rows past 8 repeat in registers:
  // register 1 -> (0, 1), 2 -> (8, 0); lane 1 -> (0, 2), 2 -> (0, 4), 4 -> (1, 0), 8 -> (2, 0), 16 -> (4, 0).
  const auto blocked = sonde::Encoding::parse(
      host, "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}>");
  EXPECT_EQ(blocked.kind(), "blocked");
  EXPECT_EQ(blocked.space(), SONDE_ENCODING_REGISTERS);
  EXPECT_EQ(sonde::Encoding::parse(host, blocked.text()).text(), blocked.text());
  const Layout layout = blocked.layout(arena, {16, 8});
  EXPECT_EQ(layout.apply({3, 21, 0, 0}), (std::vector<uint64_t>{8 + 4 + 1, 1 + 2}));
  EXPECT_TRUE(layout.is_permutation());
  EXPECT_EQ(layout.contiguous_per_thread(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(layout.elements_per_thread(), (std::pair<uint64_t, uint64_t>{4, 4}));
  // Half the rows: lane 16 and register 2 hold copies.
  EXPECT_EQ(blocked.layout(arena, {4, 8}).free_masks(), (std::vector<uint64_t>{0, 16, 0, 0}));
  EXPECT_THROW(sonde::Encoding::parse(host, "#ttg.blocked<{"), sonde::Failure);
}

TEST_F(CppLayouts, EncodingsComeFromModulesAndParameters) {
  const std::string module =
      "#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>\n"
      "#b = #ttg.blocked<{sizePerThread = [1}>\n";
  const std::vector<sonde::FoundEncoding> found = sonde::Encoding::scan(host, module);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].alias, "a");
  EXPECT_EQ(found[0].offset, 5u);
  EXPECT_EQ(found[0].error, "");
  EXPECT_EQ(found[1].text, "");
  EXPECT_NE(found[1].error, "");
  EXPECT_EQ(sonde::Encoding::parse(host, "#a", module).text(), found[0].text);
  const uint64_t one[] = {1};
  const uint64_t lanes[] = {32};
  const uint64_t warps[] = {4};
  const uint64_t order[] = {0};
  const auto made = sonde::Encoding::make(host, "blocked",
                                          {{"sizePerThread", one, 1, 1, 0, 0},
                                           {"threadsPerWarp", lanes, 1, 1, 0, 0},
                                           {"warpsPerCTA", warps, 1, 1, 0, 0},
                                           {"order", order, 1, 1, 0, 0}});
  EXPECT_EQ(made.text(), found[0].text);
}

TEST_F(CppLayouts, ArePlannedBetween) {
  // A transposition of one register bit with one lane bit.
  const std::vector<std::string> outs = {"dim0"};
  const Layout source =
      arena.layout({{"register", {{1}}}, {"lane", {{2}, {4}, {8}, {16}, {32}}}, {"warp", {{64}}}}, outs);
  const Layout swapped =
      arena.layout({{"register", {{2}}}, {"lane", {{1}, {4}, {8}, {16}, {32}}}, {"warp", {{64}}}}, outs);
  EXPECT_EQ(sonde::Plan::make(arena, source, source, {}).kind, SONDE_PLAN_NOTHING);
  const sonde::Plan shuffles = sonde::Plan::make(arena, source, swapped, {});
  EXPECT_EQ(shuffles.kind, SONDE_PLAN_SHUFFLES);
  EXPECT_GT(shuffles.shuffles, 0u);
  EXPECT_FALSE(shuffles.memory_layout().has_value());
  // Who wants register 1 of lane 0 finds it in lane 1.
  ASSERT_TRUE(shuffles.conversion_layout().has_value());
  EXPECT_EQ(shuffles.conversion_layout()->apply({1, 0, 0, 0}), (std::vector<uint64_t>{0, 1, 0, 0}));
  sonde::PlanOptions options;
  options.only_memory = true;
  const sonde::Plan memory = sonde::Plan::make(arena, source, swapped, options);
  EXPECT_EQ(memory.kind, SONDE_PLAN_SHARED_MEMORY);
  ASSERT_TRUE(memory.memory_layout().has_value());
  EXPECT_EQ(memory.shared_bytes, 128u * 4);
  // Values are the elements' numbers, so each place of the destination receives what its layout says.
  EXPECT_EQ(sonde::Plan::execute(arena, source, swapped, options, source.table(0, 128)), swapped.table(0, 128));
}

}  // namespace
