#include <algorithm>
#include <map>

#include <sonde/toolkit/names.h>
#include <sonde/toolkit/text.h>

#include "publish.h"
#include "segments.h"

namespace sonde::uvm {

namespace {

constexpr char kOrigin[] = "uvm";

const char *home_name(Home home) {
  return home == Home::kHost ? "host" : home == Home::kNowhere ? "nowhere" : "device";
}

std::optional<uint64_t> launch_of(const Trace &trace, uint32_t step) {
  if (step >= trace.steps.size() || trace.steps[step].launch == kNobody) return std::nullopt;
  return trace.steps[step].launch;
}

void publish_objects(const Trace &trace, const Host &host, sonde_session_t *session) {
  Table table(host, session, kOrigin, "objects", "Allocations that launches touch",
              "Managed allocations of the planned process and device, in the order of the program");
  table.u64("allocation", "1", "ordinal among the process's managed allocations, from 0", SONDE_COLUMN_KEY)
      .u64("bytes", "bytes", "as asked for")
      .u64("touched", "bytes", "of its pages of 64 KiB that any launch touches")
      .text("home", "where its pages are at first")
      .u64("launches", "1", "launches that touch it", SONDE_COLUMN_SORT_DOWN)
      .f64("heat", "1/s", "launches that touch it by second of the run with everything resident")
      .u64("host_touches", "1", "moments at which the host took pages back")
      .u64("first_launch", "1", "first launch that touches it")
      .u64("last_launch", "1", "last one")
      .f64("next_use", "1", "launches from one use to the next, mean")
      .text("name", "of the variable, where known")
      .create();
  struct Row {
    uint32_t first = kNone;
    uint32_t last = 0;
    uint64_t uses = 0;
  };
  std::vector<Row> rows(trace.allocations.size());
  for (uint32_t index = 0; index < trace.steps.size(); ++index) {
    if (trace.steps[index].is_host()) continue;
    uint32_t last = kNone;
    for (const PageSpan &span : trace.sets[trace.steps[index].touches]) {
      if (span.allocation == last) continue;
      last = span.allocation;
      Row &row = rows[last];
      row.first = std::min(row.first, index);
      row.last = index;
      ++row.uses;
    }
  }
  std::vector<uint64_t> touched(trace.allocations.size(), 0);
  for (const Segment &segment : cut_segments(trace, Level::kTensor, UINT64_MAX / 2).all) {
    touched[segment.allocation] += segment.bytes();
  }
  const double seconds = static_cast<double>(trace.resident_ns()) / 1e9;
  for (uint32_t index = 0; index < rows.size(); ++index) {
    const Allocation &allocation = trace.allocations[index];
    const Row &row = rows[index];
    if (row.uses == 0) continue;
    const std::optional<double> next =
        row.uses > 1 ? std::optional(static_cast<double>(row.last - row.first) / static_cast<double>(row.uses - 1))
                     : std::nullopt;
    const std::optional<double> heat =
        seconds > 0 ? std::optional(static_cast<double>(row.uses) / seconds) : std::nullopt;
    table.row({allocation.ordinal, allocation.bytes, std::min(touched[index], allocation.bytes),
               home_name(allocation.home), row.uses, heat, allocation.host_touches, launch_of(trace, row.first),
               launch_of(trace, row.last), next, allocation.name});
  }
}

void publish_ranges(const Trace &trace, uint64_t limit, const Host &host, sonde_session_t *session) {
  Table table(host, session, kOrigin, "ranges", "Ranges within allocations, the hottest first",
              "Pages of 64 KiB that the same launches touch: tensors, or parts that tensors share");
  table.u64("allocation", "1", "ordinal", SONDE_COLUMN_KEY)
      .u64("offset", "bytes", "within the allocation", SONDE_COLUMN_KEY)
      .u64("bytes", "bytes", "of whole pages")
      .u64("launches", "1", "launches that touch it", SONDE_COLUMN_SORT_DOWN)
      .boolean("written", "by a launch")
      .u64("first_launch", "1", "first launch that touches it")
      .u64("last_launch", "1", "last one")
      .f64("next_use", "1", "launches from one use to the next, mean")
      .create();
  const Segments segments = cut_segments(trace, Level::kTensor, UINT64_MAX / 2);
  struct Row {
    uint32_t segment;
    uint32_t first = kNone;
    uint32_t last = 0;
    uint64_t uses = 0;
  };
  std::vector<Row> rows(segments.all.size());
  for (uint32_t index = 0; index < rows.size(); ++index) rows[index].segment = index;
  for (uint32_t index = 0; index < trace.steps.size(); ++index) {
    if (trace.steps[index].is_host()) continue;
    for (const uint32_t segment : segments.of_set[trace.steps[index].touches]) {
      rows[segment].first = std::min(rows[segment].first, index);
      rows[segment].last = index;
      ++rows[segment].uses;
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row &left, const Row &right) { return left.uses > right.uses; });
  for (size_t index = 0; index < rows.size() && index < limit; ++index) {
    const Row &row = rows[index];
    if (row.uses == 0) break;
    const Segment &segment = segments.all[row.segment];
    const std::optional<double> next =
        row.uses > 1 ? std::optional(static_cast<double>(row.last - row.first) / static_cast<double>(row.uses - 1))
                     : std::nullopt;
    table.row({trace.allocations[segment.allocation].ordinal, uint64_t{segment.first} * kPageBytes, segment.bytes(),
               row.uses, static_cast<bool>(segments.is_written[row.segment]), launch_of(trace, row.first),
               launch_of(trace, row.last), next});
  }
}

void publish_launches(const Trace &trace, uint64_t limit, const Host &host, sonde_session_t *session) {
  Table table(host, session, kOrigin, "launches", "Kernels by the bytes that their launches touch",
              "Managed memory alone; times are those with all pages on the device");
  table.text("kernel", "name, shortened", SONDE_COLUMN_KEY)
      .u64("launches", "1", "of it")
      .u64("touched", "bytes", "by all of its launches, whole pages", SONDE_COLUMN_SORT_DOWN)
      .u64("most", "bytes", "by one launch")
      .i64("time", "ns", "of all of its launches, with all pages on the device")
      .u64("estimated", "1", "launches whose time is estimated from their bytes, because they were only seen faulting")
      .create();
  struct Row {
    uint64_t launches = 0, touched = 0, most = 0, estimated = 0;
    int64_t ns = 0;
  };
  std::vector<Row> rows(trace.kernels.size());
  std::vector<uint64_t> bytes_of(trace.sets.size(), 0);
  for (size_t set = 0; set < trace.sets.size(); ++set) {
    for (const PageSpan &span : trace.sets[set]) bytes_of[set] += uint64_t{span.count} * kPageBytes;
  }
  for (const Step &step : trace.steps) {
    if (step.is_host()) continue;
    Row &row = rows[step.kernel];
    ++row.launches;
    row.touched += bytes_of[step.touches];
    row.most = std::max(row.most, bytes_of[step.touches]);
    row.ns += step.duration_ns;
    row.estimated += step.is_estimated ? 1 : 0;
  }
  std::vector<uint32_t> order(rows.size());
  for (uint32_t index = 0; index < order.size(); ++index) order[index] = index;
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t left, uint32_t right) { return rows[left].touched > rows[right].touched; });
  for (size_t index = 0; index < order.size() && index < limit; ++index) {
    const Row &row = rows[order[index]];
    if (row.launches == 0) continue;
    table.row({toolkit::shorten_kernel_name(trace.kernels[order[index]]), row.launches, row.touched, row.most, row.ns,
               row.estimated});
  }
}

void publish_schedule(const Trace &trace, const Outcome &outcome, uint64_t limit, const Host &host,
                      sonde_session_t *session) {
  Table table(host, session, kOrigin, "schedule", "The plan, move by move", "As it stands in the plan's file");
  table.u64("launch", "1", "before which the move is asked for", SONDE_COLUMN_KEY)
      .text("kernel", "of that launch, shortened")
      .text("move", "prefetch, evict or advice")
      .u64("allocation", "1", "ordinal")
      .u64("offset", "bytes", "within the allocation")
      .u64("bytes", "bytes", "moved")
      .u64("needed", "1", "launch that waits for it")
      .u64("distance", "1", "steps from asking to need")
      .text("when", "it begins when the host, or the device, has come to the launch")
      .create();
  constexpr const char *kAdvice[] = {"read_mostly", "prefer_device", "prefer_host", "accessed_by"};
  uint64_t rows = 0;
  for (const Advice &advice : outcome.plan.schedule.advice) {
    if (rows++ >= limit) return;
    table.row({std::nullopt, "", kAdvice[static_cast<size_t>(advice.kind)],
               trace.allocations[advice.allocation].ordinal, uint64_t{advice.first} * kPageBytes,
               uint64_t{advice.count} * kPageBytes, std::nullopt, std::nullopt, "allocation"});
  }
  for (const MoveGroup &group : outcome.plan.schedule.groups) {
    for (const Move &move : group.moves) {
      if (rows++ >= limit) return;
      const std::optional<uint64_t> needed = move.needed == kNone ? std::nullopt : launch_of(trace, move.needed);
      const std::optional<uint64_t> distance =
          move.needed == kNone ? std::nullopt : std::optional<uint64_t>(move.needed - group.step);
      table.row({launch_of(trace, group.step), toolkit::shorten_kernel_name(trace.kernel_name(trace.steps[group.step])),
                 move.is_eviction ? "evict" : "prefetch", trace.allocations[move.allocation].ordinal,
                 uint64_t{move.first} * kPageBytes, uint64_t{move.count} * kPageBytes, needed, distance,
                 group.waits_for_device ? "device" : "host"});
    }
  }
}

void publish_prediction(const Results &results, const Host &host, sonde_session_t *session) {
  const Outcome &outcome = *results.outcome;
  Table table(host, session, kOrigin, "prediction", "Simulated time by capacity",
              "From the first launch that touches managed memory to the end of the last. Rows whose capacity is less "
              "than the touched bytes are extrapolated: the simulator is calibrated without oversubscription");
  table.u64("capacity", "bytes", "of the device; empty: not known, no limit", SONDE_COLUMN_KEY)
      .f64("oversubscription", "1", "touched bytes / capacity")
      .i64("no_prefetch", "ns", "the driver's faults alone")
      .i64("each_launch", "ns", "whole allocations prefetched before each launch that touches them")
      .i64("object_plan", "ns", "planned with whole allocations")
      .i64("plan", "ns", "planned with the ranges that launches touch")
      .i64("given", "ns", "the plan of the option `predict`")
      .i64("optimum", "ns", "Belady's evictions and prefetches that only the link limits")
      .f64("gain", "1", "(no_prefetch - plan) / no_prefetch")
      .f64("to_optimum", "1", "plan / optimum")
      .boolean("extrapolated", "the device holds less than what is touched")
      .create();
  const auto row = [&](const Prediction &one) {
    if (one.is_impossible) return;
    const double none = static_cast<double>(one.none_ns);
    const std::optional<double> gain =
        none > 0 ? std::optional((none - static_cast<double>(one.tensor_ns)) / none) : std::nullopt;
    const std::optional<double> ratio =
        one.optimum_ns && *one.optimum_ns > 0
            ? std::optional(static_cast<double>(one.tensor_ns) / static_cast<double>(*one.optimum_ns))
            : std::nullopt;
    const bool is_limited = one.capacity != UINT64_MAX;
    const std::optional<double> times =
        is_limited ? std::optional(static_cast<double>(outcome.footprint) / static_cast<double>(one.capacity))
                   : std::nullopt;
    table.row({is_limited ? std::optional(one.capacity) : std::nullopt, times, one.none_ns, one.each_launch_ns,
               one.object_ns, one.tensor_ns, one.given_ns != 0 ? std::optional(one.given_ns) : std::nullopt,
               one.optimum_ns, gain, ratio, one.is_extrapolated});
  };
  Prediction first;
  first.capacity = outcome.capacity;
  first.none_ns = outcome.none.total_ns;
  first.each_launch_ns = outcome.each_launch.total_ns;
  first.object_ns = outcome.object.total_ns;
  first.tensor_ns = outcome.tensor.total_ns;
  if (outcome.given) first.given_ns = outcome.given->total_ns;
  if (outcome.optimum) first.optimum_ns = outcome.optimum->total_ns;
  first.is_extrapolated = outcome.is_extrapolated;
  first.is_impossible = outcome.none.is_impossible;
  row(first);
  for (const Prediction &one : outcome.by_capacity) row(one);
}

void publish_costs(const Results &results, const Host &host, sonde_session_t *session) {
  const Outcome &outcome = *results.outcome;
  Table table(host, session, kOrigin, "costs", "Where the simulated time goes, at the planned capacity",
              "The device's time; transfers beside it cost nothing");
  table.text("case", "without prefetching, or a plan", SONDE_COLUMN_KEY)
      .i64("total", "ns", "simulated")
      .i64("computing", "ns", "kernels with all pages there, and gaps between them")
      .i64("faults", "ns", "waiting for fault batches")
      .i64("waiting", "ns", "waiting for prefetches")
      .i64("host_faults", "ns", "the host's own faults")
      .i64("remote", "ns", "reading over the link")
      .u64("batches", "1", "fault batches")
      .u64("by_faults", "bytes", "to the device by faults")
      .u64("prefetched", "bytes", "to the device by prefetches")
      .u64("evicted", "bytes", "to the host for want of room, by the driver")
      .u64("planned_evicted", "bytes", "to the host by the plan")
      .u64("peak", "bytes", "on the device at most")
      .boolean("extrapolated", "the device holds less than what is touched")
      .create();
  const auto row = [&](const char *name, const SimulationResult &one) {
    table.row({name, one.total_ns, one.compute_ns + one.gap_ns, one.fault_ns, one.wait_ns, one.host_fault_ns,
               one.remote_ns, one.batches, one.demand_bytes, one.prefetched_bytes, one.evicted_bytes,
               one.planned_evicted_bytes, one.peak_bytes, outcome.is_extrapolated});
  };
  row("no_prefetch", outcome.none);
  row("each_launch", outcome.each_launch);
  row("object_plan", outcome.object);
  row("plan", outcome.tensor);
  if (outcome.given) row("given", *outcome.given);
}

void publish_parameters(const Results &results, const Host &host, sonde_session_t *session) {
  Table table(host, session, kOrigin, "parameters", "Parameters of the simulator", results.parameters.source);
  table.text("parameter", "see parameters.h", SONDE_COLUMN_KEY).f64("value", "", "ns, bytes or bytes/s").create();
  for (const std::string &name : parameter_names()) table.row({name, get_parameter(results.parameters, name)});
}

}  // namespace

void publish_tables(const Results &results, const Host &host, sonde_session_t *session) {
  if (results.options.is_applied) {
    Table table(host, session, kOrigin, "applied", "What was done of the plan", "As the port cuda_paging recorded it");
    table.u64("prefetches", "1", "moves to the device")
        .u64("prefetched", "bytes", "by them")
        .u64("evictions", "1", "moves to the host")
        .u64("evicted", "bytes", "by them")
        .u64("advice", "1", "pieces of advice")
        .create();
    const Applied &applied = results.applied;
    table.row({applied.prefetches, applied.prefetched_bytes, applied.evictions, applied.evicted_bytes, applied.advice});
    return;
  }
  if (results.trace == nullptr || !results.outcome) return;
  const uint64_t rows = results.options.rows;
  publish_objects(*results.trace, host, session);
  publish_ranges(*results.trace, rows, host, session);
  publish_launches(*results.trace, rows, host, session);
  publish_schedule(*results.trace, *results.outcome, rows, host, session);
  publish_prediction(results, host, session);
  publish_costs(results, host, session);
  publish_parameters(results, host, session);
}

}  // namespace sonde::uvm
