// A value of any type that the interface passes generically: table cells, evidence, arguments of calls.
#ifndef SONDE_VALUE_H
#define SONDE_VALUE_H

#include <sonde/base.h>

#define SONDE_VALUE_NONE 0u
#define SONDE_VALUE_I64 1u
#define SONDE_VALUE_U64 2u
#define SONDE_VALUE_F64 3u
#define SONDE_VALUE_TEXT 4u    // as.text, NUL-terminated; `count` bytes without the NUL
#define SONDE_VALUE_BOOL 5u    // as.u64 is 0 or 1
#define SONDE_VALUE_BYTES 6u   // as.pointer, `count` bytes
#define SONDE_VALUE_I64S 7u    // as.pointer, `count` int64_t
#define SONDE_VALUE_F64S 8u    // as.pointer, `count` double
#define SONDE_VALUE_HANDLE 9u  // as.pointer, an object of the host or of a plugin

typedef union sonde_value_data_t {
  int64_t i64;
  uint64_t u64;
  double f64;
  const char *text;
  const void *pointer;
} sonde_value_data_t;

typedef struct sonde_value_t {
  uint32_t kind;  // SONDE_VALUE_*
  uint32_t reserved;
  uint64_t count;  // for TEXT, BYTES, I64S and F64S; for HANDLE the number of its name (reflect.h), 0: not checked
  sonde_value_data_t as;
} sonde_value_t;

#endif
