// The service sonde.plugins/1.
#pragma once

namespace sonde::loader {

// Adds the service to the host's table. Calling it twice is one call. [control]
void install();

}  // namespace sonde::loader
