// The part of a plan that goes through shared memory.
#pragma once

#include "layout/plan.h"

namespace sonde::layout {

// Sets plan.shared from the plan's layouts; makes the kind distributed where a store leaves its block.
bool plan_shared_memory(Arena &arena, const PlanOptions &options, Plan &plan);

}  // namespace sonde::layout
