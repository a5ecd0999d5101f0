// Number formats of memory accesses: what bits mean, whether a narrower format holds the same number, and numbers with
// less mantissa.
//
// Formats: IEEE 754 binary64, binary32 and binary16; bfloat16; tf32 as it lies in memory, 32 bits of which 13 do not
// count; the 8-bit formats of the OCP 8-bit Floating Point Specification 1.0: E4M3 (no infinity, one NaN pattern a
// sign, greatest 448) and E5M2 (as IEEE, greatest 57344); whole numbers in two's complement. Pairs and vectors are
// several elements of these, lowest address first.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace sonde::toolkit {

enum class ValueType : uint8_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kFloat8E4m3,
  kFloat8E5m2,
  kFloat16,
  kBfloat16,
  kTensorFloat32,
  kFloat32,
  kFloat64,
};
inline constexpr size_t kValueTypes = 15;

struct ValueTypeFacts {
  const char *name;
  uint8_t bytes;
  bool is_float;
  bool is_signed;
  uint8_t exponent_bits;  // of floats
  uint8_t mantissa_bits;  // stored
  bool has_infinity;
  double greatest;  // finite, exact for all but 64-bit integers
};

const ValueTypeFacts &facts_of(ValueType type);

// Names of frameworks, of CUDA and of this file: "float32", "torch.bfloat16", "half", "half2", "fp8_e4m3",
// "float8_e4m3fn", "bf16x2", "bool". A count of elements at the end is left away. Nothing for a name that is not known.
std::optional<ValueType> value_type_of(std::string_view name);

// A set of types, a bit each.
using ValueTypeSet = uint32_t;
constexpr ValueTypeSet value_type_bit(ValueType type) { return ValueTypeSet{1} << static_cast<unsigned>(type); }

// `bits` holds the element in its low bits; what lies above is not looked at. Whole numbers past 2^53 are rounded.
double decode_value(ValueType type, uint64_t bits);

bool is_nan_value(ValueType type, uint64_t bits);

// Whether a type holds the number exactly: encoded and decoded again, the same number comes out, sign of zero included.
// A NaN is held by no type, because its payload may get lost.
bool holds_exactly(ValueType type, double number);

// Types of `candidates` that hold this element exactly. Exact for 64-bit integers too.
ValueTypeSet types_that_hold(ValueType type, uint64_t bits, ValueTypeSet candidates);

// Types with fewer bytes than `type`; of a float the narrower whole numbers too.
ValueTypeSet narrower_types(ValueType type);

// The narrowest of a set: fewest bytes; of equal ones the same family as `like`, then the order of ValueType. The set is
// not empty.
ValueType narrowest_type(ValueTypeSet types, ValueType like);

// The element with only its first `kept` mantissa bits; NaN, infinities and whole numbers stay as they are.
uint64_t truncate_mantissa(ValueType type, uint64_t bits, uint32_t kept);

// Mantissa bits kept at a level from 0 (all) to 5, as ValueExpert has them for float and double: 23/52, 20/46, 15/36,
// 11/28, 7/20, 3/12. Narrower formats keep what float keeps, at most what they have.
uint32_t kept_mantissa_bits(ValueType type, uint32_t level);

// The first `bytes` bytes (1 to 8) as a number, little-endian.
inline uint64_t load_element(const uint8_t *data, uint32_t bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, data, bytes);
  return bits;
}

}  // namespace sonde::toolkit
