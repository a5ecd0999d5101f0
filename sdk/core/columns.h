// Column operations: service sonde.columns/1.
#pragma once

#include <sonde/columns.h>

namespace sonde::core {

// Adds sonde.columns/1; sonde.capture/1 must be there when a column is looked up. Calling it twice is one call.
// [control]
void install_columns();

}  // namespace sonde::core
