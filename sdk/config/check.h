// A tree against the options that a plugin declares.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/node.h"
#include "core/error.h"

namespace sonde::config {

// Options as they stand in a plugin's table, which may have a longer stride than this host knows.
struct Options {
  const sonde_option_t *first = nullptr;
  uint32_t count = 0;
  uint32_t stride = sizeof(sonde_option_t);

  const sonde_option_t &operator[](uint32_t index) const {
    return *reinterpret_cast<const sonde_option_t *>(reinterpret_cast<const char *>(first) + size_t{stride} * index);
  }
};

// Faults of the declaration itself, one a line; "" when there are none. `origin` names the plugin.
std::string check_declaration(const std::string &origin, const Options &options);

// `tree` (may be null) with every option present, typed values in their simplest form (times in ns, 64Ki as 65536,
// 3% as 0.03), nested by the dots of the names and in the order of the declaration. SONDE_E_INVALID lists all faults.
Result<std::unique_ptr<Document>> check(const Node *tree, const std::string &origin, const Options &options);

// The candidate nearest to `word`, "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string> &candidates);

}  // namespace sonde::config
