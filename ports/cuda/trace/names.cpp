#include "names.h"

#include <cstring>

#include <sonde/status.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sonde::cuda {

sonde_string_t NameCache::insert(Slot &slot, const char *name) {
  const size_t bytes = std::strlen(name);
  sonde_string_t id = 0;
  if (capture_->intern(name, bytes, &id) != SONDE_OK) return 0;
  slot = {name, XXH3_64bits(name, bytes), generation_, id};
  if (++used_ * 2 > slots_.size()) grow();
  return id;
}

sonde_string_t NameCache::refresh(Slot &slot) {
  const size_t bytes = std::strlen(slot.name);
  const uint64_t hash = XXH3_64bits(slot.name, bytes);
  if (hash != slot.hash) {
    sonde_string_t id = 0;
    if (capture_->intern(slot.name, bytes, &id) != SONDE_OK) return 0;
    slot.hash = hash;
    slot.id = id;
  }
  slot.generation = generation_;
  return slot.id;
}

void NameCache::grow() {
  std::vector<Slot> old;
  if (used_ >= kMostNames) {
    slots_.assign(kFirstSlots, Slot());
    used_ = 0;
    return;
  }
  old.resize(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot &slot : old) {
    if (slot.name == nullptr) continue;
    size_t i = index_of(slot.name);
    while (slots_[i].name != nullptr) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = slot;
  }
}

}  // namespace sonde::cuda
