// What is wanted: one word a space that emitters test, and the level of each type.
#pragma once

#include <sonde/capture.h>
#include <sonde/delivery.h>
#include <sonde/schema.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace sonde::core {

class Demand {
 public:
  Demand();
  ~Demand();
  Demand(const Demand &) = delete;
  Demand &operator=(const Demand &) = delete;

  // The word of a space. It lies in a private page that a forked child finds zeroed. [any]
  const uint64_t *word(uint32_t space) const { return words_ + space; }
  uint32_t level(uint32_t space, uint32_t type) const {
    return levels_[space * SONDE_TYPE_COUNT + type].load(std::memory_order_relaxed);
  }

  // Replaces the whole by the union of `interests`. Words are shown only while `on`. [control]
  void set(std::span<const sonde_interest_t> interests, bool on);

 private:
  uint64_t *words_;
  std::unique_ptr<std::atomic<uint8_t>[]> levels_;
};

}  // namespace sonde::core
