// Turns what was found into tables and findings.
#pragma once

#include <sonde/sonde.hpp>

#include "lint.h"

namespace sonde::layout_lint {

inline constexpr const char *kOrigin = "layout";

// Rows come in the order of files and operations: the same files give the same bytes.
void publish_tables(const Lint &lint, const Host &host, sonde_session_t *session);
void publish_findings(const Lint &lint, const Host &host, sonde_session_t *session);

}  // namespace sonde::layout_lint
