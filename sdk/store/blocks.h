// Blocks: runs of bytes stored as they are or as a zstd frame, whichever is smaller.
//
// Stored form: varint (stored_bytes * 2 + compressed), then the bytes. The decoded size is known from elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "store/bytes.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace sonde::store {

// Writes blocks; one for each thread.
class BlockWriter {
 public:
  explicit BlockWriter(int level);
  ~BlockWriter();
  BlockWriter(const BlockWriter &) = delete;
  BlockWriter &operator=(const BlockWriter &) = delete;

  void write(Bytes &out, std::span<const uint8_t> bytes);

  // Bytes held.
  uint64_t memory() const;

 private:
  ZSTD_CCtx_s *context_;
  int level_;
  Bytes scratch_;
};

// Reads blocks; one for each thread.
class BlockReader {
 public:
  BlockReader();
  ~BlockReader();
  BlockReader(const BlockReader &) = delete;
  BlockReader &operator=(const BlockReader &) = delete;

  // Reads the next block of `decoded_bytes`: into `scratch` (of that size) when it is compressed; otherwise the
  // result points into the input. Empty, and `in` not good, when it is damaged (or decoded_bytes is 0).
  std::span<const uint8_t> read(ByteReader &in, uint64_t decoded_bytes, uint8_t *scratch);

 private:
  ZSTD_DCtx_s *context_;
};

}  // namespace sonde::store
