#include "config/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

namespace sonde::config {
namespace {

struct IntegerCase {
  const char *text;
  std::optional<int64_t> value;
};

TEST(Scalar, IntegersAreExactAndTakeUnits) {
  const IntegerCase cases[] = {
      {"0", 0},
      {"-1", -1},
      {"+7", 7},
      {"64Ki", 65536},
      {"64 Ki", 65536},
      {"1.5Ki", 1536},
      {"1Mi", 1048576},
      {"2Gi", 2147483648},
      {"3Ti", 3298534883328},
      {"5k", 5000},
      {"2M", 2000000},
      {"1G", 1000000000},
      {"0.5k", 500},
      {"1_000_000", 1000000},
      {"9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<int64_t>::min()},
      {"9007199254740993", 9007199254740993},  // 2^53 + 1, which no double holds
      {"0x7ffc919e0000", 0x7ffc919e0000},
      {"0xffff800012345678", static_cast<int64_t>(0xffff800012345678u)},
      {"0xFFFFFFFFFFFFFFFF", -1},
      {"-0x10", -16},
      {"0o17", 15},
      {"0b101", 5},
      {"010", 10},  // decimal, as YAML 1.2 reads it
      {"9223372036854775808", std::nullopt},
      {"18446744073709551616", std::nullopt},
      {"9007199254740992Ki", std::nullopt},
      {"0x1ffffffffffffffff", std::nullopt},
      {"0.5", std::nullopt},
      {"1.0001Ki", std::nullopt},
      {"", std::nullopt},
      {"-", std::nullopt},
      {"Ki", std::nullopt},
      {"1Zi", std::nullopt},
      {"1 k i", std::nullopt},
      {"12ab", std::nullopt},
      {"1__0", std::nullopt},
      {"_1", std::nullopt},
      {"1_", std::nullopt},
      {"1.", std::nullopt},
      {" 1", std::nullopt},
      {"--1", std::nullopt},
      {"0x", std::nullopt},
  };
  for (const IntegerCase &item : cases) EXPECT_EQ(to_integer(item.text), item.value) << item.text;
}

TEST(Scalar, EveryIntegerReadsBackFromDecimalAndHex) {
  std::mt19937_64 random(1);
  const char *const cases = std::getenv("SONDE_CASES");
  const int count = cases == nullptr ? 2000 : std::atoi(cases);
  for (int index = 0; index < count; ++index) {
    const auto value = static_cast<int64_t>(random() >> (random() % 64));
    EXPECT_EQ(to_integer(std::to_string(value)), value);
    EXPECT_EQ(to_integer(std::to_string(-value)), -value);
    char hex[32];
    std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(value));
    EXPECT_EQ(to_integer(hex), value) << hex;
  }
}

TEST(Scalar, TimesAreWholeNanoseconds) {
  const IntegerCase cases[] = {
      {"0", 0},
      {"250", 250},
      {"1ns", 1},
      {"10us", 10000},
      {"2.5ms", 2500000},
      {"1s", 1000000000},
      {"2min", 120000000000},
      {"1h", 3600000000000},
      {"0.000000001s", 1},
      {"-1ms", -1000000},
      {"1 ms", 1000000},
      {"2.5", std::nullopt},
      {"0.5ns", std::nullopt},
      {"ms", std::nullopt},
      {"1d", std::nullopt},
      {"3000000h", std::nullopt},
      {"1 m s", std::nullopt},
      {"", std::nullopt},
  };
  for (const IntegerCase &item : cases) EXPECT_EQ(to_time(item.text), item.value) << item.text;
}

TEST(Scalar, NumbersTakePercentAndUnitsAndAreFinite) {
  EXPECT_EQ(to_number("3%"), 0.03);
  EXPECT_EQ(to_number("12.5 %"), 0.125);
  EXPECT_EQ(to_number("7%"), 0.07);
  EXPECT_EQ(to_number("1e-3"), 0.001);
  EXPECT_EQ(to_number("-0.5"), -0.5);
  EXPECT_EQ(to_number("+2"), 2.0);
  EXPECT_EQ(to_number("2k"), 2000.0);
  EXPECT_EQ(to_number("1.5Gi"), 1610612736.0);
  EXPECT_EQ(to_number("0x10"), 16.0);
  for (const char *const bad : {"", "%", "inf", "nan", "-inf", "1e999", "0x", "1,5", "abc", "1 2", "."}) {
    EXPECT_EQ(to_number(bad), std::nullopt) << bad;
  }
}

TEST(Scalar, NumbersReadBackFromTheirText) {
  std::mt19937_64 random(2);
  for (int index = 0; index < 2000; ++index) {
    const double value = std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 200) - 100);
    EXPECT_EQ(to_number(from_number(value)), value);
  }
}

TEST(Scalar, BooleansAreSixWordsInAnyCase) {
  for (const char *const word : {"true", "True", "YES", "on"}) EXPECT_EQ(to_bool(word), true) << word;
  for (const char *const word : {"false", "FALSE", "no", "Off"}) EXPECT_EQ(to_bool(word), false) << word;
  for (const char *const word : {"", "1", "0", "y", "truee"}) EXPECT_EQ(to_bool(word), std::nullopt) << word;
}

}  // namespace
}  // namespace sonde::config
