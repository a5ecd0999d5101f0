#include "core/strings.h"

#include <cstring>

namespace sonde::core {

StringTable::StringTable() : pages_(new std::atomic<Page *>[kPages]) {
  for (uint32_t i = 0; i < kPages; ++i) pages_[i].store(nullptr, std::memory_order_relaxed);
  auto *const first = new Page;
  first->texts[0] = std::string_view("", 0);
  pages_[0].store(first, std::memory_order_release);
  ids_.emplace(first->texts[0], 0);
}

StringTable::~StringTable() {
  for (uint32_t i = 0; i < kPages; ++i) delete pages_[i].load(std::memory_order_relaxed);
}

uint32_t StringTable::intern(std::string_view text) {
  text = text.substr(0, kMaxBytes);
  const std::lock_guard lock(mutex_);
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  const uint32_t id = size_.load(std::memory_order_relaxed);
  const uint32_t page_index = id >> kPageBits;
  if (page_index >= kPages) return 0;  // 2^26 distinct strings: later ones read as ""
  Page *page = pages_[page_index].load(std::memory_order_relaxed);
  if (page == nullptr) {
    page = new Page;
    pages_[page_index].store(page, std::memory_order_release);
  }
  const std::string_view kept(store(text), text.size());
  page->texts[id & ((1u << kPageBits) - 1)] = kept;
  ids_.emplace(kept, id);
  size_.store(id + 1, std::memory_order_release);
  return id;
}

std::string_view StringTable::view(uint32_t id) const {
  if (id >= size()) return {};
  return pages_[id >> kPageBits].load(std::memory_order_acquire)->texts[id & ((1u << kPageBits) - 1)];
}

char *StringTable::store(std::string_view text) {
  constexpr uint64_t kBlock = 64 * 1024;
  const uint64_t bytes = text.size() + 1;
  char *place = nullptr;
  if (bytes > kBlock / 4) {
    arena_.push_back(std::make_unique<char[]>(bytes));
    place = arena_.back().get();
  } else {
    if (bytes > arena_left_) {
      arena_.push_back(std::make_unique<char[]>(kBlock));
      arena_next_ = arena_.back().get();
      arena_left_ = kBlock;
    }
    place = arena_next_;
    arena_next_ += bytes;
    arena_left_ -= bytes;
  }
  if (!text.empty()) std::memcpy(place, text.data(), text.size());
  place[text.size()] = '\0';
  return place;
}

StringTable &strings() {
  static StringTable *const table = new StringTable;
  return *table;
}

}  // namespace sonde::core
