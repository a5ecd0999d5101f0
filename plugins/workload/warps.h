// What warp records say, launch by launch, folded into rows of kernels.
#pragma once

#include <sonde/toolkit/warp_records.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "block_divergence.h"
#include "kernel_map.h"
#include "launch_book.h"
#include "options.h"
#include "reuse_scopes.h"
#include "word_heat.h"
#include "working_sets.h"

namespace sonde::workload {

struct WarpRow {
  uint64_t launches = 0;  // with warp records
  uint64_t accesses = 0;  // of warps
  // Variation of each launch between its blocks.
  toolkit::Statistics variation_ppm;  // parts per million
  DivergenceResult worst;             // of the launch with the greatest variation
  uint64_t worst_launch = 0;
  ReuseGraph graph;
  uint64_t reuse_period = 1;  // greatest of any launch
  // Of the first word_heat_launches launches.
  struct Sectors {
    uint64_t launch = 0;
    uint64_t sectors = 0;   // of its chosen blocks
    uint64_t left_out = 0;  // accesses to sectors beyond word_heat_limit
    std::vector<SectorHeat> hottest;
  };
  std::vector<Sectors> sectors;
};

// The port hands out the records of a launch before the launch itself, and they may still come a little after it, so a
// launch stays open until kSettle more came. Memory: warp_launches open launches.
class Warps {
 public:
  static constexpr size_t kSettle = 8;

  Warps(const Options &options, uint32_t other_kernels)
      : options_(&options), kernels_(static_cast<uint64_t>(options.name_limit), other_kernels) {}

  // A record of the type SONDE_ACCESS_WARPS.
  void add(uint32_t source, uint64_t launch, const sonde_record_t *record, const LaunchBook &book);
  // The launch has come.
  void launch(const LaunchFacts &facts);
  void finish();

  const KernelMap<WarpRow> &kernels() const { return kernels_; }
  uint64_t damaged() const { return damaged_; }
  // Launches that were closed early, or whose launch record never came.
  uint64_t cut() const { return cut_; }
  uint64_t unknown() const { return unknown_; }

 private:
  struct Open {
    explicit Open(const Options &options) : divergence(options), reuse(options), words(options) {}
    LaunchFacts facts;
    uint64_t accesses = 0;
    BlockDivergence divergence;
    ReuseScopes reuse;
    WordHeat words;
  };
  using Key = std::pair<uint32_t, uint64_t>;  // source, launch

  void close(Key key);

  const Options *options_;
  KernelMap<WarpRow> kernels_;
  std::map<Key, Open> open_;
  std::deque<Key> order_;     // of opening
  std::deque<Key> settling_;  // of launches that came
  uint64_t damaged_ = 0;
  uint64_t cut_ = 0;
  uint64_t unknown_ = 0;
};

}  // namespace sonde::workload
