#include "memory_touches.h"

#include <algorithm>

namespace sonde::toolkit {
namespace {

constexpr size_t kFewObjects = 16;  // found by walking

bool is_normal(const std::vector<uint64_t> &edges) {
  for (size_t at = 0; at + 1 < edges.size(); at += 2) {
    if (edges[at] >= edges[at + 1] || (at != 0 && edges[at] <= edges[at - 1])) return false;
  }
  return true;
}

}  // namespace

void normalize_edges(std::vector<uint64_t> &edges) {
  if (edges.size() % 2 != 0) edges.pop_back();
  if (is_normal(edges)) return;
  std::vector<std::pair<uint64_t, uint64_t>> pairs;
  pairs.reserve(edges.size() / 2);
  for (size_t at = 0; at < edges.size(); at += 2) {
    if (edges[at] < edges[at + 1]) pairs.emplace_back(edges[at], edges[at + 1]);
  }
  std::sort(pairs.begin(), pairs.end());
  edges.clear();
  for (const auto &[begin, end] : pairs) {
    if (!edges.empty() && begin <= edges.back()) {
      edges.back() = std::max(edges.back(), end);
    } else {
      edges.push_back(begin);
      edges.push_back(end);
    }
  }
}

void TouchGatherer::clear() {
  used_ = 0;
  places_.clear();
}

TouchGatherer::Slot &TouchGatherer::slot_of(const MemoryObject &object) {
  if (used_ <= kFewObjects) {
    for (size_t at = 0; at < used_; ++at) {
      if (slots_[at].touch.object->id == object.id) return slots_[at];
    }
  } else if (const auto found = places_.find(object.id); found != places_.end()) {
    return slots_[found->second];
  }
  if (used_ == kFewObjects) {
    for (size_t at = 0; at < used_; ++at) places_.emplace(slots_[at].touch.object->id, at);
  }
  if (used_ >= kFewObjects) places_.emplace(object.id, used_);
  if (used_ == slots_.size()) slots_.emplace_back();
  Slot &slot = slots_[used_++];
  slot.touch = MemoryTouch{};
  slot.touch.object = &object;
  slot.scratch.read.clear();
  slot.scratch.written.clear();
  slot.scratch.pages.clear();
  slot.scratch.counts.clear();
  return slot;
}

void TouchGatherer::add(const MemoryObject &object, int64_t shift, const TouchPiece &piece,
                        std::span<const uint64_t> words) {
  Slot &slot = slot_of(object);
  MemoryTouch &touch = slot.touch;
  touch.reads += piece.reads;
  touch.writes += piece.writes;
  touch.atomics += piece.atomics;
  touch.copies += piece.copies;
  touch.read_bytes += piece.read_bytes;
  touch.write_bytes += piece.write_bytes;
  touch.copy_bytes += piece.copy_bytes;
  switch (piece.kind) {
    case TouchPiece::Kind::kCounts:
      break;
    case TouchPiece::Kind::kRead:
    case TouchPiece::Kind::kWritten: {
      std::vector<uint64_t> &edges = piece.kind == TouchPiece::Kind::kRead ? slot.scratch.read : slot.scratch.written;
      for (const uint64_t edge : words) edges.push_back(edge + static_cast<uint64_t>(shift));
      touch.granule = std::max(touch.granule, piece.granule);
      break;
    }
    case TouchPiece::Kind::kPages: {
      const size_t count = words.size() / 2;
      slot.scratch.pages.insert(slot.scratch.pages.end(), words.begin(), words.begin() + static_cast<ptrdiff_t>(count));
      slot.scratch.counts.insert(slot.scratch.counts.end(), words.begin() + static_cast<ptrdiff_t>(count),
                                 words.begin() + static_cast<ptrdiff_t>(2 * count));
      touch.page_bytes = std::max<uint64_t>(touch.page_bytes, piece.page_bytes);
      break;
    }
  }
}

// A page that two tensors share is one page of their allocation.
void TouchGatherer::join_pages(Scratch &scratch) {
  std::vector<uint64_t> &pages = scratch.pages;
  const bool ascends = std::adjacent_find(pages.begin(), pages.end(), std::greater_equal<>()) == pages.end();
  if (ascends) return;
  std::vector<std::pair<uint64_t, uint64_t>> pairs;
  pairs.reserve(pages.size());
  for (size_t at = 0; at < pages.size(); ++at) pairs.emplace_back(pages[at], scratch.counts[at]);
  std::sort(pairs.begin(), pairs.end());
  pages.clear();
  scratch.counts.clear();
  for (const auto &[page, count] : pairs) {
    if (!pages.empty() && pages.back() == page) {
      scratch.counts.back() += count;
    } else {
      pages.push_back(page);
      scratch.counts.push_back(count);
    }
  }
}

std::span<const MemoryTouch> TouchGatherer::finish(bool counts_once) {
  touches_.clear();
  for (size_t at = 0; at < used_; ++at) {
    Slot &slot = slots_[at];
    normalize_edges(slot.scratch.read);
    normalize_edges(slot.scratch.written);
    join_pages(slot.scratch);
    slot.touch.read_edges = slot.scratch.read;
    slot.touch.write_edges = slot.scratch.written;
    slot.touch.pages = slot.scratch.pages;
    slot.touch.page_counts = slot.scratch.counts;
    if (counts_once) {
      slot.touch.reads = slot.scratch.read.empty() ? 0 : 1;
      slot.touch.writes = slot.scratch.written.empty() ? 0 : 1;
    }
    touches_.push_back(slot.touch);
  }
  return touches_;
}

}  // namespace sonde::toolkit
