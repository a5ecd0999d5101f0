#include <sonde/toolkit/text.h>

#include <string>

#include "publish.h"

namespace sonde::workload {
namespace {

using toolkit::format_bytes;
using toolkit::format_ns;
using toolkit::format_share;

double share(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::string number(double value) {
  std::string text = std::to_string(value);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Each rule reports every device or process that breaks it; where none does, one finding says that it looked, or why
// it could not.
class Judge {
 public:
  Judge(const Workload &workload, const Host &host, sonde_session_t *session)
      : workload_(workload), options_(workload.options()), host_(host), session_(session) {}

  void all() {
    idle_device();
    launch_bound();
    blocking_copies();
    tiny_copies();
    low_concurrency();
    stream_overlap();
    invalid_times();
    live_memory();
    scope_device_time();
    complete();
    if (workload_.sampled()) sampled();
  }

 private:
  std::string where(const Source &source, uint32_t device) const {
    return "Device " + std::to_string(device) + owner(source);
  }
  std::string owner(const Source &source) const {
    if (workload_.sources().size() < 2) return "";
    return " of process " + (source.process ? std::to_string(*source.process) : std::string("(unnamed)"));
  }

  Finding finding(const char *rule) const { return Finding(kOrigin, std::string(kOrigin) + "." + rule); }
  void publish(Finding finding) const { finding.publish(host_, session_); }

  // Evidence that says which device and process is meant.
  void locate(Finding &finding, const Source &source, uint32_t device) const {
    if (source.process) finding.evidence("process", "1", *source.process);
    finding.evidence("device", "1", device);
  }

  // Rules about what happened in between cannot be judged where parts were left out on purpose.
  bool left_out(const char *rule, const char *message) const {
    if (!workload_.sampled()) return false;
    Finding result = finding(rule);
    result.unsupported(message, "a port left out parts of the run to keep its budget; capture without `budget`");
    publish(std::move(result));
    return true;
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

  void idle_device() const {
    if (left_out("idle_device", "Idle time was not judged.")) return;
    const std::string formula = "idle / span >= idle_share (" + number(options_.idle_share) +
                                ") where span >= idle_span (" + format_ns(options_.idle_span_ns) + ")";
    bool broken = false, looked = false;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[device_number, device] : source.devices) {
        if (device.span_ns() < std::max<int64_t>(options_.idle_span_ns, 1)) continue;
        looked = true;
        if (device.idle_share() < options_.idle_share) continue;
        broken = true;
        Finding result = finding("idle_device");
        result.violation(SONDE_SEVERITY_WARNING,
                         where(source, device_number) + " ran nothing for " + format_share(device.idle_share()) +
                             " of the " + format_ns(device.span_ns()) + " between its first and last activity.");
        result.advice(
            "See the table gaps for what the device waited for: input, host work between launches, or "
            "synchronisation. Prepare input ahead and queue work before the device runs dry.");
        locate(result, source, device_number);
        result.evidence("idle", "ns", device.idle_ns())
            .evidence("span", "ns", device.span_ns())
            .evidence("idle_share", "1", device.idle_share())
            .evidence("longest_gap", "ns", device.gaps().max())
            .formula(formula)
            .confidence(0.9);
        publish(std::move(result));
      }
    }
    if (broken) return;
    Finding result = finding("idle_device");
    result.formula(formula);
    if (looked) {
      result.ok("No device was idle for long.");
    } else {
      result.unsupported("Idle time was not judged.",
                         "no device has kernels, copies or sets with valid times that span "
                         "at least idle_span");
    }
    publish(std::move(result));
  }

  void launch_bound() const {
    if (left_out("launch_bound", "Launch-bound phases were not looked for.")) return;
    const std::string formula = "at least launch_bound_kernels (" + std::to_string(options_.launch_bound_kernels) +
                                ") kernels in a row, each at most launch_bound_kernel_time (" +
                                format_ns(options_.launch_bound_kernel_ns) + "), with gaps of at most launch_gap (" +
                                format_ns(options_.launch_gap_ns) +
                                "), that leave the device idle for launch_bound_idle_share (" +
                                number(options_.launch_bound_idle_share) + ") of their span";
    bool broken = false, looked = false;
    for (const auto &[id, source] : workload_.sources()) {
      looked = looked || source.kernel_count > 0;
      for (const auto &[device_number, device] : source.devices) {
        const LaunchBound &bound = device.launch_bound();
        if (bound.phases == 0) continue;
        broken = true;
        Finding result = finding("launch_bound");
        result.violation(SONDE_SEVERITY_WARNING,
                         where(source, device_number) + " waited for launches: " + std::to_string(bound.phases) +
                             (bound.phases == 1 ? " phase of " : " phases of together ") +
                             std::to_string(bound.kernels) + " short kernels left it idle for " +
                             format_share(share(bound.idle_ns, bound.span_ns)) + " of " + format_ns(bound.span_ns) +
                             ".");
        result.advice(
            "Launch the phase as a CUDA or HIP graph, fuse the short kernels (torch.compile does both), or "
            "give each launch more work.");
        locate(result, source, device_number);
        result.evidence("phases", "1", bound.phases)
            .evidence("kernels", "1", bound.kernels)
            .evidence("idle", "ns", bound.idle_ns)
            .evidence("span", "ns", bound.span_ns)
            .evidence("longest_phase", "ns", bound.longest_span)
            .evidence("longest_phase_begin", "ns", bound.longest_begin - device.first_ns())
            .formula(formula)
            .gain_seconds(seconds(bound.idle_ns))  // an upper bound: all launches ahead of the device
            .confidence(0.7);
        publish(std::move(result));
      }
    }
    if (broken) return;
    Finding result = finding("launch_bound");
    result.formula(formula);
    if (looked) {
      result.ok("No phase was bound by launches.");
    } else {
      result.unsupported("Launch-bound phases were not looked for.", "the capture holds no kernel");
    }
    publish(std::move(result));
  }

  void blocking_copies() const {
    if (left_out("blocking_copies", "Blocking copies were not judged.")) return;
    const std::string formula =
        "time in which a synchronous or pageable copy between host and device ran, no kernel did, and kernels came "
        "before and after / span >= blocking_copy_share (" +
        number(options_.blocking_copy_share) + ")";
    bool broken = false, looked = false;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[device_number, device] : source.devices) {
        looked = true;
        const double blocked = share(device.exposed_copy_ns(), device.span_ns());
        if (device.exposed_copy_ns() == 0 || blocked < options_.blocking_copy_share) continue;
        broken = true;
        Finding result = finding("blocking_copies");
        result.violation(SONDE_SEVERITY_WARNING,
                         where(source, device_number) + " ran no kernel for " + format_ns(device.exposed_copy_ns()) +
                             " (" + format_share(blocked) +
                             " of its span) while a synchronous or pageable copy was under way between kernels.");
        result.advice(
            "Use pinned host memory and asynchronous copies on a stream of their own, so that they run "
            "beside kernels (pin_memory and non_blocking in PyTorch).");
        locate(result, source, device_number);
        result.evidence("blocked", "ns", device.exposed_copy_ns())
            .evidence("blocked_share", "1", blocked)
            .evidence("blocking_copies", "1", device.blocking_copies())
            .evidence("span", "ns", device.span_ns())
            .formula(formula)
            .gain_seconds(seconds(device.exposed_copy_ns()))  // an upper bound: all of it hidden behind kernels
            .confidence(0.8);
        publish(std::move(result));
      }
    }
    if (broken) return;
    Finding result = finding("blocking_copies");
    result.formula(formula);
    if (looked) {
      result.ok("Blocking copies did not hold kernels up.");
    } else {
      result.unsupported("Blocking copies were not looked for.", "the capture holds no kernel, copy or set");
    }
    publish(std::move(result));
  }

  void tiny_copies() const {
    const std::string formula = "copies between host and device below tiny_copy_bytes (" +
                                std::to_string(options_.tiny_copy_bytes) + ") are at least tiny_copies (" +
                                std::to_string(options_.tiny_copies) + ") and more than tiny_copy_share (" +
                                number(options_.tiny_copy_share) + ") of all of them";
    bool broken = false, looked = false;
    for (const auto &[id, source] : workload_.sources()) {
      looked = looked || source.host_copies > 0;
      const double part = source.host_copies == 0
                              ? 0
                              : static_cast<double>(source.tiny_copies) / static_cast<double>(source.host_copies);
      if (source.tiny_copies < static_cast<uint64_t>(options_.tiny_copies) || part <= options_.tiny_copy_share)
        continue;
      broken = true;
      Finding result = finding("tiny_copies");
      result.violation(SONDE_SEVERITY_WARNING,
                       std::to_string(source.tiny_copies) + " of " + std::to_string(source.host_copies) +
                           " copies between host and device" + owner(source) + " carried less than " +
                           format_bytes(static_cast<uint64_t>(options_.tiny_copy_bytes)) + ".");
      result.advice(
          "Gather small values into one buffer and copy that, or keep them on the device; each item() or "
          "cpu() of a scalar is such a copy.");
      if (source.process) result.evidence("process", "1", *source.process);
      result.evidence("tiny_copies", "1", source.tiny_copies)
          .evidence("copies", "1", source.host_copies)
          .evidence("tiny_copy_time", "ns", source.tiny_copy_ns)
          .formula(formula)
          .confidence(0.9);
      publish(std::move(result));
    }
    if (broken) return;
    Finding result = finding("tiny_copies");
    result.formula(formula);
    if (looked) {
      result.ok("Copies between host and device are not mostly tiny.");
    } else {
      result.unsupported("Tiny copies were not looked for.", "the capture holds no copy between host and device");
    }
    publish(std::move(result));
  }

  void low_concurrency() const {
    if (left_out("low_concurrency", "Concurrency was not judged.")) return;
    const std::string formula = "at least concurrency_streams (" + std::to_string(options_.concurrency_streams) +
                                ") streams ran kernels, and time with two or more kernels at once / time with any < "
                                "concurrency_share (" +
                                number(options_.concurrency_share) + ")";
    bool broken = false, looked = false, several = false;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[device_number, device] : source.devices) {
        if (device.kernel_busy_ns() == 0) continue;
        looked = true;
        int64_t streams = 0;
        for (const auto &[key, stream] : device.streams()) streams += stream.kernels > 0 ? 1 : 0;
        if (streams < options_.concurrency_streams) continue;
        several = true;
        int64_t overlapping = 0;
        for (size_t level = 2; level < Device::kLevels; ++level) overlapping += device.time_at_level()[level];
        const double part = share(overlapping, device.kernel_busy_ns());
        if (part >= options_.concurrency_share) continue;
        broken = true;
        Finding result = finding("low_concurrency");
        result.violation(SONDE_SEVERITY_NOTE, where(source, device_number) + " ran kernels from " +
                                                  std::to_string(streams) + " streams, but only " + format_share(part) +
                                                  " of its kernel time had two at once.");
        result.advice(
            "If the streams are meant to overlap, look for events, default-stream work or synchronisation "
            "between them, or for kernels that fill the device alone.");
        locate(result, source, device_number);
        result.evidence("streams", "1", streams)
            .evidence("overlapping", "ns", overlapping)
            .evidence("kernel_busy", "ns", device.kernel_busy_ns())
            .evidence("overlapping_share", "1", part)
            .formula(formula)
            .confidence(0.5);  // streams may be in order on purpose
        publish(std::move(result));
      }
    }
    if (broken) return;
    Finding result = finding("low_concurrency");
    result.formula(formula);
    if (!looked) {
      result.unsupported("Concurrency was not judged.", "the capture holds no kernel with valid times");
    } else {
      result.ok(several ? "Streams overlapped." : "No device ran kernels from several streams.");
    }
    publish(std::move(result));
  }

  void stream_overlap() const {
    const std::string formula = "sum of the lengths of a stream's activities - length of their union > 0";
    uint64_t streams = 0;
    int64_t overlap = 0;
    bool looked = false;
    for (const auto &[id, source] : workload_.sources()) {
      for (const auto &[device_number, device] : source.devices) {
        for (const auto &[key, stream] : device.streams()) {
          looked = true;
          streams += stream.total_ns > stream.busy_ns ? 1 : 0;
          overlap += stream.total_ns - stream.busy_ns;
        }
      }
    }
    Finding result = finding("stream_overlap");
    result.formula(formula);
    if (!looked) {
      result.unsupported("Overlap within streams was not looked for.",
                         "the capture holds no kernel, copy or set with valid times");
    } else if (overlap == 0) {
      result.ok("Activities of one stream did not overlap, so sums of lengths are lengths of time.");
    } else {
      result.violation(SONDE_SEVERITY_NOTE, "Activities of one stream ran at once for " + format_ns(overlap) + " on " +
                                                std::to_string(streams) + (streams == 1 ? " stream" : " streams") +
                                                ", so sums of their lengths count time twice.");
      result.advice(
          "Programmatic dependent launch and graphs overlap kernels of one stream; where neither is used, the "
          "ends of some records cannot be right. Busy and idle times count each instant once either way.");
      result.evidence("overlap", "ns", overlap).evidence("streams", "1", streams);
    }
    publish(std::move(result));
  }

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

  const Workload &workload_;
  const Options &options_;
  const Host &host_;
  sonde_session_t *session_;
};

}  // namespace

void publish_findings(const Workload &workload, const Host &host, sonde_session_t *session) {
  Judge(workload, host, session).all();
}

}  // namespace sonde::workload
