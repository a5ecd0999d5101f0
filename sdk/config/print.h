// A tree as YAML text that parses back into the same tree.
#pragma once

#include <string>

#include "config/node.h"

namespace sonde::config {

// Maps in block style, lists of scalars in one line. Ends with a newline.
std::string print(const Node &node);

// One scalar, quoted where plain text would read as something else.
std::string print_scalar(std::string_view text, bool quoted);

}  // namespace sonde::config
