#include "cli/plugin_names.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "cli/command.h"

namespace sonde::cli {

std::vector<sonde_plugin_info_t> all_plugins(const Host &host) {
  const auto &service = host.service<sonde_plugins_service_t>();
  uint64_t count = 0;
  host.check(service.count(&count));
  std::vector<sonde_plugin_info_t> plugins(count);
  for (uint64_t index = 0; index < count; ++index) {
    plugins[index].struct_size = sizeof(sonde_plugin_info_t);
    host.check(service.at(index, &plugins[index]));
  }
  return plugins;
}

sonde_plugin_info_t find_plugin(const Host &host, const std::string &id) {
  std::string known;
  for (const sonde_plugin_info_t &plugin : all_plugins(host)) {
    if (id == plugin.id) return plugin;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", plugin.id);
  }
  throw CommandError(kInput, fmt::format("no plugin \"{}\"; there are: {}. Add a folder with --plugin-path or in "
                                         "SONDE_PLUGIN_PATH.",
                                         id, known.empty() ? "none" : known));
}

std::string plugin_id(const Host &host, const std::string &name) {
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".so");
  if (!is_path) return find_plugin(host, name).id;
  std::error_code error;
  const auto wanted = std::filesystem::canonical(name, error);
  if (error) throw CommandError(kInput, fmt::format("plugin {}: {}", name, error.message()));
  const auto &service = host.service<sonde_plugins_service_t>();
  host.check(service.add_path(wanted.c_str()));
  for (const sonde_plugin_info_t &plugin : all_plugins(host)) {
    if (std::filesystem::equivalent(plugin.path, wanted, error)) return plugin.id;
  }
  // Without a manifest beside it the module itself has to tell.
  const sonde_plugin_entry_t *entry = nullptr;
  host.check(service.load(wanted.c_str(), &entry));
  return entry->id;
}

bool offers(const sonde_plugin_info_t &plugin, const std::string &interface) {
  std::istringstream words(plugin.interfaces);
  for (std::string word; words >> word;) {
    if (word == interface) return true;
  }
  return false;
}

}  // namespace sonde::cli
