// Calls into plugins: no exception gets out, each call is counted and timed, and a plugin that keeps failing is
// quarantined: its calls return SONDE_E_STATE, it stays mapped, and what ends an instance still reaches it.
#pragma once

#include <sonde/analysis.h>
#include <sonde/port.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace sonde::loader {

inline constexpr uint32_t kQuarantineErrors = 16;  // in a row

class Guard {
 public:
  // `id` lives as long as the process.
  explicit Guard(const char *id) : id_(id) {}

  struct Statistics {
    uint64_t calls = 0;
    uint64_t errors = 0;
    uint64_t busy_ns = 0;
    uint64_t longest_ns = 0;
    bool quarantined = false;
  };
  Statistics statistics() const;
  const char *id() const { return id_; }

  // Runs `call`, which returns a status. `what` names the function in messages. `always`: even in quarantine. [any]
  template <typename Call>
  sonde_status run(const char *what, bool always, Call &&call) noexcept;

 private:
  bool refuses(const char *what);
  void finish(const char *what, sonde_status status, uint64_t begin_ns);

  const char *const id_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> errors_{0};
  std::atomic<uint64_t> busy_ns_{0};
  std::atomic<uint64_t> longest_ns_{0};
  std::atomic<uint32_t> errors_in_row_{0};
  std::atomic<bool> quarantined_{false};
};

// The plugin's table for `name` with every function behind the guard; other interfaces come back as they are.
// `slot` below kGuardSlots belongs to this plugin alone.
inline constexpr uint32_t kGuardSlots = 64;
const void *guarded_interface(uint32_t slot, Guard &guard, const char *name, const void *table);

}  // namespace sonde::loader

#include "loader/guard_run.h"
