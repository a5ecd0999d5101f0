// Service sonde.merge/1: records of all streams in order of their begin.
#pragma once

namespace sonde::core {

// Adds the service. [control]
void install_merge();

}  // namespace sonde::core
