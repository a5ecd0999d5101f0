// The most at one time of intervals that are not known to end yet.
#pragma once

#include <cstdint>
#include <vector>

namespace sonde::toolkit {

// How much memory do objects need that are needed from their first to their last use? Whether an object is needed now
// shows only when it is used again, so each use stretches the object's interval to the present, and the sums of all moments
// since its last use grow. Such moments are told apart only where the last use of an object that may still be used lies
// between them: of the others the greatest sum is kept, because whatever comes adds the same to all of them.
//
//   peak.open(tag);                 // a moment
//   peak.use(place_of_a, bytes_a);  // uses within it
//   peak.close();
//   peak.leave(place_of_a);         // will not be used any more
//   peak.greatest();
//
// The result is exact. use, leave: O(1), close: O(1) for each object used, greatest: O(objects that may still be used).
// Memory: 40 bytes an object that may still be used.
class GrowingPeak {
 public:
  // Where an object was used last.
  static constexpr uint32_t kNever = UINT32_MAX;

  struct Greatest {
    uint64_t value = 0;
    uint64_t tag = 0;  // of the first moment that reached it among those that are told apart
  };

  void open(uint64_t tag) {
    const uint32_t node = take();
    nodes_[node] = {-tail_sum_, tag, tail_, kNever, 0};
    if (tail_ != kNever) {
      nodes_[tail_].next = node;
    } else {
      head_ = node;
    }
    tail_ = node;
    tail_sum_ = 0;
  }

  void use(uint32_t &place, uint64_t amount) {
    if (place == tail_) return;
    const auto signed_amount = static_cast<int64_t>(amount);
    if (place == kNever) {
      nodes_[tail_].step += signed_amount;
    } else {
      nodes_[nodes_[place].next].step += signed_amount;
      if (--nodes_[place].objects == 0) empty_.push_back(place);
    }
    tail_sum_ += signed_amount;
    ++nodes_[tail_].objects;
    place = tail_;
  }

  void close() {
    for (const uint32_t node : empty_) join_with_next(node);
    empty_.clear();
    const uint32_t before = tail_ == kNever ? kNever : nodes_[tail_].before;
    if (before != kNever && nodes_[before].objects == 0) join_with_next(before);
  }

  void leave(uint32_t &place) {
    if (place == kNever) return;
    const uint32_t node = place;
    place = kNever;
    if (--nodes_[node].objects == 0 && nodes_[node].next != kNever) join_with_next(node);
  }

  Greatest greatest() const {
    Greatest found;
    int64_t sum = 0;
    for (uint32_t node = head_; node != kNever; node = nodes_[node].next) {
      sum += nodes_[node].step;
      if (sum > 0 && static_cast<uint64_t>(sum) > found.value) found = {static_cast<uint64_t>(sum), nodes_[node].tag};
    }
    return found;
  }

 private:
  // The moments after the node before it up to its own: what their greatest sum is more than that of the node before.
  struct Node {
    int64_t step = 0;
    uint64_t tag = 0;
    uint32_t before = kNever;
    uint32_t next = kNever;
    uint32_t objects = 0;  // last used in this node's moment
  };

  uint32_t take() {
    if (free_.empty()) {
      nodes_.emplace_back();
      return static_cast<uint32_t>(nodes_.size() - 1);
    }
    const uint32_t node = free_.back();
    free_.pop_back();
    return node;
  }

  void join_with_next(uint32_t node) {
    const uint32_t next = nodes_[node].next;
    if (next == kNever) return;
    Node &kept = nodes_[next];
    const int64_t step = kept.step;
    if (step <= 0) {  // the earlier sum is the greater one
      kept.tag = nodes_[node].tag;
      if (kept.next != kNever) {
        nodes_[kept.next].step += step;
      } else {
        tail_sum_ -= step;
      }
    }
    kept.step = nodes_[node].step + (step > 0 ? step : 0);
    kept.before = nodes_[node].before;
    if (kept.before != kNever) {
      nodes_[kept.before].next = next;
    } else {
      head_ = next;
    }
    free_.push_back(node);
  }

  std::vector<Node> nodes_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> empty_;  // by uses of the open moment
  uint32_t head_ = kNever;
  uint32_t tail_ = kNever;
  int64_t tail_sum_ = 0;
};

}  // namespace sonde::toolkit
