#include "common/services.h"

namespace sonde::cuda {

namespace {

template <typename Service>
sonde_status fetch(const sonde_host_t *host, const char *id, uint32_t min_size, const Service *&out) {
  const void *table = nullptr;
  const sonde_status status = host->get_service(id, min_size, &table);
  out = static_cast<const Service *>(table);
  return status;
}

}  // namespace

Services &services() {
  static Services instance;
  return instance;
}

sonde_status fetch_services(const sonde_host_t *host) {
  Services &all = services();
  all.host = host;
  (void)fetch(host, SONDE_CLAIM_SERVICE, SONDE_NEED(sonde_claim_service_t, release), all.claim);
  (void)fetch(host, SONDE_RANGES_SERVICE, SONDE_NEED(sonde_ranges_service_t, unwatch), all.ranges);
  sonde_status status = fetch(host, SONDE_CAPTURE_SERVICE, SONDE_NEED(sonde_capture_service_t, inside), all.capture);
  if (status == SONDE_OK) {
    status = fetch(host, SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, get_time), all.config);
  }
  return status;
}

}  // namespace sonde::cuda
