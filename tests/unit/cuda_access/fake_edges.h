// The port's own kernels, restated for the processor from their definition: byte by byte.
#pragma once

#include <cstdint>
#include <functional>

namespace sonde::cuda::access::test {

// Reads the arguments now; what it returns does the work.
using EdgeKernel = std::function<void()> (*)(uint32_t grid, uint32_t kinds, void **arguments);

// Null for a name that is none of theirs.
EdgeKernel edge_kernel(const char *name);

}  // namespace sonde::cuda::access::test
