#include "buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace sonde::cuda {

namespace {

// Pages come zeroed from the system, so a fresh buffer costs no clearing.
uint8_t *map_pages(size_t bytes) {
  void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<uint8_t *>(pages);
}

}  // namespace

void BufferPool::configure(size_t buffer_bytes, size_t most_bytes) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (made_ == 0) buffer_bytes_ = buffer_bytes;
  most_ = std::max<size_t>(2, most_bytes / buffer_bytes_);
}

uint8_t *BufferPool::make() {
  uint8_t *buffer = map_pages(buffer_bytes_);
  if (buffer != nullptr) ++made_;
  return buffer;
}

void BufferPool::prepare(size_t count) {
  constexpr size_t kPage = 4096;
  for (;;) {
    uint8_t *buffer = nullptr;
    {
      std::lock_guard<std::mutex> hold(mutex_);
      if (ready_.size() >= count || made_ >= most_) return;
      buffer = make();
    }
    if (buffer == nullptr) return;
    for (size_t i = 0; i < buffer_bytes_; i += kPage) static_cast<volatile uint8_t *>(buffer)[i] = 0;
    std::lock_guard<std::mutex> hold(mutex_);
    ready_.push_back(buffer);
  }
}

uint8_t *BufferPool::take(bool beyond_limit) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (!ready_.empty()) {
    uint8_t *buffer = ready_.back();
    ready_.pop_back();
    return buffer;
  }
  uint8_t *buffer = made_ < most_ || beyond_limit ? make() : nullptr;
  if (buffer == nullptr) ++refused_;
  return buffer;
}

void BufferPool::give(uint8_t *buffer, size_t used_bytes) {
  if (buffer == nullptr) return;
  std::memset(buffer, 0, std::min(used_bytes, buffer_bytes_));
  std::lock_guard<std::mutex> hold(mutex_);
  if (made_ > most_) {
    munmap(buffer, buffer_bytes_);
    --made_;
  } else {
    ready_.push_back(buffer);
  }
}

void BufferPool::trim() {
  std::lock_guard<std::mutex> hold(mutex_);
  for (uint8_t *buffer : ready_) munmap(buffer, buffer_bytes_);
  made_ -= ready_.size();
  ready_.clear();
}

size_t BufferPool::made() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return made_;
}

size_t BufferPool::refused() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return refused_;
}

}  // namespace sonde::cuda
