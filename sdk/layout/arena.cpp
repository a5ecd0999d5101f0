#include "layout/arena.h"

#include <algorithm>
#include <new>

namespace sonde::layout {

void *Arena::allocate_slowly(size_t bytes) {
  // A block that a release left behind is used again when it is large enough.
  for (size_t next = cursor_ == nullptr ? 0 : current_ + 1; next < blocks_.size(); ++next) {
    enter(next);
    if (blocks_[next].bytes >= bytes) return allocate(bytes);
  }
  const size_t size = std::max(kBlockBytes, bytes);
  if (size > cap_ || total_ > cap_ - size) {
    fail(Fault::kFull, "the arena is full: its cap is " + std::to_string(cap_) + " bytes");
    return nullptr;
  }
  auto *const memory = new (std::nothrow) uint8_t[size];
  if (memory == nullptr) {
    fail(Fault::kFull, "out of memory");
    return nullptr;
  }
  blocks_.push_back({std::unique_ptr<uint8_t[]>(memory), size});
  total_ += size;
  enter(blocks_.size() - 1);
  return allocate(bytes);
}

bool Arena::is_mark(const Mark &mark) const {
  if (mark.cursor == nullptr) return true;
  if (mark.block > current_ || mark.block >= blocks_.size()) return false;
  const Block &block = blocks_[mark.block];
  return mark.cursor >= block.memory.get() && mark.cursor <= block.memory.get() + block.bytes;
}

void Arena::release(const Mark &mark) {
  if (blocks_.empty()) return;
  enter(mark.cursor == nullptr ? 0 : mark.block);
  if (mark.cursor != nullptr) cursor_ = mark.cursor;
}

}  // namespace sonde::layout
