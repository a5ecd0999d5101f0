// Tables and findings. See sonde/sonde.hpp.
#ifndef SONDE_CPP_RESULTS_HPP
#define SONDE_CPP_RESULTS_HPP

#include <sonde/cpp/host.hpp>

#include <concepts>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sonde {

// A table cell or a piece of evidence. Text is not copied: it must live until the call that takes the cell returns.
class Cell {
 public:
  Cell(std::nullopt_t) {}
  Cell(bool value) {
    value_.kind = SONDE_VALUE_BOOL;
    value_.as.u64 = value ? 1 : 0;
  }
  template <std::signed_integral T>
  Cell(T value) {
    value_.kind = SONDE_VALUE_I64;
    value_.as.i64 = value;
  }
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Cell(T value) {
    value_.kind = SONDE_VALUE_U64;
    value_.as.u64 = value;
  }
  Cell(double value) {
    value_.kind = SONDE_VALUE_F64;
    value_.as.f64 = value;
  }
  Cell(const char *text) {
    value_.kind = SONDE_VALUE_TEXT;
    value_.count = std::strlen(text);
    value_.as.text = text;
  }
  Cell(const std::string &text) {
    value_.kind = SONDE_VALUE_TEXT;
    value_.count = text.size();
    value_.as.text = text.c_str();
  }
  template <typename T>
  Cell(const std::optional<T> &value) : Cell(value ? Cell(*value) : Cell(std::nullopt)) {}

  const sonde_value_t &value() const { return value_; }

 private:
  sonde_value_t value_{};
};

// Describes a table, makes it at the first row or at create(), and adds rows. [any], one thread at a time
class Table {
 public:
  Table(Host host, sonde_session_t *session, std::string origin, std::string name, std::string title, std::string help)
      : host_(host),
        session_(session),
        origin_(std::move(origin)),
        name_(std::move(name)),
        title_(std::move(title)),
        help_(std::move(help)) {}

  Table &text(const char *name, const char *help, uint32_t flags = 0) {
    return column(name, "", help, SONDE_VALUE_TEXT, flags);
  }
  Table &u64(const char *name, const char *unit, const char *help, uint32_t flags = 0) {
    return column(name, unit, help, SONDE_VALUE_U64, flags);
  }
  Table &i64(const char *name, const char *unit, const char *help, uint32_t flags = 0) {
    return column(name, unit, help, SONDE_VALUE_I64, flags);
  }
  Table &f64(const char *name, const char *unit, const char *help, uint32_t flags = 0) {
    return column(name, unit, help, SONDE_VALUE_F64, flags);
  }
  Table &boolean(const char *name, const char *help, uint32_t flags = 0) {
    return column(name, "", help, SONDE_VALUE_BOOL, flags);
  }
  // Names, units and help of columns are string literals or live until create().
  Table &column(const char *name, const char *unit, const char *help, uint32_t kind, uint32_t flags = 0) {
    columns_.push_back({name, unit, help, kind, flags});
    return *this;
  }
  Table &show_rows(uint32_t rows) {
    show_rows_ = rows;
    return *this;
  }

  Table &create() {
    if (table_ != nullptr) return *this;
    sonde_table_spec_t spec{};
    spec.struct_size = sizeof(spec);
    spec.column_count = static_cast<uint32_t>(columns_.size());
    spec.origin = origin_.c_str();
    spec.name = name_.c_str();
    spec.title = title_.c_str();
    spec.help = help_.c_str();
    spec.columns = columns_.data();
    spec.column_stride = sizeof(sonde_column_spec_t);
    spec.show_rows = show_rows_;
    host_.check(service().create_table(session_, &spec, &table_));
    return *this;
  }

  Table &row(std::initializer_list<Cell> cells) {
    create();
    values_.clear();
    for (const Cell &cell : cells) values_.push_back(cell.value());
    host_.check(service().add_row(table_, values_.data(), values_.size()));
    return *this;
  }

 private:
  const sonde_result_service_t &service() const { return host_.service<sonde_result_service_t>(); }

  Host host_;
  sonde_session_t *session_;
  std::string origin_, name_, title_, help_;
  std::vector<sonde_column_spec_t> columns_;
  std::vector<sonde_value_t> values_;
  uint32_t show_rows_ = 0;
  sonde_table_t *table_ = nullptr;
};

// Builds a finding: one of violation, ok or unsupported, then what supports it, then publish. [any]
class Finding {
 public:
  Finding(std::string origin, std::string rule) : origin_(std::move(origin)), rule_(std::move(rule)) {}

  Finding &violation(uint32_t severity, std::string message) {
    return set(SONDE_VERDICT_VIOLATION, severity, std::move(message));
  }
  Finding &ok(std::string message) { return set(SONDE_VERDICT_OK, SONDE_SEVERITY_NOTE, std::move(message)); }
  Finding &unsupported(std::string message, std::string reason) {
    reason_ = std::move(reason);
    return set(SONDE_VERDICT_UNSUPPORTED, SONDE_SEVERITY_NOTE, std::move(message));
  }

  Finding &advice(std::string text) { return assign(advice_, std::move(text)); }
  Finding &formula(std::string text) { return assign(formula_, std::move(text)); }
  Finding &kernel(std::string text) { return assign(kernel_, std::move(text)); }
  Finding &tensor(std::string text) { return assign(tensor_, std::move(text)); }
  Finding &call_path(std::string text) { return assign(call_path_, std::move(text)); }
  Finding &at(std::string file, uint32_t line = 0, uint32_t column = 0) {
    raw_.line = line;
    raw_.column = column;
    return assign(file_, std::move(file));
  }
  Finding &evidence(std::string name, std::string unit, const Cell &value) {
    const bool is_text = value.value().kind == SONDE_VALUE_TEXT;
    evidence_.push_back({std::move(name), std::move(unit), is_text ? value.value().as.text : "", value.value()});
    return *this;
  }
  Finding &gain_seconds(double seconds) {
    raw_.gain_seconds = seconds;
    return *this;
  }
  // 0 to 1; 1 when not set.
  Finding &confidence(double value) {
    raw_.confidence = value;
    return *this;
  }
  Finding &sampling_scale(double value) {
    raw_.sampling_scale = value;
    return *this;
  }

  void publish(const Host &host, sonde_session_t *session) {
    std::vector<sonde_evidence_t> evidence;
    for (const Evidence &item : evidence_) {
      evidence.push_back({item.name.c_str(), item.unit.c_str(), item.value});
      if (item.value.kind == SONDE_VALUE_TEXT) evidence.back().value.as.text = item.text.c_str();
    }
    sonde_finding_t finding = raw_;
    finding.struct_size = sizeof(finding);
    finding.origin = origin_.c_str();
    finding.rule = rule_.c_str();
    finding.message = message_.c_str();
    finding.advice = advice_.c_str();
    finding.reason = reason_.c_str();
    finding.kernel = kernel_.c_str();
    finding.file = file_.c_str();
    finding.tensor = tensor_.c_str();
    finding.call_path = call_path_.c_str();
    finding.formula = formula_.c_str();
    finding.evidence = evidence.data();
    finding.evidence_count = static_cast<uint32_t>(evidence.size());
    finding.evidence_stride = sizeof(sonde_evidence_t);
    host.check(host.service<sonde_result_service_t>().add_finding(session, &finding));
  }

 private:
  struct Evidence {
    std::string name, unit, text;
    sonde_value_t value;
  };

  Finding &assign(std::string &member, std::string text) {
    member = std::move(text);
    return *this;
  }
  Finding &set(uint32_t verdict, uint32_t severity, std::string message) {
    raw_.verdict = verdict;
    raw_.severity = severity;
    return assign(message_, std::move(message));
  }
  static sonde_finding_t defaults() {
    sonde_finding_t finding{};
    finding.confidence = 1;
    finding.sampling_scale = 1;
    return finding;
  }

  sonde_finding_t raw_ = defaults();
  std::string origin_, rule_, message_, advice_, reason_, kernel_, file_, tensor_, call_path_, formula_;
  std::vector<Evidence> evidence_;
};

}  // namespace sonde

#endif
