// Service sonde.layout_search/1: "find a layout such that".
//
// Searches are deterministic, and a result is checked against every constraint. SONDE_E_NO_SOLUTION: there is none, and
// last_error names the constraint that cannot be met; SONDE_E_UNSUPPORTED: more candidates than are tried. Errors and
// [arena] as in layout.h.
#ifndef SONDE_LAYOUT_SEARCH_H
#define SONDE_LAYOUT_SEARCH_H

#include <sonde/layout.h>

SONDE_BEGIN_DECLS

#define SONDE_LAYOUT_SEARCH_SERVICE "sonde.layout_search/1"

// A basis that is given: bit `bit` of in dim `in` (register, lane or warp) has these values, one for each tensor dim.
typedef struct sonde_fixed_basis_t {
  sonde_dim_t in;
  uint32_t bit;
  const uint64_t *values;
} sonde_fixed_basis_t;

// What a register layout must do; sizes are powers of two. Lists that may be NULL ask for nothing.
typedef struct sonde_register_request_t {
  uint32_t struct_size;
  uint32_t rank;  // of the tensor, up to 32
  const uint64_t *shape;
  uint32_t element_bits;  // 1 to 128
  uint32_t lanes;         // of a warp
  uint32_t warps;
  uint32_t banks;         // of 32 bits; 0: 32
  uint64_t registers;     // of a thread, duplicates included; 0: as few as hold the tensor
  const uint32_t *order;  // tensor dims, the fastest in memory first; NULL: the last one first
  uint32_t vector_bits;   // of consecutive elements that the first registers hold; 0: one element
  uint32_t fixed_count;
  const sonde_fixed_basis_t *fixed;
  uint64_t lane_run;              // consecutive elements that the first lanes hold together; 0: any
  const uint64_t *contiguous;     // for each dim: elements next to each other that a thread holds; 0: any
  const uint64_t *warps_per_dim;  // for each dim
  const sonde_layout_t *memory;   // offset -> tensor: a warp's access to it is to have no bank conflicts; NULL: none
} sonde_register_request_t;

typedef struct sonde_layout_search_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // (register, lane, warp) -> (dim0, dim1, ...). Tensor bits that nothing asks for go, in memory order, to the lanes,
  // then to the warps, then to the registers. [arena]
  sonde_status (*registers)(sonde_layout_arena_t *arena, const sonde_register_request_t *request,
                            const sonde_layout_t **out);
  // offset -> tensor: memory that `a` writes and `b` reads (NULL: nobody) without bank conflicts, `vector_bits` with one
  // access (0: as many as both allow, up to 128); banks of 32 bits, 0: 32. [arena]
  sonde_status (*memory)(sonde_layout_arena_t *arena, const sonde_layout_t *a, const sonde_layout_t *b,
                         uint32_t element_bits, uint32_t vector_bits, uint32_t banks, const sonde_layout_t **out);
} sonde_layout_search_service_t;

SONDE_END_DECLS

#endif
