#include <nlohmann/json.hpp>
#include <set>

#include "report_fixture.h"

namespace sonde::report {
namespace {

using nlohmann::json;

class SarifReport : public ReportTest {
 protected:
  void SetUp() override {
    ReportTest::SetUp();
    sonde_finding_t violation = finding_of("workload.idle", "The device waits.");
    violation.severity = SONDE_SEVERITY_ERROR;
    violation.file = "/src/train loop.py";
    violation.line = 12;
    violation.column = 3;
    violation.kernel = "_Z1fv";
    add_finding(violation);
    sonde_finding_t fine = finding_of("workload.tiny_copies", "No tiny copies.");
    fine.verdict = SONDE_VERDICT_OK;
    add_finding(fine);
    sonde_finding_t blind = finding_of("workload.memory", "The peak is not known.");
    blind.verdict = SONDE_VERDICT_UNSUPPORTED;
    blind.reason = "no allocations were captured";
    add_finding(blind);
    violation.severity = SONDE_SEVERITY_NOTE;
    violation.file = "model.py";
    violation.line = 0;
    add_finding(violation);
  }
};

// SARIF 2.1.0: 3.13.2 version, 3.14.6 tool, 3.18.2 driver, 3.19.8 name, 3.27.3 to 3.27.11 results.
TEST_F(SarifReport, HasWhatTheStandardRequires) {
  const json log = json::parse(render("sarif"));
  EXPECT_EQ(log.at("version"), "2.1.0");
  ASSERT_EQ(log.at("runs").size(), 1u);
  const json &run = log.at("runs").at(0);
  const json &driver = run.at("tool").at("driver");
  EXPECT_EQ(driver.at("name"), "sonde");
  ASSERT_EQ(driver.at("rules").size(), 3u);
  std::set<std::string> ids;
  for (const json &rule : driver.at("rules")) EXPECT_TRUE(ids.insert(rule.at("id")).second);
  ASSERT_EQ(run.at("results").size(), 4u);
  for (const json &result : run.at("results")) {
    EXPECT_FALSE(result.at("message").at("text").get<std::string>().empty());
    EXPECT_EQ(driver.at("rules").at(result.at("ruleIndex").get<size_t>()).at("id"), result.at("ruleId"));
    const std::string level = result.at("level");
    if (result.at("kind") == "fail") {
      EXPECT_TRUE(level == "error" || level == "warning" || level == "note") << level;
    } else {
      EXPECT_EQ(level, "none");
    }
  }
  EXPECT_EQ(run.at("invocations").at(0).at("executionSuccessful"), true);
}

TEST_F(SarifReport, TellsViolationFineAndCouldNotLookApart) {
  const json results = json::parse(render("sarif")).at("runs").at(0).at("results");
  EXPECT_EQ(results.at(0).at("kind"), "fail");
  EXPECT_EQ(results.at(0).at("level"), "error");
  EXPECT_EQ(results.at(1).at("kind"), "pass");
  EXPECT_EQ(results.at(2).at("kind"), "open");
  EXPECT_EQ(results.at(2).at("message").at("text"),
            "The peak is not known. Could not look: no allocations were captured");
  EXPECT_EQ(results.at(3).at("level"), "note");
}

TEST_F(SarifReport, WritesPlacesAsUris) {
  const json results = json::parse(render("sarif")).at("runs").at(0).at("results");
  const json &place = results.at(0).at("locations").at(0);
  EXPECT_EQ(place.at("physicalLocation").at("artifactLocation").at("uri"), "file:///src/train%20loop.py");
  EXPECT_EQ(place.at("physicalLocation").at("region"), json::parse(R"({"startLine": 12, "startColumn": 3})"));
  EXPECT_EQ(place.at("logicalLocations").at(0).at("fullyQualifiedName"), "_Z1fv");
  EXPECT_FALSE(results.at(1).contains("locations"));
  const json &other = results.at(3).at("locations").at(0).at("physicalLocation");
  EXPECT_EQ(other.at("artifactLocation").at("uri"), "model.py");
  EXPECT_FALSE(other.contains("region"));
}

TEST_F(SarifReport, NotifiesOfLosses) {
  const auto &capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  ASSERT_EQ(capture.lose(session_, 0, SONDE_LOSS_VENDOR, 12, 0), SONDE_OK);
  const json run = json::parse(render("sarif")).at("runs").at(0);
  const json &notices = run.at("invocations").at(0).at("toolExecutionNotifications");
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices.at(0).at("level"), "warning");
  EXPECT_NE(notices.at(0).at("message").at("text").get<std::string>().find("12 records lost"), std::string::npos);
  EXPECT_EQ(run.at("properties").at("lostRecords"), 12);
}

}  // namespace
}  // namespace sonde::report
