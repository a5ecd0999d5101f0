// What one warp's access to shared memory costs, from the layouts of its registers and of the memory.
#pragma once

#include <cstdint>
#include <string>

#include "layouts.h"

namespace sonde::layout_lint {

struct SharedAccess {
  std::string reason;  // why nothing is known; "" otherwise
  const char *instruction = "";
  uint64_t vector_bits = 0;   // of one lane's access, or of a row of a matrix instruction
  uint64_t instructions = 0;  // of one thread
  uint64_t wavefronts = 0;    // of all instructions of one warp
  uint64_t conflicts = 0;     // of those, what a layout without conflicts would save
};

struct SharedOptions {
  uint32_t element_bits = 0;
  uint32_t banks = 32;
  bool has_matrix_instruction = false;  // ldmatrix for loads, stmatrix for stores
  bool is_store = false;
};

// Matrix instructions (PTX: ldmatrix, stmatrix) move 8x8 tiles of 16-bit elements: the 8 rows of 16 bytes lie anywhere,
// and lane i gets elements 2 (i mod 4) and the next of row i / 4 (.trans: of column i / 4). They are taken where the
// layouts fit, as Triton does; then rows that share a group of four banks conflict.
SharedAccess shared_access(const Layouts &layouts, const sonde_layout_t *registers, const ir::Type &memory,
                           const sonde_layout_t *memory_layout, const SharedOptions &options);

}  // namespace sonde::layout_lint
