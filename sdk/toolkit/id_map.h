// From ids to small numbers, without an allocation for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sonde::toolkit {

// Ids are not 0. Linear probing with the entries moved back on erase, so lookups do not slow down as entries come and go.
// Memory: 16 bytes an entry, up to twice the most entries at one time, rounded up to a power of two.
class IdMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t find(uint64_t id) const {
    if (entries_.empty()) return kNone;
    for (size_t at = home(id);; at = next(at)) {
      if (entries_[at].id == id) return entries_[at].value;
      if (entries_[at].id == 0) return kNone;
    }
  }

  // Replaces the value of an id that is there.
  void set(uint64_t id, uint32_t value) {
    if ((size_ + 1) * 2 > entries_.size()) grow();
    size_t at = home(id);
    while (entries_[at].id != 0 && entries_[at].id != id) at = next(at);
    if (entries_[at].id == 0) ++size_;
    entries_[at] = {id, value};
  }

  void erase(uint64_t id) {
    if (entries_.empty()) return;
    size_t at = home(id);
    while (entries_[at].id != id) {
      if (entries_[at].id == 0) return;
      at = next(at);
    }
    --size_;
    for (size_t later = next(at); entries_[later].id != 0; later = next(later)) {
      // An entry may move to the hole when its home does not lie behind the hole on the way to where it is.
      const size_t wanted = home(entries_[later].id), mask = entries_.size() - 1;
      if (((later - wanted) & mask) < ((later - at) & mask)) continue;
      entries_[at] = entries_[later];
      at = later;
    }
    entries_[at] = {};
  }

  size_t size() const { return size_; }

 private:
  struct Entry {
    uint64_t id = 0;
    uint32_t value = 0;
  };

  size_t home(uint64_t id) const { return (id * 0x9e3779b97f4a7c15u >> 32) & (entries_.size() - 1); }
  size_t next(size_t at) const { return (at + 1) & (entries_.size() - 1); }

  void grow() {
    std::vector<Entry> before(entries_.empty() ? 64 : entries_.size() * 2);
    before.swap(entries_);
    size_ = 0;
    for (const Entry &entry : before) {
      if (entry.id != 0) set(entry.id, entry.value);
    }
  }

  size_t size_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace sonde::toolkit
