// The greatest items of a stream, in bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sonde::toolkit {

// Keeps the `limit` items of greatest weight; of equal ones those that came first. An item's weight is final when it is
// added, so the result is exact, whatever was left out. add costs O(log limit).
template <typename Item>
class TopList {
 public:
  struct Entry {
    uint64_t weight;
    uint64_t sequence;  // of arrival
    Item item;
  };

  explicit TopList(size_t limit) : limit_(limit) {}

  // Whether an item of that weight would be kept now: asks before an item is made.
  bool takes(uint64_t weight) const { return limit_ != 0 && (heap_.size() < limit_ || weight > heap_.front().weight); }

  void add(uint64_t weight, Item item) {
    ++offered_;
    if (!takes(weight)) return;
    if (heap_.size() == limit_) {
      std::pop_heap(heap_.begin(), heap_.end(), before);
      heap_.pop_back();
    }
    heap_.push_back({weight, next_++, std::move(item)});
    std::push_heap(heap_.begin(), heap_.end(), before);
  }

  // Greatest first, then in order of arrival; valid until the next add.
  std::vector<const Entry *> sorted() const {
    std::vector<const Entry *> out;
    out.reserve(heap_.size());
    for (const Entry &entry : heap_) out.push_back(&entry);
    std::sort(out.begin(), out.end(), [](const Entry *a, const Entry *b) { return before(*a, *b); });
    return out;
  }

  size_t size() const { return heap_.size(); }
  uint64_t offered() const { return offered_; }

 private:
  static bool before(const Entry &a, const Entry &b) {
    return a.weight != b.weight ? a.weight > b.weight : a.sequence < b.sequence;
  }

  size_t limit_;
  uint64_t next_ = 0;
  uint64_t offered_ = 0;
  std::vector<Entry> heap_;  // its front is the least of them
};

}  // namespace sonde::toolkit
