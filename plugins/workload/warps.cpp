#include "warps.h"

#include <algorithm>
#include <cmath>

namespace sonde::workload {

void Warps::add(uint32_t source, uint64_t launch, const sonde_record_t *record, const LaunchBook &book) {
  const Key key{source, launch};
  auto it = open_.find(key);
  if (it == open_.end()) {
    if (open_.size() >= static_cast<size_t>(options_->warp_launches)) {
      ++cut_;
      close(order_.front());
    }
    it = open_.try_emplace(key, *options_).first;
    order_.push_back(key);
    if (const LaunchFacts *const facts = book.find(source, launch); facts != nullptr) it->second.facts = *facts;
  }
  Open &open = it->second;
  toolkit::WarpAccess access;
  toolkit::WarpRecords records(record);
  while (records.next(access)) {
    ++open.accesses;
    open.divergence.add(access);
    open.reuse.add(access);
    open.words.add(access);
  }
  damaged_ += records.damaged() ? 1 : 0;
}

void Warps::launch(const LaunchFacts &facts) {
  const Key key{facts.kernel.source, facts.launch};
  const auto it = open_.find(key);
  if (it != open_.end()) {
    it->second.facts = facts;
    settling_.push_back(key);
  }
  while (settling_.size() > kSettle) {
    const Key oldest = settling_.front();
    settling_.pop_front();
    close(oldest);
  }
}

void Warps::finish() {
  while (!order_.empty()) close(order_.front());
  settling_.clear();
}

void Warps::close(Key key) {
  std::erase(order_, key);
  std::erase(settling_, key);
  const auto it = open_.find(key);
  if (it == open_.end()) return;
  const Open open = std::move(it->second);
  open_.erase(it);
  if (open.facts.launch == 0) {
    ++unknown_;
    return;
  }
  WarpRow &row = kernels_.get(open.facts.kernel);
  ++row.launches;
  row.accesses += open.accesses;
  if (auto result = open.divergence.finish()) {
    row.variation_ppm.add(std::llround(result->variation * 1e6));
    if (row.worst.blocks == 0 || result->variation > row.worst.variation) {
      row.worst = std::move(*result);
      row.worst_launch = open.facts.launch;
    }
  }
  row.graph.add(open.reuse.graph(), static_cast<size_t>(options_->instruction_limit));
  row.reuse_period = std::max(row.reuse_period, open.reuse.period());
  if (open.words.sectors() != 0 && row.sectors.size() < static_cast<size_t>(options_->word_heat_launches)) {
    row.sectors.push_back({open.facts.launch, open.words.sectors(), open.words.left_out(), open.words.hottest()});
  }
}

}  // namespace sonde::workload
