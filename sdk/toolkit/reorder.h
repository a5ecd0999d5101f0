// Puts items that come slightly out of order of time back into it, in bounded memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace sonde::toolkit {

// Holds back up to `capacity` items and gives out the earliest when one more comes; equal times keep their order of
// arrival. The output is in order when no item comes after more than `capacity` items that are later than it; one
// that does comes out at once, behind its time, and the receiver sees it by its time.
// push costs O(1) where items come from up to kRuns streams that are in order each, else O(log capacity); memory is
// capacity * (sizeof(Item) + 16), up to twice that.
template <typename Item>
class ReorderBuffer {
 public:
  static constexpr size_t kRuns = 4;

  explicit ReorderBuffer(size_t capacity) : capacity_(capacity) {}

  // give(time, item) receives what leaves.
  template <typename Give>
  void push(int64_t time, Item item, Give &&give) {
    place({time, next_++, std::move(item)});
    while (size_ > capacity_) pop(give);
  }

  // Everything up to `time` leaves.
  template <typename Give>
  void release(int64_t time, Give &&give) {
    while (size_ != 0 && earliest()->time <= time) pop(give);
  }

  template <typename Give>
  void finish(Give &&give) {
    while (size_ != 0) pop(give);
  }

  size_t size() const { return size_; }

 private:
  struct Entry {
    int64_t time;
    uint64_t sequence;
    Item item;
  };

  // Items in order; what lies before `head` has left.
  struct Run {
    std::vector<Entry> entries;
    size_t head = 0;

    bool empty() const { return head == entries.size(); }
    Entry leave() {
      Entry entry = std::move(entries[head++]);
      if (head == entries.size()) {
        entries.clear();
        head = 0;
      } else if (head >= kSlack && head >= entries.size() - head) {
        // As many moves as items left before, at most.
        entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(head));
        head = 0;
      }
      return entry;
    }
  };
  static constexpr size_t kSlack = 256;

  static bool later(const Entry &a, const Entry &b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }

  void place(Entry entry) {
    ++size_;
    // Of the runs that it may follow the one that ends last, so that the others stay open for earlier items.
    Run *best = nullptr;
    Run *free = nullptr;
    for (Run &run : runs_) {
      if (run.empty()) {
        free = &run;
      } else if (run.entries.back().time <= entry.time &&
                 (best == nullptr || run.entries.back().time > best->entries.back().time)) {
        best = &run;
      }
    }
    if (best == nullptr) best = free;
    if (best != nullptr) {
      best->entries.push_back(std::move(entry));
      return;
    }
    heap_.push_back(std::move(entry));
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  const Entry *earliest() {
    const Entry *first = heap_.empty() ? nullptr : &heap_.front();
    from_ = nullptr;
    for (Run &run : runs_) {
      if (run.empty()) continue;
      const Entry &front = run.entries[run.head];
      if (first != nullptr && !later(*first, front)) continue;
      first = &front;
      from_ = &run;
    }
    return first;
  }

  template <typename Give>
  void pop(Give &give) {
    (void)earliest();
    --size_;
    if (from_ != nullptr) {
      Entry entry = from_->leave();
      give(entry.time, entry.item);
      return;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    give(entry.time, entry.item);
  }

  size_t capacity_;
  size_t size_ = 0;
  uint64_t next_ = 0;
  std::array<Run, kRuns> runs_;
  std::vector<Entry> heap_;  // what fits into no run
  Run *from_ = nullptr;      // of the earliest item, null: the heap; set by earliest()
};

}  // namespace sonde::toolkit
