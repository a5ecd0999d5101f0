#include "cli/yaml_text.h"

#include <nlohmann/json.hpp>

namespace sonde::cli {

// A JSON string is a double-quoted YAML scalar (YAML 1.2, section 1.3).
std::string yaml_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string indented(std::string_view text, size_t spaces) {
  std::string moved;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end != 0) moved.append(spaces, ' ').append(text.substr(0, end));
    moved += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return moved;
}

}  // namespace sonde::cli
