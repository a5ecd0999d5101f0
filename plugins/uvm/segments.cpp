#include "segments.h"

#include <algorithm>

namespace sonde::uvm {

Segments cut_segments(const Trace &trace, Level level, uint64_t chunk_bytes) {
  Segments out;
  const uint64_t chunk = std::max<uint64_t>(pages_of(chunk_bytes), 1);
  // Cuts of each allocation that is touched.
  std::vector<std::vector<uint32_t>> cuts(trace.allocations.size());
  for (const TouchSet &set : trace.sets) {
    for (const PageSpan &span : set) {
      auto &mine = cuts[span.allocation];
      if (level == Level::kObject) {
        if (mine.empty()) mine = {0, static_cast<uint32_t>(pages_of(trace.allocations[span.allocation].bytes))};
        continue;
      }
      mine.push_back(span.first);
      mine.push_back(span.first + span.count);
    }
  }
  std::vector<uint32_t> first_segment(trace.allocations.size() + 1, 0);
  for (uint32_t allocation = 0; allocation < cuts.size(); ++allocation) {
    first_segment[allocation] = static_cast<uint32_t>(out.all.size());
    auto &mine = cuts[allocation];
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    for (size_t index = 0; index + 1 < mine.size(); ++index) {
      for (uint64_t page = mine[index]; page < mine[index + 1]; page += chunk) {
        const auto count = static_cast<uint32_t>(std::min<uint64_t>(chunk, mine[index + 1] - page));
        out.all.push_back({allocation, static_cast<uint32_t>(page), count});
      }
    }
  }
  first_segment[cuts.size()] = static_cast<uint32_t>(out.all.size());

  out.of_set.resize(trace.sets.size());
  out.is_written.resize(out.all.size());
  for (size_t set = 0; set < trace.sets.size(); ++set) {
    for (const PageSpan &span : trace.sets[set]) {
      const auto begin = out.all.begin() + first_segment[span.allocation];
      const auto end = out.all.begin() + first_segment[span.allocation + 1];
      auto at = std::upper_bound(begin, end, span.first,
                                 [](uint32_t page, const Segment &segment) { return page < segment.first; });
      if (at != begin) --at;
      for (; at != end && at->first < span.first + span.count; ++at) {
        if (at->first + at->count <= span.first) continue;
        const auto number = static_cast<uint32_t>(at - out.all.begin());
        out.of_set[set].push_back(number);
        if (span.is_written) out.is_written[number] = true;
      }
    }
    auto &mine = out.of_set[set];
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
  }
  return out;
}

}  // namespace sonde::uvm
