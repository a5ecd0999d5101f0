// The host's services that the port uses, fetched once when the plugin is loaded.
#pragma once

#include <sonde/capture.h>
#include <sonde/config.h>
#include <sonde/host.h>

namespace sonde::cuda {

struct Services {
  const sonde_host_t *host = nullptr;
  const sonde_capture_service_t *capture = nullptr;
  const sonde_config_service_t *config = nullptr;
};

// Valid after the plugin's init.
Services &services();

}  // namespace sonde::cuda
