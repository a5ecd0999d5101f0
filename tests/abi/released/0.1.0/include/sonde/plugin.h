// The entry of a plugin: the one symbol that a module shows.
//
// A plugin is a shared object that defines the data symbol `sonde_plugin_entry`. It needs include/sonde/ and nothing
// else: it does not link libsonde. Analyses (analysis.h) and ports (port.h) are plugins that offer an interface of
// that name; a plugin may offer services of its own under names like "com.example.thing/1".
#ifndef SONDE_PLUGIN_H
#define SONDE_PLUGIN_H

#include <sonde/base.h>
#include <sonde/config.h>
#include <sonde/export.h>
#include <sonde/host.h>
#include <sonde/status.h>

SONDE_BEGIN_DECLS

typedef struct sonde_plugin_entry_t {
  uint32_t struct_size;
  uint16_t abi_major;           // SONDE_ABI_MAJOR
  uint16_t abi_minor_required;  // oldest minor that has what this source uses
  const char *id;               // lower case letters, digits, '_' and '.', unique: "workload"
  const char *version;          // "1.2.3"
  const char *summary;          // one line
  const char *license;          // SPDX expression, "" when unstated

  const sonde_export_t *exports;  // functions for Lua, Python and the command line; may be NULL
  uint32_t export_count;
  uint32_t export_stride;         // sizeof(sonde_export_t)
  const sonde_option_t *options;  // what the plugin's part of the configuration may hold; may be NULL
  uint32_t option_count;
  uint32_t option_stride;  // sizeof(sonde_option_t)

  // Called once after loading, before anything else; may be NULL. The table lives as long as the process.
  // [control]
  sonde_status (*init)(const sonde_host_t *host);

  // Called once before the process ends, if init succeeded; may be NULL. It may call the host.
  // [control]
  void (*shutdown)(void);

  // An interface of the plugin by name ("sonde.analysis/1", "sonde.port/1", its own), or NULL; may be NULL itself.
  // The result begins with struct_size and lives as long as the process.
  // [any]
  const void *(*get_interface)(const char *id);
} sonde_plugin_entry_t;

// In a build that links plugins statically, SONDE_PLUGIN_STATIC names the symbol instead.
#ifdef SONDE_PLUGIN_STATIC
#define SONDE_PLUGIN_ENTRY_CAT_(name) sonde_plugin_entry_##name
#define SONDE_PLUGIN_ENTRY_CAT(name) SONDE_PLUGIN_ENTRY_CAT_(name)
#define SONDE_PLUGIN_ENTRY SONDE_PLUGIN_ENTRY_CAT(SONDE_PLUGIN_STATIC)
#else
#define SONDE_PLUGIN_ENTRY sonde_plugin_entry
#endif

// Declares the entry, to be followed by its initialiser.
#define SONDE_DEFINE_PLUGIN                                                    \
  SONDE_EXTERN_C SONDE_EXPORTED const sonde_plugin_entry_t SONDE_PLUGIN_ENTRY; \
  const sonde_plugin_entry_t SONDE_PLUGIN_ENTRY

SONDE_END_DECLS

#endif
