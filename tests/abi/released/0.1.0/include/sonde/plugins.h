// Service sonde.plugins/1: finding and loading plugins.
//
// Listing opens no plugin: it reads the manifest beside each one. Search order: paths added here, SONDE_PLUGIN_PATH,
// $XDG_DATA_HOME/sonde/plugins (or ~/.local/share), then plugins/ and ports/ beside the library. The environment is
// ignored when the process runs with raised privileges. The first plugin of an id wins.
#ifndef SONDE_PLUGINS_H
#define SONDE_PLUGINS_H

#include <sonde/base.h>
#include <sonde/plugin.h>

SONDE_BEGIN_DECLS

#define SONDE_PLUGINS_SERVICE "sonde.plugins/1"

// From a manifest; strings live as long as the process.
typedef struct sonde_plugin_info_t {
  uint32_t struct_size;
  uint32_t loaded;  // 1 when the module is loaded
  const char *id;
  const char *version;
  const char *summary;
  const char *path;        // of the module; "" for one linked statically
  const char *interfaces;  // separated by spaces
  const char *problem;     // "" or why it cannot be used
  uint32_t export_count;
  uint32_t option_count;
} sonde_plugin_info_t;

typedef struct sonde_plugins_service_t {
  uint32_t struct_size;
  uint32_t reserved;

  // Adds a folder, or one module, before the others.
  // [control]
  sonde_status (*add_path)(const char *path);

  // [control]
  sonde_status (*count)(uint64_t *out);
  sonde_status (*at)(uint64_t index, sonde_plugin_info_t *out);

  // Name, signature and help of a plugin's exports, and its options, from the manifest.
  // [control]
  sonde_status (*export_at)(const char *id, uint64_t index, const char **name, const char **signature,
                            const char **help);
  sonde_status (*option_at)(const char *id, uint64_t index, sonde_option_t *out);

  // Loads a plugin by id or by path of its module and calls its init. Loading twice is one load.
  // SONDE_E_NOT_FOUND lists where it looked. SONDE_E_INCOMPATIBLE and SONDE_E_TOO_OLD give both numbers; then no
  // code of the plugin ran and it is not kept.
  // [control]
  sonde_status (*load)(const char *id, const sonde_plugin_entry_t **out);

  // Registers a plugin that is linked into the program.
  // [control]
  sonde_status (*add_static)(const sonde_plugin_entry_t *entry);

  // An interface of a loaded plugin, or a service that any loaded plugin offers when id is NULL.
  // [any]
  sonde_status (*interface)(const char *id, const char *name, uint32_t min_size, const void **out);

  // A published function. SONDE_E_NOT_FOUND.
  // [any]
  sonde_status (*function)(const char *id, const char *name, sonde_export_t *out);

  // Writes the manifest of a module: what its entry says, as YAML. `path` "-": to standard output.
  // [control]
  sonde_status (*write_manifest)(const char *module, const char *path);
} sonde_plugins_service_t;

SONDE_END_DECLS

#endif
