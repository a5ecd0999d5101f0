#include <algorithm>
#include <cstdio>

#include <sonde/toolkit/text.h>

#include "publish.h"

namespace sonde::uvm {

namespace {

using toolkit::format_bytes;
using toolkit::format_ns;
using toolkit::format_share;

constexpr char kOrigin[] = "uvm";
constexpr char kExtrapolation[] = " This is extrapolation: the simulator is calibrated without oversubscription.";

// Half of what is claimed may be wrong once memory is short; calibrated and with room it is a model of two numbers.
double confidence_of(const Results &results) {
  return (results.outcome->is_extrapolated ? 0.5 : 0.9) * (results.is_calibrated ? 1.0 : 0.6);
}

std::string capacity_text(uint64_t capacity) {
  return capacity == UINT64_MAX ? "a size that is not known" : format_bytes(capacity);
}

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string fixed(double value, int digits = 2) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

void judge_data(const Results &results, const Host &host, sonde_session_t *session) {
  const ProfileCounts &counts = results.profile.counts();
  Finding finding(kOrigin, "uvm.data");
  if (!counts.has_access_records) {
    finding.unsupported(
        "No plan was made: the capture does not say what launches touch.",
        "no sonde.access records; record a run with the port cuda_access (collect: intervals or objects), "
        "one with the port cuda, and join them by `sonde merge`");
  } else if (results.trace == nullptr) {
    finding.unsupported("No plan was made: no launch touches memory that could be planned.",
                        results.options.profile.memory == Memory::kManaged
                            ? "no launch touches a managed allocation; memory: all plans as if all were managed"
                            : "no launch was watched touching a live allocation of the device");
  } else if (counts.timed == 0) {
    finding.unsupported("The plan knows no kernel times: look-ahead and predictions are those of the link alone.",
                        "no sonde.device.kernel record joins a launch; record a second run with the port cuda and join "
                        "them by `sonde merge`");
  } else {
    finding.ok(std::to_string(counts.watched) + " of " + std::to_string(counts.launches) + " launches were watched, " +
               std::to_string(counts.timed) + " have a time.");
  }
  finding.evidence("launches", "1", counts.launches)
      .evidence("watched", "1", counts.watched)
      .evidence("timed", "1", counts.timed)
      .evidence("estimated_times", "1", counts.estimated)
      .evidence("touches", "1", counts.touches)
      .evidence("touches_by_range", "1", counts.by_edges)
      .evidence("touches_by_tensor", "1", counts.by_tensors)
      .evidence("touches_of_whole_allocations", "1", counts.whole)
      .evidence("joined_ranges", "1", counts.joined_spans)
      .evidence("migrations", "1", counts.migrations)
      .publish(host, session);

  const uint64_t lost = results.history.lost_touches + results.history.late_records;
  if (results.trace == nullptr) return;
  Finding complete(kOrigin, "uvm.complete");
  if (counts.incomplete + counts.left_out + lost != 0 || counts.other_devices != 0) {
    complete
        .unsupported("Some touches are not known, so the plan may leave memory out: the driver's faults bring it in.",
                     std::to_string(counts.incomplete) +
                         " launches were not watched as a whole (tensor maps, sampling, " + "filters, losses), " +
                         std::to_string(counts.left_out) + " are beyond most_launches, " +
                         std::to_string(counts.other_devices) + " ran on other devices, " + std::to_string(lost) +
                         " records came too late")
        .evidence("incomplete_launches", "1", counts.incomplete)
        .evidence("left_out_launches", "1", counts.left_out)
        .evidence("other_devices", "1", counts.other_devices)
        .evidence("late_records", "1", lost);
  } else {
    complete.ok("All touches of all launches are known.");
  }
  complete.publish(host, session);
}

void judge_plan(const Results &results, const Host &host, sonde_session_t *session) {
  const Outcome &outcome = *results.outcome;
  const int64_t saved = outcome.none.total_ns - outcome.chosen_result().total_ns;
  const double share =
      outcome.none.total_ns > 0 ? static_cast<double>(saved) / static_cast<double>(outcome.none.total_ns) : 0;
  Finding finding(kOrigin, "uvm.prefetch");
  if (outcome.chosen == Chosen::kNothing) {
    finding.ok("No plan is made: " + outcome.reason + "." + (outcome.is_extrapolated ? kExtrapolation : ""));
  } else {
    finding
        .violation(SONDE_SEVERITY_WARNING,
                   "Launches wait for page faults: by the plan the run takes " +
                       format_ns(outcome.chosen_result().total_ns) + " instead of " + format_ns(outcome.none.total_ns) +
                       " (" + format_share(share) + " less)" +
                       (results.profile.counts().is_all_memory ? ", if the device's memory were managed" : "") + "." +
                       (outcome.is_extrapolated ? kExtrapolation : ""))
        .advice(
            results.plan_path.empty()
                ? (results.profile.counts().is_all_memory
                       ? "There is no managed memory to which a plan could be applied: put large buffers into managed "
                         "memory and record again."
                       : "No plan was written: " +
                             (results.plan_error.empty() ? "the option plan is empty" : results.plan_error) + ".")
                : "sonde run -c " + results.plan_path + " -- PROGRAM")
        .gain_seconds(seconds(saved));
  }
  finding.confidence(confidence_of(results))
      .formula("(no_prefetch - plan) / no_prefetch >= least_gain = " + fixed(results.options.least_gain))
      .evidence("no_prefetch", "ns", outcome.none.total_ns)
      .evidence("plan", "ns", outcome.chosen_result().total_ns)
      .evidence("resident", "ns", outcome.resident_ns)
      .evidence("bound", "ns", outcome.bound_ns)
      .evidence("capacity", "bytes", outcome.capacity)
      .evidence("touched", "bytes", outcome.footprint)
      .evidence("fault_batches", "1", outcome.none.batches)
      .evidence("moves", "1", outcome.plan.schedule.moves())
      .evidence("greatest_distance", "1", outcome.plan.facts.greatest_distance)
      .evidence("left_to_driver", "1", outcome.plan.facts.left_to_driver)
      .evidence("pinned", "bytes", outcome.plan.facts.pinned_bytes)
      .evidence("extrapolated", "", outcome.is_extrapolated);
  if (outcome.optimum) finding.evidence("optimum", "ns", outcome.optimum->total_ns);
  finding.publish(host, session);

  if (!results.plan_error.empty()) {
    Finding(kOrigin, "uvm.plan_file")
        .violation(SONDE_SEVERITY_WARNING, "The plan was not written: " + results.plan_error + ".")
        .publish(host, session);
  }
  if (!results.predict_error.empty()) {
    Finding(kOrigin, "uvm.predict")
        .unsupported("The plan of the option predict was not predicted.", results.predict_error)
        .publish(host, session);
  }
  if (outcome.is_cut) {
    Finding(kOrigin, "uvm.simulation_cut")
        .unsupported("Predictions are those of the beginning of the run; the plan is for all of it.",
                     "the launches have more than most_accesses = " + std::to_string(results.options.most_accesses) +
                         " accesses of blocks")
        .evidence("simulated_launches", "1", outcome.simulated_steps)
        .evidence("launches", "1", static_cast<uint64_t>(results.trace->steps.size()))
        .publish(host, session);
  }
  if (outcome.plan.facts.is_cut) {
    Finding(kOrigin, "uvm.plan_cut")
        .violation(SONDE_SEVERITY_NOTE,
                   "The plan ends early: it has as many moves as most_moves allows; later launches "
                   "are left to the driver.")
        .evidence("most_moves", "1", results.options.planner.most_moves)
        .publish(host, session);
  }
}

void judge_objects(const Results &results, const Host &host, sonde_session_t *session) {
  const Outcome &outcome = *results.outcome;
  const int64_t worst = std::max(outcome.object.total_ns, outcome.each_launch.total_ns);
  const auto ratio = [&](int64_t ns) {
    return outcome.none.total_ns > 0 ? static_cast<double>(ns) / static_cast<double>(outcome.none.total_ns) : 1;
  };
  Finding finding(kOrigin, "uvm.object_level");
  if (outcome.objects_hurt()) {
    finding
        .violation(SONDE_SEVERITY_NOTE,
                   "Prefetching whole allocations is refused: it would make the run " + fixed(ratio(worst)) +
                       " times as long as no prefetching, because " + format_bytes(outcome.footprint) +
                       " of touched pages and what else the allocations hold do not fit into " +
                       format_bytes(outcome.capacity) + "." + (outcome.is_extrapolated ? kExtrapolation : ""))
        .advice("Use level: tensor (or auto), which moves what launches touch.");
  } else {
    finding.ok("Prefetching whole allocations would not make the run longer." +
               std::string(outcome.is_extrapolated ? kExtrapolation : ""));
  }
  finding.confidence(confidence_of(results))
      .formula("max(each_launch, object_plan) > no_prefetch")
      .evidence("no_prefetch", "ns", outcome.none.total_ns)
      .evidence("each_launch", "ns", outcome.each_launch.total_ns)
      .evidence("each_launch_evicted", "bytes", outcome.each_launch.evicted_bytes)
      .evidence("object_plan", "ns", outcome.object.total_ns)
      .evidence("plan", "ns", outcome.tensor.total_ns)
      .evidence("capacity", "bytes", outcome.capacity)
      .evidence("touched", "bytes", outcome.footprint)
      .evidence("extrapolated", "", outcome.is_extrapolated)
      .publish(host, session);
}

void judge_memory(const Results &results, const Host &host, sonde_session_t *session) {
  const Outcome &outcome = *results.outcome;
  Finding room(kOrigin, "uvm.oversubscription");
  if (outcome.is_extrapolated) {
    room.violation(SONDE_SEVERITY_WARNING, "Launches touch " + format_bytes(outcome.footprint) + ", the device has " +
                                               format_bytes(outcome.capacity) +
                                               " for them: pages leave and come back." + kExtrapolation);
  } else {
    room.ok("What launches touch fits into the device: " + format_bytes(outcome.footprint) + " of " +
            capacity_text(outcome.capacity) + ".");
  }
  room.formula("touched > capacity")
      .evidence("touched", "bytes", outcome.footprint)
      .evidence("capacity", "bytes", outcome.capacity)
      .evidence("evicted", "bytes", outcome.none.evicted_bytes)
      .publish(host, session);

  Finding step(kOrigin, "uvm.launch_too_large");
  if (outcome.greatest_step > outcome.capacity) {
    step.violation(SONDE_SEVERITY_WARNING,
                   "One launch touches " + format_bytes(outcome.greatest_step) + ", more than the device's " +
                       format_bytes(outcome.capacity) +
                       ": moves between launches cannot help it, and what does not fit is left to the driver.")
        .advice("Split the launch, so that each part's data fits.");
  } else {
    step.ok("Each launch's data fits into the device.");
  }
  step.formula("greatest touched bytes of a launch > capacity")
      .evidence("greatest_launch", "bytes", outcome.greatest_step)
      .evidence("capacity", "bytes", outcome.capacity)
      .publish(host, session);

  uint64_t turns = 0;
  uint64_t bytes = 0;
  std::string which;
  for (const Allocation &allocation : results.trace->allocations) {
    if (allocation.host_touches < results.options.planner.ping_pong || allocation.device_touches == 0) continue;
    turns += allocation.host_touches;
    bytes += allocation.bytes;
    which += (which.empty() ? "" : ", ") + std::to_string(allocation.ordinal);
  }
  Finding pong(kOrigin, "uvm.ping_pong");
  if (turns != 0) {
    const uint64_t kept = outcome.tensor_plan.facts.kept_on_host_bytes;
    pong.violation(SONDE_SEVERITY_WARNING,
                   "Allocations " + which +
                       " go back and forth between host and device: the host took their pages back " +
                       std::to_string(turns) + " times.")
        .advice(kept != 0 ? "The plan keeps " + format_bytes(kept) +
                                " of them on the host, where the device reads them over the link."
                          : "The plan moves them: reading them over the link would cost more than moving.")
        .gain_seconds(seconds(outcome.none.host_fault_ns - outcome.tensor.host_fault_ns));
  } else if (results.profile.counts().migrations == 0) {
    pong.unsupported("It is not known whether the host takes pages back.",
                     "no migrations in the capture; record the run of the port cuda with its option managed");
  } else {
    pong.ok("No allocation goes back and forth between host and device.");
  }
  pong.formula("turns of the host on one allocation >= ping_pong = " +
               std::to_string(results.options.planner.ping_pong))
      .evidence("turns", "1", turns)
      .evidence("bytes", "bytes", bytes)
      .evidence("kept_on_host", "bytes", outcome.tensor_plan.facts.kept_on_host_bytes)
      .publish(host, session);
}

void judge_parameters(const Results &results, const Host &host, sonde_session_t *session) {
  Finding finding(kOrigin, "uvm.calibration");
  if (results.is_calibrated) {
    finding.ok("The simulator is calibrated: " + results.parameters.source + ".");
  } else {
    finding
        .unsupported("Predictions use parameters that were not measured on this card.",
                     results.parameters_error.empty() ? "the option calibration is empty" : results.parameters_error)
        .advice(
            "Run the micro-benchmarks (tests/gpu/uvm/calibrate.cu), then `sonde call uvm fit FILE`, and give its "
            "output "
            "as calibration.");
  }
  finding.publish(host, session);
}

void judge_applied(const Results &results, const Host &host, sonde_session_t *session) {
  const Applied &applied = results.applied;
  Finding finding(kOrigin, "uvm.applied");
  std::string all;
  for (const std::string &note : applied.notes) all += (all.empty() ? "" : " ") + note + ".";
  if (!applied.no_data.empty()) {
    finding.unsupported("The plan was not applied.", applied.no_data);
  } else if (!applied.warnings.empty()) {
    std::string warnings;
    for (const std::string &warning : applied.warnings) warnings += (warnings.empty() ? "" : " ") + warning + ".";
    finding.violation(SONDE_SEVERITY_WARNING, "The plan was not applied as it stands: " + warnings)
        .advice("Record the program again and make a new plan.");
  } else if (applied.notes.empty()) {
    finding.unsupported("It is not known whether the plan was applied.",
                        "the port cuda_paging said nothing; the process used no CUDA, or ended without its exit");
  } else {
    finding.ok("The plan was applied: " + all);
  }
  finding.evidence("prefetches", "1", applied.prefetches)
      .evidence("prefetched", "bytes", applied.prefetched_bytes)
      .evidence("evictions", "1", applied.evictions)
      .evidence("evicted", "bytes", applied.evicted_bytes)
      .evidence("advice", "1", applied.advice)
      .publish(host, session);
}

}  // namespace

void publish_findings(const Results &results, const Host &host, sonde_session_t *session) {
  if (results.options.is_applied) return judge_applied(results, host, session);
  judge_data(results, host, session);
  if (results.trace == nullptr || !results.outcome) return;
  judge_parameters(results, host, session);
  if (results.outcome->none.is_impossible) {
    Finding(kOrigin, "uvm.prefetch").unsupported("No plan was made.", results.outcome->reason).publish(host, session);
    return;
  }
  judge_plan(results, host, session);
  judge_objects(results, host, session);
  judge_memory(results, host, session);
}

std::string remarks_of(const Results &results) {
  const Outcome &outcome = *results.outcome;
  std::string text = "Simulated, " + results.parameters.source + ": " + format_ns(outcome.none.total_ns) +
                     " without, " + format_ns(outcome.chosen_result().total_ns) + " with this plan" +
                     (outcome.optimum ? ", " + format_ns(outcome.optimum->total_ns) + " at best" : "") + ".\n";
  text +=
      "Capacity " + capacity_text(outcome.capacity) + ", touched " + format_bytes(outcome.footprint) +
      (outcome.is_extrapolated ? ": extrapolation, the simulator is calibrated without oversubscription.\n" : ".\n");
  return text;
}

}  // namespace sonde::uvm
