// What a watched launch and the host share, in plain C++ for both compilers.
//
// One State belongs to one launch, from its begin until the host has read it; the patches get its address as their user
// data. Memory is the device's unless said otherwise; "pinned" is host memory that device code reaches over the bus.
//
// What a patch costs is above all the registers that it saves: each byte of stack adds about 1.6 % to the time of a
// kernel that does nothing but access memory (measured on an H200), because every lane of every call writes and reads
// it. So the patches are written to live in the 14 registers that a callee need not save: each lane looks up its own
// address, little is kept, and what is read-only comes from memory again when it is needed.
#pragma once

#include <cstdint>

namespace sonde::cuda::access {

// Live ranges, sorted and disjoint, immutable once a launch refers to them. Entry 0 contains nothing; entries 1 to
// `count` are the ranges; the rest, up to a power of two, begins at the end of the address space. The position of a
// range is its index; 0 stands for "in no range".
struct DeviceRange {
  uint64_t begin;
  uint64_t end;
};

// Counters of a position: reads of 1, 2, 4, 8, 16 bytes, writes, atomics; asynchronous copies of 4, 8, 16 bytes; bulk
// copies and their bytes.
constexpr uint32_t kReadCounters = 0;
constexpr uint32_t kWriteCounters = 5;
constexpr uint32_t kAtomicCounters = 10;
constexpr uint32_t kCopyCounters = 15;
constexpr uint32_t kBulkCounter = 18;
constexpr uint32_t kBulkBytesCounter = 19;
constexpr uint32_t kCounters = 20;

// Touched bytes: a byte of the map stands for 4 bytes of memory, its low bits for each of them, so that most accesses
// are plain stores. A chunk of the map is made at first touch for 64 KiB of addresses: first reads, then writes.
constexpr uint32_t kChunkShift = 16;
constexpr uint32_t kMapBytes = 1u << (kChunkShift - 2);  // of one kind
constexpr uint32_t kChunkBytes = 2 * kMapBytes;
// Directory entries: 0 none yet, kChunkPending being made, kChunkRefused none was left, else number of the chunk + 1.
constexpr uint32_t kChunkPending = 0xffffffffu;
constexpr uint32_t kChunkRefused = 0xfffffffeu;

// Instructions: open addressing by program counter, in as many tables as copies of the counters.
constexpr uint32_t kInstructionSlots = 1024;  // of one table; a power of two
struct InstructionCounters {
  uint64_t key;  // pc << 8 | access << 4 | log2(size) << 1 | 1 in global memory, with bit 63 set in shared; 0: free
  uint64_t threads;
  uint64_t warps;
  uint64_t units;        // sectors of 32 bytes, or passes over the banks
  uint64_t least_units;  // that the same accesses need at best
};

// Records go into blocks, one open block for each multiprocessor.
constexpr uint32_t kBlockBytes = 256u << 10;
constexpr uint32_t kNoBlock = 0xffffffffu;
constexpr uint32_t kMostProcessors = 512;
struct BlockHead {          // at the begin of each block
  uint64_t launch;          // of whom
  uint32_t used;            // bytes with the head, set when the block is closed
  uint32_t kind;            // 0 warp accesses, 1 device events
  uint32_t function_begin;  // low bits; the host takes it from the entries' program counters
  uint32_t reserved;
};

// The blocks' traffic between device and host. Numbers of entries only grow; slot = number & (blocks - 1).
struct HostWords {     // pinned
  uint64_t free_tail;  // blocks that the host has freed so far
  uint32_t stall;      // 1: wait for a free block, else drop
  uint32_t reserved;
};
struct Exchange {               // immutable
  uint8_t *memory;              // [blocks][kBlockBytes]
  uint32_t *committed;          // [blocks]: bytes written or given up; kBlockBytes: the block is done
  uint64_t *free_head;          // blocks that the device has taken so far
  uint64_t *full_tail;          // blocks that the device has handed over so far
  const uint32_t *free_blocks;  // pinned, [blocks]: numbers of free blocks
  uint64_t *full_blocks;        // pinned, [blocks]: (number of the entry + 1) << 32 | block
  const HostWords *host;        // pinned
  uint32_t blocks;              // a power of two
  uint32_t reserved;
};

// Wrong accesses, pinned, so that they outlive a fault of the kernel. The first of a launch.
constexpr uint32_t kInvalidEntries = 1024;
struct InvalidAccess {
  uint64_t pc;
  uint64_t address;
  uint32_t block[3];
  uint32_t thread[3];
  uint32_t size;
  uint32_t access;
  uint32_t filled;  // set last
  uint32_t reserved;
};

// Features of a State.
constexpr uint32_t kObjects = 1;
constexpr uint32_t kPages = 2;
constexpr uint32_t kIntervals = 4;
constexpr uint32_t kInstructions = 8;
constexpr uint32_t kRecords = 16;
constexpr uint32_t kValues = 32;
constexpr uint32_t kCheck = 64;
constexpr uint32_t kEvents = 128;

// Where a lookup ended last, by multiprocessor and program counter. A hint is only ever a guess: it is checked against
// the launch's own ranges, so that all launches of a context can share the table.
constexpr uint32_t kHintsOfProcessor = 64;
constexpr uint32_t kHints = kMostProcessors * kHintsOfProcessor;

struct State {
  const DeviceRange *ranges;
  uint32_t *hints;       // [kMostProcessors][kHintsOfProcessor]
  uint64_t *counters;    // [copies][count + 1][kCounters]
  uint32_t step;         // half of the entries of `ranges`: a power of two
  uint32_t copy_mask;    // copies - 1: a power of two less one
  uint32_t copy_stride;  // (count + 1) * kCounters
  uint32_t features;
  uint64_t launch;
  uint32_t block_period;  // one block of so many is watched
  uint32_t block_offset;

  uint64_t *pages;              // counters
  const int64_t *page_offsets;  // by position: to add to address >> page_shift
  uint32_t page_shift;
  uint32_t function_begin;  // low bits of the first program counter

  uint32_t *directory;
  const int64_t *directory_offsets;  // by position: to add to address >> kChunkShift
  uint8_t *chunks;                   // [chunk_count][kChunkBytes]
  uint32_t chunk_count;
  uint32_t reserved_2;

  InstructionCounters *instructions;  // [copies][kInstructionSlots]
  const Exchange *exchange;
  uint64_t *open_blocks;   // [kMostProcessors]: block << 32 | bytes reserved
  InvalidAccess *invalid;  // pinned, [kInvalidEntries]

  // Written by the device.
  uint64_t invalid_count;
  uint64_t dropped;           // entries that found no block
  uint64_t instructions_cut;  // warp accesses that found no slot
  uint32_t next_chunk;        // past chunk_count: some were refused
  uint32_t reserved_3;
};

}  // namespace sonde::cuda::access
