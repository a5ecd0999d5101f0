// A table from which somebody removed a field in the middle without raising the major version: every later member
// lies eight bytes too early.
#include <sonde/plugin.h>

typedef struct other_entry_t {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor_required;
  const char *id;
  const char *version;
  const char *summary;
  // license is missing
  const sonde_export_t *exports;
  uint32_t export_count;
  uint32_t export_stride;
  const sonde_option_t *options;
  uint32_t option_count;
  uint32_t option_stride;
  sonde_status (*init)(const sonde_host_t *host);
  void (*shutdown)(void);
  const void *(*get_interface)(const char *id);
} other_entry_t;

static sonde_status twice(int64_t value, int64_t *out) {
  *out = 2 * value;
  return SONDE_OK;
}
static const sonde_export_t exports[] = {SONDE_EXPORT(twice, status, (i64, out_i64), "")};

SONDE_EXPORTED const other_entry_t sonde_plugin_entry = {
    .struct_size = sizeof(other_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .id = "field_removed",
    .version = "1",
    .summary = "",
    .exports = exports,
    .export_count = 1,
    .export_stride = sizeof(sonde_export_t),
};
