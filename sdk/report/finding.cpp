#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "report/results.h"
#include "report/struct_copy.h"

namespace sonde::report {
namespace {

std::string_view view_of(const char *text) { return text == nullptr ? std::string_view() : text; }

}  // namespace

Result<std::unique_ptr<Finding>> Finding::make(const sonde_finding_t &raw) {
  if (raw.struct_size < SONDE_NEED(sonde_finding_t, sampling_scale)) {
    return Error{SONDE_E_INVALID, fmt::format("finding of {} bytes, {} are needed", raw.struct_size,
                                              SONDE_NEED(sonde_finding_t, sampling_scale))};
  }
  const sonde_finding_t given = copy_known(raw);
  if (view_of(given.origin).empty()) {
    return Error{SONDE_E_INVALID, "a finding needs an origin: the id of the plugin or script"};
  }
  if (view_of(given.rule).empty() || view_of(given.message).empty()) {
    return Error{SONDE_E_INVALID, fmt::format("a finding of {} needs a rule and a message", given.origin)};
  }
  if (given.severity > SONDE_SEVERITY_ERROR) {
    return Error{SONDE_E_RANGE, fmt::format("finding {}: severity {} does not exist", given.rule, given.severity)};
  }
  if (given.verdict > SONDE_VERDICT_UNSUPPORTED) {
    return Error{SONDE_E_RANGE, fmt::format("finding {}: verdict {} does not exist", given.rule, given.verdict)};
  }
  if (given.verdict == SONDE_VERDICT_UNSUPPORTED && view_of(given.reason).empty()) {
    return Error{SONDE_E_INVALID, fmt::format("finding {}: \"could not look\" needs a reason", given.rule)};
  }
  if (given.confidence < 0 || given.confidence > 1) {
    return Error{SONDE_E_RANGE,
                 fmt::format("finding {}: confidence {} is not within 0 and 1", given.rule, given.confidence)};
  }

  std::unique_ptr<Finding> finding(new Finding());
  sonde_finding_t &view = finding->view_;
  view = given;
  view.struct_size = sizeof(view);
  for (const char **text : {&view.origin, &view.rule, &view.message, &view.advice, &view.reason, &view.kernel,
                            &view.file, &view.tensor, &view.call_path, &view.formula}) {
    *text = finding->texts_.copy_c(*text);
  }
  if (!std::isfinite(view.gain_seconds)) view.gain_seconds = 0;
  if (!std::isfinite(view.confidence)) view.confidence = 0;
  if (!std::isfinite(view.sampling_scale) || view.sampling_scale <= 0) view.sampling_scale = 1;
  if (auto copied = finding->copy_evidence(given); !copied) return copied.error();
  return finding;
}

Result<void> Finding::copy_evidence(const sonde_finding_t &given) {
  view_.evidence = nullptr;
  view_.evidence_stride = sizeof(sonde_evidence_t);
  if (given.evidence_count == 0) return {};
  if (given.evidence == nullptr || given.evidence_stride < SONDE_NEED(sonde_evidence_t, value)) {
    return Error{SONDE_E_INVALID, fmt::format("finding {}: evidence at {} with elements of {} bytes", given.rule,
                                              given.evidence == nullptr ? "NULL" : "its place", given.evidence_stride)};
  }
  for (uint32_t index = 0; index < given.evidence_count; ++index) {
    auto evidence = element_at<sonde_evidence_t>(given.evidence, index, given.evidence_stride);
    evidence.name = texts_.copy_c(evidence.name);
    evidence.unit = texts_.copy_c(evidence.unit);
    sonde_value_t &value = evidence.value;
    const bool is_list =
        value.kind == SONDE_VALUE_I64S || value.kind == SONDE_VALUE_F64S || value.kind == SONDE_VALUE_BYTES;
    if ((is_list || value.kind == SONDE_VALUE_TEXT) && value.count != 0 && value.as.pointer == nullptr) {
      return Error{SONDE_E_INVALID, fmt::format("finding {}: evidence {} is NULL", given.rule, evidence.name)};
    }
    if (value.kind > SONDE_VALUE_F64S) {
      return Error{SONDE_E_TYPE, fmt::format("finding {}: evidence {} has kind {}, which a report cannot show",
                                             given.rule, evidence.name, value.kind)};
    }
    if (value.kind == SONDE_VALUE_F64 && !std::isfinite(value.as.f64)) {
      value = sonde_value_t{};
    } else if (value.kind == SONDE_VALUE_TEXT) {
      value.as.text =
          texts_.copy(value.count == 0 ? std::string_view() : std::string_view(value.as.text, value.count)).data();
    } else if (is_list) {
      const size_t bytes = value.kind == SONDE_VALUE_BYTES ? value.count : value.count * 8;
      std::vector<uint64_t> &list = lists_.emplace_back((bytes + 7) / 8);
      if (bytes != 0) std::memcpy(list.data(), value.as.pointer, bytes);
      value.as.pointer = list.data();
    }
    evidence_.push_back(evidence);
  }
  view_.evidence = evidence_.data();
  return {};
}

}  // namespace sonde::report
