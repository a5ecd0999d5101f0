// Turns the numbers of a run into tables and findings.
#pragma once

#include <sonde/sonde.hpp>

#include "workload.h"

namespace sonde::workload {

inline constexpr const char *kOrigin = "workload";

// Rows come in the same order for the same records: by what a table is about, ties by name and number.
void publish_tables(const Workload &workload, const Host &host, sonde_session_t *session);
void publish_findings(const Workload &workload, const Host &host, sonde_session_t *session);

// Writes the pictures that options name; a file that cannot be written is logged as an error.
void write_pictures(const Workload &workload, const Host &host);

}  // namespace sonde::workload
