// Between CuTe layouts and linear layouts, exactly, in both directions.
//
// A CuTe layout adds the strides of its index bits, a linear layout xors its columns. The two agree exactly when the
// additions never carry. Decided without enumeration: write offset + layout(x) as k + sum of m_a x_a over the index
// bits x_a. The lowest bit of the sum is a xor of bits; what carries is again of that form when at most one m_a is odd,
// namely floor(k / 2) + sum of m'_a x_a; with two odd ones the carry has the product of the two bits in it, which no
// xor makes. So the layout is linear (affine, with an offset) exactly when halving never meets two odd multipliers.
//   4:5              linear, with the columns 5 and 10: they share no bit
//   (2,2):(1,1)      not linear: 1 + 1 carries
//   2:4 at offset 4  affine: 4 and 8 are 4 ^ 12 x, although offset and column share a bit
//   4:-1 at offset 3 affine: 3 - x = 3 ^ x
//
// The other way, o ^ A x is a CuTe layout with integer strides exactly when no two columns share a bit: two that do
// have x_a x_b with a factor that no choice of strides removes. An offset bit within a column counts downwards, which
// makes the stride smaller or negative. Swizzled memory is no such layout; there a swizzle may take the shared bits
// away, which is found by trying every one.
//
// Orders: the index of a CuTe layout is the in side flattened with its first dim lowest, and its result the out side
// flattened likewise. A linear layout maps hardware (or memory) to a tensor; CuTe's layouts of data map coordinates to
// memory, so invert one of them to compare the two.
#pragma once

#include "layout/cute_swizzle.h"
#include "layout/layout.h"
#include "layout/padding.h"

namespace sonde::layout {

// The index is cut into the in dims and the result into the out dims. kNoSolution, with the reason, when the layout is
// not linear; kInvalid when the in dims do not have its size, or its results do not fit the out dims.
const Layout *linear_from_cute(Arena &arena, const CuteComposed &composed, std::span<const DimSize> ins,
                               std::span<const DimSize> outs);
const Layout *linear_from_cute(Arena &arena, const CuteLayout &layout, std::span<const DimSize> ins,
                               std::span<const DimSize> outs);
// One in dim for each mode; one out dim, as small as the results allow.
const Layout *linear_from_cute(Arena &arena, const CuteComposed &composed, std::span<const DimName> ins, DimName out);
// On `bits` bits, which must hold all that the swizzle touches.
const Layout *linear_from_cute(Arena &arena, const CuteSwizzle &swizzle, uint32_t bits, DimName in, DimName out);

// The forms a linear layout may have in CuTe, each more general than the one before.
enum class CuteForm : uint8_t {
  kStrides,     // offset + layout, with integer strides
  kSwizzled,    // swizzle of that
  kXorStrides,  // strides whose multiples are xors: c times d is the carry-less product, see apply_xor_strides
};

struct CuteConversion {
  CuteForm form = CuteForm::kStrides;
  const CuteComposed *composed = nullptr;  // of the first two forms
  const CuteLayout *strides = nullptr;     // of the last one: xor strides, beside
  uint64_t offset = 0;                     // xored onto the result
};

// The least general form, but at most `most`, with one coalesced mode for each in dim. kNoSolution with the reason when
// there is none; kUnsupported past 61 bits.
bool cute_from_linear(Arena &arena, const Layout &layout, CuteForm most, CuteConversion &result);

// The xor over the leaves of the carry-less products of coordinate and stride, as the stride's binary polynomials
// multiply: (4,4):(1,5) maps (3, 2) to (1 ^ 2) ^ (5 << 1).
int64_t apply_xor_strides(const CuteLayout &strides, int64_t index);
// kNoSolution unless each shape is a power of two.
const Layout *linear_from_xor_strides(Arena &arena, const CuteLayout &strides, uint64_t offset,
                                      std::span<const DimSize> ins, std::span<const DimSize> outs);

// Where offset o < 2^bits without pads lies with them: o + the sum of o / interval * pad. Not linear, but a CuTe layout.
//   8 bits, 4 after each 32: (32,8):(1,36)
const CuteLayout *cute_from_padding(Arena &arena, uint32_t bits, std::span<const Padding> paddings);

}  // namespace sonde::layout
