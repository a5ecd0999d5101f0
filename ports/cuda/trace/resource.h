// CUPTI's callbacks: objects made and destroyed, and launches to be counted.
#pragma once

#include <cstdint>

namespace sonde::cuda {

// The callback of the subscription; `data` is a ResourceData or a CallData. Counts launches, emits sonde.object records
// on the calling thread, and calls nothing but CUPTI's own id functions. [app-thread]
void on_callback(void *user, uint32_t domain, uint32_t point, const void *data);

}  // namespace sonde::cuda
