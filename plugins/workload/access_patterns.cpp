#include "access_patterns.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>

namespace sonde::workload {
namespace {

constexpr uint32_t kRead = 1, kWrite = 2, kAtomic = 3;
constexpr uint32_t kShared = 1;

// What all predecessors of an instruction have in common.
struct Predecessors {
  bool any = false;
  bool all_threads = true;  // every edge within one thread
  bool all_reads = true;
  bool all_writes = true;
};

std::optional<Strength> atomic_strength(double cross, double warp, const Options &options) {
  if (cross > options.atomic_high) return Strength::kHigh;
  if (cross > options.atomic_medium || warp > options.atomic_medium_warp) return Strength::kMedium;
  if (cross > options.atomic_low || warp > options.atomic_low_warp) return Strength::kLow;
  return std::nullopt;
}

}  // namespace

const char *pattern_name(Pattern pattern) {
  constexpr std::array kNames = {"atomic_contention", "read_after_read", "read_after_write",
                                 "write_after_write", "grid_reuse",      "block_reuse",
                                 "uncoalesced",       "streaming",       "broadcast"};
  return kNames[static_cast<size_t>(pattern)];
}

const char *strength_name(Strength strength) {
  constexpr std::array kNames = {"low", "medium", "high"};
  return kNames[static_cast<size_t>(strength)];
}

double density(const ReuseNode &node) {
  if (node.lanes == 0) return 0;
  return static_cast<double>(node.sectors) / static_cast<double>(node.lanes) *
         std::max(1.0, 32.0 / std::max<uint32_t>(node.size, 1));
}

std::vector<PatternHit> find_patterns(const ReuseGraph &graph, const Options &options) {
  std::map<uint32_t, Predecessors> predecessors;
  for (const auto &[edge, weights] : graph.edges) {
    Predecessors &before = predecessors[edge.to];
    const auto from = graph.nodes.find(edge.from);
    const uint32_t kind = from == graph.nodes.end() ? 0 : from->second.kind;
    before.any = true;
    before.all_threads = before.all_threads && weights.of(ReuseScope::kThread) == weights.total();
    before.all_reads = before.all_reads && kind == kRead;
    before.all_writes = before.all_writes && kind == kWrite;
  }
  std::vector<uint32_t> order;
  for (const auto &[pc, node] : graph.nodes) order.push_back(pc);
  std::sort(order.begin(), order.end());

  std::vector<PatternHit> hits;
  for (const uint32_t pc : order) {
    const ReuseNode &node = graph.nodes.at(pc);
    if (node.in.total() == 0 || node.in.total() < static_cast<uint64_t>(options.reuse_least_words)) continue;
    const double warp = node.in.share(ReuseScope::kWarp), thread = node.in.share(ReuseScope::kThread);
    const double grid = node.in.share(ReuseScope::kGrid), cold = node.in.share(ReuseScope::kCold);
    const auto together = [&](std::initializer_list<ReuseScope> scopes) {
      uint64_t words = 0;
      for (const ReuseScope scope : scopes) words += node.in.of(scope);
      return static_cast<double>(words) / static_cast<double>(node.in.total());
    };
    const double cross = together({ReuseScope::kBlock, ReuseScope::kGrid});
    const auto hit = [&](Pattern pattern, Strength strength, double measure) {
      hits.push_back({pc, pattern, strength, measure});
    };
    if (node.kind == kAtomic) {
      if (const auto strength = atomic_strength(cross, warp, options)) {
        hit(Pattern::kAtomicContention, *strength, std::max(cross, warp));
      }
    }
    const Predecessors before = predecessors[pc];
    // Nothing cold, and every edge within its thread.
    if (before.any && before.all_threads && node.in.of(ReuseScope::kCold) == 0) {
      if (node.kind == kRead && before.all_reads) hit(Pattern::kReadAfterRead, Strength::kMedium, thread);
      if (node.kind == kRead && before.all_writes) hit(Pattern::kReadAfterWrite, Strength::kMedium, thread);
      if (node.kind == kWrite && before.all_writes) hit(Pattern::kWriteAfterWrite, Strength::kMedium, thread);
    }
    if (grid > options.grid_reuse) hit(Pattern::kGridReuse, Strength::kMedium, grid);
    const double within = together({ReuseScope::kThread, ReuseScope::kWarp, ReuseScope::kBlock});
    if (node.memory != kShared && within > options.block_reuse) hit(Pattern::kBlockReuse, Strength::kMedium, within);
    if (node.memory == kShared) continue;  // sectors say nothing about shared memory
    const double dense = density(node);
    if (dense > options.uncoalesced_density && cold > options.uncoalesced_cold) {
      const bool is_high = dense > options.uncoalesced_density_high && cold > options.uncoalesced_cold_high;
      hit(Pattern::kUncoalesced, is_high ? Strength::kHigh : Strength::kMedium, dense);
    }
    if (dense <= options.uncoalesced_density && cold > options.streaming_cold) {
      hit(Pattern::kStreaming, cold > options.streaming_cold_high ? Strength::kHigh : Strength::kMedium, cold);
    }
    const double distinct = node.lanes == 0 ? 1 : static_cast<double>(node.addresses) / static_cast<double>(node.lanes);
    if (distinct < options.broadcast_addresses) {
      hit(Pattern::kBroadcast, distinct < options.broadcast_addresses_high ? Strength::kHigh : Strength::kMedium,
          distinct);
    }
  }
  return hits;
}

}  // namespace sonde::workload
