// The files below sdk/cli/scaffold/, as embed.cmake put them into the command.
#pragma once

#include <string>
#include <vector>

namespace sonde::cli {

struct EmbeddedFile {
  std::string path;  // "cpp/CMakeLists.txt"
  std::string text;
};

const std::vector<EmbeddedFile> &embedded_files();

}  // namespace sonde::cli
