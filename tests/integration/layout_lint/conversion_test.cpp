// Conversions: what they cost and what could do without them. Reductions and gathers.
#include "lint_case.h"

namespace sonde::layout_lint {
namespace {

// 32x32 words, one warp: lanes along the columns (a), along the rows (b), and b again under another name (c).
constexpr const char *kLayouts =
    "#a = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 1], order = [1, 0]}>\n"
    "#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 1], order = [0, 1]}>\n"
    "#c = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], "
    "[16, "
    "0]], warp = [], block = []}>\n"
    "#d = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>\n";

FileResult convert(const std::string &body, const std::string &arguments = "%x: tensor<32x32xf32, #a>") {
  return lint(module_text(kLayouts, arguments, body));
}

const std::string kToB = "    %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>\n";

// Registers and lanes change places entirely: 5 transpositions are too many for shuffles, so all 4096 bytes pass through
// shared memory (perhaps in rounds), and with 32 lanes, 32 banks and words no bank conflicts are needed.
TEST(Conversion, ATransposeGoesThroughSharedMemoryWithoutConflicts) {
  const Site site = site_of(convert(kToB), "ttg.convert_layout");
  EXPECT_EQ(site.plan, "shared memory") << site.reason;
  ASSERT_TRUE(site.shared_bytes && site.repetitions);
  EXPECT_EQ(*site.shared_bytes * *site.repetitions, 4096u);
  EXPECT_EQ(site.store_conflicts, 0u);
  EXPECT_EQ(site.load_conflicts, 0u);
  EXPECT_EQ(site.source, "#a");
  EXPECT_EQ(site.destination, "#b");
  EXPECT_EQ(site.tensor, "32x32xf32");
  EXPECT_TRUE(site.issues.empty());
}

TEST(Conversion, TheSameLayoutUnderAnotherNameMovesNothing) {
  const FileResult result = convert("    %y = ttg.convert_layout %x : tensor<32x32xf32, #b> -> tensor<32x32xf32, #c>\n",
                                    "%x: tensor<32x32xf32, #b>");
  const Site &site = site_of(result, "ttg.convert_layout");
  EXPECT_EQ(site.plan, "no-op");
  EXPECT_EQ(rules_of(site), std::vector<std::string>{"redundant_conversion"});
}

TEST(Conversion, ThereAndBackIsRedundant) {
  const FileResult result =
      convert(kToB + "    %z = ttg.convert_layout %y : tensor<32x32xf32, #b> -> tensor<32x32xf32, #a>\n");
  EXPECT_TRUE(site_of(result, "ttg.convert_layout", 0).issues.empty());
  EXPECT_EQ(rules_of(site_of(result, "ttg.convert_layout", 1)), std::vector<std::string>{"redundant_conversion"});
}

TEST(Conversion, TwoInARowShouldBeOne) {
  const std::string body = kToB + "    %z = ttg.convert_layout %y : tensor<32x32xf32, #b> -> tensor<32x32xf32, #d>\n";
  const FileResult chained = lint(module_text(kLayouts, "%x: tensor<32x32xf32, #a>", body));
  EXPECT_EQ(rules_of(site_of(chained, "ttg.convert_layout", 1)), std::vector<std::string>{"chained_conversion"});
  // With another user the layout between them is needed.
  const FileResult used =
      lint(module_text(kLayouts, "%x: tensor<32x32xf32, #a>", body + "    %w = math.exp %y : tensor<32x32xf32, #b>\n"));
  EXPECT_TRUE(site_of(used, "ttg.convert_layout", 1).issues.empty());
}

TEST(Conversion, AConstantNeedNotMove) {
  const FileResult result = convert(
      "    %x = arith.constant dense<0> : tensor<32x32xi32, #a>\n"
      "    %y = ttg.convert_layout %x : tensor<32x32xi32, #a> -> tensor<32x32xi32, #b>\n",
      "");
  EXPECT_EQ(rules_of(site_of(result, "ttg.convert_layout")), std::vector<std::string>{"converted_constant"});
}

TEST(Conversion, AnInvariantNeedNotMoveInEveryTurn) {
  const std::string loop = "    scf.for %i = %n to %n step %n  : i32 {\n";
  const FileResult result = convert(loop + kToB + "    %w = math.exp %y : tensor<32x32xf32, #b>\n    }\n",
                                    "%x: tensor<32x32xf32, #a>, %n: i32");
  const Site &site = site_of(result, "ttg.convert_layout");
  EXPECT_EQ(site.loop_depth, 1u);
  EXPECT_EQ(rules_of(site), std::vector<std::string>{"invariant_conversion"});
  const FileResult inside = convert(loop +
                                        "    %e = math.exp %x : tensor<32x32xf32, #a>\n"
                                        "    %y = ttg.convert_layout %e : tensor<32x32xf32, #a> -> "
                                        "tensor<32x32xf32, #b>\n    }\n",
                                    "%x: tensor<32x32xf32, #a>, %n: i32");
  EXPECT_TRUE(site_of(inside, "ttg.convert_layout").issues.empty());
}

TEST(Conversion, WideElementsAreBetterMovedNarrow) {
  const FileResult widened = convert(
      "    %w = arith.extf %x : tensor<32x32xf16, #a> to tensor<32x32xf32, #a>\n"
      "    %y = ttg.convert_layout %w : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>\n",
      "%x: tensor<32x32xf16, #a>");
  EXPECT_EQ(rules_of(site_of(widened, "ttg.convert_layout")), std::vector<std::string>{"wide_conversion"});
  const FileResult narrowed =
      convert(kToB + "    %w = arith.truncf %y : tensor<32x32xf32, #b> to tensor<32x32xf16, #b>\n");
  EXPECT_EQ(rules_of(site_of(narrowed, "ttg.convert_layout")), std::vector<std::string>{"wide_conversion"});
}

TEST(Conversion, AllOperandsOfOneOperationShouldBeConvertedOnce) {
  const FileResult result =
      convert(kToB +
                  "    %y2 = ttg.convert_layout %x2 : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>\n"
                  "    %s = arith.addf %y, %y2 : tensor<32x32xf32, #b>\n",
              "%x: tensor<32x32xf32, #a>, %x2: tensor<32x32xf32, #a>");
  EXPECT_EQ(rules_of(site_of(result, "ttg.convert_layout", 0)), std::vector<std::string>{"joint_conversion"});
  EXPECT_TRUE(site_of(result, "ttg.convert_layout", 1).issues.empty());
}

// Rows of 32 words, one after the other. In d a request covers 4 rows of 128 bytes: 16 sectors; 8 requests. In b a lane
// holds a row and a request covers 16 bytes of each of 32 rows: 32 sectors, 8 requests. So converting to d serves the
// store, and converting to b only harms.
std::string store_in(const std::string &layout, const std::string &from) {
  const auto type = [&](const std::string &element) { return "tensor<32x32x" + element + ", " + layout + ">"; };
  const std::string row = "tensor<32xi32, #ttg.slice<{dim = 1, parent = " + layout + "}>>";
  const std::string column = "tensor<32xi32, #ttg.slice<{dim = 0, parent = " + layout + "}>>";
  return "    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : " + row +
         "\n    %j = tt.make_range {end = 32 : i32, start = 0 : i32} : " + column +
         "\n    %i1 = tt.expand_dims %i {axis = 1 : i32} : " + row + " -> tensor<32x1xi32, " + layout +
         ">\n    %j1 = tt.expand_dims %j {axis = 0 : i32} : " + column + " -> tensor<1x32xi32, " + layout +
         ">\n    %c = arith.constant dense<32> : tensor<32x1xi32, " + layout +
         ">\n    %r = arith.muli %i1, %c : tensor<32x1xi32, " + layout +
         ">\n    %r1 = tt.broadcast %r : tensor<32x1xi32, " + layout + "> -> " + type("i32") +
         "\n    %j2 = tt.broadcast %j1 : tensor<1x32xi32, " + layout + "> -> " + type("i32") +
         "\n    %o = arith.addi %r1, %j2 : " + type("i32") + "\n    %s = tt.splat %p : !tt.ptr<f32> -> " +
         type("!tt.ptr<f32>") + "\n    %q = tt.addptr %s, %o : " + type("!tt.ptr<f32>") + ", " + type("i32") +
         "\n    %y = ttg.convert_layout %x : tensor<32x32xf32, " + from + "> -> " + type("f32") +
         "\n    tt.store %q, %y : " + type("!tt.ptr<f32>") + "\n";
}

TEST(Conversion, ForAStoreItMustPay) {
  const std::string pointer = ", %p: !tt.ptr<f32> {tt.divisibility = 16 : i32}";
  const FileResult good = convert(store_in("#d", "#b"), "%x: tensor<32x32xf32, #b>" + pointer);
  EXPECT_EQ(site_of(good, "tt.store").sectors, 16u) << site_of(good, "tt.store").reason;
  EXPECT_TRUE(site_of(good, "ttg.convert_layout").issues.empty());
  const FileResult bad = convert(store_in("#b", "#d"), "%x: tensor<32x32xf32, #d>" + pointer);
  EXPECT_EQ(site_of(bad, "tt.store").sectors, 32u);
  EXPECT_EQ(rules_of(site_of(bad, "ttg.convert_layout")), std::vector<std::string>{"avoidable_conversion"});
}

// 8x128 over 4 warps along dim 1: the maximum of a row needs all 4 warps; 8 rows of 4 partial results of 4 bytes.
TEST(Reduction, OverWarpsPassesThroughSharedMemory) {
  const auto text = [](const std::string &warps) {
    return module_text("#e = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = " + warps +
                           ", order = [1, 0]}>\n",
                       "%x: tensor<8x128xf32, #e>",
                       "    %m = \"tt.reduce\"(%x) <{axis = 1 : i32}> ({\n    ^bb0(%a: f32, %b: f32):\n"
                       "      %c = arith.maxnumf %a, %b : f32\n      tt.reduce.return %c : f32\n"
                       "    }) : (tensor<8x128xf32, #e>) -> tensor<8xf32, #ttg.slice<{dim = 1, parent = #e}>>\n",
                       4);
  };
  const Site across = site_of(lint(text("[1, 4]")), "tt.reduce");
  EXPECT_EQ(across.plan, "through shared memory") << across.reason;
  EXPECT_EQ(across.shared_bytes, 8u * 4 * 4);
  EXPECT_TRUE(breaks(across, "cross_warp_reduction"));
  // Warps along the rows: each warp has 2 rows of its own; 5 shuffles for each.
  const Site within = site_of(lint(text("[4, 1]")), "tt.reduce");
  EXPECT_EQ(within.plan, "warp shuffles");
  EXPECT_EQ(within.shuffles, 10u);
  EXPECT_TRUE(within.issues.empty());
}

TEST(Gather, WithinAWarpShuffles) {
  const FileResult result = lint(module_text(
      "#g = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>\n",
      "%x: tensor<32xi32, #g>, %k: tensor<32xi32, #g>",
      "    %w = tt.gather %x[%k] {axis = 0 : i32} : (tensor<32xi32, #g>, tensor<32xi32, #g>) -> tensor<32xi32, #g>\n"));
  const Site &site = site_of(result, "tt.gather");
  EXPECT_EQ(site.plan, "warp shuffles") << site.reason;
  EXPECT_EQ(site.shuffles, 1u);  // one register on each side
}

TEST(Conversion, WhatCannotBeReadSaysWhy) {
  const FileResult result = lint(module_text("#z = #ttg.unheard_of<{x = 1}>\n", "%x: tensor<32x32xf32, #z>",
                                             "    %y = ttg.convert_layout %x : tensor<32x32xf32, #z> -> "
                                             "tensor<32x32xf32, #q>\n"));
  const Site &site = site_of(result, "ttg.convert_layout");
  EXPECT_EQ(site.plan, "");
  EXPECT_NE(site.reason.find("the encoding #z cannot be read"), std::string::npos) << site.reason;
  EXPECT_EQ(result.unparsed, 2u);  // #z and #q
  EXPECT_FALSE(site.unseen.empty());
}

}  // namespace
}  // namespace sonde::layout_lint
