#include "fake_edges.h"

#include <cstring>
#include <vector>

#include "device/state.h"

namespace sonde::cuda::access::test {

namespace {

template <typename Value>
Value argument(void **arguments, int number) {
  Value value;
  std::memcpy(&value, arguments[number], sizeof(value));
  return value;
}

constexpr uint64_t kChunk = uint64_t{1} << kChunkShift;

// Where the directory's entries lead.
struct Map {
  const uint32_t *directory;
  const uint8_t *first;
  const uint8_t *chunks;

  bool has_map(uint64_t entry) const {
    return directory[entry] != 0 && directory[entry] != kChunkPending && directory[entry] != kChunkRefused;
  }
  bool touched(uint64_t entry, uint32_t kind, uint64_t byte) const {
    if (!has_map(entry)) return false;
    return (chunks[(directory[entry] - 1) * uint64_t{kChunkBytes} + kind * kMapBytes + byte / 4] >> byte % 4 & 1) != 0;
  }
  bool before(uint64_t entry, uint32_t kind, uint64_t byte) const {
    if (byte != 0) return touched(entry, kind, byte - 1);
    return first[entry] == 0 && touched(entry - 1, kind, kChunk - 1);
  }
  template <typename Give>
  void edges(uint64_t entry, uint32_t kind, Give &&give) const {
    // In an entry without a map a run can only end.
    for (uint64_t byte = 0; byte < (has_map(entry) ? kChunk : 1); ++byte) {
      if (touched(entry, kind, byte) != before(entry, kind, byte)) give(byte);
    }
  }
};

std::function<void()> count_edges(uint32_t grid, uint32_t kinds, void **arguments) {
  const Map map = {argument<const uint32_t *>(arguments, 0), argument<const uint8_t *>(arguments, 1),
                   argument<const uint8_t *>(arguments, 2)};
  const auto entries = argument<uint64_t>(arguments, 3);
  auto *const edges = argument<uint32_t *>(arguments, 4);
  auto *const touched = argument<uint32_t *>(arguments, 5);
  return [=] {
    for (uint32_t kind = 0; kind < kinds; ++kind) {
      for (uint64_t entry = 0; entry < grid; ++entry) {
        uint32_t count = 0;
        uint32_t bytes = 0;
        map.edges(entry, kind, [&](uint64_t) { ++count; });
        for (uint64_t byte = 0; map.has_map(entry) && byte < kChunk; ++byte)
          bytes += map.touched(entry, kind, byte) ? 1 : 0;
        edges[kind * entries + entry] = count;
        touched[kind * entries + entry] = bytes;
      }
    }
  };
}

std::function<void()> sum_edges(uint32_t, uint32_t, void **arguments) {
  const auto *const counts = argument<const uint32_t *>(arguments, 0);
  auto *const places = argument<uint64_t *>(arguments, 1);
  const auto count = argument<uint64_t>(arguments, 2);
  return [=] {
    places[0] = 0;
    for (uint64_t i = 0; i < count; ++i) places[i + 1] = places[i] + counts[i];
  };
}

std::function<void()> write_edges(uint32_t grid, uint32_t kinds, void **arguments) {
  const Map map = {argument<const uint32_t *>(arguments, 0), argument<const uint8_t *>(arguments, 1),
                   argument<const uint8_t *>(arguments, 2)};
  const auto entries = argument<uint64_t>(arguments, 3);
  const auto *const places = argument<const uint64_t *>(arguments, 4);
  const auto *const starts = argument<const int64_t *>(arguments, 5);
  const auto from = argument<uint64_t>(arguments, 6);
  const auto to = argument<uint64_t>(arguments, 7);
  auto *const out = argument<int64_t *>(arguments, 8);
  return [=] {
    for (uint32_t kind = 0; kind < kinds; ++kind) {
      for (uint64_t entry = 0; entry < grid; ++entry) {
        uint64_t place = places[kind * entries + entry];
        map.edges(entry, kind, [&](uint64_t byte) {
          if (place >= from && place < to) out[place - from] = starts[entry] + static_cast<int64_t>(byte);
          ++place;
        });
      }
    }
  };
}

}  // namespace

EdgeKernel edge_kernel(const char *name) {
  if (std::strcmp(name, "sonde_count_edges") == 0) return count_edges;
  if (std::strcmp(name, "sonde_sum_edges") == 0) return sum_edges;
  if (std::strcmp(name, "sonde_write_edges") == 0) return write_edges;
  return nullptr;
}

}  // namespace sonde::cuda::access::test
