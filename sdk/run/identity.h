// What names a process and its capture file, and the run.json of a run directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace sonde::run {

// True when the environment must not steer this process: raised privileges.
bool ignores_environment();

struct Identity {
  std::string host;       // host name, made safe for a file name
  std::string boot;       // boot id, "" when unknown
  uint64_t process = 0;   // process id
  uint64_t start_ns = 0;  // start of the process, ns since boot: tells two processes of one id apart
  uint64_t image = 0;     // how many times exec replaced the image ($SONDE_EXEC)

  // "<host>-<pid>-<start>-<exec>".
  std::string stem() const;
};

// Of this process, now. [any]
Identity identify_process();

// Start time in the text of /proc/<pid>/stat, ns since boot; 0 when it cannot be read from it. `ticks` a second.
uint64_t start_from_stat(std::string_view stat, uint64_t ticks);

// Path without extension of a capture file in `folder` that does not exist yet; `identity.image` is raised until
// there is one.
std::string fresh_capture_stem(const std::string &folder, Identity &identity);

// Makes the folder with its parents. SONDE_E_IO.
Result<void> make_run_folder(const std::string &folder);

// Writes <folder>/run.json if no process has done so yet; several may try at once. SONDE_E_IO.
Result<void> write_run_json(const std::string &folder, const Identity &identity);

}  // namespace sonde::run
