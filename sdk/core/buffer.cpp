#include "core/buffer.h"

#include <sys/mman.h>

#include <bit>
#include <chrono>
#include <new>

namespace sonde::core {
namespace {

constexpr uint64_t kSmallestBuffer = 4096;

Buffer *map_buffer(BufferPool *pool, uint64_t total) {
  void *const memory =
      ::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto *const buffer = new (memory) Buffer;
  buffer->pool = pool;
  buffer->capacity = total - Buffer::kHeaderBytes;
  return buffer;
}

uint64_t total_bytes(const Buffer *buffer) { return buffer->capacity + Buffer::kHeaderBytes; }

void unmap_buffer(Buffer *buffer) { ::munmap(static_cast<void *>(buffer), total_bytes(buffer)); }

}  // namespace

static_assert(sizeof(Buffer) <= Buffer::kHeaderBytes);

void BufferRef::reset() {
  if (buffer_ == nullptr) return;
  if (buffer_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) buffer_->pool->recycle(buffer_);
  buffer_ = nullptr;
}

BufferPool::~BufferPool() {
  for (Buffer *buffer : idle_) unmap_buffer(buffer);
}

BufferRef BufferPool::acquire(uint64_t bytes, uint64_t wait_ns) {
  const uint64_t total = std::bit_ceil(std::max(bytes + Buffer::kHeaderBytes, kSmallestBuffer));
  std::unique_lock lock(mutex_);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min<uint64_t>(wait_ns, 1ull << 60));
  for (;;) {
    for (size_t i = idle_.size(); i-- > 0;) {
      if (total_bytes(idle_[i]) != total) continue;
      Buffer *const buffer = idle_[i];
      idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
      buffer->references.store(1, std::memory_order_relaxed);
      return BufferRef(buffer);
    }
    if (trim(total)) break;
    if (wait_ns == 0 || room_.wait_until(lock, deadline) == std::cv_status::timeout) {
      if (!trim(total)) return {};
    }
  }
  Buffer *const buffer = map_buffer(this, total);
  if (buffer == nullptr) return {};
  buffer->references.store(1, std::memory_order_relaxed);
  used_.fetch_add(total, std::memory_order_relaxed);
  note_peak();
  return BufferRef(buffer);
}

bool BufferPool::trim(uint64_t needed) {
  while (used_.load(std::memory_order_relaxed) + needed > cap_ && !idle_.empty()) {
    Buffer *const buffer = idle_.back();
    idle_.pop_back();
    used_.fetch_sub(total_bytes(buffer), std::memory_order_relaxed);
    unmap_buffer(buffer);
  }
  return used_.load(std::memory_order_relaxed) + needed <= cap_;
}

void BufferPool::note_peak() {
  const uint64_t now = used_.load(std::memory_order_relaxed);
  uint64_t seen = peak_.load(std::memory_order_relaxed);
  while (now > seen && !peak_.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
}

void BufferPool::reserve(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  trim(bytes);
  used_.fetch_add(bytes, std::memory_order_relaxed);
  note_peak();
}

void BufferPool::unreserve(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    used_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  room_.notify_all();
}

void BufferPool::recycle(Buffer *buffer) {
  {
    const std::lock_guard lock(mutex_);
    if (used_.load(std::memory_order_relaxed) > cap_) {
      used_.fetch_sub(total_bytes(buffer), std::memory_order_relaxed);
      unmap_buffer(buffer);
    } else {
      idle_.push_back(buffer);
    }
  }
  room_.notify_all();
}

}  // namespace sonde::core
