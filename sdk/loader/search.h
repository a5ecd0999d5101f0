// Where plugins are looked for.
#pragma once

#include <string>
#include <vector>

namespace sonde::loader {

struct SearchInputs {
  std::vector<std::string> added;  // by add_path, the last one first
  std::string plugin_path;         // SONDE_PLUGIN_PATH: folders separated by ':'
  std::string data_home;           // XDG_DATA_HOME
  std::string home;                // HOME
  std::string library_folder;      // of libsonde
  bool raised = false;             // privileges: then nothing of the environment counts
};

// One place: a folder or a module, and what named it.
struct SearchPlace {
  std::string path;
  std::string source;  // "added", "SONDE_PLUGIN_PATH", "user", "library"
};

// Places in order of preference: added, SONDE_PLUGIN_PATH, $XDG_DATA_HOME/sonde/plugins (or ~/.local/share), then
// sonde/plugins and sonde/ports beside the library. Relative folders of the environment are left out.
std::vector<SearchPlace> search_places(const SearchInputs &inputs);

// Inputs of this process, without `added`. [any]
SearchInputs process_inputs();

// True when the process has more rights than the user who started it: set-user-id, set-group-id, capabilities.
bool has_raised_privileges();

}  // namespace sonde::loader
