// Where the command's report goes and how it looks.
#pragma once

#include <CLI/CLI.hpp>
#include <sonde/sonde.hpp>

#include <string>

namespace sonde::cli {

struct ReportFlags {
  std::string format;   // --format, "": text, unless the configuration names outputs
  std::string file;     // "": standard output
  std::string only;     // --only
  uint32_t rows = 0;    // --rows
  std::string fail_on;  // --fail-on

  // `output_flag` is "-o,--output" or "--report".
  void add(CLI::App &app, const char *output_flag);
  bool is_explicit() const { return !format.empty() || !file.empty() || !only.empty() || rows != 0; }
};

// Renders the session's results. A file appears whole or not at all.
void write_report(const Host &host, sonde_session_t *session, const ReportFlags &flags);

// kFound when a finding breaks its rule at or above the severity of --fail-on, else kOk.
int judge(const Host &host, sonde_session_t *session, const ReportFlags &flags);

// True when `stream` (stdout, stderr) is a terminal that may be coloured.
bool wants_color(int descriptor);

// Shows how far a long replay is, on standard error when that is a terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  // For the host's progress parameters: `user` is a Progress.
  static sonde_status update(void *user, uint64_t done, uint64_t total);

 private:
  bool is_shown_ = false;
  bool has_line_ = false;
  int64_t begin_ns_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace sonde::cli
