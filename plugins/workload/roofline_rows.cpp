#include "roofline_rows.h"

#include <sonde/toolkit/names.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace sonde::workload {
namespace {

// Work that the options give for a kernel.
void give_work(const std::vector<GivenWork> &given, const std::string &symbol, const std::string &demangled,
               KernelCost &cost) {
  for (const GivenWork &work : given) {
    if (symbol.find(work.part) == std::string::npos && demangled.find(work.part) == std::string::npos) continue;
    auto &into = cost.work[static_cast<size_t>(work.work)];
    into = into.value_or(0) + work.operations;
    cost.is_given = true;
  }
}

}  // namespace

std::vector<RooflineRow> roofline_rows(const Workload &workload) {
  using Place = std::tuple<uint32_t, uint32_t, std::string>;  // source, device, demangled name
  struct Timed {
    uint32_t name;
    uint64_t launches;
    int64_t ns;
    uint64_t count;  // with a time
  };
  std::map<Place, Timed> times;
  std::map<std::pair<uint32_t, uint32_t>, int64_t> whole;
  for (const auto &[id, source] : workload.sources()) {
    for (const auto &[key, kernel] : source.kernels) {
      Timed &timed = times
                         .try_emplace({id, kernel.device, toolkit::demangle(workload.text(kernel.name))},
                                      Timed{kernel.name, 0, 0, 0})
                         .first->second;
      timed.launches += kernel.durations.count;
      timed.ns += static_cast<int64_t>(kernel.durations.total_ns());
      timed.count += kernel.durations.time.count();
      whole[{id, kernel.device}] += static_cast<int64_t>(kernel.durations.total_ns());
    }
  }
  std::map<Place, RooflineRow> rows;
  const auto row_at = [&](const Place &place, uint32_t name) -> RooflineRow & {
    RooflineRow &row = rows.try_emplace(place).first->second;
    row.kernel = {std::get<0>(place), std::get<1>(place), name};
    return row;
  };
  for (const auto &[key, counters] : workload.accesses().counters().kernels().rows()) {
    RooflineRow &row = row_at({key.source, key.device, toolkit::demangle(workload.text(key.name))}, key.name);
    row.counted = counters.launches;
    const double launches = static_cast<double>(counters.launches);
    for (size_t i = 0; i < kWorks && counters.has_work; ++i) {
      if (counters.work[i] != 0 || i == static_cast<size_t>(Work::kFp32))
        row.cost.work[i] = counters.work[i] / launches;
    }
    for (size_t i = 0; i < kTraffics; ++i) {
      if (counters.has_traffic[i]) row.cost.traffic[i] = counters.traffic[i] / launches;
    }
  }
  for (const auto &[place, timed] : times) {
    KernelCost given;
    give_work(workload.options().flops, workload.text(timed.name), std::get<2>(place), given);
    const auto known = rows.find(place);
    if (known == rows.end() && !given.is_given) continue;
    RooflineRow &row = row_at(place, timed.name);
    const bool has_work = std::any_of(std::begin(row.cost.work), std::end(row.cost.work),
                                      [](const std::optional<double> &work) { return work.has_value(); });
    if (!has_work && given.is_given) {
      std::copy(std::begin(given.work), std::end(given.work), std::begin(row.cost.work));
      row.cost.is_given = true;
    }
    row.launches = timed.launches;
    if (timed.count != 0) row.cost.seconds = static_cast<double>(timed.ns) * 1e-9 / static_cast<double>(timed.count);
    const int64_t all = whole[{std::get<0>(place), std::get<1>(place)}];
    row.time_share = all == 0 ? 0 : static_cast<double>(timed.ns) / static_cast<double>(all);
  }
  std::vector<RooflineRow> out;
  for (auto &[key, row] : rows) {
    row.point = place(row.cost, workload.options().ceilings);
    out.push_back(row);
  }
  // The map has them in order of process, device and name.
  std::stable_sort(out.begin(), out.end(),
                   [](const RooflineRow &a, const RooflineRow &b) { return a.time_share > b.time_share; });
  return out;
}

}  // namespace sonde::workload
