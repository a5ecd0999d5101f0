#include "fragmentation.h"

#include <algorithm>
#include <utility>

namespace sonde::memory {

using toolkit::MemoryObject;
using toolkit::ObjectEnd;
using toolkit::ObjectLevel;

Space &Fragmentation::space(const MemoryObject &object) {
  std::unique_ptr<Space> &found = spaces_[{object.source, object.device}];
  if (!found) found = std::make_unique<Space>(static_cast<uint32_t>(options_.timeline_rows), &memory_);
  return *found;
}

void Fragmentation::change_gap(Space &space, uint64_t bytes, bool is_added) {
  if (bytes == 0) return;
  if (is_added) {
    ++space.gaps[bytes];
    ++space.gap_count;
    return;
  }
  const auto found = space.gaps.find(bytes);
  if (found == space.gaps.end()) return;
  --space.gap_count;
  if (--found->second == 0) space.gaps.erase(found);
}

std::pair<uint64_t, uint64_t> Fragmentation::around(const Segment &segment, uint64_t offset, uint64_t bytes) {
  const auto after = segment.tensors.upper_bound(offset);
  const uint64_t begin = after == segment.tensors.begin() ? 0 : std::prev(after)->first + std::prev(after)->second;
  const uint64_t end = after == segment.tensors.end() ? segment.row.bytes : after->first;
  return {offset - std::min(begin, offset), std::max(end, offset + bytes) - (offset + bytes)};
}

uint64_t Fragmentation::largest_gap(const Segment &segment) {
  uint64_t at = 0, largest = 0;
  for (const auto &[offset, bytes] : segment.tensors) {
    if (offset > at) largest = std::max(largest, offset - at);
    at = std::max(at, offset + bytes);
  }
  return std::max(largest, segment.row.bytes - std::min(at, segment.row.bytes));
}

void Fragmentation::note(Space &space, int64_t time_ns) {
  space.used_peak = std::max(space.used_peak, space.used);
  // Of equal peaks the one with the most in use counts: then the memory was needed.
  if (space.reserved > space.reserved_peak ||
      (space.reserved == space.reserved_peak && space.used > space.used_at_reserved_peak)) {
    space.reserved_peak = space.reserved;
    space.reserved_peak_ns = time_ns;
    space.used_at_reserved_peak = space.used;
    space.gap_at_reserved_peak = space.largest_gap();
    space.gaps_at_reserved_peak = space.gap_count;
  }
  space.reserved_curve.set(time_ns, space.reserved);
  space.used_curve.set(time_ns, space.used);
  space.gap_curve.set(time_ns, space.largest_gap());
}

void Fragmentation::cut(Segment &segment) {
  Space &space = *segment.space;
  segment.is_cut = true;
  ++space.segments;
  ++space.segments_seen;
  space.reserved += segment.row.bytes;
  change_gap(space, segment.row.bytes, true);
  if (segment.free_before >= segment.row.bytes && segment.row.bytes != 0) {
    ++space.forced;
    space.forced_bytes += segment.row.bytes;
  }
}

void Fragmentation::begins(const MemoryObject &object) {
  if (object.level == ObjectLevel::kAllocation) {
    Segment segment(&memory_);
    segment.space = &space(object);
    segment.row.id = object.id;
    segment.row.address = object.address;
    segment.row.bytes = object.bytes;
    segment.row.begin_ns = object.begin_ns;
    // What lived before the capture was not made because of what was free.
    segment.free_before = object.is_before_capture || object.is_implicit ? 0 : segment.space->free();
    segments_.emplace(object.id, std::move(segment));
    return;
  }
  const auto found = object.parent == 0 ? segments_.end() : segments_.find(object.parent);
  if (found == segments_.end()) {
    ++space(object).outside;
    return;
  }
  Segment &segment = found->second;
  if (!segment.is_cut) cut(segment);
  Space &space = *segment.space;
  const uint64_t offset = object.address - segment.row.address;
  const uint64_t bytes = std::min(object.bytes, segment.row.bytes - std::min(offset, segment.row.bytes));
  ++space.tensors_seen;
  ++segment.row.tensors;
  if (bytes != 0) {
    const auto [before, after] = around(segment, offset, bytes);
    change_gap(space, before + bytes + after, false);
    change_gap(space, before, true);
    change_gap(space, after, true);
    segment.tensors[offset] = bytes;
    ++segment.row.live;
    segment.row.used += bytes;
    segment.row.used_peak = std::max(segment.row.used_peak, segment.row.used);
    space.used += bytes;
  }
  note(space, object.begin_ns);
}

void Fragmentation::keep(Space &space, const Segment &segment) {
  SegmentRow row = segment.row;
  row.largest_gap = largest_gap(segment);
  const auto is_worse = [](const SegmentRow &a, const SegmentRow &b) {
    const uint64_t left = a.bytes - std::min(a.used_peak, a.bytes), right = b.bytes - std::min(b.used_peak, b.bytes);
    if (left != right) return left > right;
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id;
  };
  space.largest.push_back(row);
  std::push_heap(space.largest.begin(), space.largest.end(), is_worse);
  if (space.largest.size() <= static_cast<size_t>(options_.object_rows)) return;
  std::pop_heap(space.largest.begin(), space.largest.end(), is_worse);
  space.largest.pop_back();
  ++space.left_out;
}

bool Fragmentation::ends(const MemoryObject &object) {
  if (object.level == ObjectLevel::kAllocation) {
    const auto found = segments_.find(object.id);
    if (found == segments_.end()) return false;
    Segment &segment = found->second;
    if (segment.is_cut) {
      Space &space = *segment.space;
      segment.row.end_ns = object.end == ObjectEnd::kAlive ? MemoryObject::kAlive : object.end_ns;
      keep(space, segment);
      if (object.end != ObjectEnd::kAlive) {
        uint64_t at = 0;
        for (const auto &[offset, bytes] : segment.tensors) {
          change_gap(space, offset - std::min(at, offset), false);
          at = offset + bytes;
        }
        change_gap(space, segment.row.bytes - std::min(at, segment.row.bytes), false);
        --space.segments;
        space.reserved -= segment.row.bytes;
        space.used -= segment.row.used;
        note(space, object.end_ns);
      }
    }
    const bool is_cut = segment.is_cut;
    segments_.erase(found);
    return is_cut;
  }
  // What is alive at the end of the capture stays where it is: the last state is of interest.
  if (object.end == ObjectEnd::kAlive || object.parent == 0) return false;
  const auto found = segments_.find(object.parent);
  if (found == segments_.end()) return false;
  Segment &segment = found->second;
  const uint64_t offset = object.address - segment.row.address;
  const auto tensor = segment.tensors.find(offset);
  if (tensor == segment.tensors.end()) return false;
  const uint64_t bytes = tensor->second;
  segment.tensors.erase(tensor);
  const auto [before, after] = around(segment, offset, bytes);
  Space &space = *segment.space;
  change_gap(space, before, false);
  change_gap(space, after, false);
  change_gap(space, before + bytes + after, true);
  --segment.row.live;
  segment.row.used -= bytes;
  space.used -= bytes;
  note(space, object.end_ns);
  return false;
}

}  // namespace sonde::memory
