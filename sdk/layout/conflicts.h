// Bank conflicts of shared memory: by formula for linear addresses, by simulation for any.
//
// Model: memory has `banks` banks of 32 bits; word w lies in bank w mod banks. A warp's instruction is served in phases
// of as many lanes as fill the banks once; within a phase, each bank serves one word in each wavefront, to however many
// lanes ask for it. A phase therefore takes as many wavefronts as the busiest bank has distinct words.
//
// Formula: the words of a phase are the sums of the lanes' and the vector's words, a subspace U over F2 (or a shift of
// one). All banks that it meets have equally many of its words, |U| / |U mod banks|, so a phase takes
// 2^(rank(U) - rank(U mod banks)) wavefronts. Exact for every linear map, with broadcasts (zero columns), vectors below
// 32 bits, any numbers of lanes and banks, affine offsets and any base address that is a multiple of the access. It does
// not apply to addresses that are not linear (padding): those are simulated.
//
// Example: 32 lanes, 32 banks, 32 bits, lane i -> offset 2 i: U has 32 words, all even, in 16 banks: 2 wavefronts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "layout/instruction_tiles.h"
#include "layout/layout.h"
#include "layout/padding.h"

namespace sonde::layout {

struct SharedMemory {
  uint32_t banks = 32;  // a power of two, 1 to 64
  // The bits of the lane index that tell apart the lanes of one phase; 0: the lowest ones, as many as fill the banks.
  uint64_t phase_lanes = 0;
};

struct BankAccess {
  uint64_t access_bits = 0;   // that each lane moves by one instruction
  uint64_t instructions = 0;  // of one warp (each thread executes each)
  uint64_t phases = 0;        // of one instruction: the fewest wavefronts that it can take
  uint64_t wavefronts = 0;    // of one instruction of one warp; of the worst one where they differ
  uint64_t total = 0;         // wavefronts of all instructions of one warp; of the worst warp where they differ
  // Wavefronts past one, of the worst phase.
  uint64_t conflicts_per_phase = 0;

  uint64_t conflicts() const { return total - instructions * phases; }  // wavefronts that a better layout would save
};

// `map` goes from (register, lane, ...) to memory; `offset` names the out dim that counts elements, further out dims
// (blocks) are memories of their own. The access is the widest that the map's registers allow, at most
// `most_vector_bits`. kInvalid for missing dims and bad sizes.
bool bank_access(Arena &arena, const Layout &map, DimName offset, uint32_t bits_per_element, const SharedMemory &memory,
                 BankAccess &out, uint32_t most_vector_bits = 128);

// The same of an access that is known already, of whatever instruction.
bool bank_access_of(Arena &arena, const SharedAccess &access, DimName offset, uint32_t bits_per_element,
                    const SharedMemory &memory, BankAccess &out);

// Every request of every warp, one word after the other. `paddings` apply to the offset; the access is then the widest
// that stays contiguous. At most 2^24 elements (kUnsupported).
bool simulate_bank_access(Arena &arena, const Layout &map, DimName offset, uint32_t bits_per_element,
                          const SharedMemory &memory, std::span<const Padding> paddings, BankAccess &out,
                          uint32_t most_vector_bits = 128);

// Wavefronts of one request: each lane moves `access_bits` from its address, counted in bits.
uint64_t simulate_wavefronts(std::span<const uint64_t> bit_addresses, uint64_t access_bits, const SharedMemory &memory);

// Lemma 9.4 of the paper: `memory` maps (vector, bank, segment, ...) to the tensor that `registers` maps to. With
// c = |span(vector, segment) ∩ span(lanes of a phase)| and n words in a vector, an instruction takes n c wavefronts.
// Claimed for n >= 1 only (nullopt below 32 bits).
std::optional<uint64_t> wavefronts_by_span(const Layout &memory, const Layout &registers, uint32_t bits_per_element,
                                           uint32_t banks = 32);

}  // namespace sonde::layout
