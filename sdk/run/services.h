// The public services that a run is made of.
#pragma once

#include <fmt/format.h>
#include <sonde/analysis.h>
#include <sonde/capture.h>
#include <sonde/config.h>
#include <sonde/plugins.h>
#include <sonde/port.h>
#include <sonde/report.h>
#include <sonde/result.h>
#include <sonde/session.h>
#include <sonde/store.h>

#include <memory>
#include <string>

#include "core/error.h"
#include "core/services.h"

namespace sonde::run {

struct Services {
  const sonde_session_service_t *session = nullptr;
  const sonde_capture_service_t *capture = nullptr;
  const sonde_config_service_t *config = nullptr;
  const sonde_plugins_service_t *plugins = nullptr;
  // May be absent in a small build; using one then is an error.
  const sonde_store_service_t *store = nullptr;
  const sonde_result_service_t *result = nullptr;
  const sonde_report_service_t *report = nullptr;
};

// All of them; SONDE_E_NOT_FOUND names one that must exist and does not. [any]
Result<const Services *> services();

// This thread's error text after a failed call, or its number where there is none.
inline std::string error_text(sonde_status status) {
  const std::string text = last_error();
  return text.empty() ? fmt::format("status {}", status) : text;
}

struct ConfigDeleter {
  void operator()(sonde_config_t *config) const;
};
using OwnedConfig = std::unique_ptr<sonde_config_t, ConfigDeleter>;

}  // namespace sonde::run
