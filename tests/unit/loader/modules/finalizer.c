// A plugin whose shutdown uses the host in earnest: services, the log, loading another plugin.
#include <sonde/plugin.h>
#include <sonde/plugins.h>
#include <stdio.h>
#include <stdlib.h>

static const sonde_host_t *host;

static sonde_status init(const sonde_host_t *given) {
  host = given;
  return SONDE_OK;
}

static void shutdown(void) {
  const void *service = NULL;
  const sonde_plugin_entry_t *entry = NULL;
  uint64_t count = 0;
  if (host->get_service(SONDE_PLUGINS_SERVICE, sizeof(sonde_plugins_service_t), &service) != SONDE_OK) abort();
  const sonde_plugins_service_t *const plugins = service;
  if (plugins->count(&count) != SONDE_OK || plugins->load("sample", &entry) != SONDE_OK) abort();
  host->log(SONDE_LOG_ERROR, "finalizer", "shutdown called the host");
}

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .id = "finalizer",
    .version = "1",
    .init = init,
    .shutdown = shutdown,
};
