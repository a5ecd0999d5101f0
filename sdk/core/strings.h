// Interned strings of this process.
//
// Ids count up from 1; 0 is "". Text never moves and never goes away, so a reader needs no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sonde::core {

class StringTable {
 public:
  static constexpr uint64_t kMaxBytes = 1 << 20;  // longer strings are cut

  StringTable();
  ~StringTable();
  StringTable(const StringTable &) = delete;
  StringTable &operator=(const StringTable &) = delete;

  // [any]
  uint32_t intern(std::string_view text);

  // NUL-terminated text, or an empty view with a null pointer for an unknown id. [any]
  std::string_view view(uint32_t id) const;

  // One more than the greatest id. [any]
  uint32_t size() const { return size_.load(std::memory_order_acquire); }

  // Held around fork so that the child finds a consistent table. A plain mutex: a reader-writer lock may be handed
  // over to a waiting thread that the child does not have.
  std::mutex &mutex() { return mutex_; }

 private:
  static constexpr uint32_t kPageBits = 12;
  static constexpr uint32_t kPages = 1 << 14;  // 2^26 strings

  struct Page {
    std::string_view texts[1 << kPageBits];
  };

  char *store(std::string_view text);

  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, uint32_t> ids_;
  std::unique_ptr<std::atomic<Page *>[]> pages_;
  std::vector<std::unique_ptr<char[]>> arena_;
  uint64_t arena_left_ = 0;
  char *arena_next_ = nullptr;
  std::atomic<uint32_t> size_{1};
};

// The table that sonde_string_t of this process refers to.
StringTable &strings();

}  // namespace sonde::core
