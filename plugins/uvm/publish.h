// Results of the analysis through the host: tables and findings.
#pragma once

#include <string>
#include <vector>

#include <sonde/sonde.hpp>

#include "profile.h"
#include "uvm.h"

namespace sonde::uvm {

// What a run that applied a plan told of it.
struct Applied {
  uint64_t prefetches = 0;
  uint64_t evictions = 0;
  uint64_t prefetched_bytes = 0;
  uint64_t evicted_bytes = 0;
  uint64_t advice = 0;
  std::vector<std::string> notes;     // of the port, in order
  std::vector<std::string> warnings;  // of these, what went wrong
  std::string no_data;                // why the plan was not applied, "" when it was
};

struct Results {
  const Options &options;
  const Profile &profile;
  const toolkit::MemoryHistoryCounts &history;
  const PagingParameters &parameters;
  std::string parameters_error;
  bool is_calibrated = false;
  const Trace *trace = nullptr;  // null: there is none
  std::optional<Outcome> outcome;
  std::string plan_path;   // "" when none was written
  std::string plan_error;  // why not
  std::string predict_error;
  Applied applied;
};

void publish_tables(const Results &results, const Host &host, sonde_session_t *session);
void publish_findings(const Results &results, const Host &host, sonde_session_t *session);

// Lines at the head of a plan's file: what it is for and what it is expected to do.
std::string remarks_of(const Results &results);

}  // namespace sonde::uvm
