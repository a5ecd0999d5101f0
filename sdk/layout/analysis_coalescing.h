// What a warp's access to global memory asks of the caches: sectors of 32 bytes and lines of 128.
//
// `offsets` goes from (register, lane, ...) to one out dim that counts elements (memory_offsets makes such a layout of a
// tensor's). One instruction moves the widest vector that registers, the memory's alignment and `most_vector_bits`
// allow. Its sectors are those that the lanes' vectors touch: for a linear map and a base at a multiple of a line,
// 2^rank of what lanes and vector span, without the bits below a sector. For other bases the requests are simulated, at
// each position in a line that the alignment leaves open, and the worst counts.
//
// Example: 32 lanes of 4 bytes side by side: 128 bytes, 4 sectors, 1 line. With a stride of 2 elements: 8 sectors, 2
// lines, half of whose bytes are wanted.
#pragma once

#include <cstdint>

#include "layout/layout.h"

namespace sonde::layout {

inline constexpr uint64_t kSectorBytes = 32;
inline constexpr uint64_t kLineBytes = 128;

struct GlobalMemory {
  uint64_t base_alignment = 128;    // bytes, a power of two: of the address of element 0
  uint32_t most_vector_bits = 128;  // of one lane's access
};

struct GlobalAccess {
  uint64_t access_bits = 0;   // that each lane moves by one instruction
  uint64_t instructions = 0;  // of one thread; broadcast registers are not loaded again
  // Of one instruction of one warp; of the worst where they differ.
  uint64_t sectors = 0;
  uint64_t lines = 0;
  uint64_t wanted_bytes = 0;    // different ones, rounded up
  uint64_t fewest_sectors = 0;  // that could hold the wanted bytes
  // Of all instructions of one warp together.
  uint64_t sectors_in_all = 0;     // instruction by instruction, as if nothing stayed in the cache
  uint64_t different_sectors = 0;  // that the warp touches at all
  bool is_simulated = false;

  // Wanted bytes for each byte moved, of one instruction.
  double efficiency() const {
    return sectors == 0 ? 0 : static_cast<double>(wanted_bytes) / static_cast<double>(sectors * kSectorBytes);
  }
};

// kInvalid: no register dim, more than one out dim, bad sizes. kUnsupported: more than 2^24 elements to simulate.
bool global_access(Arena &arena, const Layout &offsets, uint32_t bits_per_element, const GlobalMemory &memory,
                   GlobalAccess &out);

// Every request of every warp at one base address, counted in bytes; any base. For the first warp's `sectors_in_all`
// and `different_sectors`, the worst warp's.
bool simulate_global_access(Arena &arena, const Layout &offsets, uint32_t bits_per_element, uint64_t base_bytes,
                            const GlobalMemory &memory, GlobalAccess &out);

}  // namespace sonde::layout
