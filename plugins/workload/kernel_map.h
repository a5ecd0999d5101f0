// Rows by kernel: process, device and name.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sonde::workload {

struct KernelKey {
  uint32_t source = 0;
  uint32_t device = 0;
  uint32_t name = 0;  // a number of the analysis' strings

  auto operator<=>(const KernelKey &) const = default;
};

inline uint64_t mix(uint64_t value) {  // the finalizer of splitmix64: every bit depends on every bit
  value ^= value >> 30;
  value *= 0xbf58476d1ce4e5b9u;
  value ^= value >> 27;
  value *= 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

struct KernelKeyHash {
  size_t operator()(const KernelKey &key) const {
    return mix((uint64_t{key.device} << 32 | key.name) + mix(key.source));
  }
};

// At most `limit` rows and one more for each process and device, which names beyond the limit share.
template <typename Row>
class KernelMap {
 public:
  KernelMap(uint64_t limit, uint32_t other_name) : limit_(limit), other_name_(other_name) {}

  // The row, made by make() when it is new.
  template <typename Make>
  Row &get(KernelKey key, Make &&make) {
    if (last_ != nullptr && key == last_key_) return *last_;
    auto it = rows_.find(key);
    if (it == rows_.end()) {
      KernelKey placed = key;
      if (rows_.size() >= limit_) placed.name = other_name_;
      it = rows_.find(placed);
      if (it == rows_.end()) it = rows_.emplace(placed, make()).first;
    }
    last_key_ = key;
    last_ = &it->second;  // nodes stay where they are
    return it->second;
  }
  Row &get(const KernelKey &key) {
    return get(key, [] { return Row(); });
  }

  const Row *find(const KernelKey &key) const {
    const auto it = rows_.find(key);
    return it == rows_.end() ? nullptr : &it->second;
  }

  const std::unordered_map<KernelKey, Row, KernelKeyHash> &rows() const { return rows_; }
  bool empty() const { return rows_.empty(); }

 private:
  uint64_t limit_;
  uint32_t other_name_;
  std::unordered_map<KernelKey, Row, KernelKeyHash> rows_;
  KernelKey last_key_;
  Row *last_ = nullptr;
};

}  // namespace sonde::workload
