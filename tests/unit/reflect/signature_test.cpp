#include <gtest/gtest.h>

#include <random>

#include "reflect/signature.h"
#include "values.h"

namespace sonde::reflect {
namespace {

std::string error_of(std::string_view text) {
  const auto parsed = parse(text);
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().code, SONDE_E_PARSE);
  return parsed.error().text;
}

TEST(Signature, ReadsEveryLetter) {
  const auto parsed = parse("e(iIqQdsyLDc&q&Q&d&s)");
  ASSERT_TRUE(parsed) << parsed.error().text;
  const std::vector<Parameter> &parameters = (*parsed)->parameters;
  ASSERT_EQ(parameters.size(), 14u);
  EXPECT_EQ(parameters[0].kind, SONDE_VALUE_I64);
  EXPECT_EQ(parameters[3].kind, SONDE_VALUE_U64);
  EXPECT_EQ(parameters[6].kind, SONDE_VALUE_BYTES);
  EXPECT_EQ(parameters[9].code, 'c');
  EXPECT_FALSE(parameters[9].is_out);
  EXPECT_TRUE(parameters[13].is_out);
  EXPECT_EQ(parameters[13].kind, SONDE_VALUE_TEXT);
}

TEST(Signature, ReadsHandles) {
  const auto parsed = parse("h{a}(hShThChRh{com.example.thing_2})");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ((*parsed)->result.handle, "{a}");
  ASSERT_EQ((*parsed)->parameters.size(), 5u);
  EXPECT_EQ((*parsed)->parameters[0].handle, "S");
  EXPECT_EQ((*parsed)->parameters[4].handle, "{com.example.thing_2}");
}

TEST(Signature, TakesNoneAsNoParameters) {
  const auto parsed = parse("Q(v)");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE((*parsed)->parameters.empty());
  EXPECT_TRUE(parse("v()"));
}

TEST(Signature, NamesThePositionOfTheFault) {
  EXPECT_NE(error_of("").find("position 1: the signature is empty"), std::string::npos);
  EXPECT_NE(error_of("x(q)").find("position 1: no result begins so"), std::string::npos);
  EXPECT_NE(error_of("q").find("position 2: expected '('"), std::string::npos);
  EXPECT_NE(error_of("e(qxq)").find("position 4: no parameter begins so"), std::string::npos);
  EXPECT_NE(error_of("e(&i)").find("position 4: expected one of q Q d s after '&'"), std::string::npos);
  EXPECT_NE(error_of("e(q").find("position 4: expected a parameter or ')'"), std::string::npos);
  EXPECT_NE(error_of("e(q)q").find("position 5: the signature must end"), std::string::npos);
  EXPECT_NE(error_of("e(hX)").find("position 4: expected S, T, C, R or {name}"), std::string::npos);
  EXPECT_NE(error_of("e(h{})").find("the name of the handle is empty"), std::string::npos);
  EXPECT_NE(error_of("e(h{aB})").find("position 6: the name of a handle holds"), std::string::npos);
  EXPECT_NE(error_of("e(h{ab").find("position 7: expected '}'"), std::string::npos);
  EXPECT_NE(error_of("e(vq)").find("position 3: no parameter begins so"), std::string::npos);
  EXPECT_NE(error_of("e(qqqqqqqqqqqqqqqqq)").find("position 19: more than 16 parameters"), std::string::npos);
  EXPECT_NE(error_of("&q(q)").find("position 1"), std::string::npos);
}

TEST(Signature, ShowsUnprintableBytesEscaped) {
  EXPECT_NE(error_of(std::string_view("\x01\xff", 2)).find("\"\\x01\\xff\""), std::string::npos);
}

TEST(Signature, IsPreparedOnce) {
  const auto first = prepare("e(hSq&q)");
  const auto second = prepare("e(hSq&q)");
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
}

TEST(Signature, DerivesTheShapeOfTheFunction) {
  const auto shape = [](const char *text) { return (*prepare(text))->shape; };
  EXPECT_EQ(shape("e(hS&Q)"), "i(pp)");
  EXPECT_EQ(shape("v(ycs)"), "v(pQpppp)");
  EXPECT_EQ(shape("I(iIqQd)"), "I(iIqQd)");
  EXPECT_EQ(shape("h{thing}(LD)"), "p(pQpQ)");
}

TEST(Signature, HandleNumbersDiffer) {
  EXPECT_NE(handle_number("S"), handle_number("T"));
  EXPECT_NE(handle_number("{a}"), handle_number("{b}"));
  EXPECT_NE(handle_number("S"), 0u);
}

// Random bytes over the grammar's letters: accepted or refused with a position, never anything else; what is
// accepted is prepared.
TEST(Signature, SurvivesRandomText) {
  std::mt19937_64 random(20260101);
  constexpr std::string_view kLetters = "eviIqQdsyLDchSTCR{}&()ab_. \x01";
  uint64_t accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 2 == 0 ? "e(" : "";
    const uint64_t length = random() % 24;
    for (uint64_t index = 0; index < length; ++index) text += kLetters[random() % kLetters.size()];
    if (round % 2 == 0) text += ")";
    const auto parsed = parse(text);
    if (!parsed) {
      EXPECT_EQ(parsed.error().code, SONDE_E_PARSE);
      EXPECT_NE(parsed.error().text.find("position "), std::string::npos) << text;
      continue;
    }
    ++accepted;
    EXPECT_TRUE(prepare(text)) << text;
  }
  EXPECT_GT(accepted, 100u);
}

TEST(Signature, ParametersAreDescribed) {
  const sonde_reflect_service_t &reflect = test::reflect_service();
  const sonde_signature_t *signature = test::prepared("h{thing}(hSs&d)");
  ASSERT_NE(signature, nullptr);
  sonde_parameter_t parameter = {};
  parameter.struct_size = sizeof(parameter);
  ASSERT_EQ(reflect.parameter(signature, 0, &parameter), SONDE_OK);
  EXPECT_EQ(parameter.code, static_cast<uint32_t>('h'));
  EXPECT_STREQ(parameter.handle, "S");
  EXPECT_EQ(parameter.handle_number, handle_number("S"));
  ASSERT_EQ(reflect.parameter(signature, 2, &parameter), SONDE_OK);
  EXPECT_EQ(parameter.is_out, 1u);
  EXPECT_EQ(parameter.kind, SONDE_VALUE_F64);
  ASSERT_EQ(reflect.parameter(signature, UINT64_MAX, &parameter), SONDE_OK);
  EXPECT_STREQ(parameter.handle, "{thing}");
  EXPECT_EQ(reflect.parameter(signature, 3, &parameter), SONDE_E_RANGE);
}

}  // namespace
}  // namespace sonde::reflect
