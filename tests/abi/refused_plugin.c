// A plugin that this host must refuse. REQUIRED_MAJOR and REQUIRED_MINOR come from the build; its init leaves a mark in
// the environment, which must never appear.
#define _POSIX_C_SOURCE 200809L  // setenv

#include <sonde/plugin.h>
#include <stdlib.h>

static sonde_status init(const sonde_host_t *host) {
  (void)host;
  setenv("SONDE_REFUSED_PLUGIN_RAN", "1", 1);
  return SONDE_OK;
}

static void shut_down(void) { setenv("SONDE_REFUSED_PLUGIN_RAN", "1", 1); }

static const void *get_interface(const char *id) {
  (void)id;
  setenv("SONDE_REFUSED_PLUGIN_RAN", "1", 1);
  return NULL;
}

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = REQUIRED_MAJOR,
    .abi_minor_required = REQUIRED_MINOR,
    .id = "refused",
    .version = "1.0.0",
    .summary = "Needs another host",
    .license = "Apache-2.0",
    .init = init,
    .shutdown = shut_down,
    .get_interface = get_interface,
};
