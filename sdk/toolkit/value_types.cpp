#include <sonde/toolkit/value_types.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace sonde::toolkit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::array<ValueTypeFacts, kValueTypes> kFacts = {{
    {"uint8", 1, false, false, 0, 0, false, 255},
    {"int8", 1, false, true, 0, 0, false, 127},
    {"uint16", 2, false, false, 0, 0, false, 65535},
    {"int16", 2, false, true, 0, 0, false, 32767},
    {"uint32", 4, false, false, 0, 0, false, 4294967295.0},
    {"int32", 4, false, true, 0, 0, false, 2147483647.0},
    {"uint64", 8, false, false, 0, 0, false, 0x1p64},
    {"int64", 8, false, true, 0, 0, false, 0x1p63},
    {"fp8_e4m3", 1, true, true, 4, 3, false, 448},
    {"fp8_e5m2", 1, true, true, 5, 2, true, 57344},
    {"fp16", 2, true, true, 5, 10, true, 65504},
    {"bf16", 2, true, true, 8, 7, true, 0x1.fep127},
    {"tf32", 4, true, true, 8, 10, true, 0x1.ffcp127},
    {"fp32", 4, true, true, 8, 23, true, 0x1.fffffep127},
    {"fp64", 8, true, true, 11, 52, true, std::numeric_limits<double>::max()},
}};

struct Name {
  std::string_view text;
  ValueType type;
};
constexpr Name kNames[] = {
    {"bool", ValueType::kUint8},
    {"uint8", ValueType::kUint8},
    {"u8", ValueType::kUint8},
    {"byte", ValueType::kUint8},
    {"int8", ValueType::kInt8},
    {"i8", ValueType::kInt8},
    {"char", ValueType::kInt8},
    {"uint16", ValueType::kUint16},
    {"u16", ValueType::kUint16},
    {"int16", ValueType::kInt16},
    {"i16", ValueType::kInt16},
    {"short", ValueType::kInt16},
    {"uint32", ValueType::kUint32},
    {"u32", ValueType::kUint32},
    {"int32", ValueType::kInt32},
    {"i32", ValueType::kInt32},
    {"int", ValueType::kInt32},
    {"uint64", ValueType::kUint64},
    {"u64", ValueType::kUint64},
    {"int64", ValueType::kInt64},
    {"i64", ValueType::kInt64},
    {"long", ValueType::kInt64},
    {"fp8_e4m3", ValueType::kFloat8E4m3},
    {"fp8_e5m2", ValueType::kFloat8E5m2},
    {"e4m3", ValueType::kFloat8E4m3},
    {"e5m2", ValueType::kFloat8E5m2},
    {"float8_e4m3", ValueType::kFloat8E4m3},
    {"float8_e5m2", ValueType::kFloat8E5m2},
    {"float8_e4m3fn", ValueType::kFloat8E4m3},
    {"fp16", ValueType::kFloat16},
    {"f16", ValueType::kFloat16},
    {"float16", ValueType::kFloat16},
    {"half", ValueType::kFloat16},
    {"bf16", ValueType::kBfloat16},
    {"bfloat16", ValueType::kBfloat16},
    {"tf32", ValueType::kTensorFloat32},
    {"fp32", ValueType::kFloat32},
    {"f32", ValueType::kFloat32},
    {"float32", ValueType::kFloat32},
    {"float", ValueType::kFloat32},
    {"fp64", ValueType::kFloat64},
    {"f64", ValueType::kFloat64},
    {"float64", ValueType::kFloat64},
    {"double", ValueType::kFloat64},
};

std::optional<ValueType> exact_name(std::string_view name) {
  for (const Name &known : kNames) {
    if (known.text == name) return known.type;
  }
  return std::nullopt;
}

uint64_t low_bits(uint32_t count) { return count >= 64 ? UINT64_MAX : (uint64_t{1} << count) - 1; }

uint64_t own_bits(ValueType type, uint64_t bits) { return bits & low_bits(facts_of(type).bytes * 8u); }

// Mantissa bits as they lie in memory: those of tf32 that do not count are there.
uint32_t stored_mantissa(ValueType type) {
  return type == ValueType::kTensorFloat32 ? 23u : facts_of(type).mantissa_bits;
}

struct Parts {
  bool negative;
  uint64_t exponent, mantissa;
  uint64_t exponent_ones;
};

Parts parts_of(ValueType type, uint64_t bits) {
  const ValueTypeFacts &facts = facts_of(type);
  const uint32_t mantissa = stored_mantissa(type);
  return {(bits >> (facts.bytes * 8u - 1u) & 1) != 0, bits >> mantissa & low_bits(facts.exponent_bits),
          bits & low_bits(mantissa), low_bits(facts.exponent_bits)};
}

int64_t signed_value(ValueType type, uint64_t bits) {
  const uint32_t unused = 64u - facts_of(type).bytes * 8u;
  return static_cast<int64_t>(bits << unused) >> unused;
}

bool integer_holds(ValueType type, double number) {
  if (!(std::fabs(number) <= 0x1p64) || std::trunc(number) != number) return false;
  if (number == 0) return !std::signbit(number);
  const ValueTypeFacts &facts = facts_of(type);
  const uint32_t width = facts.bytes * 8u - (facts.is_signed ? 1u : 0u);
  const double limit = std::ldexp(1.0, static_cast<int>(width));
  return number < limit && number >= (facts.is_signed ? -limit : 0);
}

bool float_holds(const ValueTypeFacts &facts, double number) {
  if (std::isnan(number)) return false;
  if (std::isinf(number)) return facts.has_infinity;
  if (number == 0) return true;
  const double size = std::fabs(number);
  if (size > facts.greatest) return false;
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // in [0.5, 1)
  --exponent;
  const auto significand = static_cast<uint64_t>(std::ldexp(fraction, 53));
  const int needed = 53 - std::countr_zero(significand);
  const int least_normal = 2 - (1 << (facts.exponent_bits - 1));  // 1 - bias
  // Below the normal numbers a bit is lost for each halving.
  const int lost = exponent < least_normal ? least_normal - exponent : 0;
  return needed <= facts.mantissa_bits + 1 - lost;
}

bool integer_in(ValueType target, ValueType type, uint64_t bits) {
  const ValueTypeFacts &facts = facts_of(target);
  const uint32_t width = facts.bytes * 8u;
  if (!facts_of(type).is_signed) return bits <= low_bits(facts.is_signed ? width - 1 : width);
  const int64_t value = signed_value(type, bits);
  if (!facts.is_signed) return value >= 0 && static_cast<uint64_t>(value) <= low_bits(width);
  const auto limit = static_cast<int64_t>(low_bits(width - 1));
  return value <= limit && value >= -limit - 1;
}

}  // namespace

const ValueTypeFacts &facts_of(ValueType type) { return kFacts[static_cast<size_t>(type)]; }

std::optional<ValueType> value_type_of(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (const auto whole = exact_name(name)) return whole;
  // "half2", "bf16x2": a vector is elements of its type.
  if (name.empty() || (name.back() != '2' && name.back() != '4')) return std::nullopt;
  name.remove_suffix(1);
  if (const auto element = exact_name(name)) return element;
  if (name.ends_with('x')) name.remove_suffix(1);
  return exact_name(name);
}

double decode_value(ValueType type, uint64_t bits) {
  const ValueTypeFacts &facts = facts_of(type);
  if (!facts.is_float) {
    return facts.is_signed ? static_cast<double>(signed_value(type, bits)) : static_cast<double>(own_bits(type, bits));
  }
  if (type == ValueType::kFloat64) return std::bit_cast<double>(bits);
  if (type == ValueType::kFloat32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (type == ValueType::kTensorFloat32) return std::bit_cast<float>(static_cast<uint32_t>(bits) & ~uint32_t{0x1fff});
  const Parts parts = parts_of(type, bits);
  const double sign = parts.negative ? -1 : 1;
  if (is_nan_value(type, bits)) return std::numeric_limits<double>::quiet_NaN();
  if (facts.has_infinity && parts.exponent == parts.exponent_ones) return sign * kInfinity;
  const int least_normal = 2 - (1 << (facts.exponent_bits - 1));
  const uint64_t hidden = parts.exponent == 0 ? 0 : uint64_t{1} << facts.mantissa_bits;
  const int exponent = parts.exponent == 0 ? least_normal : least_normal + static_cast<int>(parts.exponent) - 1;
  return sign * std::ldexp(static_cast<double>(hidden | parts.mantissa), exponent - facts.mantissa_bits);
}

bool is_nan_value(ValueType type, uint64_t bits) {
  const ValueTypeFacts &facts = facts_of(type);
  if (!facts.is_float) return false;
  const Parts parts = parts_of(type, bits);
  if (parts.exponent != parts.exponent_ones) return false;
  if (type == ValueType::kTensorFloat32) return (parts.mantissa >> 13) != 0;
  return facts.has_infinity ? parts.mantissa != 0 : parts.mantissa == low_bits(facts.mantissa_bits);
}

bool holds_exactly(ValueType type, double number) {
  return facts_of(type).is_float ? float_holds(facts_of(type), number) : integer_holds(type, number);
}

ValueTypeSet types_that_hold(ValueType type, uint64_t bits, ValueTypeSet candidates) {
  const bool is_float = facts_of(type).is_float;
  bits = own_bits(type, bits);
  const double number = decode_value(type, bits);
  ValueTypeSet held = 0;
  for (ValueTypeSet rest = candidates; rest != 0; rest &= rest - 1) {
    const auto target = static_cast<ValueType>(std::countr_zero(rest));
    bool holds = false;
    if (is_float || facts_of(target).is_float) {
      // A 64-bit integer that a double rounds is held by no float.
      const bool rounded =
          !is_float &&
          (facts_of(type).is_signed
               ? !integer_holds(ValueType::kInt64, number) || static_cast<int64_t>(number) != signed_value(type, bits)
               : !integer_holds(ValueType::kUint64, number) || static_cast<uint64_t>(number) != bits);
      holds = !rounded && holds_exactly(target, number);
    } else {
      holds = integer_in(target, type, bits);
    }
    if (holds) held |= value_type_bit(target);
  }
  return held;
}

ValueTypeSet narrower_types(ValueType type) {
  ValueTypeSet out = 0;
  for (size_t i = 0; i < kValueTypes; ++i) {
    const auto other = static_cast<ValueType>(i);
    if (facts_of(other).bytes >= facts_of(type).bytes || other == ValueType::kTensorFloat32) continue;
    if (facts_of(other).is_float && !facts_of(type).is_float) continue;
    out |= value_type_bit(other);
  }
  return out;
}

ValueType narrowest_type(ValueTypeSet types, ValueType like) {
  ValueType best = static_cast<ValueType>(std::countr_zero(types));
  const auto rank = [&](ValueType type) {
    const ValueTypeFacts &facts = facts_of(type), &wanted = facts_of(like);
    const bool kin = facts.is_float == wanted.is_float && facts.is_signed == wanted.is_signed;
    return facts.bytes * 2u + (kin ? 0u : 1u);
  };
  for (ValueTypeSet rest = types; rest != 0; rest &= rest - 1) {
    const auto type = static_cast<ValueType>(std::countr_zero(rest));
    if (rank(type) < rank(best)) best = type;
  }
  return best;
}

uint64_t truncate_mantissa(ValueType type, uint64_t bits, uint32_t kept) {
  const ValueTypeFacts &facts = facts_of(type);
  bits = own_bits(type, bits);
  const uint32_t stored = stored_mantissa(type);
  if (!facts.is_float || kept >= stored || is_nan_value(type, bits)) return bits;
  return bits & ~low_bits(stored - kept);
}

uint32_t kept_mantissa_bits(ValueType type, uint32_t level) {
  constexpr uint32_t kFloat[] = {23, 20, 15, 11, 7, 3}, kDouble[] = {52, 46, 36, 28, 20, 12};
  level = std::min(level, 5u);
  if (type == ValueType::kFloat64) return kDouble[level];
  return std::min<uint32_t>(kFloat[level], facts_of(type).mantissa_bits);
}

}  // namespace sonde::toolkit
