// The files of a new plugin.
#pragma once

#include <string>
#include <vector>

namespace sonde::cli {

struct ScaffoldFile {
  std::string path;  // in the new directory
  std::string text;
  bool is_program = false;
};

// `language` is c, cpp or lua; `name` a valid plugin id. The texts lie in sdk/cli/scaffold/<language>/, where @NAME@
// stands for the id.
std::vector<ScaffoldFile> scaffold(const std::string &language, const std::string &name);

}  // namespace sonde::cli
