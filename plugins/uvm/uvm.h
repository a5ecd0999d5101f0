// The analysis: from a profile to a chosen plan and its predictions. No host in it; what is published is made from here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sonde/toolkit/paging_plan.h>

#include "optimum.h"
#include "options.h"
#include "planner.h"
#include "simulator.h"
#include "trace.h"

namespace sonde::uvm {

// What a trace takes at one capacity.
struct Prediction {
  uint64_t capacity = 0;
  int64_t none_ns = 0;
  int64_t each_launch_ns = 0;  // whole allocations before each launch that touches them, no look-ahead, no eviction
  int64_t object_ns = 0;       // planned with whole allocations
  int64_t tensor_ns = 0;       // planned with touched pages
  int64_t given_ns = 0;        // the plan of the option `predict`, 0: none
  std::optional<int64_t> optimum_ns;
  bool is_extrapolated = false;  // the capacity is less than the pages that are touched
  bool is_impossible = false;
};

enum class Chosen : uint8_t { kNothing, kObject, kTensor };

struct Outcome {
  uint64_t capacity = 0;
  uint64_t footprint = 0;
  uint64_t greatest_step = 0;
  int64_t resident_ns = 0;
  int64_t bound_ns = 0;  // max(bytes that have to come / link, resident)
  bool is_extrapolated = false;
  Chosen chosen = Chosen::kNothing;
  std::string reason;  // why nothing was chosen
  MadePlan plan;       // the chosen one; empty with kNothing
  MadePlan object_plan;
  MadePlan tensor_plan;
  SimulationResult none;
  SimulationResult each_launch;
  SimulationResult object;
  SimulationResult tensor;
  std::optional<SimulationResult> given;
  uint64_t given_unknown = 0;
  uint64_t simulated_steps = 0;  // of a longer trace its beginning is simulated, and all of it planned
  bool is_cut = false;
  std::optional<Optimum> optimum;
  std::vector<Prediction> by_capacity;

  const SimulationResult &chosen_result() const {
    return chosen == Chosen::kNothing ? none : chosen == Chosen::kObject ? object : tensor;
  }
  // Planning by whole allocations, or prefetching them at each launch, makes the run longer than doing nothing.
  bool objects_hurt() const { return std::max(object.total_ns, each_launch.total_ns) > none.total_ns; }
};

// `given`: a plan to predict as well, or null.
Outcome plan_and_predict(const Trace &trace, const PagingParameters &parameters, uint64_t capacity,
                         const Options &options, const toolkit::PagingPlan *given);

// One row of the table by capacity; the plans are made anew for it.
Prediction predict(const Trace &trace, const PagingParameters &parameters, uint64_t capacity, const Options &options,
                   const toolkit::PagingPlan *given);

}  // namespace sonde::uvm
