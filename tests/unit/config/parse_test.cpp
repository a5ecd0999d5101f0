#include "config/parse.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>

#include "config/print.h"

namespace sonde::config {
namespace {

std::unique_ptr<Document> parsed(std::string_view text) {
  Result<std::unique_ptr<Document>> result = parse(text, "run.yaml");
  EXPECT_TRUE(result) << (result ? "" : result.error().text);
  return result ? std::move(*result) : std::make_unique<Document>("failed");
}

std::string refusal(std::string_view text) {
  Result<std::unique_ptr<Document>> result = parse(text, "run.yaml");
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, SONDE_E_PARSE);
  return result.error().text;
}

TEST(Parse, KeepsOrderAndPlaces) {
  const auto document = parsed("b: 1\na:\n  - x\n  - {k: v}\n");
  const Node &root = document->root;
  ASSERT_EQ(root.kind, Kind::kMap);
  EXPECT_EQ(root.keys, (std::vector<std::string>{"b", "a"}));
  ASSERT_NE(root.at("a.1.k"), nullptr);
  EXPECT_EQ(root.at("a.1.k")->text, "v");
  EXPECT_EQ(where(*root.at("a.1.k")), "run.yaml:4:9");
  EXPECT_EQ(where(*root.at("b")), "run.yaml:1:4");
  EXPECT_EQ(where(*document, root.key_places[1]), "run.yaml:2:1");
  EXPECT_EQ(root.at("a.2"), nullptr);
  EXPECT_EQ(root.at("a.x"), nullptr);
  EXPECT_EQ(root.at("b.c"), nullptr);
}

TEST(Parse, FindsKeysThatHoldDots) {
  const auto document = parsed("top.lua: {a.b: 1, a: {b: 2}}\n");
  ASSERT_NE(document->root.at("top.lua.a.b"), nullptr);
  EXPECT_EQ(document->root.at("top.lua.a.b")->text, "1");
}

TEST(Parse, TellsQuotedTextFromNothing) {
  const auto document = parsed("a: ~\nb: '~'\nc:\nd: \"\"\ne: null\nf: |\n  two\n  lines\n");
  EXPECT_EQ(document->root.at("a")->kind, Kind::kNull);
  EXPECT_EQ(document->root.at("b")->text, "~");
  EXPECT_EQ(document->root.at("c")->kind, Kind::kNull);
  EXPECT_EQ(document->root.at("d")->kind, Kind::kScalar);
  EXPECT_EQ(document->root.at("e")->kind, Kind::kNull);
  EXPECT_EQ(document->root.at("f")->text, "two\nlines\n");
}

TEST(Parse, EmptyTextIsNothing) {
  EXPECT_EQ(parsed("")->root.kind, Kind::kNull);
  EXPECT_EQ(parsed("# only a comment\n")->root.kind, Kind::kNull);
}

TEST(Parse, CopiesAliases) {
  const auto document = parsed("a: &x {k: 1}\nb: *x\nc: [*x, *x]\n");
  EXPECT_EQ(document->root.at("c.1.k")->text, "1");
}

TEST(Parse, RefusesWhatAConfigurationNeverNeeds) {
  EXPECT_EQ(refusal("a: 1\nb: 2\na: 3\n"), "run.yaml:3:1: the key 'a' stands here a second time, first at line 1");
  EXPECT_NE(refusal("a: {k: 1, k: 2}\n").find("run.yaml:1:11"), std::string::npos);
  EXPECT_NE(refusal("---\na: 1\n---\nb: 2\n").find("more than one YAML document"), std::string::npos);
  EXPECT_NE(refusal("? [1, 2]\n: 3\n").find("a key must be plain text"), std::string::npos);
  EXPECT_NE(refusal("a: &x {k: 1}\nb:\n  <<: *x\n").find("merge keys"), std::string::npos);
  EXPECT_NE(refusal("a: !!binary abc\n").find("tag"), std::string::npos);
  EXPECT_NE(refusal("a: &x [1, *x]\n").find("contains it"), std::string::npos);
  EXPECT_NE(refusal("a: *nobody\n").find("run.yaml:1:"), std::string::npos);
  EXPECT_NE(refusal("a: [1, 2\n").find("run.yaml:"), std::string::npos);
  EXPECT_EQ(refusal("a: 'open\n"), "run.yaml:1:4: this quoted text has no end");
  EXPECT_EQ(refusal("a: \"open \\\"\n"), "run.yaml:1:4: this quoted text has no end");
  EXPECT_EQ(refusal("a: 1\nb: \x9f\n"), "run.yaml:2:4: this byte is not UTF-8");
  EXPECT_NE(refusal(std::string_view("a: 1\nb: \0c\n", 11)).find("run.yaml:2:4: a NUL byte"), std::string::npos);
}

TEST(Parse, BoundsAliasExpansion) {
  // Ten levels of ten: 10^10 nodes when expanded.
  std::string bomb = "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 10; ++level) {
    bomb += "l" + std::to_string(level) + ": &l" + std::to_string(level) + " [";
    for (int index = 0; index < 10; ++index) {
      bomb += std::string(index == 0 ? "" : ", ") + "*l" + std::to_string(level - 1);
    }
    bomb += "]\n";
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(refusal(bomb).find("more than 200000 nodes here, aliases expanded"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Parse, BoundsDepthAndSize) {
  const auto nested = [](size_t depth) { return "a: " + std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(parsed(nested(kMaxDepth - 1))->root.at("a")->kind, Kind::kList);
  EXPECT_EQ(refusal(nested(1000)), "run.yaml:1:67: nested more than 64 deep");
  EXPECT_NE(refusal(std::string(100'000, '[')).find("run.yaml:"), std::string::npos);
  EXPECT_NE(refusal(std::string(kMaxBytes + 1, 'a')).find("4194305 bytes"), std::string::npos);
  std::string wide = "[";
  for (size_t index = 0; index < kMaxNodes; ++index) wide += "1,";
  EXPECT_NE(refusal(wide + "1]").find("more than 200000 nodes"), std::string::npos);
}

TEST(Parse, NamesAFileThatCannotBeRead) {
  Result<std::unique_ptr<Document>> missing = load("/nonexistent/run.yaml");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, SONDE_E_IO);
  EXPECT_NE(missing.error().text.find("/nonexistent/run.yaml"), std::string::npos);
  Result<std::unique_ptr<Document>> folder = load("/tmp");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, SONDE_E_IO);
}

bool same(const Node &left, const Node &right) {
  if (left.kind != right.kind || left.text != right.text || left.keys != right.keys) return false;
  if (left.items.size() != right.items.size()) return false;
  for (size_t index = 0; index < left.items.size(); ++index) {
    if (!same(left.items[index], right.items[index])) return false;
  }
  return true;
}

class RandomTree {
 public:
  explicit RandomTree(uint64_t seed) : random_(seed) {}

  Node make(int depth) {
    Node node;
    const uint64_t choice = random_() % (depth == 0 ? 2 : 5);
    if (choice == 0) return node;
    if (choice == 1 || choice == 2) {
      node.kind = Kind::kScalar;
      node.text = text();
      node.quoted = random_() % 2 == 0;
      if (node.text == "~" || node.text == "null" || node.text.empty()) node.quoted = true;
      return node;
    }
    node.kind = choice == 3 ? Kind::kList : Kind::kMap;
    const uint64_t count = random_() % 4;
    for (uint64_t index = 0; index < count; ++index) {
      if (node.kind == Kind::kMap) {
        node.keys.push_back(std::to_string(index) + text());
        node.key_places.emplace_back();
      }
      node.items.push_back(make(depth - 1));
    }
    return node;
  }

 private:
  std::string text() {
    static const char *const kWords[] = {"plain",  "with space", "a: b",  "- x", "#no", "it's", "\"quoted\"", "~",
                                         "null",   "0x10",       "1.5Ki", "",    "\n",  "a\nb", "\t",         "\x01",
                                         "\x7f",   "\xc3\xa9",   "%",     "[",   "}",   "*a",   "&a",         "!t",
                                         "a,b",    "? k",        "---",   "...", "<<",  "|",    ">",          "\\",
                                         " ahead", "behind ",    "@",     "`",   "a:",  ":",    "-",          "3%"};
    return kWords[random_() % std::size(kWords)];
  }
  std::mt19937_64 random_;
};

TEST(Print, ParsesBackIntoTheSameTree) {
  const char *const cases = std::getenv("SONDE_CASES");
  const uint64_t count = cases == nullptr ? 2000 : std::strtoull(cases, nullptr, 10);
  for (uint64_t seed = 0; seed < count; ++seed) {
    const Node tree = RandomTree(seed).make(4);
    const std::string text = print(tree);
    Result<std::unique_ptr<Document>> back = parse(text, "printed");
    ASSERT_TRUE(back) << "seed " << seed << "\n" << text << back.error().text;
    ASSERT_TRUE(same(tree, (*back)->root)) << "seed " << seed << "\n" << text;
  }
}

TEST(Parse, EndsOnEveryMutationOfAText) {
  const std::string seed =
      "session: {policy: drop, ring: 1Mi}\nports:\n  cuda: &c {api: true}\n  other: *c\n"
      "scripts:\n  - path: \"top.lua\"\n    grant: [workload]\ntext: |\n  block\n";
  std::mt19937_64 random(3);
  for (int index = 0; index < 2000; ++index) {
    std::string text = seed;
    for (uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, 1, "[]{}:,&*!|>'\"%@`#-?\n\t "[random() % 23]);
          break;
      }
      if (text.empty()) text = "x";
    }
    Result<std::unique_ptr<Document>> result = parse(text, "mutated");
    if (result) {
      Result<std::unique_ptr<Document>> back = parse(print((*result)->root), "printed");
      ASSERT_TRUE(back) << text;
      ASSERT_TRUE(same((*result)->root, (*back)->root)) << text;
    } else {
      ASSERT_EQ(result.error().code, SONDE_E_PARSE);
      ASSERT_EQ(result.error().text.rfind("mutated", 0), 0u) << result.error().text;
    }
  }
}

}  // namespace
}  // namespace sonde::config
