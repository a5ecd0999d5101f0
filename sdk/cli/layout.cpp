// `sonde layout`: layouts on the command line.
#include "cli/layout_lint.h"

namespace sonde::cli {

Subcommand add_layout(CLI::App &root) {
  CLI::App *const app = root.add_subcommand("layout", "Layouts of tensors: find what they cost in compiled kernels");
  app->require_subcommand(1);
  const std::vector<Subcommand> subcommands = {add_layout_lint(*app)};
  return {app, [subcommands](const Context &context) {
            for (const Subcommand &subcommand : subcommands) {
              if (subcommand.app->parsed()) return subcommand.run(context);
            }
            throw CommandError(kUsage, "no subcommand given; `sonde layout --help` lists them");
          }};
}

}  // namespace sonde::cli
