// Space sonde.access: what device code did to memory.
//
// A port that watches device code makes one LAUNCH record for each kernel launch it saw, watched or not, and after it
// what the session's demand asks for, by the cheapest means; and a TRANSFER for each copy and set of the host. A launch is named by `launch`, an ordinal of the source;
// SONDE_ACCESS_OBJECT, _PAGES, _INTERVALS, _INSTRUCTION, _WARPS, _INVALID and _EVENTS carry it. Counts are exact for
// what was watched; what was left out is in the launch's `kernel_period`, `block_period`, `flags` and `dropped`.
// A thread's access counts once whatever its width; `bytes` is what the threads asked for.
#ifndef SONDE_SPACES_ACCESS_H
#define SONDE_SPACES_ACCESS_H

#include <sonde/record.h>
#include <sonde/schema.h>

#define SONDE_ACCESS_LAUNCH 1u
#define SONDE_ACCESS_OBJECT 2u
#define SONDE_ACCESS_PAGES 3u
#define SONDE_ACCESS_INTERVALS 4u
#define SONDE_ACCESS_INSTRUCTION 5u
#define SONDE_ACCESS_WARPS 6u
#define SONDE_ACCESS_INVALID 7u
#define SONDE_ACCESS_EVENTS 8u
#define SONDE_ACCESS_TRANSFER 9u

// Bits of a launch's `flags`.
#define SONDE_LAUNCH_WATCHED 0x1u        // device code was patched and reported
#define SONDE_LAUNCH_SKIPPED 0x2u        // left out by sampling or by a filter
#define SONDE_LAUNCH_INCOMPLETE 0x4u     // copies that cannot be watched (tensor maps) ran: counts are lower bounds
#define SONDE_LAUNCH_UNPATCHED 0x8u      // its module could not be patched
#define SONDE_LAUNCH_DEVICE_GRAPH 0x10u  // launched by device code: nothing is known of its accesses
#define SONDE_LAUNCH_RANGES_CUT 0x20u    // more live ranges than the table takes
#define SONDE_LAUNCH_PAGES_CUT 0x40u     // no room for the bitmap of some pages: intervals are incomplete
#define SONDE_LAUNCH_UNFINISHED 0x80u    // the session ended before the kernel did
#define SONDE_LAUNCH_SHARED 0x200u       // counted together with another launch, see `counted_in`
#define SONDE_LAUNCH_STATE_FULL 0x100u   // no state was free: not watched

// `time` is the host's stamp of the launch. Follows nothing; its results follow it.
typedef struct sonde_access_launch_t {
  sonde_record_t header;
  uint64_t launch;
  uint64_t readable;        // host stamp when the results had been read, 0: never
  uint64_t correlation;     // the runtime's number of the launch, 0: unknown
  uint64_t stream;          // the runtime's handle
  uint64_t graph_node;      // 0: not from a graph
  uint64_t module;          // joins sonde.object.module
  uint64_t function_begin;  // first program counter of the function, 0: unknown
  uint64_t accesses;        // thread accesses watched, global memory
  uint64_t outside;         // of these, in no live range; where checks alone run, all that are wrong
  uint64_t dropped;         // records that found no room; the drop is in the ledger too
  uint32_t context;
  uint32_t device;
  uint32_t graph_exec;  // 0: not from a graph
  sonde_string_t name;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t kernel_period;  // this launch stands for so many of its kernel
  uint32_t block_period;   // one block of so many was watched
  uint32_t ranges;         // live ranges in the table
  uint32_t flags;          // SONDE_LAUNCH_*
  uint64_t counted_in;  // the launch whose records hold this one's counts, 0: its own. Nodes of one graph launch that
                        // run the same function cannot be told apart
} sonde_access_launch_t;

// What an address range is, for `object_kind`.
#define SONDE_OBJECT_IS_ALLOCATION 1u  // of the runtime
#define SONDE_OBJECT_IS_TENSOR 2u      // cut out of an allocation by a framework
#define SONDE_OBJECT_IS_REMAINDER 3u   // the part of a pool that no tensor covers
#define SONDE_OBJECT_IS_STATIC 4u      // a module's variables

// Totals of one launch in one live range (SONDE_LEVEL_OBJECT_SUMMARY). Ranges that it did not touch have no record.
typedef struct sonde_access_object_t {
  sonde_record_t header;
  uint64_t launch;
  uint64_t address;  // of the range
  uint64_t bytes;    // of the range
  uint64_t ordinal;  // of the range's life, see ranges.h; allocations and ranges are counted apart
  uint64_t reads;    // thread accesses
  uint64_t writes;
  uint64_t atomics;  // neither in reads nor in writes
  uint64_t copies;   // asynchronous copies out of or into the range; not in reads and writes
  uint64_t read_bytes;
  uint64_t write_bytes;  // atomics count here and not in read_bytes
  uint64_t copy_bytes;
  sonde_span_t sizes;  // uint64: reads of 1, 2, 4, 8, 16 bytes, then writes, then atomics
  uint32_t object_kind;
  sonde_string_t name;
} sonde_access_object_t;

// A histogram of one launch over the pages of one live range (SONDE_LEVEL_PAGE_SUMMARY); touched pages only.
typedef struct sonde_access_pages_t {
  sonde_record_t header;
  uint64_t launch;
  uint64_t address;  // of the range
  uint64_t bytes;
  uint64_t ordinal;
  uint64_t page_bytes;  // a power of two; pages are aligned by address
  sonde_span_t pages;   // uint64, address / page_bytes, ascending
  sonde_span_t counts;  // uint64, thread accesses
} sonde_access_pages_t;

// Bytes of one live range that one launch touched (SONDE_LEVEL_INTERVALS).
typedef struct sonde_access_intervals_t {
  sonde_record_t header;
  uint64_t launch;
  uint64_t address;  // of the range
  uint64_t bytes;
  uint64_t ordinal;
  uint64_t touched;    // bytes, over all records of this launch, range and kind
  sonde_span_t edges;  // uint64, begin and end in turn, bytes from `address`, ascending; ends are exclusive
  uint32_t kind;       // 1 read, 2 written (atomics are written)
  uint32_t granule;    // bytes that one bit stands for; 1: exact
} sonde_access_intervals_t;

// Totals of one launch at one instruction.
typedef struct sonde_access_instruction_t {
  sonde_record_t header;
  uint64_t launch;
  uint64_t pc;
  uint64_t threads;        // thread accesses
  uint64_t warps;          // warp accesses
  uint64_t bytes;          // asked for
  uint64_t sectors;        // of 32 bytes, distinct within a warp access; global memory
  uint64_t least_sectors;  // that the same bytes would need if they lay side by side
  uint64_t wavefronts;     // passes over the banks; shared memory
  uint64_t least_wavefronts;
  uint32_t memory;  // 1 global, 2 shared, 3 local
  uint32_t access;  // bit 0 read, bit 1 write, bit 2 atomic of system scope, bit 3 prefetch; both 0 and 1: atomic
  uint32_t size;    // bytes of a thread's access
  uint32_t reserved;
} sonde_access_instruction_t;

// Warp accesses, packed (SONDE_LEVEL_RECORDS, SONDE_LEVEL_VALUES). `data` holds `count` entries of the form in
// sonde_warp_access_t (access_packed.h); the toolkit's reader walks them.
typedef struct sonde_access_warps_t {
  sonde_record_t header;
  uint64_t launch;
  uint64_t count;
  sonde_span_t data;  // bytes
} sonde_access_warps_t;

#define SONDE_INVALID_OUTSIDE 1u     // in no live range
#define SONDE_INVALID_FREED 2u       // in a range that was freed
#define SONDE_INVALID_MISALIGNED 3u  // not a multiple of its size
#define SONDE_INVALID_STRADDLES 4u   // begins inside a live range and ends outside

// An access that is wrong: the first of each instruction and reason in a launch, with how many there were.
typedef struct sonde_access_invalid_t {
  sonde_record_t header;
  uint64_t launch;
  uint64_t pc;
  uint64_t address;
  uint64_t count;    // thread accesses of this instruction and reason in the launch
  uint64_t nearest;  // address of the nearest live range, 0: none
  uint64_t nearest_bytes;
  uint64_t ordinal;  // of that range, or of the freed one
  int64_t distance;  // bytes from the range: negative before its begin, else past its last byte, from 1
  uint32_t block[3];
  uint32_t thread[3];
  uint32_t size;
  uint32_t access;
  uint32_t reason;  // SONDE_INVALID_*
  sonde_string_t function;
  sonde_string_t file;  // "" when the code has no line table
  uint32_t line;
  sonde_string_t object;  // name of the range
  uint32_t reserved;
} sonde_access_invalid_t;

// Device events of one launch, packed: `data` holds `count` entries of sonde_device_event_t
// (access_packed.h).
typedef struct sonde_access_events_t {
  sonde_record_t header;
  uint64_t launch;
  uint64_t count;
  sonde_span_t data;  // bytes
} sonde_access_events_t;

#define SONDE_TRANSFER_ASYNC 0x1u
#define SONDE_TRANSFER_SET 0x2u    // `source` is 0 and `value` the pattern
#define SONDE_TRANSFER_GRAPH 0x4u  // a node of a graph launch

// A copy or set that the host asked for, with the addresses that sonde.device.copy and .set do not have. `time` is the
// host's stamp of the call, so transfers and launches are in the program's order. Rows lie `pitch` bytes apart.
typedef struct sonde_access_transfer_t {
  sonde_record_t header;
  uint64_t source;  // first byte
  uint64_t target;
  uint64_t bytes;         // moved: width * rows
  uint64_t width;         // of a row, bytes
  uint64_t rows;          // in all slices
  uint64_t source_pitch;  // 0: rows follow each other
  uint64_t target_pitch;
  uint64_t stream;       // the runtime's handle
  uint64_t correlation;  // 0: unknown
  uint64_t graph_node;   // 0: not from a graph
  uint32_t graph_exec;
  uint32_t context;
  uint32_t device;
  uint32_t kind;   // SONDE_COPY_*, device.h
  uint32_t value;  // of a set
  uint32_t flags;  // SONDE_TRANSFER_*
} sonde_access_transfer_t;

#endif
