#include "core/clocks.h"

#include <sonde/record.h>
#include <time.h>

#include <cmath>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

namespace sonde::core {
namespace {

int64_t read_ns(clockid_t id) {
  timespec value{};
  ::clock_gettime(id, &value);
  return static_cast<int64_t>(value.tv_sec) * 1'000'000'000 + value.tv_nsec;
}

// multiplier and shift for `ns_per_unit`, as precise as 128-bit products of 63-bit differences allow.
void set_slope(sonde_clock_t &clock, long double ns_per_unit) {
  uint32_t shift = 32;
  while (shift < 60 && ns_per_unit * std::pow(2.0L, shift + 1) < 9.0e18L && shift < 48) ++shift;
  clock.shift = shift;
  clock.multiplier = static_cast<uint64_t>(std::llroundl(ns_per_unit * std::pow(2.0L, shift)));
}

struct Calibration {
  std::mutex mutex;
  ClockReading first = read_clocks();
};

Calibration &calibration() {
  static Calibration *const instance = new Calibration;
  return *instance;
}

}  // namespace

ClockReading read_clocks() {
  ClockReading best{};
  uint64_t narrowest = UINT64_MAX;
  for (int attempt = 0; attempt < 8; ++attempt) {
    const uint64_t before = sonde_stamp();
    const int64_t raw = read_ns(CLOCK_MONOTONIC_RAW);
    const uint64_t after = sonde_stamp();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best.stamp = before + (after - before) / 2;
    best.raw_ns = raw;
    const int64_t unix_now = read_ns(CLOCK_REALTIME);
    best.unix_ns = unix_now - (read_ns(CLOCK_MONOTONIC_RAW) - raw);
  }
  best.uncertainty_ns = narrowest / 2;  // stamp units are at most a few to the ns; refined by the caller's slope
  return best;
}

sonde_clock_t calibrate_stamp() {
  Calibration &shared = calibration();
  ClockReading now = read_clocks();
  constexpr int64_t kBaseline = 10'000'000;
  if (now.raw_ns - shared.first.raw_ns < kBaseline) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kBaseline - (now.raw_ns - shared.first.raw_ns)));
    now = read_clocks();
  }
  sonde_clock_t clock{};
  clock.struct_size = sizeof(clock);
  clock.id = SONDE_CLOCK_STAMP;
  clock.base_raw = now.stamp;
  clock.base_ns = now.unix_ns;
  const auto elapsed_ns = static_cast<long double>(now.raw_ns - shared.first.raw_ns);
  const auto elapsed_units = static_cast<long double>(now.stamp - shared.first.stamp);
  set_slope(clock, elapsed_ns / elapsed_units);
  const long double doubt = static_cast<long double>(now.uncertainty_ns + shared.first.uncertainty_ns) / elapsed_ns;
  clock.error_ppb = static_cast<uint32_t>(std::fmin(doubt * 1e9L, 4.0e9L));
  return clock;
}

bool stamp_is_reliable() {
#if defined(__x86_64__)
  static const bool reliable = [] {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
      if (line.rfind("flags", 0) == 0)
        return line.find("nonstop_tsc") != std::string::npos || line.find("constant_tsc") != std::string::npos;
    }
    return false;
  }();
  return reliable;
#else
  return true;  // the AArch64 generic timer has a constant rate by definition
#endif
}

sonde_clock_t unix_ns_clock() {
  sonde_clock_t clock{};
  clock.struct_size = sizeof(clock);
  clock.id = SONDE_CLOCK_UNIX_NS;
  clock.multiplier = 1;
  return clock;
}

void ForeignClock::add_pair(const sonde_clock_t &host, uint64_t stamp, uint64_t reading) {
  const Pair pair{sonde_clock_ns(&host, stamp), reading};
  if (!first_) {
    first_ = pair;
  } else if (pair.reading > first_->reading && pair.ns > first_->ns) {
    last_ = pair;
  }
}

std::optional<sonde_clock_t> ForeignClock::line(uint32_t id) const {
  if (!first_) return std::nullopt;
  sonde_clock_t clock{};
  clock.struct_size = sizeof(clock);
  clock.id = id;
  clock.base_raw = first_->reading;
  clock.base_ns = first_->ns;
  if (last_) {
    set_slope(clock, static_cast<long double>(last_->ns - first_->ns) /
                         static_cast<long double>(last_->reading - first_->reading));
  } else {
    set_slope(clock, 1.0L);
    clock.error_ppb = 1'000'000;  // one pair says nothing of the slope
  }
  return clock;
}

}  // namespace sonde::core
