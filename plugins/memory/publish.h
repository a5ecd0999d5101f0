// Turns what is known into tables, findings and files.
#pragma once

#include <sonde/sonde.hpp>

#include <string>
#include <vector>

#include "memory.h"

namespace sonde::memory {

inline constexpr const char *kOrigin = "memory";

// Rows come in the same order for the same records.
void publish_tables(const Memory &memory, const Host &host, sonde_session_t *session);
// `file_errors`: of the files that options asked for.
void publish_findings(const Memory &memory, const Host &host, sonde_session_t *session,
                      const std::vector<std::string> &file_errors);

}  // namespace sonde::memory
