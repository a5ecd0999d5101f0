#include "memory.h"

#include <cstdlib>

namespace sonde::lua {

void *Memory::allocate(void *user, void *block, size_t old_size, size_t new_size) {
  auto &memory = *static_cast<Memory *>(user);
  const size_t before = block == nullptr ? 0 : old_size;  // for a new block old_size is the kind of object
  if (new_size == 0) {
    std::free(block);
    memory.used_ -= before;
    return nullptr;
  }
  const uint64_t after = memory.used_ - before + new_size;
  void *const moved = new_size > before && after > memory.cap_ ? nullptr : std::realloc(block, new_size);
  if (moved == nullptr) {
    if (new_size <= before) return block;
    if (memory.on_refusal != nullptr) memory.on_refusal(memory.refusal_user);
    return nullptr;
  }
  memory.used_ = after;
  if (after > memory.peak_) memory.peak_ = after;
  return moved;
}

bool Memory::charge(int64_t bytes) {
  used_ += static_cast<uint64_t>(bytes);
  if (used_ > peak_) peak_ = used_;
  return used_ <= cap_;
}

}  // namespace sonde::lua
