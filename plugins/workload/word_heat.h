// Heat of single words: which warps of a block touch which 4 bytes of each 32-byte sector.
#pragma once

#include <sonde/toolkit/warp_records.h>

#include <array>
#include <compare>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernel_map.h"
#include "options.h"

namespace sonde::workload {

// A sector of 32 bytes: eight words, and the sector as a whole.
struct SectorHeat {
  static constexpr size_t kWords = 8;
  static constexpr size_t kWhole = kWords;  // index of the sector itself
  static constexpr size_t kCounters = 4;    // program counters kept

  uint32_t block = 0;   // linear number
  uint32_t memory = 0;  // 0 global, 1 shared, 2 local
  uint64_t address = 0;
  std::array<uint64_t, kWords + 1> accesses{};  // of threads; an access to several words counts once for the sector
  std::array<uint64_t, kWords + 1> warps{};     // bit w: warp w of the block
  std::array<uint32_t, kCounters> pcs{};        // the first that touched it
  uint32_t pc_count = 0;                        // different ones among those kept
  bool has_more_pcs = false;

  uint32_t distinct_warps(size_t word) const;
};

// Takes the warp accesses of one launch; looks at the blocks of the option word_heat_blocks. Memory: word_heat_limit
// sectors; more are counted.
class WordHeat {
 public:
  explicit WordHeat(const Options &options) : options_(&options) {}

  void add(const toolkit::WarpAccess &access);
  // The hottest word_heat_sectors sectors, by accesses, then by block, memory and address.
  std::vector<SectorHeat> hottest() const;
  uint64_t left_out() const { return left_out_; }
  size_t sectors() const { return sectors_.size(); }

 private:
  struct Key {
    uint64_t sector;
    uint32_t block;
    uint32_t memory;
    auto operator<=>(const Key &) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key &key) const { return mix(key.sector + mix(uint64_t{key.block} << 2 | key.memory)); }
  };

  const Options *options_;
  std::unordered_map<Key, SectorHeat, KeyHash> sectors_;
  uint64_t left_out_ = 0;
};

}  // namespace sonde::workload
