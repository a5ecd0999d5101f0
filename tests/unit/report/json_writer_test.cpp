#include "report/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "report/utf8.h"

namespace sonde::report {
namespace {

sonde_status append(void *user, const char *text, uint64_t bytes) {
  static_cast<std::string *>(user)->append(text, bytes);
  return SONDE_OK;
}

template <typename Body>
std::string written(Body &&body) {
  std::string text;
  Output output(append, &text);
  JsonWriter json(output);
  body(json);
  output.flush();
  return text;
}

// What another implementation reads where ours wrote `text` as a string.
std::string read_back(std::string_view text) {
  return nlohmann::json::parse(written([&](JsonWriter &json) { json.text(text); })).get<std::string>();
}

// Faults 77 and 78: quotes, empty operator names, control bytes, characters beyond ASCII, backslashes.
TEST(JsonWriter, KeepsNamesThatNeedEscapes) {
  using namespace std::string_literals;
  for (const std::string &name :
       {R"({"device": "cpu"}(12): run)"s, R"(operator"" _km)"s, "a\x01z"s, "3 \u00D7 4"s, R"(C:\temp\u0041)"s,
        "line\nfeed\ttab\rreturn"s, "nul\0inside"s, "\x7f"s, "\u2028\u2029"s}) {
    EXPECT_EQ(read_back(name), name);
  }
}

// Fault 79: a byte that is not UTF-8.
TEST(JsonWriter, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(read_back("kernel\x9f"), "kernel\uFFFD");
  EXPECT_EQ(read_back("\xff\xfe"), "\uFFFD\uFFFD");
}

TEST(JsonWriter, WritesValidJsonForAnyBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char &byte : bytes) byte = static_cast<char>(random());
    EXPECT_EQ(read_back(bytes), to_valid_utf8(bytes));
  }
}

// Fault 82: times since 1970 in ns need all digits.
TEST(JsonWriter, WritesIntegersExactly) {
  EXPECT_EQ(written([](JsonWriter &json) { json.integer(uint64_t{1672924881307000296}); }), "1672924881307000296");
  EXPECT_EQ(written([](JsonWriter &json) { json.integer(std::numeric_limits<uint64_t>::max()); }),
            "18446744073709551615");
  EXPECT_EQ(written([](JsonWriter &json) { json.integer(std::numeric_limits<int64_t>::min()); }),
            "-9223372036854775808");
  EXPECT_EQ(written([](JsonWriter &json) { json.integer((int64_t{1} << 53) + 1); }), "9007199254740993");
}

TEST(JsonWriter, WritesDoublesThatReadBackTheSame) {
  for (const double number : {0.1, 1.0, -0.0, 1e300, 5e-324, 1.7976931348623157e308, 123456789.125, 1e22}) {
    const std::string text = written([&](JsonWriter &json) { json.number(number); });
    const double back = nlohmann::json::parse(text).get<double>();
    EXPECT_EQ(back, number) << text;
    EXPECT_EQ(std::signbit(back), std::signbit(number)) << text;
    EXPECT_TRUE(nlohmann::json::parse(text).is_number_float()) << text;
  }
}

TEST(JsonWriter, WritesNoInfinities) {
  EXPECT_EQ(written([](JsonWriter &json) { json.number(std::numeric_limits<double>::infinity()); }), "null");
  EXPECT_EQ(written([](JsonWriter &json) { json.number(std::nan("")); }), "null");
}

TEST(JsonWriter, NestsWithCommasOnlyBetween) {
  const std::string text = written([](JsonWriter &json) {
    json.begin_object();
    json.key("empty");
    json.begin_array();
    json.end_array();
    json.key("row");
    json.begin_array(JsonWriter::Layout::kInline);
    json.integer(uint64_t{1});
    json.null();
    json.boolean(true);
    json.end_array();
    json.end_object();
  });
  EXPECT_EQ(text, "{\n \"empty\": [],\n \"row\": [1, null, true]\n}");
}

TEST(JsonWriter, HandsOnPiecesOfBoundedSize) {
  struct Pieces {
    uint64_t longest = 0;
    uint64_t bytes = 0;
  } pieces;
  Output output(
      [](void *user, const char *, uint64_t bytes) -> sonde_status {
        auto *const seen = static_cast<Pieces *>(user);
        seen->longest = std::max(seen->longest, bytes);
        seen->bytes += bytes;
        return SONDE_OK;
      },
      &pieces);
  JsonWriter json(output);
  json.begin_array();
  for (uint64_t number = 0; number < 1'000'000; ++number) json.integer(number);
  json.end_array();
  output.flush();
  EXPECT_GT(pieces.bytes, 6'000'000u);
  EXPECT_LE(pieces.longest, 32u * 1024);
}

}  // namespace
}  // namespace sonde::report
