// The capture that a new script is tested on.
#pragma once

#include <sonde/sonde.hpp>

#include <string>

namespace sonde::cli {

// Records three kernels, `add` twice and `multiply` once, into a new file.
void write_scaffold_capture(const Host &host, const std::string &path);

}  // namespace sonde::cli
