// Space sonde.sample: what was sampled or counted rather than traced: instructions with stall reasons, and hardware
// counters.
//
// PC sampling: every so many cycles the hardware looks at a warp of each scheduler and notes its next instruction and
// why the scheduler did or did not issue it. A PC record is a sum over the window [time, end]: samples of one
// instruction with one stall reason. Records of the same key in other windows add up. What the hardware dropped is in
// WINDOW, and in the session's loss ledger (cause vendor).
#ifndef SONDE_SPACES_SAMPLE_H
#define SONDE_SPACES_SAMPLE_H

#include <sonde/record.h>
#include <sonde/schema.h>

#define SONDE_SAMPLE_STALL_REASON 1u
#define SONDE_SAMPLE_PC 2u
#define SONDE_SAMPLE_WINDOW 3u
#define SONDE_SAMPLE_LINE 4u
#define SONDE_SAMPLE_COUNTER 5u

// A stall reason that the device distinguishes. Two of the vendor's reasons may share one `stall`: samples where the
// scheduler issued some other warp, and those where it issued nothing.
typedef struct sonde_sample_stall_reason_t {
  sonde_record_t header;
  uint32_t index;         // the vendor's
  uint32_t context;       // it was asked in
  sonde_string_t stall;   // "long_scoreboard", as PC records name it
  sonde_string_t vendor;  // the vendor's full name
  uint32_t flags;         // bit 0: counts samples in which the scheduler issued nothing
  uint32_t reserved;
} sonde_sample_stall_reason_t;

// Samples of one instruction with one stall reason.
typedef struct sonde_sample_pc_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t module;          // hash of the code object, as sonde.object.module and .code have it
  uint64_t pc;              // bytes from the begin of the function
  uint64_t correlation;     // the launch, where kernels are sampled one at a time; otherwise 0
  uint64_t samples;         // all samples of the instruction with this reason
  uint64_t latency;         // those of them in which the scheduler issued nothing: latency that nothing hid
  sonde_string_t function;  // as the compiler names it
  sonde_string_t stall;     // why the warp was not issued; "selected": it was
  uint32_t function_index;  // in the code object's symbol table
  uint32_t context;
  uint32_t device;
  uint32_t flags;  // bit 0: `module` is the vendor's checksum, because the module was loaded before the port looked
} sonde_sample_pc_t;

#define SONDE_SAMPLE_CONTINUOUS 1u  // kernels overlap as they would
#define SONDE_SAMPLE_RANGES 2u      // continuous, switched on and off
#define SONDE_SAMPLE_SERIALIZED 3u  // one kernel at a time

// What sampling of one context gave in a window, and what it lost.
typedef struct sonde_sample_window_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t samples;   // all, with those of kernels of the driver and the dropped ones
  uint64_t recorded;  // sum of `samples` of the PC records of this window
  uint64_t dropped;   // by the hardware
  uint64_t foreign;   // of kernels that the program did not write
  uint64_t pcs;       // instructions with samples
  uint64_t range;     // the vendor's number of the range
  uint32_t context;
  uint32_t device;
  uint32_t period_log2;  // a sample every 2^n cycles of each multiprocessor; 0: the vendor's choice, unknown
  uint32_t mode;         // SONDE_SAMPLE_CONTINUOUS, ...
  uint32_t flags;        // bit 0: the hardware's buffer was full
  uint32_t reserved;
} sonde_sample_window_t;

// Where a sampled instruction comes from, once for each (module, function, pc) of a session.
typedef struct sonde_sample_line_t {
  sonde_record_t header;
  uint64_t module;
  uint64_t pc;
  sonde_string_t function;
  sonde_string_t file;
  uint32_t line;
  uint32_t reserved;
  sonde_span_t frames;  // sonde_string_t each, "file:line@function": innermost first, then what it was inlined into
} sonde_sample_line_t;

#define SONDE_COUNTER_KERNEL_REPLAY 1u  // the runtime repeats each kernel, once for each pass

// The value of one metric over one kernel launch.
typedef struct sonde_sample_counter_t {
  sonde_record_t header;
  uint64_t end;
  uint64_t launch;       // counts the context's kernel launches from 1: joins runs of one program
  uint64_t correlation;  // of the launch, 0: unknown
  double value;
  sonde_string_t function;
  sonde_string_t metric;  // the vendor's full name
  sonde_string_t unit;    // the vendor's word, "" when it gives none
  uint32_t context;
  uint32_t device;
  uint32_t passes;  // that the whole list of metrics needs
  uint32_t replay;  // SONDE_COUNTER_*
  uint32_t reserved;
} sonde_sample_counter_t;

#endif
