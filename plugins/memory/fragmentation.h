// What a caching allocator does with the memory it reserves: which of it is used, and how large the free pieces are.
#pragma once

#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/timeline.h>

#include <cstdint>
#include <map>
#include <memory>
#include <memory_resource>
#include <tuple>
#include <vector>

#include "options.h"

namespace sonde::memory {

// An allocation that tensors are cut from.
struct SegmentRow {
  uint64_t id = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t tensors = 0;  // cut from it over its life
  uint64_t live = 0;
  uint64_t used = 0;  // now, or at its end
  uint64_t used_peak = 0;
  uint64_t largest_gap = 0;  // now, or at its end
  int64_t begin_ns = 0;
  int64_t end_ns = toolkit::MemoryObject::kAlive;
};

// The segments of one process and device.
struct Space {
  Space(uint32_t points, std::pmr::memory_resource *memory)
      : reserved_curve(points), used_curve(points), gap_curve(points), gaps(memory) {}

  uint64_t reserved = 0;
  uint64_t used = 0;
  uint64_t segments = 0;  // now
  uint64_t segments_seen = 0;
  uint64_t tensors_seen = 0;
  uint64_t reserved_peak = 0;
  int64_t reserved_peak_ns = 0;
  uint64_t used_at_reserved_peak = 0;
  uint64_t gap_at_reserved_peak = 0;  // the largest
  uint64_t gaps_at_reserved_peak = 0;
  uint64_t used_peak = 0;
  // Segments made although as many bytes were free in the others, in pieces too small or in another of its pools.
  uint64_t forced = 0;
  uint64_t forced_bytes = 0;
  uint64_t outside = 0;  // tensors in no allocation that is known
  toolkit::Timeline reserved_curve, used_curve, gap_curve;
  std::vector<SegmentRow> largest;  // segments that used least of what they held, at most object_rows
  uint64_t left_out = 0;

  std::pmr::map<uint64_t, uint32_t> gaps;  // size to count
  uint64_t gap_count = 0;

  uint64_t largest_gap() const { return gaps.empty() ? 0 : gaps.rbegin()->first; }
  uint64_t free() const { return reserved - used; }
};

// Feed with begins and ends in order. Free pieces are found from where the tensors lie, so what an allocator rounds sizes up
// by counts as free. Costs O(log n); memory grows with what lives.
class Fragmentation {
 public:
  using Key = std::tuple<uint32_t, uint32_t>;  // source, device

  explicit Fragmentation(const Options &options) : options_(options) {}

  void begins(const toolkit::MemoryObject &object);
  // Whether it was an allocation that tensors were cut from.
  bool ends(const toolkit::MemoryObject &object);

  const std::map<Key, std::unique_ptr<Space>> &spaces() const { return spaces_; }

 private:
  struct Segment {
    explicit Segment(std::pmr::memory_resource *memory) : tensors(memory) {}

    SegmentRow row;
    Space *space = nullptr;
    bool is_cut = false;
    uint64_t free_before = 0;                   // in the other segments when it was made
    std::pmr::map<uint64_t, uint64_t> tensors;  // offset to bytes
  };

  Space &space(const toolkit::MemoryObject &object);
  void cut(Segment &segment);
  void change_gap(Space &space, uint64_t bytes, bool is_added);
  // The free pieces around [offset, offset + bytes).
  static std::pair<uint64_t, uint64_t> around(const Segment &segment, uint64_t offset, uint64_t bytes);
  void note(Space &space, int64_t time_ns);
  static uint64_t largest_gap(const Segment &segment);
  void keep(Space &space, const Segment &segment);

  Options options_;
  std::pmr::unsynchronized_pool_resource memory_;
  std::map<Key, std::unique_ptr<Space>> spaces_;
  std::pmr::map<uint64_t, Segment> segments_{&memory_};  // allocations alive, by id
};

}  // namespace sonde::memory
