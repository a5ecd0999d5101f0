#include "roofline.h"

#include <algorithm>
#include <array>

namespace sonde::workload {

bool Ceilings::any() const {
  return std::any_of(std::begin(work), std::end(work), [](double value) { return value > 0; }) ||
         std::any_of(std::begin(traffic), std::end(traffic), [](double value) { return value > 0; });
}

const char *work_name(Work work) {
  constexpr std::array kNames = {"fp64", "fp32", "fp16", "tensor", "tensor_fp64", "tensor_tf32", "tensor_fp8"};
  return kNames[static_cast<size_t>(work)];
}

const char *traffic_name(Traffic traffic) { return traffic == Traffic::kDram ? "dram" : "l2"; }

const char *bound_name(Bound bound) {
  constexpr std::array kNames = {"", "work", "dram", "l2"};
  return kNames[static_cast<size_t>(bound)];
}

RooflinePoint place(const KernelCost &cost, const Ceilings &ceilings) {
  RooflinePoint point;
  double work_seconds = 0;
  bool is_bounded = true;  // every kind of work that was done has a ceiling
  for (size_t i = 0; i < kWorks; ++i) {
    if (!cost.work[i]) continue;
    point.operations = point.operations.value_or(0) + *cost.work[i];
    if (*cost.work[i] <= 0) continue;
    if (ceilings.work[i] > 0) {
      work_seconds += *cost.work[i] / ceilings.work[i];
    } else {
      is_bounded = false;
    }
  }
  const auto intensity = [&](Traffic traffic) -> std::optional<double> {
    const std::optional<double> &bytes = cost.traffic[static_cast<size_t>(traffic)];
    if (!point.operations || !bytes || *bytes <= 0) return std::nullopt;
    return *point.operations / *bytes;
  };
  point.dram_intensity = intensity(Traffic::kDram);
  point.l2_intensity = intensity(Traffic::kL2);
  if (point.operations && cost.seconds > 0) point.rate = *point.operations / cost.seconds;

  const auto consider = [&](double seconds, Bound bound) {
    if (seconds <= point.least_seconds) return;
    point.least_seconds = seconds;
    point.bound = bound;
  };
  if (is_bounded) consider(work_seconds, Bound::kWork);
  for (const auto &[traffic, bound] : {std::pair(Traffic::kDram, Bound::kDram), std::pair(Traffic::kL2, Bound::kL2)}) {
    const auto i = static_cast<size_t>(traffic);
    if (cost.traffic[i] && ceilings.traffic[i] > 0) consider(*cost.traffic[i] / ceilings.traffic[i], bound);
  }
  if (cost.seconds > 0 && point.least_seconds > 0) point.attained = point.least_seconds / cost.seconds;
  return point;
}

}  // namespace sonde::workload
