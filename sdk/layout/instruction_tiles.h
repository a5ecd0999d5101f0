// Instructions of shared memory as tiles, and which of them can move what a thread holds.
//
// A map says where each (register, lane, warp, block) lies in memory. An instruction moves its tile of that in one go
// when the map has the tile as a left factor, once its registers are reordered (Linear Layouts, theorem 5.1):
//   ld/st.shared of 2^n elements    registers = identity on the lowest n bits of the offset
//   ldmatrix, stmatrix              registers of 32 bits and lanes 0, 1 = identity: rows of 128 bits; lanes 2 to 4 and
//                                   further registers choose rows
//   the same .trans                 lanes 2 to 4 = identity: rows run over lanes; a register and lanes 0, 1 choose rows
// Every other bit must leave the offset bits of the tile alone.
//
// Example: elements of 16 bits, register 1 -> offset 1, lanes 1, 2 -> 2, 4, lane 4 -> 8: two elements a register, four
// lanes a row, so a row of 8 elements, and lane 4 begins the next row: ldmatrix can load it.
#pragma once

#include <cstdint>

#include "layout/layout.h"

namespace sonde::layout {

enum class SharedInstruction : uint8_t { kVector, kMatrix, kTransposedMatrix };

// "ld.shared", "ldmatrix", "ldmatrix.trans" or "st.shared", "stmatrix", "stmatrix.trans". Lives for ever.
const char *instruction_text(SharedInstruction instruction, bool is_store);

// How a side goes through shared memory by one kind of instruction.
struct SharedAccess {
  SharedInstruction instruction = SharedInstruction::kVector;
  // 8x8 matrices of 16 bits (16x16 or 16x8 of 8 bits) that one instruction moves: 1, 2 or 4. 0 for kVector.
  uint8_t matrices = 0;
  // log2 of the rows of a matrix; each is 128 bits that one lane points to. 0 for kVector.
  uint8_t row_bits = 0;
  // Bits of a thread's registers that one instruction moves.
  uint16_t vector_bits = 0;
  // Register bits of the map: `moved` of them number the elements that one instruction moves, the rest the
  // instructions. register_order[i] is the map's register bit that comes i-th.
  uint8_t register_bits = 0;
  uint8_t moved = 0;
  uint8_t register_order[kMaxBits] = {};
  // Instructions that each thread executes, over all repetitions.
  uint64_t instructions = 0;
  // (register: the instruction's number; lane; warp; block) -> the map's outs: what the lane points to. For kVector its
  // own first element; for matrices the row that the lane stands for: row (lane mod 2^row_bits) of matrix
  // (lane / 2^row_bits). In the caller's arena.
  const Layout *address = nullptr;
};

struct InstructionLimits {
  uint32_t most_vector_bits = 128;
  // Transposed matrices of 8 bits.
  bool has_byte_transpose = false;
  // Register bits that may not be moved by one instruction, because they pass through memory one after the other.
  uint64_t separate_registers = 0;
};

// Divides `map` by the instruction's tile. The out dim `offset` counts elements; whatever other outs there are must not
// be touched by the tile. kNoSolution when the tile does not divide the map, kInvalid when dims are missing.
// kVector always divides, by one element if by no more.
bool divide_by_instruction(Arena &arena, const Layout &map, DimName offset, uint32_t bits_per_element,
                           SharedInstruction instruction, bool is_store, const InstructionLimits &limits,
                           SharedAccess &out);

// Where an element of a matrix instruction lies: `index` numbers the elements that one lane moves by one instruction.
// The lane that points to its row, and its place within the row in elements.
struct MatrixPlace {
  uint32_t pointing_lane;
  uint32_t column;
};
MatrixPlace matrix_place(const SharedAccess &access, uint32_t bits_per_element, bool is_store, uint32_t lane,
                         uint32_t index);

// The lowest bits of the out dim that are each moved by one register bit alone, at most `most`.
struct RegisterRun {
  uint32_t bits = 0;
  uint8_t registers[kMaxBits];  // the register bit that moves bit i
};
RegisterRun register_run(const Layout &map, const Dim &offset, uint32_t most);

}  // namespace sonde::layout
