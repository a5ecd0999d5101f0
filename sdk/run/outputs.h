// Writing the reports of a run.
#pragma once

#include <string>

#include "run/settings.h"

namespace sonde::run {

// Renders one output of the session. `process` replaces {process} in the path. A file appears whole or not at all.
Result<void> write_output(const Services &services, sonde_session_t *session, const OutputWish &wish,
                          const std::string &process);

}  // namespace sonde::run
