// The two symbols of libsonde.so, and the installation of every service behind them.
#include <sonde/host.h>

#include "config/service.h"
#include "core/services.h"
#include "layout/service.h"
#include "loader/install.h"
#include "reflect/reflect.h"
#include "report/install.h"
#include "run/install.h"
#include "store/install.h"

namespace {

bool install_services() {
  sonde::core::install();
  sonde::config::install();
  sonde::reflect::install();
  sonde::loader::install();
  sonde::store::install();
  sonde::report::install();
  sonde::run::install();
  const auto set_error = [](const char *text) { (void)sonde::host_table()->set_error(SONDE_OK, text); };
  for (const auto &service : sonde::layout::services(set_error)) sonde::add_service(service.id, service.table);
  return true;
}

}  // namespace

const sonde_host_t *sonde_host(void) {
  static const bool installed = install_services();
  (void)installed;
  return sonde::host_table();
}

uint32_t sonde_version(void) {
  return SONDE_VERSION_MAJOR * 1000000 + SONDE_VERSION_MINOR * 1000 + SONDE_VERSION_PATCH;
}
