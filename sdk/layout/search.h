// "Find a layout such that": layouts from what they must do.
//
// Searches are deterministic, and a result is checked against every constraint before it is returned. Where there is
// none, the fault is kNoSolution and the text names the constraint that cannot be met.
#pragma once

#include "layout/layout.h"

namespace sonde::layout {

// A basis that is given: bit `bit` of in dim `in` (register, lane or warp) has these values, one for each tensor dim.
struct FixedBasis {
  DimName in;
  uint32_t bit;
  std::vector<uint64_t> values;
};

// What a register layout must do. All sizes are powers of two.
struct RegisterRequest {
  std::vector<uint64_t> shape;  // of the tensor
  uint32_t element_bits = 32;   // 1 .. 128
  uint32_t lanes = 32;
  uint32_t warps = 4;
  uint64_t registers = 0;       // values that a thread holds, duplicates included; 0: as few as hold the tensor
  std::vector<uint32_t> order;  // the tensor's dims as they lie in memory, fastest first; empty: the last one first

  // Bits that the first registers hold of consecutive elements in that order; 0: one element.
  uint32_t vector_bits = 0;
  // Consecutive elements in that order that the first lanes hold together, their vectors included (coalescing); 0: any.
  uint64_t lane_run = 0;
  // By dim: elements next to each other along it that a thread holds. Empty or 0: any.
  std::vector<uint64_t> contiguous;
  // By dim: warps along it. Fewer than there are in all: the others hold the same again. Empty: any.
  std::vector<uint64_t> warps_per_dim;
  std::vector<FixedBasis> fixed;

  // Maps memory offsets, in elements, to the tensor (dim0, dim1, ... in any order), one to one: a warp's vector
  // access to it is to have no bank conflicts.
  const Layout *memory = nullptr;
  uint32_t banks = 32;  // of 32 bits
};

// (register, lane, warp) -> (dim0, dim1, ...). Tensor bits that nothing asks for go, in memory order, first to the
// lanes, then to the warps, then to the registers; lanes and warps beyond the tensor hold duplicates.
//
// "None" is among layouts whose columns, besides the fixed ones, are single bits of the tensor, each used once, or 0.
// To be free of bank conflicts, all sets of tensor bits for the lanes are tried, those early in memory first, then
// smaller sets, where lanes hold duplicates; up to 2^17 (kUnsupported beyond).
const Layout *find_register_layout(Arena &arena, const RegisterRequest &request);

// A memory layout, offset -> the tensor, that the register layout `a` writes and `b` reads (nullptr: none) without bank
// conflicts, `vector_bits` with one access; 0: as many as both allow, up to 128. In dims named register and lane are
// looked at; the layouts have the same out dims in order and size.
//
// The offset's lowest bits are the vector: registers that both have. Then come the banks, then the segments, which are
// vectors outside of what the lanes of either layout reach together with the vector: where lanes differ, they differ in
// the bank. Such vectors always exist: a phase has no more lanes than there are banks.
// kNoSolution when the two share too few registers for the vector.
const Layout *find_memory_layout(Arena &arena, const Layout &a, const Layout *b, uint32_t element_bits,
                                 uint32_t vector_bits, uint32_t banks = 32);

// How a warp's access to memory goes: `wavefronts` for each phase of as many lanes as the banks serve at once; 1 is
// free of conflicts. `registers` are the bits of the register index that one access moves; they must be mapped to the
// lowest offset bits, in any order (kNoSolution).
struct WarpAccess {
  uint64_t registers = 0;  // mask
  uint64_t wavefronts = 0;
};
bool warp_access(Arena &arena, const Layout &registers, const Layout &memory, uint32_t element_bits,
                 uint32_t vector_bits, uint32_t banks, WarpAccess &out);

}  // namespace sonde::layout
