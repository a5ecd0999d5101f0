// Running analyses over a capture and reporting on it: the second half of `run`, and all of `replay`.
#pragma once

#include <sonde/sonde.hpp>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "cli/report_output.h"
#include "cli/run_config.h"

namespace sonde::cli {

struct RunDeleter {
  const sonde_run_service_t *service;
  void operator()(sonde_run_t *run) const { service->close(run); }
};
using OwnedRun = std::unique_ptr<sonde_run_t, RunDeleter>;

// A run that analyses a capture. Made before the capture exists, so that faults of the configuration show first.
class Analysing {
 public:
  Analysing(const Host &host, const RunConfig &config);

  // Replays, finishes, writes the report; the exit status. Throws when the capture cannot be read.
  int report(const std::string &capture, const RunConfig &config, const ReportFlags &flags);

  sonde_session_t *session() const;
  // Replays and finishes without a report. What the capture says of itself (warnings, errors, "no data because ...")
  // goes to standard error.
  void replay(const std::string &capture);

 private:
  void collect_notes();
  void print_notes();

  Host host_;
  const sonde_run_service_t &service_;
  OwnedRun run_;
  std::mutex notes_mutex_;                            // guards notes_
  std::set<std::pair<uint32_t, std::string>> notes_;  // severity, text
  Subscription notes_subscription_;                   // ends before the run does
};

}  // namespace sonde::cli
