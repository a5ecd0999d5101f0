// The plugin `lua`: an analysis whose instances are scripts.
#include <sonde/analysis.h>
#include <sonde/plugin.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <new>
#include <string>

#include "script.h"

namespace sonde::lua {
namespace {

const sonde_host_t *host = nullptr;

struct Services {
  const sonde_config_service_t *config = nullptr;
  const sonde_plugins_service_t *plugins = nullptr;
  const sonde_reflect_service_t *reflect = nullptr;
  const sonde_delivery_service_t *delivery = nullptr;
  Context context;
};

Services services;

template <typename Service>
sonde_status fetch_service(const char *id, uint32_t needed, const Service *&out) {
  const void *table = nullptr;
  const sonde_status status = host->get_service(id, needed, &table);
  out = static_cast<const Service *>(table);
  return status;
}

sonde_status init(const sonde_host_t *given) {
  host = given;
  sonde_status status = fetch_service(SONDE_CONFIG_SERVICE, SONDE_NEED(sonde_config_service_t, where), services.config);
  if (status >= 0) {
    status = fetch_service(SONDE_PLUGINS_SERVICE, SONDE_NEED(sonde_plugins_service_t, function), services.plugins);
  }
  if (status >= 0) {
    status = fetch_service(SONDE_REFLECT_SERVICE, SONDE_NEED(sonde_reflect_service_t, call), services.reflect);
  }
  if (status >= 0) {
    status =
        fetch_service(SONDE_DELIVERY_SERVICE, SONDE_NEED(sonde_delivery_service_t, unsubscribe), services.delivery);
  }
  if (status < 0) return status;
  return fetch(services.context, host) ? SONDE_OK : SONDE_E_TOO_OLD;
}

// "dir/top_kernels.lua" -> "top_kernels": lower case letters, digits, '_' and '.', as ids of plugins are.
std::string name_of(const std::string &path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  if (name.size() > 4 && name.ends_with(".lua")) name.resize(name.size() - 4);
  for (char &letter : name) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    const bool allowed = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
    if (!allowed) letter = '_';
  }
  return name.empty() ? "script" : name;
}

std::string option_text(const sonde_config_t *options, const char *path) {
  const char *text = nullptr;
  return services.config->get_text(options, path, &text) >= 0 && text != nullptr ? text : "";
}

sonde_status read_settings(const sonde_config_t *options, Settings &settings) {
  const sonde_config_service_t &config = *services.config;
  settings.path = option_text(options, "path");
  settings.text = option_text(options, "text");
  settings.name = option_text(options, "name");
  int64_t memory = 0;
  sonde_status status = config.get_i64(options, "memory", &memory);
  if (status >= 0) status = config.get_time(options, "deadline", &settings.deadline_ns);
  if (status < 0) return status;
  settings.memory = static_cast<uint64_t>(memory);
  if (settings.deadline_ns <= 0) {
    return host->set_error(SONDE_E_INVALID, "lua: deadline must be positive");
  }
  if (settings.path.empty() == settings.text.empty()) {
    return host->set_error(SONDE_E_INVALID, "lua: give either path, the script's file, or text, the script itself");
  }
  if (!settings.path.empty()) {
    std::ifstream file(settings.path, std::ios::binary);
    settings.text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (!file.is_open() || file.bad()) {
      return host->set_error(SONDE_E_IO, ("lua: cannot read the script " + settings.path).c_str());
    }
    // A first line for the shell keeps its place, so that line numbers stay right.
    if (settings.text.starts_with("#")) settings.text.insert(0, "--");
  }
  if (settings.name.empty()) settings.name = settings.path.empty() ? "script" : name_of(settings.path);
  uint64_t grants = 0;
  if (config.count(options, "grant", &grants) < 0) grants = 0;
  for (uint64_t index = 0; index < grants; ++index) {
    settings.grants.push_back(option_text(options, ("grant." + std::to_string(index)).c_str()));
    const sonde_plugin_entry_t *entry = nullptr;
    status = services.plugins->load(settings.grants.back().c_str(), &entry);
    if (status < 0) return status;
  }
  if (config.child(options, "options", &settings.options) < 0) settings.options = nullptr;
  return SONDE_OK;
}

template <typename Body>
sonde_status guarded(Body &&body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return host->set_error(SONDE_E_FULL, "lua: out of memory");
  } catch (const std::exception &exception) {
    return host->set_error(SONDE_E_INTERNAL, exception.what());
  }
}

sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **instance) {
  return guarded([&]() -> sonde_status {
    *instance = nullptr;
    Settings settings;
    const sonde_status status = read_settings(options, settings);
    if (status < 0) return status;
    Context context = services.context;
    context.session = session;
    *instance = new Script(std::move(settings), context, services.plugins, services.reflect, services.delivery);
    return SONDE_OK;
  });
}

sonde_status start(void *instance) {
  return guarded([&] { return static_cast<Script *>(instance)->start(); });
}

sonde_status finish(void *instance) {
  return guarded([&] {
    static_cast<Script *>(instance)->finish();
    return SONDE_OK;
  });
}

void destroy(void *instance) { delete static_cast<Script *>(instance); }

constexpr sonde_analysis_t kAnalysis = {sizeof(sonde_analysis_t), 0, create, start, finish, destroy};

const void *get_interface(const char *id) {
  return std::string_view(id) == SONDE_ANALYSIS_INTERFACE ? &kAnalysis : nullptr;
}

const sonde_option_t kOptions[] = {
    {"path", "\"\"", "file of the script", "", "", SONDE_OPTION_TEXT, 0},
    {"text", "\"\"", "the script itself, instead of a file", "", "", SONDE_OPTION_TEXT, 0},
    {"name", "\"\"", "origin of its tables and findings; left out: the file's name", "", "", SONDE_OPTION_TEXT, 0},
    {"options", "{}", "what the script sees as sonde.options", "", "", SONDE_OPTION_TREE, 0},
    {"memory", "64Mi", "most memory that the script may hold", "bytes", "1048576..68719476736", SONDE_OPTION_I64, 0},
    {"deadline", "1s", "longest that one call into the script may take", "ns", "", SONDE_OPTION_TIME, 0},
    {"grant", "[]", "plugins whose functions the script may call", "", "", SONDE_OPTION_TEXTS, 0},
};

}  // namespace
}  // namespace sonde::lua

SONDE_DEFINE_PLUGIN = {
    sizeof(sonde_plugin_entry_t),
    SONDE_ABI_MAJOR,
    0,
    "lua",
    "0.1.0",
    "runs analyses written as Lua scripts",
    "Apache-2.0",
    nullptr,
    0,
    sizeof(sonde_export_t),
    sonde::lua::kOptions,
    static_cast<uint32_t>(std::size(sonde::lua::kOptions)),
    sizeof(sonde_option_t),
    sonde::lua::init,
    nullptr,
    sonde::lua::get_interface,
};
