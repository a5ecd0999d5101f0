// Memory for texts that are copied once, never changed and freed together.
#pragma once

#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace sonde::report {

// Copies stay where they are for the arena's life.
class TextArena {
 public:
  // A copy of `text`, followed by a NUL that its size does not count.
  std::string_view copy(std::string_view text) {
    char *const room = take(text.size() + 1);
    if (!text.empty()) std::memcpy(room, text.data(), text.size());
    room[text.size()] = '\0';
    return {room, text.size()};
  }

  // A copy of C text; NULL becomes "".
  const char *copy_c(const char *text) { return copy(text == nullptr ? std::string_view() : text).data(); }

 private:
  static constexpr size_t kBlockBytes = 64 * 1024;

  char *take(size_t bytes) {
    if (bytes > kBlockBytes / 4) {
      // A block of its own, so that the room left in the current one is not given up.
      blocks_.push_back(std::make_unique<char[]>(bytes));
      return blocks_.back().get();
    }
    if (bytes > left_) {
      blocks_.push_back(std::make_unique<char[]>(kBlockBytes));
      cursor_ = blocks_.back().get();
      left_ = kBlockBytes;
    }
    char *const room = cursor_;
    cursor_ += bytes;
    left_ -= bytes;
    return room;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  char *cursor_ = nullptr;
  size_t left_ = 0;
};

}  // namespace sonde::report
