#include "trace.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sonde::uvm {

namespace {

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash ^= word + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdULL;
}

uint64_t hash_of(const TouchSet &set) {
  uint64_t hash = set.size();
  for (const PageSpan &span : set) {
    hash = mixed(hash, uint64_t{span.allocation} << 32 | span.first);
    hash = mixed(hash, uint64_t{span.count} << 2 | (span.is_written ? 2u : 0u) | (span.is_read ? 1u : 0u));
  }
  return hash;
}

uint32_t mask_of(uint32_t first, uint32_t count) {
  return (count >= kBlockPages ? UINT32_MAX : (1u << count) - 1) << first;
}

}  // namespace

uint32_t Trace::intern(const TouchSet &set) {
  if (set.empty()) return 0;
  const uint64_t hash = hash_of(set);
  const auto [first, last] = set_of_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const TouchSet &known = sets[it->second];
    const auto same = [](const PageSpan &left, const PageSpan &right) {
      // Traffic is a measured ratio: launches that differ in it alone are the same touches.
      return left.allocation == right.allocation && left.first == right.first && left.count == right.count &&
             left.is_written == right.is_written && left.is_read == right.is_read;
    };
    if (std::equal(known.begin(), known.end(), set.begin(), set.end(), same)) return it->second;
  }
  const auto number = static_cast<uint32_t>(sets.size());
  sets.push_back(set);
  set_of_hash_.emplace(hash, number);
  return number;
}

uint32_t Trace::kernel(const std::string &name) {
  const auto [place, is_new] = kernel_of_name_.try_emplace(name, static_cast<uint32_t>(kernels.size()));
  if (is_new) {
    kernels.push_back(name);
    occurrences_.push_back(0);
  }
  return place->second;
}

uint32_t Trace::allocate(uint64_t bytes, Home home) {
  Allocation made;
  made.ordinal = allocations.size();
  made.bytes = bytes;
  made.home = home;
  made.begin_step = static_cast<uint32_t>(steps.size());
  allocations.push_back(std::move(made));
  return static_cast<uint32_t>(allocations.size() - 1);
}

Step &Trace::launch(uint32_t kernel, uint32_t touches, int64_t duration_ns) {
  Step step;
  step.kernel = kernel;
  step.touches = touches;
  step.duration_ns = duration_ns;
  step.launch = launches_++;
  step.occurrence = occurrences_[kernel]++;
  steps.push_back(step);
  return steps.back();
}

Step &Trace::host_touch(uint32_t touches) {
  Step step;
  step.touches = touches;
  steps.push_back(step);
  return steps.back();
}

uint64_t Trace::footprint() const {
  // The union of the spans of each allocation.
  std::vector<PageSpan> all;
  for (const TouchSet &set : sets) all.insert(all.end(), set.begin(), set.end());
  std::sort(all.begin(), all.end(), [](const PageSpan &left, const PageSpan &right) {
    return left.allocation != right.allocation ? left.allocation < right.allocation : left.first < right.first;
  });
  uint64_t pages = 0;
  uint32_t allocation = kNone;
  uint64_t end = 0;
  for (const PageSpan &span : all) {
    if (span.allocation != allocation) {
      allocation = span.allocation;
      end = 0;
    }
    const uint64_t begin = std::max<uint64_t>(span.first, end);
    const uint64_t span_end = uint64_t{span.first} + span.count;
    if (span_end > begin) pages += span_end - begin;
    end = std::max(end, span_end);
  }
  return pages * kPageBytes;
}

uint64_t Trace::greatest_step() const {
  uint64_t most = 0;
  for (const TouchSet &set : sets) {
    uint64_t pages = 0;
    for (const PageSpan &span : set) pages += span.count;
    most = std::max(most, pages);
  }
  return most * kPageBytes;
}

int64_t Trace::resident_ns() const {
  int64_t sum = 0;
  for (const Step &step : steps) sum += step.duration_ns + step.gap_ns;
  return sum;
}

namespace {

// Blocks that a set's spans reach into; a block that two spans share counts twice.
std::vector<uint32_t> blocks_of_sets(const std::vector<TouchSet> &sets) {
  std::vector<uint32_t> out(sets.size(), 0);
  for (size_t set = 0; set < sets.size(); ++set) {
    for (const PageSpan &span : sets[set]) {
      out[set] += (span.first + span.count - 1) / kBlockPages - span.first / kBlockPages + 1;
    }
  }
  return out;
}

}  // namespace

uint64_t Trace::block_accesses(size_t limit) const {
  const std::vector<uint32_t> blocks = blocks_of_sets(sets);
  uint64_t sum = 0;
  for (size_t index = 0; index < steps.size() && index < limit; ++index) sum += blocks[steps[index].touches];
  return sum;
}

Trace Trace::beginning(uint64_t accesses) const {
  const std::vector<uint32_t> blocks = blocks_of_sets(sets);
  size_t count = 0;
  for (uint64_t sum = 0; count < steps.size(); ++count) {
    sum += blocks[steps[count].touches];
    if (sum > accesses && count != 0) break;
  }
  Trace out = *this;
  out.steps.resize(count);
  for (Allocation &allocation : out.allocations) {
    if (allocation.end_step != kNone && allocation.end_step > count) allocation.end_step = kNone;
  }
  return out;
}

bool Trace::has_kernel_times() const {
  return std::any_of(steps.begin(), steps.end(), [](const Step &step) { return step.duration_ns != 0; });
}

const std::string &Trace::kernel_name(const Step &step) const {
  static const std::string host = "the host";
  return step.is_host() ? host : kernels[step.kernel];
}

BlockMap::BlockMap(const Trace &trace) {
  for (uint32_t allocation = 0; allocation < trace.allocations.size(); ++allocation) {
    first_.push_back(count());
    uint64_t left = std::max<uint64_t>(pages_of(trace.allocations[allocation].bytes), 1);
    while (left != 0) {
      const auto pages = static_cast<uint32_t>(std::min<uint64_t>(left, kBlockPages));
      allocation_.push_back(allocation);
      whole_.push_back(mask_of(0, pages));
      left -= pages;
    }
  }
}

std::vector<BlockAccess> accesses_of(const TouchSet &set, const BlockMap &map) {
  struct Placed {
    double place;  // 0 to 1 within its span
    BlockAccess access;
  };
  std::vector<Placed> placed;
  uint64_t pages = 0;
  for (uint32_t index = 0; index < set.size(); ++index) {
    const PageSpan &span = set[index];
    pages += span.count;
    for (uint32_t done = 0; done < span.count;) {
      const uint32_t page = span.first + done;
      const uint32_t within = page % kBlockPages;
      const uint32_t count = std::min(kBlockPages - within, span.count - done);
      Placed one;
      one.place = (static_cast<double>(done) + 0.5 * count) / span.count;
      one.access.block = map.first(span.allocation) + page / kBlockPages;
      one.access.mask = mask_of(within, count);
      one.access.span = index;
      one.access.share = static_cast<float>(count);
      one.access.traffic = span.traffic;
      one.access.is_written = span.is_written;
      placed.push_back(one);
      done += count;
    }
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const Placed &left, const Placed &right) { return left.place < right.place; });
  std::vector<BlockAccess> accesses;
  accesses.reserve(placed.size());
  for (Placed &one : placed) {
    one.access.share /= static_cast<float>(pages);
    // Spans of one allocation that meet in a block are one access of it.
    if (!accesses.empty() && accesses.back().block == one.access.block) {
      accesses.back().mask |= one.access.mask;
      accesses.back().share += one.access.share;
      accesses.back().is_written |= one.access.is_written;
      continue;
    }
    accesses.push_back(one.access);
  }
  return accesses;
}

}  // namespace sonde::uvm
