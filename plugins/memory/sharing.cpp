#include "sharing.h"

#include <sonde/toolkit/interval_colouring.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace sonde::memory {

bool Sharing::is_larger(const Candidate &a, const Candidate &b) {
  return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id;
}

void Sharing::add(const Usage &usage, const Options &options) {
  if (usage.uses == 0 || usage.object.bytes == 0) return;
  if (heap_.size() == limit_) {
    const Candidate &smallest = heap_.front();
    if (usage.object.bytes < smallest.bytes ||
        (usage.object.bytes == smallest.bytes && usage.object.id > smallest.id)) {
      left_out_largest_ = std::max(left_out_largest_, usage.object.bytes);
      ++left_out_;
      return;
    }
  }
  Candidate candidate;
  candidate.id = usage.object.id;
  candidate.bytes = usage.object.bytes;
  candidate.begin = usage.begin_sequence;
  candidate.end = usage.end_sequence;
  candidate.begin_ns = usage.object.begin_ns;
  candidate.end_ns = usage.object.end_ns;
  candidate.may_pair = is_judged(usage, options) && usage.is_life_certain && !usage.is_touched_late &&
                       !usage.object.is_implicit && !usage.object.is_before_capture &&
                       !usage.patterns.has(Pattern::kUnusedAllocation);
  candidate.address = usage.object.address;
  candidate.name = usage.object.name;
  candidate.call_path = usage.object.call_path;
  candidate.first = usage.first;
  candidate.last = usage.last;
  heap_.push_back(candidate);
  std::push_heap(heap_.begin(), heap_.end(), is_larger);
  if (heap_.size() <= limit_) return;
  std::pop_heap(heap_.begin(), heap_.end(), is_larger);
  left_out_largest_ = std::max(left_out_largest_, heap_.back().bytes);
  ++left_out_;
  heap_.pop_back();
}

void Sharing::find_pairs(const Options &options, uint64_t peak_sequence, SharingResult &result) const {
  std::vector<uint32_t> by_first, by_last;
  for (uint32_t i = 0; i < heap_.size(); ++i) {
    if (heap_[i].may_pair) by_first.push_back(i);
  }
  by_last = by_first;
  const auto in_order = [this](uint64_t Use::*key, Use Candidate::*use) {
    return [this, key, use](uint32_t a, uint32_t b) {
      const uint64_t left = heap_[a].*use.*key, right = heap_[b].*use.*key;
      return left != right ? left < right : heap_[a].id < heap_[b].id;
    };
  };
  std::sort(by_first.begin(), by_first.end(), in_order(&Use::sequence, &Candidate::first));
  std::sort(by_last.begin(), by_last.end(), in_order(&Use::sequence, &Candidate::last));
  // Objects whose last use is over and that nobody took, by size: end of life, index.
  std::map<uint64_t, std::set<std::pair<uint64_t, uint32_t>>> over;
  size_t passed = 0;
  for (const uint32_t at : by_first) {
    const Candidate &later = heap_[at];
    for (; passed < by_last.size() && heap_[by_last[passed]].last.sequence < later.first.sequence; ++passed) {
      const Candidate &done = heap_[by_last[passed]];
      over[done.bytes].insert({done.end, by_last[passed]});
    }
    const auto bytes = static_cast<double>(later.bytes);
    const auto least = static_cast<uint64_t>(bytes * (1 - options.reuse_tolerance));
    auto best = over.end();
    uint64_t best_apart = UINT64_MAX;
    for (auto size = options.reuse_tolerance > 0 ? over.lower_bound(least) : over.lower_bound(later.bytes);
         size != over.end(); ++size) {
      const auto larger = static_cast<double>(std::max(size->first, later.bytes));
      const uint64_t apart = std::max(size->first, later.bytes) - std::min(size->first, later.bytes);
      if (static_cast<double>(apart) > options.reuse_tolerance * larger) {
        if (size->first > later.bytes) break;
        continue;
      }
      if (apart >= best_apart || size->second.rbegin()->first < later.begin) continue;
      best = size;
      best_apart = apart;
    }
    if (best == over.end()) continue;
    const auto taken = std::prev(best->second.end());
    const Candidate &earlier = heap_[taken->second];
    SharedPair pair;
    pair.later = later.id;
    pair.earlier = earlier.id;
    pair.bytes = std::min(earlier.bytes, later.bytes);
    const int64_t both = std::min(earlier.end_ns, later.end_ns) - std::max(earlier.begin_ns, later.begin_ns);
    pair.byte_ns = static_cast<double>(pair.bytes) * static_cast<double>(std::max<int64_t>(both, 0));
    const auto lives = [&](const Candidate &one) { return one.begin <= peak_sequence && peak_sequence <= one.end; };
    pair.at_peak = lives(earlier) && lives(later) ? pair.bytes : 0;
    pair.is_across_streams = earlier.last.stream != later.first.stream;
    pair.last_of_earlier = earlier.last;
    pair.first_of_later = later.first;
    pair.later_object.id = later.id;
    pair.later_object.address = later.address;
    pair.later_object.bytes = later.bytes;
    pair.later_object.name = later.name;
    pair.later_object.call_path = later.call_path;
    result.pairs.push_back(pair);
    best->second.erase(taken);
    if (best->second.empty()) over.erase(best);
  }
  std::stable_sort(result.pairs.begin(), result.pairs.end(),
                   [](const SharedPair &a, const SharedPair &b) { return a.byte_ns > b.byte_ns; });
}

SharingResult Sharing::finish(const Options &options, uint64_t peak_sequence) const {
  SharingResult result;
  result.objects = heap_.size();
  result.left_out = left_out_;
  result.left_out_largest = left_out_largest_;
  std::vector<Candidate> order = heap_;
  std::sort(order.begin(), order.end(), [](const Candidate &a, const Candidate &b) { return a.id < b.id; });
  std::vector<toolkit::Need> needs;
  needs.reserve(order.size());
  for (const Candidate &one : order) needs.push_back({one.first.sequence, one.last.sequence, one.bytes});
  result.bound = toolkit::needed_bound(needs);
  const toolkit::SlotPlan slots = toolkit::share_slots(needs);
  result.slots = slots.slot_bytes.size();
  result.slots_bytes = slots.bytes;
  result.offsets_bytes = toolkit::pack_offsets(needs).bytes;
  find_pairs(options, peak_sequence, result);
  return result;
}

}  // namespace sonde::memory
