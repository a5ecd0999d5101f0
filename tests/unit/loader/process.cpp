// A process of its own for what can happen once only: `loader_process FOLDER ID [create]` loads a plugin, perhaps
// creates its analysis, and exits.
#include <sonde/analysis.h>
#include <sonde/plugins.h>

#include <cstdio>
#include <cstring>

#include "config/service.h"
#include "core/services.h"
#include "loader/install.h"

int main(int count, char **arguments) {
  if (count < 3) return 64;
  sonde::core::install();
  sonde::config::install();
  sonde::loader::install();
  const auto &plugins = sonde::service<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE);
  const sonde_plugin_entry_t *entry = nullptr;
  if (plugins.add_path(arguments[1]) != SONDE_OK || plugins.load(arguments[2], &entry) != SONDE_OK) {
    std::fprintf(stderr, "%s\n", sonde::host_table()->last_error());
    return 1;
  }
  if (count > 3 && std::strcmp(arguments[3], "create") == 0) {
    const void *table = nullptr;
    if (plugins.interface(arguments[2], SONDE_ANALYSIS_INTERFACE, sizeof(sonde_analysis_t), &table) != SONDE_OK)
      return 2;
    void *instance = nullptr;
    const sonde_status status = static_cast<const sonde_analysis_t *>(table)->create(nullptr, nullptr, &instance);
    std::fprintf(stderr, "create returned %d\n", status);
  }
  return 0;
}
