#include "loader/install.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sonde/plugins.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/error.h"
#include "core/services.h"
#include "loader/crash.h"
#include "loader/registry.h"

namespace sonde::loader {

namespace {

sonde_status null_argument(const char *function) {
  return fail(SONDE_E_INVALID, fmt::format("plugins.{}: an argument is NULL", function));
}

template <typename Value, typename Out>
sonde_status give(Result<Value> result, Out *out) {
  if (!result) return fail(result.error());
  *out = *result;
  return SONDE_OK;
}

sonde_status give(const Result<void> &result) { return result ? SONDE_OK : fail(result.error()); }

sonde_status add_path(const char *path) {
  return at_boundary([&] {
    if (path == nullptr) return null_argument("add_path");
    return give(Registry::instance().add_path(path));
  });
}

sonde_status count(uint64_t *out) {
  return at_boundary([&] {
    if (out == nullptr) return null_argument("count");
    *out = Registry::instance().count();
    return SONDE_OK;
  });
}

sonde_status at(uint64_t index, sonde_plugin_info_t *out) {
  return at_boundary([&] {
    if (out == nullptr) return null_argument("at");
    return give(Registry::instance().at(index), out);
  });
}

// Texts of exports live as long as the process, like all of a manifest.
const char *kept(const std::string &text) {
  static std::mutex *const mutex = new std::mutex;
  static auto *const texts = new std::set<std::string>;
  const std::lock_guard lock(*mutex);
  return texts->insert(text).first->c_str();
}

sonde_status export_at(const char *id, uint64_t index, const char **name, const char **signature, const char **help) {
  return at_boundary([&] {
    if (id == nullptr || name == nullptr || signature == nullptr || help == nullptr) return null_argument("export_at");
    Result<ManifestExport> found = Registry::instance().export_at(id, index);
    if (!found) return fail(found.error());
    *name = kept(found->name);
    *signature = kept(found->signature);
    *help = kept(found->help);
    return SONDE_OK;
  });
}

sonde_status option_at(const char *id, uint64_t index, sonde_option_t *out) {
  return at_boundary([&] {
    if (id == nullptr || out == nullptr) return null_argument("option_at");
    return give(Registry::instance().option_at(id, index), out);
  });
}

sonde_status load(const char *id, const sonde_plugin_entry_t **out) {
  return at_boundary([&] {
    if (id == nullptr || out == nullptr) return null_argument("load");
    *out = nullptr;
    return give(Registry::instance().load(id), out);
  });
}

sonde_status add_static(const sonde_plugin_entry_t *entry) {
  return at_boundary([&] { return give(Registry::instance().add_static(entry)); });
}

sonde_status find_interface(const char *id, const char *name, uint32_t min_size, const void **out) {
  return at_boundary([&] {
    if (name == nullptr || out == nullptr) return null_argument("interface");
    *out = nullptr;
    return give(Registry::instance().find_interface(id, name, min_size), out);
  });
}

sonde_status function(const char *id, const char *name, sonde_export_t *out) {
  return at_boundary([&] {
    if (id == nullptr || name == nullptr || out == nullptr) return null_argument("function");
    return give(Registry::instance().function(id, name), out);
  });
}

sonde_status write_manifest(const char *module, const char *path) {
  return at_boundary([&] {
    if (module == nullptr || path == nullptr) return null_argument("write_manifest");
    Result<std::string> text = Registry::instance().manifest_of(module);
    if (!text) return fail(text.error());
    if (std::strcmp(path, "-") == 0) {
      const bool written =
          std::fwrite(text->data(), 1, text->size(), stdout) == text->size() && std::fflush(stdout) == 0;
      return written ? SONDE_OK : fail(SONDE_E_IO, fmt::format("standard output: {}", std::strerror(errno)));
    }
    // Beside its place first, so that a reader never sees half a manifest.
    const std::string partial = fmt::format("{}.{}", path, ::getpid());
    std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(partial.c_str(), "we"), &std::fclose);
    const bool written = file != nullptr && std::fwrite(text->data(), 1, text->size(), file.get()) == text->size() &&
                         std::fclose(file.release()) == 0 && std::rename(partial.c_str(), path) == 0;
    if (written) return SONDE_OK;
    const int error = errno;
    std::remove(partial.c_str());
    return fail(SONDE_E_IO, fmt::format("{}: cannot write: {}", path, std::strerror(error)));
  });
}

constexpr sonde_plugins_service_t kService = {
    .struct_size = sizeof(sonde_plugins_service_t),
    .reserved = 0,
    .add_path = add_path,
    .count = count,
    .at = at,
    .export_at = export_at,
    .option_at = option_at,
    .load = load,
    .add_static = add_static,
    .interface = find_interface,
    .function = function,
    .write_manifest = write_manifest,
};

constexpr sonde_crash_service_t kCrashService = {sizeof(sonde_crash_service_t), 0, install_crash_handler};

}  // namespace

void install() {
  // A fork takes the lock so that the child finds the lists whole.
  static const int once =
      (pthread_atfork([] { Registry::instance().mutex().lock(); }, [] { Registry::instance().mutex().unlock(); },
                      [] { Registry::instance().mutex().unlock(); }),
       add_service(SONDE_PLUGINS_SERVICE, &kService), add_service(SONDE_CRASH_SERVICE, &kCrashService), 0);
  static_cast<void>(once);
}

}  // namespace sonde::loader
