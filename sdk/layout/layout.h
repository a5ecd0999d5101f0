// The layout: a map over F2 between two spaces that are split into named dimensions.
//
// Worked example, the 16x16 tile of the Linear Layouts paper's first figure (2x2 registers, 4x8 lanes, 2x1 warps):
//   register 1 -> (0, 1)   lane 1 -> (0, 2)   lane  8 -> (2, 0)   warp 1 -> (8, 0)
//   register 2 -> (1, 0)   lane 2 -> (0, 4)   lane 16 -> (4, 0)
//                          lane 4 -> (0, 8)
// Register 1 of lane 9 of warp 0 holds (0, 1) ^ (0, 2) ^ (2, 0) = (2, 3).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layout/arena.h"
#include "layout/bits.h"
#include "layout/names.h"

namespace sonde::layout {

inline constexpr uint32_t kMaxBits = 64;  // of a side
inline constexpr uint32_t kMaxDims = 64;  // of a side

// One dimension of 2^bits values; its bits lie from `shift` on in the flattened side. Without initial values, so that
// an array of them for the largest side costs nothing.
struct Dim {
  DimName name;
  uint8_t bits;
  uint8_t shift;
  uint16_t reserved;

  uint64_t mask() const { return place(low_mask(bits), shift); }
  uint64_t of(uint64_t flat) const { return field(flat, shift, bits); }
  uint64_t at(uint64_t value) const { return place(value, shift); }
};

// Immutable once built; lies in an arena, followed by its dims and columns.
class Layout {
 public:
  Layout(const Layout &) = delete;
  Layout &operator=(const Layout &) = delete;

  std::span<const Dim> ins() const { return {dims(), in_count_}; }
  std::span<const Dim> outs() const { return {dims() + in_count_, out_count_}; }
  uint32_t in_bits() const { return in_bits_; }
  uint32_t out_bits() const { return out_bits_; }

  // L(2^i) for each flattened input bit, without the offset.
  std::span<const uint64_t> columns() const { return {column_data(), in_bits_}; }
  std::span<const uint64_t> columns_of(const Dim &in) const { return {column_data() + in.shift, in.bits}; }
  uint64_t offset() const { return offset_; }

  // Of the object with its dims and columns; there is no pointer in it.
  size_t bytes() const {
    return sizeof(Layout) + (static_cast<size_t>(in_count_) + out_count_) * sizeof(Dim) + in_bits_ * sizeof(uint64_t);
  }

  // False for memory that no layout was built in; a guard for handles from outside.
  bool is_valid() const { return tag_ == kTag; }

  const Dim *find_in(DimName name) const { return find(ins(), name); }
  const Dim *find_out(DimName name) const { return find(outs(), name); }

  // L(x), both flattened; bits of x past in_bits are not looked at.
  uint64_t apply(uint64_t flat) const {
    uint64_t result = offset_;
    const uint64_t *const all = column_data();
    for (uint64_t rest = flat & low_mask(in_bits_); rest != 0; rest &= rest - 1) result ^= all[lowest_bit(rest)];
    return result;
  }

  // For builders: a layout of these numbers in `arena`, its dims and columns not yet set; nullptr when the arena is
  // full.
  static Layout *make(Arena &arena, uint32_t in_count, uint32_t out_count, uint32_t in_bits);
  // A layout with these dims, placed; its columns are not yet set. nullptr with kUnsupported when a side has more than
  // 64 bits, or when the arena is full. Inline: it is most of what a simple operation costs.
  static Layout *make(Arena &arena, std::span<const Dim> ins, std::span<const Dim> outs) {
    uint32_t in_bits = 0;
    uint32_t out_bits = 0;
    for (const Dim &dim : ins) in_bits += dim.bits;
    for (const Dim &dim : outs) out_bits += dim.bits;
    Layout *const layout =
        make_sized(arena, static_cast<uint32_t>(ins.size()), static_cast<uint32_t>(outs.size()), in_bits, out_bits);
    if (layout == nullptr) return nullptr;
    Dim *place = layout->dims();
    uint8_t shift = 0;
    for (const Dim &dim : ins) {
      *place = dim;
      place++->shift = shift;
      shift = static_cast<uint8_t>(shift + dim.bits);
    }
    shift = 0;
    for (const Dim &dim : outs) {
      *place = dim;
      place++->shift = shift;
      shift = static_cast<uint8_t>(shift + dim.bits);
    }
    return layout;
  }
  // The same where the caller places the dims itself.
  static Layout *make_sized(Arena &arena, uint32_t in_count, uint32_t out_count, uint32_t in_bits, uint32_t out_bits) {
    if (in_bits > kMaxBits || out_bits > kMaxBits) [[unlikely]]
      return refuse_width(arena, in_bits, out_bits);
    void *const room =
        arena.allocate(sizeof(Layout) + (in_count + out_count) * sizeof(Dim) + in_bits * sizeof(uint64_t));
    if (room == nullptr) [[unlikely]]
      return nullptr;
    auto *const layout = ::new (room) Layout;
    layout->in_count_ = static_cast<uint8_t>(in_count);
    layout->out_count_ = static_cast<uint8_t>(out_count);
    layout->in_bits_ = static_cast<uint8_t>(in_bits);
    layout->out_bits_ = static_cast<uint8_t>(out_bits);
    return layout;
  }
  void copy_columns(const Layout &from) {
    uint64_t *const to = column_data();
    const uint64_t *const own = from.column_data();
    for (uint32_t i = 0; i < in_bits_; ++i) to[i] = own[i];
  }
  Dim *mutable_ins() { return dims(); }
  Dim *mutable_outs() { return dims() + in_count_; }
  uint64_t *mutable_columns() { return column_data(); }
  void set_offset(uint64_t offset) { offset_ = offset; }
  // Sets each dim's shift and the sides' bits from the dims' bits; false with kUnsupported when a side has more than 64.
  bool place_dims(Arena &arena);

 private:
  Layout() = default;
  static Layout *refuse_width(Arena &arena, uint32_t in_bits, uint32_t out_bits);
  static const Dim *find(std::span<const Dim> side, DimName name) {
    for (const Dim &dim : side) {
      if (dim.name == name) return &dim;
    }
    return nullptr;
  }
  Dim *dims() { return reinterpret_cast<Dim *>(this + 1); }
  const Dim *dims() const { return reinterpret_cast<const Dim *>(this + 1); }
  uint64_t *column_data() { return reinterpret_cast<uint64_t *>(dims() + in_count_ + out_count_); }
  const uint64_t *column_data() const { return reinterpret_cast<const uint64_t *>(dims() + in_count_ + out_count_); }

  static constexpr uint32_t kTag = 0x31534f4c;  // "LOS1"

  uint32_t tag_ = kTag;
  uint8_t in_count_ = 0;
  uint8_t out_count_ = 0;
  uint8_t in_bits_ = 0;
  uint8_t out_bits_ = 0;
  uint64_t offset_ = 0;
};

// A dimension of a side to be built: its name and the log2 of its size.
struct DimSize {
  DimName name;
  uint32_t bits;
};

// Builders. All return nullptr with arena.fault() and arena.text() set when the arguments do not fit.

// From flattened columns.
const Layout *make_layout(Arena &arena, std::span<const DimSize> ins, std::span<const DimSize> outs,
                          std::span<const uint64_t> columns, uint64_t offset = 0);

// From bases as they are printed: one row for each input bit, ins in order, lowest bit first; a row has one value for
// each out dim. kInvalid when a value does not fit its dim.
const Layout *make_from_bases(Arena &arena, std::span<const DimSize> ins, std::span<const DimSize> outs,
                              std::span<const uint64_t> rows);

// The same map with another offset: one value for each out dim; kInvalid when one does not fit.
const Layout *with_offset(Arena &arena, const Layout &layout, std::span<const uint64_t> values);

// As make_from_bases, each out dim as small as its largest value allows; kInvalid unless that is surjective.
struct NamedBases {
  DimName in;
  std::vector<std::vector<uint64_t>> rows;
};
const Layout *make_inferred(Arena &arena, std::span<const NamedBases> bases, std::span<const DimName> outs,
                            bool needs_surjective = true);

const Layout *make_empty(Arena &arena);
// x -> x; `size` a power of two, or 0 for the empty layout.
const Layout *make_identity(Arena &arena, uint64_t size, DimName in, DimName out);
// x -> stride x; the out dim has stride * size values.
const Layout *make_strided(Arena &arena, uint64_t size, uint64_t stride, DimName in, DimName out);
// x -> 0.
const Layout *make_zeros(Arena &arena, uint64_t size, DimName in, DimName out, uint64_t out_size = 1);
const Layout *copy_layout(Arena &arena, const Layout &layout);

// L at named inputs: `values` in the order of ins(); kInvalid for a value past its dim. The result in the order of
// outs().
bool apply_dims(Arena &arena, const Layout &layout, std::span<const uint64_t> values, std::span<uint64_t> out);

// The rank of A; surjective: rank = out bits; injective: rank = in bits.
uint32_t rank(const Layout &layout);
inline bool is_surjective(const Layout &layout) {
  return layout.in_bits() >= layout.out_bits() && rank(layout) == layout.out_bits();
}
inline bool is_injective(const Layout &layout) {
  return layout.out_bits() >= layout.in_bits() && rank(layout) == layout.in_bits();
}
inline bool is_invertible(const Layout &layout) {
  return layout.in_bits() == layout.out_bits() && rank(layout) == layout.in_bits();
}

// Equality of everything, in order.
bool equal(const Layout &a, const Layout &b);
// The same but for the sizes of the out dims.
bool equal_but_out_sizes(const Layout &a, const Layout &b);
// The same map, whatever the order of the dims; dims of one value do not count.
bool equal_as_maps(const Layout &a, const Layout &b);
// Equal layouts have equal hashes, on every machine and in every process.
uint64_t hash(const Layout &layout);
// Layouts that are equal as maps have equal hashes.
uint64_t hash_as_map(const Layout &layout);

// The bulleted form that Triton prints; an offset, which Triton does not have, follows as a last line.
std::string to_string(const Layout &layout);

// Text of a side for messages: "[register (size 4), lane (size 32)]".
std::string describe(std::span<const Dim> side);
// Out values of a flattened index: "(1, 0)".
std::string describe_point(std::span<const Dim> side, uint64_t flat);

}  // namespace sonde::layout
