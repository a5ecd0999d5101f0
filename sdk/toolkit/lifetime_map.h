// Address ranges over time: which object an address meant at a moment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace sonde::toolkit {

// The identity of a range is (address, lifetime): an address that is used again is another object. Ranges that are
// alive at one time do not overlap; a new one that overlaps live ones ends them, because their free was not seen.
// Events must come in order of time. Lookups of live ranges cost O(log n); a range of 0 bytes occupies one.
template <typename Value>
class LifetimeMap {
 public:
  static constexpr int64_t kAlive = INT64_MAX;

  struct Object {
    uint64_t id = 0;  // from 1, in order of begin
    uint64_t address = 0;
    uint64_t bytes = 0;
    int64_t begin = 0;
    int64_t end = kAlive;
    Value value{};

    uint64_t extent() const { return bytes == 0 ? 1 : bytes; }
    bool contains(uint64_t at) const { return at >= address && at - address < extent(); }
    bool lives_at(int64_t time) const { return begin <= time && time < end; }
  };

  // `history`: how many ended ranges stay findable, newest first.
  explicit LifetimeMap(size_t history = 0) : history_(history) {}

  // Begins a range and returns the live ones that it replaced, ended at `time`, in order of address.
  std::vector<Object> begin(uint64_t address, uint64_t bytes, int64_t time, Value value) {
    Object object{++last_id_, address, bytes, time, kAlive, std::move(value)};
    std::vector<Object> replaced;
    auto it = live_.lower_bound(address);
    if (it != live_.begin() && std::prev(it)->second.contains(address)) --it;
    while (it != live_.end() && (it->first <= address || object.contains(it->first))) {
      replaced.push_back(retire(it->second, time));
      it = live_.erase(it);
    }
    live_bytes_ += bytes;
    live_.emplace(address, std::move(object));
    return replaced;
  }

  // Ends the live range that begins at `address`; nothing when there is none.
  std::optional<Object> end(uint64_t address, int64_t time) {
    const auto it = live_.find(address);
    if (it == live_.end()) return std::nullopt;
    Object object = retire(it->second, time);
    live_.erase(it);
    return object;
  }

  // The range that held `address` at `time`; null when there was none or it is no longer remembered. Among ended
  // ranges the cost is that of the history whose newest entries end after `time`.
  const Object *find(uint64_t address, int64_t time) const {
    if (const Object *const object = find_live(address); object != nullptr && object->lives_at(time)) return object;
    for (auto it = ended_.rbegin(); it != ended_.rend() && it->end > time; ++it) {
      if (it->contains(address) && it->lives_at(time)) return &*it;
    }
    return nullptr;
  }

  const Object *find_live(uint64_t address) const {
    auto it = live_.upper_bound(address);
    if (it == live_.begin()) return nullptr;
    --it;
    return it->second.contains(address) ? &it->second : nullptr;
  }

  // The live range that holds `address`, else the first one behind it.
  const Object *next_live(uint64_t address) const {
    if (const Object *const object = find_live(address); object != nullptr) return object;
    const auto it = live_.lower_bound(address);
    return it == live_.end() ? nullptr : &it->second;
  }

  uint64_t live_count() const { return live_.size(); }
  uint64_t live_bytes() const { return live_bytes_; }

  // In order of address.
  template <typename Visit>
  void for_each_live(Visit &&visit) const {
    for (const auto &[address, object] : live_) visit(object);
  }

 private:
  Object retire(const Object &object, int64_t time) {
    Object ended = object;
    ended.end = std::max(time, object.begin);
    live_bytes_ -= object.bytes;
    if (history_ != 0) {
      if (ended_.size() == history_) ended_.pop_front();
      ended_.push_back(ended);
    }
    return ended;
  }

  size_t history_;
  uint64_t last_id_ = 0;
  uint64_t live_bytes_ = 0;
  std::map<uint64_t, Object> live_;
  std::deque<Object> ended_;  // in order of end
};

}  // namespace sonde::toolkit
