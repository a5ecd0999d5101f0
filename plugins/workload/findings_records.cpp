// Rules about the records themselves: what they cannot say, and what is left at the end.
#include <sonde/toolkit/text.h>

#include <algorithm>
#include <array>
#include <string>

#include "findings.h"

namespace sonde::workload {
namespace {

using toolkit::format_bytes;
using toolkit::format_ns;
using toolkit::format_share;

class RecordJudge : public Judge {
 public:
  using Judge::Judge;

  void all() {
    invalid_times();
    live_memory();
    scope_device_time();
    complete();
    if (workload_.sampled()) sampled();
  }

 private:
  void invalid_times() const {
    std::array<uint64_t, InvalidTimes::kReasons> reasons{};
    uint64_t device = 0, host = 0, records = 0;
    for (const auto &[id, source] : workload_.sources()) {
      records += source.records;
      device += source.invalid_device.total();
      host += source.invalid_host.total();
      for (size_t i = 0; i < reasons.size(); ++i) {
        reasons[i] += source.invalid_device.by_reason[i] + source.invalid_host.by_reason[i];
      }
    }
    Finding result = finding("invalid_times");
    result.formula("records whose begin or end is 0, reversed, a sentinel or outside the session");
    if (records == 0) {
      result.unsupported("Time stamps were not looked at.", "the capture holds no record");
    } else if (device + host == 0) {
      result.ok("All time stamps can be right.");
    } else {
      constexpr std::array kNames = {"other", "zero", "reversed", "sentinel", "outside"};
      result.violation(SONDE_SEVERITY_WARNING,
                       std::to_string(device) + " device records and " + std::to_string(host) +
                           " calls have time stamps that cannot be right; they are counted, and "
                           "left out of all times.");
      result.advice(
          "The runtime could not take these times (out of device memory for them, or a clock that was not "
          "ready). Totals and busy times are lower bounds.");
      result.evidence("device_records", "1", device).evidence("calls", "1", host);
      for (size_t i = 0; i < reasons.size(); ++i) {
        if (reasons[i] != 0) result.evidence(kNames[i], "1", reasons[i]);
      }
    }
    publish(std::move(result));
  }

  void live_memory() const {
    uint64_t ranges = 0, bytes = 0, unmatched = 0;
    bool looked = false;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, row] : source.memory.rows()) {
        if (std::get<0>(key) != MemoryLevel::kAllocation) continue;
        looked = true;
        ranges += row.live;
        bytes += row.bytes;
        unmatched += row.unmatched_frees;
      }
    }
    Finding result = finding("live_memory");
    result.formula("allocations without a free when the capture ended");
    if (!looked) {
      result.unsupported("Memory was not looked at.", "the capture holds no allocation");
    } else if (ranges == 0) {
      result.ok("Every allocation was freed.");
    } else {
      // What a caching allocator or a pool keeps until the process ends is no leak, so this is no more than a note.
      result.violation(SONDE_SEVERITY_NOTE, std::to_string(ranges) +
                                                (ranges == 1 ? " allocation of " : " allocations of together ") +
                                                format_bytes(bytes) + " had not been freed when the capture ended.");
      result.advice(
          "Caches and pools keep memory on purpose; compare live in the table memory between two runs of "
          "different length before calling it a leak.");
      result.evidence("allocations", "1", ranges)
          .evidence("bytes", "bytes", bytes)
          .evidence("unmatched_frees", "1", unmatched)
          .confidence(0.3);
    }
    publish(std::move(result));
  }

  void scope_device_time() const {
    if (left_out("scope_device_time", "Device time of scopes was not judged.")) return;
    bool scopes = false, launches = false;
    uint64_t joined = 0, uncorrelated = 0, unlaunched = 0;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[key, row] : source.host.scopes()) scopes = scopes || std::get<0>(key) != ScopeKind::kMark;
      launches = launches || source.host.any_launch();
      joined += source.host.joined_kernels();
      uncorrelated += source.host.uncorrelated_kernels();
      unlaunched += source.host.unlaunched_kernels();
    }
    Finding result = finding("scope_device_time");
    result.formula("every kernel is joined by its correlation with the call that launched it");
    if (!launches) {
      result.unsupported(scopes ? "Kernels were not attributed to scopes, and launch latency is not known."
                                : "Launch latency is not known.",
                         "the capture holds no launch calls with a correlation (record the runtime's calls)");
    } else if (uncorrelated + unlaunched == 0) {
      result.ok("Every kernel was joined with its launch.");
    } else {
      result.violation(SONDE_SEVERITY_NOTE, std::to_string(uncorrelated + unlaunched) +
                                                " kernels could not be joined with a launch, so their time is missing "
                                                "from scopes and from launch latency.");
      result.evidence("joined", "1", joined)
          .evidence("without_correlation", "1", uncorrelated)
          .evidence("launch_not_seen", "1", unlaunched);
    }
    publish(std::move(result));
  }

  void complete() const {
    uint64_t late = 0, late_calls = 0;
    int64_t late_ns = 0;
    for (const auto &[id, source] : workload_.sources()) {
      late_calls += source.host.unmatched_ends() + source.host.unmatched_pops();
      for (const auto &[device_number, device] : source.devices) {
        late += device.late();
        late_ns += device.late_ns();
      }
    }
    Finding result = finding("complete");
    result.formula("no record lost on the way here, none too late to be put in order");
    if (workload_.lost_records() + workload_.lost_batches() + late == 0) {
      result.ok("This analysis received every record in time.");
    } else {
      result.violation(SONDE_SEVERITY_WARNING, std::to_string(workload_.lost_records()) + " records and " +
                                                   std::to_string(workload_.lost_batches()) +
                                                   " batches were lost before they came here, and " +
                                                   std::to_string(late) + " came too late to be put in order.");
      result.advice("Give the session more memory or larger rings; raise reorder_records for late records.");
      result.evidence("late_time", "ns", late_ns);
    }
    result.evidence("lost_records", "1", workload_.lost_records())
        .evidence("lost_batches", "1", workload_.lost_batches())
        .evidence("late", "1", late)
        .evidence("ends_without_begin", "1", late_calls);
    publish(std::move(result));
  }

  void sampled() const {
    uint64_t windows = 0, left = 0, launches = 0, recorded = 0, aside = 0;
    int64_t span = 0, collected = 0;
    bool counted = true;
    for (const auto &[id, source] : workload_.sources()) {
      windows += source.windows.count();
      left += source.windows.left_out();
      span += source.windows.length_ns();
      collected += source.windows.collected_ns();
      launches += source.windows.collected_launches();
      recorded += source.windows.recorded_launches();
      aside += source.windows.set_aside();
      counted = counted && source.windows.launches_counted();
    }
    // A launch at a window's edge may fall on either side.
    const bool missed = counted && recorded + windows < launches && recorded < launches * 98 / 100;
    Finding result = finding("sampled");
    result.formula("time collected / time of all windows < 1");
    result.violation(missed ? SONDE_SEVERITY_WARNING : SONDE_SEVERITY_NOTE,
                     "Device work was collected in " + format_share(share(collected, span)) + " of " + format_ns(span) +
                         ", in windows chosen at random to keep a budget. sampled_kernels scales kernels to the whole "
                         "run, with intervals; the other tables show what was collected." +
                         (missed ? " Only " + std::to_string(recorded) + " of the " + std::to_string(launches) +
                                       " launches in collected windows have a record; " +
                                       (aside != 0 ? std::to_string(aside) + " windows were set aside for that."
                                                   : std::string("counts and totals are too small for that."))
                                 : std::string()));
    result.advice(counted ? "Kernels that ran outside of these windows only are missing."
                          : "Launches were not counted, so totals are scaled by time and come out too small, by at "
                            "most the slow-down within the windows.");
    result.evidence("windows", "1", windows)
        .evidence("left_out", "1", left)
        .evidence("span", "ns", span)
        .evidence("collected", "ns", collected)
        .evidence("collected_launches", "1", launches)
        .evidence("recorded_launches", "1", recorded)
        .evidence("set_aside", "1", aside);
    publish(std::move(result));
  }
};

}  // namespace

void judge_records(const Workload &workload, const Host &host, sonde_session_t *session) {
  RecordJudge(workload, host, session).all();
}

}  // namespace sonde::workload
