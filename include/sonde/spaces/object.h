// Space sonde.object: things that other records refer to.
#ifndef SONDE_SPACES_OBJECT_H
#define SONDE_SPACES_OBJECT_H

#include <sonde/record.h>
#include <sonde/schema.h>

#define SONDE_OBJECT_MODULE 1u
#define SONDE_OBJECT_FUNCTION 2u
#define SONDE_OBJECT_TENSOR 3u
#define SONDE_OBJECT_NAME 4u
#define SONDE_OBJECT_CALL_PATH 5u
#define SONDE_OBJECT_DEVICE 6u
#define SONDE_OBJECT_CONTEXT 7u
#define SONDE_OBJECT_STREAM 8u
#define SONDE_OBJECT_GRAPH 9u
#define SONDE_OBJECT_CODE 10u

typedef struct sonde_object_module_t {
  sonde_record_t header;
  uint64_t module;  // the runtime's identity
  uint64_t bytes;   // size of the code object
  uint64_t hash;    // XXH3-64 of the code object, 0: not read
  uint32_t context;
  uint32_t state;  // 0 loaded, 1 unloaded
} sonde_object_module_t;

typedef struct sonde_object_function_t {
  sonde_record_t header;
  uint64_t module;
  uint64_t function;    // the runtime's identity
  sonde_string_t name;  // as the runtime gives it
  uint32_t context;
} sonde_object_function_t;

typedef struct sonde_object_tensor_t {
  sonde_record_t header;
  uint64_t tensor;   // identity, 0: none
  uint64_t address;  // first byte of the data
  uint64_t bytes;    // of the storage that the tensor spans
  sonde_string_t name;
  sonde_string_t dtype;  // "float32", "bfloat16", ...
  sonde_span_t shape;    // int64, elements
  sonde_span_t strides;  // int64, elements
  sonde_string_t role;   // "parameter", "gradient", "activation", "" when unknown
  uint32_t device;
} sonde_object_tensor_t;

#define SONDE_NAMED_THREAD 1u
#define SONDE_NAMED_STREAM 2u
#define SONDE_NAMED_CONTEXT 3u
#define SONDE_NAMED_DEVICE 4u
#define SONDE_NAMED_EVENT 5u
#define SONDE_NAMED_ADDRESS 6u

// A name that the program gave to something.
typedef struct sonde_object_name_t {
  sonde_record_t header;
  uint64_t object;
  uint32_t kind;  // SONDE_NAMED_*
  sonde_string_t name;
} sonde_object_name_t;

// A call path, innermost frame first; other records refer to it by `path`.
typedef struct sonde_object_call_path_t {
  sonde_record_t header;
  uint64_t path;
  sonde_span_t frames;  // sonde_string_t each, "file:line@function" or "module+0xoffset"
} sonde_object_call_path_t;

typedef struct sonde_object_device_t {
  sonde_record_t header;
  uint64_t memory_bytes;
  uint64_t memory_bandwidth;  // bytes per second, 0: unknown
  uint32_t device;
  sonde_string_t name;
  sonde_string_t uuid;
  sonde_string_t runtime;  // "cuda", "hip", "opencl", "host"
  uint32_t capability_major;
  uint32_t capability_minor;
  uint32_t processors;      // streaming multiprocessors or compute units
  uint32_t warp;            // threads of a warp or wave
  uint32_t core_clock_khz;  // maximum
  uint32_t l2_bytes;
} sonde_object_device_t;

typedef struct sonde_object_context_t {
  sonde_record_t header;
  uint32_t context;
  uint32_t device;
  uint64_t null_stream;  // the runtime's number of the default stream
} sonde_object_context_t;

typedef struct sonde_object_stream_t {
  sonde_record_t header;
  uint64_t stream;
  uint32_t context;
  int32_t priority;
  uint32_t flags;  // bit 0: default stream, bit 1: non-blocking
  uint32_t state;  // 0 made, 1 destroyed
} sonde_object_stream_t;

// A graph made executable, cloned from `source` or destroyed. Ids may be used again after their end.
typedef struct sonde_object_graph_t {
  sonde_record_t header;
  uint64_t graph;
  uint64_t source;
  uint32_t graph_exec;  // 0: a template
  uint32_t state;       // 0 made, 1 destroyed
  uint32_t nodes;       // 0: unknown
  uint32_t reserved;
} sonde_object_graph_t;

// A piece of a code object (a cubin). Its pieces come in any order, each once for a session; they are complete when
// their sizes add up to `bytes`.
typedef struct sonde_object_code_t {
  sonde_record_t header;
  uint64_t hash;    // XXH3-64 of the whole, as sonde_object_module_t has it
  uint64_t bytes;   // of the whole
  uint64_t offset;  // of this piece in the whole
  sonde_span_t data;
} sonde_object_code_t;

#endif
