#include "intra_object.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sonde::memory {

using toolkit::Edges;
using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::OperationKind;

void IntraObject::reset() {
  any_ = is_unknown_ = is_coarse_ = overlaps_ = false;
  slices_ = largest_slice_ = page_bytes_ = 0;
  accessed_.clear();
  slice_.clear();
  parts_.clear();
}

void IntraObject::touch(const MemoryTouch &touch, const Options &options) {
  any_ = true;
  if (!touch.pages.empty() && touch.page_bytes != 0) note_pages(touch, options);
  const bool has_edges = !touch.read_edges.empty() || !touch.write_edges.empty();
  if (has_edges) {
    if (touch.read_edges.empty() || touch.write_edges.empty()) {
      return note_bytes(touch.read_edges.empty() ? touch.write_edges : touch.read_edges, options);
    }
    touched_.assign(touch.read_edges);
    touched_.unite(touch.write_edges);
    return note_bytes(touched_.edges(), options);
  }
  if (touch.pages.empty()) {
    is_unknown_ = true;
    return;
  }
  const uint64_t address = touch.object->address, bytes = touch.object->bytes;
  scratch_.clear();
  for (const uint64_t page : touch.pages) {
    const uint64_t page_begin = page * touch.page_bytes;
    const uint64_t begin = page_begin > address ? page_begin - address : 0;
    const uint64_t end = std::min(page_begin + touch.page_bytes - address, bytes);
    if (page_begin + touch.page_bytes <= address || begin >= end) continue;
    if (!scratch_.empty() && scratch_.back() == begin) {
      scratch_.back() = end;
    } else {
      scratch_.insert(scratch_.end(), {begin, end});
    }
  }
  note_bytes(scratch_, options);
}

void IntraObject::note_bytes(Edges edges, const Options &options) {
  if (edges.empty()) return;
  if (!overlaps_) {
    const uint64_t in_slice = toolkit::overlap_bytes(edges, slice_.edges());
    if (toolkit::overlap_bytes(edges, accessed_.edges()) != in_slice) {
      overlaps_ = true;
      slice_.clear();
    } else if (in_slice != 0) {
      slice_.unite(edges);
      slice_.coarsen(static_cast<size_t>(options.interval_limit));
    } else {
      largest_slice_ = std::max(largest_slice_, slice_.bytes());
      slice_.assign(edges);
      ++slices_;
    }
  }
  accessed_.unite(edges);
  if (accessed_.coarsen(static_cast<size_t>(options.interval_limit)) != 0) is_coarse_ = true;
}

void IntraObject::note_pages(const MemoryTouch &touch, const Options &options) {
  const uint64_t address = touch.object->address, bytes = std::max<uint64_t>(touch.object->bytes, 1);
  const uint64_t first = address / touch.page_bytes, last = (address + bytes - 1) / touch.page_bytes;
  if (parts_.empty()) {
    page_bytes_ = touch.page_bytes;
    shift_ = 0;
    while (((last - first) >> shift_) >= static_cast<uint64_t>(options.frequency_bins)) ++shift_;
    parts_.assign(((last - first) >> shift_) + 1, 0);
  }
  if (touch.page_bytes != page_bytes_) return;
  for (size_t i = 0; i < touch.pages.size() && i < touch.page_counts.size(); ++i) {
    if (touch.pages[i] < first || touch.pages[i] > last) continue;
    parts_[(touch.pages[i] - first) >> shift_] += touch.page_counts[i];
  }
}

IntraResult IntraObject::result(const MemoryObject &object) const {
  IntraResult result;
  if (!any_) return result;
  if (!is_unknown_ && object.bytes != 0) {
    result.has_bytes = result.has_slices = true;
    result.is_coarse = is_coarse_;
    result.accessed = std::min(accessed_.bytes(), object.bytes);
    result.unused = object.bytes - result.accessed;
    result.widest_unused = accessed_.widest_hole(object.bytes);
    result.access_rate = static_cast<double>(result.accessed) / static_cast<double>(object.bytes);
    if (result.unused != 0) {
      result.fragmentation = 1 - static_cast<double>(result.widest_unused.bytes) / static_cast<double>(result.unused);
    }
    result.slices = overlaps_ ? 0 : slices_;
    result.largest_slice = overlaps_ ? 0 : std::max(largest_slice_, slice_.bytes());
  }
  if (parts_.empty()) return result;
  result.has_pages = true;
  result.part_bytes = page_bytes_ << shift_;
  const uint64_t origin = object.address / page_bytes_ * page_bytes_;
  std::vector<std::pair<double, double>> densities;  // accesses per byte, bytes
  double accesses = 0, weight = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i] == 0) continue;
    const uint64_t begin = std::max(origin + i * result.part_bytes, object.address);
    const uint64_t end = std::min(origin + (i + 1) * result.part_bytes, object.address + object.bytes);
    const auto bytes = static_cast<double>(std::max<uint64_t>(end > begin ? end - begin : 1, 1));
    densities.emplace_back(static_cast<double>(parts_[i]) / bytes, bytes);
    accesses += static_cast<double>(parts_[i]);
    weight += bytes;
  }
  result.touched_parts = densities.size();
  if (densities.empty()) return result;
  const double mean = accesses / weight;
  double squares = 0;
  for (const auto &[density, bytes] : densities) squares += bytes * (density - mean) * (density - mean);
  result.variation = std::sqrt(squares / weight) / mean;
  std::sort(densities.begin(), densities.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
  const size_t tenth = (densities.size() + 9) / 10;
  double hottest = 0;
  for (size_t i = 0; i < tenth; ++i) hottest += densities[i].first * densities[i].second;
  result.hottest_share = hottest / accesses;
  return result;
}

void HostWrites::reset() {
  pending_ = 0;
  result_ = {};
}

void HostWrites::drop(size_t at) {
  std::rotate(writes_.begin() + static_cast<std::ptrdiff_t>(at), writes_.begin() + static_cast<std::ptrdiff_t>(at) + 1,
              writes_.begin() + static_cast<std::ptrdiff_t>(pending_));
  --pending_;
}

void HostWrites::read(Edges edges) {
  for (size_t i = pending_; i-- > 0;) {
    if (toolkit::overlap_bytes(writes_[i].left.edges(), edges) != 0) drop(i);
  }
}

void HostWrites::overwrite(Edges edges, bool by_kernel, uint64_t incomplete) {
  for (size_t i = pending_; i-- > 0;) {
    Pending &write = writes_[i];
    write.left.subtract(edges);
    if (!write.left.empty()) continue;
    if (write.incomplete != incomplete) {
      ++result_.uncertain;
    } else {
      ++result_.dead;
      result_.dead_bytes += write.bytes;
      if (by_kernel) ++result_.by_kernels;
    }
    drop(i);
  }
}

void HostWrites::touch(const MemoryOperation &operation, const MemoryTouch &touch, uint64_t incomplete) {
  if (operation.kind == OperationKind::kPrefetch || operation.kind == OperationKind::kAdvise) return;
  const bool is_kernel = operation.kind == OperationKind::kKernel;
  if (pending_ != 0 && is_kernel) {
    // What a kernel did to bytes that it does not name may have been a read of any of them.
    const bool names_all = (!touch.read_edges.empty() || touch.reads == 0) &&
                           (!touch.write_edges.empty() || touch.writes + touch.atomics == 0) &&
                           (touch.copies == 0 || !touch.read_edges.empty() || !touch.write_edges.empty());
    if (!names_all || operation.is_late) {
      pending_ = 0;
      return;
    }
  }
  if (!touch.read_edges.empty()) read(touch.read_edges);
  if (touch.write_edges.empty()) return;
  if (is_kernel) {
    // An atomic operation reads what it writes; edges that are not exact may name bytes that were not written.
    if (touch.atomics != 0) read(touch.write_edges);
    if (touch.granule <= 1) overwrite(touch.write_edges, true, incomplete);
    return;
  }
  overwrite(touch.write_edges, false, incomplete);
  if (pending_ == kMost) {
    ++result_.not_followed;
    drop(0);
  }
  if (writes_.size() == pending_) writes_.emplace_back();
  Pending &write = writes_[pending_++];
  write.left.assign(touch.write_edges);
  write.bytes = toolkit::edge_bytes(touch.write_edges);
  write.incomplete = incomplete;
}

}  // namespace sonde::memory
