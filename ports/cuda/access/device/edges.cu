// Kernels that turn the map of touched bytes into edges: where touched bytes begin and end, one list for each kind.
//
// An entry of the directory stands for 64 KiB of one range. Kinds are laid one after the other: index of (kind, entry)
// is kind * entries + entry. First the edges of each are counted, then the counts are summed up, then the edges are
// written at their places, as offsets from the begin of the first 64 KiB of their range.
#include "state.h"

namespace sonde::cuda::access {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kWords = kMapBytes / 4 / kThreads;  // of 4 map bytes = 16 bits, for a thread

// The low halves of the 4 bytes side by side: bit i is the i-th byte of 16.
__device__ uint32_t touched_bits(uint32_t map) {
  return (map & 0xf) | (map >> 4 & 0xf0) | (map >> 8 & 0xf00) | (map >> 12 & 0xf000);
}

__device__ const uint32_t *map_of(const uint32_t *directory, const uint8_t *chunks, uint64_t entry, uint32_t kind) {
  const uint32_t chunk = directory[entry];
  if (chunk == 0 || chunk == kChunkRefused || chunk == kChunkPending) return nullptr;
  return reinterpret_cast<const uint32_t *>(chunks + static_cast<uint64_t>(chunk - 1) * kChunkBytes + kind * kMapBytes);
}

// Whether the byte before an entry was touched; `first` marks entries that begin a range.
__device__ uint32_t bit_before(const uint32_t *directory, const uint8_t *first, const uint8_t *chunks, uint64_t entry,
                               uint32_t kind) {
  if (first[entry] != 0) return 0;
  const uint32_t *const map = map_of(directory, chunks, entry - 1, kind);
  return map == nullptr ? 0 : touched_bits(map[kMapBytes / 4 - 1]) >> 15;
}

// Sum over the threads before this one; `total` over all.
__device__ uint32_t sum_before(uint32_t value, uint32_t *total) {
  __shared__ uint32_t sums[kThreads];
  sums[threadIdx.x] = value;
  __syncthreads();
  for (uint32_t step = 1; step < kThreads; step *= 2) {
    const uint32_t add = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += add;
    __syncthreads();
  }
  *total = sums[kThreads - 1];
  const uint32_t before = sums[threadIdx.x] - value;
  __syncthreads();
  return before;
}

}  // namespace
}  // namespace sonde::cuda::access

using namespace sonde::cuda::access;

// Edges and touched bytes of each (kind, entry). Grid: (entries, 2), 256 threads.
extern "C" __global__ void sonde_count_edges(const uint32_t *directory, const uint8_t *first, const uint8_t *chunks,
                                             uint64_t entries, uint32_t *edges, uint32_t *touched) {
  const uint64_t entry = blockIdx.x;
  const uint32_t kind = blockIdx.y;
  const uint32_t *const map = map_of(directory, chunks, entry, kind);
  const uint32_t at_begin = bit_before(directory, first, chunks, entry, kind);
  uint32_t count = 0;
  uint32_t bytes = 0;
  if (map != nullptr) {
    uint32_t before = threadIdx.x == 0 ? at_begin : touched_bits(map[threadIdx.x * kWords - 1]) >> 15;
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint32_t bits = touched_bits(map[threadIdx.x * kWords + i]);
      count += __popc((bits ^ (bits << 1 | before)) & 0xffff);
      bytes += __popc(bits);
      before = bits >> 15;
    }
  } else if (threadIdx.x == 0) {
    count = at_begin;  // the run before ends here
  }
  uint32_t all_edges;
  uint32_t all_bytes;
  (void)sum_before(count, &all_edges);
  (void)sum_before(bytes, &all_bytes);
  if (threadIdx.x == 0) {
    edges[kind * entries + entry] = all_edges;
    touched[kind * entries + entry] = all_bytes;
  }
}

// Turns counts into places: places[i] is the sum of counts[0..i), places[count] the sum of all. One block of 256 threads.
extern "C" __global__ void sonde_sum_edges(const uint32_t *counts, uint64_t *places, uint64_t count) {
  uint64_t base = 0;
  for (uint64_t begin = 0; begin < count; begin += kThreads) {
    const uint64_t index = begin + threadIdx.x;
    uint32_t total;
    const uint32_t before = sum_before(index < count ? counts[index] : 0, &total);
    if (index < count) places[index] = base + before;
    base += total;
  }
  if (threadIdx.x == 0) places[count] = base;
}

// Writes the edges of entries whose place lies in [from, to). `starts` is the offset of each entry within its range.
// Grid and block as in sonde_count_edges.
extern "C" __global__ void sonde_write_edges(const uint32_t *directory, const uint8_t *first, const uint8_t *chunks,
                                             uint64_t entries, const uint64_t *places, const int64_t *starts,
                                             uint64_t from, uint64_t to, int64_t *out) {
  const uint64_t entry = blockIdx.x;
  const uint32_t kind = blockIdx.y;
  const uint64_t place = places[kind * entries + entry];
  const uint64_t end = places[kind * entries + entry + 1];
  if (place == end || end <= from || place >= to) return;
  const uint32_t *const map = map_of(directory, chunks, entry, kind);
  const uint32_t at_begin = bit_before(directory, first, chunks, entry, kind);
  uint32_t count = 0;
  uint32_t before = 0;
  if (map != nullptr) {
    before = threadIdx.x == 0 ? at_begin : touched_bits(map[threadIdx.x * kWords - 1]) >> 15;
    uint32_t last = before;
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint32_t bits = touched_bits(map[threadIdx.x * kWords + i]);
      count += __popc((bits ^ (bits << 1 | last)) & 0xffff);
      last = bits >> 15;
    }
  } else if (threadIdx.x == 0) {
    count = at_begin;
  }
  uint32_t total;
  uint64_t index = place + sum_before(count, &total);
  if (map == nullptr) {
    if (count != 0 && index >= from && index < to) out[index - from] = starts[entry];
    return;
  }
  for (uint32_t i = 0; i < kWords; ++i) {
    const uint32_t bits = touched_bits(map[threadIdx.x * kWords + i]);
    uint32_t changed = (bits ^ (bits << 1 | before)) & 0xffff;
    before = bits >> 15;
    while (changed != 0) {
      const uint32_t bit = __ffs(changed) - 1;
      changed &= changed - 1;
      if (index >= from && index < to) {
        out[index - from] = starts[entry] + static_cast<int64_t>((threadIdx.x * kWords + i) * 16 + bit);
      }
      ++index;
    }
  }
}
