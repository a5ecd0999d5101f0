// The table of services behind sonde_host_t.get_service.
//
// Each folder of the SDK has an install() that adds its services; the shared library calls them all (sdk/host.cpp), a
// unit test only those it needs.
#pragma once

#include <sonde/host.h>

namespace sonde {

// Adds a service. `table` begins with struct_size and lives for ever; the first registration of an id wins.
// [control], before any get_service
void add_service(const char *id, const void *table);

// A service by id with the checks of sonde_host_t.get_service. [any]
sonde_status get_service(const char *id, uint32_t min_size, const void **out) noexcept;

// The host table made of the functions in this folder. [any]
const sonde_host_t *host_table() noexcept;

// A service inside the SDK, where it must exist; aborts with a message otherwise. [any]
const void *required_service(const char *id);

template <typename Service>
const Service &service(const char *id) {
  return *static_cast<const Service *>(required_service(id));
}

}  // namespace sonde

namespace sonde::core {

// Adds sonde.session/1, capture/1, delivery/1, claim/1, ranges/1, merge/1 and columns/1, and registers the built-in spaces.
// Calling it twice is one call. [control]
void install();

}  // namespace sonde::core
