// Entry of the folder: results and reports.
#pragma once

namespace sonde::report {

// Adds the services sonde.result/1 and sonde.report/1. Calling it twice is one call. [control]
void install();

}  // namespace sonde::report
