// Service sonde.cute/1: CuTe's algebra of nested shapes and strides, with verified results.
//
// A layout maps a coordinate to the sum of its values times the strides; an integer stands for the coordinate that it
// has colexicographically. Text is CuTe's own: "((2,2),3):((24,2),8)". Shapes are any positive integers, strides any
// integers; every index fits 62 bits. Where CuTe would give a layout that is not the one asked for, there is none here:
// SONDE_E_NO_SOLUTION when none exists, SONDE_E_UNSUPPORTED when the method cannot tell. Objects lie in an arena as in
// layout.h, whose errors and [arena] hold here too.
//
// A tiler is text: a layout "4:1", a shape "(4,8)", or a list by mode "<4:1, _, (2,2):(1,8)>".
#ifndef SONDE_CUTE_H
#define SONDE_CUTE_H

#include <sonde/layout.h>

SONDE_BEGIN_DECLS

#define SONDE_CUTE_SERVICE "sonde.cute/1"

typedef struct sonde_cute_t sonde_cute_t;

typedef struct sonde_cute_info_t {
  uint32_t struct_size;
  uint32_t rank;    // modes
  uint32_t depth;   // of parentheses
  uint32_t leaves;  // of the tree, in order
  int64_t size;     // coordinates
  int64_t cosize;   // from the least to the greatest index, both included
} sonde_cute_info_t;

#define SONDE_CUTE_COALESCE 0u       // the same function with the fewest leaves
#define SONDE_CUTE_FLATTEN 1u        // a list of all leaves
#define SONDE_CUTE_FILTER_ZEROS 2u   // leaves of stride 0 become 1:0
#define SONDE_CUTE_FILTER 3u         // without them, coalesced
#define SONDE_CUTE_RIGHT_INVERSE 4u  // the longest R with layout(R(i)) = i
#define SONDE_CUTE_LEFT_INVERSE 5u   // R with R(layout(i)) = i
#define SONDE_CUTE_NULLSPACE 6u      // R with layout(R(i)) = 0

#define SONDE_CUTE_LOGICAL 0u  // ways of divisions and products
#define SONDE_CUTE_ZIPPED 1u
#define SONDE_CUTE_TILED 2u
#define SONDE_CUTE_FLAT 3u
#define SONDE_CUTE_BLOCKED 4u  // products by a layout only
#define SONDE_CUTE_RAKED 5u

#define SONDE_CUTE_FORM_STRIDES 0u      // offset and integer strides
#define SONDE_CUTE_FORM_SWIZZLED 1u     // a swizzle of that
#define SONDE_CUTE_FORM_XOR_STRIDES 2u  // strides whose multiples are xors; printed as a layout, with "xor" before it

typedef struct sonde_cute_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // --- Building and reading ---
  sonde_status (*parse)(sonde_layout_arena_t *arena, const char *text, uint64_t bytes,
                        const sonde_cute_t **out);  // [arena]
  // A flat layout of `count` leaves. [arena]
  sonde_status (*make)(sonde_layout_arena_t *arena, const int64_t *shapes, const int64_t *strides, uint32_t count,
                       const sonde_cute_t **out);
  sonde_status (*print)(const sonde_cute_t *layout, char *text, uint64_t capacity, uint64_t *needed);  // [any]
  sonde_status (*info)(const sonde_cute_t *layout, sonde_cute_info_t *out);                            // [any]
  // `shapes` and `strides` have room for info.leaves. [any]
  sonde_status (*leaves)(const sonde_cute_t *layout, int64_t *shapes, int64_t *strides);
  // The index of an integer coordinate from 0 to size - 1. [any]
  sonde_status (*apply)(const sonde_cute_t *layout, int64_t coordinate, int64_t *out);
  // crd2idx of a coordinate "(1,(0,2))"; idx2crd of an index, as text. [arena]
  sonde_status (*coordinate_to_index)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, const char *coordinate,
                                      int64_t *out);
  sonde_status (*index_to_coordinate)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, int64_t index,
                                      char *text, uint64_t capacity, uint64_t *needed);
  // Whether two layouts are the same tree (as_functions 0), or give every coordinate the same index (1). [any]
  sonde_status (*equal)(const sonde_cute_t *a, const sonde_cute_t *b, uint32_t as_functions, uint32_t *out);

  // --- Algebra [arena] ---
  // SONDE_CUTE_COALESCE ... NULLSPACE. `profile` is for COALESCE: a tree such as "(1,1)" whose leaves stay apart, or
  // NULL.
  sonde_status (*transform)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, uint32_t what, const char *profile,
                            const sonde_cute_t **out);
  // R(i) = a(tiler(i)), by mode for a list.
  sonde_status (*compose)(sonde_layout_arena_t *arena, const sonde_cute_t *a, const char *tiler,
                          const sonde_cute_t **out);
  // The ordered layout whose indices, added to the layout's, give each of 0 to size - 1 once, `least` among them.
  sonde_status (*complement)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, int64_t least,
                             const sonde_cute_t **out);
  // LOGICAL to FLAT.
  sonde_status (*divide)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, uint32_t how, const char *tiler,
                         const sonde_cute_t **out);
  // LOGICAL to RAKED.
  sonde_status (*product)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, uint32_t how, const char *tiler,
                          const sonde_cute_t **out);
  // The block repeated over a shape, the mode that `order` ranks first first (NULL: in order).
  sonde_status (*tile_to_shape)(sonde_layout_arena_t *arena, const sonde_cute_t *block, const char *shape,
                                const uint32_t *order, uint32_t order_count, const sonde_cute_t **out);
  // The same bytes in elements of another size.
  sonde_status (*recast)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, uint32_t old_bits, uint32_t new_bits,
                         const sonde_cute_t **out);
  // The longest layout on which both are the identity, and its size.
  sonde_status (*max_common)(sonde_layout_arena_t *arena, const sonde_cute_t *a, const sonde_cute_t *b,
                             const sonde_cute_t **out, int64_t *elements);
  // The modes where the coordinate says "_", and the index of the others.
  sonde_status (*slice)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, const char *coordinate,
                        const sonde_cute_t **out, int64_t *offset);
  // The tile with this coordinate; what one thread of a layout of threads holds.
  sonde_status (*local_tile)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, const char *tiler,
                             const char *coordinate, const sonde_cute_t **out, int64_t *offset);
  sonde_status (*local_partition)(sonde_layout_arena_t *arena, const sonde_cute_t *layout, const sonde_cute_t *threads,
                                  int64_t thread, const sonde_cute_t **out, int64_t *offset);

  // --- Linear layouts [arena] ---
  // `text` is a layout, or "Sw<3,4,3> o 0 o (8,8):(8,1)". The coordinate is cut into the in dims, the index into the
  // out dims. SONDE_E_NO_SOLUTION: it is not linear, and last_error says where.
  sonde_status (*to_linear)(sonde_layout_arena_t *arena, const char *text, const sonde_layout_dim_t *ins,
                            uint32_t in_count, const sonde_layout_dim_t *outs, uint32_t out_count,
                            const sonde_layout_t **out);
  // The least general form up to `most` (SONDE_CUTE_FORM_*), as text with one mode for each in dim; *form is which.
  sonde_status (*from_linear)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t most, uint32_t *form,
                              char *text, uint64_t capacity, uint64_t *needed);
} sonde_cute_service_t;

SONDE_END_DECLS

#endif
