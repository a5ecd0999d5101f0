// The sidecar of a module: NAME.yaml beside NAME.so says what the module's entry says, so that listing opens none.
//
//   sonde_manifest: 1
//   id: workload
//   version: "1.0.0"
//   summary: "..."
//   license: MIT
//   abi: {major: 1, minor_required: 0}
//   interfaces: [sonde.analysis/1]
//   exports: [{name, signature, help}, ...]
//   options: [{name, type, default, unit, choices, help}, ...]   # without default: must be given
#pragma once

#include <sonde/plugins.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace sonde::loader {

struct ManifestExport {
  std::string name;
  std::string signature;
  std::string help;
};

struct ManifestOption {
  std::string name;
  std::string fallback;
  bool has_fallback = false;
  std::string help;
  std::string unit;
  std::string choices;
  uint32_t type = 0;
};

struct Manifest {
  std::string id;
  std::string version;
  std::string summary;
  std::string license;
  uint16_t abi_major = 0;
  uint16_t abi_minor_required = 0;
  std::vector<std::string> interfaces;
  std::vector<ManifestExport> exports;
  std::vector<ManifestOption> options;
};

// Manifest of a checked entry (entry.h).
Manifest make_manifest(const sonde_plugin_entry_t &entry, uint16_t abi_major, uint16_t abi_minor_required,
                       std::vector<std::string> interfaces);

std::string print_manifest(const Manifest &manifest);

// Reads a manifest through sonde.config/1. Keys that this host does not know are skipped: they are a later host's.
Result<Manifest> read_manifest(const std::string &path);

// NAME.yaml for a module NAME.so.
std::string manifest_path(const std::string &module);

}  // namespace sonde::loader
