#include <fmt/format.h>
#include <sonde/version.h>

#include <limits>
#include <map>
#include <string>

#include "report/formats.h"
#include "report/json_writer.h"

namespace sonde::report {
namespace {

using Layout = JsonWriter::Layout;

struct Rules {
  std::vector<const Finding *> first;             // the first finding of each rule, by rule index
  std::map<std::string_view, uint64_t> index_of;  // by rule id
};

Rules rules_of(const ReportInput &input) {
  Rules rules;
  for (const Finding *finding : input.findings) {
    const auto [place, is_new] = rules.index_of.emplace(finding->view().rule, rules.first.size());
    static_cast<void>(place);
    if (is_new) rules.first.push_back(finding);
  }
  return rules;
}

bool is_empty(const char *text) { return *text == '\0'; }

void message(JsonWriter &json, std::string_view name, std::string_view text) {
  json.key(name);
  json.begin_object(Layout::kInline);
  json.member("text", text);
  json.end_object();
}

// A path as the URI reference that SARIF asks for (RFC 3986): everything but unreserved characters and '/' in
// per-cent form.
std::string uri_of(std::string_view path) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char character : path) {
    if (kPlain.find(character) != std::string_view::npos) {
      uri += character;
    } else {
      uri += fmt::format("%{:02X}", static_cast<uint8_t>(character));
    }
  }
  return uri;
}

void write_rules(const Rules &rules, JsonWriter &json) {
  json.key("rules");
  json.begin_array();
  for (const Finding *finding : rules.first) {
    const sonde_finding_t &view = finding->view();
    json.begin_object();
    json.member("id", view.rule);
    message(json, "shortDescription", view.rule);
    if (!is_empty(view.formula)) message(json, "fullDescription", view.formula);
    if (!is_empty(view.advice)) message(json, "help", view.advice);
    json.key("properties");
    json.begin_object(Layout::kInline);
    json.member("origin", view.origin);
    json.end_object();
    json.end_object();
  }
  json.end_array();
}

void write_invocation(const ReportInput &input, JsonWriter &json) {
  json.key("invocations");
  json.begin_array();
  json.begin_object();
  json.key("executionSuccessful");
  json.boolean(true);
  json.key("toolExecutionNotifications");
  json.begin_array();
  for (const sonde_loss_t &loss : input.losses) {
    const bool is_unknown = loss.records == std::numeric_limits<uint64_t>::max();
    json.begin_object(Layout::kInline);
    json.member("level", "warning");
    message(json, "message",
            fmt::format("{} lost: {} (source {}, stream {})",
                        is_unknown ? fmt::format("unknown records, at most {} bytes,", loss.bytes)
                                   : fmt::format("{} records", loss.records),
                        cause_name(loss.cause), loss.source, loss.stream));
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.end_array();
}

void write_location(const sonde_finding_t &view, JsonWriter &json) {
  if (is_empty(view.file) && is_empty(view.kernel) && is_empty(view.tensor)) return;
  json.key("locations");
  json.begin_array();
  json.begin_object();
  if (!is_empty(view.file)) {
    json.key("physicalLocation");
    json.begin_object(Layout::kInline);
    json.key("artifactLocation");
    json.begin_object();
    json.member("uri", uri_of(view.file));
    json.end_object();
    if (view.line != 0) {
      json.key("region");
      json.begin_object();
      json.member("startLine", uint64_t{view.line});
      if (view.column != 0) json.member("startColumn", uint64_t{view.column});
      json.end_object();
    }
    json.end_object();
  }
  if (!is_empty(view.kernel) || !is_empty(view.tensor)) {
    json.key("logicalLocations");
    json.begin_array();
    const auto logical = [&](const char *name, const char *kind) {
      if (is_empty(name)) return;
      json.begin_object(Layout::kInline);
      json.member("fullyQualifiedName", name);
      json.member("kind", kind);
      json.end_object();
    };
    logical(view.kernel, "function");
    logical(view.tensor, "variable");
    json.end_array();
  }
  json.end_object();
  json.end_array();
}

// SARIF 3.27.9 and 3.27.10: only kind "fail" carries a level other than "none". What could not be looked at is
// "open": evaluated, but without enough information to decide.
void write_result(const Finding &finding, uint64_t rule_index, JsonWriter &json) {
  const sonde_finding_t &view = finding.view();
  json.begin_object();
  json.member("ruleId", view.rule);
  json.member("ruleIndex", rule_index);
  const bool is_violation = view.verdict == SONDE_VERDICT_VIOLATION;
  json.member("kind", is_violation ? "fail" : view.verdict == SONDE_VERDICT_OK ? "pass" : "open");
  json.member("level", is_violation ? severity_name(view.severity) : "none");
  message(json, "message",
          view.verdict == SONDE_VERDICT_UNSUPPORTED ? fmt::format("{} Could not look: {}", view.message, view.reason)
                                                    : std::string(view.message));
  write_location(view, json);
  json.key("properties");
  json.begin_object();
  json.member("origin", view.origin);
  json.member("verdict", verdict_name(view.verdict));
  json.member("advice", view.advice);
  json.member("reason", view.reason);
  json.member("formula", view.formula);
  json.member("callPath", view.call_path);
  json.member("gainSeconds", view.gain_seconds);
  json.member("confidence", view.confidence);
  json.member("samplingScale", view.sampling_scale);
  json.key("evidence");
  json.begin_array();
  for (const sonde_evidence_t &evidence : finding.evidence()) {
    json.begin_object(Layout::kInline);
    json.member("name", evidence.name);
    json.key("value");
    json.value(evidence.value);
    json.member("unit", evidence.unit);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  json.end_object();
}

}  // namespace

void write_sarif(const ReportInput &input, Output &output) {
  const Rules rules = rules_of(input);
  JsonWriter json(output);
  json.begin_object();
  json.member("$schema", "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json");
  json.member("version", "2.1.0");
  json.key("runs");
  json.begin_array();
  json.begin_object();
  json.key("tool");
  json.begin_object();
  json.key("driver");
  json.begin_object();
  json.member("name", "sonde");
  json.member("version", fmt::format("{}.{}.{}", SONDE_VERSION_MAJOR, SONDE_VERSION_MINOR, SONDE_VERSION_PATCH));
  write_rules(rules, json);
  json.end_object();
  json.end_object();
  write_invocation(input, json);
  json.key("results");
  json.begin_array();
  for (const Finding *finding : input.findings) write_result(*finding, rules.index_of.at(finding->view().rule), json);
  json.end_array();
  json.key("properties");
  json.begin_object(Layout::kInline);
  json.member("lostRecords", input.totals.records);
  json.key("lossesExact");
  json.boolean(input.totals.is_exact);
  json.end_object();
  json.end_object();
  json.end_array();
  json.end_object();
  output.put('\n');
}

}  // namespace sonde::report
