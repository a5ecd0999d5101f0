// The results of a session: tables and findings, as analyses hand them in.
//
// Everything is copied on the way in and stays at its place until the session is closed, so the pointers that the
// service hands out need no lock to be read. Rows are kept by column.
#pragma once

#include <sonde/result.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "report/text_arena.h"

namespace sonde::report {

class Table {
 public:
  // SONDE_E_INVALID: a name that is not snake_case, no columns, a name twice. SONDE_E_TYPE: a kind of column that
  // does not exist.
  static Result<std::unique_ptr<Table>> make(const sonde_table_spec_t &spec);

  // Names and columns, normalised: no NULL texts, the strides of this build. Lives as long as the table. [any]
  const sonde_table_spec_t &spec() const { return spec_; }
  std::span<const sonde_column_spec_t> columns() const { return columns_; }
  std::string_view origin() const { return spec_.origin; }
  std::string_view name() const { return spec_.name; }

  // Appends a row, or nothing when a value does not fit. Besides the column's own kind these fit: NONE, integers of
  // the other signedness within range, integers in an F64 column (rounded to the nearest double). [any]
  Result<void> add_row(std::span<const sonde_value_t> values);

  uint64_t row_count() const;

  // A cell; text points into the table. SONDE_E_RANGE. [any]
  Result<sonde_value_t> cell(uint64_t row, uint64_t column) const;

 private:
  struct Cells {
    std::vector<sonde_value_data_t> data;
    std::vector<uint64_t> sizes;  // of texts, bytes; unused for other kinds
    std::vector<bool> present;
  };

  Table() = default;

  sonde_table_spec_t spec_{};
  std::vector<sonde_column_spec_t> columns_;
  TextArena names_;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<Cells> cells_;
  TextArena texts_;
  uint64_t rows_ = 0;
};

// A finding with everything that it points to.
class Finding {
 public:
  // SONDE_E_INVALID: no origin, rule or message, or an UNSUPPORTED without reason. SONDE_E_RANGE: a severity, verdict
  // or confidence that does not exist. SONDE_E_TYPE: evidence that is not a number, text, truth value or list.
  static Result<std::unique_ptr<Finding>> make(const sonde_finding_t &finding);

  // Normalised: no NULL texts, numbers finite, a sampling scale that was not given is 1.
  const sonde_finding_t &view() const { return view_; }
  std::span<const sonde_evidence_t> evidence() const { return evidence_; }

 private:
  Finding() = default;
  Result<void> copy_evidence(const sonde_finding_t &finding);

  sonde_finding_t view_{};
  std::vector<sonde_evidence_t> evidence_;
  std::deque<std::vector<uint64_t>> lists_;  // elements of I64S, F64S and BYTES, in units of 8 bytes
  TextArena texts_;
};

class Results {
 public:
  // SONDE_E_EXISTS when the origin has a table of that name.
  Result<Table *> add_table(std::unique_ptr<Table> table);
  void add_finding(std::unique_ptr<Finding> finding);

  uint64_t table_count() const;
  uint64_t finding_count() const;
  // By order of creation; NULL past the end.
  Table *table_at(uint64_t index) const;
  const Finding *finding_at(uint64_t index) const;
  Table *find_table(std::string_view origin, std::string_view name) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Table>> tables_;
  std::vector<std::unique_ptr<Finding>> findings_;
};

// The results of `session`, made at the first use and freed when the session is closed. SONDE_E_INVALID: it is not
// open. [any]
Result<Results *> results_of(sonde_session_t *session);

}  // namespace sonde::report
