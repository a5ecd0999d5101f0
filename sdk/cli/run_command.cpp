// `sonde run` and `sonde record`: an unmodified program, captured from outside.
//
// The program's processes get SONDE_RUN, which names the configuration, and are entered through libsonde_inject.so:
// by CUDA (CUDA_INJECTION64_PATH), by NVTX (NVTX_INJECTION64_PATH) and by the dynamic linker (LD_PRELOAD), which also
// sees exit, _exit and exec. Each process writes its own capture file into the run directory.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>

#include "cli/capture_summary.h"
#include "cli/command.h"
#include "cli/launch.h"
#include "cli/replay_command.h"

namespace sonde::cli {
namespace {

namespace fs = std::filesystem;

struct CaptureFlags {
  std::string directory;
  ConfigFlags config;

  void add(CLI::App &app) {
    app.add_option("-o,--output-dir", directory, "Run directory to record into; must be new or empty [record.path]");
    config.add_capture_flags(app);
    config.add_common_flags(app);
  }
};

// libsonde_inject.so, which lies with libsonde: <prefix>/bin/sonde, <prefix>/lib/libsonde_inject.so. "" when absent.
std::string injection_library() {
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  for (const char *folder : {"../lib", "../lib64", "."}) {
    const fs::path candidate = executable.parent_path() / folder / "libsonde_inject.so";
    if (fs::exists(candidate, error)) return fs::canonical(candidate, error).string();
  }
  return {};
}

// "./python3-20260101-120000.run", made unique.
std::string fresh_directory(const std::string &program) {
  char stamp[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &parts);
  const std::string base = fmt::format("{}-{}", fs::path(program).filename().string(), stamp);
  std::string name = base + ".run";
  for (int number = 2; fs::exists(name); ++number) name = fmt::format("{}-{}.run", base, number);
  return name;
}

// Makes the run directory; its absolute path.
std::string make_directory(const std::string &wanted) {
  std::error_code error;
  const fs::path path = fs::absolute(wanted);
  if (fs::exists(path, error)) {
    if (!fs::is_directory(path, error)) throw CommandError(kInput, fmt::format("{} is not a directory", wanted));
    if (!fs::is_empty(path, error)) {
      throw CommandError(kUsage, fmt::format("{} is not empty; a run needs a directory of its own", wanted));
    }
  }
  fs::create_directories(path, error);
  if (error) throw CommandError(kInput, fmt::format("cannot make {}: {}", wanted, error.message()));
  return path.lexically_normal().string();
}

// A temporary run directory, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code error;
    fs::path base = fs::temp_directory_path(error);
    if (error) base = "/tmp";
    std::string pattern = (base / "sonde-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw CommandError(kInput, fmt::format("cannot make a directory in {}; name one with -o", base.string()));
    }
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  TemporaryDirectory(const TemporaryDirectory &) = delete;
  TemporaryDirectory &operator=(const TemporaryDirectory &) = delete;

  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

// Variables under which the runtime finds the injection library; a value that the user has set already is kept.
void add_injection(const char *variable, const std::string &library, Launch &launch) {
  const char *const present = std::getenv(variable);
  if (present != nullptr && *present != '\0' && present != library) {
    warn(fmt::format("{} is set to {} and is kept; what it would have brought is not captured", variable, present));
    return;
  }
  launch.environment.emplace_back(variable, library);
}

Launch launch_of(const std::vector<std::string> &command, const std::string &configuration) {
  Launch launch;
  launch.command = command;
  launch.environment.emplace_back("SONDE_RUN", configuration);
  const std::string library = injection_library();
  if (library.empty()) {
    warn("libsonde_inject.so is not beside the command; only a program that embeds Sonde can be captured");
    return launch;
  }
  add_injection("CUDA_INJECTION64_PATH", library, launch);
  add_injection("NVTX_INJECTION64_PATH", library, launch);
  const char *const preload = std::getenv("LD_PRELOAD");
  launch.environment.emplace_back(
      "LD_PRELOAD", preload == nullptr || *preload == '\0' ? library : fmt::format("{}:{}", preload, library));
  return launch;
}

// Runs the program with its captures going to `directory`; its exit status.
int capture(const Context &context, const RunConfig &config, const std::string &directory) {
  const std::string configuration = directory + "/run.yaml";
  std::ofstream file(configuration);
  file << config.recording_text(directory);
  file.close();
  if (!file) throw CommandError(kInput, fmt::format("cannot write {}", configuration));
  return launch_and_wait(launch_of(context.program, configuration));
}

bool has_captures(const std::string &directory) {
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".sonde") return true;
  }
  return false;
}

void explain_no_capture() {
  fmt::print(stderr,
             "sonde: nothing was captured: no process of the program made an event. Likely reasons:\n"
             "  it used no runtime that a port captures (`sonde list ports`) and does not embed Sonde;\n"
             "  it is linked statically or runs with raised privileges, so nothing can be preloaded into it;\n"
             "  the capture could not start in it: see its messages above, or run again with SONDE_LOG=debug.\n");
}

void check_program(const Context &context, const char *name) {
  if (!context.program.empty()) return;
  throw CommandError(kUsage, fmt::format("no program given; it stands after --, as in: sonde {} -- ./program", name));
}

int ended(int program_code, int own_code) { return program_code != kOk ? program_code : own_code; }

}  // namespace

Subcommand add_run(CLI::App &root) {
  struct Flags {
    CaptureFlags capture;
    ReportFlags report;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("run", "Run a program, capture it, then report");
  app->footer(
      "The program stands after --. It only records; the analyses run when it has ended.\n"
      "Examples:\n"
      "  sonde run -p workload -- python3 train.py\n"
      "  sonde run -p workload -o capture --format json --report report.json -- ./program --its-flag\n"
      "  sonde run -p workload --budget 3% -- ./server\n"
      "  sonde run -c run.yaml -- ./program");
  flags->capture.add(*app);
  flags->capture.config.add_analysis_flags(*app);
  flags->report.add(*app, "--report");
  return {app, [flags](const Context &context) {
            check_program(context, "run");
            const RunConfig config(context.host, flags->capture.config);
            if (!config.has_analyses()) {
              throw CommandError(kUsage, "no analysis given; name one with -p, -s or -c, or use `sonde record`");
            }
            Analysing analysing(context.host, config);

            std::string wanted = flags->capture.directory.empty() ? config.record_path() : flags->capture.directory;
            std::unique_ptr<TemporaryDirectory> temporary;
            if (wanted.empty()) {
              temporary = std::make_unique<TemporaryDirectory>();
              wanted = temporary->path();
            }
            const std::string directory = make_directory(wanted);
            const int code = capture(context, config, directory);
            if (code == kNoCommand || code == kCannotRun) return code;
            if (!has_captures(directory)) {
              explain_no_capture();
              return ended(code, kNothing);
            }
            return ended(code, analysing.report(directory, config, flags->report));
          }};
}

Subcommand add_record(CLI::App &root) {
  auto flags = std::make_shared<CaptureFlags>();
  CLI::App *const app = root.add_subcommand("record", "Run a program and capture it");
  app->footer(
      "The program stands after --.\n"
      "Examples:\n"
      "  sonde record -o capture -- python3 train.py\n"
      "  sonde record --port cuda -- ./program --its-flag");
  flags->add(*app);
  return {app, [flags](const Context &context) {
            check_program(context, "record");
            const RunConfig config(context.host, flags->config);
            std::string wanted = flags->directory.empty() ? config.record_path() : flags->directory;
            if (wanted.empty()) wanted = fresh_directory(context.program[0]);
            const std::string directory = make_directory(wanted);
            const int code = capture(context, config, directory);
            if (!has_captures(directory)) {
              if (code != kNoCommand && code != kCannotRun) explain_no_capture();
              return ended(code, kNothing);
            }
            // On standard error: standard output is the program's.
            print_capture_summary(context.host, directory, stderr);
            return code;
          }};
}

}  // namespace sonde::cli
