// A plugin's entry table, checked and brought into this host's shape.
#pragma once

#include <sonde/plugin.h>

#include <memory>
#include <string>
#include <vector>

#include "core/error.h"

namespace sonde::loader {

// A copy of an entry with every member of this host's header: what a shorter table lacks is NULL or 0, and the
// exports and options are packed at this host's stride. Strings and functions still belong to the module.
struct Entry {
  sonde_plugin_entry_t table{};
  std::vector<sonde_export_t> exports;
  std::vector<sonde_option_t> options;
};

// SONDE_E_INCOMPATIBLE or SONDE_E_TOO_OLD when the versions do not fit, with both numbers; SONDE_E_CORRUPT when
// struct_size cannot be that of a table.
Result<void> check_versions(const std::string &origin, uint32_t struct_size, uint16_t abi_major,
                            uint16_t abi_minor_required);

// Checks every field without calling anything of the plugin. `origin` names the module in messages. `in_module`:
// the table lies in a loaded object, and so must all that it points to. SONDE_E_CORRUPT names the field.
Result<std::unique_ptr<Entry>> check_entry(const std::string &origin, const sonde_plugin_entry_t *entry,
                                           bool in_module);

// Lower case letters, digits, '_' and '.', beginning with a letter.
bool is_plugin_id(std::string_view id);

}  // namespace sonde::loader
