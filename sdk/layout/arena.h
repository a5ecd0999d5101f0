// Where layouts live, and why the last operation failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sonde::layout {

enum class Fault : uint8_t {
  kNone,
  kInvalid,      // the arguments do not fit the operation
  kNoSolution,   // they do, and the answer is that there is none
  kUnsupported,  // an answer may exist, but not within the limits or in this form
  kFull,         // the arena's cap
  kParse,        // text that cannot be understood
  kCorrupt,      // bytes that are not what they should be
};

// Memory in blocks, handed out by moving a pointer. Used by one thread at a time.
class Arena {
 public:
  static constexpr size_t kBlockBytes = 64 * 1024;

  explicit Arena(uint64_t cap_bytes = UINT64_MAX) : cap_(cap_bytes) {}
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  // Room of `bytes`, 8-aligned, or nullptr with the fault kFull.
  void *allocate(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (static_cast<size_t>(limit_ - cursor_) < bytes) return allocate_slowly(bytes);
    void *const room = cursor_;
    cursor_ += bytes;
    return room;
  }

  // Gives back the end of the last allocation, of which `bytes` stay.
  void shrink_last(void *room, size_t bytes) { cursor_ = static_cast<uint8_t *>(room) + ((bytes + 7) & ~size_t{7}); }

  // A place to return to: everything allocated after it becomes free by `release`.
  struct Mark {
    size_t block;
    uint8_t *cursor;
  };
  Mark mark() const { return {current_, cursor_}; }
  void release(const Mark &mark);
  // Whether `mark` may be one of this arena's: it points into its block, or to the beginning of all.
  bool is_mark(const Mark &mark) const;
  void reset() { release({0, blocks_.empty() ? nullptr : blocks_[0].memory.get()}); }

  uint64_t bytes() const { return total_; }  // reserved from the system

  // Records why an operation fails; the text is built only then.
  void fail(Fault fault, std::string text) {
    fault_ = fault;
    text_ = std::move(text);
    literal_ = nullptr;
  }
  // The same where the text never changes, without a copy: a miss may be the usual answer.
  template <size_t bytes>
  void fail(Fault fault, const char (&text)[bytes]) {
    fault_ = fault;
    literal_ = text;
  }
  Fault fault() const { return fault_; }
  std::string text() const { return literal_ != nullptr ? std::string(literal_) : text_; }
  const char *message() const { return literal_ != nullptr ? literal_ : text_.c_str(); }

 private:
  struct Block {
    std::unique_ptr<uint8_t[]> memory;
    size_t bytes;
  };

  void *allocate_slowly(size_t bytes);
  void enter(size_t block) {
    current_ = block;
    cursor_ = blocks_[block].memory.get();
    limit_ = cursor_ + blocks_[block].bytes;
  }

  std::vector<Block> blocks_;
  size_t current_ = 0;
  uint8_t *cursor_ = nullptr;
  uint8_t *limit_ = nullptr;
  uint64_t total_ = 0;
  uint64_t cap_;
  Fault fault_ = Fault::kNone;
  std::string text_;
  const char *literal_ = nullptr;
};

}  // namespace sonde::layout
