// `sonde layout`: its subcommands, each in the file of its name.
#pragma once

#include "cli/command.h"

namespace sonde::cli {

Subcommand add_layout_show(CLI::App &layout);
Subcommand add_layout_convert(CLI::App &layout);
Subcommand add_layout_plan(CLI::App &layout);
Subcommand add_layout_check(CLI::App &layout);

}  // namespace sonde::cli
