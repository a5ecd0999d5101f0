// Service sonde.columns/1: compiled operations on a field of every record of a batch.
//
// A script or a binding that would read field by field asks for a column once and reduces whole batches. Besides the
// fields of the schema these names exist for every type: "time_ns" (ns since 1970, repaired), and for types with an
// `end` field "end_ns" and "duration" (ns; 0 where repaired, where the end is 0, and where it lies before the begin);
// "time" is the raw stamp; "stream_id" and "source_id" are the batch's own.
#ifndef SONDE_COLUMNS_H
#define SONDE_COLUMNS_H

#include <sonde/base.h>
#include <sonde/delivery.h>

SONDE_BEGIN_DECLS

#define SONDE_COLUMNS_SERVICE "sonde.columns/1"

// Made by `find`; plain data, copy it freely.
typedef struct sonde_column_t {
  uint32_t struct_size;
  uint16_t space;
  uint16_t type;
  uint32_t offset;
  uint32_t width;
  uint32_t kind;     // SONDE_KIND_*
  uint32_t derived;  // 0: a field; otherwise the host's number of a derived name
} sonde_column_t;

typedef struct sonde_reduction_t {
  uint32_t struct_size;
  uint32_t exact;  // 1: every value was an integer and no sum overflowed; then sum_i64 and min/max_i64 hold
  uint64_t count;  // records of the type that have the field
  int64_t sum_i64;
  int64_t min_i64;
  int64_t max_i64;
  uint32_t unsigned_values;  // 1: read the three above as uint64_t
  uint32_t reserved;
  double sum;
  double min;
  double max;
} sonde_reduction_t;

// Groups gathered over many batches; made by group_open.
typedef struct sonde_groups_t sonde_groups_t;

typedef struct sonde_group_row_t {
  uint64_t key;     // raw bits of the key field (sign-extended for INT)
  uint32_t source;  // scope of the key when it is a string or an id
  uint32_t reserved;
  sonde_reduction_t value;
} sonde_group_row_t;

typedef struct sonde_columns_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // A column by name: ("sonde.device", "kernel", "duration"). SONDE_E_NOT_FOUND lists what there is.
  // [any]
  sonde_status (*find)(const char *space, const char *type, const char *field, sonde_column_t *out);

  // Adds a batch to a reduction (zero it and set struct_size before the first). SONDE_E_TYPE: strings and identities
  // have no sum.
  // [any]
  sonde_status (*reduce)(const sonde_batch_t *batch, const sonde_column_t *column, sonde_reduction_t *out);

  // Copies values of up to `capacity` records, converted to int64 or double; *count is how many the batch has. An
  // unsigned value above INT64_MAX keeps its bits; a floating one is cut towards zero and kept within the range.
  // [any]
  sonde_status (*gather_i64)(const sonde_batch_t *batch, const sonde_column_t *column, int64_t *values,
                             uint64_t capacity, uint64_t *count);
  sonde_status (*gather_f64)(const sonde_batch_t *batch, const sonde_column_t *column, double *values,
                             uint64_t capacity, uint64_t *count);

  // Groups `value` by `key`; both belong to the same type. Strings of different sources are kept apart.
  // SONDE_E_TYPE: the key is a time or a floating-point field, or the value an identity. group_add: SONDE_E_FULL past
  // 2^22 groups.
  // [any], one thread at a time per object
  sonde_status (*group_open)(const sonde_column_t *key, const sonde_column_t *value, sonde_groups_t **out);
  sonde_status (*group_add)(sonde_groups_t *groups, const sonde_batch_t *batch);
  // Rows sorted by source, then key; valid until the next call on the same object.
  sonde_status (*group_rows)(sonde_groups_t *groups, const sonde_group_row_t **rows, uint64_t *count);
  sonde_status (*group_close)(sonde_groups_t *groups);
  // Groups so far; does not sort.
  sonde_status (*group_count)(sonde_groups_t *groups, uint64_t *out);
} sonde_columns_service_t;

SONDE_END_DECLS

#endif
