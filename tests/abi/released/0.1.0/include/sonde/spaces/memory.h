// Space sonde.memory: the life of address ranges.
//
// The identity of a range is (address, lifetime): an address that is used again is another allocation. A free names
// the address only; one that matches no live allocation is data, not an error. SONDE_MEMORY_* kinds: device.h.
#ifndef SONDE_SPACES_MEMORY_H
#define SONDE_SPACES_MEMORY_H

#include <sonde/record.h>
#include <sonde/schema.h>
#include <sonde/spaces/device.h>

#define SONDE_MEMORY_ALLOCATE 1u
#define SONDE_MEMORY_FREE 2u
#define SONDE_MEMORY_POOL_CREATE 3u
#define SONDE_MEMORY_POOL_DESTROY 4u
#define SONDE_MEMORY_POOL_TRIM 5u
#define SONDE_MEMORY_SUB_ALLOCATE 6u
#define SONDE_MEMORY_SUB_FREE 7u
#define SONDE_MEMORY_MAP 8u
#define SONDE_MEMORY_UNMAP 9u
#define SONDE_MEMORY_ADVISE 10u
#define SONDE_MEMORY_PREFETCH 11u

// Shared by ALLOCATE and SUB_ALLOCATE (a block that a framework's allocator hands out of a larger one).
typedef struct sonde_memory_allocate_t {
  sonde_record_t header;
  uint64_t address;
  uint64_t bytes;
  uint64_t pool;         // pool's identity, 0: none
  uint64_t stream;       // for stream-ordered allocations, otherwise 0
  uint64_t correlation;  // the call that asked for it, 0: unknown
  uint32_t context;
  uint32_t device;
  uint32_t kind;             // SONDE_MEMORY_*
  uint32_t flags;            // bit 0: stream-ordered, bit 1: from a pool
  sonde_string_t name;       // variable or tensor, "" when unknown
  sonde_string_t call_path;  // "" when not collected
} sonde_memory_allocate_t;

// Shared by FREE and SUB_FREE.
typedef struct sonde_memory_free_t {
  sonde_record_t header;
  uint64_t address;
  uint64_t bytes;  // 0: unknown
  uint64_t pool;
  uint64_t stream;
  uint64_t correlation;
  uint32_t context;
  uint32_t device;
  uint32_t kind;
  uint32_t flags;  // bit 0: stream-ordered, bit 1: to a pool
} sonde_memory_free_t;

// Shared by POOL_CREATE, POOL_DESTROY and POOL_TRIM: the pool's state at `time`.
typedef struct sonde_memory_pool_t {
  sonde_record_t header;
  uint64_t pool;
  uint64_t reserved_bytes;     // held from the device
  uint64_t used_bytes;         // handed out
  uint64_t release_threshold;  // bytes kept when trimmed
  uint32_t device;
  uint32_t kind;  // 0 local, 1 imported
} sonde_memory_pool_t;

// Shared by MAP and UNMAP (virtual memory management).
typedef struct sonde_memory_map_t {
  sonde_record_t header;
  uint64_t address;
  uint64_t bytes;
  uint64_t correlation;
  uint32_t context;
  uint32_t device;
} sonde_memory_map_t;

// Shared by ADVISE and PREFETCH of managed memory.
typedef struct sonde_memory_advise_t {
  sonde_record_t header;
  uint64_t address;
  uint64_t bytes;
  uint64_t stream;
  uint64_t correlation;
  int32_t device;   // target; -1: the CPU
  uint32_t advice;  // the runtime's own number; 0 for a prefetch
} sonde_memory_advise_t;

#endif
