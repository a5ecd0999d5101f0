// Plugins as users name them: by id, or by the path of a module.
#pragma once

#include <sonde/sonde.hpp>

#include <string>
#include <vector>

namespace sonde::cli {

// Every plugin that the search finds.
std::vector<sonde_plugin_info_t> all_plugins(const Host &host);

// The plugin of that id; throws CommandError with what there is.
sonde_plugin_info_t find_plugin(const Host &host, const std::string &id);

// The id behind "workload" or "./mine.so"; a path is added to the search.
std::string plugin_id(const Host &host, const std::string &name);

// True when a plugin offers the interface ("sonde.analysis/1").
bool offers(const sonde_plugin_info_t &plugin, const std::string &interface);

}  // namespace sonde::cli
