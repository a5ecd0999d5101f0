// How the data of one register layout gets into another: without moving, within a thread, within a warp, through the
// shared memory of a block, or of a cluster of blocks.
//
// Both layouts map (register, lane, warp, block) to one tensor. The conversion C maps who wants an element to who has it,
// destination(x) = source(C(x)). Dims on which it is the identity, looked at from block to register, need no movement;
// the first on which it is not decides (Linear Layouts, section 5.4):
//   none        nothing to do
//   register    a permutation (or copies) of registers: out[i] = in[C(i)]
//   lane        shuffles, where few transpositions suffice; otherwise shared memory
//   warp        shared memory
//   block       shared memory of several blocks
//
// Example: registers and lanes exchanged, source register 1 -> 1, lane 1 -> 2; destination register 1 -> 2, lane 1 -> 1.
// C exchanges the two bits: one transposition, so shuffles.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout/analysis.h"
#include "layout/conflicts.h"
#include "layout/instruction_tiles.h"
#include "layout/layout.h"
#include "layout/shuffle.h"
#include "layout/swizzle.h"

namespace sonde::layout {

enum class PlanKind : uint8_t { kNothing, kRegisters, kShuffles, kSharedMemory, kDistributedSharedMemory };

// "no-op", "register permutation", "warp shuffles", "shared memory", "distributed shared memory". Lives for ever.
const char *plan_text(PlanKind kind);

struct PlanOptions {
  uint32_t bits_per_element = 32;  // a power of two, 1 to 128
  SharedMemory memory;
  uint32_t most_vector_bits = 128;  // of one access to shared memory by one lane
  bool has_store_matrix = false;    // stmatrix
  bool has_load_matrix = false;     // ldmatrix
  // The most transpositions of a register bit with a lane bit that shuffles are used for.
  uint32_t most_transpositions = 1;
  // Through shared memory even where less would do.
  bool only_memory = false;
};

// One side's way through shared memory.
struct SharedSide {
  // (register, lane, warp, block) -> (offset in elements, block among the blocks that differ, repetition).
  const Layout *map = nullptr;
  SharedAccess access;
  BankAccess banks;
};

struct SharedPlan {
  Swizzle swizzle;
  SharedSide store;
  SharedSide load;
  uint64_t bytes = 0;               // of shared memory in each block; each repetition uses it again
  uint64_t repetitions = 1;         // store, barrier, load, barrier
  uint64_t bytes_in_all = 0;        // that pass through a block's memory: bytes times repetitions
  uint64_t blocks_that_differ = 0;  // bits of the block index by which memories differ
  bool is_fallback = false;         // the bases depend on each other; memory is the tensor as it is, without a swizzle
};

struct Plan {
  PlanKind kind = PlanKind::kNothing;
  uint32_t bits_per_element = 0;
  // The layouts without broadcast registers, ins (register, lane, warp, block), outs as the source's; and which bits of
  // the given layouts' register index stayed.
  const Layout *source = nullptr;
  const Layout *destination = nullptr;
  uint64_t source_registers = 0;
  uint64_t destination_registers = 0;
  // (register, lane, warp, block) of the destination -> of the source; and what is left of it without the dims that stay.
  const Layout *conversion = nullptr;
  const Layout *reduced = nullptr;
  // Bits of the registers, lanes, ... on both sides, as given.
  Broadcasts source_broadcasts;
  Broadcasts destination_broadcasts;
  // Where data stays within a warp, whether shuffles are chosen or not; nullptr where it does not, or where the layouts
  // are no permutations.
  const ShufflePlan *shuffles = nullptr;
  // nullptr unless the kind is one of the two through memory.
  const SharedPlan *shared = nullptr;
};

// The plan lies in the arena. nullptr: kInvalid (in dims other than the four, out dims that differ, element size),
// kNoSolution (the source does not hold all that the destination wants).
// tests/bench/layout.cpp measures it.
const Plan *plan_conversion(Arena &arena, const Layout &source, const Layout &destination, const PlanOptions &options);

// Loading or storing a register layout from or to a given memory.
struct AccessOptions {
  uint32_t bits_per_element = 32;
  SharedMemory memory;
  uint32_t most_vector_bits = 128;
  bool has_matrix = false;            // ldmatrix for loads, stmatrix for stores
  bool has_byte_transpose = false;    // .trans of 8 bits
  std::span<const Padding> paddings;  // of the memory, on top of its linear layout; then no matrices
};

// `memory` maps (offset[, block]) to the tensor that `registers` maps (register, lane, warp, block) to. The map is
// memory's inverse after registers, in a block's own memory where memory has no bit for its block; broadcast registers
// are dropped. Of the instructions whose tiles divide it, the one with the fewest wavefronts, then the fewest
// instructions, then the plainest. With paddings, banks are simulated. False:
// kInvalid, kNoSolution (memory does not hold what the registers want).
bool plan_shared_access(Arena &arena, const Layout &registers, const Layout &memory, bool is_store,
                        const AccessOptions &options, SharedSide &out);

// What execution took, by the plan's units; for the whole grid where nothing else is said.
struct ExecutionCounts {
  ShuffleCounts shuffles;  // of one thread
  uint64_t stores = 0;     // instructions of one thread
  uint64_t loads = 0;
  uint64_t repetitions = 0;
};

// Carries the plan out on data: `source` has one value for each (register, lane, warp, block) of the given source layout,
// register lowest and broadcast registers included, and so has the result of the destination layout. Registers, shuffles, the instructions' addresses and the memories are
// simulated one by one. kInvalid when the sizes do not fit, kUnsupported above 2^24 values, kNoSolution when the plan is
// wrong: a read of what was not written, or two different values written to one place. `by_rounds` takes the paper's
// rounds for shuffles, where the plan has them.
bool execute(Arena &arena, const Plan &plan, std::span<const uint64_t> source, std::vector<uint64_t> &destination,
             ExecutionCounts *counts = nullptr, bool by_rounds = false);

// The same by the definition: whoever holds an element of the destination gets it from whoever holds it in the source.
bool convert_directly(Arena &arena, const Layout &source, const Layout &destination, std::span<const uint64_t> data,
                      std::vector<uint64_t> &out);

}  // namespace sonde::layout
