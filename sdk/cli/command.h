// What the parts of the command share: the host, errors that end it, its output.
#pragma once

#include <CLI/CLI.hpp>
#include <sonde/sonde.hpp>

#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_codes.h"

namespace sonde::cli {

// Ends the command with a message on standard error.
class CommandError : public std::runtime_error {
 public:
  CommandError(int code, const std::string &text) : std::runtime_error(text), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

struct Context {
  Host host{nullptr};
  std::vector<std::string> program;  // what stands after "--"
};

// What a subcommand adds to the command line. `run` is called when it was chosen and returns the exit status.
struct Subcommand {
  CLI::App *app;
  std::function<int(const Context &)> run;
};

Subcommand add_run(CLI::App &root);
Subcommand add_record(CLI::App &root);
Subcommand add_replay(CLI::App &root);
Subcommand add_list(CLI::App &root);
Subcommand add_describe(CLI::App &root);
Subcommand add_call(CLI::App &root);
Subcommand add_dump(CLI::App &root);
Subcommand add_doctor(CLI::App &root);
Subcommand add_merge(CLI::App &root);
Subcommand add_layout(CLI::App &root);
Subcommand add_new(CLI::App &root);
Subcommand add_manifest(CLI::App &root);
Subcommand add_version(CLI::App &root);

// A warning of the command on standard error.
void warn(const std::string &text);

// Adds folders and modules given by --plugin-path to the search.
void add_plugin_paths(const Host &host, const std::vector<std::string> &paths);

}  // namespace sonde::cli
