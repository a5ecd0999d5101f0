// Launches of the access port, remembered for the records that name them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernel_map.h"

namespace sonde::workload {

struct LaunchFacts {
  uint64_t launch = 0;  // 0: no launch
  KernelKey kernel;
  uint64_t function_begin = 0;  // first program counter, 0: unknown
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t block_period = 1;
  uint32_t flags = 0;  // SONDE_LAUNCH_*
};

// The last `capacity` launches of each process. Launch numbers ascend by one, so a place for each number modulo the
// capacity serves.
class LaunchBook {
 public:
  explicit LaunchBook(uint64_t capacity) {
    while (capacity_ < capacity) capacity_ *= 2;
  }

  void add(const LaunchFacts &facts) { place(facts.kernel.source, facts.launch) = facts; }

  // Null where it has not come, or was forgotten.
  const LaunchFacts *find(uint32_t source, uint64_t launch) const {
    const auto it = by_source_.find(source);
    if (it == by_source_.end() || it->second.empty()) return nullptr;
    const LaunchFacts &facts = it->second[launch & (it->second.size() - 1)];
    return facts.launch == launch && launch != 0 ? &facts : nullptr;
  }

 private:
  LaunchFacts &place(uint32_t source, uint64_t launch) {
    std::vector<LaunchFacts> &facts = by_source_[source];
    if (facts.empty()) facts.resize(64);
    // Grows while its places are taken by others, so few launches need little.
    while (facts.size() < capacity_) {
      const LaunchFacts &taken = facts[launch & (facts.size() - 1)];
      if (taken.launch == 0 || taken.launch == launch) break;
      std::vector<LaunchFacts> wider(facts.size() * 2);
      for (const LaunchFacts &old : facts) {
        if (old.launch != 0) wider[old.launch & (wider.size() - 1)] = old;
      }
      facts.swap(wider);
    }
    return facts[launch & (facts.size() - 1)];
  }

  uint64_t capacity_ = 64;
  std::map<uint32_t, std::vector<LaunchFacts>> by_source_;
};

}  // namespace sonde::workload
