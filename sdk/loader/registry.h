// The plugins of this process: what the manifests say there is, and what is loaded.
//
// The mutex covers the lists only. It is never held while code of a plugin runs: init may load other plugins, and a
// shutdown may call the host.
#pragma once

#include <sonde/plugins.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "loader/entry.h"
#include "loader/guard.h"
#include "loader/manifest.h"
#include "loader/module.h"
#include "loader/search.h"

namespace sonde::loader {

// What listing knows of one plugin.
struct Listed {
  std::string id;
  std::string path;     // of the module; "" for a static one
  std::string problem;  // "" or why it cannot be used
  Manifest manifest;
};

class Registry {
 public:
  // Never destroyed: plugins call the host until the very end of the process.
  static Registry &instance();

  Registry() = default;
  Registry(const Registry &) = delete;
  Registry &operator=(const Registry &) = delete;

  Result<void> add_path(const std::string &path);
  uint64_t count();
  Result<sonde_plugin_info_t> at(uint64_t index);
  Result<ManifestExport> export_at(const std::string &id, uint64_t index);
  Result<sonde_option_t> option_at(const std::string &id, uint64_t index);
  Result<const sonde_plugin_entry_t *> load(const std::string &id);
  Result<void> add_static(const sonde_plugin_entry_t *entry);
  Result<const void *> find_interface(const char *id, const char *name, uint32_t min_size);
  Result<sonde_export_t> function(const std::string &id, const char *name);
  Result<std::string> manifest_of(const std::string &module);

  // Figures of a loaded plugin's calls.
  Result<Guard::Statistics> statistics(const std::string &id);

  // Calls shutdown of every plugin whose init succeeded, last loaded first, once, without the mutex.
  void shutdown_all();

  // The environment that the search uses; for tests.
  void set_inputs(SearchInputs inputs);

  std::mutex &mutex() { return mutex_; }

 private:
  struct Loaded {
    enum class State { kStarting, kReady, kFailed, kEnded };
    std::string id;
    std::string path;
    std::unique_ptr<Entry> entry;
    std::unique_ptr<Guard> guard;
    Manifest manifest;
    uint32_t slot = 0;
    State state = State::kStarting;
    std::thread::id starter;
    int process = 0;
  };

  void scan();
  void scan_folder(const std::string &folder);
  void scan_module(const std::string &path);
  const Listed *find_listed(const std::string &id);
  std::shared_ptr<Loaded> find_loaded(const std::string &id) const;
  const Manifest *find_manifest(const std::string &id);
  std::vector<std::shared_ptr<Loaded>> ready() const;
  std::string where_it_looked();
  std::string listed_ids();
  const char *keep(std::string_view text);

  Result<std::shared_ptr<Loaded>> load_module(const std::string &path, const Listed *listed);
  Result<std::shared_ptr<Loaded>> start(std::unique_ptr<Entry> entry, const std::string &path, Module *module,
                                        const sonde_plugin_entry_t *given);
  std::vector<std::string> known_interfaces(Loaded &loaded) const;

  std::mutex mutex_;
  std::condition_variable state_changed_;
  SearchInputs inputs_;
  bool has_inputs_ = false;
  bool scanned_ = false;
  std::vector<Listed> listed_;
  std::vector<std::shared_ptr<Loaded>> loaded_;
  std::set<std::string, std::less<>> kept_;  // texts handed out, for the life of the process
  uint32_t next_slot_ = 0;
};

}  // namespace sonde::loader
