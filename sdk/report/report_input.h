// What a report shows: the results of a session, narrowed to what was asked for, and its losses.
#pragma once

#include <sonde/ledger.h>
#include <sonde/report.h>
#include <sonde/session.h>

#include <string_view>
#include <vector>

#include "core/error.h"
#include "report/results.h"

namespace sonde::report {

struct LossTotals {
  uint64_t records = 0;             // lost for everybody, where the number is known
  uint64_t subscriber_records = 0;  // lost for one subscriber alone
  uint64_t late_records = 0;        // delivered, but out of order
  uint64_t unknown_bytes = 0;       // bound of what was lost where the number of records is not known
  bool is_exact = true;             // false: some numbers of records are not known

  bool is_zero() const { return records == 0 && subscriber_records == 0 && is_exact; }
};

struct ReportInput {
  std::vector<const Table *> tables;      // in the order of their creation
  std::vector<const Finding *> findings;  // in the order they were added
  std::vector<sonde_loss_t> losses;       // sorted by source, stream, cause, subscriber
  LossTotals totals;
  sonde_report_options_t options{};
  std::string_view only;
};

// Collects. SONDE_E_NOT_FOUND: options.only names no table and no origin that has results; lists what there is.
Result<ReportInput> collect(sonde_session_t *session, const sonde_report_options_t &options);

LossTotals total_of(const std::vector<sonde_loss_t> &losses);

// "ring full", ...
std::string_view cause_name(uint32_t cause);
// "note", "warning", "error"
std::string_view severity_name(uint32_t severity);
// "violation", "ok", "unsupported"
std::string_view verdict_name(uint32_t verdict);
// "i64", ...: names of column kinds
std::string_view column_kind_name(uint32_t kind);

}  // namespace sonde::report
