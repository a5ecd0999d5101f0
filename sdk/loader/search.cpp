#include "loader/search.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace sonde::loader {

namespace {

// An address inside the object that holds this code: libsonde, or a test's executable.
const char kAnchor = 0;

std::string environment(const char *name) {
  const char *const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::vector<SearchPlace> search_places(const SearchInputs &inputs) {
  std::vector<SearchPlace> places;
  for (const std::string &path : inputs.added) places.push_back({path, "added"});
  if (!inputs.raised) {
    std::string_view rest = inputs.plugin_path;
    while (!rest.empty()) {
      const size_t colon = rest.find(':');
      const std::string_view folder = rest.substr(0, colon);
      if (folder.starts_with('/')) places.push_back({std::string(folder), "SONDE_PLUGIN_PATH"});
      if (colon == std::string_view::npos) break;
      rest.remove_prefix(colon + 1);
    }
    if (inputs.data_home.starts_with('/')) {
      places.push_back({inputs.data_home + "/sonde/plugins", "user"});
    } else if (inputs.home.starts_with('/')) {
      places.push_back({inputs.home + "/.local/share/sonde/plugins", "user"});
    }
  }
  if (!inputs.library_folder.empty()) {
    places.push_back({inputs.library_folder + "/sonde/plugins", "library"});
    places.push_back({inputs.library_folder + "/sonde/ports", "library"});
  }
  return places;
}

SearchInputs process_inputs() {
  SearchInputs inputs;
  inputs.raised = has_raised_privileges();
  if (!inputs.raised) {
    inputs.plugin_path = environment("SONDE_PLUGIN_PATH");
    inputs.data_home = environment("XDG_DATA_HOME");
    inputs.home = environment("HOME");
  }
  Dl_info info{};
  if (::dladdr(&kAnchor, &info) != 0 && info.dli_fname != nullptr) {
    std::error_code error;
    const std::filesystem::path library = std::filesystem::canonical(info.dli_fname, error);
    if (!error) inputs.library_folder = library.parent_path().string();
  }
  return inputs;
}

bool has_raised_privileges() {
  return ::getauxval(AT_SECURE) != 0 || ::getuid() != ::geteuid() || ::getgid() != ::getegid();
}

}  // namespace sonde::loader
