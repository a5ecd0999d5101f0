// The counting allocator of a script: what Lua and its objects hold never passes the cap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::lua {

class Memory {
 public:
  explicit Memory(uint64_t cap) : cap_(cap) {}
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  // A lua_Alloc; `user` is the Memory. Growth is counted by its difference; shrinking never fails.
  static void *allocate(void *user, void *block, size_t old_size, size_t new_size);

  // Counts memory that lies outside Lua; false: now over the cap.
  bool charge(int64_t bytes);

  uint64_t used() const { return used_; }
  uint64_t peak() const { return peak_; }
  uint64_t cap() const { return cap_; }

  // Called at each refusal, before Lua learns of it. May be null.
  void (*on_refusal)(void *user) = nullptr;
  void *refusal_user = nullptr;

 private:
  const uint64_t cap_;
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
};

}  // namespace sonde::lua
