#include <sonde/clock.h>
#include <sonde/toolkit/run_join.h>
#include <sonde/toolkit/sequence_alignment.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>
#include <unordered_set>

namespace sonde::toolkit {
namespace {

constexpr size_t kMostLanesSquared = size_t{512} * 512;
constexpr size_t kLaneNeighbours = 64;
constexpr double kSimilaritySteps = 16;

// One lane's items in both runs, as indices and keys.
struct LanePair {
  std::span<const uint32_t> a;
  std::span<const uint32_t> b;
  std::vector<uint32_t> a_keys;
  std::vector<uint32_t> b_keys;
};

struct LeftOver {
  size_t place = 0;     // in the lane
  size_t expected = 0;  // for b: the place in a where it would have been
  size_t gap = 0;       // between the same two runs of the alignment
  uint32_t index = 0;
};

void match(Join &join, uint32_t a, uint32_t b) {
  join.b_of_a[a] = b;
  join.a_of_b[b] = a;
  ++join.matched;
}

// What an alignment leaves, in order.
void collect_left_over(const LanePair &pair, const std::vector<AlignedRun> &runs, std::vector<LeftOver> &a,
                       std::vector<LeftOver> &b) {
  size_t a_next = 0;
  size_t b_next = 0;
  for (size_t gap = 0; gap <= runs.size(); ++gap) {
    const size_t a_end = gap == runs.size() ? pair.a.size() : runs[gap].a;
    const size_t b_end = gap == runs.size() ? pair.b.size() : runs[gap].b;
    for (size_t place = a_next; place < a_end; ++place) a.push_back({place, place, gap, pair.a[place]});
    for (size_t place = b_next; place < b_end; ++place) b.push_back({place, a_next, gap, pair.b[place]});
    if (gap == runs.size()) break;
    a_next = runs[gap].a + runs[gap].length;
    b_next = runs[gap].b + runs[gap].length;
  }
}

// Items left over with one key that are not far apart are the same, in another order.
void match_out_of_order(Join &join, const LanePair &pair, size_t most_apart, std::vector<LeftOver> &a,
                        std::vector<LeftOver> &b) {
  std::unordered_map<uint32_t, std::deque<size_t>> by_key;  // of a, in order
  for (size_t index = 0; index < a.size(); ++index) by_key[pair.a_keys[a[index].place]].push_back(index);
  std::vector<bool> is_taken(a.size(), false);
  const auto is_matched = [&](const LeftOver &item) {
    const auto found = by_key.find(pair.b_keys[item.place]);
    if (found == by_key.end()) return false;
    std::deque<size_t> &waiting = found->second;
    while (!waiting.empty() && a[waiting.front()].place + most_apart < item.expected) waiting.pop_front();
    if (waiting.empty() || a[waiting.front()].place > item.expected + most_apart) return false;
    match(join, a[waiting.front()].index, item.index);
    ++join.out_of_order;
    is_taken[waiting.front()] = true;
    waiting.pop_front();
    return true;
  };
  std::erase_if(b, is_matched);
  size_t index = 0;
  std::erase_if(a, [&](const LeftOver &) { return is_taken[index++]; });
}

// Between the same neighbours, the first with the first.
void match_other_sizes(Join &join, const std::vector<LeftOver> &a, const std::vector<LeftOver> &b) {
  size_t next = 0;
  for (const LeftOver &item : a) {
    while (next < b.size() && b[next].gap < item.gap) ++next;
    if (next == b.size()) return;
    if (b[next].gap != item.gap) continue;
    match(join, item.index, b[next].index);
    ++join.size_differs;
    ++next;
  }
}

void join_lane(Join &join, const LanePair &pair, const JoinOptions &options, bool with_other_sizes) {
  const Alignment alignment = align_sequences(pair.a_keys, pair.b_keys, options.most_edits);
  join.is_exact = join.is_exact && alignment.is_longest;
  for (const AlignedRun &run : alignment.runs) {
    for (size_t step = 0; step < run.length; ++step) match(join, pair.a[run.a + step], pair.b[run.b + step]);
  }
  std::vector<LeftOver> a;
  std::vector<LeftOver> b;
  collect_left_over(pair, alignment.runs, a, b);
  if (a.empty() || b.empty()) return;
  match_out_of_order(join, pair, options.most_apart, a, b);
  if (with_other_sizes) match_other_sizes(join, a, b);
}

Join empty_join(size_t a, size_t b) {
  Join join;
  join.b_of_a.assign(a, kNoPartner);
  join.a_of_b.assign(b, kNoPartner);
  return join;
}

void count_alone(Join &join) {
  join.only_a = join.b_of_a.size() - join.matched;
  join.only_b = join.a_of_b.size() - join.matched;
}

// A lane with what it is compared by.
struct RankedLane {
  uint32_t lane = 0;
  size_t rank = 0;  // in order of first use, among the lanes of its device and kind
  std::map<uint32_t, uint64_t> keys;
};
using LaneClass = std::pair<uint32_t, bool>;  // device, is_graph

std::map<LaneClass, std::vector<RankedLane>> ranked_lanes(const JoinLaunches &run) {
  std::map<LaneClass, std::vector<RankedLane>> classes;
  for (uint32_t lane = 0; lane < run.lanes().size(); ++lane) {
    const JoinLane &known = run.lanes()[lane];
    classes[{known.device, known.is_graph}].push_back({lane, 0, {}});
  }
  std::vector<RankedLane *> by_lane(run.lanes().size());
  for (auto &[unused, lanes] : classes) {
    std::stable_sort(lanes.begin(), lanes.end(), [&](const RankedLane &left, const RankedLane &right) {
      return run.lanes()[left.lane].first_ns < run.lanes()[right.lane].first_ns;
    });
    for (size_t rank = 0; rank < lanes.size(); ++rank) {
      lanes[rank].rank = rank;
      by_lane[lanes[rank].lane] = &lanes[rank];
    }
  }
  for (const JoinLaunch &launch : run.launches()) ++by_lane[launch.lane]->keys[launch.key];
  return classes;
}

// Twice the common launches over all of them, in steps; 0: nothing in common.
uint32_t similarity(const RankedLane &a, const RankedLane &b, uint64_t items) {
  uint64_t common = 0;
  auto left = a.keys.begin();
  auto right = b.keys.begin();
  while (left != a.keys.end() && right != b.keys.end()) {
    if (left->first < right->first) {
      ++left;
    } else if (right->first < left->first) {
      ++right;
    } else {
      common += std::min(left->second, right->second);
      ++left;
      ++right;
    }
  }
  if (common == 0) return 0;
  const double share = 2.0 * static_cast<double>(common) / static_cast<double>(items);
  return 1 + static_cast<uint32_t>(std::lround(share * kSimilaritySteps));
}

std::vector<uint32_t> match_lanes(const JoinLaunches &a, const JoinLaunches &b) {
  std::vector<uint32_t> partner(b.lanes().size(), kNoPartner);
  auto classes_of_a = ranked_lanes(a);
  for (const auto &[lane_class, b_lanes] : ranked_lanes(b)) {
    const auto found = classes_of_a.find(lane_class);
    if (found == classes_of_a.end()) continue;
    const std::vector<RankedLane> &a_lanes = found->second;
    struct Candidate {
      uint32_t similarity;
      size_t apart;
      uint32_t a;
      uint32_t b;
    };
    std::vector<Candidate> candidates;
    const bool all_pairs = a_lanes.size() * b_lanes.size() <= kMostLanesSquared;
    for (const RankedLane &one : a_lanes) {
      for (const RankedLane &other : b_lanes) {
        const size_t apart = one.rank < other.rank ? other.rank - one.rank : one.rank - other.rank;
        if (!all_pairs && apart > kLaneNeighbours) continue;
        const uint64_t items = a.lanes()[one.lane].items + b.lanes()[other.lane].items;
        const uint32_t similar = similarity(one, other, items);
        if (similar != 0) candidates.push_back({similar, apart, one.lane, other.lane});
      }
    }
    // Stable: among equals the earlier in order of first use comes first.
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate &left, const Candidate &right) {
      return std::make_pair(right.similarity, left.apart) < std::make_pair(left.similarity, right.apart);
    });
    std::unordered_set<uint32_t> taken;
    for (const Candidate &candidate : candidates) {
      if (partner[candidate.b] != kNoPartner || !taken.insert(candidate.a).second) continue;
      partner[candidate.b] = candidate.a;
    }
  }
  return partner;
}

}  // namespace

void JoinLaunches::add(const JoinLane &lane, int64_t time_ns, uint64_t id, uint64_t graph_node, uint32_t key) {
  const auto [place, is_new] = lane_of_.try_emplace({lane.device, lane.context, lane.stream, lane.is_graph},
                                                    static_cast<uint32_t>(lanes_.size()));
  if (is_new) {
    lanes_.push_back(lane);
    lanes_.back().first_ns = time_ns;
    lanes_.back().items = 0;
  }
  JoinLane &known = lanes_[place->second];
  known.first_ns = std::min(known.first_ns, time_ns);
  ++known.items;
  launches_.push_back({time_ns, id, graph_node, key, place->second});
}

std::vector<std::vector<uint32_t>> JoinLaunches::in_order() const {
  std::vector<std::vector<uint32_t>> order(lanes_.size());
  for (size_t lane = 0; lane < lanes_.size(); ++lane) order[lane].reserve(lanes_[lane].items);
  for (uint32_t index = 0; index < launches_.size(); ++index) order[launches_[index].lane].push_back(index);
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    std::vector<uint32_t> &indices = order[lane];
    std::sort(indices.begin(), indices.end(), [this](uint32_t left, uint32_t right) {
      const JoinLaunch &one = launches_[left];
      const JoinLaunch &other = launches_[right];
      return std::tie(one.time_ns, one.id, left) < std::tie(other.time_ns, other.id, right);
    });
    if (!lanes_[lane].is_graph) continue;
    std::unordered_set<uint64_t> nodes;
    auto begin = indices.begin();
    const auto sort_launch = [&](auto end) {
      std::stable_sort(begin, end,
                       [this](uint32_t left, uint32_t right) { return launches_[left].key < launches_[right].key; });
      begin = end;
      nodes.clear();
    };
    for (auto place = indices.begin(); place != indices.end(); ++place) {
      if (nodes.contains(launches_[*place].graph_node)) sort_launch(place);
      nodes.insert(launches_[*place].graph_node);
    }
    sort_launch(indices.end());
  }
  return order;
}

Join join_launches(const JoinLaunches &a, const JoinLaunches &b, const JoinOptions &options) {
  Join join = empty_join(a.launches().size(), b.launches().size());
  join.lane_a_of_b = match_lanes(a, b);
  const std::vector<std::vector<uint32_t>> a_order = a.in_order();
  const std::vector<std::vector<uint32_t>> b_order = b.in_order();
  const auto keys_of = [](const JoinLaunches &run, const std::vector<uint32_t> &indices) {
    std::vector<uint32_t> keys;
    keys.reserve(indices.size());
    for (const uint32_t index : indices) keys.push_back(run.launches()[index].key);
    return keys;
  };
  for (size_t lane = 0; lane < b_order.size(); ++lane) {
    const uint32_t partner = join.lane_a_of_b[lane];
    if (partner == kNoPartner) continue;
    const LanePair pair{a_order[partner], b_order[lane], keys_of(a, a_order[partner]), keys_of(b, b_order[lane])};
    join_lane(join, pair, options, false);
  }
  count_alone(join);
  return join;
}

Join join_ranges(std::span<const JoinRange> a, std::span<const JoinRange> b, const JoinOptions &options) {
  Join join = empty_join(a.size(), b.size());
  std::map<uint32_t, std::pair<std::vector<uint32_t>, std::vector<uint32_t>>> groups;
  for (uint32_t index = 0; index < a.size(); ++index) groups[a[index].group].first.push_back(index);
  for (uint32_t index = 0; index < b.size(); ++index) groups[b[index].group].second.push_back(index);
  std::unordered_map<uint64_t, uint32_t> key_of_size;
  for (auto &[unused, group] : groups) {
    const auto prepare = [&](std::span<const JoinRange> ranges, std::vector<uint32_t> &indices) {
      std::stable_sort(indices.begin(), indices.end(),
                       [&](uint32_t left, uint32_t right) { return ranges[left].begin_ns < ranges[right].begin_ns; });
      std::vector<uint32_t> keys;
      for (const uint32_t index : indices) {
        const auto next = static_cast<uint32_t>(key_of_size.size());
        keys.push_back(key_of_size.try_emplace(ranges[index].bytes, next).first->second);
      }
      return keys;
    };
    std::vector<uint32_t> a_keys = prepare(a, group.first);
    std::vector<uint32_t> b_keys = prepare(b, group.second);
    join_lane(join, {group.first, group.second, std::move(a_keys), std::move(b_keys)}, options, true);
  }
  count_alone(join);
  return join;
}

void RangeLives::allocate(int64_t time_ns, uint32_t layer, uint64_t address, uint64_t bytes, uint32_t group,
                          uint64_t tag) {
  events_.push_back({time_ns, address, bytes, tag, group, static_cast<uint8_t>(layer != 0), false});
}

void RangeLives::release(int64_t time_ns, uint32_t layer, uint64_t address) {
  events_.push_back({time_ns, address, 0, 0, 0, static_cast<uint8_t>(layer != 0), true});
}

std::vector<RangeLives::Life> RangeLives::take(uint64_t *unmatched) {
  // A free and an allocation of one moment: the free first, or the address would be free at once.
  std::stable_sort(events_.begin(), events_.end(), [](const Event &left, const Event &right) {
    return std::make_pair(left.time_ns, !left.is_release) < std::make_pair(right.time_ns, !right.is_release);
  });
  std::vector<Life> lives;
  std::map<uint64_t, size_t> live[2];
  *unmatched = 0;
  for (const Event &event : events_) {
    std::map<uint64_t, size_t> &layer = live[event.layer];
    if (event.is_release) {
      const auto found = layer.find(event.address);
      if (found == layer.end()) {
        ++*unmatched;
        continue;
      }
      lives[found->second].range.end_ns = event.time_ns;
      layer.erase(found);
      continue;
    }
    const uint64_t last = event.address + std::max<uint64_t>(event.bytes, 1) - 1;
    auto place = layer.lower_bound(event.address);
    if (place != layer.begin()) {
      const auto before = std::prev(place);
      const JoinRange &range = lives[before->second].range;
      if (event.address - range.address < std::max<uint64_t>(range.bytes, 1)) place = before;
    }
    while (place != layer.end() && place->first <= last) {
      lives[place->second].range.end_ns = event.time_ns;
      place = layer.erase(place);
    }
    layer[event.address] = lives.size();
    lives.push_back({{event.address, event.bytes, event.time_ns, std::numeric_limits<int64_t>::max(), event.group},
                     event.layer,
                     event.tag});
  }
  events_.clear();
  events_.shrink_to_fit();
  return lives;
}

TimeWarp::TimeWarp(std::vector<std::pair<int64_t, int64_t>> moments, int64_t offset_ns) : offset_ns_(offset_ns) {
  // Of one moment of b the earliest of a, so that a chain that ascends strictly in a ascends in b too.
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end(),
                            [](const auto &left, const auto &right) { return left.first == right.first; }),
                moments.end());
  std::vector<uint32_t> tops;  // patience sorting, as for the longest ascending subsequence
  std::vector<uint32_t> before(moments.size(), kNoPartner);
  for (uint32_t index = 0; index < moments.size(); ++index) {
    const auto pile = std::lower_bound(tops.begin(), tops.end(), moments[index].second,
                                       [&](uint32_t top, int64_t ns) { return moments[top].second < ns; });
    if (pile != tops.begin()) before[index] = *std::prev(pile);
    if (pile == tops.end()) {
      tops.push_back(index);
    } else {
      *pile = index;
    }
  }
  if (tops.empty()) return;
  for (uint32_t index = tops.back(); index != kNoPartner; index = before[index]) moments_.push_back(moments[index]);
  std::reverse(moments_.begin(), moments_.end());
}

int64_t TimeWarp::operator()(int64_t b_ns) const {
  // Times that make no sense wrap around instead of being undefined.
  const auto shifted = [b_ns](int64_t from, int64_t to) {
    return static_cast<int64_t>(static_cast<uint64_t>(b_ns) + static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
  };
  if (moments_.empty()) return shifted(0, offset_ns_);
  const auto after = std::upper_bound(moments_.begin(), moments_.end(), b_ns,
                                      [](int64_t ns, const auto &moment) { return ns < moment.first; });
  if (after == moments_.begin()) return shifted(after->first, after->second);
  const auto &[b_begin, a_begin] = *std::prev(after);
  if (after == moments_.end()) return shifted(b_begin, a_begin);
  const auto part = static_cast<sonde_wide_t>(b_ns - b_begin) * (after->second - a_begin) / (after->first - b_begin);
  return a_begin + static_cast<int64_t>(part);
}

AddressTranslation::AddressTranslation(std::vector<RangeLives::Life> b, std::vector<uint32_t> a_of_b,
                                       std::vector<JoinRange> a)
    : b_(std::move(b)), a_of_b_(std::move(a_of_b)), a_(std::move(a)) {
  a_of_b_.resize(b_.size(), kNoPartner);
  changes_.reserve(2 * b_.size());
  for (uint32_t index = 0; index < b_.size(); ++index) {
    const JoinRange &range = b_[index].range;
    if (range.end_ns <= range.begin_ns) continue;
    changes_.push_back({range.begin_ns, index, false});
    if (range.end_ns != std::numeric_limits<int64_t>::max()) changes_.push_back({range.end_ns, index, true});
  }
  // Ends first, so that the live ranges never overlap.
  std::stable_sort(changes_.begin(), changes_.end(), [](const Change &left, const Change &right) {
    return std::make_pair(left.time_ns, !left.is_end) < std::make_pair(right.time_ns, !right.is_end);
  });
  for (const JoinRange &range : a_) {
    known_in_a_.emplace_back(range.address, range.address + std::max<uint64_t>(range.bytes, 1) - 1);
  }
  std::sort(known_in_a_.begin(), known_in_a_.end());
  size_t count = 0;
  for (const auto &interval : known_in_a_) {
    if (count != 0 && interval.first <= known_in_a_[count - 1].second) {
      known_in_a_[count - 1].second = std::max(known_in_a_[count - 1].second, interval.second);
    } else {
      known_in_a_[count++] = interval;
    }
  }
  known_in_a_.resize(count);
}

void AddressTranslation::apply(const Change &change, bool is_undone) {
  const RangeLives::Life &life = b_[change.range];
  if (change.is_end == is_undone) {
    live_[life.layer][life.range.address] = change.range;
  } else {
    live_[life.layer].erase(life.range.address);
  }
}

void AddressTranslation::move_to(int64_t time_ns) {
  while (next_change_ < changes_.size() && changes_[next_change_].time_ns <= time_ns) {
    apply(changes_[next_change_++], false);
  }
  while (next_change_ > 0 && changes_[next_change_ - 1].time_ns > time_ns) apply(changes_[--next_change_], true);
}

const RangeLives::Life *AddressTranslation::live_at(uint32_t layer, uint64_t address) const {
  auto place = live_[layer].upper_bound(address);
  if (place == live_[layer].begin()) return nullptr;
  const RangeLives::Life &life = b_[std::prev(place)->second];
  return address - life.range.address < std::max<uint64_t>(life.range.bytes, 1) ? &life : nullptr;
}

bool AddressTranslation::is_known_in_a(uint64_t begin, uint64_t bytes) const {
  const uint64_t last = begin + std::max<uint64_t>(bytes, 1) - 1;
  const auto after = std::upper_bound(known_in_a_.begin(), known_in_a_.end(), last,
                                      [](uint64_t at, const auto &interval) { return at < interval.first; });
  return after != known_in_a_.begin() && std::prev(after)->second >= begin;
}

AddressTranslation::Place AddressTranslation::translate(uint64_t address, int64_t time_ns, uint64_t bytes) {
  move_to(time_ns);
  const auto kept = [&](Kind kind, bool is_known) {
    return Place{is_known ? address | kElsewhere : address, kind, is_known};
  };
  // A range inside another has a partner of its own; without one it lies where the outer one does.
  Kind reason = Kind::kNoRange;
  const RangeLives::Life *innermost = nullptr;
  for (const uint32_t layer : {1u, 0u}) {
    const RangeLives::Life *const life = live_at(layer, address);
    if (life == nullptr) continue;
    if (layer == 1 && life->range.bytes - (address - life->range.address) < bytes) continue;
    if (innermost == nullptr) innermost = life;
    const uint32_t partner = a_of_b_[static_cast<size_t>(life - b_.data())];
    const uint64_t offset = address - life->range.address;
    if (partner == kNoPartner) {
      if (reason == Kind::kNoRange) reason = Kind::kOnlyInB;
      continue;
    }
    if (offset >= std::max<uint64_t>(a_[partner].bytes, 1)) {
      reason = Kind::kPastSmaller;
      continue;
    }
    return {a_[partner].address + offset, Kind::kTranslated, false};
  }
  if (innermost != nullptr) {
    // All of a range moves, or nothing of it, so that it stays one.
    const JoinRange &range = innermost->range;
    return kept(reason, is_known_in_a(range.address, range.bytes));
  }
  return kept(Kind::kNoRange, is_known_in_a(address, 1));
}

}  // namespace sonde::toolkit
