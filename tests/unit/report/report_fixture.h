// A session with results, and its report as text.
#pragma once

#include <gtest/gtest.h>
#include <sonde/capture.h>
#include <sonde/report.h>
#include <sonde/result.h>
#include <sonde/session.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/services.h"
#include "report/install.h"

namespace sonde::report {

inline sonde_value_t text_value(std::string_view text) {
  sonde_value_t value{};
  value.kind = SONDE_VALUE_TEXT;
  value.count = text.size();
  value.as.text = text.data();
  return value;
}

inline sonde_value_t u64_value(uint64_t number) {
  sonde_value_t value{};
  value.kind = SONDE_VALUE_U64;
  value.as.u64 = number;
  return value;
}

inline sonde_value_t i64_value(int64_t number) {
  sonde_value_t value{};
  value.kind = SONDE_VALUE_I64;
  value.as.i64 = number;
  return value;
}

inline sonde_value_t f64_value(double number) {
  sonde_value_t value{};
  value.kind = SONDE_VALUE_F64;
  value.as.f64 = number;
  return value;
}

inline sonde_value_t bool_value(bool truth) {
  sonde_value_t value{};
  value.kind = SONDE_VALUE_BOOL;
  value.as.u64 = truth ? 1 : 0;
  return value;
}

inline sonde_finding_t finding_of(const char *rule, const char *message) {
  sonde_finding_t finding{};
  finding.struct_size = sizeof(finding);
  finding.severity = SONDE_SEVERITY_WARNING;
  finding.origin = "workload";
  finding.rule = rule;
  finding.message = message;
  finding.confidence = 1;
  finding.sampling_scale = 1;
  return finding;
}

class ReportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    core::install();
    report::install();
    sessions_ = &service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
    results_ = &service<sonde_result_service_t>(SONDE_RESULT_SERVICE);
    reports_ = &service<sonde_report_service_t>(SONDE_REPORT_SERVICE);
    ASSERT_EQ(sessions_->open(nullptr, &session_), SONDE_OK) << host_table()->last_error();
  }

  void TearDown() override {
    if (session_ == nullptr) return;
    EXPECT_EQ(sessions_->close(session_), SONDE_OK);
  }

  sonde_table_t *make_table(const char *origin, const char *name, std::vector<sonde_column_spec_t> columns,
                            uint32_t show_rows = 0) {
    sonde_table_spec_t spec{};
    spec.struct_size = sizeof(spec);
    spec.column_count = static_cast<uint32_t>(columns.size());
    spec.origin = origin;
    spec.name = name;
    spec.title = "A title";
    spec.help = "";
    spec.columns = columns.data();
    spec.column_stride = sizeof(sonde_column_spec_t);
    spec.show_rows = show_rows;
    sonde_table_t *table = nullptr;
    EXPECT_EQ(results_->create_table(session_, &spec, &table), SONDE_OK) << host_table()->last_error();
    return table;
  }

  void add_row(sonde_table_t *table, std::vector<sonde_value_t> values) {
    EXPECT_EQ(results_->add_row(table, values.data(), values.size()), SONDE_OK) << host_table()->last_error();
  }

  void add_finding(const sonde_finding_t &finding) {
    EXPECT_EQ(results_->add_finding(session_, &finding), SONDE_OK) << host_table()->last_error();
  }

  static sonde_status append(void *user, const char *text, uint64_t bytes) {
    static_cast<std::string *>(user)->append(text, bytes);
    return SONDE_OK;
  }

  std::string render(const char *format, const char *only = "", uint32_t width = 0, uint32_t rows = 0) {
    sonde_report_options_t options{};
    options.struct_size = sizeof(options);
    options.width = width;
    options.rows = rows;
    options.format = format;
    options.only = only;
    std::string text;
    EXPECT_EQ(reports_->render(session_, &options, append, &text), SONDE_OK) << host_table()->last_error();
    return text;
  }

  const sonde_session_service_t *sessions_ = nullptr;
  const sonde_result_service_t *results_ = nullptr;
  const sonde_report_service_t *reports_ = nullptr;
  sonde_session_t *session_ = nullptr;
};

}  // namespace sonde::report
