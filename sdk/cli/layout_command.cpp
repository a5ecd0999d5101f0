// `sonde layout`: tensor layouts on the command line.
#include "cli/layout_command.h"

#include "cli/layout_lint.h"

namespace sonde::cli {
namespace {

constexpr const char *kFooter = R"(A LAYOUT is one of
  '#ttg.blocked<{...}>'   an attribute as in TTGIR; --shape is the tensor's
  FILE.ttgir:#blocked     an attribute of a module, by its alias; without --shape the one shape that it has there
  '{"in": ..., ...}'      JSON as `convert --to json` writes it
  '(8,8):(8,1)'           CuTe's text of a memory, also 'Sw<3,4,3> o 0 o ...'; --shape where modes are nested
  @FILE                   any of these, or the bytes of a layout, from a file

Examples:
  sonde layout show kernel.ttgir:#mma --shape 32x32
  sonde layout plan kernel.ttgir:#blocked kernel.ttgir:#mma --shape 128x64 --type f16
  sonde layout convert '#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1],
                       order = [1, 0]}>' --shape 64x64 --to linear-attribute
  sonde layout check kernel.ttgir)";

}  // namespace

Subcommand add_layout(CLI::App &root) {
  CLI::App *const app = root.add_subcommand("layout", "Show, convert, plan, check and lint tensor layouts");
  app->footer(kFooter);
  app->require_subcommand(1);
  const std::vector<Subcommand> subcommands = {add_layout_show(*app), add_layout_convert(*app), add_layout_plan(*app),
                                               add_layout_check(*app), add_layout_lint(*app)};
  return {app, [subcommands](const Context &context) {
            for (const Subcommand &subcommand : subcommands) {
              if (subcommand.app->parsed()) return subcommand.run(context);
            }
            throw CommandError(kUsage, "no subcommand given; `sonde layout --help` lists them");
          }};
}

}  // namespace sonde::cli
