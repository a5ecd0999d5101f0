// Interned strings of names that CUPTI hands out as pointers.
#pragma once

#include <cstdint>
#include <vector>

#include <sonde/capture.h>

namespace sonde::cuda {

// Pointer -> interned id. Within one activity buffer all name pointers are alive together, so equal pointers are
// equal names and the text is looked at once; from buffer to buffer the text is compared by its hash, because a
// module that was unloaded may have left its address to another name. One thread at a time.
class NameCache {
 public:
  explicit NameCache(const sonde_capture_service_t *capture) : capture_(capture), slots_(kFirstSlots) {}

  // Names seen from here on belong to another buffer.
  void begin_buffer() { ++generation_; }

  // Id of `name`; 0 for a null pointer or when the host cannot intern it.
  sonde_string_t find(const char *name) {
    if (name == nullptr) return 0;
    for (size_t i = index_of(name);; i = (i + 1) & (slots_.size() - 1)) {
      Slot &slot = slots_[i];
      if (slot.name == name) return slot.generation == generation_ ? slot.id : refresh(slot);
      if (slot.name == nullptr) return insert(slot, name);
    }
  }

  // Distinct pointers held.
  size_t size() const { return used_; }

  // Pointers held before the table starts afresh: 2^16, so memory stays bounded whatever the program loads.
  static constexpr size_t kMostNames = size_t{1} << 16;

 private:
  struct Slot {
    const char *name = nullptr;
    uint64_t hash = 0;
    uint64_t generation = 0;
    sonde_string_t id = 0;
  };
  static constexpr size_t kFirstSlots = 1024;  // a power of two

  size_t index_of(const char *name) const {
    const uint64_t mixed = (reinterpret_cast<uintptr_t>(name) >> 3) * 0x9E3779B97F4A7C15u;
    return static_cast<size_t>(mixed >> 32) & (slots_.size() - 1);
  }

  sonde_string_t insert(Slot &slot, const char *name);
  sonde_string_t refresh(Slot &slot);
  void grow();

  const sonde_capture_service_t *capture_;
  std::vector<Slot> slots_;
  size_t used_ = 0;
  uint64_t generation_ = 1;
};

// 32-bit correlation ids of CUPTI as 64-bit ones that do not repeat when the counter wraps: each id is taken as the
// value nearest to the greatest seen. 0 stays 0. One thread at a time.
class CorrelationWidener {
 public:
  uint64_t widen(uint32_t id) {
    if (id == 0) return 0;
    if (greatest_ == 0) return greatest_ = id;
    const int64_t step = static_cast<int32_t>(id - static_cast<uint32_t>(greatest_));
    if (step < 0 && static_cast<uint64_t>(-step) >= greatest_) return id;  // before the first one seen
    const uint64_t wide = greatest_ + static_cast<uint64_t>(step);
    if (step > 0) greatest_ = wide;
    return wide;
  }

 private:
  uint64_t greatest_ = 0;
};

}  // namespace sonde::cuda
