// The service sonde.run/1.
#pragma once

namespace sonde::run {

// Adds the service to the host's table. Calling it twice is one call. [control]
void install();

}  // namespace sonde::run
