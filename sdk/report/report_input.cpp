#include "report/report_input.h"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "core/services.h"

namespace sonde::report {
namespace {

constexpr uint64_t kUnknown = std::numeric_limits<uint64_t>::max();

bool is_wanted(std::string_view only, std::string_view origin, std::string_view table) {
  if (only.empty() || only == origin) return true;
  return only.size() == origin.size() + 1 + table.size() && only.starts_with(origin) && only[origin.size()] == '.' &&
         only.ends_with(table);
}

Result<std::vector<sonde_loss_t>> losses_of(sonde_session_t *session) {
  const auto &service = sonde::service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
  std::vector<sonde_loss_t> rows;
  uint64_t count = 0;
  // The ledger may grow between two calls while the session runs.
  do {
    rows.resize(count);
    if (const sonde_status status = service.losses(session, rows.data(), rows.size(), &count); status != SONDE_OK) {
      return Error{status, last_error()};
    }
  } while (count > rows.size());
  rows.resize(count);
  return rows;
}

}  // namespace

Result<ReportInput> collect(sonde_session_t *session, const sonde_report_options_t &options) {
  ReportInput input;
  input.options = options;
  input.only = options.only == nullptr ? std::string_view() : options.only;
  const auto found = results_of(session);
  if (!found) return found.error();
  const Results &results = **found;
  std::string known;
  for (uint64_t index = 0; const Table *table = results.table_at(index); ++index) {
    if (is_wanted(input.only, table->origin(), table->name())) input.tables.push_back(table);
    known += fmt::format("{}{}.{}", known.empty() ? "" : ", ", table->origin(), table->name());
  }
  for (uint64_t index = 0; const Finding *finding = results.finding_at(index); ++index) {
    if (input.only.empty() || input.only == finding->view().origin) input.findings.push_back(finding);
  }
  if (!input.only.empty() && input.tables.empty() && input.findings.empty()) {
    return Error{SONDE_E_NOT_FOUND, fmt::format("no results named \"{}\"; the tables are: {}", input.only,
                                                known.empty() ? "none" : known)};
  }

  auto losses = losses_of(session);
  if (!losses) return losses.error();
  input.losses = std::move(*losses);
  input.totals = total_of(input.losses);
  return input;
}

LossTotals total_of(const std::vector<sonde_loss_t> &losses) {
  LossTotals totals;
  for (const sonde_loss_t &loss : losses) {
    if (loss.records == kUnknown) {
      totals.is_exact = false;
      totals.unknown_bytes += loss.bytes;
    } else if (loss.cause == SONDE_LOSS_LATE) {
      totals.late_records += loss.records;
    } else if (loss.subscriber != 0) {
      totals.subscriber_records += loss.records;
    } else {
      totals.records += loss.records;
    }
  }
  return totals;
}

std::string_view cause_name(uint32_t cause) {
  switch (cause) {
    case SONDE_LOSS_RING_FULL:
      return "ring full";
    case SONDE_LOSS_TOO_BIG:
      return "record too big";
    case SONDE_LOSS_QUEUE_FULL:
      return "queue full";
    case SONDE_LOSS_OVERWRITTEN:
      return "overwritten";
    case SONDE_LOSS_VENDOR:
      return "dropped by the runtime";
    case SONDE_LOSS_MEMORY_CAP:
      return "memory cap";
    case SONDE_LOSS_DISK:
      return "disk";
    case SONDE_LOSS_TAIL:
      return "end of the process";
    case SONDE_LOSS_MALFORMED:
      return "malformed record";
    case SONDE_LOSS_DEADLINE:
      return "deadline";
    case SONDE_LOSS_SUBSCRIBER:
      return "subscriber failed";
    case SONDE_LOSS_DAMAGED:
      return "damaged file";
    case SONDE_LOSS_LATE:
      return "late, out of order";
    default:
      return "unknown cause";
  }
}

std::string_view severity_name(uint32_t severity) {
  switch (severity) {
    case SONDE_SEVERITY_ERROR:
      return "error";
    case SONDE_SEVERITY_WARNING:
      return "warning";
    default:
      return "note";
  }
}

std::string_view verdict_name(uint32_t verdict) {
  switch (verdict) {
    case SONDE_VERDICT_VIOLATION:
      return "violation";
    case SONDE_VERDICT_OK:
      return "ok";
    default:
      return "unsupported";
  }
}

std::string_view column_kind_name(uint32_t kind) {
  switch (kind) {
    case SONDE_VALUE_I64:
      return "i64";
    case SONDE_VALUE_U64:
      return "u64";
    case SONDE_VALUE_F64:
      return "f64";
    case SONDE_VALUE_TEXT:
      return "text";
    default:
      return "bool";
  }
}

}  // namespace sonde::report
