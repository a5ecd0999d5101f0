// Puts items that come slightly out of order of time back into it, in bounded memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace sonde::toolkit {

// Holds back up to `capacity` items and gives out the earliest when one more comes; equal times keep their order of
// arrival. The output is in order when no item comes after more than `capacity` items that are later than it; one
// that does comes out at once, behind its time, and the receiver sees it by its time.
// push and finish cost O(log capacity); memory is capacity * (sizeof(Item) + 16).
template <typename Item>
class ReorderBuffer {
 public:
  explicit ReorderBuffer(size_t capacity) : capacity_(capacity) {}

  // give(time, item) receives what leaves.
  template <typename Give>
  void push(int64_t time, Item item, Give &&give) {
    heap_.push_back({time, next_++, std::move(item)});
    std::push_heap(heap_.begin(), heap_.end(), later);
    while (heap_.size() > capacity_) pop(give);
  }

  template <typename Give>
  void finish(Give &&give) {
    while (!heap_.empty()) pop(give);
  }

  size_t size() const { return heap_.size(); }

 private:
  struct Entry {
    int64_t time;
    uint64_t sequence;
    Item item;
  };

  static bool later(const Entry &a, const Entry &b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }

  template <typename Give>
  void pop(Give &give) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    give(entry.time, entry.item);
  }

  size_t capacity_;
  uint64_t next_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace sonde::toolkit
