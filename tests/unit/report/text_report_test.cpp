#include "report/utf8.h"
#include "report_fixture.h"

namespace sonde::report {
namespace {

std::vector<std::string> lines_of(const std::string &text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  EXPECT_EQ(begin, text.size());  // the last line ends too
  return lines;
}

class TextReport : public ReportTest {
 protected:
  sonde_table_t *kernels(uint32_t show_rows = 0) {
    return make_table("workload", "kernels",
                      {{"name", "", "", SONDE_VALUE_TEXT, SONDE_COLUMN_KEY},
                       {"total", "ns", "", SONDE_VALUE_U64, SONDE_COLUMN_SORT_DOWN},
                       {"secret", "1", "", SONDE_VALUE_U64, SONDE_COLUMN_HIDDEN}},
                      show_rows);
  }
  void add_kernel(sonde_table_t *table, std::string_view name, uint64_t total) {
    add_row(table, {text_value(name), u64_value(total), u64_value(424242)});
  }
  // The lines of the one table: heads and rows.
  std::vector<std::string> table_lines(uint32_t width = 0) {
    std::vector<std::string> lines = lines_of(render("text", "workload.kernels", width));
    const auto title = std::find_if(lines.begin(), lines.end(), [](const std::string &line) {
      return line.find("workload.kernels") != std::string::npos;
    });
    lines.erase(lines.begin(), title + 1);
    lines.erase(std::find(lines.begin(), lines.end(), ""), lines.end());
    return lines;
  }
};

TEST_F(TextReport, AlignsColumnsAndSortsByTheGreatest) {
  sonde_table_t *table = kernels();
  add_kernel(table, "small", 950);
  add_kernel(table, "big", 1'500'000'000);
  add_kernel(table, "medium", 12'345);
  EXPECT_EQ(table_lines(), (std::vector<std::string>{
                               "  name      total",
                               "  big     1.50 s",
                               "  medium  12.3 us",
                               "  small    950 ns",
                           }));
}

TEST_F(TextReport, SaysHowManyRowsAreNotShown) {
  sonde_table_t *table = kernels(2);
  for (uint64_t row = 0; row < 1236; ++row) add_kernel(table, "k" + std::to_string(row), row);
  const std::vector<std::string> lines = table_lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NE(lines[1].find("k1235"), std::string::npos);
  EXPECT_EQ(lines[3], "  1,234 more rows");
}

TEST_F(TextReport, HidesColumnsThatAreNotForATerminal) {
  add_kernel(kernels(), "k", 1);
  EXPECT_EQ(render("text").find("424"), std::string::npos);
}

TEST_F(TextReport, DemanglesAndShortensNamesToTheWidth) {
  sonde_table_t *table = kernels();
  add_kernel(table, "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi", 5);
  add_kernel(table, "_Z30000" + std::string(30000, 'k') + "v", 4);
  const std::vector<std::string> lines = table_lines(60);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_NE(lines[1].find("at::native::vectorized_elementwise_kernel<4>"), std::string::npos) << lines[1];
  for (const std::string &line : lines) EXPECT_LE(display_width(line), 60u) << line;
}

// Fault 72: two names that read alike stay two.
TEST_F(TextReport, TellsNamesApartThatReadAlike) {
  sonde_table_t *table = kernels();
  add_kernel(table, "_ZN3fooC1Ev", 3);  // complete object constructor
  add_kernel(table, "_ZN3fooC2Ev", 2);  // base object constructor
  add_kernel(table, "_ZN3fooC1Ev", 1);  // the first again
  const std::vector<std::string> lines = table_lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1].find('['), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find("foo::foo() [2]"), std::string::npos) << lines[2];
  EXPECT_EQ(lines[3].find('['), std::string::npos) << lines[3];
}

TEST_F(TextReport, KeepsWideCharactersAligned) {
  sonde_table_t *table = kernels();
  add_kernel(table, "\u6838\u51FD\u6570", 1'000);
  add_kernel(table, "kernel", 2'000);
  const std::vector<std::string> lines = table_lines();
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(display_width(lines[1]), display_width(lines[2]));
}

TEST_F(TextReport, LetsNoNameSteerTheTerminal) {
  add_kernel(kernels(), "a\x1b[2Jb\nc", 1);
  const std::string text = render("text");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("a\\x1b[2Jb\\nc"), std::string::npos);
}

TEST_F(TextReport, GroupsFindingsBySeverity) {
  sonde_finding_t note = finding_of("workload.note", "A note.");
  note.severity = SONDE_SEVERITY_NOTE;
  add_finding(note);
  sonde_finding_t error = finding_of("workload.error", "An error.");
  error.severity = SONDE_SEVERITY_ERROR;
  const sonde_evidence_t evidence[] = {{"idle", "%", f64_value(45.5)}};
  error.evidence = evidence;
  error.evidence_count = 1;
  error.evidence_stride = sizeof(sonde_evidence_t);
  error.advice = "Do this.";
  error.formula = "idle > 30 %";
  error.kernel = "_Z1fv";
  add_finding(error);
  sonde_finding_t blind = finding_of("workload.blind", "Memory is not known.");
  blind.verdict = SONDE_VERDICT_UNSUPPORTED;
  blind.reason = "no allocations";
  add_finding(blind);
  const std::string text = render("text");
  const size_t error_at = text.find("error  workload.error");
  const size_t note_at = text.find("note  workload.note");
  const size_t blind_at = text.find("could not look  workload.blind");
  ASSERT_NE(error_at, std::string::npos) << text;
  ASSERT_NE(blind_at, std::string::npos) << text;
  EXPECT_LT(error_at, note_at);
  EXPECT_LT(note_at, blind_at);
  for (const char *part : {"idle 45.5 %", "Do this.", "idle > 30 %", "kernel f()", "no allocations",
                           "errors 1, warnings 0, notes 1, looked and found nothing 0, could not look 1"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST_F(TextReport, EndsWithLossesEvenWhenThereAreNone) {
  EXPECT_EQ(lines_of(render("text")).back(), "Losses: 0");
  const auto &capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  ASSERT_EQ(capture.lose(session_, 0, SONDE_LOSS_VENDOR, 1234, 0), SONDE_OK);
  const std::vector<std::string> lines = lines_of(render("text"));
  EXPECT_EQ(lines[lines.size() - 2], "Losses: 1,234 records");
  EXPECT_EQ(lines.back(), "  dropped by the runtime: 1,234 records");
}

TEST_F(TextReport, NamesTablesWithoutRowsInOneLine) {
  kernels();
  make_table("workload", "copies", {{"a", "1", "", SONDE_VALUE_U64, 0}});
  const std::string text = render("text");
  EXPECT_NE(text.find("\nNo rows in    workload.kernels workload.copies\n"), std::string::npos) << text;
}

TEST_F(TextReport, WrapsMessagesToTheWidth) {
  std::string message;
  for (int word = 0; word < 60; ++word) message += "word ";
  add_finding(finding_of("workload.long", message.c_str()));
  for (const std::string &line : lines_of(render("text", "", 70))) {
    if (line.find("Findings") != std::string::npos) continue;
    EXPECT_LE(display_width(line), 70u) << line;
  }
}

}  // namespace
}  // namespace sonde::report
