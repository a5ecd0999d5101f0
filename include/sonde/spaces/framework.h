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
#define SONDE_FRAMEWORK_COMPILED_KERNEL 12u

// Shared by SCOPE_PUSH, RANGE_START and MARK; OPERATOR_BEGIN continues it.
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

#define SONDE_LINK_NONE 0u
#define SONDE_LINK_FORWARD 1u   // `sequence` numbers the autograd node that the operator may make
#define SONDE_LINK_BACKWARD 2u  // `sequence` numbers the autograd node that the operator runs

// OPERATOR_BEGIN: begins like sonde_framework_scope_t; writers that know less emit only that.
//
// Of the operators of `forward_thread` with one `sequence` and a forward link, the one that began last before the
// backward operator made its node: those around it carry the number too.
typedef struct sonde_framework_operator_t {
  sonde_record_t header;
  uint64_t scope;
  uint64_t thread;
  sonde_string_t name;
  sonde_string_t domain;
  sonde_string_t category;
  uint32_t color;
  uint64_t payload;
  uint32_t payload_kind;
  uint32_t link;             // SONDE_LINK_*
  uint64_t sequence;         // the framework's number, as `link` says
  uint64_t forward_thread;   // system's id of the thread that made the node of a backward operator, 0: unknown
  uint64_t call_path;        // `path` of a sonde.object call_path, 0: not collected
  sonde_span_t input_types;  // sonde_string_t each input: "float32", "int", "float32[]", "" for none
  // For each input, uint64: which argument it belongs to. The tensors of a list follow the list as inputs of the same
  // argument.
  sonde_span_t input_arguments;
  sonde_span_t input_ranks;   // int64 each input: number of its dimensions; -1: it has no shape
  sonde_span_t input_shapes;  // int64: the dimensions of all inputs that have some, one after another
} sonde_framework_operator_t;

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
  uint64_t bytes;           // of this block, as asked for; negative change is a TENSOR_FREE
  uint64_t allocated;       // the allocator's total after this event, bytes; 0: unknown
  uint64_t reserved_bytes;  // held from the device after this event; 0: unknown
  uint64_t thread;
  uint32_t device;      // the runtime's number, UINT32_MAX: the host
  sonde_string_t name;  // the allocator: "cuda", "cpu"
  uint64_t pool;        // identity of the pool that the block comes from, 0: the common one
  uint64_t stream;      // that it was allocated for, 0: the default one
  uint64_t scope;       // of the operator or scope that was open on the thread, 0: none
  uint32_t flags;       // bit 0: it lived before the capture began
  uint32_t reserved;
} sonde_framework_tensor_t;

// A compilation by the framework: a graph break, a recompilation, a kernel built.
typedef struct sonde_framework_compile_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t thread;
  uint32_t kind;          // 0 compile, 1 recompile, 2 graph break, 3 cache hit
  sonde_string_t name;    // the function
  sonde_string_t reason;  // why it broke; the guards that failed
  uint32_t reserved;
  sonde_string_t file;  // of the function, or where it broke
  uint32_t line;
  sonde_string_t id;  // the framework's: "0/1" is the second compilation of its first frame
  uint32_t attempt;   // the framework starts a compilation again after a graph break
} sonde_framework_compile_t;

// A kernel that the framework's compiler generated, and what it was made from.
typedef struct sonde_framework_compiled_kernel_t {
  sonde_record_t header;
  uint64_t thread;
  sonde_string_t name;
  sonde_string_t id;       // of the compilation
  sonde_span_t operators;  // sonde_string_t each: "aten.add"
  sonde_span_t sources;    // sonde_string_t each: "file:line: code"
} sonde_framework_compiled_kernel_t;

#endif
