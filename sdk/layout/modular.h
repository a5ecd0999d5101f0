// Layouts whose dims have any size.
//
// An in dim of n values is written in bits, as in a linear layout; it has bits for n - 1, and indices from n on do not
// occur. Each bit has a basis: one value for each out dim. An out dim whose size is a power of two combines them by
// xor; one of any other size m adds them modulo m. With powers of two only, this is a linear layout.
//
//     96 elements over 32 lanes of 3 registers:       register (3)  1 -> 1   2 -> 2
//                                                     lane (32)     1 -> 3   2 -> 6   4 -> 12   8 -> 24   16 -> 48
//     lane 5 = 4 + 1, register 2: 12 + 3 + 2 = 17     where out dim0 has 96 values
//
// The form is closed under what is done to one dim at a time; but a composition of two such maps, or an inverse, need
// not be one, since neither the bits of a sum modulo m nor those of a remainder are sums of bits. (The inverse of the
// example is not: register = y mod 3, lane = y / 3.) So these operations have three outcomes:
//   a layout      proven to be the right one, at any size
//   kNoSolution   proven that there is none, with a witness or an argument in the text
//   kUnsupported  the method cannot tell within its limits
#pragma once

#include "layout/layout.h"

namespace sonde::layout {

// Up to this many inputs are tried one by one where the structure does not decide.
inline constexpr uint64_t kModularEnumerated = 65536;

struct ModularDim {
  DimName name = 0;
  uint8_t bits = 0;   // of the index size - 1
  uint8_t shift = 0;  // of the index in the input that has all dims' bits side by side, the first lowest
  uint16_t reserved = 0;
  uint64_t size = 1;

  bool xors() const { return is_power_of_two(size); }
  uint64_t of(uint64_t flat) const { return field(flat, shift, bits); }
};

struct ModularSize {
  DimName name;
  uint64_t size;  // 1 .. 2^62
};

// Immutable, in an arena.
class ModularLayout {
 public:
  ModularLayout(const ModularLayout &) = delete;
  ModularLayout &operator=(const ModularLayout &) = delete;

  std::span<const ModularDim> ins() const { return {dims(), in_count_}; }
  std::span<const ModularDim> outs() const { return {dims() + in_count_, out_count_}; }
  uint32_t in_bits() const { return in_bits_; }
  // The values of input bit `bit`, one for each out dim.
  std::span<const uint64_t> basis(uint32_t bit) const { return {bases() + size_t{bit} * out_count_, out_count_}; }

  // Of the object with its dims and bases; there is no pointer in it.
  size_t bytes() const {
    return sizeof(ModularLayout) + (size_t{in_count_} + out_count_) * sizeof(ModularDim) +
           size_t{in_bits_} * out_count_ * sizeof(uint64_t);
  }

  const ModularDim *find_in(DimName name) const { return find(ins(), name); }
  const ModularDim *find_out(DimName name) const { return find(outs(), name); }

  // Whether each dim's index is below its size.
  bool is_input(uint64_t flat) const;
  // Number of inputs, UINT64_MAX when there are more.
  uint64_t inputs() const;
  // The values of an input, one for each out dim.
  void apply(uint64_t flat, std::span<uint64_t> out) const;

 private:
  friend const ModularLayout *make_modular(Arena &, std::span<const ModularSize>, std::span<const ModularSize>,
                                           std::span<const uint64_t>);
  ModularLayout() = default;
  static const ModularDim *find(std::span<const ModularDim> side, DimName name) {
    for (const ModularDim &dim : side) {
      if (dim.name == name) return &dim;
    }
    return nullptr;
  }
  ModularDim *dims() { return reinterpret_cast<ModularDim *>(this + 1); }
  const ModularDim *dims() const { return reinterpret_cast<const ModularDim *>(this + 1); }
  uint64_t *bases() { return reinterpret_cast<uint64_t *>(dims() + in_count_ + out_count_); }
  const uint64_t *bases() const { return reinterpret_cast<const uint64_t *>(dims() + in_count_ + out_count_); }

  uint32_t in_count_ = 0;
  uint32_t out_count_ = 0;
  uint32_t in_bits_ = 0;
  uint32_t reserved_ = 0;
};

// a + b in an out dim.
uint64_t modular_sum(const ModularDim &out, uint64_t a, uint64_t b);

// `bases` has one row for each input bit (ins in order, lowest bit first), one value for each out dim. kInvalid for a
// value past its out dim, kUnsupported past 64 input bits.
const ModularLayout *make_modular(Arena &arena, std::span<const ModularSize> ins, std::span<const ModularSize> outs,
                                  std::span<const uint64_t> bases);
// x -> x.
const ModularLayout *make_modular_identity(Arena &arena, std::span<const ModularSize> dims);
// x -> stride x, modulo the size of an out dim that is no power of two; where it is one, all results must lie below it.
const ModularLayout *make_modular_strided(Arena &arena, uint64_t size, uint64_t stride, DimName in, ModularSize out);
// A linear layout without an offset, and back when all sizes are powers of two (kNoSolution otherwise).
const ModularLayout *modular_from_linear(Arena &arena, const Layout &layout);
const Layout *linear_from_modular(Arena &arena, const ModularLayout &layout);

bool equal(const ModularLayout &a, const ModularLayout &b);
std::string to_string(const ModularLayout &layout);

// In a shared in dim of a and b values, index v stands for v mod a of the inner and v / a of the outer layout; in a
// shared out dim, outer's values count inner's size each. Dims in their common order.
const ModularLayout *product(Arena &arena, const ModularLayout &inner, const ModularLayout &outer);

// x -> outer(inner(x)). The out dims of `inner` and the in dims of `outer` are the same set, each at most as large in
// `inner`.
const ModularLayout *compose(Arena &arena, const ModularLayout &inner, const ModularLayout &outer);

// An input with these values, one for each out dim: false with kNoSolution when no input has them.
bool solve(Arena &arena, const ModularLayout &layout, std::span<const uint64_t> values, uint64_t &input);

// R with layout(R(y)) = y and R(layout(x)) = x.
const ModularLayout *invert(Arena &arena, const ModularLayout &layout);
// C with outer(C(x)) = layout(x). Where `outer` maps two inputs to the same values, the one that `solve` finds for each
// bit is tried and no other, so that the answer may be kUnsupported.
const ModularLayout *invert_and_compose(Arena &arena, const ModularLayout &layout, const ModularLayout &outer);

// Whether `layout` maps every one of its inputs as `values` does, where the caller has not shown it: by trying each, or,
// when they are too many, by looking for one that differs. On false the fault is kNoSolution with the input, or
// kUnsupported.
template <typename Values>
bool agrees_with(Arena &arena, const ModularLayout &layout, const char *what, Values &&values);

std::string describe_input(const ModularLayout &layout, uint64_t flat);

template <typename Values>
bool agrees_with(Arena &arena, const ModularLayout &layout, const char *what, Values &&values) {
  std::vector<uint64_t> own(layout.outs().size());
  std::vector<uint64_t> wanted(layout.outs().size());
  const auto differs = [&](uint64_t flat) {
    if (!layout.is_input(flat)) return false;
    layout.apply(flat, own);
    values(flat, std::span<uint64_t>(wanted));
    if (own == wanted) return false;
    arena.fail(Fault::kNoSolution, std::string(what) + " is no layout of this kind: at " +
                                       describe_input(layout, flat) + " it is not the sum of its values at the bits");
    return true;
  };
  const uint32_t bits = layout.in_bits();
  if (bits <= 24 && layout.inputs() <= kModularEnumerated) {
    for (uint64_t flat = 0; flat < uint64_t{1} << bits; ++flat) {
      if (differs(flat)) return false;
    }
    return true;
  }
  for (uint32_t a = 0; a < bits; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (differs(uint64_t{1} << a | uint64_t{1} << b)) return false;
    }
  }
  uint64_t state = 1;
  for (uint32_t round = 0; round < 4096; ++round) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    if (differs((state ^ state >> 29) & low_mask(bits))) return false;
  }
  arena.fail(Fault::kUnsupported, std::string(what) + " may be a layout of this kind, but that is not shown for " +
                                      std::to_string(bits) + " input bits");
  return false;
}

}  // namespace sonde::layout
