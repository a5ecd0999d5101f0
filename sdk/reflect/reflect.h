// Signatures, calls and closures: service sonde.reflect/1.
#pragma once

namespace sonde::reflect {

// Adds sonde.reflect/1. Calling it twice is one call. [control]
void install();

}  // namespace sonde::reflect
