// What a run may configure, with the defaults and where they come from.
#pragma once

#include <sonde/config.h>
#include <sonde/sonde.hpp>

#include <cstdint>

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
};

// The declaration that the host checks a configuration against; the defaults above and these are the same, which a
// test compares.
inline constexpr uint32_t kOptionCount = 19;
extern const sonde_option_t kOptionSpecs[kOptionCount];

// Reads checked options.
Options read_options(const Config &config);

}  // namespace sonde::workload
