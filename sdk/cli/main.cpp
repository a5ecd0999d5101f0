// The `sonde` command: reads the command line, runs one subcommand, turns errors into exit statuses.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "cli/command.h"

namespace sonde::cli {
namespace {

constexpr const char *kFooter = R"(Examples:
  sonde run -p workload -- python3 train.py      record an unmodified program and report on it
  sonde record -o capture -- python3 train.py    record only
  sonde replay capture -p workload               report on a capture
  sonde doctor capture                           what a capture lacks
  sonde merge trace accesses -o joined           two runs of one program as one
  sonde new plugin mine                          a plugin that builds and passes its own test
  sonde layout lint kernel.ttgir                 what a kernel's conversions and accesses cost

Exit status: 0 good; 1 findings at or above --fail-on, or a capture with limits (doctor); 2 the command line or a
configuration is wrong; 3 a file, capture or plugin is missing or damaged; 4 an internal failure; 5 nothing was
captured. `run` and `record` pass the program's own status on, 128 + n when signal n ended it, 127 when it does not
exist, 126 when it cannot be started.

Environment: SONDE_PLUGIN_PATH folders of plugins, SONDE_LOG=error|warning|info|debug, NO_COLOR.)";

int run_chosen(const std::vector<Subcommand> &subcommands, const Context &context) {
  for (const Subcommand &subcommand : subcommands) {
    if (subcommand.app->parsed()) return subcommand.run(context);
  }
  throw CommandError(kUsage, "no subcommand given; `sonde --help` lists them");
}

int run(int argc, char **argv) {
  CLI::App root("Event capture and analyses for accelerator programs.", "sonde");
  root.footer(kFooter);
  root.set_version_flag("--version",
                        fmt::format("sonde {}.{}.{}", SONDE_VERSION_MAJOR, SONDE_VERSION_MINOR, SONDE_VERSION_PATCH));
  root.require_subcommand(1);
  root.get_formatter()->column_width(36);
  const std::vector<Subcommand> subcommands = {add_run(root),    add_record(root), add_replay(root), add_dump(root),
                                               add_doctor(root), add_merge(root),  add_list(root),   add_describe(root),
                                               add_call(root),   add_layout(root), add_new(root),    add_manifest(root),
                                               add_version(root)};

  // What follows "--" is the program's and not ours to read.
  Context context;
  std::vector<std::string> ours;
  for (int index = 1; index < argc; ++index) {
    if (std::strcmp(argv[index], "--") == 0) {
      context.program.assign(argv + index + 1, argv + argc);
      break;
    }
    ours.emplace_back(argv[index]);
  }
  try {
    std::vector<std::string> reversed(ours.rbegin(), ours.rend());
    root.parse(reversed);
  } catch (const CLI::ParseError &error) {
    // Help and version are "errors" with status 0.
    return root.exit(error) == 0 ? kOk : kUsage;
  }
  context.host = Host(sonde_host());
  const int code = run_chosen(subcommands, context);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw CommandError(kInput, fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
  return code;
}

}  // namespace

void warn(const std::string &text) { fmt::print(stderr, "sonde: warning: {}\n", text); }

void add_plugin_paths(const Host &host, const std::vector<std::string> &paths) {
  const auto &plugins = host.service<sonde_plugins_service_t>();
  for (const std::string &path : paths) host.check(plugins.add_path(path.c_str()));
}

}  // namespace sonde::cli

int main(int argc, char **argv) {
  using namespace sonde::cli;
  const auto report = [](const char *text, int code) {
    std::fflush(stdout);
    fmt::print(stderr, "sonde: {}\n", text);
    return code;
  };
  try {
    return run(argc, argv);
  } catch (const CommandError &error) {
    return report(error.what(), error.code());
  } catch (const sonde::Failure &failure) {
    return report(failure.what(), exit_code_of(failure.status()));
  } catch (const std::exception &exception) {
    return report(exception.what(), kInternal);
  }
}
