#include <nlohmann/json.hpp>

#include "report_fixture.h"

namespace sonde::report {
namespace {

using nlohmann::json;

using JsonReport = ReportTest;

TEST_F(JsonReport, HasTablesFindingsAndLossesWhenThereIsNothing) {
  const json report = json::parse(render("json"));
  EXPECT_TRUE(report.at("sonde").is_object());
  EXPECT_EQ(report.at("tables"), json::object());
  EXPECT_EQ(report.at("findings"), json::array());
  EXPECT_EQ(report.at("losses").at("records"), 0);
  EXPECT_EQ(report.at("losses").at("exact"), true);
  EXPECT_EQ(report.at("losses").at("rows"), json::array());
}

TEST_F(JsonReport, ShowsEveryRowOfATableInItsOrder) {
  sonde_table_t *table = make_table("workload", "kernels",
                                    {{"name", "", "the kernel", SONDE_VALUE_TEXT, SONDE_COLUMN_KEY},
                                     {"total", "ns", "sum", SONDE_VALUE_U64, SONDE_COLUMN_SORT_DOWN},
                                     {"share", "%", "", SONDE_VALUE_F64, SONDE_COLUMN_HIDDEN}},
                                    1);
  add_row(table, {text_value("b\x9f\""), u64_value((uint64_t{1} << 53) + 1), f64_value(1)});
  add_row(table, {text_value("a"), u64_value(18446744073709551615u), sonde_value_t{}});
  const std::string text = render("json");
  const json report = json::parse(text);
  const json &shown = report.at("tables").at("workload.kernels");
  EXPECT_EQ(shown.at("columns").at(1), json::parse(R"({"name": "total", "kind": "u64", "unit": "ns", "key": false,
                                                       "help": "sum"})"));
  EXPECT_EQ(shown.at("rows").size(), 2u);
  EXPECT_EQ(shown.at("rows").at(0).at(0), "b\uFFFD\"");
  EXPECT_EQ(shown.at("rows").at(0).at(1).get<uint64_t>(), 9007199254740993u);
  EXPECT_EQ(shown.at("rows").at(1).at(1).get<uint64_t>(), 18446744073709551615u);
  EXPECT_TRUE(shown.at("rows").at(1).at(2).is_null());
  EXPECT_EQ(text, render("json"));
}

TEST_F(JsonReport, ShowsAFindingWithEvidenceAndReason) {
  sonde_finding_t finding = finding_of("workload.idle", "No data.");
  finding.verdict = SONDE_VERDICT_UNSUPPORTED;
  finding.reason = "CUPTI is absent";
  finding.line = 7;
  const sonde_evidence_t evidence[] = {{"share", "%", f64_value(45.5)}};
  finding.evidence = evidence;
  finding.evidence_count = 1;
  finding.evidence_stride = sizeof(sonde_evidence_t);
  add_finding(finding);
  const json shown = json::parse(render("json")).at("findings").at(0);
  EXPECT_EQ(shown.at("verdict"), "unsupported");
  EXPECT_EQ(shown.at("reason"), "CUPTI is absent");
  EXPECT_EQ(shown.at("severity"), "warning");
  EXPECT_EQ(shown.at("location").at("line"), 7);
  EXPECT_TRUE(shown.at("location").at("column").is_null());
  EXPECT_EQ(shown.at("evidence"), json::parse(R"([{"name": "share", "value": 45.5, "unit": "%"}])"));
}

TEST_F(JsonReport, CountsLossesByCauseAndKeepsLateOnesApart) {
  const auto &capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  ASSERT_EQ(capture.lose(session_, 0, SONDE_LOSS_VENDOR, 12, 0), SONDE_OK);
  ASSERT_EQ(capture.lose(session_, 0, SONDE_LOSS_LATE, 3, 0), SONDE_OK);
  ASSERT_EQ(capture.lose(session_, 0, SONDE_LOSS_TAIL, UINT64_MAX, 4096), SONDE_OK);
  const json losses = json::parse(render("json")).at("losses");
  EXPECT_EQ(losses.at("records"), 12);
  EXPECT_EQ(losses.at("late_records"), 3);
  EXPECT_EQ(losses.at("exact"), false);
  EXPECT_EQ(losses.at("unknown_bytes"), 4096);
  ASSERT_EQ(losses.at("rows").size(), 3u);
  EXPECT_EQ(losses.at("rows").at(0).at("cause"), "dropped by the runtime");
  EXPECT_TRUE(losses.at("rows").at(1).at("records").is_null());
}

TEST_F(JsonReport, NarrowsToAnOriginOrATable) {
  make_table("workload", "kernels", {{"a", "1", "", SONDE_VALUE_U64, 0}});
  make_table("workload", "copies", {{"a", "1", "", SONDE_VALUE_U64, 0}});
  make_table("script.lua", "kernels", {{"a", "1", "", SONDE_VALUE_U64, 0}});
  add_finding(finding_of("workload.idle", "The device waits."));
  const auto names = [&](const char *only) {
    std::string all;
    const json report = json::parse(render("json", only));
    for (const auto &[name, table] : report.at("tables").items()) all += name + " ";
    return all + std::to_string(report.at("findings").size());
  };
  EXPECT_EQ(names("workload"), "workload.copies workload.kernels 1");
  EXPECT_EQ(names("workload.kernels"), "workload.kernels 0");
  EXPECT_EQ(names("script.lua"), "script.lua.kernels 0");
  sonde_report_options_t options{};
  options.struct_size = sizeof(options);
  options.format = "json";
  options.only = "workload.x";
  std::string text;
  EXPECT_EQ(reports_->render(session_, &options, append, &text), SONDE_E_NOT_FOUND);
  EXPECT_NE(std::string(host_table()->last_error()).find("workload.copies"), std::string::npos);
}

TEST_F(JsonReport, RefusesAFormatThatDoesNotExist) {
  sonde_report_options_t options{};
  options.struct_size = sizeof(options);
  options.format = "xml";
  std::string text;
  EXPECT_EQ(reports_->render(session_, &options, append, &text), SONDE_E_NOT_FOUND);
  EXPECT_NE(std::string(host_table()->last_error()).find("text, json, sarif and csv"), std::string::npos);
}

TEST_F(JsonReport, EndsWithTheErrorOfTheWritingFunction) {
  sonde_table_t *table = make_table("workload", "kernels", {{"a", "1", "", SONDE_VALUE_U64, 0}});
  for (uint64_t row = 0; row < 100'000; ++row) add_row(table, {u64_value(row)});
  sonde_report_options_t options{};
  options.struct_size = sizeof(options);
  options.format = "json";
  int calls = 0;
  const auto refuse = [](void *user, const char *, uint64_t) -> sonde_status {
    ++*static_cast<int *>(user);
    return SONDE_E_IO;
  };
  EXPECT_EQ(reports_->render(session_, &options, refuse, &calls), SONDE_E_IO);
  EXPECT_EQ(calls, 1);
}

// Fault 81: a large report streams; no piece is larger than the buffer.
TEST_F(JsonReport, StreamsInPiecesOfBoundedSize) {
  sonde_table_t *table = make_table("workload", "kernels", {{"a", "1", "", SONDE_VALUE_U64, 0}});
  for (uint64_t row = 0; row < 100'000; ++row) add_row(table, {u64_value(row)});
  for (const char *format : {"json", "csv"}) {
    sonde_report_options_t options{};
    options.struct_size = sizeof(options);
    options.format = format;
    uint64_t longest = 0;
    const auto measure = [](void *user, const char *, uint64_t bytes) -> sonde_status {
      uint64_t &most = *static_cast<uint64_t *>(user);
      most = std::max(most, bytes);
      return SONDE_OK;
    };
    EXPECT_EQ(reports_->render(session_, &options, measure, &longest), SONDE_OK);
    EXPECT_LE(longest, 32u * 1024);
  }
}

}  // namespace
}  // namespace sonde::report
