// Service sonde.ranges/1: address ranges that allocators above the runtime hand out, at the moment they do.
//
// A framework's pool takes blocks from the runtime and cuts tensors out of them. Who watches device code needs to know
// the tensors at each launch, in step with the program, which records alone (delivered later) cannot give. So the
// allocator's adapter announces ranges here, on the thread that allocates and frees, and watchers are called at once.
// Announcing emits nothing: the same adapter emits sonde.memory or sonde.framework records for those who read captures.
#ifndef SONDE_RANGES_H
#define SONDE_RANGES_H

#include <sonde/base.h>
#include <sonde/record.h>

SONDE_BEGIN_DECLS

#define SONDE_RANGES_SERVICE "sonde.ranges/1"

#define SONDE_RANGE_TENSOR 1u  // a block that a framework's allocator handed out
#define SONDE_RANGE_POOL 2u    // memory that an allocator holds to hand out: only what lies in a tensor is in use

typedef struct sonde_range_t {
  uint32_t struct_size;
  uint32_t kind;  // SONDE_RANGE_*
  uint64_t address;
  uint64_t bytes;       // as asked for, without the allocator's rounding where that is known; not 0
  uint64_t ordinal;     // set by the host: counts announcements of the process from 1; identity over reuse of addresses
  uint32_t device;      // the runtime's number
  sonde_string_t name;  // interned, 0: none
} sonde_range_t;

typedef struct sonde_ranges_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // A range begins to live. One of the same kind at the same address ends the earlier one. *ordinal may be NULL.
  // SONDE_E_INVALID: no bytes, or past the end of the address space. While nobody watches, a call costs a load.
  // [any]
  sonde_status (*announce)(const sonde_range_t *range, uint64_t *ordinal);

  // It ends. SONDE_E_NOT_FOUND when no range of that kind begins at `address`: data about the allocator, no fault.
  // [any]
  sonde_status (*retire)(uint32_t kind, uint64_t address);

  // Calls `changed` for every live range now and for each change from then on (`live` 1: begins, 0: ends), one at a
  // time, on the thread that makes it; it must not call this service. Ranges announced while nobody watched are not
  // known. Ends by unwatch.
  // [control]
  sonde_status (*watch)(void (*changed)(void *user, const sonde_range_t *range, uint32_t live), void *user,
                        sonde_drop_user_t drop_user, uint64_t *watch);

  // No call is made after this returns. SONDE_E_NOT_FOUND.
  // [control]
  sonde_status (*unwatch)(uint64_t watch);

  // 1 while somebody watches, so that an adapter can spare itself the rest.
  // [signal-safe]
  uint32_t (*watched)(void);
} sonde_ranges_service_t;

SONDE_END_DECLS

#endif
