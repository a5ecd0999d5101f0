#include "report/report_service.h"

#include <fmt/format.h>

#include <string_view>

#include "core/error.h"
#include "report/formats.h"
#include "report/struct_copy.h"

namespace sonde::report {
namespace {

using Format = void (*)(const ReportInput &, Output &);

Format format_of(std::string_view name) {
  if (name == "text") return write_text;
  if (name == "json") return write_json;
  if (name == "sarif") return write_sarif;
  if (name == "csv") return write_csv;
  return nullptr;
}

sonde_status render(sonde_session_t *session, const sonde_report_options_t *options, Output::Write write, void *user) {
  return at_boundary([&]() -> sonde_status {
    if (session == nullptr || write == nullptr) {
      return fail(SONDE_E_INVALID, session == nullptr ? "session is NULL" : "write is NULL");
    }
    sonde_report_options_t known{};
    if (options != nullptr) known = copy_known(*options);
    const std::string_view name = known.format == nullptr || *known.format == '\0' ? "text" : known.format;
    const Format format = format_of(name);
    if (format == nullptr) {
      return fail(SONDE_E_NOT_FOUND, fmt::format("no report format \"{}\"; there are text, json, sarif and csv", name));
    }
    const auto input = collect(session, known);
    if (!input) return fail(input.error());
    Output output(write, user);
    format(*input, output);
    output.flush();
    return output.status();
  });
}

constexpr sonde_report_service_t kService = {sizeof(sonde_report_service_t), 0, render};

}  // namespace

const sonde_report_service_t &report_service() { return kService; }

}  // namespace sonde::report
