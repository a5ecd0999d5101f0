// One YAML configuration (sonde/run.h) from a file and flags.
//
// The program that is measured gets the part that captures and records; the analyses run afterwards on its capture, in
// the command's own process, from the other part.
#pragma once

#include <CLI/CLI.hpp>
#include <sonde/sonde.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sonde::cli {

// Flags that name things of a configuration. Each stands for the key in brackets.
struct ConfigFlags {
  std::string file;                       // -c
  std::vector<std::string> analyses;      // -p [analyses]
  std::vector<std::string> scripts;       // -s [scripts]
  std::vector<std::string> plugin_paths;  // --plugin-path [plugins.path]
  std::vector<std::string> ports;         // --port [ports]
  std::string budget;                     // --budget [session.budget]

  void add_analysis_flags(CLI::App &app);
  void add_capture_flags(CLI::App &app);
  void add_common_flags(CLI::App &app);
};

struct ConfigDeleter {
  const sonde_config_service_t *service;
  void operator()(sonde_config_t *config) const { service->release(config); }
};
using OwnedConfig = std::unique_ptr<sonde_config_t, ConfigDeleter>;

class RunConfig {
 public:
  // Reads the file and resolves the names; throws CommandError or Failure.
  RunConfig(const Host &host, const ConfigFlags &flags);

  // What the analysing run is opened with: everything but ports and recording.
  OwnedConfig analysing() const;

  // YAML for the program that is measured: session, ports, plugins, and recording into `directory`.
  std::string recording_text(const std::string &directory) const;

  // True when the file says where its results go.
  bool has_outputs() const { return has("outputs"); }
  bool has_analyses() const {
    return has("analyses") || has("scripts") || !flags_.analyses.empty() || !flags_.scripts.empty();
  }
  // The directory of `record.path`, "" when there is none.
  std::string record_path() const;

 private:
  bool has(const char *key) const;
  bool is_map(const char *key) const;
  std::string section(const char *key) const;                       // as YAML, "" when absent
  std::string list_items(const char *key) const;                    // of a list, one "  - item" each
  std::vector<std::string> names_in(const std::string &key) const;  // plugin ids of a map or list
  std::string plugins_text() const;
  std::string ports_text() const;
  // Section `key` (ports, analyses) with the plugins of the file and those of `wanted`.
  std::string plugins_section(const char *key, const std::vector<std::string> &wanted) const;
  std::string scripts_text() const;
  std::string session_text() const;
  OwnedConfig parse(const std::string &text, const std::string &origin) const;

  Host host_;
  const sonde_config_service_t &service_;
  ConfigFlags flags_;
  std::vector<std::string> analysis_ids_;
  std::vector<std::string> port_ids_;
  OwnedConfig file_;
};

}  // namespace sonde::cli
