// `sonde manifest` and `sonde version`.
#include <fmt/format.h>

#include "cli/command.h"

namespace sonde::cli {

Subcommand add_manifest(CLI::App &root) {
  struct Flags {
    std::string module;
    std::string output = "-";
  };
  auto flags = std::make_shared<Flags>();
  CLI::App *const app = root.add_subcommand("manifest", "Write the manifest of a plugin's module");
  app->footer("Example:\n  sonde manifest build/mine.so -o build/mine.yaml");
  app->add_option("MODULE", flags->module, "Shared object of the plugin")->required();
  app->add_option("-o,--output", flags->output, "File to write; - is standard output")->capture_default_str();
  return {app, [flags](const Context &context) {
            const auto &plugins = context.host.service<sonde_plugins_service_t>();
            context.host.check(plugins.write_manifest(flags->module.c_str(), flags->output.c_str()));
            return kOk;
          }};
}

Subcommand add_version(CLI::App &root) {
  CLI::App *const app = root.add_subcommand("version", "Show the versions of the SDK and of its interface");
  return {app, [](const Context &context) {
            const uint32_t version = sonde_version();
            fmt::print("sonde {}.{}.{}, interface {}.{}\n", version / 1000000, version / 1000 % 1000, version % 1000,
                       context.host.table()->abi_major, context.host.table()->abi_minor);
            return kOk;
          }};
}

}  // namespace sonde::cli
