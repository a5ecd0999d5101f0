#include <cmath>
#include <limits>

#include "report_fixture.h"

namespace sonde::report {
namespace {

constexpr uint64_t kAddress = 0xffff800012345678;

class ResultsTest : public ReportTest {
 protected:
  sonde_status try_row(sonde_table_t *table, std::vector<sonde_value_t> values) {
    return results_->add_row(table, values.data(), values.size());
  }
  sonde_value_t cell(sonde_table_t *table, uint64_t row, uint64_t column) {
    sonde_value_t value{};
    EXPECT_EQ(results_->cell(table, row, column, &value), SONDE_OK) << host_table()->last_error();
    return value;
  }
  std::string last_error() { return host_table()->last_error(); }
};

TEST_F(ResultsTest, ReturnsCellsAsTheyWereAdded) {
  sonde_table_t *table = make_table("workload", "kernels",
                                    {{"name", "", "", SONDE_VALUE_TEXT, SONDE_COLUMN_KEY},
                                     {"address", "address", "", SONDE_VALUE_U64, 0},
                                     {"change", "bytes", "", SONDE_VALUE_I64, 0},
                                     {"share", "%", "", SONDE_VALUE_F64, 0},
                                     {"late", "", "", SONDE_VALUE_BOOL, 0}});
  {
    std::string name = "kernel";
    add_row(table, {text_value(name), u64_value(kAddress), i64_value(-5), f64_value(0.5), bool_value(true)});
    name.assign(6, 'x');  // the table has its own copy
  }
  const sonde_value_t text = cell(table, 0, 0);
  EXPECT_EQ(std::string_view(text.as.text, text.count), "kernel");
  EXPECT_EQ(text.as.text[text.count], '\0');
  EXPECT_EQ(cell(table, 0, 1).as.u64, kAddress);
  EXPECT_EQ(cell(table, 0, 2).as.i64, -5);
  EXPECT_EQ(cell(table, 0, 3).as.f64, 0.5);
  EXPECT_EQ(cell(table, 0, 4).as.u64, 1u);
}

TEST_F(ResultsTest, AcceptsIntegersOfTheOtherSignWithinRange) {
  sonde_table_t *table =
      make_table("workload", "t", {{"u", "1", "", SONDE_VALUE_U64, 0}, {"i", "1", "", SONDE_VALUE_I64, 0}});
  EXPECT_EQ(try_row(table, {i64_value(7), u64_value(8)}), SONDE_OK);
  EXPECT_EQ(try_row(table, {i64_value(-1), u64_value(8)}), SONDE_E_TYPE);
  EXPECT_NE(last_error().find("column u"), std::string::npos) << last_error();
  EXPECT_EQ(try_row(table, {u64_value(1), u64_value(uint64_t{1} << 63)}), SONDE_E_TYPE);
  EXPECT_NE(last_error().find("column i"), std::string::npos) << last_error();
}

TEST_F(ResultsTest, RefusesAValueOfAnotherKindAndKeepsTheTableWhole) {
  sonde_table_t *table =
      make_table("workload", "t", {{"a", "1", "", SONDE_VALUE_U64, 0}, {"b", "", "", SONDE_VALUE_TEXT, 0}});
  EXPECT_EQ(try_row(table, {u64_value(1), u64_value(2)}), SONDE_E_TYPE);
  EXPECT_NE(last_error().find("workload.t: column b is text, the value is u64"), std::string::npos) << last_error();
  EXPECT_EQ(try_row(table, {u64_value(1)}), SONDE_E_INVALID);
  uint64_t rows = 9;
  EXPECT_EQ(results_->row_count(table, &rows), SONDE_OK);
  EXPECT_EQ(rows, 0u);
}

TEST_F(ResultsTest, StoresWhatIsNotANumberAsAnEmptyCell) {
  sonde_table_t *table = make_table("workload", "t", {{"a", "1", "", SONDE_VALUE_F64, 0}});
  add_row(table, {f64_value(std::nan(""))});
  add_row(table, {f64_value(std::numeric_limits<double>::infinity())});
  add_row(table, {sonde_value_t{}});
  for (uint64_t row = 0; row < 3; ++row) EXPECT_EQ(cell(table, row, 0).kind, SONDE_VALUE_NONE);
}

TEST_F(ResultsTest, RefusesTablesThatCannotBeNamed) {
  sonde_column_spec_t columns[] = {{"a", "", "", SONDE_VALUE_U64, 0}, {"a", "", "", SONDE_VALUE_U64, 0}};
  sonde_table_spec_t spec{};
  spec.struct_size = sizeof(spec);
  spec.column_count = 1;
  spec.origin = "workload";
  spec.name = "t";
  spec.columns = columns;
  spec.column_stride = sizeof(sonde_column_spec_t);
  sonde_table_t *table = nullptr;
  EXPECT_EQ(results_->create_table(session_, &spec, &table), SONDE_OK);
  EXPECT_EQ(results_->create_table(session_, &spec, &table), SONDE_E_EXISTS);
  spec.name = "Big Name";
  EXPECT_EQ(results_->create_table(session_, &spec, &table), SONDE_E_INVALID);
  EXPECT_EQ(table, nullptr);
  spec.name = "two_columns";
  spec.column_count = 2;
  EXPECT_EQ(results_->create_table(session_, &spec, &table), SONDE_E_INVALID);
  EXPECT_NE(last_error().find("two columns \"a\""), std::string::npos) << last_error();
  spec.column_count = 1;
  columns[0].kind = SONDE_VALUE_BYTES;
  EXPECT_EQ(results_->create_table(session_, &spec, &table), SONDE_E_TYPE);
}

// A plugin built with a later header hands in longer columns and specs; what this host does not know is skipped.
TEST_F(ResultsTest, ReadsColumnsOfALaterBuild) {
  struct LaterColumn {
    sonde_column_spec_t known;
    uint64_t appended;
  };
  const LaterColumn columns[] = {{{"a", "1", "", SONDE_VALUE_U64, 0}, ~uint64_t{0}},
                                 {{"b", "1", "", SONDE_VALUE_U64, 0}, ~uint64_t{0}}};
  sonde_table_spec_t spec{};
  spec.struct_size = sizeof(spec);
  spec.column_count = 2;
  spec.origin = "later";
  spec.name = "t";
  spec.columns = &columns[0].known;
  spec.column_stride = sizeof(LaterColumn);
  sonde_table_t *table = nullptr;
  ASSERT_EQ(results_->create_table(session_, &spec, &table), SONDE_OK) << last_error();
  const sonde_table_spec_t *read = nullptr;
  ASSERT_EQ(results_->table_spec(table, &read), SONDE_OK);
  EXPECT_STREQ(read->columns[1].name, "b");
  EXPECT_EQ(read->column_stride, sizeof(sonde_column_spec_t));
}

TEST_F(ResultsTest, FindsTablesByNameAndListsThemOtherwise) {
  sonde_table_t *made = make_table("workload", "kernels", {{"a", "1", "", SONDE_VALUE_U64, 0}});
  sonde_table_t *found = nullptr;
  EXPECT_EQ(results_->find_table(session_, "workload", "kernels", &found), SONDE_OK);
  EXPECT_EQ(found, made);
  EXPECT_EQ(results_->find_table(session_, "workload", "copies", &found), SONDE_E_NOT_FOUND);
  EXPECT_EQ(found, nullptr);
  EXPECT_NE(last_error().find("workload.kernels"), std::string::npos) << last_error();
}

TEST_F(ResultsTest, CopiesAFindingWithItsEvidence) {
  sonde_finding_t finding = finding_of("workload.idle", "The device waits.");
  const int64_t sizes[] = {1, -2, 3};
  sonde_evidence_t evidence[2] = {{"share", "%", f64_value(45.5)}, {"sizes", "bytes", {}}};
  evidence[1].value.kind = SONDE_VALUE_I64S;
  evidence[1].value.count = 3;
  evidence[1].value.as.pointer = sizes;
  finding.evidence = evidence;
  finding.evidence_count = 2;
  finding.evidence_stride = sizeof(sonde_evidence_t);
  add_finding(finding);
  evidence[0].value.as.f64 = 0;
  const sonde_finding_t *read = nullptr;
  ASSERT_EQ(results_->finding_at(session_, 0, &read), SONDE_OK);
  EXPECT_STREQ(read->advice, "");  // NULL became ""
  ASSERT_EQ(read->evidence_count, 2u);
  EXPECT_EQ(read->evidence[0].value.as.f64, 45.5);
  EXPECT_NE(read->evidence[1].value.as.pointer, sizes);
  EXPECT_EQ(static_cast<const int64_t *>(read->evidence[1].value.as.pointer)[1], -2);
}

TEST_F(ResultsTest, RefusesCouldNotLookWithoutAReason) {
  sonde_finding_t finding = finding_of("workload.idle", "The device's idle time is not known.");
  finding.verdict = SONDE_VERDICT_UNSUPPORTED;
  EXPECT_EQ(results_->add_finding(session_, &finding), SONDE_E_INVALID);
  finding.reason = "no kernels were captured";
  EXPECT_EQ(results_->add_finding(session_, &finding), SONDE_OK);
  finding.severity = 3;
  EXPECT_EQ(results_->add_finding(session_, &finding), SONDE_E_RANGE);
}

TEST_F(ResultsTest, ForgetsResultsWhenTheSessionIsClosed) {
  make_table("workload", "kernels", {{"a", "1", "", SONDE_VALUE_U64, 0}});
  sonde_session_t *const closed = session_;
  ASSERT_EQ(sessions_->close(session_), SONDE_OK);
  session_ = nullptr;
  uint64_t count = 0;
  EXPECT_EQ(results_->table_count(closed, &count), SONDE_E_INVALID);
  ASSERT_EQ(sessions_->open(nullptr, &session_), SONDE_OK);
  ASSERT_EQ(results_->table_count(session_, &count), SONDE_OK);
  EXPECT_EQ(count, 0u);
}

TEST_F(ResultsTest, SaysWhichArgumentIsMissing) {
  EXPECT_EQ(results_->create_table(session_, nullptr, nullptr), SONDE_E_INVALID);
  EXPECT_EQ(last_error(), "spec is NULL");
  EXPECT_EQ(results_->add_row(nullptr, nullptr, 0), SONDE_E_INVALID);
  EXPECT_EQ(last_error(), "table is NULL");
  const sonde_finding_t *finding = nullptr;
  EXPECT_EQ(results_->finding_at(session_, 3, &finding), SONDE_E_RANGE);
}

}  // namespace
}  // namespace sonde::report
