// Service sonde.layout_shape/1: the dims of layouts renamed, reordered, cut and dropped; and what is asked of a layout.
//
// Objects, errors and [arena] as in layout.h. `side` is SONDE_SIDE_IN or SONDE_SIDE_OUT. Lists of dims are a pointer
// and a count; a NULL list has count 0.
#ifndef SONDE_LAYOUT_SHAPE_H
#define SONDE_LAYOUT_SHAPE_H

#include <sonde/layout.h>

SONDE_BEGIN_DECLS

#define SONDE_LAYOUT_SHAPE_SERVICE "sonde.layout_shape/1"

#define SONDE_RESIZE_ZERO 0u    // a value past the new size becomes 0, as Triton does
#define SONDE_RESIZE_MODULO 1u  // its low bits stay: the projection

#define SONDE_LAYOUT_IS_ZERO 0u          // the block from dims `a` to outs `b` is 0
#define SONDE_LAYOUT_IS_IDENTITY_ON 1u   // the block from dims `a` to the same outs is the identity
#define SONDE_LAYOUT_IS_TRIVIAL_OVER 2u  // and they neither feed other outs nor depend on other ins
#define SONDE_LAYOUT_IS_OWN_OUT 3u       // out a[0] depends on in a[0] only, as the identity

typedef struct sonde_layout_shape_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // --- Dims of one side [arena] ---
  // `order` names each dim of the side once.
  sonde_status (*transpose)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t side,
                            const sonde_dim_t *order, uint32_t count, const sonde_layout_t **out);
  // Cuts the flattened side (first dim lowest) into new dims of the same total; their `shift` is not read.
  sonde_status (*reshape)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t side,
                          const sonde_layout_dim_t *dims, uint32_t count, const sonde_layout_t **out);
  // One dim, named as the first.
  sonde_status (*flatten)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t side,
                          const sonde_layout_t **out);
  // Drops, or adds as the last, a dim of one value.
  sonde_status (*squeeze)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t side, sonde_dim_t dim,
                          const sonde_layout_t **out);
  sonde_status (*unsqueeze)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t side, sonde_dim_t dim,
                            const sonde_layout_t **out);
  // In dims lose their highest bases or gain zero ones; out dims only shrink, as SONDE_RESIZE_* says.
  sonde_status (*resize)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t side, sonde_dim_t dim,
                         uint32_t bits, uint32_t how, const sonde_layout_t **out);
  // Renames from[i] to to[i], all at once; order is kept.
  sonde_status (*rename)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t side,
                         const sonde_dim_t *from, const sonde_dim_t *to, uint32_t count, const sonde_layout_t **out);
  // Restricted to some in dims, projected to some out dims, in the layout's order.
  sonde_status (*sublayout)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const sonde_dim_t *ins,
                            uint32_t in_count, const sonde_dim_t *outs, uint32_t out_count, const sonde_layout_t **out);
  // What is left without dims that the layout is trivial over; SONDE_E_NO_SOLUTION where it is not.
  sonde_status (*quotient)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const sonde_dim_t *dims,
                           uint32_t count, const sonde_layout_t **out);
  sonde_status (*remove_zero_bases)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, sonde_dim_t in,
                                    const sonde_layout_t **out);
  sonde_status (*zeros_like)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const sonde_layout_t **out);

  // --- Tensors: out dims dim0, dim1, ...; sizes are powers of two [arena] ---
  // Each out dim at most as large as `dims` says: values past it become 0. Register bases that become 0 stay only with
  // `keeps_registers`.
  sonde_status (*not_larger)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const sonde_layout_dim_t *dims,
                             uint32_t count, uint32_t keeps_registers, const sonde_layout_t **out);
  // Each out dim at least as large: the first in dim gets the repetitions.
  sonde_status (*not_smaller)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const sonde_layout_dim_t *dims,
                              uint32_t count, const sonde_layout_t **out);
  // The identity from `in` to a tensor of `rank` dims; order[0] is the dim that varies first.
  sonde_status (*identity_nd)(sonde_layout_arena_t *arena, sonde_dim_t in, const uint64_t *shape, const uint32_t *order,
                              uint32_t rank, const sonde_layout_t **out);
  // The tensor reshaped row-major; its dims permuted (dim order[i] becomes dim i); a dim less.
  sonde_status (*reshape_tensor)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const uint64_t *shape,
                                 uint32_t rank, const sonde_layout_t **out);
  sonde_status (*transpose_tensor)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const uint32_t *order,
                                   uint32_t rank, const sonde_layout_t **out);
  sonde_status (*remove_tensor_dim)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t index,
                                    const sonde_layout_t **out);

  // --- Bases of one in dim [arena] ---
  // New basis i is old basis permutation[i]; those not named are dropped.
  sonde_status (*permute)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, sonde_dim_t in,
                          const uint32_t *permutation, uint32_t count, const sonde_layout_t **out);
  // The permutation (64 places) that brings a's register bases equal to b's to the front (from_left) or the back;
  // SONDE_E_NO_SOLUTION when some are not there. [any]
  sonde_status (*registers_for_division)(const sonde_layout_t *a, const sonde_layout_t *b, uint32_t from_left,
                                         uint32_t *permutation, uint32_t *count);
  // Registers that may be added to an address instead of xor-ed come first; *strides is how many. `affine`: address
  // bits that a runtime offset may set. [any]
  sonde_status (*additive_strides)(const sonde_layout_t *layout, uint64_t affine, uint32_t *permutation,
                                   uint32_t *count, uint32_t *strides);
  // The register bases that are not 0, in order: the permutation that drops broadcasts. [any]
  sonde_status (*drop_broadcasts)(const sonde_layout_t *layout, uint32_t *permutation, uint32_t *count);
  // The most elements of `element_bits` bits, consecutive in the first out dim, that one access of at most 128 bits moves,
  // and the permutation that brings their registers to the front. `most`: elements, 0: any.
  sonde_status (*vectorise)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, uint32_t element_bits,
                            uint64_t most, uint64_t *elements, uint32_t *permutation, uint32_t *count);
  // The leading bases of the tile's in dims set to 0, when they are the tile's and the others stay off its bits;
  // SONDE_E_NO_SOLUTION otherwise.
  sonde_status (*repetitions)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, const sonde_layout_t *tile,
                              const sonde_layout_t **out);
  // The largest prefix of at most `limit` values on which in dim `in` is the identity on out dim `to`, and what is left
  // of the layout when it is divided out.
  sonde_status (*identity_prefix)(sonde_layout_arena_t *arena, const sonde_layout_t *layout, sonde_dim_t in,
                                  sonde_dim_t to, uint64_t limit, uint64_t *size, const sonde_layout_t **out);

  // --- Questions [any] ---
  // SONDE_LAYOUT_IS_*; *out is 1 or 0. `b` is read by IS_ZERO only.
  sonde_status (*is)(const sonde_layout_t *layout, uint32_t what, const sonde_dim_t *a, uint32_t a_count,
                     const sonde_dim_t *b, uint32_t b_count, uint32_t *out);
  // masks[i], for each in dim: bits whose columns depend on those before.
  sonde_status (*free_masks)(const sonde_layout_t *layout, uint64_t *masks);
  // The largest 2^k of which the identity from the first in to the first out dim is a left divisor.
  sonde_status (*consecutive)(const sonde_layout_t *layout, uint64_t *out);
  // The largest 2^k for which the values 0 to 2^k - 1 of an out dim are reached.
  sonde_status (*contiguous)(const sonde_layout_t *layout, sonde_dim_t out_dim, uint64_t *out);
  // Bits of out dim `out_dim` that some in dims can change; bits of in dim `in` that change some out dims.
  sonde_status (*output_mask)(const sonde_layout_t *layout, const sonde_dim_t *ins, uint32_t count, sonde_dim_t out_dim,
                              uint64_t *out);
  sonde_status (*input_mask)(const sonde_layout_t *layout, sonde_dim_t in, const sonde_dim_t *outs, uint32_t count,
                             uint64_t *out);
  // sizes[i], for each out dim: 2^(bases of `in` that begin there); broadcast bases count where the last one was,
  // unless they are skipped.
  sonde_status (*bases_per_dim)(const sonde_layout_t *layout, sonde_dim_t in, uint32_t skips_broadcasts,
                                uint64_t *sizes);
  // Out dims (indices) in the order in which the bases of `in` first touch them, then the others. [any]
  sonde_status (*order_per_dim)(const sonde_layout_t *layout, sonde_dim_t in, uint32_t *order);
  // The order of dims that two lists have in common: both keep theirs, the first list's names come first. `out` has room
  // for a_count + b_count. SONDE_E_INVALID where they contradict each other. [any]
  sonde_status (*supremum)(const sonde_dim_t *a, uint32_t a_count, const sonde_dim_t *b, uint32_t b_count,
                           sonde_dim_t *out, uint32_t *count);
  // sizes[i], for each out dim: consecutive elements that one thread's registers hold.
  sonde_status (*contiguous_per_thread)(const sonde_layout_t *layout, uint64_t *sizes);
  // Registers of a thread, and how many of them are not duplicates of others.
  sonde_status (*elements_per_thread)(const sonde_layout_t *layout, uint64_t *all, uint64_t *unique);
} sonde_layout_shape_service_t;

SONDE_END_DECLS

#endif
