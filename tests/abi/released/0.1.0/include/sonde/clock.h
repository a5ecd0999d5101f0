// Clocks: how a raw stamp becomes nanoseconds.
//
// ns = base_ns + ((raw - base_raw) * multiplier >> shift), the difference signed, the product 128 bits wide. The
// result counts from 1970 (UTC). A batch carries the clock of its records; a session refines its clocks while it
// runs, so two batches may carry different lines for the same clock id, continuous to within the calibration error.
#ifndef SONDE_CLOCK_H
#define SONDE_CLOCK_H

#include <sonde/base.h>

SONDE_BEGIN_DECLS

#define SONDE_CLOCK_STAMP 0u           // sonde_stamp() of this machine
#define SONDE_CLOCK_UNIX_NS 1u         // already ns since 1970
#define SONDE_CLOCK_MONOTONIC_NS 2u    // CLOCK_MONOTONIC
#define SONDE_CLOCK_FIRST_FOREIGN 16u  // clocks that a port describes by pairs

typedef struct sonde_clock_t {
  uint32_t struct_size;
  uint32_t id;        // SONDE_CLOCK_*
  uint64_t base_raw;  // raw stamp of the base point
  int64_t base_ns;    // ns since 1970 of the base point
  uint64_t multiplier;
  uint32_t shift;      // 0 to 63
  uint32_t error_ppb;  // estimated error of the slope, parts per 10^9
} sonde_clock_t;

__extension__ typedef __int128 sonde_wide_t;

// Length in ns of an interval of raw stamps; negative when end lies before begin.
// [signal-safe]
static inline int64_t sonde_clock_duration_ns(const sonde_clock_t *clock, uint64_t begin, uint64_t end) {
  const sonde_wide_t product = (sonde_wide_t)(int64_t)(end - begin) * (sonde_wide_t)clock->multiplier;
  return (int64_t)(product >> clock->shift);
}

// ns since 1970 of a raw stamp.
// [signal-safe]
static inline int64_t sonde_clock_ns(const sonde_clock_t *clock, uint64_t raw) {
  // Stamps that make no sense wrap around instead of being undefined.
  return (int64_t)((uint64_t)clock->base_ns + (uint64_t)sonde_clock_duration_ns(clock, clock->base_raw, raw));
}

SONDE_END_DECLS

#endif
