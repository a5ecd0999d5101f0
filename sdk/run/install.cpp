#include "run/install.h"

#include <sonde/run.h>

#include <mutex>
#include <unordered_map>

#include "run/process_run.h"
#include "run/run.h"
#include "run/services.h"

namespace sonde::run {

namespace {

template <typename Service>
const Service *find(const char *id, uint32_t need) {
  const void *table = nullptr;
  return get_service(id, need, &table) == SONDE_OK ? static_cast<const Service *>(table) : nullptr;
}

// Runs that are open, by handle.
struct Registry {
  std::mutex mutex;
  std::unordered_map<sonde_run_t *, std::unique_ptr<Run>> runs;
};

Registry &registry() {
  static Registry *const instance = new Registry;
  return *instance;
}

Run *find_run(sonde_run_t *handle) {
  Registry &all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.runs.find(handle);
  return found == all.runs.end() ? nullptr : found->second.get();
}

template <typename Body>
sonde_status with_run(sonde_run_t *handle, Body &&body) noexcept {
  return at_boundary([&]() -> sonde_status {
    Run *const run = find_run(handle);
    if (run == nullptr) return fail(SONDE_E_INVALID, "the run is NULL or was closed");
    return body(*run);
  });
}

sonde_status status_of(const Result<void> &result) { return result ? SONDE_OK : fail(result.error()); }

sonde_status open(const sonde_config_t *config, sonde_run_t **out) {
  return at_boundary([&]() -> sonde_status {
    if (out == nullptr) return fail(SONDE_E_INVALID, "run.open: out is NULL");
    *out = nullptr;
    const Result<const Services *> all = services();
    if (!all) return fail(all.error());
    Result<Settings> settings = read_settings(**all, config);
    if (!settings) return fail(settings.error());
    Result<std::unique_ptr<Run>> run = Run::open(**all, std::move(*settings));
    if (!run) return fail(run.error());
    auto *const handle = reinterpret_cast<sonde_run_t *>(run->get());
    const std::lock_guard lock(registry().mutex);
    registry().runs.emplace(handle, std::move(*run));
    *out = handle;
    return SONDE_OK;
  });
}

sonde_status start(sonde_run_t *handle) {
  return with_run(handle, [](Run &run) { return status_of(run.start()); });
}

sonde_status finish(sonde_run_t *handle) {
  return with_run(handle, [](Run &run) { return status_of(run.finish()); });
}

sonde_status replay(sonde_run_t *handle, const char *path,
                    sonde_status (*progress)(void *user, uint64_t done, uint64_t total), void *user) {
  return with_run(handle, [&](Run &run) -> sonde_status {
    if (path == nullptr) return fail(SONDE_E_INVALID, "run.replay: path is NULL");
    return status_of(run.replay(path, progress, user));
  });
}

sonde_status session(sonde_run_t *handle, sonde_session_t **out) {
  return with_run(handle, [&](Run &run) -> sonde_status {
    if (out == nullptr) return fail(SONDE_E_INVALID, "run.session: out is NULL");
    *out = run.session();
    return SONDE_OK;
  });
}

sonde_status close(sonde_run_t *handle) {
  return at_boundary([&]() -> sonde_status {
    std::unique_ptr<Run> ending;  // ended outside the lock
    {
      Registry &all = registry();
      const std::lock_guard lock(all.mutex);
      const auto found = all.runs.find(handle);
      if (found == all.runs.end()) return fail(SONDE_E_INVALID, "the run is NULL or was closed");
      ending = std::move(found->second);
      all.runs.erase(found);
    }
    return SONDE_OK;
  });
}

constexpr sonde_run_service_t kService = {
    .struct_size = sizeof(sonde_run_service_t),
    .reserved = 0,
    .open = open,
    .start = start,
    .finish = finish,
    .replay = replay,
    .session = session,
    .close = close,
    .inject = inject,
};

}  // namespace

void ConfigDeleter::operator()(sonde_config_t *config) const { (*services())->config->release(config); }

Result<const Services *> services() {
  static const Services all = [] {
    Services found;
    found.session =
        find<sonde_session_service_t>(SONDE_SESSION_SERVICE, SONDE_NEED(sonde_session_service_t, set_current));
    found.capture = find<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE, SONDE_NEED(sonde_capture_service_t, leave));
    found.config = find<sonde_config_service_t>(SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, print));
    found.plugins =
        find<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE, SONDE_NEED(sonde_plugins_service_t, interface));
    found.store = find<sonde_store_service_t>(SONDE_STORE_SERVICE, SONDE_NEED(sonde_store_service_t, replay));
    found.result = find<sonde_result_service_t>(SONDE_RESULT_SERVICE, SONDE_NEED(sonde_result_service_t, add_finding));
    found.report = find<sonde_report_service_t>(SONDE_REPORT_SERVICE, SONDE_NEED(sonde_report_service_t, render));
    return found;
  }();
  if (all.session == nullptr || all.capture == nullptr || all.config == nullptr || all.plugins == nullptr) {
    return Error{SONDE_E_NOT_FOUND, "a run needs sonde.session/1, capture/1, config/1 and plugins/1"};
  }
  return &all;
}

void install() {
  static const int once = (install_process_run(), add_service(SONDE_RUN_SERVICE, &kService), 0);
  static_cast<void>(once);
}

}  // namespace sonde::run
