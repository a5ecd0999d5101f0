#include "core/services.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/error.h"

namespace sonde {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, const void *, std::less<>> tables;
};

// Never destroyed: plugins may ask for services while the process ends.
Registry &registry() {
  static Registry *const instance = new Registry;
  return *instance;
}

uint32_t log_level() {
  static const uint32_t level = [] {
    const char *const wanted = std::getenv("SONDE_LOG");
    if (wanted == nullptr) return SONDE_LOG_WARNING;
    if (std::strcmp(wanted, "debug") == 0) return SONDE_LOG_DEBUG;
    if (std::strcmp(wanted, "info") == 0) return SONDE_LOG_INFO;
    if (std::strcmp(wanted, "error") == 0) return SONDE_LOG_ERROR;
    return SONDE_LOG_WARNING;
  }();
  return level;
}

void log_line(uint32_t level, const char *origin, const char *message) {
  if (level > log_level()) return;
  static constexpr const char *kNames[] = {"", "error", "warning", "info", "debug"};
  std::fprintf(stderr, "sonde: %s: %s: %s\n", level <= SONDE_LOG_DEBUG ? kNames[level] : "debug",
               origin == nullptr ? "?" : origin, message == nullptr ? "" : message);
}

sonde_status set_error(sonde_status status, const char *message) {
  return fail(status, message == nullptr ? "" : message);
}

const sonde_host_t kHost = {
    sizeof(sonde_host_t), SONDE_ABI_MAJOR, SONDE_ABI_MINOR, get_service, log_line, set_error, last_error};

}  // namespace

void add_service(const char *id, const void *table) {
  Registry &services = registry();
  const std::lock_guard lock(services.mutex);
  services.tables.emplace(id, table);
}

sonde_status get_service(const char *id, uint32_t min_size, const void **out) noexcept {
  if (out == nullptr) return fail(SONDE_E_INVALID, "get_service: out is NULL");
  *out = nullptr;
  if (id == nullptr) return fail(SONDE_E_INVALID, "get_service: id is NULL");
  return at_boundary([&]() -> sonde_status {
    Registry &services = registry();
    const std::lock_guard lock(services.mutex);
    const auto found = services.tables.find(std::string_view(id));
    if (found == services.tables.end()) {
      return fail(SONDE_E_NOT_FOUND, std::string("no service '") + id + "' in this host");
    }
    uint32_t size = 0;
    std::memcpy(&size, found->second, sizeof(size));
    if (size < min_size) {
      return fail(SONDE_E_TOO_OLD, std::string("service '") + id + "' has " + std::to_string(size) +
                                       " bytes here, the caller needs " + std::to_string(min_size) +
                                       ": this host is older than the plugin");
    }
    *out = found->second;
    return SONDE_OK;
  });
}

const sonde_host_t *host_table() noexcept { return &kHost; }

const void *required_service(const char *id) {
  const void *table = nullptr;
  if (get_service(id, 0, &table) != SONDE_OK) {
    std::fprintf(stderr, "sonde: fatal: service '%s' is not installed\n", id);
    std::abort();
  }
  return table;
}

}  // namespace sonde
