// The buffers that CUPTI fills.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace sonde::cuda {

// Buffers of one size, recycled. A buffer that is handed out is all zero, so that CUPTI need not clear it on a thread
// of the program. [any]
class BufferPool {
 public:
  // Buffers of `buffer_bytes`, at most `most_bytes` of them together. Takes effect while no buffer exists yet.
  void configure(size_t buffer_bytes, size_t most_bytes);

  // Makes sure that `count` buffers lie ready, their pages touched. On a helper thread.
  void prepare(size_t count);

  // A zeroed buffer; null when the limit is reached and `beyond_limit` is false, or when memory is short.
  uint8_t *take(bool beyond_limit);

  // Returns a buffer whose first `used_bytes` were written.
  void give(uint8_t *buffer, size_t used_bytes);

  // Frees the buffers that lie ready.
  void trim();

  size_t buffer_bytes() const { return buffer_bytes_; }
  size_t made() const;     // buffers that exist
  size_t refused() const;  // times that take returned null

 private:
  uint8_t *make();

  mutable std::mutex mutex_;
  std::vector<uint8_t *> ready_;
  size_t buffer_bytes_ = size_t{8} << 20;
  size_t most_ = 32;
  size_t made_ = 0;
  size_t refused_ = 0;
};

}  // namespace sonde::cuda
