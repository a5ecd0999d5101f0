// Reference-counted byte buffers whose memory counts against a session's cap.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace sonde::core {

class BufferPool;

// Memory of one batch. Made by a pool, freed or kept for reuse when the last reference goes.
struct Buffer {
  BufferPool *pool;
  uint64_t capacity;  // bytes of data()
  std::atomic<uint32_t> references;

  uint8_t *data() { return reinterpret_cast<uint8_t *>(this) + kHeaderBytes; }
  static constexpr uint64_t kHeaderBytes = 64;
};

// Owning reference to a Buffer.
class BufferRef {
 public:
  BufferRef() = default;
  explicit BufferRef(Buffer *adopted) : buffer_(adopted) {}
  BufferRef(const BufferRef &other) : buffer_(other.buffer_) {
    if (buffer_ != nullptr) buffer_->references.fetch_add(1, std::memory_order_relaxed);
  }
  BufferRef(BufferRef &&other) noexcept : buffer_(other.buffer_) { other.buffer_ = nullptr; }
  BufferRef &operator=(BufferRef other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~BufferRef() { reset(); }

  void reset();
  Buffer *get() const { return buffer_; }
  Buffer *release() {
    Buffer *const buffer = buffer_;
    buffer_ = nullptr;
    return buffer;
  }
  uint8_t *data() const { return buffer_->data(); }
  explicit operator bool() const { return buffer_ != nullptr; }

 private:
  Buffer *buffer_ = nullptr;
};

// Hands out buffers up to a cap. Sizes are rounded up to powers of two so that freed ones fit again; idle ones are
// given back to the system when the pool would pass its cap.
class BufferPool {
 public:
  explicit BufferPool(uint64_t cap) : cap_(cap) {}
  ~BufferPool();
  BufferPool(const BufferPool &) = delete;
  BufferPool &operator=(const BufferPool &) = delete;

  // A buffer of at least `bytes`, or none when the cap does not allow it within `wait_ns`. [any]
  BufferRef acquire(uint64_t bytes, uint64_t wait_ns);

  // Counts memory that lies elsewhere (rings, queues) against the cap; may pass it, then acquire waits. [any]
  void reserve(uint64_t bytes);
  void unreserve(uint64_t bytes);

  uint64_t cap() const { return cap_; }
  uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  uint64_t peak() const { return peak_.load(std::memory_order_relaxed); }

  // Takes back a buffer without references. [any]
  void recycle(Buffer *buffer);

 private:
  bool trim(uint64_t needed);  // frees idle buffers; true when `needed` fits now
  void note_peak();

  const uint64_t cap_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::vector<Buffer *> idle_;
  std::atomic<uint64_t> used_{0};  // idle buffers included
  std::atomic<uint64_t> peak_{0};
};

}  // namespace sonde::core
