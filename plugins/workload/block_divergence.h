// Whether the blocks of a launch do the same: accesses of each block, by instruction.
#pragma once

#include <sonde/toolkit/statistics.h>
#include <sonde/toolkit/warp_records.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "options.h"

namespace sonde::workload {

// Blocks whose vectors of counts are near each other.
struct BlockCluster {
  uint32_t first_block = 0;  // the least linear number, whose vector stands for it
  uint64_t blocks = 0;
  uint64_t accesses = 0;  // thread accesses of the first block
  uint64_t reads = 0;     // likewise
  uint64_t writes = 0;
};

struct DivergenceResult {
  uint64_t blocks = 0;  // that were looked at
  uint64_t period = 1;  // one block of so many: the others found no place
  uint64_t instructions = 0;
  uint64_t least = 0;  // thread accesses of a block
  uint64_t greatest = 0;
  double mean = 0;
  // Standard deviation (of the population) / mean of the blocks' accesses.
  double variation = 0;
  uint64_t exact_clusters = 0;  // different vectors of counts
  // By cosine: a block joins the first cluster whose vector has a cosine of at least divergence_cosine with its own,
  // blocks in order of their numbers. At most kClusters; blocks beyond are in `unclustered`.
  std::vector<BlockCluster> clusters;
  uint64_t unclustered = 0;
};

// One launch. Memory: divergence_blocks times divergence_instructions counts at most. Where there are more blocks, only
// those whose number is a multiple of a period stay, which doubles; more instructions share the last count.
class BlockDivergence {
 public:
  static constexpr size_t kClusters = 64;

  explicit BlockDivergence(const Options &options) : options_(&options) {}

  void add(const toolkit::WarpAccess &access);
  // Empty without blocks.
  std::optional<DivergenceResult> finish() const;

 private:
  struct Block {
    uint64_t accesses = 0, reads = 0, writes = 0;
    std::vector<uint32_t> counts = {};  // thread accesses by index of the instruction
  };

  void thin();

  const Options *options_;
  uint32_t period_ = 1;
  std::unordered_map<uint32_t, Block> blocks_;
  std::unordered_map<uint32_t, uint32_t> indices_;  // of instructions, by program counter
};

// The cosine of the angle between two vectors of counts, missing ones being 0. 1 for two that are both zero.
double cosine(const std::vector<uint32_t> &a, const std::vector<uint32_t> &b);

}  // namespace sonde::workload
