// What a run may configure, with the defaults and where they come from.
#pragma once

#include <sonde/config.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <string>

namespace sonde::memory {

// Which operations of the host count as uses of an object, beside kernels.
enum class HostUses : uint8_t { kNone, kReads, kAll };

// A number of kernels, or below 1 a share of all kernels of the process.
struct KernelThreshold {
  double value = 1;

  bool is_share() const { return value < 1; }
  // Whether a gap reaches it; a gap of no kernel never does.
  bool reached(uint64_t gap, uint64_t all_kernels) const {
    const double limit = is_share() ? value * static_cast<double>(all_kernels) : value;
    return gap != 0 && static_cast<double>(gap) >= limit;
  }
};

struct Options {
  KernelThreshold early_kernels;
  KernelThreshold late_kernels;
  KernelThreshold idle_kernels;
  bool memory_aware = false;
  HostUses host_uses = HostUses::kReads;
  double reuse_tolerance = 0;
  int64_t object_bytes = 1;
  bool judge_segments = false;
  bool trust_watched = false;
  double access_rate = 0.8;
  double fragmentation = 0.5;
  int64_t over_allocation_bytes = 512;
  double frequency_cv = 1;
  int64_t frequency_pages = 2;
  int64_t frequency_bins = 1024;
  int64_t structured_slices = 2;
  double structured_share = 0.5;
  int64_t interval_limit = 1024;
  bool intervals = true;
  bool pages = true;
  double peak_saving_share = 0.1;
  double unused_reserved_share = 0.3;
  double forced_growth_share = 0.1;
  int64_t pack_objects = 8192;
  int64_t object_rows = 100;
  int64_t findings_of_rule = 10;
  int64_t timeline_rows = 256;
  int64_t reorder_records = 16384;
  int64_t remembered = 16384;
  std::string svg;
  std::string html;
  std::string perfetto;
  bool time_axis = true;
  int64_t picture_objects = 60;
  int64_t perfetto_operations = 1'000'000;
};

// The declaration that the host checks a configuration against; the defaults above and these are the same, which a
// test compares.
inline constexpr uint32_t kOptionCount = 35;
extern const sonde_option_t kOptionSpecs[kOptionCount];

// Reads checked options.
Options read_options(const Config &config);

}  // namespace sonde::memory
