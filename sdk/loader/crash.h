// Naming the culprit when the process dies inside a plugin.
//
// A handler of SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT writes one line to standard error if a plugin is involved,
// puts the earlier handler back and lets the signal strike again, so that core dumps and the program's own handlers
// work as before. It is installed where Sonde is the tool (a replay), or where SONDE_CRASH=1 asks for it; a measured
// program keeps its signals to itself otherwise.
#pragma once

#include <sonde/base.h>

#include <cstddef>
#include <cstdint>

namespace sonde::loader {

// The plugin that this thread runs code of, for the handler; null outside plugins.
class CurrentPlugin {
 public:
  explicit CurrentPlugin(const char *id);  // `id` lives as long as the process
  ~CurrentPlugin();
  CurrentPlugin(const CurrentPlugin &) = delete;
  CurrentPlugin &operator=(const CurrentPlugin &) = delete;

  static const char *id();

 private:
  const char *const before_;
};

// Makes the code in [begin, end) known as the plugin's. [any]
void note_plugin_code(uintptr_t begin, uintptr_t end, const char *id);

// Installs the handlers once. [any]
void install_crash_handler();

}  // namespace sonde::loader

// Private service "sonde.crash/1" for the run service, which reaches the loader through service tables only and knows
// this struct by its three members.
#define SONDE_CRASH_SERVICE "sonde.crash/1"

typedef struct sonde_crash_service_t {
  uint32_t struct_size;
  uint32_t reserved;
  // [any]
  void (*install)(void);
} sonde_crash_service_t;
