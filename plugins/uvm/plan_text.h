// Schedules of a trace as plans that name allocations and launches, and back; and the file that holds one.
#pragma once

#include <string>

#include <sonde/toolkit/paging_plan.h>

#include "schedule.h"
#include "trace.h"

namespace sonde::uvm {

toolkit::PagingPlan plan_of(const Trace &trace, const Schedule &schedule);

// What of a plan fits the trace; `unknown` counts moves whose allocation or launch the trace does not have.
Schedule schedule_of(const Trace &trace, const toolkit::PagingPlan &plan, uint64_t &unknown);

// A run's configuration with the plan, ready for `sonde run -c`. `remarks`: lines that become comments.
std::string plan_file_text(const toolkit::PagingPlan &plan, const std::string &remarks);

// True when `text` is as plan_file_text made it: its checksum holds.
bool is_unedited(const std::string &text);

// Writes the plan. False with `error` when the file is there and was edited, or cannot be written.
bool write_plan_file(const std::string &path, const std::string &text, bool overwrite, std::string &error);

}  // namespace sonde::uvm
