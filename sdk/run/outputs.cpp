#include "run/outputs.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sonde::run {

namespace {

struct Sink {
  FILE *file;
  int error = 0;
};

sonde_status write_piece(void *user, const char *text, uint64_t bytes) {
  auto &sink = *static_cast<Sink *>(user);
  if (std::fwrite(text, 1, bytes, sink.file) == bytes) return SONDE_OK;
  sink.error = errno;
  return SONDE_E_IO;
}

std::string with_process(std::string path, const std::string &process) {
  constexpr std::string_view kPlace = "{process}";
  for (size_t at = path.find(kPlace); at != std::string::npos; at = path.find(kPlace, at + process.size())) {
    path.replace(at, kPlace.size(), process);
  }
  return path;
}

}  // namespace

Result<void> write_output(const Services &services, sonde_session_t *session, const OutputWish &wish,
                          const std::string &process) {
  if (services.report == nullptr) return Error{SONDE_E_NOT_FOUND, "outputs: this build has no sonde.report/1"};
  const std::string path = with_process(wish.path, process);
  const std::string partial = path.empty() ? "" : fmt::format("{}.{}", path, ::getpid());
  Sink sink{path.empty() ? stdout : std::fopen(partial.c_str(), "we")};
  if (sink.file == nullptr) {
    return Error{SONDE_E_IO, fmt::format("{}: cannot be made: {}", partial, std::strerror(errno))};
  }
  sonde_report_options_t options{};
  options.struct_size = sizeof(options);
  options.color = wish.color ? 1 : 0;
  options.width = wish.width;
  options.rows = wish.rows;
  options.format = wish.format.c_str();
  options.only = wish.only.c_str();
  const sonde_status status = services.report->render(session, &options, write_piece, &sink);
  std::string reason = status == SONDE_OK ? "" : error_text(status);
  if (sink.error != 0) reason = std::strerror(sink.error);
  const bool flushed = path.empty() ? std::fflush(sink.file) == 0 : std::fclose(sink.file) == 0;
  if (reason.empty() && !flushed) reason = std::strerror(errno);
  if (reason.empty() && !path.empty() && std::rename(partial.c_str(), path.c_str()) != 0) reason = std::strerror(errno);
  if (reason.empty()) return {};
  if (!path.empty()) std::remove(partial.c_str());
  return Error{status == SONDE_OK ? SONDE_E_IO : status,
               fmt::format("output {} to {}: {}", wish.format, path.empty() ? "standard output" : path, reason)};
}

}  // namespace sonde::run
