#include "report_fixture.h"

namespace sonde::report {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// A reader by the grammar of RFC 4180, section 2.
Rows read_csv(std::string_view text) {
  Rows rows;
  size_t position = 0;
  while (position < text.size()) {
    std::vector<std::string> row;
    while (true) {
      std::string field;
      if (position < text.size() && text[position] == '"') {
        ++position;
        while (position < text.size()) {
          if (text[position] == '"') {
            if (text.substr(position, 2) != "\"\"") break;
            ++position;
          }
          field += text[position++];
        }
        ++position;
      } else {
        const size_t end = std::min(text.find_first_of(",\r", position), text.size());
        field = text.substr(position, end - position);
        EXPECT_EQ(field.find_first_of("\"\n"), std::string::npos) << field;
        position = end;
      }
      row.push_back(field);
      if (position < text.size() && text[position] == ',') {
        ++position;
        continue;
      }
      break;
    }
    EXPECT_EQ(text.substr(position, 2), "\r\n");
    position += 2;
    rows.push_back(row);
  }
  return rows;
}

using CsvReport = ReportTest;

TEST_F(CsvReport, QuotesFieldsByRfc4180) {
  sonde_table_t *table = make_table("workload", "kernels",
                                    {{"name", "", "", SONDE_VALUE_TEXT, 0}, {"count", "1", "", SONDE_VALUE_U64, 0}});
  const std::vector<std::string> names = {"plain", "a,b", "say \"x\"", "two\r\nlines", "# not a heading", "", "\u00D7"};
  for (const std::string &name : names) add_row(table, {text_value(name), u64_value(18446744073709551615u)});
  add_row(table, {text_value("byte\x9f"), sonde_value_t{}});
  const Rows rows = read_csv(render("csv", "workload.kernels"));
  ASSERT_GE(rows.size(), 10u);
  EXPECT_EQ(rows[0], std::vector<std::string>{"# workload.kernels"});
  EXPECT_EQ(rows[1], (std::vector<std::string>{"name", "count"}));
  for (size_t index = 0; index < names.size(); ++index) {
    EXPECT_EQ(rows[2 + index], (std::vector<std::string>{names[index], "18446744073709551615"}));
  }
  EXPECT_EQ(rows[2 + names.size()], (std::vector<std::string>{"byte\uFFFD", ""}));
}

TEST_F(CsvReport, EndsWithFindingsAndLosses) {
  const auto &capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  ASSERT_EQ(capture.lose(session_, 0, SONDE_LOSS_VENDOR, 12, 96), SONDE_OK);
  sonde_finding_t finding = finding_of("workload.idle", "The device, it waits.");
  const sonde_evidence_t evidence[] = {{"share", "%", f64_value(45.125)}, {"launches", "1", u64_value(1234567)}};
  finding.evidence = evidence;
  finding.evidence_count = 2;
  finding.evidence_stride = sizeof(sonde_evidence_t);
  add_finding(finding);
  const Rows rows = read_csv(render("csv"));
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0], std::vector<std::string>{"# findings"});
  ASSERT_EQ(rows[1].size(), rows[2].size());
  EXPECT_EQ(rows[2][4], "The device, it waits.");
  EXPECT_EQ(rows[1][13], "evidence");
  EXPECT_EQ(rows[2][13], "share=45.125 %; launches=1234567");
  EXPECT_EQ(rows[3], std::vector<std::string>{"# losses"});
  EXPECT_EQ(rows[5], (std::vector<std::string>{"0", "0", "dropped by the runtime", "12", "96", "0"}));
}

}  // namespace
}  // namespace sonde::report
