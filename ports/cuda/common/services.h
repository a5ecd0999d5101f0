// The host's services that a port of CUDA uses, fetched once when its plugin is loaded.
#pragma once

#include <sonde/capture.h>
#include <sonde/claim.h>
#include <sonde/config.h>
#include <sonde/host.h>
#include <sonde/ranges.h>

namespace sonde::cuda {

struct Services {
  const sonde_host_t *host = nullptr;
  const sonde_capture_service_t *capture = nullptr;
  const sonde_config_service_t *config = nullptr;
  const sonde_claim_service_t *claim = nullptr;    // null on a host that lacks it
  const sonde_ranges_service_t *ranges = nullptr;  // null on a host that lacks it
};

// Valid after the plugin's init.
Services &services();

// Fetches what every port needs (host, capture, config) and, where the host has them, the others.
sonde_status fetch_services(const sonde_host_t *host);

}  // namespace sonde::cuda
