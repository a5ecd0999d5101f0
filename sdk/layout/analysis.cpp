#include "layout/analysis.h"

#include <algorithm>

#include "layout/instruction_tiles.h"
#include "layout/matrix.h"

namespace sonde::layout {
namespace {

constexpr uint32_t kMostOwnersLog2 = 20;

bool check_bits(Arena &arena, uint32_t bits) {
  if (is_power_of_two(bits) && bits <= 128) return true;
  arena.fail(Fault::kInvalid,
             "elements of " + std::to_string(bits) + " bits; a power of two from 1 to 128 is expected");
  return false;
}

}  // namespace

Broadcasts broadcasts_of(const Layout &layout) {
  Broadcasts result;
  uint64_t units = 0;
  uint32_t counted = 0;
  bool is_simple = true;
  for (const Dim &in : layout.ins()) {
    const auto columns = layout.columns_of(in);
    uint64_t free = 0;
    for (uint32_t bit = 0; bit < columns.size(); ++bit) {
      const uint64_t column = columns[bit];
      if (column == 0) {
        free |= uint64_t{1} << bit;
        ++counted;
      } else {
        is_simple = is_simple && (column & (column - 1)) == 0 && (units & column) == 0;
        units |= column;
      }
    }
    switch (in.name) {
      case dim::kRegister:
        result.free_registers = free;
        break;
      case dim::kLane:
        result.free_lanes = free;
        break;
      case dim::kWarp:
        result.free_warps = free;
        break;
      case dim::kBlock:
        result.free_blocks = free;
        break;
      default:
        break;
    }
  }
  result.copies_log2 = is_simple ? counted : layout.in_bits() - rank(layout);
  return result;
}

bool occupancy(Arena &arena, const Layout &layout, uint32_t bits_per_element, Occupancy &out) {
  if (!check_bits(arena, bits_per_element)) return false;
  const Dim *const registers = layout.find_in(dim::kRegister);
  const uint32_t bits = registers == nullptr ? 0 : registers->bits;
  if (bits > 32) {
    arena.fail(Fault::kUnsupported, "occupancy: more than 2^32 elements of one thread");
    return false;
  }
  const uint32_t unique = registers == nullptr ? 0 : rank_of(layout.columns_of(*registers));
  const auto packed = [bits_per_element](uint64_t elements) { return (elements * bits_per_element + 31) / 32; };
  out.elements = uint64_t{1} << bits;
  out.unique_elements = uint64_t{1} << unique;
  out.registers = packed(out.elements);
  out.unique_registers = packed(out.unique_elements);
  return true;
}

const Layout *memory_offsets(Arena &arena, const Layout &layout, std::span<const uint32_t> order, uint32_t pitch_bits) {
  const auto outs = layout.outs();
  uint64_t seen = 0;
  uint32_t shifts[kMaxDims];
  uint32_t total = 0;
  for (const uint32_t index : order) {
    if (index >= outs.size() || (seen >> index & 1) != 0) {
      arena.fail(Fault::kInvalid,
                 "memory offsets: the order must name each of the " + std::to_string(outs.size()) + " out dims once");
      return nullptr;
    }
    if (seen != 0) total = std::max(total, pitch_bits);
    seen |= uint64_t{1} << index;
    shifts[index] = total;
    total += outs[index].bits;
  }
  if (order.size() != outs.size()) {
    arena.fail(Fault::kInvalid, "memory offsets: the order names " + std::to_string(order.size()) + " of the " +
                                    std::to_string(outs.size()) + " out dims");
    return nullptr;
  }
  if (total > kMaxBits) {
    arena.fail(Fault::kUnsupported, "memory offsets: more than 64 bits");
    return nullptr;
  }
  Layout *const result = Layout::make(arena, static_cast<uint32_t>(layout.ins().size()), 1, layout.in_bits());
  if (result == nullptr) return nullptr;
  std::copy(layout.ins().begin(), layout.ins().end(), result->mutable_ins());
  result->mutable_outs()[0] = {dim::kOffset, static_cast<uint8_t>(total), 0, 0};
  if (!result->place_dims(arena)) return nullptr;
  const auto move = [&](uint64_t value) {
    uint64_t moved = 0;
    for (size_t i = 0; i < outs.size(); ++i) moved |= place(outs[i].of(value), shifts[i]);
    return moved;
  };
  uint64_t *column = result->mutable_columns();
  for (const uint64_t value : layout.columns()) *column++ = move(value);
  result->set_offset(move(layout.offset()));
  return result;
}

uint64_t contiguous_in_place(const Layout &offsets) {
  if (offsets.outs().empty()) return 1;
  const RegisterRun run = register_run(offsets, offsets.outs()[0], kMaxBits - 1);
  uint32_t bits = 0;
  while (bits < run.bits && run.registers[bits] == bits) ++bits;
  return uint64_t{1} << bits;
}

uint64_t contiguous_in_any_order(const Layout &offsets) {
  if (offsets.outs().empty()) return 1;
  return uint64_t{1} << register_run(offsets, offsets.outs()[0], kMaxBits - 1).bits;
}

uint64_t vector_elements(const Layout &offsets, uint32_t bits_per_element, uint32_t most_bits, uint64_t alignment) {
  uint64_t elements = contiguous_in_any_order(offsets);
  const uint64_t aligned = alignment == 0 ? 1 : uint64_t{1} << lowest_bit(alignment);
  if (alignment != UINT64_MAX) elements = std::min(elements, aligned);
  const uint64_t fitting = bits_per_element == 0 ? 1 : std::bit_floor(most_bits / bits_per_element);
  return std::max<uint64_t>(1, std::min(elements, fitting));
}

bool owners_of(Arena &arena, const Layout &layout, std::span<const uint64_t> index, std::vector<Owner> &out) {
  out.clear();
  const auto outs = layout.outs();
  if (index.size() != outs.size()) {
    arena.fail(Fault::kInvalid,
               "owners: " + std::to_string(index.size()) + " values for " + std::to_string(outs.size()) + " out dims");
    return false;
  }
  uint64_t wanted = layout.offset();
  for (size_t i = 0; i < outs.size(); ++i) {
    if ((index[i] & ~low_mask(outs[i].bits)) != 0) {
      arena.fail(Fault::kInvalid, "owners: " + std::to_string(index[i]) + " lies past " +
                                      std::string(dim_text(outs[i].name)) + ", which has " +
                                      std::to_string(outs[i].bits) + " bits");
      return false;
    }
    wanted ^= outs[i].at(index[i]);
  }
  Elimination elimination;
  for (uint32_t bit = 0; bit < layout.in_bits(); ++bit) elimination.add(layout.columns()[bit], bit);
  uint64_t first = 0;
  if (!elimination.solve(wanted, first)) {
    arena.fail(Fault::kNoSolution, "owners: nobody holds " + describe_point(outs, wanted ^ layout.offset()));
    return false;
  }
  uint64_t kernel[kMaxBits];
  const uint32_t dimensions = kernel_basis(layout.columns(), kernel);
  if (dimensions > kMostOwnersLog2) {
    arena.fail(Fault::kUnsupported,
               "owners: 2^" + std::to_string(dimensions) + " hold the element; at most 2^20 are listed");
    return false;
  }
  const auto value = [&layout](DimName name, uint64_t flat) {
    const Dim *const in = layout.find_in(name);
    return in == nullptr ? 0 : in->of(flat);
  };
  for (uint64_t i = 0; i < uint64_t{1} << dimensions; ++i) {
    uint64_t flat = first;
    for (uint64_t rest = i; rest != 0; rest &= rest - 1) flat ^= kernel[lowest_bit(rest)];
    out.push_back(
        {value(dim::kBlock, flat), value(dim::kWarp, flat), value(dim::kLane, flat), value(dim::kRegister, flat)});
  }
  std::sort(out.begin(), out.end());
  return true;
}

}  // namespace sonde::layout
