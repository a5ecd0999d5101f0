// Space sonde.framework: what the program above the runtime says it is doing.
//
// Scopes and operators nest per thread and are matched by identity where one is given (`scope` not 0), else by
// order. A pop without a push is data. A range may end on another thread than it began; its id joins both.
#ifndef SONDE_SPACES_FRAMEWORK_H
#define SONDE_SPACES_FRAMEWORK_H

#include <sonde/record.h>
#include <sonde/schema.h>

#define SONDE_FRAMEWORK_OPERATOR_BEGIN 1u
#define SONDE_FRAMEWORK_OPERATOR_END 2u
#define SONDE_FRAMEWORK_SCOPE_PUSH 3u
#define SONDE_FRAMEWORK_SCOPE_POP 4u
#define SONDE_FRAMEWORK_RANGE_START 5u
#define SONDE_FRAMEWORK_RANGE_END 6u
#define SONDE_FRAMEWORK_MARK 7u
#define SONDE_FRAMEWORK_METRIC 8u
#define SONDE_FRAMEWORK_TENSOR_ALLOCATE 9u
#define SONDE_FRAMEWORK_TENSOR_FREE 10u
#define SONDE_FRAMEWORK_COMPILE 11u

// Shared by OPERATOR_BEGIN, SCOPE_PUSH, RANGE_START and MARK.
typedef struct sonde_framework_scope_t {
  sonde_record_t header;
  uint64_t scope;   // identity; 0: matched by order on the thread
  uint64_t thread;  // system's thread id
  sonde_string_t name;
  sonde_string_t domain;    // "nvtx:torch", "python", ""
  sonde_string_t category;  // "" when none
  uint32_t color;           // 0xAARRGGBB, 0: none
  uint64_t payload;         // bits of the payload, as `payload_kind` says
  uint32_t payload_kind;    // 0 none, 1 unsigned, 2 signed, 3 double
  uint32_t reserved;
} sonde_framework_scope_t;

// Shared by OPERATOR_END, SCOPE_POP and RANGE_END.
typedef struct sonde_framework_scope_end_t {
  sonde_record_t header;
  uint64_t scope;
  uint64_t thread;
  sonde_string_t domain;
  uint32_t reserved;
} sonde_framework_scope_end_t;

// A number that belongs to the scope open on the thread.
typedef struct sonde_framework_metric_t {
  sonde_record_t header;
  uint64_t thread;
  double value;
  sonde_string_t name;
  sonde_string_t unit;
  uint32_t rule;  // 0 summed upwards (inclusive), 1 summed here only (exclusive), 2 property: the last one stands
  uint32_t reserved;
} sonde_framework_metric_t;

// Shared by TENSOR_ALLOCATE and TENSOR_FREE: the framework's own allocator.
typedef struct sonde_framework_tensor_t {
  sonde_record_t header;
  uint64_t address;
  uint64_t bytes;           // of this block; negative change is a TENSOR_FREE
  uint64_t allocated;       // the allocator's total after this event, bytes; 0: unknown
  uint64_t reserved_bytes;  // held from the device after this event; 0: unknown
  uint64_t thread;
  uint32_t device;
  sonde_string_t name;
} sonde_framework_tensor_t;

// A compilation by the framework: a graph break, a recompilation, a kernel built.
typedef struct sonde_framework_compile_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t thread;
  uint32_t kind;  // 0 compile, 1 recompile, 2 graph break, 3 cache hit
  sonde_string_t name;
  sonde_string_t reason;
  uint32_t reserved;
} sonde_framework_compile_t;

#endif
