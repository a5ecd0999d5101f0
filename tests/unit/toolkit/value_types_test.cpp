// Number formats, all patterns of the 8- and 16-bit ones.
#include <gtest/gtest.h>
#include <sonde/toolkit/value_types.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>

namespace sonde::toolkit {
namespace {

using enum ValueType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What the sum of powers of two in the formats' definitions gives, bit by bit, without ldexp of a whole mantissa.
double by_definition(uint32_t bits, int width, int exponent_bits, int mantissa_bits) {
  const bool negative = (bits >> (width - 1) & 1) != 0;
  const uint32_t exponent = bits >> mantissa_bits & ((1u << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double number = exponent == 0 ? 0 : 1;
  for (int i = 0; i < mantissa_bits; ++i) {
    if ((bits >> (mantissa_bits - 1 - i) & 1) != 0) number += std::pow(2.0, -1 - i);
  }
  number *= std::pow(2.0, exponent == 0 ? 1 - bias : static_cast<int>(exponent) - bias);
  return negative ? -number : number;
}

// Every finite number of a format is held by it, its neighbours' midpoints are not, and no two patterns decode alike.
void check_all(ValueType type, int width, int exponent_bits, int mantissa_bits, bool has_infinity) {
  std::map<double, uint32_t> seen;
  const uint32_t ones = (1u << exponent_bits) - 1, mantissa_ones = (1u << mantissa_bits) - 1;
  for (uint32_t bits = 0; bits < 1u << width; ++bits) {
    const uint32_t exponent = bits >> mantissa_bits & ones, mantissa = bits & mantissa_ones;
    const double number = decode_value(type, bits);
    if (exponent == ones && (has_infinity ? mantissa != 0 : mantissa == mantissa_ones)) {
      ASSERT_TRUE(std::isnan(number)) << bits;
      ASSERT_TRUE(is_nan_value(type, bits)) << bits;
      ASSERT_FALSE(holds_exactly(type, number)) << bits;
      continue;
    }
    ASSERT_FALSE(is_nan_value(type, bits)) << bits;
    ASSERT_TRUE(holds_exactly(type, number)) << bits;
    if (exponent == ones && has_infinity) {
      ASSERT_EQ(number, bits >> (width - 1) != 0 ? -kInfinity : kInfinity) << bits;
      continue;
    }
    ASSERT_EQ(number, by_definition(bits, width, exponent_bits, mantissa_bits)) << bits;
    if (number != 0) {
      ASSERT_TRUE(seen.emplace(number, bits).second) << bits;
    }
    ASSERT_EQ(std::signbit(number), bits >> (width - 1) != 0) << bits;
  }
  double before = seen.begin()->first;
  for (const auto &[number, bits] : seen) {
    if (number != before && (number < 0) == (before < 0)) {
      ASSERT_FALSE(holds_exactly(type, (number + before) / 2)) << bits;
    }
    before = number;
  }
  EXPECT_EQ(before, facts_of(type).greatest);
  EXPECT_FALSE(holds_exactly(type, before * 2));
}

TEST(ValueTypes, EveryPatternOfTheSmallFormatsDecodesAsDefined) {
  check_all(kFloat8E4m3, 8, 4, 3, false);
  check_all(kFloat8E5m2, 8, 5, 2, true);
  check_all(kFloat16, 16, 5, 10, true);
  check_all(kBfloat16, 16, 8, 7, true);
}

// OCP 8-bit Floating Point Specification 1.0, table 1.
TEST(ValueTypes, TheEightBitFormatsHaveTheirPublishedLimits) {
  EXPECT_EQ(decode_value(kFloat8E4m3, 0x7e), 448);
  EXPECT_TRUE(is_nan_value(kFloat8E4m3, 0x7f));
  EXPECT_EQ(decode_value(kFloat8E4m3, 0x08), std::pow(2.0, -6));
  EXPECT_EQ(decode_value(kFloat8E4m3, 0x01), std::pow(2.0, -9));
  EXPECT_FALSE(holds_exactly(kFloat8E4m3, 480)) << "its pattern is the NaN";
  EXPECT_FALSE(holds_exactly(kFloat8E4m3, kInfinity));
  EXPECT_EQ(decode_value(kFloat8E5m2, 0x7b), 57344);
  EXPECT_EQ(decode_value(kFloat8E5m2, 0x7c), kInfinity);
  EXPECT_EQ(decode_value(kFloat8E5m2, 0x01), std::pow(2.0, -16));
}

TEST(ValueTypes, WholeNumbersOfEightAndSixteenBitsFitWhereTheirRangeSays) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const auto value = static_cast<int16_t>(bits);
    ASSERT_EQ(decode_value(kInt16, bits), value);
    ASSERT_EQ(decode_value(kUint16, bits), bits);
    const ValueTypeSet all = value_type_bit(kInt8) | value_type_bit(kUint8);
    ASSERT_EQ(types_that_hold(kInt16, bits, all), (value >= -128 && value <= 127 ? value_type_bit(kInt8) : 0) |
                                                      (value >= 0 && value <= 255 ? value_type_bit(kUint8) : 0));
    ASSERT_EQ(types_that_hold(kUint16, bits, all),
              (bits <= 127 ? value_type_bit(kInt8) : 0) | (bits <= 255 ? value_type_bit(kUint8) : 0));
  }
  EXPECT_EQ(decode_value(kInt8, 0x80), -128);
  EXPECT_EQ(decode_value(kInt8, 0xffffff01), 1) << "bits above are not looked at";
}

TEST(ValueTypes, WideWholeNumbersAreComparedExactly) {
  const ValueTypeSet ints = value_type_bit(kInt32) | value_type_bit(kUint32);
  EXPECT_EQ(types_that_hold(kInt64, uint64_t{0x7fffffff}, ints), ints);
  EXPECT_EQ(types_that_hold(kInt64, uint64_t{0x80000000}, ints), value_type_bit(kUint32));
  EXPECT_EQ(types_that_hold(kInt64, uint64_t{0x100000000}, ints), 0u);
  EXPECT_EQ(types_that_hold(kInt64, static_cast<uint64_t>(-0x80000000ll), ints), value_type_bit(kInt32));
  EXPECT_EQ(types_that_hold(kInt64, static_cast<uint64_t>(-0x80000001ll), ints), 0u);
  // 2^53 + 1 is no double.
  EXPECT_EQ(types_that_hold(kInt64, (uint64_t{1} << 53) + 1, value_type_bit(kFloat64)), 0u);
  EXPECT_EQ(types_that_hold(kUint64, UINT64_MAX, value_type_bit(kFloat64)), 0u);
}

TEST(ValueTypes, FloatsFitNarrowerOnesOnlyExactly) {
  const auto fits = [](float value, ValueType type) {
    return types_that_hold(kFloat32, std::bit_cast<uint32_t>(value), value_type_bit(type)) != 0;
  };
  EXPECT_TRUE(fits(65504, kFloat16));
  EXPECT_FALSE(fits(65536, kFloat16));
  EXPECT_TRUE(fits(65536, kBfloat16));
  EXPECT_TRUE(fits(2048, kFloat16)) << "a power of two";
  EXPECT_FALSE(fits(2049, kFloat16)) << "12 significant bits, 11 are there";
  EXPECT_TRUE(fits(0x1p-24f, kFloat16)) << "the least subnormal";
  EXPECT_FALSE(fits(0x1p-25f, kFloat16));
  EXPECT_FALSE(fits(0.1f, kBfloat16));
  EXPECT_TRUE(fits(-0.0f, kFloat16));
  EXPECT_FALSE(fits(-0.0f, kInt8)) << "a whole number has no sign of zero";
  EXPECT_TRUE(fits(-128, kInt8));
  EXPECT_FALSE(fits(128, kInt8));
  EXPECT_FALSE(fits(1.5f, kInt16));
  EXPECT_TRUE(fits(std::numeric_limits<float>::infinity(), kFloat16));
  EXPECT_FALSE(fits(std::numeric_limits<float>::quiet_NaN(), kFloat16));
  // fp64 to fp32: 2^-149 is the least, 1 + 2^-24 needs 25 bits.
  EXPECT_TRUE(holds_exactly(kFloat32, 0x1p-149));
  EXPECT_FALSE(holds_exactly(kFloat32, 0x1p-150));
  EXPECT_FALSE(holds_exactly(kFloat32, 1 + 0x1p-24));
  EXPECT_TRUE(holds_exactly(kFloat32, 1 + 0x1p-23));
}

TEST(ValueTypes, TheNarrowestIsTakenFromTheSameFamily) {
  EXPECT_EQ(narrowest_type(value_type_bit(kInt16) | value_type_bit(kFloat16), kFloat32), kFloat16);
  EXPECT_EQ(narrowest_type(value_type_bit(kInt8) | value_type_bit(kFloat16), kFloat32), kInt8) << "fewer bytes first";
  EXPECT_EQ(narrowest_type(value_type_bit(kInt8) | value_type_bit(kUint8), kInt32), kInt8);
  EXPECT_EQ(narrowest_type(value_type_bit(kInt8) | value_type_bit(kUint8), kUint32), kUint8);
  EXPECT_EQ(narrower_types(kUint8), 0u);
  EXPECT_EQ(narrower_types(kInt16), value_type_bit(kInt8) | value_type_bit(kUint8));
}

TEST(ValueTypes, TruncationKeepsTheFirstMantissaBits) {
  const auto cut = [](float value, uint32_t kept) {
    return std::bit_cast<float>(
        static_cast<uint32_t>(truncate_mantissa(kFloat32, std::bit_cast<uint32_t>(value), kept)));
  };
  EXPECT_EQ(cut(1.9375f, 3), 1.875f) << "1.1111b keeps 1.111b";
  EXPECT_EQ(cut(-1.9375f, 3), -1.875f);
  EXPECT_EQ(cut(1.9375f, 4), 1.9375f);
  EXPECT_TRUE(std::isnan(cut(std::numeric_limits<float>::quiet_NaN(), 0)));
  EXPECT_EQ(truncate_mantissa(kFloat32, 0x7f800001, 3), 0x7f800001u) << "a NaN does not become an infinity";
  EXPECT_EQ(truncate_mantissa(kInt32, 0x12345679, 3), 0x12345679u);
  EXPECT_EQ(kept_mantissa_bits(kFloat32, 5), 3u);
  EXPECT_EQ(kept_mantissa_bits(kFloat64, 5), 12u);
  EXPECT_EQ(kept_mantissa_bits(kFloat32, 1), 20u);
  EXPECT_EQ(kept_mantissa_bits(kFloat16, 1), 10u);
  EXPECT_EQ(kept_mantissa_bits(kFloat8E5m2, 5), 2u);
}

TEST(ValueTypes, NamesOfFrameworksAreKnown) {
  EXPECT_EQ(value_type_of("torch.bfloat16"), kBfloat16);
  EXPECT_EQ(value_type_of("float8_e4m3fn"), kFloat8E4m3);
  EXPECT_EQ(value_type_of("fp8_e5m2"), kFloat8E5m2) << "its 2 is no count";
  EXPECT_EQ(value_type_of("half2"), kFloat16);
  EXPECT_EQ(value_type_of("bf16x2"), kBfloat16);
  EXPECT_EQ(value_type_of("float4"), kFloat32);
  EXPECT_EQ(value_type_of("int64"), kInt64);
  EXPECT_EQ(value_type_of("fp32"), kFloat32);
  EXPECT_EQ(value_type_of("fp64"), kFloat64);
  EXPECT_EQ(value_type_of("complex64"), std::nullopt);
  EXPECT_EQ(value_type_of(""), std::nullopt);
  for (size_t i = 0; i < kValueTypes; ++i) {
    EXPECT_EQ(value_type_of(facts_of(static_cast<ValueType>(i)).name), static_cast<ValueType>(i));
  }
}

}  // namespace
}  // namespace sonde::toolkit
