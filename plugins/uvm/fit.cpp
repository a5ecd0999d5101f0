#include "fit.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "simulator.h"
#include "trace.h"

namespace sonde::uvm {

namespace {

constexpr uint64_t kMostWindowPages = 512;  // 32 MiB
constexpr uint64_t kUnlimited = UINT64_MAX;

// One launch over two halves of memory side by side: reads the first, writes the second.
Trace streaming(uint64_t bytes, double resident_ns) {
  Trace trace;
  trace.allocate(bytes / 2);
  trace.allocate(bytes / 2);
  const auto pages = static_cast<uint32_t>(pages_of(bytes / 2));
  const uint32_t set = trace.intern({{0, 0, pages, false, true, 1}, {1, 0, pages, true, false, 1}});
  trace.launch(trace.kernel("stream"), set, static_cast<int64_t>(resident_ns));
  return trace;
}

Trace writing(uint64_t bytes, double resident_ns) {
  Trace trace;
  trace.allocate(bytes, Home::kNowhere);
  const uint32_t set = trace.intern({{0, 0, static_cast<uint32_t>(pages_of(bytes)), true, false, 1}});
  trace.launch(trace.kernel("fill"), set, static_cast<int64_t>(resident_ns));
  return trace;
}

// One thread over pieces of `stride` pages.
Trace walking(uint64_t pages, uint32_t stride) {
  Trace trace;
  trace.allocate(pages * kPageBytes);
  TouchSet set;
  for (uint32_t page = 0; page < pages; page += stride) set.push_back({0, page, 1, false, true, 1});
  trace.launch(trace.kernel("walk"), trace.intern(std::move(set)), 0);
  return trace;
}

}  // namespace

Fit fit_parameters(const Measurements &measurements) {
  Fit fit;
  for (const char *name :
       {"small_bytes", "large_bytes", "to_device_small", "to_device_large", "to_host_small", "to_host_large",
        "fault_count", "fault_alone", "fault_together", "stream_bytes", "stream", "stream_resident"}) {
    const auto found = measurements.find(name);
    if (found == measurements.end() || !std::isfinite(found->second) || found->second <= 0) {
      fit.error = std::string("the measurement '") + name + "' is missing or not above 0";
      return fit;
    }
  }
  const auto value = [&](const char *name) {
    const auto found = measurements.find(name);
    return found == measurements.end() ? 0.0 : found->second;
  };
  PagingParameters &out = fit.parameters;
  const double small = value("small_bytes");
  const double large = value("large_bytes");
  // Two sizes: time = call + bytes / rate.
  const auto rate_of = [&](double small_ns, double large_ns, double &call_ns) {
    const double span = large_ns - small_ns;
    const double rate = span > 0 && large > small ? (large - small) / span * 1e9 : large / large_ns * 1e9;
    call_ns = std::max(0.0, small_ns - small / rate * 1e9);
    return rate;
  };
  double call = 0;
  out.to_device = rate_of(value("to_device_small"), value("to_device_large"), call);
  out.prefetch_call_ns = static_cast<int64_t>(call);
  out.to_host = rate_of(value("to_host_small"), value("to_host_large"), call);
  // The driver's own eviction of a block costs what asking for one does.
  out.evict_ns = static_cast<int64_t>(call);
  out.fault_rate = out.to_device;

  // n faults one after the other: n * (batch + block + page / rate). All in one batch: batch + n * (block + page / rate).
  const double count = value("fault_count");
  const double page_ns = static_cast<double>(kPageBytes) / out.fault_rate * 1e9;
  const double batch = count > 1 ? (value("fault_alone") - value("fault_together")) / (count - 1) : 0;
  const double alone = value("fault_alone") / count;
  const double lone_batch = std::clamp(batch, 0.0, alone);
  out.batch_ns = static_cast<int64_t>(lone_batch);
  out.block_ns = static_cast<int64_t>(std::max(0.0, alone - lone_batch - page_ns));

  const Trace stream = streaming(static_cast<uint64_t>(value("stream_bytes")), value("stream_resident"));
  double nearest = INFINITY;
  PagingParameters best = out;
  for (uint64_t pages = 1; pages <= kMostWindowPages; pages *= 2) {
    PagingParameters trial = out;
    trial.window_bytes = pages * kPageBytes;
    const SimulationResult result = simulate(stream, trial, kUnlimited);
    if (result.batches == 0) continue;
    const double wanted =
        static_cast<double>(trial.batch_ns) +
        (value("stream") - static_cast<double>(result.total_ns)) / static_cast<double>(result.batches);
    trial.batch_ns = static_cast<int64_t>(std::max(0.0, wanted));
    const double distance = std::abs(wanted - lone_batch);
    if (distance < nearest) {
      nearest = distance;
      best = trial;
    }
  }
  out = best;

  if (value("populate") > 0 && value("populate_bytes") > 0) {
    const double making = value("populate") - value("populate_resident");
    if (making > 0) out.populate_rate = value("populate_bytes") / making * 1e9;
  }
  if (value("host_fault_all") > 0 && value("host_fault_bytes") > 0) {
    const double bytes = value("host_fault_bytes");
    const double blocks = bytes / static_cast<double>(kBlockBytes);
    const double each = std::min(value("host_fault_one_each"), value("host_fault_all")) / blocks;
    const double moving = value("host_fault_all") - each * blocks;
    out.host_fault_ns = static_cast<int64_t>(each);
    out.host_fault_rate = moving > 0 ? bytes / moving * 1e9 : out.to_host;
  }
  if (value("remote") > 0 && value("remote_bytes") > 0) out.remote_rate = value("remote_bytes") / value("remote") * 1e9;
  if (value("launch") > 0) out.launch_ns = static_cast<int64_t>(value("launch"));
  out.source = "fitted to measurements";

  const auto row = [&](const char *name, const Trace &trace) {
    fit.rows.push_back({name, value(name), static_cast<double>(simulate(trace, out, kUnlimited).total_ns)});
  };
  row("stream", stream);
  row("fault_alone", walking(static_cast<uint64_t>(count) * kBlockPages, kBlockPages));
  if (value("walk_block") > 0)
    row("walk_block", walking(static_cast<uint64_t>(value("walked_blocks")) * kBlockPages, 1));
  if (value("populate") > 0) {
    row("populate", writing(static_cast<uint64_t>(value("populate_bytes")), value("populate_resident")));
  }
  return fit;
}

std::string fit_text(const Fit &fit, const std::string &card) {
  PagingParameters named = fit.parameters;
  if (!card.empty()) named.source = "fitted to measurements on " + card;
  std::string text = parameters_text(named);
  text += "# the simulator against what it was fitted to:\n";
  for (const FitRow &row : fit.rows) {
    char line[160];
    std::snprintf(line, sizeof(line), "#   %-12s measured %.3f ms, simulated %.3f ms (%+.1f %%)\n", row.name.c_str(),
                  row.measured_ns / 1e6, row.simulated_ns / 1e6, 100 * (row.simulated_ns / row.measured_ns - 1));
    text += line;
  }
  return text;
}

}  // namespace sonde::uvm
