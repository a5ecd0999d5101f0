// What a run may configure, with the defaults and where they come from.
#pragma once

#include <sonde/config.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "ceilings.h"

namespace sonde::workload {

struct Options {
  double idle_share = 0.5;
  int64_t idle_span_ns = 1'000'000;
  int64_t launch_gap_ns = 100'000;
  int64_t launch_bound_kernel_ns = 20'000;
  int64_t launch_bound_kernels = 32;
  double launch_bound_idle_share = 0.3;
  double blocking_copy_share = 0.05;
  int64_t tiny_copy_bytes = 4096;
  double tiny_copy_share = 0.5;
  int64_t tiny_copies = 100;
  double concurrency_share = 0.05;
  int64_t concurrency_streams = 2;
  int64_t longest_gaps = 10;
  int64_t timeline_rows = 256;
  int64_t exact_values = 1024;
  int64_t reorder_records = 65536;
  int64_t join_records = 262144;
  int64_t name_limit = 65536;
  bool group_scopes = true;

  // What is collected of accesses: types of sonde.access beside launches and transfers, a bit each.
  uint64_t access_types = 0;
  std::vector<std::string> optimizer_scopes = {"Optimizer.step", "Optimizer.zero_grad"};
  std::string layer_domain = "torch.nn";
  // Rows and bins.
  int64_t hot_objects = 100;
  int64_t kernel_objects = 8;
  int64_t hot_blocks = 256;
  int64_t block_bytes = 2 << 20;
  int64_t object_blocks = 4096;
  int64_t time_bins = 64;
  int64_t reuse_intervals = 256;
  int64_t reuse_pairs = 4096;
  int64_t remembered_launches = 65536;
  int64_t instruction_limit = 16384;
  // Warp records.
  int64_t warp_launches = 16;
  int64_t divergence_blocks = 4096;
  int64_t divergence_instructions = 256;
  double divergence_cosine = 0.99;
  int64_t reuse_words = 65536;
  std::vector<uint32_t> word_heat_blocks = {0};
  int64_t word_heat_limit = 65536;
  int64_t word_heat_sectors = 64;
  int64_t word_heat_launches = 1;
  // Detectors over reuse graphs.
  int64_t reuse_least_words = 100;
  double atomic_high = 0.5;
  double atomic_medium = 0.15;
  double atomic_medium_warp = 0.5;
  double atomic_low = 0.03;
  double atomic_low_warp = 0.2;
  double grid_reuse = 0.6;
  double block_reuse = 0.6;
  double uncoalesced_density = 2;
  double uncoalesced_density_high = 4;
  double uncoalesced_cold = 0.7;
  double uncoalesced_cold_high = 0.9;
  double streaming_cold = 0.8;
  double streaming_cold_high = 0.95;
  double broadcast_addresses = 0.25;
  double broadcast_addresses_high = 0.1;
  // Roofline.
  Ceilings ceilings;
  std::vector<GivenWork> flops;
  double half_lanes = 2;
  // Findings.
  double footprint_ratio = 2;
  double uncoalesced_ratio = 2;
  double uncoalesced_share = 0.05;
  double bank_conflict_ratio = 2;
  double bank_conflict_share = 0.05;
  double divergence_variation = 0.2;
  double hot_block_share = 0.5;
  double hot_block_bytes_share = 0.05;
  double roofline_time_share = 0.1;
  double roofline_attained = 0.5;
  // Pictures; empty: none.
  std::string heat_map_picture;
  std::string roofline_picture;
};

// The declaration that the host checks a configuration against; the defaults above and these are the same, which a
// test compares.
inline constexpr uint32_t kOptionCount = 73;
extern const sonde_option_t kOptionSpecs[kOptionCount];

// Reads checked options. Throws Failure(SONDE_E_INVALID) for what the declaration cannot check: words of `accesses`, numbers
// of `word_heat_blocks`.
Options read_options(const Config &config);

// Reads `ceilings`, `ceilings_file` and `flops`. Throws Failure that names the fault.
void read_trees(const Host &host, const Config &config, Options &options);

}  // namespace sonde::workload
