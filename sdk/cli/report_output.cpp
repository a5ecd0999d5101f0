#include "cli/report_output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/command.h"

namespace sonde::cli {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint32_t terminal_width(int descriptor) {
  winsize size{};
  if (isatty(descriptor) == 0 || ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) return 0;
  return size.ws_col;
}

sonde_status write_to(void *user, const char *text, uint64_t bytes) {
  return std::fwrite(text, 1, bytes, static_cast<FILE *>(user)) == bytes ? SONDE_OK : SONDE_E_IO;
}

uint32_t severity_of(const std::string &word) {
  if (word == "error") return SONDE_SEVERITY_ERROR;
  return word == "warning" ? SONDE_SEVERITY_WARNING : SONDE_SEVERITY_NOTE;
}

}  // namespace

void ReportFlags::add(CLI::App &app, const char *output_flag) {
  app.add_option("--format", format, "text, json, sarif or csv (default: text) [outputs.format]")
      ->check(CLI::IsMember({"text", "json", "sarif", "csv"}));
  app.add_option(output_flag, file, "File for the report (default: standard output) [outputs.path]");
  app.add_option("--only", only, "Show one origin or one table alone: workload, workload.kernels [outputs.only]");
  app.add_option("--rows", rows, "Rows of a table in the text report (default: each table's own wish) [outputs.rows]");
  app.add_option("--fail-on", fail_on, "Exit with 1 on findings of this severity or above")
      ->check(CLI::IsMember({"note", "warning", "error"}));
}

bool wants_color(int descriptor) {
  const char *const refused = std::getenv("NO_COLOR");
  const char *const terminal = std::getenv("TERM");
  return isatty(descriptor) != 0 && (refused == nullptr || *refused == '\0') &&
         (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

void write_report(const Host &host, sonde_session_t *session, const ReportFlags &flags) {
  const auto &service = host.service<sonde_report_service_t>();
  sonde_report_options_t options{};
  options.struct_size = sizeof(options);
  options.rows = flags.rows;
  options.format = flags.format.empty() ? "text" : flags.format.c_str();
  options.only = flags.only.c_str();
  if (flags.file.empty() || flags.file == "-") {
    options.color = wants_color(STDOUT_FILENO) ? 1 : 0;
    options.width = terminal_width(STDOUT_FILENO);
    host.check(service.render(session, &options, write_to, stdout));
    return;
  }
  const std::string partial = flags.file + ".partial";
  const std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(partial.c_str(), "wb"), &std::fclose);
  if (file == nullptr) {
    throw CommandError(kInput, fmt::format("cannot write {}: {}", flags.file, std::strerror(errno)));
  }
  const sonde_status status = service.render(session, &options, write_to, file.get());
  const bool is_written = status == SONDE_OK && std::fflush(file.get()) == 0;
  std::error_code reason(is_written ? 0 : errno, std::generic_category());
  if (is_written) std::filesystem::rename(partial, flags.file, reason);
  if (is_written && !reason) return;
  std::error_code ignored;
  std::filesystem::remove(partial, ignored);
  if (status != SONDE_OK && status != SONDE_E_IO) host.check(status);
  throw CommandError(kInput, fmt::format("cannot write {}: {}", flags.file, reason.message()));
}

int judge(const Host &host, sonde_session_t *session, const ReportFlags &flags) {
  if (flags.fail_on.empty()) return kOk;
  const auto &service = host.service<sonde_result_service_t>();
  const uint32_t least = severity_of(flags.fail_on);
  uint64_t count = 0;
  host.check(service.finding_count(session, &count));
  for (uint64_t index = 0; index < count; ++index) {
    const sonde_finding_t *finding = nullptr;
    host.check(service.finding_at(session, index, &finding));
    if (finding->verdict == SONDE_VERDICT_VIOLATION && finding->severity >= least) return kFound;
  }
  return kOk;
}

Progress::Progress() : is_shown_(isatty(STDERR_FILENO) != 0), begin_ns_(now_ns()) {}

Progress::~Progress() {
  if (has_line_) fmt::print(stderr, "\r\x1b[K");
}

sonde_status Progress::update(void *user, uint64_t done, uint64_t total) {
  auto *const self = static_cast<Progress *>(user);
  if (!self->is_shown_) return SONDE_OK;
  // Work that ends within half a second needs no line.
  const int64_t now = now_ns();
  if (now - self->begin_ns_ < 500'000'000 || now - self->last_ns_ < 100'000'000) return SONDE_OK;
  self->last_ns_ = now;
  self->has_line_ = true;
  const double seconds = static_cast<double>(now - self->begin_ns_) * 1e-9;
  fmt::print(stderr, "\rreplaying {:.0f} %, {:.1f} of {:.1f} million records, {:.1f} million a second\x1b[K",
             total == 0 ? 0.0 : 100.0 * static_cast<double>(done) / static_cast<double>(total),
             static_cast<double>(done) * 1e-6, static_cast<double>(total) * 1e-6,
             static_cast<double>(done) * 1e-6 / seconds);
  std::fflush(stderr);
  return SONDE_OK;
}

}  // namespace sonde::cli
