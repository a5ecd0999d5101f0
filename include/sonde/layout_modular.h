// Service sonde.layout_modular/1: layouts whose dims have any size.
//
// An in dim of n values has bits for n - 1, each with a basis; indices from n on do not occur. An out dim whose size is
// a power of two combines bases by xor, one of any other size m adds them modulo m. Operations have three outcomes: a
// layout that is right, SONDE_E_NO_SOLUTION (proven that there is none), SONDE_E_UNSUPPORTED (not decided). Objects lie
// in an arena as in layout.h, whose [arena] and other errors hold here too.
//
// Example: 96 elements over 32 lanes of 3 registers: register 1 -> 1, 2 -> 2; lane 1 -> 3, 2 -> 6, 4 -> 12, 8 -> 24,
// 16 -> 48. Register 2 of lane 5 holds 2 + 12 + 3 = 17.
#ifndef SONDE_LAYOUT_MODULAR_H
#define SONDE_LAYOUT_MODULAR_H

#include <sonde/layout.h>

SONDE_BEGIN_DECLS

#define SONDE_LAYOUT_MODULAR_SERVICE "sonde.layout_modular/1"

typedef struct sonde_modular_layout_t sonde_modular_layout_t;

typedef struct sonde_modular_dim_t {
  sonde_dim_t name;
  uint32_t reserved;
  uint64_t size;  // 1 to 2^62
} sonde_modular_dim_t;

typedef struct sonde_layout_modular_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // `bases` has a row for each input bit (of size - 1, ins in order, lowest bit first); a row has one value for each
  // out dim. [arena]
  sonde_status (*make)(sonde_layout_arena_t *arena, const sonde_modular_dim_t *ins, uint32_t in_count,
                       const sonde_modular_dim_t *outs, uint32_t out_count, const uint64_t *bases,
                       const sonde_modular_layout_t **out);
  // x -> stride x modulo the out dim's size. [arena]
  sonde_status (*strided)(sonde_layout_arena_t *arena, uint64_t size, uint64_t stride, sonde_dim_t in,
                          const sonde_modular_dim_t *out_dim, const sonde_modular_layout_t **out);
  // From a linear layout without an offset, and back where all sizes are powers of two. [arena]
  sonde_status (*from_linear)(sonde_layout_arena_t *arena, const sonde_layout_t *layout,
                              const sonde_modular_layout_t **out);
  sonde_status (*to_linear)(sonde_layout_arena_t *arena, const sonde_modular_layout_t *layout,
                            const sonde_layout_t **out);

  // Copies a layout into `memory`, as layout.place does. [any]
  sonde_status (*place)(const sonde_modular_layout_t *layout, void *memory, uint64_t capacity, uint64_t *needed,
                        const sonde_modular_layout_t **out);

  // Dims of a side; *count is how many there are, `capacity` how many fit. [any]
  sonde_status (*dims)(const sonde_modular_layout_t *layout, uint32_t side, sonde_modular_dim_t *dims,
                       uint32_t capacity, uint32_t *count);
  // One value for each in dim; SONDE_E_RANGE for one past its size. [any]
  sonde_status (*apply)(const sonde_modular_layout_t *layout, const uint64_t *values, uint64_t *out);
  sonde_status (*equal)(const sonde_modular_layout_t *a, const sonde_modular_layout_t *b, uint32_t *out);  // [any]
  sonde_status (*print)(const sonde_modular_layout_t *layout, char *text, uint64_t capacity,
                        uint64_t *needed);  // [any]

  // As in layout.h. [arena]
  sonde_status (*product)(sonde_layout_arena_t *arena, const sonde_modular_layout_t *inner,
                          const sonde_modular_layout_t *outer, const sonde_modular_layout_t **out);
  sonde_status (*compose)(sonde_layout_arena_t *arena, const sonde_modular_layout_t *inner,
                          const sonde_modular_layout_t *outer, const sonde_modular_layout_t **out);
  sonde_status (*invert)(sonde_layout_arena_t *arena, const sonde_modular_layout_t *layout,
                         const sonde_modular_layout_t **out);
  sonde_status (*invert_and_compose)(sonde_layout_arena_t *arena, const sonde_modular_layout_t *layout,
                                     const sonde_modular_layout_t *outer, const sonde_modular_layout_t **out);
  // An input (a value for each in dim) that maps to `values` (one for each out dim). [arena]
  sonde_status (*solve)(sonde_layout_arena_t *arena, const sonde_modular_layout_t *layout, const uint64_t *values,
                        uint64_t *input);
} sonde_layout_modular_service_t;

SONDE_END_DECLS

#endif
