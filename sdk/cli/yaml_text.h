// Writing pieces of YAML.
#pragma once

#include <string>
#include <string_view>

namespace sonde::cli {

// A scalar in double quotes, which every YAML reader takes as exactly this text.
std::string yaml_quoted(std::string_view text);

// `text` with every line that is not empty moved right by `spaces`.
std::string indented(std::string_view text, size_t spaces);

}  // namespace sonde::cli
