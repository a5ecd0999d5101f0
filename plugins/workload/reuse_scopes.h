// Who uses again what: by thread, warp, block or grid, from instruction to instruction.
#pragma once

#include <sonde/toolkit/warp_records.h>

#include <compare>
#include <cstdint>
#include <unordered_map>

#include "kernel_map.h"
#include "options.h"

namespace sonde::workload {

// How far the last access to a word is from this one.
enum class ReuseScope : uint8_t { kCold, kThread, kWarp, kBlock, kGrid };
inline constexpr size_t kReuseScopes = 5;

// Words of 4 bytes, scaled to all of them where only a part is watched.
struct ScopeWeights {
  uint64_t words[kReuseScopes] = {};

  uint64_t total() const {
    uint64_t sum = 0;
    for (const uint64_t count : words) sum += count;
    return sum;
  }
  uint64_t of(ReuseScope scope) const { return words[static_cast<size_t>(scope)]; }
  double share(ReuseScope scope) const {
    const uint64_t whole = total();
    return whole == 0 ? 0 : static_cast<double>(of(scope)) / static_cast<double>(whole);
  }
};

// An instruction that accesses memory.
struct ReuseNode {
  uint64_t accesses = 0;   // of warps
  uint64_t lanes = 0;      // sum over them, as the following
  uint64_t sectors = 0;    // distinct, of 32 bytes
  uint64_t addresses = 0;  // distinct
  uint32_t size = 0;       // bytes of a thread's access
  uint32_t kind = 0;       // 1 read, 2 write, 3 atomic
  uint32_t memory = 0;     // 0 global, 1 shared, 2 local, as warp records have it
  uint64_t repeated = 0;   // words that another lane of the same warp access had touched
  ScopeWeights in;         // of all edges into it
};

struct ReuseEdge {
  uint32_t from = 0;  // program counters, bytes from the function's begin
  uint32_t to = 0;
  auto operator<=>(const ReuseEdge &) const = default;
};

struct ReuseEdgeHash {
  size_t operator()(const ReuseEdge &edge) const { return mix(uint64_t{edge.from} << 32 | edge.to); }
};

// Of one launch, or of all launches of a kernel.
struct ReuseGraph {
  std::unordered_map<uint32_t, ReuseNode> nodes;  // by program counter
  std::unordered_map<ReuseEdge, ScopeWeights, ReuseEdgeHash> edges;
  uint64_t left_out = 0;  // accesses of instructions beyond instruction_limit

  void add(const ReuseGraph &other, size_t limit);
};

// Takes the warp accesses of one launch. Between blocks the order is that of the records, which is not quite the
// order on the device. Memory: reuse_words words; where there are more, only those whose hash is a multiple of a period stay,
// which doubles, and each counts for so many.
class ReuseScopes {
 public:
  explicit ReuseScopes(const Options &options) : options_(&options) {}

  void add(const toolkit::WarpAccess &access);
  const ReuseGraph &graph() const { return graph_; }
  uint64_t period() const { return period_; }

 private:
  struct Last {
    uint32_t block;
    uint32_t pc;
    uint16_t warp;
    uint8_t lane;
    uint64_t access;  // number of the warp access
  };

  void word(uint64_t key, const sonde_warp_access_t &head, uint32_t lane, ReuseNode &node);

  const Options *options_;
  ReuseGraph graph_;
  uint64_t period_ = 1;
  uint64_t access_ = 0;
  std::unordered_map<uint64_t, Last> words_;
};

}  // namespace sonde::workload
