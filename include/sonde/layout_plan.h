// Service sonde.layout_plan/1: how the data of one register layout gets into another, and what accesses cost.
//
// Register layouts map (register, lane, warp, block) to one tensor. Plans follow section 5.4 of Linear Layouts and
// Triton's rules for instructions. Counts say of what they are. Layouts of up to 62 bits a side; errors and [arena] as in
// layout.h.
#ifndef SONDE_LAYOUT_PLAN_H
#define SONDE_LAYOUT_PLAN_H

#include <sonde/layout.h>

SONDE_BEGIN_DECLS

#define SONDE_LAYOUT_PLAN_SERVICE "sonde.layout_plan/1"

#define SONDE_PLAN_NOTHING 0u                    // the data is where it is wanted
#define SONDE_PLAN_REGISTERS 1u                  // registers are renamed or copied
#define SONDE_PLAN_SHUFFLES 2u                   // lanes of a warp exchange
#define SONDE_PLAN_SHARED_MEMORY 3u              // through the memory of a block
#define SONDE_PLAN_DISTRIBUTED_SHARED_MEMORY 4u  // through the memories of a cluster's blocks

#define SONDE_INSTRUCTION_VECTOR 0u             // ld.shared, st.shared
#define SONDE_INSTRUCTION_MATRIX 1u             // ldmatrix, stmatrix
#define SONDE_INSTRUCTION_MATRIX_TRANSPOSED 2u  // the same .trans

#define SONDE_PLAN_STORE_MATRIX 1u  // the device has stmatrix
#define SONDE_PLAN_LOAD_MATRIX 2u   // and ldmatrix
#define SONDE_PLAN_ONLY_MEMORY 4u   // through shared memory even where less would do

typedef struct sonde_plan_options_t {
  uint32_t struct_size;
  uint32_t bits_per_element;     // a power of two, 1 to 128
  uint32_t banks;                // of 32 bits, a power of two up to 64; 0: 32
  uint32_t most_vector_bits;     // of one lane's access; 0: 128
  uint32_t most_transpositions;  // of a register bit with a lane bit, for shuffles
  uint32_t flags;                // SONDE_PLAN_STORE_MATRIX ...
} sonde_plan_options_t;

// One side's accesses to shared memory.
typedef struct sonde_plan_access_t {
  uint32_t instruction;   // SONDE_INSTRUCTION_*
  uint32_t vector_bits;   // that a lane moves by one instruction
  uint64_t instructions;  // of one thread
  uint64_t wavefronts;    // of all instructions of one warp
  uint64_t conflicts;     // wavefronts of those that a layout without conflicts would save
} sonde_plan_access_t;

typedef struct sonde_plan_t {
  uint32_t struct_size;
  uint32_t kind;                     // SONDE_PLAN_*
  const char *kind_text;             // "warp shuffles", ...; lives for ever
  uint64_t source_copies;            // how many (block, warp, lane, register) hold each element of the source
  uint64_t destination_copies;       // of the destination
  const sonde_layout_t *conversion;  // destination's (register, lane, warp, block) -> source's; in the arena
  // Within a warp: for each thread, in instructions on 32 bits; 0 where data crosses warps.
  uint64_t shuffles;
  uint64_t selects;
  // Through shared memory.
  uint64_t shared_bytes;         // in each block
  uint64_t repetitions;          // store, barrier, load, barrier; the memory is used again each time
  const sonde_layout_t *memory;  // (vector, bank, segment, block, reps) -> tensor; in the arena; NULL without memory
  sonde_plan_access_t store;
  sonde_plan_access_t load;
} sonde_plan_t;

typedef struct sonde_swizzle_t {
  uint32_t struct_size;
  uint32_t reserved;
  const sonde_layout_t *memory;  // (vector, bank, segment, block, reps) -> tensor; in the arena
  uint64_t read_conflicts;       // wavefronts past the first, of each wavefront's worth of lanes
  uint64_t write_conflicts;
} sonde_swizzle_t;

// Accesses of one warp to shared memory.
typedef struct sonde_bank_access_t {
  uint32_t struct_size;
  uint32_t access_bits;   // that a lane moves by one instruction
  uint64_t instructions;  // of one thread
  uint64_t phases;        // of one instruction: the fewest wavefronts that it can take
  uint64_t wavefronts;    // of one instruction of one warp
  uint64_t total;         // wavefronts of all instructions
  uint64_t conflicts;     // total - instructions * phases
} sonde_bank_access_t;

// Accesses of one warp to global memory.
typedef struct sonde_coalescing_t {
  uint32_t struct_size;
  uint32_t access_bits;     // that a lane moves by one instruction
  uint64_t instructions;    // of one thread
  uint64_t sectors;         // of 32 bytes, of one instruction of one warp
  uint64_t lines;           // of 128 bytes
  uint64_t fewest_sectors;  // that the bytes asked for could lie in
  uint64_t bytes;           // distinct ones asked for by one instruction of one warp
} sonde_coalescing_t;

typedef struct sonde_owner_t {
  uint64_t block;
  uint64_t warp;
  uint64_t lane;
  uint64_t reg;
} sonde_owner_t;

// An operand of a product: its register layout, and the out dim that is summed over.
typedef struct sonde_dot_operand_t {
  const sonde_layout_t *layout;
  sonde_dim_t k;
  uint32_t bits_per_element;
} sonde_dot_operand_t;

typedef struct sonde_dot_shuffle_t {
  uint32_t struct_size;
  uint32_t is_worthwhile;             // 1: the narrow operand's accesses become wider
  const sonde_layout_t *permutation;  // of K; these three lie in the arena
  const sonde_layout_t *narrow;       // the operands' layouts with it
  const sonde_layout_t *wide;
  uint64_t narrow_before;  // elements of one access along K
  uint64_t narrow_after;
  uint64_t wide_before;
  uint64_t wide_after;
} sonde_dot_shuffle_t;

typedef struct sonde_layout_plan_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // The plan of a conversion; out->struct_size is the caller's. SONDE_E_NO_SOLUTION when the source does not hold all
  // that the destination wants. [arena]
  sonde_status (*plan)(sonde_layout_arena_t *arena, const sonde_layout_t *source, const sonde_layout_t *destination,
                       const sonde_plan_options_t *options, sonde_plan_t *out);
  // Plans and carries the plan out on 64-bit values, one for each (register, lane, warp, block) with the register
  // lowest: registers, shuffles and memory simulated one by one. SONDE_E_INTERNAL when a plan turns out wrong. [arena]
  sonde_status (*execute)(sonde_layout_arena_t *arena, const sonde_layout_t *source, const sonde_layout_t *destination,
                          const sonde_plan_options_t *options, const uint64_t *values, uint64_t count, uint64_t *out,
                          uint64_t out_count);
  // The shared memory through which plain stores of `source` and loads of `destination` have the fewest bank conflicts
  // (Linear Layouts, appendix 9.2). [arena]
  sonde_status (*swizzle)(sonde_layout_arena_t *arena, const sonde_layout_t *source, const sonde_layout_t *destination,
                          uint32_t bits_per_element, uint32_t banks, sonde_swizzle_t *out);
  // Bank conflicts of one warp's accesses to `map`: (register, lane, ...) -> `offset` in elements; by formula, or word by
  // word (simulate: 1). [arena]
  sonde_status (*bank_access)(sonde_layout_arena_t *arena, const sonde_layout_t *map, sonde_dim_t offset,
                              uint32_t bits_per_element, uint32_t banks, uint32_t simulate, sonde_bank_access_t *out);
  // Sectors and lines of one warp's accesses to a row-major tensor (order[0] varies fastest) whose base and rows are
  // aligned to `alignment` bytes. [arena]
  sonde_status (*coalescing)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const uint32_t *order,
                             uint32_t rank, uint32_t bits_per_element, uint64_t alignment, sonde_coalescing_t *out);
  // Consecutive elements that one access of a thread can move, in the same order, at most `most_bits` bits. [arena]
  sonde_status (*vector_width)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const uint32_t *order,
                               uint32_t rank, uint32_t bits_per_element, uint32_t most_bits, uint64_t *elements);
  // Everyone who holds the element at `index` (a value for each out dim), least first; *count is how many there are,
  // `capacity` how many fit. SONDE_E_NO_SOLUTION when nobody does. [arena]
  sonde_status (*owners)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const uint64_t *index,
                         sonde_owner_t *owners, uint64_t capacity, uint64_t *count);
  // 1 when a gather along out dim `axis` stays within warps; then the shuffles and selects of one thread, on 32 bits.
  // [arena]
  sonde_status (*gather)(sonde_layout_arena_t *arena, const sonde_layout_t *source, const sonde_layout_t *index,
                         sonde_dim_t axis, uint32_t bits_per_element, uint32_t *is_warp_local, uint64_t *shuffles,
                         uint64_t *selects);
  // A permutation of the dim that a product sums over (`k` names it in each operand), the same on both sides, after
  // which the narrow operand loads in wider vectors. out->struct_size is the caller's. [arena]
  sonde_status (*dot_shuffle)(sonde_layout_arena_t *arena, const sonde_dot_operand_t *narrow,
                              const sonde_dot_operand_t *wide, uint32_t most_vector_bits, sonde_dot_shuffle_t *out);
} sonde_layout_plan_service_t;

SONDE_END_DECLS

#endif
