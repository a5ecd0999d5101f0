#include <fmt/format.h>
#include <sonde/version.h>

#include <limits>

#include "report/formats.h"
#include "report/json_writer.h"

namespace sonde::report {
namespace {

using Layout = JsonWriter::Layout;

void write_table(const Table &table, JsonWriter &json, const Output &output) {
  json.key(fmt::format("{}.{}", table.origin(), table.name()));
  json.begin_object();
  json.member("title", table.spec().title);
  json.member("help", table.spec().help);
  json.key("columns");
  json.begin_array();
  for (const sonde_column_spec_t &column : table.columns()) {
    json.begin_object(Layout::kInline);
    json.member("name", column.name);
    json.member("kind", column_kind_name(column.kind));
    json.member("unit", column.unit);
    json.key("key");
    json.boolean((column.flags & SONDE_COLUMN_KEY) != 0);
    json.member("help", column.help);
    json.end_object();
  }
  json.end_array();
  json.key("rows");
  json.begin_array();
  const uint64_t rows = table.row_count();
  const uint64_t columns = table.columns().size();
  for (uint64_t row = 0; row < rows && !output.failed(); ++row) {
    json.begin_array(Layout::kInline);
    for (uint64_t column = 0; column < columns; ++column) json.value(*table.cell(row, column));
    json.end_array();
  }
  json.end_array();
  json.end_object();
}

void number_or_null(JsonWriter &json, std::string_view name, uint64_t number, uint64_t null_number) {
  json.key(name);
  if (number == null_number) {
    json.null();
  } else {
    json.integer(number);
  }
}

void write_finding(const Finding &finding, JsonWriter &json) {
  const sonde_finding_t &view = finding.view();
  json.begin_object();
  json.member("origin", view.origin);
  json.member("rule", view.rule);
  json.member("severity", severity_name(view.severity));
  json.member("verdict", verdict_name(view.verdict));
  json.member("message", view.message);
  json.member("advice", view.advice);
  json.member("reason", view.reason);
  json.key("location");
  json.begin_object(Layout::kInline);
  json.member("kernel", view.kernel);
  json.member("file", view.file);
  number_or_null(json, "line", view.line, 0);
  number_or_null(json, "column", view.column, 0);
  json.member("tensor", view.tensor);
  json.member("call_path", view.call_path);
  json.end_object();
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
  json.member("formula", view.formula);
  json.member("gain_seconds", view.gain_seconds);
  json.member("confidence", view.confidence);
  json.member("sampling_scale", view.sampling_scale);
  json.end_object();
}

void write_losses(const ReportInput &input, JsonWriter &json) {
  json.key("losses");
  json.begin_object();
  json.member("records", input.totals.records);
  json.key("exact");
  json.boolean(input.totals.is_exact);
  json.member("unknown_bytes", input.totals.unknown_bytes);
  json.member("subscriber_records", input.totals.subscriber_records);
  json.member("late_records", input.totals.late_records);
  json.key("rows");
  json.begin_array();
  for (const sonde_loss_t &loss : input.losses) {
    json.begin_object(Layout::kInline);
    json.member("source", uint64_t{loss.source});
    json.member("stream", loss.stream);
    json.member("cause", cause_name(loss.cause));
    number_or_null(json, "records", loss.records, std::numeric_limits<uint64_t>::max());
    json.member("bytes", loss.bytes);
    json.member("subscriber", loss.subscriber);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

// Only what the results determine is written: nothing of this session's threads, memory, time or own records, so that
// two replays of one capture give the same bytes.
void write_json(const ReportInput &input, Output &output) {
  JsonWriter json(output);
  json.begin_object();
  json.key("sonde");
  json.begin_object(Layout::kInline);
  json.member("version", fmt::format("{}.{}.{}", SONDE_VERSION_MAJOR, SONDE_VERSION_MINOR, SONDE_VERSION_PATCH));
  json.member("report", uint64_t{1});
  json.end_object();
  json.key("tables");
  json.begin_object();
  for (const Table *table : input.tables) write_table(*table, json, output);
  json.end_object();
  json.key("findings");
  json.begin_array();
  for (const Finding *finding : input.findings) write_finding(*finding, json);
  json.end_array();
  write_losses(input, json);
  json.end_object();
  output.put('\n');
}

}  // namespace sonde::report
