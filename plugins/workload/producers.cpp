#include "producers.h"

#include <algorithm>

namespace sonde::workload {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::ObjectLevel;

Producers::Producers(const Options &options, uint32_t other_names) : options_(&options), other_names_(other_names) {}

void Producers::operation(const MemoryOperation &operation, uint32_t name, std::span<const MemoryTouch> touches) {
  if (operation.is_late) return;  // behind its place in the order, it would be taken for a later one
  for (const MemoryTouch &touch : touches) {
    if (touch.object->level != ObjectLevel::kAllocation || touch.object->bytes == 0) continue;
    std::vector<Piece> &pieces = objects_[touch.object->id];
    const uint64_t whole[] = {0, touch.object->bytes};
    const bool has_edges = !touch.read_edges.empty() || !touch.write_edges.empty();
    whole_touches_ += has_edges ? 0 : 1;
    // Without edges what was only read is known from the counts.
    const std::span<const uint64_t> read_edges = has_edges         ? touch.read_edges
                                                 : touch.is_read() ? std::span<const uint64_t>(whole)
                                                                   : std::span<const uint64_t>();
    const std::span<const uint64_t> write_edges = has_edges            ? touch.write_edges
                                                  : touch.is_written() ? std::span<const uint64_t>(whole)
                                                                       : std::span<const uint64_t>();
    if (!read_edges.empty()) read(pieces, read_edges, operation, name);
    if (!write_edges.empty()) write(pieces, write_edges, {name, operation.index + 1});
    bound(pieces);
  }
}

void Producers::object_ends(const MemoryObject &object) { objects_.erase(object.id); }

void Producers::note(const MemoryOperation &operation, uint32_t name, const Access &other, ReuseKind kind,
                     uint64_t bytes) {
  ReusePair key{operation.source, operation.device, other.name, name, kind};
  auto it = pairs_.find(key);
  if (it == pairs_.end()) {
    if (pairs_.size() >= static_cast<size_t>(options_->reuse_pairs)) key.producer = key.consumer = other_names_;
    it = pairs_.try_emplace(key).first;
  }
  ReuseRow &row = it->second;
  row.bytes += bytes;
  if (row.last_operation != operation.index + 1) {
    row.last_operation = operation.index + 1;
    ++row.operations;
  }
  row.distance.add(static_cast<int64_t>(operation.index + 1 - other.operation));
}

void Producers::read(std::vector<Piece> &pieces, std::span<const uint64_t> edges, const MemoryOperation &operation,
                     uint32_t name) {
  const Access reader{name, operation.index + 1};
  scratch_.clear();
  size_t next = 0;
  for (size_t i = 0; i + 1 < edges.size(); i += 2) {
    uint64_t at = edges[i];
    const uint64_t end = edges[i + 1];
    while (next < pieces.size() && pieces[next].end <= at) scratch_.push_back(pieces[next++]);
    while (at < end) {
      if (next == pieces.size() || pieces[next].begin >= end) {
        unknown_bytes_ += end - at;
        scratch_.push_back({at, end, {}, reader});
        break;
      }
      Piece &piece = pieces[next];
      if (piece.begin > at) {
        unknown_bytes_ += piece.begin - at;
        scratch_.push_back({at, piece.begin, {}, reader});
        at = piece.begin;
      } else if (piece.begin < at) {
        scratch_.push_back({piece.begin, at, piece.writer, piece.reader});
        piece.begin = at;
      }
      const uint64_t until = std::min(end, piece.end);
      if (piece.writer.operation != 0) {
        note(operation, name, piece.writer, ReuseKind::kReadAfterWrite, until - at);
      } else {
        unknown_bytes_ += until - at;
      }
      if (piece.reader.operation != 0) {
        note(operation, name, piece.reader, ReuseKind::kReadAfterRead, until - at);
      }
      scratch_.push_back({at, until, piece.writer, reader});
      at = piece.begin = until;
      if (piece.begin == piece.end) ++next;
    }
  }
  while (next < pieces.size()) scratch_.push_back(pieces[next++]);
  pieces.swap(scratch_);
}

void Producers::write(std::vector<Piece> &pieces, std::span<const uint64_t> edges, const Access &access) {
  scratch_.clear();
  size_t next = 0;
  for (size_t i = 0; i + 1 < edges.size(); i += 2) {
    const uint64_t begin = edges[i], end = edges[i + 1];
    while (next < pieces.size() && pieces[next].end <= begin) scratch_.push_back(pieces[next++]);
    if (next < pieces.size() && pieces[next].begin < begin) {
      scratch_.push_back({pieces[next].begin, begin, pieces[next].writer, pieces[next].reader});
    }
    while (next < pieces.size() && pieces[next].end <= end) ++next;
    if (next < pieces.size() && pieces[next].begin < end) pieces[next].begin = end;
    scratch_.push_back({begin, end, access, {}});  // nobody has read it since
  }
  while (next < pieces.size()) scratch_.push_back(pieces[next++]);
  pieces.swap(scratch_);
}

void Producers::bound(std::vector<Piece> &pieces) {
  // Neighbours with the same story are one.
  size_t kept = 0;
  for (size_t i = 1; i < pieces.size(); ++i) {
    Piece &last = pieces[kept];
    if (last.end == pieces[i].begin && last.writer == pieces[i].writer && last.reader == pieces[i].reader) {
      last.end = pieces[i].end;
    } else {
      pieces[++kept] = pieces[i];
    }
  }
  if (!pieces.empty()) pieces.resize(kept + 1);
  if (pieces.size() <= static_cast<size_t>(options_->reuse_intervals)) return;
  // The newest writer and reader stand for all.
  Piece whole{pieces.front().begin, pieces.back().end, {}, {}};
  for (const Piece &piece : pieces) {
    if (piece.writer.operation > whole.writer.operation) whole.writer = piece.writer;
    if (piece.reader.operation > whole.reader.operation) whole.reader = piece.reader;
  }
  pieces.assign(1, whole);
  ++collapsed_;
}

}  // namespace sonde::workload
