// A plugin that is complete, or wrong in the one way that a definition asks for.
#define _POSIX_C_SOURCE 200809L
#include <sonde/analysis.h>
#include <sonde/plugin.h>
#include <sonde/plugins.h>
#include <stdlib.h>
#include <string.h>

#ifndef MODULE_SIZE
#define MODULE_SIZE sizeof(sonde_plugin_entry_t)
#endif
#ifndef MODULE_MAJOR
#define MODULE_MAJOR SONDE_ABI_MAJOR
#endif
#ifndef MODULE_MINOR
#define MODULE_MINOR 0
#endif
#ifndef MODULE_ID
#define MODULE_ID MODULE_NAME
#endif
#ifndef MODULE_STRIDE
#define MODULE_STRIDE sizeof(sonde_export_t)
#endif
#ifndef MODULE_COUNT
#define MODULE_COUNT 2
#endif

// Shows whether any code of this module ran.
__attribute__((constructor)) static void on_load(void) { setenv("LOADER_TEST_RAN_" MODULE_NAME, "1", 1); }

static sonde_status add(int64_t left, int64_t right, int64_t *out) {
  *out = left + right;
  return SONDE_OK;
}

static double half(double value) { return value / 2; }

static const sonde_export_t exports[] = {
    SONDE_EXPORT(add, status, (i64, i64, out_i64), "sum of two"),
    SONDE_EXPORT(half, f64, (f64), "a \"half\""),
};

static const sonde_option_t options[] = {
    {"rows", "20", "rows shown", "", "1..100", SONDE_OPTION_I64, 0},
    {"path", NULL, "a file", "", "", SONDE_OPTION_TEXT, 0},
};

static sonde_status create(sonde_session_t *session, const sonde_config_t *config, void **instance) {
  (void)session;
  (void)config;
  *instance = malloc(1);
  return SONDE_OK;
}
static sonde_status nothing(void *instance) {
  (void)instance;
  return SONDE_OK;
}
static const sonde_analysis_t analysis = {sizeof(sonde_analysis_t), 0, create, nothing, nothing, free};

typedef struct own_interface_t {
  uint32_t struct_size;
  uint32_t value;
} own_interface_t;
static const own_interface_t own = {sizeof(own_interface_t), 42};

static sonde_status init(const sonde_host_t *host) {
#if defined(MODULE_INIT_FAILS)
  return host->set_error(SONDE_E_IO, "the device is away");
#elif defined(MODULE_LOADS_ITSELF)
  const void *plugins = NULL;
  const sonde_plugin_entry_t *entry = NULL;
  if (host->get_service(SONDE_PLUGINS_SERVICE, sizeof(sonde_plugins_service_t), &plugins) != SONDE_OK)
    return SONDE_E_USER;
  return ((const sonde_plugins_service_t *)plugins)->load(MODULE_NAME, &entry);
#else
  (void)host;
  return SONDE_OK;
#endif
}

static const void *get_interface(const char *id) {
  if (strcmp(id, SONDE_ANALYSIS_INTERFACE) == 0) return &analysis;
  if (strcmp(id, "com.example.own/1") == 0) return &own;
  return NULL;
}

SONDE_DEFINE_PLUGIN = {
    .struct_size = MODULE_SIZE,
    .abi_major = MODULE_MAJOR,
    .abi_minor_required = MODULE_MINOR,
    .id = MODULE_ID,
    .version = "1.2.3",
    .summary = "A sample: with a colon, \"quotes\" and a \\",
    .license = "MIT",
    .exports = exports,
    .export_count = MODULE_COUNT,
    .export_stride = MODULE_STRIDE,
    .options = options,
    .option_count = 2,
    .option_stride = sizeof(sonde_option_t),
    .init = init,
    .get_interface = get_interface,
};
