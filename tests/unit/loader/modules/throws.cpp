// An analysis whose functions fail in every way a plugin can.
#include <sonde/analysis.h>
#include <sonde/plugin.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace {

int destroyed = 0;
volatile std::uintptr_t nowhere = 16;  // no page is there

sonde_status create(sonde_session_t *, const sonde_config_t *, void **instance) {
  if (const char *const wish = std::getenv("LOADER_TEST_CREATE")) {
    if (std::strcmp(wish, "write") == 0) *reinterpret_cast<volatile int *>(nowhere) = 1;
    if (std::strcmp(wish, "library") == 0) std::memset(reinterpret_cast<void *>(nowhere), 1, std::strlen(wish) * 100);
    if (std::strcmp(wish, "abort") == 0) std::abort();
  }
  *instance = &destroyed;
  throw std::runtime_error("no such thing");
}
sonde_status start(void *) { throw 42; }
sonde_status finish(void *) { return SONDE_E_RANGE; }
void destroy(void *) { ++destroyed; }
const sonde_analysis_t analysis = {sizeof(sonde_analysis_t), 0, create, start, finish, destroy};

sonde_status destroyed_count(int64_t *out) {
  *out = destroyed;
  return SONDE_OK;
}
const sonde_export_t exports[] = {SONDE_EXPORT(destroyed_count, status, (out_i64), "calls of destroy")};

const void *get_interface(const char *id) {
  return std::strcmp(id, SONDE_ANALYSIS_INTERFACE) == 0 ? &analysis : nullptr;
}

}  // namespace

SONDE_DEFINE_PLUGIN = {
    sizeof(sonde_plugin_entry_t),
    SONDE_ABI_MAJOR,
    0,
    MODULE_NAME,
    "1",
    "",
    "",
    exports,
    1,
    sizeof(sonde_export_t),
    nullptr,
    0,
    0,
    nullptr,
    nullptr,
    get_interface,
};
