#include "uvm.h"

#include <algorithm>

#include <sonde/toolkit/paging_plan.h>

#include "plan_text.h"

namespace sonde::uvm {

namespace {

// Shares of the touched bytes for which the table by capacity has rows; the sources speak of 3x oversubscription.
constexpr double kShares[] = {1.0, 0.75, 0.5, 1.0 / 3, 0.25};

MadePlan made(const Trace &trace, const PagingParameters &parameters, uint64_t capacity, const Options &options,
              Level level) {
  PlannerOptions planner = options.planner;
  planner.level = level;
  return make_plan(trace, parameters, capacity, planner);
}

Outcome outcome_of(const Trace &trace, const PagingParameters &parameters, uint64_t capacity, const Options &options,
                   const toolkit::PagingPlan *given) {
  Outcome out;
  out.simulated_steps = trace.steps.size();
  out.capacity = capacity;
  out.footprint = trace.footprint();
  out.greatest_step = trace.greatest_step();
  out.resident_ns = trace.resident_ns();
  out.bound_ns = transfer_bound_ns(trace, parameters);
  out.is_extrapolated = out.footprint > capacity;
  out.none = simulate(trace, parameters, capacity);
  if (out.none.is_impossible) {
    out.reason = "the capacity does not hold one block of 2 MiB";
    return out;
  }
  out.each_launch = simulate(trace, parameters, capacity, whole_objects_at_each_launch(trace));
  out.object_plan = made(trace, parameters, capacity, options, Level::kObject);
  out.object = simulate(trace, parameters, capacity, out.object_plan.schedule);
  out.tensor_plan = made(trace, parameters, capacity, options, Level::kTensor);
  out.tensor = simulate(trace, parameters, capacity, out.tensor_plan.schedule);
  if (given != nullptr) {
    out.given = simulate(trace, parameters, capacity, schedule_of(trace, *given, out.given_unknown));
  }
  const Optimum best = optimum(trace, parameters, capacity, options.most_accesses);
  if (!best.is_too_long && !best.is_impossible) out.optimum = best;

  out.chosen = out.tensor.total_ns <= out.object.total_ns ? Chosen::kTensor : Chosen::kObject;
  if (options.level == "object") out.chosen = Chosen::kObject;
  if (options.level == "tensor") out.chosen = Chosen::kTensor;
  const SimulationResult &result = out.chosen_result();
  const auto least = static_cast<int64_t>((1 - options.least_gain) * static_cast<double>(out.none.total_ns));
  if (result.total_ns > least) {
    out.reason = result.total_ns > out.none.total_ns ? "the plan would make the run longer"
                                                     : "the plan would save less than least_gain of the time";
    if (out.chosen == Chosen::kObject && options.level == "object" && out.tensor.total_ns < out.object.total_ns) {
      out.reason += "; level: tensor does better";
    }
    out.chosen = Chosen::kNothing;
  } else {
    out.plan = out.chosen == Chosen::kObject ? out.object_plan : out.tensor_plan;
    if (out.plan.schedule.is_empty()) {
      out.chosen = Chosen::kNothing;
      out.reason = "there is nothing to move";
    }
  }
  std::vector<uint64_t> capacities;
  for (const double share : kShares) {
    const auto bytes = static_cast<uint64_t>(share * static_cast<double>(out.footprint));
    // Whole blocks, so that the first row is not short of a page.
    capacities.push_back(blocks_of(pages_of(bytes)) * kBlockBytes +
                         (share == 1.0 ? kBlockBytes * trace.allocations.size() : 0));
  }
  for (const uint64_t one : capacities) out.by_capacity.push_back(predict(trace, parameters, one, options, given));
  return out;
}

}  // namespace

Outcome plan_and_predict(const Trace &trace, const PagingParameters &parameters, uint64_t capacity,
                         const Options &options, const toolkit::PagingPlan *given) {
  if (trace.block_accesses() <= options.most_accesses) return outcome_of(trace, parameters, capacity, options, given);
  // Of what repeats, the beginning tells which plan to take; that plan is made for all of it.
  Outcome out = outcome_of(trace.beginning(options.most_accesses), parameters, capacity, options, given);
  out.is_cut = true;
  out.footprint = trace.footprint();
  out.greatest_step = trace.greatest_step();
  out.is_extrapolated = out.footprint > capacity;
  if (out.chosen != Chosen::kNothing) {
    out.plan =
        made(trace, parameters, capacity, options, out.chosen == Chosen::kObject ? Level::kObject : Level::kTensor);
  }
  return out;
}

Prediction predict(const Trace &trace, const PagingParameters &parameters, uint64_t capacity, const Options &options,
                   const toolkit::PagingPlan *given) {
  Prediction row;
  row.capacity = capacity;
  row.is_extrapolated = trace.footprint() > capacity;
  const SimulationResult none = simulate(trace, parameters, capacity);
  row.none_ns = none.total_ns;
  row.is_impossible = none.is_impossible;
  if (row.is_impossible) return row;
  row.each_launch_ns = simulate(trace, parameters, capacity, whole_objects_at_each_launch(trace)).total_ns;
  const auto planned_ns = [&](Level level) {
    return simulate(trace, parameters, capacity, made(trace, parameters, capacity, options, level).schedule).total_ns;
  };
  row.object_ns = planned_ns(Level::kObject);
  row.tensor_ns = planned_ns(Level::kTensor);
  if (given != nullptr) {
    uint64_t unknown = 0;
    row.given_ns = simulate(trace, parameters, capacity, schedule_of(trace, *given, unknown)).total_ns;
  }
  const Optimum best = optimum(trace, parameters, capacity, options.most_accesses);
  if (!best.is_too_long && !best.is_impossible) row.optimum_ns = best.total_ns;
  return row;
}

}  // namespace sonde::uvm
