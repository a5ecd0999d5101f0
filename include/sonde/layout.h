// Service sonde.layout/1: tensor layouts as linear maps over F2 (Linear Layouts, arXiv 2505.23819).
//
// A layout maps hardware indices (register, lane, warp, block) or memory offsets to the indices of a tensor. Both sides
// are split into named dims of 2^bits values. An index of a whole side is kept flattened, first dim in its lowest bits,
// and L(x) = offset ^ (xor of columns[i] over the set bits i of x). Example: the 16x16 tile with
//   register 1 -> (0, 1)   2 -> (1, 0);   lane 1 -> (0, 2)   2 -> (0, 4)   4 -> (0, 8)   8 -> (2, 0)   16 -> (4, 0)
// puts register 1 of lane 9 at (0, 1) ^ (0, 2) ^ (2, 0) = (2, 3).
//
// Layouts are immutable and live in an arena until it is reset, released past them, or closed; their arguments may lie
// in other arenas. Every thread may read layouts; a function that takes an arena may be called by one thread at a time
// for that arena, which [arena] says below. Limits: 64 bits and 64 dims a side.
//
// Errors: SONDE_E_INVALID when the arguments break a function's conditions; SONDE_E_NO_SOLUTION when they keep them and
// no such layout exists; SONDE_E_UNSUPPORTED when one may exist but not within the limits; SONDE_E_FULL at the arena's
// cap. An output is set to NULL on error.
#ifndef SONDE_LAYOUT_H
#define SONDE_LAYOUT_H

#include <sonde/base.h>
#include <sonde/status.h>

SONDE_BEGIN_DECLS

#define SONDE_LAYOUT_SERVICE "sonde.layout/1"

typedef struct sonde_layout_arena_t sonde_layout_arena_t;
typedef struct sonde_layout_t sonde_layout_t;

// A dim's name; the same text gives the same id for the life of the process.
typedef uint32_t sonde_dim_t;
#define SONDE_DIM_REGISTER 1u
#define SONDE_DIM_LANE 2u
#define SONDE_DIM_WARP 3u
#define SONDE_DIM_BLOCK 4u
#define SONDE_DIM_OFFSET 5u
#define SONDE_DIM_FIRST 16u  // "dim0"; dim1 to dim31 follow

typedef struct sonde_layout_dim_t {
  sonde_dim_t name;
  uint8_t bits;       // log2 of the size
  uint8_t shift;      // of its lowest bit in the flattened side; computed by the host, not read from callers
  uint16_t reserved;  // 0
} sonde_layout_dim_t;

// A layout's inside; the pointers live as long as the layout.
typedef struct sonde_layout_view_t {
  const sonde_layout_dim_t *ins;
  const sonde_layout_dim_t *outs;
  const uint64_t *columns;  // one for each flattened input bit
  uint64_t offset;
  uint32_t in_count;
  uint32_t out_count;
  uint32_t in_bits;
  uint32_t out_bits;
} sonde_layout_view_t;

#define SONDE_SIDE_IN 0u
#define SONDE_SIDE_OUT 1u

#define SONDE_LAYOUT_SURJECTIVE 1u   // every output is reached
#define SONDE_LAYOUT_INJECTIVE 2u    // no two inputs share an output; with SURJECTIVE: invertible
#define SONDE_LAYOUT_PERMUTATION 4u  // columns are 0 or single bits, none twice: a distributed layout (definition 4.10)
#define SONDE_LAYOUT_MEMORY 8u       // invertible, one or two bits a column: a memory layout (definition 4.14)

#define SONDE_LAYOUT_EQUAL_EXACT 0u    // everything, in order
#define SONDE_LAYOUT_EQUAL_VALUES 1u   // but for the sizes of out dims
#define SONDE_LAYOUT_EQUAL_AS_MAPS 2u  // whatever the order of dims; dims of one value do not count

#define SONDE_LAYOUT_KERNEL 0u        // a's ins that map to 0
#define SONDE_LAYOUT_IMAGE 1u         // a's outs that are reached
#define SONDE_LAYOUT_COKERNEL 2u      // a map from a's outs whose zeros are the image
#define SONDE_LAYOUT_INTERSECTION 3u  // of the images of a and b
#define SONDE_LAYOUT_SUM 4u           // of the images of a and b

typedef struct sonde_layout_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // --- Memory and names ---
  // `cap_bytes` bounds what the arena takes from the system; 0: no bound. End it with close. [any]
  sonde_status (*open)(uint64_t cap_bytes, sonde_layout_arena_t **out);
  sonde_status (*close)(sonde_layout_arena_t *arena);  // [arena]
  // Ends every layout of the arena and keeps its memory for the next ones. [arena]
  sonde_status (*reset)(sonde_layout_arena_t *arena);
  // A place to return to, two words: release ends every layout made after the mark. [arena]
  sonde_status (*mark)(sonde_layout_arena_t *arena, uint64_t *out);
  sonde_status (*release)(sonde_layout_arena_t *arena, const uint64_t *mark);
  sonde_status (*dim)(const char *name, sonde_dim_t *out);      // [any]
  sonde_status (*dim_name)(sonde_dim_t dim, const char **out);  // lives for ever [any]

  // --- Building [arena] ---
  // `bases` has a row for each input bit, ins in order, lowest bit first; a row has one value for each out dim.
  // `offset`: one value for each out dim, or NULL.
  sonde_status (*make)(sonde_layout_arena_t *arena, const sonde_layout_dim_t *ins, uint32_t in_count,
                       const sonde_layout_dim_t *outs, uint32_t out_count, const uint64_t *bases,
                       const uint64_t *offset, const sonde_layout_t **out);
  // x -> stride x; size and stride powers of two. Size 0 gives the empty layout, the unit of product.
  sonde_status (*strided)(sonde_layout_arena_t *arena, uint64_t size, uint64_t stride, sonde_dim_t in,
                          sonde_dim_t out_dim, const sonde_layout_t **out);
  // x -> 0.
  sonde_status (*zeros)(sonde_layout_arena_t *arena, uint64_t size, sonde_dim_t in, sonde_dim_t out_dim,
                        uint64_t out_size, const sonde_layout_t **out);
  sonde_status (*copy)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const sonde_layout_t **out);

  // Copies a layout into `memory` (8-aligned, `capacity` bytes), where it lives as long as that memory; no pointer is in
  // it, so a copy of those bytes is a layout too. *needed is its size, and all that is set when `memory` is NULL.
  // SONDE_E_FULL when it does not fit. [any]
  sonde_status (*place)(const sonde_layout_t *layout, void *memory, uint64_t capacity, uint64_t *needed,
                        const sonde_layout_t **out);

  // --- Reading [any] ---
  sonde_status (*view)(const sonde_layout_t *layout, sonde_layout_view_t *out);
  // Rank of the columns, and SONDE_LAYOUT_SURJECTIVE, INJECTIVE, PERMUTATION, MEMORY; either out may be NULL.
  sonde_status (*properties)(const sonde_layout_t *layout, uint32_t *rank, uint32_t *flags);
  sonde_status (*equal)(const sonde_layout_t *a, const sonde_layout_t *b, uint32_t how, uint32_t *out);
  // Equal layouts (EXACT or AS_MAPS) have equal hashes, in every process and on every machine.
  sonde_status (*hash)(const sonde_layout_t *layout, uint32_t how, uint64_t *out);
  // One value for each in dim; SONDE_E_RANGE when one lies past its dim.
  sonde_status (*apply)(const sonde_layout_t *layout, const uint64_t *values, uint64_t *out);
  // Flattened indices; bits past the side's are SONDE_E_RANGE. `out` may be `in`.
  sonde_status (*apply_many)(const sonde_layout_t *layout, const uint64_t *in, uint64_t count, uint64_t *out);
  // out[i] = L(first + i). SONDE_E_RANGE past the side; table32 also when a value needs more than 32 bits.
  sonde_status (*table)(const sonde_layout_t *layout, uint64_t first, uint64_t count, uint64_t *out);
  sonde_status (*table32)(const sonde_layout_t *layout, uint64_t first, uint64_t count, uint32_t *out);

  // --- Algebra [arena] ---
  // The direct sum: in shared in dims inner's bits are lowest, in shared out dims outer's values are shifted by inner's
  // bits. Dims in the order that both keep; SONDE_E_INVALID where they contradict each other. Associative.
  sonde_status (*product)(sonde_layout_arena_t *arena, const sonde_layout_t *inner, const sonde_layout_t *outer,
                          const sonde_layout_t **out);
  // C with product(divisor, C) = a, or (right) product(C, divisor) = a; it keeps a's dims. SONDE_E_NO_SOLUTION.
  sonde_status (*divide_left)(sonde_layout_arena_t *arena, const sonde_layout_t *a, const sonde_layout_t *divisor,
                              const sonde_layout_t **out);
  sonde_status (*divide_right)(sonde_layout_arena_t *arena, const sonde_layout_t *a, const sonde_layout_t *divisor,
                               const sonde_layout_t **out);
  // x -> outer(inner(x)); inner's outs are outer's ins, in any order, none larger.
  sonde_status (*compose)(sonde_layout_arena_t *arena, const sonde_layout_t *inner, const sonde_layout_t *outer,
                          const sonde_layout_t **out);
  // X with a(X(x)) = b(x), each the numerically smallest preimage; same out dims, none larger in b.
  sonde_status (*least_solution)(sonde_layout_arena_t *arena, const sonde_layout_t *a, const sonde_layout_t *b,
                                 const sonde_layout_t **out);
  // C with outer(C(x)) = layout(x), in dims with the same columns in both mapped to themselves. `block_local`: where
  // outer has no bit for a bit of dim block, the answer has the asking block's own.
  sonde_status (*invert_and_compose)(sonde_layout_arena_t *arena, const sonde_layout_t *layout,
                                     const sonde_layout_t *outer, uint32_t block_local, const sonde_layout_t **out);
  // The smallest right inverse; SONDE_E_NO_SOLUTION unless surjective.
  sonde_status (*pseudoinvert)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const sonde_layout_t **out);
  // SONDE_E_NO_SOLUTION unless invertible.
  sonde_status (*invert)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const sonde_layout_t **out);
  // SONDE_SIDE_IN: a and b side by side over the same outs; SONDE_SIDE_OUT: stacked over the same ins.
  sonde_status (*concat)(sonde_layout_arena_t *arena, uint32_t side, const sonde_layout_t *a, const sonde_layout_t *b,
                         const sonde_layout_t **out);
  // x -> a(x) ^ b(x); the same dims.
  sonde_status (*sum)(sonde_layout_arena_t *arena, const sonde_layout_t *a, const sonde_layout_t *b,
                      const sonde_layout_t **out);
  // SONDE_LAYOUT_KERNEL ... SUM, as a layout from (COKERNEL: to) one dim "basis"; `b` is NULL for the first three.
  sonde_status (*subspace)(sonde_layout_arena_t *arena, uint32_t what, const sonde_layout_t *a, const sonde_layout_t *b,
                           const sonde_layout_t **out);

  // --- Text and bytes ---
  // Writes up to `capacity` bytes with a NUL; *needed is the length without it. SONDE_E_FULL when cut. [any]
  sonde_status (*print)(const sonde_layout_t *layout, char *text, uint64_t capacity, uint64_t *needed);
  sonde_status (*to_json)(const sonde_layout_t *layout, char *text, uint64_t capacity, uint64_t *needed);
  sonde_status (*to_bytes)(const sonde_layout_t *layout, uint8_t *bytes, uint64_t capacity, uint64_t *needed);
  // Reads what to_json and to_bytes write. SONDE_E_PARSE, SONDE_E_CORRUPT. [arena]
  sonde_status (*from_json)(sonde_layout_arena_t *arena, const char *text, uint64_t bytes, const sonde_layout_t **out);
  sonde_status (*from_bytes)(sonde_layout_arena_t *arena, const uint8_t *data, uint64_t bytes,
                             const sonde_layout_t **out);
} sonde_layout_service_t;

// L(x) for a flattened index; bits past in_bits are not looked at.
// [any]
static inline uint64_t sonde_layout_at(const sonde_layout_view_t *view, uint64_t index) {
  uint64_t result = view->offset;
  for (uint32_t bit = 0; bit < view->in_bits; ++bit) result ^= view->columns[bit] & (0 - (index >> bit & 1));
  return result;
}

SONDE_END_DECLS

#endif
