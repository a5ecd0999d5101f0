// Property tests: how many random cases, and their generator.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace sonde::testing {

// $SONDE_CASES, 200 where it is not set.
inline int cases() {
  const char *const text = std::getenv("SONDE_CASES");
  const int wanted = text == nullptr ? 0 : std::atoi(text);
  return wanted > 0 ? wanted : 200;
}

// The same numbers in every run, different ones for each case.
class Random {
 public:
  explicit Random(int seed) : engine_(static_cast<uint64_t>(seed)) {}
  // Between the two, both included.
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  std::mt19937_64 &engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sonde::testing
