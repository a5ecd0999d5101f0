// Signature strings (export.h) for people.
#pragma once

#include <sonde/sonde.hpp>

#include <string>

namespace sonde::cli {

// "e(hSqs&Q)" -> "(session, i64, text) -> u64"; the string itself when it cannot be read.
std::string readable_signature(const Host &host, const char *signature);

}  // namespace sonde::cli
