#include "reuse_scopes.h"

#include <algorithm>
#include <array>

namespace sonde::workload {
namespace {

constexpr uint64_t kWordBytes = 4;
constexpr uint32_t kShared = 1;  // memory() of a warp access

// Distinct values of up to 64.
size_t distinct(std::array<uint64_t, 64> &values, size_t count) {
  std::sort(values.begin(), values.begin() + static_cast<ptrdiff_t>(count));
  return static_cast<size_t>(std::unique(values.begin(), values.begin() + static_cast<ptrdiff_t>(count)) -
                             values.begin());
}

void sum(ScopeWeights &into, const ScopeWeights &from) {
  for (size_t i = 0; i < kReuseScopes; ++i) into.words[i] += from.words[i];
}

}  // namespace

void ReuseGraph::add(const ReuseGraph &other, size_t limit) {
  left_out += other.left_out;
  for (const auto &[pc, node] : other.nodes) {
    if (nodes.size() >= limit && !nodes.contains(pc)) {
      left_out += node.accesses;
      continue;
    }
    ReuseNode &into = nodes[pc];
    into.accesses += node.accesses;
    into.lanes += node.lanes;
    into.sectors += node.sectors;
    into.addresses += node.addresses;
    into.size = node.size;
    into.kind |= node.kind;
    into.memory = node.memory;
    into.repeated += node.repeated;
    sum(into.in, node.in);
  }
  for (const auto &[edge, weights] : other.edges) {
    if (edges.size() >= 4 * limit && !edges.contains(edge)) continue;
    sum(edges[edge], weights);
  }
}

void ReuseScopes::add(const toolkit::WarpAccess &access) {
  const sonde_warp_access_t &head = access.head();
  if (graph_.nodes.size() >= static_cast<size_t>(options_->instruction_limit) && !graph_.nodes.contains(head.pc)) {
    ++graph_.left_out;
    return;
  }
  ReuseNode &node = graph_.nodes[head.pc];
  ++access_;
  ++node.accesses;
  node.size = head.size;
  node.kind |= access.kind();
  node.memory = access.memory();
  const bool is_shared = access.memory() == kShared;
  std::array<uint64_t, 64> sectors, addresses;
  size_t sector_count = 0, address_count = 0;
  access.for_each_lane([&](uint32_t lane, uint64_t address) {
    addresses[address_count++] = address;
    // An access of at most 16 bytes lies in at most two sectors.
    sectors[sector_count++] = address >> 5;
    const uint64_t last = address + std::max<uint32_t>(head.size, 1) - 1;
    if (last >> 5 != address >> 5) sectors[sector_count++] = last >> 5;
    for (uint64_t at = address / kWordBytes; at <= last / kWordBytes; ++at) {
      // Shared memory is another one in each block.
      word(is_shared ? (uint64_t{1} << 63 | uint64_t{head.block} << 26 | at) : at, head, lane, node);
    }
  });
  node.lanes += address_count;
  node.sectors += distinct(sectors, sector_count);
  node.addresses += distinct(addresses, address_count);
}

void ReuseScopes::word(uint64_t key, const sonde_warp_access_t &head, uint32_t lane, ReuseNode &node) {
  const auto is_watched = [this](uint64_t of) { return period_ == 1 || (mix(of) & (period_ - 1)) == 0; };
  if (!is_watched(key)) return;
  const Last now{head.block, head.pc, head.warp, static_cast<uint8_t>(lane), access_};
  const auto it = words_.find(key);
  if (it == words_.end()) {
    while (words_.size() >= static_cast<size_t>(options_->reuse_words)) {
      period_ *= 2;
      std::erase_if(words_, [&](const auto &entry) { return !is_watched(entry.first); });
    }
    if (!is_watched(key)) return;
    node.in.words[static_cast<size_t>(ReuseScope::kCold)] += period_;
    words_.emplace(key, now);
    return;
  }
  Last &last = it->second;
  if (last.access == access_) {
    node.repeated += period_;
    return;
  }
  const ReuseScope scope = last.block != now.block ? ReuseScope::kGrid
                           : last.warp != now.warp ? ReuseScope::kBlock
                           : last.lane != now.lane ? ReuseScope::kWarp
                                                   : ReuseScope::kThread;
  node.in.words[static_cast<size_t>(scope)] += period_;
  const ReuseEdge edge{last.pc, now.pc};
  if (graph_.edges.size() < 4 * static_cast<size_t>(options_->instruction_limit) || graph_.edges.contains(edge)) {
    graph_.edges[edge].words[static_cast<size_t>(scope)] += period_;
  }
  last = now;
}

}  // namespace sonde::workload
