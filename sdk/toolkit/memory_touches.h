// Gathers what one operation did to objects from the pieces that records give: by tensor and by allocation, in any
// order, split over several records.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <sonde/toolkit/memory_history.h>

namespace sonde::toolkit {

// Union of [begin, end) pairs, in place: ascending, disjoint, neighbours joined.
void normalize_edges(std::vector<uint64_t> &edges);

// A piece of a record: one range, one kind of numbers. Spans lie in the `words` of who holds it.
struct TouchPiece {
  enum class Kind : uint8_t { kCounts, kRead, kWritten, kPages };
  Kind kind = Kind::kCounts;
  bool is_tensor = false;
  uint32_t name = 0;  // of the record's writer, not resolved
  uint32_t granule = 1;
  uint32_t words = 0;  // edges, or pages and then as many counts
  uint32_t first_word = 0;
  uint32_t page_bytes = 0;
  uint64_t address = 0;  // of the range
  uint64_t bytes = 0;
  uint64_t reads = 0, writes = 0, atomics = 0, copies = 0;
  uint64_t read_bytes = 0, write_bytes = 0, copy_bytes = 0;
};

// Reused from operation to operation, so its memory settles.
class TouchGatherer {
 public:
  void clear();

  // `piece` of `object`, whose begin lies `shift` bytes before the piece's range (may be negative).
  void add(const MemoryObject &object, int64_t shift, const TouchPiece &piece, std::span<const uint64_t> words);

  // One touch for each object, in the order of first mention; valid until the next clear. `counts_once`: reads and
  // writes are 1 where there are edges, whatever the number of pieces.
  std::span<const MemoryTouch> finish(bool counts_once);

 private:
  struct Scratch {
    std::vector<uint64_t> read, written, pages, counts;
  };
  struct Slot {
    MemoryTouch touch;
    Scratch scratch;
  };
  Slot &slot_of(const MemoryObject &object);
  static void join_pages(Scratch &scratch);

  size_t used_ = 0;
  std::vector<Slot> slots_;
  std::vector<MemoryTouch> touches_;
  std::unordered_map<uint64_t, size_t> places_;  // by object, only where there are many
};

}  // namespace sonde::toolkit
