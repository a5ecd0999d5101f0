// `sonde layout lint`: what the layouts in dumped TTGIR cost.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace sonde::cli {

// Adds the subcommand to `sonde layout`.
Subcommand add_layout_lint(CLI::App &layout);

}  // namespace sonde::cli
