// Consecutive indices share their high bits: a block of 2^9 values is one small table, which stays in the first-level
// cache, xor-ed with the value of the block. The loop over a block has a fixed length, so that it becomes vector code.
// Arbitrary indices go through tables of bytes. Guarded by the benchmark `layout` (apply 2^14).
#include "layout/bulk.h"

#include <algorithm>

namespace sonde::layout {
namespace {

constexpr uint32_t kBlockBits = 9;
constexpr uint64_t kBlock = uint64_t{1} << kBlockBits;

template <typename T>
inline __attribute__((always_inline)) void xor_blocks(const Layout &layout, const T *small, uint64_t first,
                                                      uint64_t blocks, T *out) {
  for (uint64_t block = 0; block < blocks; ++block) {
    const T value = static_cast<T>(layout.apply(first + block * kBlock));
    T *const target = out + block * kBlock;
    for (uint64_t i = 0; i < kBlock; ++i) target[i] = small[i] ^ value;
  }
}

template <typename T>
void xor_blocks_plain(const Layout &layout, const T *small, uint64_t first, uint64_t blocks, T *out) {
  xor_blocks(layout, small, first, blocks, out);
}

#if defined(__x86_64__)
template <typename T>
__attribute__((target("avx2"))) void xor_blocks_wide(const Layout &layout, const T *small, uint64_t first,
                                                     uint64_t blocks, T *out) {
  xor_blocks(layout, small, first, blocks, out);
}
bool has_wide() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

template <typename T>
void fill(const Layout &layout, uint64_t first, uint64_t count, T *out) {
  // Up to the first whole block, then whole blocks, then the rest.
  const uint64_t head = std::min(count, (kBlock - (first & (kBlock - 1))) & (kBlock - 1));
  for (uint64_t i = 0; i < head; ++i) out[i] = static_cast<T>(layout.apply(first + i));
  first += head;
  count -= head;
  out += head;
  const uint64_t blocks = count / kBlock;
  if (blocks != 0) {
    alignas(64) T small[kBlock];  // differences from a block's first value
    small[0] = 0;
    const auto columns = layout.columns();
    for (uint32_t bit = 0; bit < kBlockBits; ++bit) {
      const T column = static_cast<T>(columns[bit]);
      for (uint64_t i = 0; i < uint64_t{1} << bit; ++i) small[(uint64_t{1} << bit) + i] = small[i] ^ column;
    }
#if defined(__x86_64__)
    if (has_wide()) {
      xor_blocks_wide(layout, small, first, blocks, out);
    } else {
      xor_blocks_plain(layout, small, first, blocks, out);
    }
#else
    xor_blocks_plain(layout, small, first, blocks, out);
#endif
    first += blocks * kBlock;
    count -= blocks * kBlock;
    out += blocks * kBlock;
  }
  for (uint64_t i = 0; i < count; ++i) out[i] = static_cast<T>(layout.apply(first + i));
}

}  // namespace

void fill_table(const Layout &layout, uint64_t first, uint64_t count, uint64_t *out) {
  fill(layout, first, count, out);
}

void fill_table(const Layout &layout, uint64_t first, uint64_t count, uint32_t *out) {
  fill(layout, first, count, out);
}

void apply_many(const Layout &layout, std::span<const uint64_t> in, uint64_t *out) {
  constexpr size_t kWorthTables = 1024;
  if (in.size() < kWorthTables) {
    for (size_t i = 0; i < in.size(); ++i) out[i] = layout.apply(in[i]);
    return;
  }
  uint64_t tables[8][256];
  const uint32_t bytes = (layout.in_bits() + 7) / 8;
  for (uint32_t byte = 0; byte < bytes; ++byte) {
    tables[byte][0] = byte == 0 ? layout.offset() : 0;
    for (uint32_t bit = 0; bit < 8; ++bit) {
      const uint32_t column = byte * 8 + bit;
      const uint64_t value = column < layout.in_bits() ? layout.columns()[column] : 0;
      for (uint32_t i = 0; i < 1u << bit; ++i) tables[byte][(1u << bit) + i] = tables[byte][i] ^ value;
    }
  }
  for (size_t i = 0; i < in.size(); ++i) {
    uint64_t rest = in[i];
    uint64_t value = bytes == 0 ? layout.offset() : 0;
    for (uint32_t byte = 0; byte < bytes; ++byte, rest >>= 8) value ^= tables[byte][rest & 255];
    out[i] = value;
  }
}

}  // namespace sonde::layout
