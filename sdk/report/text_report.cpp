#include <fmt/format.h>
#include <sonde/version.h>

#include <limits>
#include <string>

#include "report/demangle.h"
#include "report/formats.h"
#include "report/human.h"
#include "report/text_table.h"
#include "report/utf8.h"

namespace sonde::report {
namespace {

// Lines of at most `width` cells, broken at spaces; lines after the first are indented.
void put_wrapped(std::string_view label, std::string_view text, const TextStyle &style, Output &output) {
  constexpr size_t kLabelWidth = 14;
  std::string line = pad_right(label, kLabelWidth);
  bool is_line_empty = true;
  const auto flush = [&] {
    output.put(line);
    output.put('\n');
    line.assign(kLabelWidth, ' ');
    is_line_empty = true;
  };
  const std::string shown = printable(text);
  for (size_t position = 0; position < shown.size();) {
    const size_t end = std::min(shown.find(' ', position), shown.size());
    const std::string_view word = std::string_view(shown).substr(position, end - position);
    position = end + 1;
    if (word.empty()) continue;
    if (!is_line_empty && display_width(line) + 1 + display_width(word) > style.width) flush();
    if (!is_line_empty) line += ' ';
    line += word;
    is_line_empty = false;
  }
  if (!is_line_empty) flush();
}

std::string place_of(const sonde_finding_t &view, const TextStyle &style) {
  std::string place;
  const auto add = [&](std::string_view text) {
    if (!place.empty()) place += ", ";
    place += text;
  };
  if (*view.kernel != '\0') add("kernel " + shorten_name(view.kernel, style.width));
  if (*view.file != '\0') {
    std::string file = view.file;
    if (view.line != 0) file += fmt::format(":{}", view.line);
    if (view.line != 0 && view.column != 0) file += fmt::format(":{}", view.column);
    add(file);
  }
  if (*view.tensor != '\0') add(fmt::format("tensor {}", view.tensor));
  return place;
}

void put_details(const Finding &finding, const TextStyle &style, Output &output) {
  const sonde_finding_t &view = finding.view();
  if (const std::string place = place_of(view, style); !place.empty()) {
    put_wrapped("    where", place, style, output);
  }
  if (*view.call_path != '\0') put_wrapped("    called", view.call_path, style, output);
  std::string evidence;
  for (const sonde_evidence_t &item : finding.evidence()) {
    evidence +=
        fmt::format("{}{} {}", evidence.empty() ? "" : ", ", item.name, human_value(item.value, item.unit).joined());
  }
  if (!evidence.empty()) put_wrapped("    evidence", evidence, style, output);
  if (*view.formula != '\0') put_wrapped("    rule", view.formula, style, output);
  if (*view.advice != '\0') put_wrapped("    do", view.advice, style, output);
  std::string estimate;
  if (view.gain_seconds > 0) {
    sonde_value_t gain{};
    gain.kind = SONDE_VALUE_F64;
    gain.as.f64 = view.gain_seconds * 1e9;
    estimate = fmt::format("{} less time", human_value(gain, "ns").joined());
  }
  if (view.confidence > 0 && view.confidence < 1) {
    estimate += fmt::format("{}confidence {:.0f} %", estimate.empty() ? "" : ", ", view.confidence * 100);
  }
  if (view.sampling_scale != 1) {
    estimate += fmt::format("{}scaled by {:.4g} from a sample", estimate.empty() ? "" : ", ", view.sampling_scale);
  }
  if (!estimate.empty()) put_wrapped("    estimate", estimate, style, output);
}

bool is_violation(const Finding *finding, uint32_t severity) {
  return finding->view().verdict == SONDE_VERDICT_VIOLATION && finding->view().severity == severity;
}

void put_findings(const ReportInput &input, const TextStyle &style, Output &output) {
  uint64_t counts[3] = {};
  uint64_t ok = 0;
  uint64_t unsupported = 0;
  for (const Finding *finding : input.findings) {
    const sonde_finding_t &view = finding->view();
    if (view.verdict == SONDE_VERDICT_VIOLATION) ++counts[view.severity];
    if (view.verdict == SONDE_VERDICT_OK) ++ok;
    if (view.verdict == SONDE_VERDICT_UNSUPPORTED) ++unsupported;
  }
  output.put(
      fmt::format("{}Findings{}  errors {}, warnings {}, notes {}, looked and found nothing {}, could not look {}\n",
                  style.bold(), style.plain(), counts[SONDE_SEVERITY_ERROR], counts[SONDE_SEVERITY_WARNING],
                  counts[SONDE_SEVERITY_NOTE], ok, unsupported));
  for (const uint32_t severity : {SONDE_SEVERITY_ERROR, SONDE_SEVERITY_WARNING, SONDE_SEVERITY_NOTE}) {
    const std::string_view color = severity == SONDE_SEVERITY_ERROR     ? style.red()
                                   : severity == SONDE_SEVERITY_WARNING ? style.yellow()
                                                                        : style.bold();
    for (const Finding *finding : input.findings) {
      if (!is_violation(finding, severity)) continue;
      output.put(fmt::format("  {}{}{}  {}\n", color, severity_name(severity), style.plain(),
                             printable(finding->view().rule)));
      put_wrapped("", finding->view().message, style, output);
      put_details(*finding, style, output);
    }
  }
  for (const Finding *finding : input.findings) {
    if (finding->view().verdict != SONDE_VERDICT_UNSUPPORTED) continue;
    output.put(
        fmt::format("  {}could not look{}  {}\n", style.yellow(), style.plain(), printable(finding->view().rule)));
    put_wrapped("", finding->view().message, style, output);
    put_wrapped("    reason", finding->view().reason, style, output);
  }
  for (const Finding *finding : input.findings) {
    if (finding->view().verdict != SONDE_VERDICT_OK) continue;
    output.put(fmt::format("  {}ok{}  {}  {}\n", style.green(), style.plain(), printable(finding->view().rule),
                           printable(finding->view().message)));
  }
  output.put('\n');
}

void put_losses(const ReportInput &input, const TextStyle &style, Output &output) {
  const LossTotals &totals = input.totals;
  std::string summary = grouped(totals.records);
  if (!totals.is_exact) {
    summary = fmt::format("at least {}, and an unknown number within {}", summary, human_bytes(totals.unknown_bytes));
  }
  output.put(fmt::format("{}Losses: {}{}{}\n", totals.is_zero() ? "" : style.red(), summary,
                         totals.is_zero() ? "" : " records", style.plain()));
  if (totals.subscriber_records != 0) {
    output.put(fmt::format("  for single subscribers: {} records\n", grouped(totals.subscriber_records)));
  }
  if (totals.late_records != 0) {
    output.put(fmt::format("  late, delivered out of order: {} records\n", grouped(totals.late_records)));
  }
  for (const sonde_loss_t &loss : input.losses) {
    const bool is_unknown = loss.records == std::numeric_limits<uint64_t>::max();
    output.put(fmt::format("  {}: {}", cause_name(loss.cause),
                           is_unknown ? "unknown" : fmt::format("{} records", grouped(loss.records))));
    if (loss.bytes != 0) output.put(fmt::format("{}{}", is_unknown ? ", at most " : ", ", human_bytes(loss.bytes)));
    if (loss.source != 0) output.put(fmt::format(", source {}", loss.source));
    if (loss.stream != 0) output.put(fmt::format(", stream {}", loss.stream));
    if (loss.subscriber != 0) output.put(fmt::format(", subscriber {}", loss.subscriber));
    output.put('\n');
  }
}

}  // namespace

void write_text(const ReportInput &input, Output &output) {
  TextStyle style;
  style.width = input.options.width == 0 ? 100 : input.options.width;
  style.rows = input.options.rows;
  style.has_color = input.options.color != 0;
  output.put(fmt::format("{}Sonde {}.{}.{}{}\n\n", style.bold(), SONDE_VERSION_MAJOR, SONDE_VERSION_MINOR,
                         SONDE_VERSION_PATCH, style.plain()));
  std::string empty;
  for (const Table *table : input.tables) {
    if (output.failed()) return;
    if (table->row_count() == 0) {
      empty += fmt::format("{}{}.{}", empty.empty() ? "" : " ", table->origin(), table->name());
    } else {
      write_text_table(*table, style, output);
    }
  }
  if (!empty.empty()) {
    put_wrapped("No rows in", empty, style, output);
    output.put('\n');
  }
  put_findings(input, style, output);
  put_losses(input, style, output);
}

}  // namespace sonde::report
