#include "live_ranges.h"

#include <algorithm>

#include <sonde/spaces/access.h>

namespace sonde::cuda::access {

size_t first_after(const std::vector<LiveRange> &ranges, uint64_t address) {
  const auto found =
      std::partition_point(ranges.begin(), ranges.end(), [&](const LiveRange &range) { return range.end <= address; });
  return static_cast<size_t>(found - ranges.begin());
}

const LiveRange *nearest_range(const std::vector<LiveRange> &ranges, uint64_t address, int64_t *distance) {
  const size_t at = first_after(ranges, address);
  const LiveRange *const after = at < ranges.size() ? &ranges[at] : nullptr;
  const LiveRange *const before = at != 0 ? &ranges[at - 1] : nullptr;
  if (before != nullptr && (after == nullptr || address - before->end < after->begin - address)) {
    *distance = static_cast<int64_t>(address - before->end + 1);
    return before;
  }
  if (after != nullptr) *distance = -static_cast<int64_t>(after->begin - address);
  return after;
}

size_t LiveRanges::index_at(uint64_t address) const { return first_after(ranges_, address); }

bool LiveRanges::continues(size_t at) const {
  return at != 0 && ranges_[at].allocation != 0 && ranges_[at].allocation == ranges_[at - 1].allocation;
}

void LiveRanges::remember(const LiveRange &range) {
  if (range.kind == SONDE_OBJECT_IS_REMAINDER) return;
  freed_.push_back(range);
  if (freed_.size() > kMostFreed) freed_.pop_front();
}

uint64_t LiveRanges::allocate(uint64_t address, uint64_t bytes, uint32_t kind) {
  if (bytes == 0 || address + bytes < address) return 0;
  const uint64_t end = address + bytes;
  // The runtime would not hand out what is in use, so whatever lies here has ended without a sign, as a whole.
  size_t at = index_at(address);
  size_t last = at;
  while (last < ranges_.size() && (ranges_[last].begin < end || continues(last))) ++last;
  while (at < last && continues(at)) --at;
  for (size_t i = at; i < last; ++i) remember(ranges_[i]);
  ranges_.erase(ranges_.begin() + static_cast<ptrdiff_t>(at), ranges_.begin() + static_cast<ptrdiff_t>(last));
  const uint64_t ordinal = ++last_ordinal_;
  ranges_.insert(ranges_.begin() + static_cast<ptrdiff_t>(at), {address, end, ordinal, ordinal, kind, 0});
  ++version_;
  return ordinal;
}

std::optional<LiveRange> LiveRanges::release(uint64_t address) {
  const size_t at = index_at(address);
  if (at == ranges_.size() || ranges_[at].begin != address || ranges_[at].allocation == 0 || continues(at)) {
    return std::nullopt;
  }
  const uint64_t allocation = ranges_[at].allocation;
  size_t last = at;
  LiveRange whole = {address, 0, allocation, allocation, SONDE_OBJECT_IS_ALLOCATION, 0};
  while (last < ranges_.size() && ranges_[last].allocation == allocation) {
    whole.end = ranges_[last].end;
    if (ranges_[last].kind != SONDE_OBJECT_IS_REMAINDER) whole.kind = ranges_[last].kind;
    remember(ranges_[last++]);
  }
  if (last - at > 1 || whole.kind == SONDE_OBJECT_IS_TENSOR) whole.kind = SONDE_OBJECT_IS_ALLOCATION;
  ranges_.erase(ranges_.begin() + static_cast<ptrdiff_t>(at), ranges_.begin() + static_cast<ptrdiff_t>(last));
  ++version_;
  return whole;
}

// Ends the tensors that [begin, end) meets.
void LiveRanges::cut(uint64_t begin, uint64_t end) {
  for (size_t at = index_at(begin); at < ranges_.size() && ranges_[at].begin < end;) {
    if (ranges_[at].kind != SONDE_OBJECT_IS_TENSOR) {
      ++at;
      continue;
    }
    retire(ranges_[at].begin);
    at = index_at(begin);
  }
}

void LiveRanges::announce(uint64_t address, uint64_t bytes, uint64_t ordinal, sonde_string_t name) {
  if (bytes == 0 || address + bytes < address) return;
  uint64_t end = address + bytes;
  cut(address, end);
  LiveRange tensor = {address, end, ordinal, 0, SONDE_OBJECT_IS_TENSOR, name};
  const size_t at = index_at(address);
  ++version_;
  if (at == ranges_.size() || ranges_[at].begin >= end) {
    // In no allocation that is known: made before anybody watched.
    ranges_.insert(ranges_.begin() + static_cast<ptrdiff_t>(at), tensor);
    return;
  }
  const LiveRange around = ranges_[at];
  // What reaches past the piece that it begins in belongs to the pieces after it: a tensor in two allocations is none.
  if (around.begin > address || around.end < end) {
    const uint64_t from = std::max(address, around.begin);
    tensor.begin = from;
    tensor.end = end = std::min(end, around.end);
    address = from;
  }
  tensor.allocation = around.allocation;
  std::vector<LiveRange> pieces;
  LiveRange rest = around;
  rest.kind = SONDE_OBJECT_IS_REMAINDER;
  rest.ordinal = around.allocation;
  if (around.begin < address) {
    pieces.push_back(rest);
    pieces.back().end = address;
  }
  pieces.push_back(tensor);
  if (end < around.end) {
    pieces.push_back(rest);
    pieces.back().begin = end;
  }
  ranges_[at] = pieces.front();
  ranges_.insert(ranges_.begin() + static_cast<ptrdiff_t>(at) + 1, pieces.begin() + 1, pieces.end());
}

bool LiveRanges::retire(uint64_t address) {
  size_t at = index_at(address);
  if (at == ranges_.size() || ranges_[at].begin != address || ranges_[at].kind != SONDE_OBJECT_IS_TENSOR) return false;
  remember(ranges_[at]);
  ++version_;
  const uint64_t allocation = ranges_[at].allocation;
  if (allocation == 0) {
    ranges_.erase(ranges_.begin() + static_cast<ptrdiff_t>(at));
    return true;
  }
  ranges_[at].kind = SONDE_OBJECT_IS_REMAINDER;
  ranges_[at].ordinal = allocation;
  ranges_[at].name = 0;
  const auto joins = [&](size_t index) {
    return index < ranges_.size() && ranges_[index].allocation == allocation &&
           ranges_[index].kind == SONDE_OBJECT_IS_REMAINDER;
  };
  if (joins(at + 1)) {
    ranges_[at].end = ranges_[at + 1].end;
    ranges_.erase(ranges_.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
  if (at != 0 && joins(at - 1)) {
    ranges_[at - 1].end = ranges_[at].end;
    ranges_.erase(ranges_.begin() + static_cast<ptrdiff_t>(at));
  }
  return true;
}

void LiveRanges::forget_tensors() {
  std::vector<LiveRange> kept;
  kept.reserve(ranges_.size());
  for (LiveRange range : ranges_) {
    if (range.kind == SONDE_OBJECT_IS_TENSOR) {
      if (range.allocation == 0) continue;
      range = {range.begin, range.end, range.allocation, range.allocation, SONDE_OBJECT_IS_REMAINDER, 0};
    }
    const bool joins = !kept.empty() && range.kind == SONDE_OBJECT_IS_REMAINDER &&
                       kept.back().kind == SONDE_OBJECT_IS_REMAINDER && kept.back().allocation == range.allocation;
    if (joins) {
      kept.back().end = range.end;
    } else {
      kept.push_back(range);
    }
  }
  ranges_ = std::move(kept);
  ++version_;
}

const LiveRange *LiveRanges::find(uint64_t address) const {
  const size_t at = index_at(address);
  return at < ranges_.size() && ranges_[at].begin <= address ? &ranges_[at] : nullptr;
}

const LiveRange *LiveRanges::after(uint64_t address) const {
  const size_t at = index_at(address);
  return at < ranges_.size() ? &ranges_[at] : nullptr;
}

const LiveRange *LiveRanges::freed(uint64_t address) const {
  const auto found = std::find_if(freed_.rbegin(), freed_.rend(), [&](const LiveRange &range) {
    return range.begin <= address && address < range.end;
  });
  return found == freed_.rend() ? nullptr : &*found;
}

}  // namespace sonde::cuda::access
