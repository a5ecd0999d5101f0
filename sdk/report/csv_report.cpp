#include <fmt/format.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "report/formats.h"
#include "report/human.h"
#include "report/utf8.h"

namespace sonde::report {
namespace {

// RFC 4180: CR LF ends a record; a field with a comma, quote or line end stands in quotes, which double inside. A
// field that begins with '#' is quoted too, so that no row looks like a heading. An empty cell is nothing, an empty
// text "".
class CsvWriter {
 public:
  explicit CsvWriter(Output &output) : output_(output) {}

  void heading(std::string_view origin, std::string_view name) {
    std::string line = to_valid_utf8(fmt::format("{}{}{}", origin, origin.empty() ? "" : ".", name));
    for (char &character : line) {
      if (character == '\r' || character == '\n') character = ' ';
    }
    output_.put("# ");
    output_.put(line);
    output_.put("\r\n");
  }

  void text(std::string_view text) {
    separate();
    const std::string valid = to_valid_utf8(text);
    if (!valid.empty() && valid.front() != '#' && valid.find_first_of(",\"\r\n") == std::string::npos) {
      output_.put(valid);
      return;
    }
    output_.put('"');
    for (const char character : valid) {
      if (character == '"') output_.put('"');
      output_.put(character);
    }
    output_.put('"');
  }

  void integer(uint64_t number) { raw(fmt::format("{}", number)); }
  void number(double number) { raw(fmt::format("{}", number)); }
  void empty() { separate(); }

  void value(const sonde_value_t &value) {
    switch (value.kind) {
      case SONDE_VALUE_I64:
        return raw(fmt::format("{}", value.as.i64));
      case SONDE_VALUE_U64:
        return integer(value.as.u64);
      case SONDE_VALUE_F64:
        return number(value.as.f64);
      case SONDE_VALUE_TEXT:
        return text({value.as.text, value.count});
      case SONDE_VALUE_BOOL:
        return raw(value.as.u64 != 0 ? "true" : "false");
      case SONDE_VALUE_NONE:
        return empty();
      default:
        return text(human_value(value, "").text);
    }
  }

  void end_row() {
    output_.put("\r\n");
    is_first_ = true;
  }

 private:
  void separate() {
    if (!is_first_) output_.put(',');
    is_first_ = false;
  }

  void raw(std::string_view digits) {
    separate();
    output_.put(digits);
  }

  Output &output_;
  bool is_first_ = true;
};

void write_table(const Table &table, CsvWriter &csv, const Output &output) {
  csv.heading(table.origin(), table.name());
  for (const sonde_column_spec_t &column : table.columns()) csv.text(column.name);
  csv.end_row();
  const uint64_t rows = table.row_count();
  const uint64_t columns = table.columns().size();
  for (uint64_t row = 0; row < rows && !output.failed(); ++row) {
    for (uint64_t column = 0; column < columns; ++column) csv.value(*table.cell(row, column));
    csv.end_row();
  }
}

// name=value unit; name=value unit
std::string evidence_text(const Finding &finding) {
  std::string text;
  for (const sonde_evidence_t &evidence : finding.evidence()) {
    // Numbers with all their digits: the unit "" keeps human_value from scaling.
    const sonde_value_t &value = evidence.value;
    text += fmt::format("{}{}=", text.empty() ? "" : "; ", evidence.name);
    if (value.kind == SONDE_VALUE_F64) {
      text += fmt::format("{}", value.as.f64);
    } else if (value.kind == SONDE_VALUE_TEXT) {
      text.append(value.as.text, value.count);
    } else {
      text += human_value(value, "").text;
    }
    if (*evidence.unit != '\0' && std::string_view(evidence.unit) != "1") text += fmt::format(" {}", evidence.unit);
  }
  return text;
}

void write_findings(const ReportInput &input, CsvWriter &csv) {
  csv.heading("", "findings");
  for (const char *name :
       {"origin", "rule", "severity", "verdict", "message", "advice", "reason", "kernel", "file", "line", "column",
        "tensor", "call_path", "evidence", "formula", "gain_seconds", "confidence", "sampling_scale"}) {
    csv.text(name);
  }
  csv.end_row();
  for (const Finding *finding : input.findings) {
    const sonde_finding_t &view = finding->view();
    csv.text(view.origin);
    csv.text(view.rule);
    csv.text(severity_name(view.severity));
    csv.text(verdict_name(view.verdict));
    csv.text(view.message);
    csv.text(view.advice);
    csv.text(view.reason);
    csv.text(view.kernel);
    csv.text(view.file);
    for (const uint32_t place : {view.line, view.column}) {
      if (place == 0) {
        csv.empty();
      } else {
        csv.integer(place);
      }
    }
    csv.text(view.tensor);
    csv.text(view.call_path);
    csv.text(evidence_text(*finding));
    csv.text(view.formula);
    csv.number(view.gain_seconds);
    csv.number(view.confidence);
    csv.number(view.sampling_scale);
    csv.end_row();
  }
}

void write_losses(const ReportInput &input, CsvWriter &csv) {
  csv.heading("", "losses");
  for (const char *name : {"source", "stream", "cause", "records", "bytes", "subscriber"}) csv.text(name);
  csv.end_row();
  for (const sonde_loss_t &loss : input.losses) {
    csv.integer(loss.source);
    csv.integer(loss.stream);
    csv.text(cause_name(loss.cause));
    if (loss.records == std::numeric_limits<uint64_t>::max()) {
      csv.empty();  // unknown; the bytes bound it
    } else {
      csv.integer(loss.records);
    }
    csv.integer(loss.bytes);
    csv.integer(loss.subscriber);
    csv.end_row();
  }
}

}  // namespace

void write_csv(const ReportInput &input, Output &output) {
  CsvWriter csv(output);
  for (const Table *table : input.tables) write_table(*table, csv, output);
  write_findings(input, csv);
  write_losses(input, csv);
}

}  // namespace sonde::report
