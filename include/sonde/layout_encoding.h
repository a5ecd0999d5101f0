// Service sonde.layout_encoding/1: a tensor's encoding as a compiler writes it down, and the layout that it stands for.
//
// An encoding (blocked, slice, MMA, dot operand, swizzled shared, ...) has few parameters and no shape; with a shape it
// is a layout. It is written as in TTGIR, "#ttg.blocked<{sizePerThread = [1, 4], ...}>", in the spellings of Triton 2.1
// to 3.6, or given by the same parameters. Encodings are immutable; each is freed with `release`. Errors and [arena] as
// in layout.h.
#ifndef SONDE_LAYOUT_ENCODING_H
#define SONDE_LAYOUT_ENCODING_H

#include <sonde/layout.h>

SONDE_BEGIN_DECLS

#define SONDE_LAYOUT_ENCODING_SERVICE "sonde.layout_encoding/1"

typedef struct sonde_encoding_t sonde_encoding_t;

#define SONDE_ENCODING_REGISTERS 0u      // in dims register, lane, warp, block
#define SONDE_ENCODING_SHARED 1u         // in dims offset, block (and partition), in elements
#define SONDE_ENCODING_TENSOR_MEMORY 2u  // in dims row, col, block

// A parameter by its name in the attribute: `columns` 0: one number; otherwise a list of `rows` rows (a plain list is
// one row; with is_rows it is a list of lists).
typedef struct sonde_encoding_parameter_t {
  const char *name;        // "sizePerThread", "order", "kWidth", "register", ...
  const uint64_t *values;  // rows * columns, or one number
  uint32_t rows;
  uint32_t columns;
  uint32_t is_rows;  // 1: a list of lists, as bases are
  uint32_t is_flag;  // 1: true or false
} sonde_encoding_parameter_t;

// An attribute of a module's text.
typedef struct sonde_found_encoding_t {
  uint64_t offset;                   // of its '#', bytes from the beginning of the module
  uint64_t bytes;                    // its length; 0 when it could not be read
  const char *alias;                 // of "#alias = #ttg..."; "" where the attribute stands in place
  const sonde_encoding_t *encoding;  // NULL when it could not be read; lives during the callback
  const char *error;                 // what was expected; "" when it could be read
} sonde_found_encoding_t;

typedef struct sonde_layout_encoding_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // Reads one attribute. `module` is text with the aliases that it names ("#blocked = ..."), or NULL. SONDE_E_PARSE:
  // last_error has the place and what was expected. [any]
  sonde_status (*parse)(const char *text, uint64_t bytes, const char *module, uint64_t module_bytes,
                        sonde_encoding_t **out);
  // From parameters: `kind` is the attribute's word ("blocked", "slice", "nvidia_mma", "swizzled_shared", ...), `parent`
  // that of slices and operands, or NULL. [any]
  sonde_status (*make)(const char *kind, const sonde_encoding_parameter_t *parameters, uint32_t count,
                       const sonde_encoding_t *parent, sonde_encoding_t **out);
  sonde_status (*release)(sonde_encoding_t *encoding);  // [any]

  // Every attribute of a module in textual form, in order; a status below 0 of the callback ends the scan. *unparsed
  // counts those that could not be read. [any]
  sonde_status (*scan)(const char *module, uint64_t bytes,
                       sonde_status (*found)(void *user, const sonde_found_encoding_t *attribute), void *user,
                       uint64_t *unparsed);

  // The attribute in the newest spelling, parents in place; as layout.print. [any]
  sonde_status (*text)(const sonde_encoding_t *encoding, char *text, uint64_t capacity, uint64_t *needed);
  // Its word and SONDE_ENCODING_REGISTERS ...; either may be NULL. [any]
  sonde_status (*kind)(const sonde_encoding_t *encoding, const char **kind, uint32_t *space);

  // The layout of a tensor of this shape (powers of two), out dims dim0, dim1, ... Of padded shared memory it is the
  // linear part; see padded_address. [arena]
  sonde_status (*layout)(sonde_layout_arena_t *arena, const sonde_encoding_t *encoding, const uint64_t *shape,
                         uint32_t rank, const sonde_layout_t **out);
  // Where offset `offset` of padded shared memory lies, in elements; the offset itself for other kinds. [any]
  sonde_status (*padded_address)(const sonde_encoding_t *encoding, uint64_t offset, uint64_t *out);
  // What one block holds, for each dim; registers of a thread, with duplicates. Either may be NULL. [arena]
  sonde_status (*share)(sonde_layout_arena_t *arena, const sonde_encoding_t *encoding, const uint64_t *shape,
                        uint32_t rank, uint64_t *shape_per_cta, uint64_t *elements_per_thread);

  // The swizzle from which `operand`, a dot operand of an NVIDIA MMA, is read without conflicts; order[0] is the
  // memory's fastest dim. [arena]
  sonde_status (*swizzle_for_operand)(sonde_layout_arena_t *arena, const sonde_encoding_t *operand,
                                      const uint64_t *shape, const uint32_t *order, uint32_t rank,
                                      uint32_t element_bits, uint32_t needs_transposition, sonde_encoding_t **out);
  // The widest NVMMA swizzle (128, 64, 32 or 0 bytes) that one block's shape has room for. [any]
  sonde_status (*default_swizzle)(const uint64_t *shape, const uint32_t *order, uint32_t rank, uint32_t element_bits,
                                  uint32_t *bytes);
} sonde_layout_encoding_service_t;

SONDE_END_DECLS

#endif
