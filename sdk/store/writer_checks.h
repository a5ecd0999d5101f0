// What is checked before a capture file is made.
#pragma once

#include <sonde/store.h>

#include <string>

#include "core/error.h"

namespace sonde::store {

// SONDE_E_INVALID, SONDE_E_RANGE.
Result<void> check_writer_options(const sonde_writer_options_t &options);

// That a file can be made at `path`. SONDE_E_INVALID, SONDE_E_EXISTS, SONDE_E_IO.
Result<void> check_new_file(const std::string &path);

}  // namespace sonde::store
