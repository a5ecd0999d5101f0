// Emitting by name: the functions that the port exports.
#pragma once

#include <sonde/capture.h>
#include <sonde/export.h>
#include <sonde/host.h>
#include <sonde/session.h>

namespace sonde::host_port {

// What the port needs of the host; set once by init.
struct Services {
  const sonde_host_t *host = nullptr;
  const sonde_session_service_t *session = nullptr;
  const sonde_capture_service_t *capture = nullptr;
};
Services &services();

extern const sonde_export_t kExports[];
extern const uint32_t kExportCount;

}  // namespace sonde::host_port
