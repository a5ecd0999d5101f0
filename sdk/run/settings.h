// The tree of a run's configuration (sonde/run.h), checked and typed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/services.h"

namespace sonde::run {

// A plugin that the configuration names, with its part of the tree; null: no options.
struct PluginWish {
  std::string id;
  std::string label;  // for messages: the id, or a script's path
  std::string where;  // file:line:column
  const sonde_config_t *options = nullptr;
};

struct OutputWish {
  std::string format;
  std::string path;  // "": standard output; absolute otherwise. {process} stands for the capture file's stem
  std::string only;
  uint32_t rows = 0;
  uint32_t width = 0;
  bool color = false;
};

struct Settings {
  uint32_t policy = SONDE_POLICY_DROP;
  uint64_t ring_bytes = 0;
  uint64_t memory_cap = 0;
  uint64_t stall_ns = 0;
  uint64_t period_ns = 0;
  uint64_t flush_period_ns = 0;
  uint64_t deadline_ns = 0;         // of the last flush
  uint64_t finish_deadline_ns = 0;  // at exit: of analyses and outputs after it
  double budget = 0;                // greatest slow-down of the program, for ports that can keep one; 0: none
  std::string name;

  std::string record_path;  // absolute; "": nothing is recorded
  bool record_eager = false;
  std::string record_spaces;  // separated by spaces; "": all
  sonde_writer_options_t writer{};

  std::vector<PluginWish> ports;
  std::vector<PluginWish> analyses;  // scripts last, as analyses of the plugin `lua`
  std::vector<OutputWish> outputs;
  std::vector<std::string> plugin_paths;

  OwnedConfig tree;                 // what the wishes point into
  std::vector<OwnedConfig> others;  // trees made on the way
};

// `config` may be null: the defaults. It is not kept. SONDE_E_INVALID lists the faults with their places.
Result<Settings> read_settings(const Services &services, const sonde_config_t *config);

}  // namespace sonde::run
