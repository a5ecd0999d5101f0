// Spaces and schemas: how records describe themselves.
//
// A space is a vocabulary of record types, registered by name ("sonde.device", "com.example.render"). Its schema
// lists the fields of each type; the reader in C, Lua, Python, SQL and the dump tool all read that one list.
// Built-in spaces have the fixed numbers below; others receive a number from 64 on, valid within one process, and
// their name is what identifies them in a file.
#ifndef SONDE_SCHEMA_H
#define SONDE_SCHEMA_H

#include <sonde/base.h>
#include <sonde/record.h>

SONDE_BEGIN_DECLS

#define SONDE_SPACE_SESSION 1u
#define SONDE_SPACE_HOST 2u
#define SONDE_SPACE_DEVICE 3u
#define SONDE_SPACE_MEMORY 4u
#define SONDE_SPACE_OBJECT 5u
#define SONDE_SPACE_FRAMEWORK 6u
#define SONDE_SPACE_ACCESS 7u
#define SONDE_SPACE_SAMPLE 8u
#define SONDE_SPACE_TILE 9u
#define SONDE_SPACE_COMM 10u
#define SONDE_SPACE_FIRST_DYNAMIC 64u
#define SONDE_SPACE_COUNT 256u  // numbers are below this

#define SONDE_TYPE_COUNT 64u  // record types of a space are 1 to 63

// How a field's bytes are read.
#define SONDE_KIND_UINT 1u          // unsigned integer of `width` bytes
#define SONDE_KIND_INT 2u           // signed integer of `width` bytes
#define SONDE_KIND_FLOAT 3u         // IEEE 754, width 4 or 8
#define SONDE_KIND_STRING 4u        // sonde_string_t, width 4
#define SONDE_KIND_TIME 5u          // raw stamp in the batch's clock, width 8
#define SONDE_KIND_ADDRESS 6u       // device or host address, width 8
#define SONDE_KIND_ENUM 7u          // unsigned; `names` holds the words, separated by '|', for values 0, 1, ...
#define SONDE_KIND_FLAGS 8u         // unsigned; `names` holds the words for bits 0, 1, ...
#define SONDE_KIND_ID 9u            // unsigned identity, scoped by (source, session); arithmetic is meaningless
#define SONDE_KIND_SPAN_UINT 10u    // sonde_span_t of uint64_t
#define SONDE_KIND_SPAN_INT 11u     // sonde_span_t of int64_t
#define SONDE_KIND_SPAN_FLOAT 12u   // sonde_span_t of double
#define SONDE_KIND_SPAN_STRING 13u  // sonde_span_t of sonde_string_t
#define SONDE_KIND_SPAN_BYTES 14u   // sonde_span_t of uint8_t

typedef struct sonde_field_t {
  const char *name;   // snake_case, unique in its type
  uint32_t offset;    // bytes from the record's start; at least 16
  uint32_t width;     // bytes: 1, 2, 4 or 8; spans have 8
  uint32_t kind;      // SONDE_KIND_*
  uint32_t reserved;  // 0
  const char *unit;   // "ns", "bytes", "" ; never NULL
  const char *names;  // for ENUM and FLAGS, otherwise ""
} sonde_field_t;

typedef struct sonde_record_type_t {
  uint32_t type;         // 1 to 63
  uint32_t fixed_bytes;  // header and fixed fields
  const char *name;      // snake_case, unique in its space
  const char *help;      // one line
  const sonde_field_t *fields;
  uint32_t field_count;
  uint32_t field_stride;  // sizeof(sonde_field_t) of the writer
} sonde_record_type_t;

typedef struct sonde_schema_t {
  uint32_t struct_size;
  uint32_t type_count;
  const char *space;  // dotted name
  const char *help;   // one line
  const sonde_record_type_t *types;
  uint32_t type_stride;  // sizeof(sonde_record_type_t) of the writer
  uint32_t reserved;     // 0
} sonde_schema_t;

// One field of a schema: SONDE_FIELD(sonde_kernel_record_t, end, SONDE_KIND_TIME, "", "").
#define SONDE_FIELD(record, member, kind, unit, names) \
  { #member, (uint32_t)offsetof(record, member), (uint32_t)sizeof(((record *)0)->member), kind, 0, unit, names }

SONDE_END_DECLS

#endif
