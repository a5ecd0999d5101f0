#include "loader/registry.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/services.h"
#include "loader/crash.h"
#include "loader/elf_peek.h"
#include "loader/mapped.h"

namespace sonde::loader {

namespace {

namespace fs = std::filesystem;

std::string canonical(const std::string &path) {
  std::error_code error;
  const fs::path full = fs::canonical(path, error);
  return error ? path : full.string();
}

void log_warning(const std::string &text) { host_table()->log(SONDE_LOG_WARNING, "plugins", text.c_str()); }

bool same_interface_texts(const Manifest &manifest, const Entry &entry) {
  if (manifest.version != entry.table.version || manifest.exports.size() != entry.exports.size() ||
      manifest.options.size() != entry.options.size()) {
    return false;
  }
  for (size_t index = 0; index < entry.exports.size(); ++index) {
    if (manifest.exports[index].name != entry.exports[index].name ||
        manifest.exports[index].signature != entry.exports[index].signature) {
      return false;
    }
  }
  return true;
}

}  // namespace

Registry &Registry::instance() {
  static Registry *const registry = new Registry;
  return *registry;
}

void Registry::set_inputs(SearchInputs inputs) {
  const std::lock_guard lock(mutex_);
  inputs_ = std::move(inputs);
  has_inputs_ = true;
  scanned_ = false;
}

Result<void> Registry::add_path(const std::string &path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return Error{SONDE_E_NOT_FOUND, fmt::format("plugin path '{}' does not exist", path)};
  }
  const std::lock_guard lock(mutex_);
  if (!has_inputs_) {
    inputs_ = process_inputs();
    has_inputs_ = true;
  }
  const std::string full = canonical(path);
  std::erase(inputs_.added, full);
  inputs_.added.insert(inputs_.added.begin(), full);
  scanned_ = false;
  return {};
}

// The functions below run with the mutex held.

void Registry::scan() {
  if (scanned_) return;
  if (!has_inputs_) {
    inputs_ = process_inputs();
    has_inputs_ = true;
  }
  std::erase_if(listed_, [](const Listed &item) { return !item.path.empty(); });
  for (const SearchPlace &place : search_places(inputs_)) {
    std::error_code error;
    if (fs::is_directory(place.path, error)) {
      scan_folder(place.path);
    } else if (fs::is_regular_file(place.path, error)) {
      scan_module(place.path);
    }
  }
  scanned_ = true;
}

void Registry::scan_folder(const std::string &folder) {
  std::vector<std::string> modules;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() == ".so" && entry->is_regular_file(ignored))
      modules.push_back(entry->path().string());
  }
  std::sort(modules.begin(), modules.end());
  for (const std::string &module : modules) scan_module(module);
}

void Registry::scan_module(const std::string &path) {
  Listed item;
  item.path = path;
  item.id = fs::path(path).stem().string();
  const std::string sidecar = manifest_path(path);
  std::error_code error;
  if (!fs::exists(sidecar, error)) {
    item.problem = fmt::format("no manifest {}; `sonde manifest {}` writes it", sidecar, path);
  } else if (Result<Manifest> manifest = read_manifest(sidecar); !manifest) {
    item.problem = manifest.error().text;
  } else {
    item.manifest = std::move(*manifest);
    item.id = item.manifest.id;
    if (Result<void> versions = check_versions(path, sizeof(sonde_plugin_entry_t), item.manifest.abi_major,
                                               item.manifest.abi_minor_required);
        !versions) {
      item.problem = versions.error().text;
    }
  }
  if (find_listed(item.id) == nullptr) listed_.push_back(std::move(item));
}

const Listed *Registry::find_listed(const std::string &id) {
  const auto found = std::find_if(listed_.begin(), listed_.end(), [&](const Listed &item) { return item.id == id; });
  return found == listed_.end() ? nullptr : &*found;
}

std::shared_ptr<Registry::Loaded> Registry::find_loaded(const std::string &id) const {
  for (const auto &item : loaded_) {
    if (item->id == id) return item;
  }
  return nullptr;
}

const Manifest *Registry::find_manifest(const std::string &id) {
  // What is loaded knows better than a sidecar, which may be missing.
  if (const auto loaded = find_loaded(id); loaded != nullptr && loaded->state == Loaded::State::kReady) {
    return &loaded->manifest;
  }
  const Listed *const item = find_listed(id);
  return item == nullptr ? nullptr : &item->manifest;
}

std::vector<std::shared_ptr<Registry::Loaded>> Registry::ready() const {
  std::vector<std::shared_ptr<Loaded>> items;
  for (const auto &item : loaded_) {
    if (item->state == Loaded::State::kReady) items.push_back(item);
  }
  return items;
}

std::string Registry::where_it_looked() {
  std::string text;
  for (const SearchPlace &place : search_places(inputs_)) {
    std::error_code error;
    text += fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", place.path, place.source,
                        fs::exists(place.path, error) ? "" : ", does not exist");
  }
  if (inputs_.raised) text += "; the environment is ignored because privileges are raised";
  return text;
}

std::string Registry::listed_ids() {
  std::string text;
  for (const Listed &item : listed_) text += (text.empty() ? "" : ", ") + item.id;
  return text.empty() ? "none" : text;
}

const char *Registry::keep(std::string_view text) {
  const auto found = kept_.find(text);
  return (found != kept_.end() ? *found : *kept_.emplace(text).first).c_str();
}

// From here on the functions take the mutex themselves.

uint64_t Registry::count() {
  const std::lock_guard lock(mutex_);
  scan();
  return listed_.size();
}

Result<sonde_plugin_info_t> Registry::at(uint64_t index) {
  const std::lock_guard lock(mutex_);
  scan();
  if (index >= listed_.size()) {
    return Error{SONDE_E_RANGE, fmt::format("there are {} plugins, not {}", listed_.size(), index + 1)};
  }
  const Listed &item = listed_[index];
  const Manifest &manifest = *find_manifest(item.id);
  std::string interfaces;
  for (const std::string &name : manifest.interfaces) interfaces += (interfaces.empty() ? "" : " ") + name;
  const auto loaded = find_loaded(item.id);
  sonde_plugin_info_t info{};
  info.struct_size = sizeof(info);
  info.loaded = loaded != nullptr && loaded->state == Loaded::State::kReady ? 1 : 0;
  info.id = keep(item.id);
  info.version = keep(manifest.version);
  info.summary = keep(manifest.summary);
  info.path = keep(item.path);
  info.interfaces = keep(interfaces);
  info.problem = info.loaded == 1 ? "" : keep(item.problem);
  if (loaded != nullptr && loaded->guard != nullptr && loaded->guard->statistics().quarantined) {
    info.problem = keep("in quarantine after repeated errors");
  }
  info.export_count = static_cast<uint32_t>(manifest.exports.size());
  info.option_count = static_cast<uint32_t>(manifest.options.size());
  return info;
}

Result<ManifestExport> Registry::export_at(const std::string &id, uint64_t index) {
  const std::lock_guard lock(mutex_);
  scan();
  const Manifest *const manifest = find_manifest(id);
  if (manifest == nullptr) {
    return Error{SONDE_E_NOT_FOUND, fmt::format("no plugin '{}'; there are {}", id, listed_ids())};
  }
  if (index >= manifest->exports.size()) {
    return Error{SONDE_E_RANGE, fmt::format("plugin {} has {} exports", id, manifest->exports.size())};
  }
  return manifest->exports[index];
}

Result<sonde_option_t> Registry::option_at(const std::string &id, uint64_t index) {
  const std::lock_guard lock(mutex_);
  scan();
  const Manifest *const manifest = find_manifest(id);
  if (manifest == nullptr) {
    return Error{SONDE_E_NOT_FOUND, fmt::format("no plugin '{}'; there are {}", id, listed_ids())};
  }
  if (index >= manifest->options.size()) {
    return Error{SONDE_E_RANGE, fmt::format("plugin {} has {} options", id, manifest->options.size())};
  }
  const ManifestOption &option = manifest->options[index];
  return sonde_option_t{keep(option.name),
                        option.has_fallback ? keep(option.fallback) : nullptr,
                        keep(option.help),
                        keep(option.unit),
                        keep(option.choices),
                        option.type,
                        0};
}

Result<const sonde_plugin_entry_t *> Registry::load(const std::string &id) {
  Listed listed;
  bool is_listed = false;
  std::string path;
  {
    std::unique_lock lock(mutex_);
    if (id.find('/') == std::string::npos) {
      scan();
      if (const auto loaded = find_loaded(id)) {
        if (loaded->state == Loaded::State::kStarting && loaded->starter == std::this_thread::get_id()) {
          return Error{SONDE_E_STATE, fmt::format("plugin {} loads itself while it starts", id)};
        }
        state_changed_.wait(lock, [&] { return loaded->state != Loaded::State::kStarting; });
        if (loaded->state == Loaded::State::kReady) return &loaded->entry->table;
      }
      const Listed *const found = find_listed(id);
      if (found == nullptr) {
        return Error{SONDE_E_NOT_FOUND,
                     fmt::format("no plugin '{}'; looked in {}; there are: {}", id, where_it_looked(), listed_ids())};
      }
      listed = *found;
      is_listed = true;
      path = listed.path;
    } else {
      path = canonical(id);
      for (const auto &loaded : loaded_) {
        if (loaded->path == path && loaded->state == Loaded::State::kReady) return &loaded->entry->table;
      }
    }
  }
  std::error_code error;
  if (!fs::exists(path, error)) return Error{SONDE_E_NOT_FOUND, fmt::format("no plugin module at '{}'", path)};
  Result<std::shared_ptr<Loaded>> loaded = load_module(path, is_listed ? &listed : nullptr);
  if (!loaded) return loaded.error();
  return &(*loaded)->entry->table;
}

Result<std::shared_ptr<Registry::Loaded>> Registry::load_module(const std::string &path, const Listed *listed) {
  // The versions are read from the file first, so that of a plugin that does not fit not even a constructor runs.
  Result<PeekedEntry> peeked = peek_entry(path);
  if (!peeked) return peeked.error();
  if (peeked->found) {
    if (Result<void> versions =
            check_versions(path, peeked->struct_size, peeked->abi_major, peeked->abi_minor_required);
        !versions) {
      return versions.error();
    }
  }
  Result<Module> module = Module::open(path);
  if (!module) return module.error();
  const auto *const given = static_cast<const sonde_plugin_entry_t *>(module->symbol("sonde_plugin_entry"));
  if (given == nullptr) {
    return Error{SONDE_E_NOT_FOUND,
                 fmt::format("{}: a shared object, but it does not define sonde_plugin_entry", path)};
  }
  Result<std::unique_ptr<Entry>> entry = check_entry(path, given, true);
  if (!entry) return entry.error();  // and the module is closed
  if (listed != nullptr && !listed->manifest.id.empty()) {
    if (listed->manifest.id != (*entry)->table.id) {
      return Error{SONDE_E_CORRUPT,
                   fmt::format("{}: its manifest says id '{}', the module says '{}'; `sonde manifest` writes it anew",
                               path, listed->manifest.id, (*entry)->table.id)};
    }
    if (!same_interface_texts(listed->manifest, **entry)) {
      log_warning(fmt::format("{}: its manifest is out of date; `sonde manifest` writes it anew", path));
    }
  } else if (listed != nullptr && listed->id != (*entry)->table.id) {
    return Error{SONDE_E_NOT_FOUND,
                 fmt::format("no plugin '{}': {} holds the plugin '{}'", listed->id, path, (*entry)->table.id)};
  }
  return start(std::move(*entry), path, &*module, given);
}

// Registers a checked entry and calls its init. On failure nothing of it stays, and a module is closed by the caller.
Result<std::shared_ptr<Registry::Loaded>> Registry::start(std::unique_ptr<Entry> entry, const std::string &path,
                                                          Module *module, const sonde_plugin_entry_t *given) {
  auto loaded = std::make_shared<Loaded>();
  loaded->path = path;
  loaded->id = entry->table.id;
  loaded->entry = std::move(entry);
  loaded->starter = std::this_thread::get_id();
  loaded->process = ::getpid();
  {
    std::unique_lock lock(mutex_);
    if (const auto other = find_loaded(loaded->id)) {
      if (other->state == Loaded::State::kStarting && other->starter != std::this_thread::get_id()) {
        state_changed_.wait(lock, [&] { return other->state != Loaded::State::kStarting; });
      }
      if (other->state == Loaded::State::kReady && other->path == path) return other;
      if (other->state != Loaded::State::kFailed) {
        return Error{SONDE_E_EXISTS, fmt::format("plugin '{}' is loaded already, from {}", loaded->id,
                                                 other->path.empty() ? "the program itself" : other->path)};
      }
    }
    loaded->guard = std::make_unique<Guard>(keep(loaded->id));
    loaded->slot = next_slot_++;
    loaded_.push_back(loaded);
  }
  static const bool wants_handler = [] {
    const char *const wish = std::getenv("SONDE_CRASH");
    return wish != nullptr && std::strcmp(wish, "1") == 0 && !has_raised_privileges();
  }();
  if (wants_handler) install_crash_handler();

  sonde_status status = SONDE_OK;
  std::string reason;
  if (loaded->entry->table.init != nullptr) {
    status = loaded->guard->run("init", true, [&] { return loaded->entry->table.init(host_table()); });
    if (status < 0) reason = last_error();
  }
  Manifest manifest;
  if (status >= 0) {
    manifest =
        make_manifest(loaded->entry->table, SONDE_ABI_MAJOR, given->abi_minor_required, known_interfaces(*loaded));
  }
  {
    const std::lock_guard lock(mutex_);
    loaded->manifest = std::move(manifest);
    if (status < 0) {
      loaded->state = Loaded::State::kFailed;
      std::erase(loaded_, loaded);
    } else {
      loaded->state = Loaded::State::kReady;
      if (module != nullptr) {
        module->keep();
        for (const MappedRange &range : MappedObjects::of_object(given)) {
          if (range.executable) note_plugin_code(range.begin, range.end, loaded->guard->id());
        }
      }
      // Registered at the first plugin: what registers at exit later (a run) ends before the plugins do.
      static const int registered = std::atexit([] { Registry::instance().shutdown_all(); });
      static_cast<void>(registered);
    }
  }
  state_changed_.notify_all();
  if (status < 0) {
    return Error{status, fmt::format("plugin {} ({}): init failed: {}", loaded->id, path,
                                     reason.empty() ? fmt::format("status {}", status) : reason)};
  }
  return loaded;
}

std::vector<std::string> Registry::known_interfaces(Loaded &loaded) const {
  std::vector<std::string> names;
  if (loaded.entry->table.get_interface == nullptr) return names;
  for (const char *const name : {SONDE_ANALYSIS_INTERFACE, SONDE_PORT_INTERFACE}) {
    const void *table = nullptr;
    loaded.guard->run("get_interface", true, [&] {
      table = loaded.entry->table.get_interface(name);
      return SONDE_OK;
    });
    if (table != nullptr) names.emplace_back(name);
  }
  return names;
}

Result<void> Registry::add_static(const sonde_plugin_entry_t *given) {
  Result<std::unique_ptr<Entry>> entry = check_entry("a plugin linked into the program", given, false);
  if (!entry) return entry.error();
  Result<std::shared_ptr<Loaded>> loaded = start(std::move(*entry), "", nullptr, given);
  if (!loaded) return loaded.error();
  const std::lock_guard lock(mutex_);
  Listed item;
  item.id = (*loaded)->id;
  item.manifest = (*loaded)->manifest;
  std::erase_if(listed_, [&](const Listed &other) { return other.id == item.id; });
  listed_.insert(listed_.begin(), std::move(item));
  return {};
}

Result<const void *> Registry::find_interface(const char *id, const char *name, uint32_t min_size) {
  std::vector<std::shared_ptr<Loaded>> candidates;
  {
    const std::lock_guard lock(mutex_);
    candidates = ready();
  }
  bool found_plugin = false;
  for (const auto &loaded : candidates) {
    if (id != nullptr && loaded->id != id) continue;
    found_plugin = true;
    if (loaded->entry->table.get_interface == nullptr) continue;
    const void *table = nullptr;
    loaded->guard->run("get_interface", true, [&] {
      table = loaded->entry->table.get_interface(name);
      return SONDE_OK;
    });
    if (table == nullptr) continue;
    const uint32_t size = *static_cast<const uint32_t *>(table);
    if (size < min_size) {
      return Error{SONDE_E_TOO_OLD,
                   fmt::format("plugin {}: its {} has {} bytes, {} are needed", loaded->id, name, size, min_size)};
    }
    const std::lock_guard lock(mutex_);
    return guarded_interface(loaded->slot, *loaded->guard, name, table);
  }
  if (id != nullptr && !found_plugin) {
    return Error{SONDE_E_NOT_FOUND, fmt::format("plugin '{}' is not loaded", id)};
  }
  if (id != nullptr) return Error{SONDE_E_NOT_FOUND, fmt::format("plugin {} does not offer {}", id, name)};
  return Error{SONDE_E_NOT_FOUND, fmt::format("no loaded plugin offers {}", name)};
}

Result<sonde_export_t> Registry::function(const std::string &id, const char *name) {
  std::shared_ptr<Loaded> loaded;
  {
    const std::lock_guard lock(mutex_);
    loaded = find_loaded(id);
  }
  if (loaded == nullptr || loaded->state != Loaded::State::kReady) {
    return Error{SONDE_E_NOT_FOUND, fmt::format("plugin '{}' is not loaded", id)};
  }
  std::string names;
  for (const sonde_export_t &item : loaded->entry->exports) {
    if (std::strcmp(item.name, name) == 0) return item;
    names += (names.empty() ? "" : ", ") + std::string(item.name);
  }
  return Error{SONDE_E_NOT_FOUND,
               fmt::format("plugin {} has no function '{}'; it has {}", id, name, names.empty() ? "none" : names)};
}

Result<std::string> Registry::manifest_of(const std::string &module) {
  Result<const sonde_plugin_entry_t *> entry = load(module.find('/') == std::string::npos ? "./" + module : module);
  if (!entry) return entry.error();
  const std::lock_guard lock(mutex_);
  return print_manifest(find_loaded((*entry)->id)->manifest);
}

Result<Guard::Statistics> Registry::statistics(const std::string &id) {
  const std::lock_guard lock(mutex_);
  const auto loaded = find_loaded(id);
  if (loaded == nullptr) return Error{SONDE_E_NOT_FOUND, fmt::format("plugin '{}' is not loaded", id)};
  return loaded->guard->statistics();
}

void Registry::shutdown_all() {
  std::vector<std::shared_ptr<Loaded>> ending;
  {
    const std::lock_guard lock(mutex_);
    ending = ready();
    for (const auto &loaded : ending) loaded->state = Loaded::State::kEnded;
  }
  std::reverse(ending.begin(), ending.end());
  for (const auto &loaded : ending) {
    // A forked child inherits plugins whose threads and devices it does not have: only the process that started one
    // ends it.
    if (loaded->process != ::getpid() || loaded->entry->table.shutdown == nullptr) continue;
    loaded->guard->run("shutdown", true, [&] { return loaded->entry->table.shutdown(), SONDE_OK; });
  }
}

}  // namespace sonde::loader
