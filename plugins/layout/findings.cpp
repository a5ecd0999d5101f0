#include <array>
#include <map>
#include <string>
#include <string_view>

#include "publish.h"

namespace sonde::layout_lint {
namespace {

// Every rule, with what is said when nothing breaks it.
struct Rule {
  const char *name;
  const char *ok;
};
constexpr std::array<Rule, 13> kRules = {{
    {"bank_conflicts", "No access to shared memory loses wavefronts to bank conflicts."},
    {"redundant_conversion", "No conversion is redundant."},
    {"chained_conversion", "No conversion follows another."},
    {"converted_constant", "No conversion moves what threads can make for themselves."},
    {"invariant_conversion", "No conversion is repeated in a loop without need."},
    {"avoidable_conversion", "No conversion serves an access that would be as good without it."},
    {"wide_conversion", "No conversion moves wider elements than it must."},
    {"joint_conversion", "No operation has all of its operands converted."},
    {"narrow_access", "No global access is narrow."},
    {"uncoalesced_access", "All global accesses whose addresses are known are coalesced."},
    {"duplicated_access", "No global access is made by many threads for the same data."},
    {"narrow_swizzle", "No memory that the hardware reads itself has a narrower swizzle than it has room for."},
    {"cross_warp_reduction", "No reduction or scan spans warps."},
}};

void publish_issue(const Site &site, const Issue &issue, const Host &host, sonde_session_t *session) {
  Finding finding(kOrigin, std::string(kOrigin) + "." + issue.rule);
  finding.violation(issue.severity, issue.message)
      .advice(issue.advice)
      .formula(issue.formula)
      .kernel(site.kernel)
      .tensor(site.variable)
      .call_path(site.call_path)
      .confidence(issue.confidence);
  // Without a line of the program, the TTGIR itself is the place.
  if (site.line != 0) {
    finding.at(site.file, site.line, site.column);
  } else {
    finding.at(site.path, site.ir_line);
  }
  finding.evidence("operation", "", site.operation)
      .evidence("ttgir", "", site.path + ":" + std::to_string(site.ir_line));
  if (!site.source.empty()) finding.evidence("source", "", site.source);
  if (!site.destination.empty()) finding.evidence("destination", "", site.destination);
  for (const Evidence &item : issue.evidence) {
    std::visit([&](const auto &value) { finding.evidence(item.name, item.unit, Cell(value)); }, item.value);
  }
  finding.publish(host, session);
}

}  // namespace

void publish_findings(const Lint &lint, const Host &host, sonde_session_t *session) {
  struct Tally {
    uint64_t broken = 0, looked = 0, unseen = 0;
    std::string reason;  // the first
  };
  std::map<std::string, Tally, std::less<>> tallies;
  for (const FileResult &file : lint.files()) {
    if (!file.error.empty()) {
      Finding finding(kOrigin, std::string(kOrigin) + ".readable");
      finding.unsupported("The file is no TTGIR that can be read.", file.path + ":" + file.error)
          .at(file.path, file.error_line, file.error_column);
      finding.publish(host, session);
    }
    for (const Site &site : file.sites) {
      for (const Issue &issue : site.issues) {
        ++tallies[issue.rule].broken;
        if (issue.severity > SONDE_SEVERITY_NOTE || lint.options().reports_notes)
          publish_issue(site, issue, host, session);
      }
      for (const std::string &rule : site.looked) ++tallies[rule].looked;
      for (const Unseen &unseen : site.unseen) {
        Tally &tally = tallies[unseen.rule];
        ++tally.unseen;
        if (tally.reason.empty()) {
          tally.reason = site.path + ":" + std::to_string(site.ir_line) + ": " + site.operation + ": " + unseen.reason;
        }
      }
    }
  }
  for (const Rule &rule : kRules) {
    const Tally &tally = tallies[rule.name];
    const std::string id = std::string(kOrigin) + "." + rule.name;
    if (tally.broken == 0) {
      Finding finding(kOrigin, id);
      if (tally.looked > 0) {
        finding.ok(rule.ok).evidence("sites", "1", tally.looked);
      } else if (tally.unseen == 0) {
        finding.unsupported("The rule was not looked at.", "no site that it applies to");
      }
      if (tally.looked > 0 || tally.unseen == 0) finding.publish(host, session);
    }
    if (tally.unseen > 0) {
      Finding finding(kOrigin, id);
      finding.unsupported(std::to_string(tally.unseen) + " sites could not be judged.", "the first is " + tally.reason)
          .evidence("sites", "1", tally.unseen)
          .evidence("judged", "1", tally.looked);
      finding.publish(host, session);
    }
  }
}

}  // namespace sonde::layout_lint
