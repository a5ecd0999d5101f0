// How an object's bytes are used: which of them at all, how evenly, and slice by slice or as a whole.
#pragma once

#include <sonde/toolkit/interval_set.h>
#include <sonde/toolkit/memory_history.h>

#include <cstdint>
#include <vector>

#include "options.h"

namespace sonde::memory {

struct IntraResult {
  // Touched bytes; only where edges or pages came with every use.
  bool has_bytes = false;
  bool is_coarse = false;  // narrow holes count as touched, so the access rate is an upper bound
  uint64_t accessed = 0;
  uint64_t unused = 0;
  toolkit::IntervalSet::Hole widest_unused;
  double access_rate = 1;    // accessed / bytes
  double fragmentation = 0;  // 1 - widest unused / unused, 0 where nothing is unused
  // Histogram over pages.
  bool has_pages = false;
  uint64_t touched_parts = 0;
  uint64_t part_bytes = 0;   // a page, or several where there are more than frequency_bins
  double variation = 0;      // coefficient of variation of accesses per byte over touched parts
  double hottest_share = 0;  // of accesses, that go to the hottest tenth of the touched parts
  // Slices: bytes touched by consecutive uses that have some in common, none of which any other use touches.
  bool has_slices = false;
  uint64_t slices = 0;  // 0: uses overlap earlier slices
  uint64_t largest_slice = 0;
};

// One object during its life. Reused for the next after reset, so its memory settles.
class IntraObject {
 public:
  void reset();

  void touch(const toolkit::MemoryTouch &touch, const Options &options);
  IntraResult result(const toolkit::MemoryObject &object) const;

 private:
  void note_bytes(toolkit::Edges edges, const Options &options);
  void note_pages(const toolkit::MemoryTouch &touch, const Options &options);

  bool any_ = false;
  bool is_unknown_ = false;  // some use did not say which bytes
  bool is_coarse_ = false;
  bool overlaps_ = false;  // a use touched an earlier slice
  uint64_t slices_ = 0;
  uint64_t largest_slice_ = 0;
  uint64_t page_bytes_ = 0;
  uint32_t shift_ = 0;  // of a page's number to its part's
  toolkit::IntervalSet accessed_;
  toolkit::IntervalSet slice_;
  std::vector<uint64_t> parts_;  // accesses
  std::vector<uint64_t> scratch_;
  toolkit::IntervalSet touched_;
};

// Writes of the host into one object whose bytes nobody has read yet.
class HostWrites {
 public:
  // A write is dead when all of its bytes were overwritten before any was read.
  struct Result {
    uint64_t dead = 0;
    uint64_t dead_bytes = 0;
    uint64_t by_kernels = 0;    // of these, the last bytes overwritten by a kernel
    uint64_t uncertain = 0;     // would be dead, but a kernel that was not watched as a whole may have read it
    uint64_t not_followed = 0;  // too many at one time
  };
  static constexpr size_t kMost = 64;  // followed at one time

  void reset();
  // `incomplete`: kernels of the process so far that were not watched as a whole.
  void touch(const toolkit::MemoryOperation &operation, const toolkit::MemoryTouch &touch, uint64_t incomplete);
  const Result &result() const { return result_; }
  bool empty() const { return pending_ == 0; }

 private:
  struct Pending {
    toolkit::IntervalSet left;  // not overwritten
    uint64_t bytes = 0;
    uint64_t incomplete = 0;
  };

  void read(toolkit::Edges edges);
  void overwrite(toolkit::Edges edges, bool by_kernel, uint64_t incomplete);
  void drop(size_t at);

  size_t pending_ = 0;
  std::vector<Pending> writes_;  // the first `pending_` count, oldest first
  Result result_;
};

}  // namespace sonde::memory
