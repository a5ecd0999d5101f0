// Layouts as text and bytes, and applied in bulk.
#include "layout/serial.h"

#include "layout/bulk.h"
#include "support.h"

namespace sonde::layout::test {
namespace {

class Serial : public LayoutTest {
 protected:
  void expect_parse_error(const char *text, const char *part) {
    expect_none(from_json(arena_, text), Fault::kParse);
    EXPECT_NE(arena_.text().find(part), std::string::npos) << arena_.text();
  }
};

TEST_F(Serial, JsonIsWhatTheVectorsUse) {
  const Layout *const layout = L("register (0,1)(1,0); lane -> dim0 dim1");
  EXPECT_EQ(to_json(*layout),
            R"({"in": [["register", [[0, 1], [1, 0]]], ["lane", []]], "out": [["dim0", 2], ["dim1", 2]]})");
  EXPECT_EQ(text_of(from_json(arena_, R"({"out":[["x",4]],"in":[["i",[[1],[3]]]],"offset":[2]})")),
            "i 1 3 -> x[4] + 2");
}

TEST_F(Serial, BadJsonSaysWhatIsWrong) {
  expect_parse_error("", "not JSON");
  expect_parse_error("[]", "expected an object");
  expect_parse_error("33e3333e33", "not JSON");
  expect_parse_error(R"({"in": [], "out": [], "size": 1})", "unknown key");
  expect_parse_error(R"({"in": [], "out": [["x", 3]]})", "power of two");
  expect_parse_error(R"({"in": [], "out": [["x", "2^65"]]})", "power of two");
  expect_parse_error(R"({"in": [["i", [[1, 2]]]], "out": [["x", 4]]})", "row of 1");
  expect_parse_error(R"({"in": [["i", [[-1]]]], "out": [["x", 4]]})", "row of 1");
  expect_parse_error(R"({"in": [["i", 3]], "out": [["x", 4]]})", "[name, bases]");
  expect_none(from_json(arena_, R"({"in": [["i", [[4]]]], "out": [["x", 4]]})"), Fault::kInvalid);
  expect_none(from_json(arena_, R"({"in": [["", []]], "out": []})"), Fault::kInvalid);
  expect_none(from_json(arena_, R"({"in": [], "out": [["x", 4]], "offset": [4]})"), Fault::kInvalid);
}

TEST_F(Serial, EverythingComesBack) {
  RandomLayouts random(arena_, 7);
  for (uint64_t i = 0; i < cases(); ++i) {
    arena_.reset();
    const auto ins = random.cut({"register", "lane", "a \"name\"\n\u00e9"}, static_cast<uint32_t>(random.below(65)));
    const auto outs = random.cut({"dim0", "dim1"}, static_cast<uint32_t>(random.below(65)));
    const Layout *const layout = random.any(ins, outs, true);
    const Layout *const from_text = from_json(arena_, to_json(*layout));
    ASSERT_TRUE(from_text != nullptr && equal(*from_text, *layout)) << arena_.text() << to_json(*layout);
    const Layout *const from_data = from_bytes(arena_, to_bytes(*layout));
    ASSERT_TRUE(from_data != nullptr && equal(*from_data, *layout)) << arena_.text();
  }
}

TEST_F(Serial, DamagedBytesAreRefused) {
  const Layout *const layout = L("register (0,1)(1,0); lane (0,2) -> dim0 dim1");
  const std::vector<uint8_t> whole = to_bytes(*layout);
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(from_bytes(arena_, {whole.data(), length}), nullptr) << length;
    EXPECT_EQ(arena_.fault(), Fault::kCorrupt);
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (uint32_t bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> damaged = whole;
      damaged[at] = static_cast<uint8_t>(damaged[at] ^ 1u << bit);
      EXPECT_EQ(from_bytes(arena_, damaged), nullptr) << "byte " << at << " bit " << bit;
    }
  }
  std::vector<uint8_t> longer = whole;
  longer.push_back(0);
  EXPECT_EQ(from_bytes(arena_, longer), nullptr);
}

TEST_F(Serial, TablesAndManyPointsAreTheSameMap) {
  RandomLayouts random(arena_, 11);
  const uint64_t rounds = std::max<uint64_t>(20, cases() / 50);
  for (uint64_t i = 0; i < rounds; ++i) {
    arena_.reset();
    const auto bits = static_cast<uint32_t>(random.below(65));
    const Layout *const layout = random.any(random.cut({"a", "b"}, bits), random.cut({"x"}, 32), true);
    const uint64_t last = low_mask(bits);
    const uint64_t first = random.word() & last & ~uint64_t{random.below(2) * 511};
    const uint64_t count = std::min<uint64_t>(random.below(3000), last - first);
    std::vector<uint64_t> wide(count);
    std::vector<uint32_t> narrow(count);
    fill_table(*layout, first, count, wide.data());
    fill_table(*layout, first, count, narrow.data());
    std::vector<uint64_t> points(random.below(2500));
    for (uint64_t &point : points) point = random.word() & last;
    std::vector<uint64_t> many(points.size());
    apply_many(*layout, points, many.data());
    for (uint64_t k = 0; k < count; ++k) {
      ASSERT_EQ(wide[k], layout->apply(first + k)) << first << " + " << k;
      ASSERT_EQ(narrow[k], wide[k]);
    }
    for (size_t k = 0; k < points.size(); ++k) ASSERT_EQ(many[k], layout->apply(points[k]));
  }
}

}  // namespace
}  // namespace sonde::layout::test
