// Entry of the plugin `host`: its exports and the interface sonde.port/1.
#include <sonde/config.h>
#include <sonde/plugin.h>
#include <sonde/port.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>

#include "emit.h"

namespace sonde::host_port {

Services &services() {
  static Services instance;
  return instance;
}

namespace {

const sonde_config_service_t *config_service = nullptr;

struct Instance {
  sonde_session_t *session = nullptr;
  bool notes = false;
};

constexpr sonde_option_t kOptions[] = {
    {"notes", "false", "note how many threads the process had when the capture began", "", "", SONDE_OPTION_BOOL, 0},
};

sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **instance) {
  auto *const made = new (std::nothrow) Instance;
  if (made == nullptr) return services().host->set_error(SONDE_E_FULL, "host: out of memory");
  made->session = session;
  uint32_t notes = 0;
  if (options != nullptr && config_service->get_bool(options, "notes", &notes) == SONDE_OK) made->notes = notes != 0;
  *instance = made;
  return SONDE_OK;
}

sonde_status start(void *pointer) {
  const auto &instance = *static_cast<const Instance *>(pointer);
  if (!instance.notes) return SONDE_OK;
  std::error_code error;
  uint64_t threads = 0;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end;
       task.increment(error)) {
    ++threads;
  }
  char text[80];
  std::snprintf(text, sizeof text, "capture began with %llu threads", static_cast<unsigned long long>(threads));
  return services().capture->note(instance.session, 0, "host", text);
}

sonde_status stop(void *) { return SONDE_OK; }
void destroy(void *instance) { delete static_cast<Instance *>(instance); }

// What embeds Sonde emits by itself, so demand and flush have nothing to do, and no foreign runtime enters here.
constexpr sonde_port_t kPort = {sizeof(sonde_port_t), 0, create, start, nullptr, nullptr, stop, destroy, nullptr};

template <typename Service>
sonde_status fetch(const sonde_host_t *host, const char *id, uint32_t need, const Service *&out) {
  const void *table = nullptr;
  const sonde_status status = host->get_service(id, need, &table);
  out = static_cast<const Service *>(table);
  return status;
}

sonde_status init(const sonde_host_t *host) {
  Services &own = services();
  own.host = host;
  sonde_status status = fetch(host, SONDE_SESSION_SERVICE, SONDE_NEED(sonde_session_service_t, current), own.session);
  if (status == SONDE_OK) {
    status = fetch(host, SONDE_CAPTURE_SERVICE, SONDE_NEED(sonde_capture_service_t, note), own.capture);
  }
  if (status == SONDE_OK) {
    status = fetch(host, SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, get_bool), config_service);
  }
  return status;
}

const void *get_interface(const char *id) { return std::strcmp(id, SONDE_PORT_INTERFACE) == 0 ? &kPort : nullptr; }

}  // namespace

}  // namespace sonde::host_port

SONDE_DEFINE_PLUGIN = {
    .struct_size = sizeof(sonde_plugin_entry_t),
    .abi_major = SONDE_ABI_MAJOR,
    .abi_minor_required = 0,
    .id = "host",
    .version = "0.1.0",
    .summary = "What a program, a script or the command line emits through the SDK",
    .license = "Apache-2.0",
    .exports = sonde::host_port::kExports,
    .export_count = sonde::host_port::kExportCount,
    .export_stride = sizeof(sonde_export_t),
    .options = sonde::host_port::kOptions,
    .option_count = sizeof(sonde::host_port::kOptions) / sizeof(sonde::host_port::kOptions[0]),
    .option_stride = sizeof(sonde_option_t),
    .init = sonde::host_port::init,
    .shutdown = nullptr,
    .get_interface = sonde::host_port::get_interface,
};
