// What the command's exit status means. README.md has the same list for users.
#pragma once

#include <sonde/status.h>

namespace sonde::cli {

inline constexpr int kOk = 0;
inline constexpr int kFound = 1;     // findings at or above --fail-on; `doctor`: the capture has limits
inline constexpr int kUsage = 2;     // the command line, a configuration or a script cannot be understood
inline constexpr int kInput = 3;     // a file, capture or plugin is missing or damaged
inline constexpr int kInternal = 4;  // a defect of Sonde or of a plugin, or a machine out of resources
inline constexpr int kNothing = 5;   // the program ran, but nothing was captured
inline constexpr int kCannotRun = 126;
inline constexpr int kNoCommand = 127;
inline constexpr int kSignalBase = 128;  // plus the number of the signal that ended the program

// The exit status for an error of the host.
constexpr int exit_code_of(sonde_status status) {
  switch (status) {
    case SONDE_OK:
      return kOk;
    case SONDE_E_INVALID:
    case SONDE_E_PARSE:
    case SONDE_E_RANGE:
    case SONDE_E_TYPE:
    case SONDE_E_EXISTS:
    case SONDE_E_DENIED:
      return kUsage;
    case SONDE_E_NOT_FOUND:
    case SONDE_E_IO:
    case SONDE_E_CORRUPT:
    case SONDE_E_TOO_OLD:
    case SONDE_E_INCOMPATIBLE:
    case SONDE_E_SCHEMA_CONFLICT:
      return kInput;
    default:
      return kInternal;
  }
}

}  // namespace sonde::cli
