// Rules about time and copies: what held devices up.
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

class TimeJudge : public Judge {
 public:
  using Judge::Judge;

  void all() {
    idle_device();
    launch_bound();
    blocking_copies();
    tiny_copies();
    low_concurrency();
    stream_overlap();
  }

 private:
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
};

}  // namespace

void judge_time(const Workload &workload, const Host &host, sonde_session_t *session) {
  TimeJudge(workload, host, session).all();
}

}  // namespace sonde::workload
