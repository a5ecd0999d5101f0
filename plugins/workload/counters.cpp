#include "counters.h"

#include <array>

namespace sonde::workload {
namespace {

struct ThreadInstruction {
  std::string_view word;
  Work work;
  double operations;
  bool is_half;
};
constexpr std::array kInstructions = {
    ThreadInstruction{"dadd", Work::kFp64, 1, false}, ThreadInstruction{"dmul", Work::kFp64, 1, false},
    ThreadInstruction{"dfma", Work::kFp64, 2, false}, ThreadInstruction{"fadd", Work::kFp32, 1, false},
    ThreadInstruction{"fmul", Work::kFp32, 1, false}, ThreadInstruction{"ffma", Work::kFp32, 2, false},
    ThreadInstruction{"hadd", Work::kFp16, 1, true},  ThreadInstruction{"hmul", Work::kFp16, 1, true},
    ThreadInstruction{"hfma", Work::kFp16, 2, true}};

// Slots: 1 to 9 instructions, 16 on DRAM and L2, from 32 on paths of the tensor cores.
constexpr uint8_t kDramRead = 16, kDramWrite = 17, kDramBoth = 18, kL2 = 19, kTensorSlots = 32;

struct TensorPath {
  std::string_view source;
  Work work;
};
constexpr std::array kTensorPaths = {TensorPath{"fp16", Work::kTensor}, TensorPath{"bf16", Work::kTensor},
                                     TensorPath{"tf32", Work::kTensorTf32}, TensorPath{"fp64", Work::kTensorFp64},
                                     TensorPath{"fp8", Work::kTensorFp8}};

}  // namespace

std::optional<MetricMeaning> metric_meaning(std::string_view metric, double half_lanes) {
  constexpr std::string_view kSum = ".sum";
  if (!metric.ends_with(kSum)) return std::nullopt;
  metric.remove_suffix(kSum.size());
  const auto traffic = [](Traffic kind, double amount, uint8_t slot) {
    return MetricMeaning{true, Work::kFp32, kind, amount, slot};
  };
  if (metric == "dram__bytes_read") return traffic(Traffic::kDram, 1, kDramRead);
  if (metric == "dram__bytes_write") return traffic(Traffic::kDram, 1, kDramWrite);
  if (metric == "dram__bytes") return traffic(Traffic::kDram, 1, kDramBoth);
  if (metric == "lts__t_bytes") return traffic(Traffic::kL2, 1, kL2);
  if (metric == "lts__t_sectors") return traffic(Traffic::kL2, 32, kL2);

  for (const std::string_view unit : {std::string_view("smsp__"), std::string_view("sm__")}) {
    std::string_view rest = metric;
    if (!rest.starts_with(unit)) continue;
    rest.remove_prefix(unit.size());
    constexpr std::string_view kThread = "sass_thread_inst_executed_op_", kOn = "_pred_on";
    if (rest.starts_with(kThread) && rest.ends_with(kOn)) {
      rest.remove_prefix(kThread.size());
      rest.remove_suffix(kOn.size());
      for (size_t i = 0; i < kInstructions.size(); ++i) {
        const ThreadInstruction &known = kInstructions[i];
        if (rest != known.word) continue;
        return MetricMeaning{false, known.work, Traffic::kDram, known.operations * (known.is_half ? half_lanes : 1),
                             static_cast<uint8_t>(i + 1)};
      }
      return std::nullopt;
    }
    // The parts with and without sparsity lie inside the whole.
    constexpr std::string_view kTensor = "ops_path_tensor_src_";
    if (!rest.starts_with(kTensor) || rest.find("_sparsity_") != std::string_view::npos) continue;
    rest.remove_prefix(kTensor.size());
    const std::string_view source = rest.substr(0, rest.find("_dst_"));
    for (size_t i = 0; i < kTensorPaths.size(); ++i) {
      if (source != kTensorPaths[i].source) continue;
      // Metrics of one source and different results add up.
      const uint8_t result = rest.ends_with("_dst_fp16") ? 1 : 0;
      return MetricMeaning{false, kTensorPaths[i].work, Traffic::kDram, 1,
                           static_cast<uint8_t>(kTensorSlots + i * 2 + result)};
    }
  }
  return std::nullopt;
}

void Counters::add(const KernelKey &kernel, uint64_t launch, uint32_t metric, std::string_view text, double value) {
  const auto [it, is_new] = meanings_.try_emplace(metric);
  if (is_new) {
    it->second = metric_meaning(text, options_->half_lanes);
    // The first spelling of a metric counts; the sum of both directions is no third one.
    if (it->second) {
      const uint8_t slot = it->second->slot;
      const bool has_parts = chosen_.contains(kDramRead) || chosen_.contains(kDramWrite);
      const bool is_double = (slot == kDramBoth && has_parts) ||
                             ((slot == kDramRead || slot == kDramWrite) && chosen_.contains(kDramBoth)) ||
                             !chosen_.try_emplace(slot, metric).second;
      if (is_double) it->second.reset();
    }
  }
  if (!it->second) {
    ++other_metrics_;
    return;
  }
  const MetricMeaning &meaning = *it->second;
  CounterRow &row = kernels_.get(kernel);
  if (row.launches == 0 || row.last_launch != launch) {
    ++row.launches;
    row.last_launch = launch;
  }
  if (meaning.is_traffic) {
    row.traffic[static_cast<size_t>(meaning.traffic)] += value * meaning.amount;
    row.has_traffic[static_cast<size_t>(meaning.traffic)] = true;
  } else {
    row.work[static_cast<size_t>(meaning.work)] += value * meaning.amount;
    row.has_work = true;
  }
}

}  // namespace sonde::workload
