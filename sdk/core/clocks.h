// Clocks: calibrating the stamp against the system, and lines for foreign clocks.
#pragma once

#include <sonde/clock.h>

#include <cstdint>
#include <optional>

namespace sonde::core {

// Host stamp and system clocks read together, bracketed so that the uncertainty is known.
struct ClockReading {
  uint64_t stamp;
  int64_t unix_ns;
  int64_t raw_ns;           // CLOCK_MONOTONIC_RAW: not slewed, so the slope against the stamp is constant
  uint64_t uncertainty_ns;  // half the bracket
};

// The best of several bracketed readings. [any]
ClockReading read_clocks();

// The line of SONDE_CLOCK_STAMP with its base at now. The slope comes from readings at least 10 ms apart; the first
// call in a process may sleep for that long. [any]
sonde_clock_t calibrate_stamp();

// False when the processor's counter does not run at a constant rate, so stamps are doubtful. [any]
bool stamp_is_reliable();

// Identity line for a clock that counts ns since 1970.
sonde_clock_t unix_ns_clock();

// Line of a foreign clock through two pairs (host stamp, reading).
class ForeignClock {
 public:
  // One pair: slope 1 ns a unit. More: the line through the first and the latest, which keeps the drift small and
  // the line steady. A pair that does not advance is ignored.
  void add_pair(const sonde_clock_t &host, uint64_t stamp, uint64_t reading);
  std::optional<sonde_clock_t> line(uint32_t id) const;

 private:
  struct Pair {
    int64_t ns;
    uint64_t reading;
  };
  std::optional<Pair> first_;
  std::optional<Pair> last_;
};

}  // namespace sonde::core
