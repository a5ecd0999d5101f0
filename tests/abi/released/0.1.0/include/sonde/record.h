// Records: what a capture consists of.
//
// A record is a run of 8-byte words: this header, the fixed fields of its type, then variable data. It holds no
// pointers (a string is an interned id), so it can go to a file, to another process and back unchanged.
//
//   | size8 fixed8 space type | time | fixed fields ... | variable data ... |
//   0                         8      16                 8*fixed8            8*size8
//
// Evolution: a field is appended and fixed8 grows; readers ask SONDE_RECORD_HAS first. A changed meaning is a new
// type. Variable data is found through {uint32_t offset, count} fields: offset in bytes from the record's start.
#ifndef SONDE_RECORD_H
#define SONDE_RECORD_H

#include <sonde/base.h>

SONDE_BEGIN_DECLS

typedef struct sonde_record_t {
  uint16_t size8;   // whole record, in units of 8 bytes; at least 2
  uint16_t fixed8;  // header and fixed fields, in units of 8 bytes; at most size8
  uint16_t space;   // see schema.h; 0 is padding
  uint16_t type;    // within the space; 1 to 63
  uint64_t time;    // raw stamp in the clock of the batch; for an interval, its begin
} sonde_record_t;

// Where variable data of a record lies.
typedef struct sonde_span_t {
  uint32_t offset;  // bytes from the record's start, a multiple of 8; 0 when count is 0
  uint32_t count;   // elements
} sonde_span_t;

// An interned string: an index into the string table of the source that made the record. 0 is "".
typedef uint32_t sonde_string_t;

#define SONDE_RECORD_MAX_BYTES (8u * 65535u)

#define SONDE_RECORD_BYTES(record) ((uint32_t)(record)->size8 * 8u)

// True when the record carries `member` of the struct `type`.
#define SONDE_RECORD_HAS(record, type, member) \
  ((uint32_t)((const sonde_record_t *)(record))->fixed8 * 8u >= SONDE_NEED(type, member))

// Fills the header of a record struct that has no variable data.
#define SONDE_RECORD_INIT(pointer, space_id, type_id, stamp)        \
  do {                                                              \
    (pointer)->header.size8 = (uint16_t)(sizeof(*(pointer)) / 8u);  \
    (pointer)->header.fixed8 = (uint16_t)(sizeof(*(pointer)) / 8u); \
    (pointer)->header.space = (uint16_t)(space_id);                 \
    (pointer)->header.type = (uint16_t)(type_id);                   \
    (pointer)->header.time = (stamp);                               \
  } while (0)

// The stamp of the record clock: the cycle counter where the processor has one that runs at a constant rate.
// [signal-safe]
#if defined(__x86_64__)
static inline uint64_t sonde_stamp(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return ((uint64_t)high << 32) | low;
}
#elif defined(__aarch64__)
static inline uint64_t sonde_stamp(void) {
  uint64_t value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}
#else
#error "sonde_stamp needs a cycle counter: x86-64 and AArch64 are supported"
#endif

SONDE_END_DECLS

#endif
