#include "word_heat.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace sonde::workload {

uint32_t SectorHeat::distinct_warps(size_t word) const { return static_cast<uint32_t>(std::popcount(warps[word])); }

void WordHeat::add(const toolkit::WarpAccess &access) {
  const sonde_warp_access_t &head = access.head();
  const std::vector<uint32_t> &blocks = options_->word_heat_blocks;
  if (std::find(blocks.begin(), blocks.end(), head.block) == blocks.end()) return;
  const uint64_t warp = uint64_t{1} << (head.warp & 63);
  access.for_each_lane([&](uint32_t, uint64_t address) {
    const uint64_t last = address + std::max<uint32_t>(head.size, 1) - 1;
    for (uint64_t sector = address >> 5; sector <= last >> 5; ++sector) {
      const Key key{sector, head.block, access.memory()};
      auto it = sectors_.find(key);
      if (it == sectors_.end()) {
        if (sectors_.size() >= static_cast<size_t>(options_->word_heat_limit)) {
          ++left_out_;
          continue;
        }
        it = sectors_.try_emplace(key).first;
        it->second.block = head.block;
        it->second.memory = access.memory();
        it->second.address = sector << 5;
      }
      SectorHeat &heat = it->second;
      const uint64_t first_word = std::max(address, sector << 5) >> 2 & 7;
      const uint64_t last_word = std::min(last, (sector << 5) + 31) >> 2 & 7;
      for (uint64_t word = first_word; word <= last_word; ++word) {
        ++heat.accesses[word];
        heat.warps[word] |= warp;
      }
      ++heat.accesses[SectorHeat::kWhole];
      heat.warps[SectorHeat::kWhole] |= warp;
      const auto end = heat.pcs.begin() + heat.pc_count;
      if (std::find(heat.pcs.begin(), end, head.pc) != end) continue;
      if (heat.pc_count < SectorHeat::kCounters) {
        heat.pcs[heat.pc_count++] = head.pc;
      } else {
        heat.has_more_pcs = true;
      }
    }
  });
}

std::vector<SectorHeat> WordHeat::hottest() const {
  std::vector<SectorHeat> out;
  out.reserve(sectors_.size());
  for (const auto &[key, heat] : sectors_) out.push_back(heat);
  std::sort(out.begin(), out.end(), [](const SectorHeat &a, const SectorHeat &b) {
    const uint64_t x = a.accesses[SectorHeat::kWhole], y = b.accesses[SectorHeat::kWhole];
    if (x != y) return x > y;
    return std::tie(a.block, a.memory, a.address) < std::tie(b.block, b.memory, b.address);
  });
  if (out.size() > static_cast<size_t>(options_->word_heat_sectors)) {
    out.resize(static_cast<size_t>(options_->word_heat_sectors));
  }
  return out;
}

}  // namespace sonde::workload
