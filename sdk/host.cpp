// The two symbols of libsonde.so, and the installation of every service behind them.
#include <sonde/host.h>

#include "core/services.h"
#if SONDE_WITH_CONFIG
#include "config/service.h"
#endif
#if SONDE_WITH_LOADER
#include "loader/install.h"
#endif
#if SONDE_WITH_REFLECT
#include "reflect/reflect.h"
#endif
#if SONDE_WITH_REPORT
#include "report/install.h"
#endif
#if SONDE_WITH_RUN
#include "run/install.h"
#endif
#if SONDE_WITH_STORE
#include "store/install.h"
#endif

namespace {

bool install_services() {
  sonde::core::install();
#if SONDE_WITH_CONFIG
  sonde::config::install();
#endif
#if SONDE_WITH_REFLECT
  sonde::reflect::install();
#endif
#if SONDE_WITH_LOADER
  sonde::loader::install();
#endif
#if SONDE_WITH_STORE
  sonde::store::install();
#endif
#if SONDE_WITH_REPORT
  sonde::report::install();
#endif
#if SONDE_WITH_RUN
  sonde::run::install();
#endif
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
