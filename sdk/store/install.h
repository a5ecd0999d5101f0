// The store's part of the host.
#pragma once

namespace sonde::store {

// Adds sonde.store/1; sonde::core::install() comes first. Calling it twice is one call. [control]
void install();

}  // namespace sonde::store
