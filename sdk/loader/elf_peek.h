// What an ELF file says about a plugin before anything of it is mapped or run.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"

namespace sonde::loader {

// The first fields of sonde_plugin_entry_t as they lie in the file. Pointers need relocation, these do not.
struct PeekedEntry {
  bool found = false;  // false: the file has no section headers to look in; loading has to tell
  uint32_t struct_size = 0;
  uint16_t abi_major = 0;
  uint16_t abi_minor_required = 0;
};

// SONDE_E_IO: cannot be read. SONDE_E_CORRUPT: not a shared object of this machine, or cut off.
// SONDE_E_NOT_FOUND: it does not define sonde_plugin_entry.
Result<PeekedEntry> peek_entry(const std::string &path);

}  // namespace sonde::loader
