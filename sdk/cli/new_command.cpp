// `sonde new plugin NAME`: a project that builds, is listed, runs and passes its own test.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "cli/scaffold.h"
#include "cli/scaffold_capture.h"

namespace sonde::cli {
namespace {

namespace fs = std::filesystem;

bool is_plugin_name(const std::string &name) {
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

void write_file(const fs::path &path, const std::string &text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw CommandError(kInput, fmt::format("cannot write {}", path.string()));
}

}  // namespace

Subcommand add_new(CLI::App &root) {
  struct Flags {
    std::string what;
    std::string name;
    std::string directory;
    std::string language = "cpp";
  };
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("new", "Begin a plugin of your own");
  app->footer(
      "Examples:\n"
      "  sonde new plugin mine                 C++, in ./mine\n"
      "  sonde new plugin mine --lang c src/mine\n"
      "  sonde new plugin top --lang lua       a script, which needs no compiler");
  app->add_option("WHAT", flags->what, "plugin")->required()->check(CLI::IsMember({"plugin"}));
  app->add_option("NAME", flags->name, "Id: lower-case letters, digits and _")->required();
  app->add_option("DIR", flags->directory, "Directory to make (default: NAME)");
  app->add_option("--lang", flags->language, "c, cpp or lua")
      ->check(CLI::IsMember({"c", "cpp", "lua"}))
      ->capture_default_str();
  return {app, [flags](const Context &context) {
            if (!is_plugin_name(flags->name)) {
              throw CommandError(kUsage, fmt::format("\"{}\" is no plugin name: lower-case letters, digits and _, "
                                                     "beginning with a letter",
                                                     flags->name));
            }
            const fs::path directory = flags->directory.empty() ? flags->name : flags->directory;
            std::error_code error;
            if (fs::exists(directory, error) && !fs::is_empty(directory, error)) {
              throw CommandError(kUsage, fmt::format("{} exists and is not empty", directory.string()));
            }
            for (const ScaffoldFile &file : scaffold(flags->language, flags->name)) {
              write_file(directory / file.path, file.text);
              if (file.is_program) fs::permissions(directory / file.path, fs::perms(0755), error);
              fmt::print("{}\n", (directory / file.path).string());
            }
            if (flags->language == "lua") {
              write_scaffold_capture(context.host, (directory / "kernels.sonde").string());
              fmt::print("{}\n", (directory / "kernels.sonde").string());
            }
            fmt::print("Next: {}/README.md\n", directory.string());
            return kOk;
          }};
}

}  // namespace sonde::cli
