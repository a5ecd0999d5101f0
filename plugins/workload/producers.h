// Reuse across operations: which kernel reads what an earlier one wrote or read.
#pragma once

#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/statistics.h>

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "options.h"

namespace sonde::workload {

enum class ReuseKind : uint8_t {
  kReadAfterWrite,  // reads what the other wrote last
  kReadAfterRead,   // reads what the other read last, with no write between
};

// Names are numbers of the analysis' strings; those of copies and sets too ("copy host_to_device").
struct ReusePair {
  uint32_t source = 0;
  uint32_t device = 0;  // of the consumer
  uint32_t producer = 0;
  uint32_t consumer = 0;
  ReuseKind kind = ReuseKind::kReadAfterWrite;

  auto operator<=>(const ReusePair &) const = default;
};

struct ReuseRow {
  uint64_t bytes = 0;       // distinct bytes of each consumer, summed over its operations
  uint64_t operations = 0;  // consumers
  uint64_t last_operation = 0;
  toolkit::Statistics distance;  // operations of the process from producer to consumer, 1: the next one
};

// Told by a MemoryHistory; looks at one level, allocations, whose touches are complete. Bytes are exact where intervals
// were collected; else an object that is touched counts as a whole. Memory: reuse_intervals pieces for each live
// object that was touched (one with more is taken as a whole from then on), and reuse_pairs pairs.
class Producers {
 public:
  Producers(const Options &options, uint32_t other_names);

  // `name` of the operation.
  void operation(const toolkit::MemoryOperation &operation, uint32_t name,
                 std::span<const toolkit::MemoryTouch> touches);
  void object_ends(const toolkit::MemoryObject &object);

  const std::map<ReusePair, ReuseRow> &pairs() const { return pairs_; }
  // Bytes read whose last writer is not known: they were there when the capture began, or the host wrote them.
  uint64_t unknown_bytes() const { return unknown_bytes_; }
  // Touches without intervals; objects that had too many pieces.
  uint64_t whole_touches() const { return whole_touches_; }
  uint64_t collapsed() const { return collapsed_; }
  size_t live() const { return objects_.size(); }

 private:
  struct Access {
    uint32_t name = 0;
    uint64_t operation = 0;  // 0: none; else its index + 1
    auto operator<=>(const Access &) const = default;
  };
  // [begin, end) of an object, bytes from its begin. Pieces are ascending and disjoint.
  struct Piece {
    uint64_t begin = 0, end = 0;
    Access writer, reader;
  };

  void read(std::vector<Piece> &pieces, std::span<const uint64_t> edges, const toolkit::MemoryOperation &operation,
            uint32_t name);
  void write(std::vector<Piece> &pieces, std::span<const uint64_t> edges, const Access &access);
  void note(const toolkit::MemoryOperation &operation, uint32_t name, const Access &other, ReuseKind kind,
            uint64_t bytes);
  void bound(std::vector<Piece> &pieces);

  const Options *options_;
  uint32_t other_names_;
  std::unordered_map<uint64_t, std::vector<Piece>> objects_;
  std::map<ReusePair, ReuseRow> pairs_;
  std::vector<Piece> scratch_;
  uint64_t unknown_bytes_ = 0;
  uint64_t whole_touches_ = 0;
  uint64_t collapsed_ = 0;
};

}  // namespace sonde::workload
