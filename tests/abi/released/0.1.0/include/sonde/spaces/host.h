// Space sonde.host: calls of a runtime's or a driver's functions by the program.
//
// A call is one CALL record once it has ended, or a pair CALL_BEGIN and CALL_END where both moments are seen as
// they pass. A begin without an end is a call that had not returned when the capture ended.
#ifndef SONDE_SPACES_HOST_H
#define SONDE_SPACES_HOST_H

#include <sonde/record.h>
#include <sonde/schema.h>

#define SONDE_HOST_CALL 1u
#define SONDE_HOST_CALL_BEGIN 2u
#define SONDE_HOST_CALL_END 3u

typedef struct sonde_host_call_t {
  sonde_record_t header;
  uint64_t end;             // raw stamp; 0: not measured
  uint64_t thread;          // system's thread id
  uint64_t correlation;     // joins the call with its device records; 0: none
  sonde_string_t function;  // "cudaLaunchKernel"
  sonde_string_t domain;    // "cuda.runtime", "cuda.driver", "hip", ...
  int32_t result;           // the function's own result code; 0: success
  uint32_t reserved;
} sonde_host_call_t;

typedef struct sonde_host_call_begin_t {
  sonde_record_t header;
  uint64_t thread;
  uint64_t correlation;
  sonde_string_t function;
  sonde_string_t domain;
  uint64_t context;  // 0: unknown
  uint64_t stream;   // 0: unknown or none
} sonde_host_call_begin_t;

typedef struct sonde_host_call_end_t {
  sonde_record_t header;
  uint64_t thread;
  uint64_t correlation;
  int32_t result;
  uint32_t reserved;
} sonde_host_call_end_t;

#endif
