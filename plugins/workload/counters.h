// Hardware counters of launches: floating-point work and traffic.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "ceilings.h"
#include "kernel_map.h"
#include "options.h"

namespace sonde::workload {

// What a metric adds to: `amount` each unit of its value.
struct MetricMeaning {
  bool is_traffic = false;
  Work work = Work::kFp32;
  Traffic traffic = Traffic::kDram;
  double amount = 0;  // operations or bytes
  uint8_t slot = 0;   // metrics of one slot mean the same: only one of them counts
};

// CUPTI's names. Work of thread instructions, predicated on: add and multiply 1 operation, multiply-add 2; half
// precision instructions work on half_lanes values. Work of tensor cores: sm__ops_path_tensor_*, which counts
// operations. Traffic: dram__bytes*.sum, lts__t_bytes.sum, lts__t_sectors.sum (32 bytes each).
std::optional<MetricMeaning> metric_meaning(std::string_view metric, double half_lanes);

struct CounterRow {
  uint64_t launches = 0;  // with any counter that means something here
  uint64_t last_launch = 0;
  double work[kWorks] = {};        // operations, over all launches
  double traffic[kTraffics] = {};  // bytes
  bool has_work = false;
  bool has_traffic[kTraffics] = {};

  double all_work() const {
    double sum = 0;
    for (const double part : work) sum += part;
    return sum;
  }
};

// Memory: a row for each kernel; metric names by number.
class Counters {
 public:
  Counters(const Options &options, uint32_t other_kernels)
      : options_(&options), kernels_(static_cast<uint64_t>(options.name_limit), other_kernels) {}

  // `metric` is a number of the analysis' strings, `text` what it stands for; `unit` the vendor's word.
  void add(const KernelKey &kernel, uint64_t launch, uint32_t metric, std::string_view text, double value);

  const KernelMap<CounterRow> &kernels() const { return kernels_; }
  // Records of metrics that mean nothing here.
  uint64_t other_metrics() const { return other_metrics_; }

 private:
  const Options *options_;
  KernelMap<CounterRow> kernels_;
  std::unordered_map<uint32_t, std::optional<MetricMeaning>> meanings_;
  // By slot: the metric that counts, for each kind of metric that has two spellings.
  std::unordered_map<uint8_t, uint32_t> chosen_;
  uint64_t other_metrics_ = 0;
};

}  // namespace sonde::workload
