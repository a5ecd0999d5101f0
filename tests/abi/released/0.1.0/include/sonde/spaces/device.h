// Space sonde.device: what ran on an accelerator.
//
// `time` is the begin of the interval, `end` its end, both in the batch's clock. A launch owns any number of device
// records, joined by `correlation`; kernels of one stream may overlap (programmatic dependent launch). A record of a
// graph node carries (graph_exec, graph_node); its correlation is that of the graph's launch.
// `device`, `context` and `stream` are the runtime's own numbers, scoped by (source, session).
#ifndef SONDE_SPACES_DEVICE_H
#define SONDE_SPACES_DEVICE_H

#include <sonde/record.h>
#include <sonde/schema.h>

#define SONDE_DEVICE_KERNEL 1u
#define SONDE_DEVICE_COPY 2u
#define SONDE_DEVICE_SET 3u
#define SONDE_DEVICE_SYNC 4u
#define SONDE_DEVICE_GRAPH_LAUNCH 5u
#define SONDE_DEVICE_PAGE_FAULT 6u
#define SONDE_DEVICE_MIGRATION 7u
#define SONDE_DEVICE_THRASH 8u

typedef struct sonde_device_kernel_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t correlation;
  uint64_t stream;
  uint32_t context;
  uint32_t device;
  sonde_string_t name;      // as the runtime gives it (mangled names stay mangled)
  uint32_t graph_exec;      // 0: not from a graph
  uint64_t graph_node;      // 0: not from a graph
  uint32_t grid[3];         // blocks in x, y, z
  uint32_t block[3];        // threads in x, y, z
  uint32_t static_shared;   // bytes a block
  uint32_t dynamic_shared;  // bytes a block
  uint32_t registers;       // of a thread
  uint32_t local;           // local memory of a thread, bytes
  uint32_t cluster[3];      // blocks of a cluster in x, y, z; 0: no clusters
  uint32_t priority;        // stream priority as the runtime gives it, two's complement
} sonde_device_kernel_t;

// Values of `kind`: what lies at the two ends.
#define SONDE_COPY_UNKNOWN 0u
#define SONDE_COPY_HOST_TO_DEVICE 1u
#define SONDE_COPY_DEVICE_TO_HOST 2u
#define SONDE_COPY_DEVICE_TO_DEVICE 3u
#define SONDE_COPY_HOST_TO_HOST 4u
#define SONDE_COPY_PEER_TO_PEER 5u
#define SONDE_COPY_HOST_TO_ARRAY 6u
#define SONDE_COPY_ARRAY_TO_HOST 7u
#define SONDE_COPY_ARRAY_TO_ARRAY 8u
#define SONDE_COPY_ARRAY_TO_DEVICE 9u
#define SONDE_COPY_DEVICE_TO_ARRAY 10u

// Values of memory kinds here and in sonde.memory.
#define SONDE_MEMORY_UNKNOWN 0u
#define SONDE_MEMORY_PAGEABLE 1u
#define SONDE_MEMORY_PINNED 2u
#define SONDE_MEMORY_DEVICE 3u
#define SONDE_MEMORY_ARRAY 4u
#define SONDE_MEMORY_MANAGED 5u
#define SONDE_MEMORY_DEVICE_STATIC 6u
#define SONDE_MEMORY_MANAGED_STATIC 7u

typedef struct sonde_device_copy_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t correlation;
  uint64_t stream;
  uint32_t context;
  uint32_t device;
  uint64_t bytes;
  uint64_t graph_node;
  uint32_t graph_exec;
  uint32_t kind;                // SONDE_COPY_*
  uint32_t source_memory;       // SONDE_MEMORY_*
  uint32_t destination_memory;  // SONDE_MEMORY_*
  uint32_t flags;               // bit 0: asynchronous
  uint32_t peer_device;         // destination of a peer copy; equal to device otherwise
} sonde_device_copy_t;

typedef struct sonde_device_set_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t correlation;
  uint64_t stream;
  uint32_t context;
  uint32_t device;
  uint64_t bytes;
  uint64_t graph_node;
  uint32_t graph_exec;
  uint32_t memory;  // SONDE_MEMORY_*
  uint32_t value;   // the pattern
  uint32_t flags;   // bit 0: asynchronous
} sonde_device_set_t;

#define SONDE_SYNC_EVENT 1u
#define SONDE_SYNC_STREAM_WAIT_EVENT 2u
#define SONDE_SYNC_STREAM 3u
#define SONDE_SYNC_CONTEXT 4u

// A synchronisation as the runtime saw it.
typedef struct sonde_device_sync_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t correlation;
  uint64_t stream;  // UINT64_MAX: not of one stream
  uint32_t context;
  uint32_t kind;  // SONDE_SYNC_*
  uint64_t event;
} sonde_device_sync_t;

// A graph's launch as one interval on the device (where nodes are not traced one by one).
typedef struct sonde_device_graph_launch_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t correlation;
  uint64_t stream;
  uint32_t context;
  uint32_t device;
  uint32_t graph_exec;
  uint32_t reserved;
} sonde_device_graph_launch_t;

// Managed memory: a group of page faults of a processor.
typedef struct sonde_device_page_fault_t {
  sonde_record_t header;
  uint64_t end;      // 0: a moment
  uint64_t address;  // of the first fault
  uint64_t count;    // faults in the group
  uint64_t process;
  uint32_t processor;  // device number, or UINT32_MAX for the CPU
  uint32_t access;     // 0 unknown, 1 read, 2 write, 3 atomic, 4 prefetch
} sonde_device_page_fault_t;

// Managed memory: pages moved.
typedef struct sonde_device_migration_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t address;
  uint64_t bytes;
  uint64_t process;
  uint32_t source;       // device number, or UINT32_MAX for the CPU
  uint32_t destination;  // device number, or UINT32_MAX for the CPU
  uint32_t cause;        // 0 unknown, 1 on access, 2 prefetch, 3 eviction, 4 access counters, 5 coherence
  uint32_t reserved;
} sonde_device_migration_t;

// Managed memory: pages that move back and forth.
typedef struct sonde_device_thrash_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t address;
  uint64_t bytes;
  uint64_t process;
  uint32_t processor;  // device number, or UINT32_MAX for the CPU
  uint32_t action;     // 0 seen, 1 throttled, 2 mapped remotely
} sonde_device_thrash_t;

#endif
