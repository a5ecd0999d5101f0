// A plugin of a later header: a longer entry, longer exports, but nothing in it that this host must have.
#include <sonde/plugin.h>

typedef struct later_export_t {
  sonde_export_t known;
  const char *later;
} later_export_t;
typedef struct later_entry_t {
  sonde_plugin_entry_t known;
  uint64_t later[4];
} later_entry_t;

static sonde_status one(void) { return SONDE_OK; }
static double two(double value) { return value; }
static const later_export_t exports[] = {
    {{"one", "e()", "first", (sonde_function_t)one}, "later"},
    {SONDE_EXPORT(two, f64, (f64), "second"), "later"},
};

SONDE_EXPORTED const later_entry_t sonde_plugin_entry = {
    .known =
        {
            .struct_size = sizeof(later_entry_t),
            .abi_major = SONDE_ABI_MAJOR,
            .id = "longer",
            .version = "9.0.0",
            .exports = &exports[0].known,
            .export_count = 2,
            .export_stride = sizeof(later_export_t),
        },
    .later = {1, 2, 3, 4},
};
