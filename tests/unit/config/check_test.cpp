#include "config/check.h"

#include <gtest/gtest.h>

#include "config/parse.h"

namespace sonde::config {
namespace {

constexpr sonde_option_t kOptions[] = {
    {"idle.threshold", "3%", "share of idle time", "", "0..1", SONDE_OPTION_F64, 0},
    {"idle.window", "2.5ms", "window", "ns", "1us..10s", SONDE_OPTION_TIME, 0},
    {"rows", "20", "rows shown", "", "1..1Ki", SONDE_OPTION_I64, 0},
    {"mode", "fast", "how", "", "fast|exact", SONDE_OPTION_TEXT, 0},
    {"name", "", "any text", "", "", SONDE_OPTION_TEXT, 0},
    {"spaces", "[a, b]", "list", "", "", SONDE_OPTION_TEXTS, 0},
    {"deep", "true", "switch", "", "", SONDE_OPTION_BOOL, 0},
    {"extra", "{}", "anything", "", "", SONDE_OPTION_TREE, 0},
};
constexpr Options kTable{kOptions, std::size(kOptions), sizeof(sonde_option_t)};

std::unique_ptr<Document> tree(std::string_view text) {
  Result<std::unique_ptr<Document>> result = parse(text, "run.yaml");
  EXPECT_TRUE(result) << result.error().text;
  return std::move(*result);
}

std::string faults(std::string_view text, const Options &options = kTable) {
  const auto given = tree(text);
  Result<std::unique_ptr<Document>> result = check(&given->root, "workload", options);
  if (result) return "";
  EXPECT_EQ(result.error().code, SONDE_E_INVALID);
  return result.error().text;
}

TEST(Check, FillsInDefaults) {
  Result<std::unique_ptr<Document>> result = check(nullptr, "workload", kTable);
  ASSERT_TRUE(result) << result.error().text;
  const Node &root = (*result)->root;
  EXPECT_EQ(root.at("idle.threshold")->text, "0.03");
  EXPECT_EQ(root.at("idle.window")->text, "2500000");
  EXPECT_EQ(root.at("rows")->text, "20");
  EXPECT_EQ(root.at("mode")->text, "fast");
  EXPECT_EQ(root.at("name")->kind, Kind::kScalar);
  EXPECT_EQ(root.at("name")->text, "");
  EXPECT_EQ(root.at("spaces.1")->text, "b");
  EXPECT_EQ(root.at("deep")->text, "true");
  EXPECT_EQ(root.at("extra")->kind, Kind::kMap);
  EXPECT_EQ(where(*root.at("rows")), "workload");
}

TEST(Check, TakesNestedAndDottedNames) {
  const auto given = tree("idle: {threshold: 0.5}\nidle.window: 1s\nrows: 0x10\nextra: {a: [1]}\n");
  Result<std::unique_ptr<Document>> result = check(&given->root, "workload", kTable);
  ASSERT_TRUE(result) << result.error().text;
  EXPECT_EQ((*result)->root.at("idle.threshold")->text, "0.5");
  EXPECT_EQ((*result)->root.at("idle.window")->text, "1000000000");
  EXPECT_EQ((*result)->root.at("rows")->text, "16");
  EXPECT_EQ((*result)->root.at("extra.a.0")->text, "1");
  EXPECT_EQ(where(*(*result)->root.at("idle.threshold")), "run.yaml:1:19");
}

TEST(Check, ReportsAllFaultsAtOnceEachWithItsPlace) {
  EXPECT_EQ(faults("idle: {treshold: 1}\nrows: 5000\nmode: fsat\ndeep: maybe\nspaces: x\nname: [1]\n"),
            "run.yaml:1:8: unknown option 'idle.treshold' of workload; did you mean 'idle.threshold'?\n"
            "run.yaml:2:7: option 'rows' of workload is 5000, outside 1..1Ki\n"
            "run.yaml:3:7: option 'mode' of workload is 'fsat'; expected one of fast, exact; did you mean 'fast'?\n"
            "run.yaml:6:7: option 'name' of workload is a list; expected text\n"
            "run.yaml:5:9: option 'spaces' of workload is 'x'; expected a list of text\n"
            "run.yaml:4:7: option 'deep' of workload is 'maybe'; expected true or false");
}

TEST(Check, RefusesUnknownNamesWithoutANearOne) {
  EXPECT_EQ(faults("zzz: 1\n").rfind("run.yaml:1:1: unknown option 'zzz' of workload; there are idle.threshold", 0),
            0u);
  EXPECT_EQ(faults("rows: 1\n", Options{}), "run.yaml:1:1: unknown option 'rows' of workload; it takes none");
}

TEST(Check, RefusesAMissingValueAndADoubleOne) {
  EXPECT_EQ(faults("rows:\n"), "run.yaml:1:1: option 'rows' of workload has no value; expected an integer");
  EXPECT_EQ(faults("idle.window: 1s\nidle: {window: 2s}\n"),
            "run.yaml:2:8: 'idle.window' of workload is given a second time, first at run.yaml:1:14");
  EXPECT_EQ(faults("idle: 3\n"), "run.yaml:1:7: 'idle' of workload is text; expected a map");
  EXPECT_EQ(faults("- 1\n"), "run.yaml:1:1: workload takes a map of options, this is a list");
  EXPECT_EQ(faults("idle:\n"), "");
}

TEST(Check, RequiresAnOptionWithoutDefault) {
  constexpr sonde_option_t needed[] = {{"path", nullptr, "the script", "", "", SONDE_OPTION_TEXT, 0}};
  const Options options{needed, 1, sizeof(sonde_option_t)};
  EXPECT_EQ(faults("{}\n", options), "run.yaml:1:1: option 'path' of workload must be given (the script)");
  EXPECT_EQ(faults("path: ''\n", options), "");
}

TEST(Check, BoundsTimesInTheirUnit) {
  EXPECT_EQ(faults("idle: {window: 11s}\n"),
            "run.yaml:1:16: option 'idle.window' of workload is 11s, outside 1us..10s ns");
  EXPECT_EQ(faults("idle: {window: 1us}\n"), "");
  EXPECT_EQ(faults("idle: {threshold: 101%}\n"),
            "run.yaml:1:19: option 'idle.threshold' of workload is 101%, outside 0..1");
}

TEST(Check, WalksTablesOfALaterHeader) {
  struct Longer {
    sonde_option_t option;
    uint64_t later;
  };
  const Longer longer[] = {{{"a", "1", "h", "", "", SONDE_OPTION_I64, 0}, 9},
                           {{"b", "2", "h", "", "", SONDE_OPTION_I64, 0}, 9}};
  Result<std::unique_ptr<Document>> result = check(nullptr, "p", {&longer[0].option, 2, sizeof(Longer)});
  ASSERT_TRUE(result) << result.error().text;
  EXPECT_EQ((*result)->root.at("b")->text, "2");
}

TEST(Check, RefusesABadDeclaration) {
  const auto declared = [](std::vector<sonde_option_t> options, uint32_t stride = sizeof(sonde_option_t)) {
    return check_declaration("p", {options.data(), static_cast<uint32_t>(options.size()), stride});
  };
  EXPECT_NE(declared({{nullptr, "1", "h", "", "", SONDE_OPTION_I64, 0}}).find("needs a name"), std::string::npos);
  EXPECT_NE(declared({{"Upper", "1", "h", "", "", SONDE_OPTION_I64, 0}}).find("needs a name"), std::string::npos);
  EXPECT_NE(declared({{"a..b", "1", "h", "", "", SONDE_OPTION_I64, 0}}).find("needs a name"), std::string::npos);
  EXPECT_NE(declared({{"a", "1", nullptr, "", "", SONDE_OPTION_I64, 0}}).find("NULL"), std::string::npos);
  EXPECT_NE(declared({{"a", "1", "h", "", "", 99, 0}}).find("unknown type 99"), std::string::npos);
  EXPECT_NE(declared({{"a", "x", "h", "", "", SONDE_OPTION_I64, 0}}).find("bad default"), std::string::npos);
  EXPECT_NE(declared({{"a", "9", "h", "", "1..2", SONDE_OPTION_I64, 0}}).find("bad default"), std::string::npos);
  EXPECT_NE(declared({{"a", "1", "h", "", "low", SONDE_OPTION_I64, 0}}).find("do not fit"), std::string::npos);
  EXPECT_NE(declared({{"a", "1", "h", "", "", SONDE_OPTION_I64, 0}, {"a", "1", "h", "", "", SONDE_OPTION_I64, 0}})
                .find("declared twice"),
            std::string::npos);
  EXPECT_NE(declared({{"a", "1", "h", "", "", SONDE_OPTION_I64, 0}, {"a.b", "1", "h", "", "", SONDE_OPTION_I64, 0}})
                .find("parent of 'a.b'"),
            std::string::npos);
  EXPECT_NE(declared({{"a", "1", "h", "", "", SONDE_OPTION_I64, 0}}, 8).find("stride of the options is 8"),
            std::string::npos);
  EXPECT_NE(check_declaration("p", {nullptr, 3, sizeof(sonde_option_t)}).find("NULL"), std::string::npos);
}

TEST(Nearest, FindsTyposAndLastParts) {
  const std::vector<std::string> names{"idle.threshold", "rows", "window"};
  EXPECT_EQ(nearest("threshold", names), "idle.threshold");
  EXPECT_EQ(nearest("rwos", names), "rows");
  EXPECT_EQ(nearest("windwo", names), "window");
  EXPECT_EQ(nearest("completely", names), "");
}

}  // namespace
}  // namespace sonde::config
