// The service sonde.config/1.
#pragma once

#include <cstddef>

namespace sonde::config {

// Adds the service to the host's table. Calling it twice is one call. [control]
void install();

// Configurations that were made and not released yet. [any]
size_t live_documents();

}  // namespace sonde::config
