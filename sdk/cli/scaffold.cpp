#include "cli/scaffold.h"

#include <string_view>

#include "cli/scaffold_files.h"

namespace sonde::cli {
namespace {

std::string with_name(std::string text, std::string_view name) {
  constexpr std::string_view kPlace = "@NAME@";
  for (size_t at = text.find(kPlace); at != std::string::npos; at = text.find(kPlace, at + name.size())) {
    text.replace(at, kPlace.size(), name);
  }
  return text;
}

}  // namespace

std::vector<ScaffoldFile> scaffold(const std::string &language, const std::string &name) {
  std::vector<ScaffoldFile> files;
  const std::string prefix = language + "/";
  for (const EmbeddedFile &file : embedded_files()) {
    if (!file.path.starts_with(prefix)) continue;
    ScaffoldFile made;
    made.path = with_name(file.path.substr(prefix.size()), name);
    made.text = with_name(file.text, name);
    made.is_program = made.text.starts_with("#!");
    files.push_back(std::move(made));
  }
  return files;
}

}  // namespace sonde::cli
