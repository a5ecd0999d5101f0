// The live address ranges of a device's address space: allocations of the runtime and, cut out of them, tensors.
//
// What a launch may touch is one flat list of disjoint ranges, kept up with every allocation, so that a version for
// the device is a copy of it and never a rebuild: an allocation is one entry until a tensor is announced inside it; then
// its tensors and the remainders between them are entries. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include <sonde/record.h>

namespace sonde::cuda::access {

struct LiveRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t ordinal = 0;     // of the range's life
  uint64_t allocation = 0;  // ordinal of the allocation that it is part of, 0: none that is known
  uint32_t kind = 0;        // SONDE_OBJECT_IS_*
  sonde_string_t name = 0;
};

// Of ranges that are sorted by begin and disjoint, the first that ends after the address; their size when none does.
size_t first_after(const std::vector<LiveRange> &ranges, uint64_t address);

// The one nearest to an address that none contains, or null; *distance in bytes: negative before its begin, else past its
// last byte, from 1.
const LiveRange *nearest_range(const std::vector<LiveRange> &ranges, uint64_t address, int64_t *distance);

class LiveRanges {
 public:
  // An allocation of the runtime begins to live; whatever lived there has ended. Returns its ordinal, from 1; 0 when
  // it is no range of addresses.
  uint64_t allocate(uint64_t address, uint64_t bytes, uint32_t kind);

  // It ends, with all tensors in it. Nothing when none begins there; else the range that it was.
  std::optional<LiveRange> release(uint64_t address);

  // A tensor begins to live; tensors that it overlaps have ended.
  void announce(uint64_t address, uint64_t bytes, uint64_t ordinal, sonde_string_t name);

  // It ends. False when no tensor begins there.
  bool retire(uint64_t address);

  // Nobody tells of tensors any more: what lives is no longer known, and none of them counts as freed.
  void forget_tensors();

  // Sorted by begin.
  const std::vector<LiveRange> &ranges() const { return ranges_; }

  // Changes with every change.
  uint64_t version() const { return version_; }

  // The range that contains the address, or null.
  const LiveRange *find(uint64_t address) const;

  // The first range that ends after the address, or null.
  const LiveRange *after(uint64_t address) const;

  // The range that contained the address and ended last, of the last 65,536 that ended, or null.
  const LiveRange *freed(uint64_t address) const;

 private:
  size_t index_at(uint64_t address) const;  // of the first range that ends after the address
  bool continues(size_t at) const;          // whether it is of the allocation of the range before
  void remember(const LiveRange &range);
  void cut(uint64_t begin, uint64_t end);

  static constexpr size_t kMostFreed = 65536;

  std::vector<LiveRange> ranges_;
  std::deque<LiveRange> freed_;
  uint64_t last_ordinal_ = 0;
  uint64_t version_ = 1;
};

}  // namespace sonde::cuda::access
