#include "layout/instruction_tiles.h"

#include <algorithm>

namespace sonde::layout {
namespace {

constexpr uint32_t kLaneBits = 5;  // matrix instructions know warps of 32 only

// The tile of a matrix instruction: which bit of its registers and lanes is what of the matrix.
struct MatrixTile {
  // In offset bits from the lowest on: lanes or, from 16 up, tile registers.
  uint8_t columns[4];
  uint32_t column_count = 0;
  // Of the row's index.
  uint8_t rows[4];
  uint32_t row_count = 0;
  uint32_t registers = 0;  // of the tile
  uint32_t most_matrices = 4;
};

constexpr uint8_t kRegisterBit = 16;

bool find_tile(SharedInstruction instruction, bool is_store, uint32_t bits, bool has_byte_transpose, MatrixTile &tile) {
  if (instruction == SharedInstruction::kMatrix) {
    if (bits > 32 || bits < 1) return false;
    // Up to 32 registers of one bit; as columns only their number matters, see matrix_columns.
    tile.registers = 5 - lowest_bit(bits);
    tile.row_count = 3;
    tile.rows[0] = 2;
    tile.rows[1] = 3;
    tile.rows[2] = 4;
    return true;
  }
  const bool is_byte = bits == 8 && has_byte_transpose;
  if (bits != 16 && !is_byte) return false;
  tile.columns[0] = 2;
  tile.columns[1] = 3;
  tile.columns[2] = 4;
  tile.column_count = 3;
  // Two elements of 16 bits in a register lie in neighbouring rows; of 8 bits four rows on loading, two on storing.
  const uint32_t row_registers = is_byte && !is_store ? 2 : 1;
  for (uint32_t i = 0; i < row_registers; ++i) tile.rows[tile.row_count++] = static_cast<uint8_t>(kRegisterBit + i);
  tile.rows[tile.row_count++] = 0;
  tile.rows[tile.row_count++] = 1;
  tile.registers = row_registers;
  if (is_byte) {
    tile.columns[tile.column_count++] = static_cast<uint8_t>(kRegisterBit + row_registers);
    ++tile.registers;
    if (!is_store) tile.most_matrices = 2;
  }
  return true;
}

bool refuse(Arena &arena, const char *why) {
  arena.fail(Fault::kNoSolution, std::string("the instruction's tile does not divide the map: ") + why);
  return false;
}

void order_registers(const uint8_t *first, uint32_t moved, uint32_t bits, SharedAccess &out) {
  uint64_t taken = 0;
  for (uint32_t i = 0; i < moved; ++i) {
    out.register_order[i] = first[i];
    taken |= uint64_t{1} << first[i];
  }
  uint32_t next = moved;
  for (uint32_t bit = 0; bit < bits; ++bit) {
    if ((taken >> bit & 1) == 0) out.register_order[next++] = static_cast<uint8_t>(bit);
  }
  out.register_bits = static_cast<uint8_t>(bits);
  out.moved = static_cast<uint8_t>(moved);
  out.instructions = power_of_two(bits - moved);
}

// The address layout with the map's columns for all bits but the lane's, which are given.
bool make_address(Arena &arena, const Layout &map, const Dim &registers, const Dim *lane, const uint64_t *lane_columns,
                  SharedAccess &out) {
  const auto ins = map.ins();
  const auto outs = map.outs();
  Layout *const address = Layout::make(arena, static_cast<uint32_t>(ins.size()), static_cast<uint32_t>(outs.size()),
                                       map.in_bits() - out.moved);
  if (address == nullptr) return false;
  uint64_t *column = address->mutable_columns();
  for (size_t i = 0; i < ins.size(); ++i) {
    Dim &in = address->mutable_ins()[i];
    in = ins[i];
    const auto own = map.columns_of(ins[i]);
    if (&ins[i] == &registers) {
      in.bits = static_cast<uint8_t>(out.register_bits - out.moved);
      for (uint32_t bit = out.moved; bit < out.register_bits; ++bit) *column++ = own[out.register_order[bit]];
    } else if (&ins[i] == lane && lane_columns != nullptr) {
      column = std::copy_n(lane_columns, in.bits, column);
    } else {
      column = std::copy(own.begin(), own.end(), column);
    }
  }
  std::copy(outs.begin(), outs.end(), address->mutable_outs());
  address->set_offset(map.offset());
  if (!address->place_dims(arena)) return false;
  out.address = address;
  return true;
}

bool divide_by_vector(Arena &arena, const Layout &map, const Dim &registers, const Dim &offset, uint32_t bits,
                      const InstructionLimits &limits, SharedAccess &out) {
  const uint32_t bits_log2 = lowest_bit(bits);
  const uint32_t most_log2 = log2_floor(limits.most_vector_bits);
  const RegisterRun run = register_run(map, offset, most_log2 > bits_log2 ? most_log2 - bits_log2 : 0);
  uint32_t moved = 0;
  while (moved < run.bits && (limits.separate_registers >> run.registers[moved] & 1) == 0) ++moved;
  order_registers(run.registers, moved, registers.bits, out);
  out.vector_bits = static_cast<uint16_t>(bits << moved);
  return make_address(arena, map, registers, nullptr, nullptr, out);
}

bool divide_by_matrix(Arena &arena, const Layout &map, const Dim &registers, const Dim *lane, const Dim &offset,
                      uint32_t bits, bool is_store, const InstructionLimits &limits, SharedAccess &out) {
  MatrixTile tile;
  if (!find_tile(out.instruction, is_store, bits, limits.has_byte_transpose, tile)) {
    return refuse(arena, "it does not move elements of this size");
  }
  if (lane == nullptr || lane->bits != kLaneBits) return refuse(arena, "a warp has not 32 lanes");
  const auto of_registers = map.columns_of(registers);
  const auto of_lanes = map.columns_of(*lane);
  const uint32_t row_log2 = 7 - lowest_bit(bits);  // elements of 128 bits
  if (offset.bits < row_log2) return refuse(arena, "the memory is smaller than a row of 128 bits");
  const uint64_t row_mask = offset.at(low_mask(row_log2));

  // Who moves each offset bit of a row; nobody else may.
  uint8_t chosen[kMaxBits];  // registers, as the instruction numbers them
  uint32_t chosen_count = 0;
  uint64_t taken = limits.separate_registers;
  uint64_t lanes_of_row = 0;
  const auto take_register = [&](uint64_t column) {
    for (uint32_t bit = 0; bit < registers.bits; ++bit) {
      if ((taken >> bit & 1) != 0 || of_registers[bit] != column) continue;
      taken |= uint64_t{1} << bit;
      return static_cast<int32_t>(bit);
    }
    return int32_t{-1};
  };
  int32_t column_register = -1;
  if (out.instruction == SharedInstruction::kMatrix) {
    for (uint32_t i = 0; i < tile.registers; ++i) {
      const int32_t found = take_register(offset.at(uint64_t{1} << i));
      if (found < 0) return refuse(arena, "32 bits of a row are not in one register");
      chosen[chosen_count++] = static_cast<uint8_t>(found);
    }
    for (uint32_t i = 0; i < 2; ++i) {
      if (of_lanes[i] != offset.at(uint64_t{1} << (tile.registers + i))) {
        return refuse(arena, "lanes 1 and 2 do not run along a row");
      }
      lanes_of_row |= uint64_t{1} << i;
    }
  } else {
    for (uint32_t i = 0; i < tile.column_count; ++i) {
      const uint64_t wanted = offset.at(uint64_t{1} << i);
      if (tile.columns[i] < kRegisterBit) {
        if (of_lanes[tile.columns[i]] != wanted) return refuse(arena, "lanes 4 to 16 do not run along a row");
        lanes_of_row |= uint64_t{1} << tile.columns[i];
      } else {
        column_register = take_register(wanted);
        if (column_register < 0) return refuse(arena, "no register runs along a row");
      }
    }
  }
  for (uint32_t bit = 0; bit < map.in_bits(); ++bit) {
    const bool is_register = bit >= registers.shift && bit < static_cast<uint32_t>(registers.shift) + registers.bits;
    const bool is_lane = bit >= lane->shift && bit < static_cast<uint32_t>(lane->shift) + lane->bits;
    if (is_lane && (lanes_of_row >> (bit - lane->shift) & 1) != 0) continue;
    if (is_register && (map.columns()[bit] & row_mask) == map.columns()[bit] && map.columns()[bit] != 0) {
      const uint32_t own = bit - registers.shift;
      if (std::find(chosen, chosen + chosen_count, own) != chosen + chosen_count) continue;
      if (column_register == static_cast<int32_t>(own)) continue;
    }
    if ((map.columns()[bit] & row_mask) != 0) return refuse(arena, "another bit moves within a row");
  }
  if ((map.offset() & row_mask) != 0) return refuse(arena, "the map's offset lies within a row");

  const auto take_any = [&]() {
    for (uint32_t bit = 0; bit < registers.bits; ++bit) {
      if ((taken >> bit & 1) != 0) continue;
      taken |= uint64_t{1} << bit;
      return static_cast<int32_t>(bit);
    }
    return int32_t{-1};
  };
  // A lane points to the row that its number is.
  uint64_t lane_columns[kLaneBits] = {};
  uint32_t pointing = 0;
  for (uint32_t i = 0; i < tile.row_count; ++i) {
    if (tile.rows[i] < kRegisterBit) {
      lane_columns[pointing++] = of_lanes[tile.rows[i]];
      continue;
    }
    const int32_t found = take_any();
    if (found < 0) return refuse(arena, "too few registers for a matrix");
    chosen[chosen_count++] = static_cast<uint8_t>(found);
    lane_columns[pointing++] = of_registers[static_cast<size_t>(found)];
  }
  if (column_register >= 0) chosen[chosen_count++] = static_cast<uint8_t>(column_register);
  out.row_bits = static_cast<uint8_t>(tile.row_count);
  out.matrices = 1;
  while (out.matrices < tile.most_matrices && pointing < kLaneBits) {
    const int32_t found = take_any();
    if (found < 0) break;
    chosen[chosen_count++] = static_cast<uint8_t>(found);
    lane_columns[pointing++] = of_registers[static_cast<size_t>(found)];
    out.matrices = static_cast<uint8_t>(out.matrices * 2);
  }
  order_registers(chosen, chosen_count, registers.bits, out);
  out.vector_bits = static_cast<uint16_t>(bits << chosen_count);
  return make_address(arena, map, registers, lane, lane_columns, out);
}

}  // namespace

const char *instruction_text(SharedInstruction instruction, bool is_store) {
  switch (instruction) {
    case SharedInstruction::kVector:
      return is_store ? "st.shared" : "ld.shared";
    case SharedInstruction::kMatrix:
      return is_store ? "stmatrix" : "ldmatrix";
    case SharedInstruction::kTransposedMatrix:
      return is_store ? "stmatrix.trans" : "ldmatrix.trans";
  }
  return "?";
}

RegisterRun register_run(const Layout &map, const Dim &offset, uint32_t most) {
  RegisterRun run;
  const Dim *const registers = map.find_in(dim::kRegister);
  if (registers == nullptr) return run;
  most = std::min<uint32_t>(most, offset.bits);
  // A bit of the offset that more than one column has is nobody's alone.
  uint64_t once = 0;
  uint64_t more = map.offset();
  for (const uint64_t column : map.columns()) {
    more |= once & column;
    once |= column;
  }
  const auto own = map.columns_of(*registers);
  while (run.bits < most) {
    const uint64_t unit = offset.at(uint64_t{1} << run.bits);
    if ((more & unit) != 0) break;
    const auto found = std::find(own.begin(), own.end(), unit);
    if (found == own.end()) break;
    run.registers[run.bits++] = static_cast<uint8_t>(found - own.begin());
  }
  return run;
}

bool divide_by_instruction(Arena &arena, const Layout &map, DimName offset, uint32_t bits_per_element,
                           SharedInstruction instruction, bool is_store, const InstructionLimits &limits,
                           SharedAccess &out) {
  const Dim *const registers = map.find_in(dim::kRegister);
  const Dim *const place = map.find_out(offset);
  if (registers == nullptr || place == nullptr || !is_power_of_two(bits_per_element) || bits_per_element > 128) {
    arena.fail(Fault::kInvalid, "an access needs an in dim register, an out dim " + std::string(dim_text(offset)) +
                                    " and elements of 1 to 128 bits, a power of two");
    return false;
  }
  out = {};
  out.instruction = instruction;
  if (instruction == SharedInstruction::kVector) {
    return divide_by_vector(arena, map, *registers, *place, bits_per_element, limits, out);
  }
  return divide_by_matrix(arena, map, *registers, map.find_in(dim::kLane), *place, bits_per_element, is_store, limits,
                          out);
}

MatrixPlace matrix_place(const SharedAccess &access, uint32_t bits_per_element, bool is_store, uint32_t lane,
                         uint32_t index) {
  MatrixTile tile;
  find_tile(access.instruction, is_store, bits_per_element, true, tile);
  const auto bit_of = [&](uint8_t source) {
    return source < kRegisterBit ? lane >> source & 1u : index >> (source - kRegisterBit) & 1u;
  };
  MatrixPlace place{0, 0};
  if (access.instruction == SharedInstruction::kMatrix) {
    place.column = (index & static_cast<uint32_t>(low_mask(tile.registers))) | (lane & 3u) << tile.registers;
  } else {
    for (uint32_t i = 0; i < tile.column_count; ++i) place.column |= bit_of(tile.columns[i]) << i;
  }
  for (uint32_t i = 0; i < tile.row_count; ++i) place.pointing_lane |= bit_of(tile.rows[i]) << i;
  place.pointing_lane |= index >> tile.registers << tile.row_count;
  return place;
}

}  // namespace sonde::layout
