#include "store/blocks.h"

#include <zstd.h>

#include <new>

namespace sonde::store {
namespace {

// A frame costs a decoder about a microsecond, so it must save something: at least 1/32 and 16 bytes.
constexpr size_t worth(size_t bytes) { return bytes - bytes / 32 - 16; }

}  // namespace

BlockWriter::BlockWriter(int level) : context_(ZSTD_createCCtx()), level_(level) {
  if (context_ == nullptr) throw std::bad_alloc();
}

BlockWriter::~BlockWriter() { ZSTD_freeCCtx(context_); }

void BlockWriter::write(Bytes &out, std::span<const uint8_t> bytes) {
  if (bytes.size() > 32) {
    if (scratch_.size() < bytes.size()) scratch_.resize(bytes.size());
    const size_t stored =
        ZSTD_compressCCtx(context_, scratch_.data(), worth(bytes.size()), bytes.data(), bytes.size(), level_);
    if (ZSTD_isError(stored) == 0) {
      put_varint(out, uint64_t{stored} * 2 + 1);
      put_bytes(out, scratch_.data(), stored);
      return;
    }
  }
  put_varint(out, uint64_t{bytes.size()} * 2);
  put_bytes(out, bytes.data(), bytes.size());
}

uint64_t BlockWriter::memory() const { return ZSTD_sizeof_CCtx(context_) + scratch_.capacity(); }

BlockReader::BlockReader() : context_(ZSTD_createDCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
}

BlockReader::~BlockReader() { ZSTD_freeDCtx(context_); }

std::span<const uint8_t> BlockReader::read(ByteReader &in, uint64_t decoded_bytes, uint8_t *scratch) {
  const uint64_t word = in.varint();
  const std::span<const uint8_t> stored = in.bytes(word / 2);
  if (!in.good()) return {};
  if (word % 2 == 0) {
    if (stored.size() == decoded_bytes) return stored;
  } else {
    const size_t size = ZSTD_decompressDCtx(context_, scratch, decoded_bytes, stored.data(), stored.size());
    if (ZSTD_isError(size) == 0 && size == decoded_bytes) return {scratch, decoded_bytes};
  }
  in.fail();
  return {};
}

}  // namespace sonde::store
