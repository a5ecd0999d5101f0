// What one warp's access to global memory costs, from the layout of its registers and what is proved of its addresses.
#pragma once

#include <cstdint>
#include <string>

#include "addresses.h"
#include "layouts.h"

namespace sonde::layout_lint {

struct GlobalAccess {
  bool is_known = false;  // sectors are; the widths always are
  std::string reason;     // why not
  uint64_t vector_bits = 0;
  uint64_t thread_contiguous = 0;  // elements in a row that a thread's registers hold
  uint64_t proved_contiguous = 0;  // that the addresses allow, by contiguity and alignment
  uint64_t mask_contiguous = 0;    // that share a mask's element; 0: no mask
  uint64_t instructions = 0;       // of one thread
  uint64_t sectors = 0;            // of the worst instruction: fewest that the proofs allow
  uint64_t sectors_most = 0;       // most
  uint64_t wanted_bytes = 0;       // different ones of that instruction
  uint64_t all_sectors = 0;        // of all instructions of all warps that hold different data, fewest
  uint64_t lane_copies = 1;        // lanes, and warps, that hold the same
  uint64_t warp_copies = 1;

  uint64_t fewest_sectors() const { return (wanted_bytes + 31) / 32; }
  double efficiency() const {
    return sectors == 0 ? 0 : static_cast<double>(wanted_bytes) / (32.0 * static_cast<double>(sectors));
  }
};

// `layout` is that of a tensor of pointers whose fact is `address`; `mask` may be null. `most_elements`: of one lane's
// access, 0 for what 128 bits hold. The rules for widths are those of Triton's lowering: contiguous registers of a
// thread along the layout's fastest dim, proved contiguity and alignment, the mask's constancy, 128 bits.
GlobalAccess global_access(const Layouts &layouts, const sonde_layout_t *layout, uint32_t element_bits,
                           const Fact &address, const Fact *mask, uint64_t most_elements);

}  // namespace sonde::layout_lint
