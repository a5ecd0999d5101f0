#include "block_divergence.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace sonde::workload {

double cosine(const std::vector<uint32_t> &a, const std::vector<uint32_t> &b) {
  double dot = 0, a_squares = 0, b_squares = 0;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const double x = i < a.size() ? a[i] : 0, y = i < b.size() ? b[i] : 0;
    dot += x * y;
    a_squares += x * x;
    b_squares += y * y;
  }
  if (a_squares == 0 && b_squares == 0) return 1;
  if (a_squares == 0 || b_squares == 0) return 0;
  return dot / std::sqrt(a_squares * b_squares);
}

void BlockDivergence::add(const toolkit::WarpAccess &access) {
  const sonde_warp_access_t &head = access.head();
  if (head.block % period_ != 0) return;
  auto it = blocks_.find(head.block);
  while (it == blocks_.end()) {
    if (blocks_.size() < static_cast<size_t>(options_->divergence_blocks)) {
      it = blocks_.try_emplace(head.block).first;
      break;
    }
    thin();
    if (head.block % period_ != 0) return;
  }
  Block &block = it->second;
  const auto most = static_cast<uint32_t>(options_->divergence_instructions);
  const auto instruction = indices_.find(head.pc);
  uint32_t index = most - 1;
  if (instruction != indices_.end()) {
    index = instruction->second;
  } else if (indices_.size() < most) {
    index = static_cast<uint32_t>(indices_.size());
    indices_.emplace(head.pc, index);
  }
  const uint32_t lanes = access.lanes();
  block.accesses += lanes;
  // An atomic operation reads and writes.
  block.reads += (access.kind() & 1) != 0 ? lanes : 0;
  block.writes += (access.kind() & 2) != 0 ? lanes : 0;
  if (block.counts.size() <= index) block.counts.resize(index + 1);
  block.counts[index] += lanes;
}

void BlockDivergence::thin() {
  period_ *= 2;
  std::erase_if(blocks_, [this](const auto &entry) { return entry.first % period_ != 0; });
}

std::optional<DivergenceResult> BlockDivergence::finish() const {
  if (blocks_.empty()) return std::nullopt;
  DivergenceResult result;
  result.blocks = blocks_.size();
  result.period = period_;
  result.instructions = indices_.size();
  std::vector<std::pair<uint32_t, const Block *>> blocks;
  for (const auto &[number, block] : blocks_) blocks.emplace_back(number, &block);
  std::sort(blocks.begin(), blocks.end());
  toolkit::Statistics accesses;
  std::set<std::vector<uint32_t>> vectors;
  std::vector<const Block *> leaders;
  for (const auto &[number, block] : blocks) {
    accesses.add(static_cast<int64_t>(block->accesses));
    // Counts of instructions that a block never came to are zero, stored or not.
    std::vector<uint32_t> counts = block->counts;
    while (!counts.empty() && counts.back() == 0) counts.pop_back();
    vectors.insert(std::move(counts));
    size_t cluster = 0;
    while (cluster < leaders.size() && cosine(leaders[cluster]->counts, block->counts) < options_->divergence_cosine) {
      ++cluster;
    }
    if (cluster == leaders.size()) {
      if (leaders.size() == kClusters) {
        ++result.unclustered;
        continue;
      }
      leaders.push_back(block);
      result.clusters.push_back({number, 0, block->accesses, block->reads, block->writes});
    }
    ++result.clusters[cluster].blocks;
  }
  result.least = static_cast<uint64_t>(accesses.min());
  result.greatest = static_cast<uint64_t>(accesses.max());
  result.mean = accesses.mean();
  result.variation = accesses.mean() == 0 ? 0 : std::sqrt(accesses.variance()) / accesses.mean();
  result.exact_clusters = vectors.size();
  return result;
}

}  // namespace sonde::workload
