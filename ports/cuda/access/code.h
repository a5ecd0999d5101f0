// What the port reads out of a module's machine code (an ELF image).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sonde::cuda::access {

// Names of the functions that copy through tensor maps, which the Compute Sanitizer does not patch: their counts are
// incomplete. Empty for an image that cannot be read.
std::vector<std::string> functions_with_tensor_copies(const char *image, size_t bytes);

}  // namespace sonde::cuda::access
