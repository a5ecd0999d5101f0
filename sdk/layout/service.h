// The tables behind sonde.layout/1 and its neighbours.
#pragma once

#include <sonde/base.h>

#include <span>

namespace sonde::layout {

struct NamedService {
  const char *id;
  const void *table;
};

// All tables of this folder. `set_error` takes the text of a failed call, as sonde_host_t.set_error does; it is kept for
// the life of the process. [control]
std::span<const NamedService> services(void (*set_error)(const char *text));

}  // namespace sonde::layout
