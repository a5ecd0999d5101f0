#include "objects.h"

#include <sonde/spaces/device.h>

#include <algorithm>
#include <utility>

namespace sonde::memory {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;
using toolkit::ObjectEnd;
using toolkit::ObjectLevel;
using toolkit::OperationKind;

bool Worst::is_worse(const Usage &a, const Usage &b) const {
  const double left = by_ ? a.saved(*by_) : a.wasted(), right = by_ ? b.saved(*by_) : b.wasted();
  if (left != right) return left > right;
  if (a.held() != b.held()) return a.held() > b.held();
  return a.object.id < b.object.id;
}

void Worst::add(const Usage &usage) {
  if (heap_.size() >= limit_ && (limit_ == 0 || !is_worse(usage, heap_.front()))) {
    ++left_out_;
    left_out_bytes_ += usage.object.bytes;
    left_out_wasted_ += usage.wasted();
    return;
  }
  const auto worse = [this](const Usage &a, const Usage &b) { return is_worse(a, b); };
  heap_.push_back(usage);
  std::push_heap(heap_.begin(), heap_.end(), worse);
  if (heap_.size() <= limit_) return;
  std::pop_heap(heap_.begin(), heap_.end(), worse);
  ++left_out_;
  left_out_bytes_ += heap_.back().object.bytes;
  left_out_wasted_ += heap_.back().wasted();
  heap_.pop_back();
}

std::vector<const Usage *> Worst::sorted() const {
  std::vector<const Usage *> out;
  out.reserve(heap_.size());
  for (const Usage &usage : heap_) out.push_back(&usage);
  std::sort(out.begin(), out.end(), [this](const Usage *a, const Usage *b) { return is_worse(*a, *b); });
  return out;
}

Process &Objects::process(uint32_t source) { return processes_[source]; }

Group &Objects::group(const MemoryObject &object) {
  std::unique_ptr<Group> &found = groups_[{object.source, object.level, object.device}];
  if (!found) {
    found = std::make_unique<Group>(options_);
    found->process = &process(object.source);
    found->source = object.source;
    found->level = object.level;
    found->device = object.device;
  }
  return *found;
}

Objects::Watched *Objects::watched(uint64_t id) {
  const uint32_t place = places_.find(id);
  return place == toolkit::IdMap::kNone ? nullptr : &watched_[place];
}

Objects::Parts &Objects::parts(Watched &watched) {
  if (watched.part == UINT32_MAX) {
    if (free_parts_.empty()) {
      watched.part = static_cast<uint32_t>(parts_.size());
      parts_.emplace_back();
    } else {
      watched.part = free_parts_.back();
      free_parts_.pop_back();
    }
    parts_[watched.part].intra.reset();
    parts_[watched.part].writes.reset();
  }
  return parts_[watched.part];
}

void Objects::note_scope(uint32_t source, uint64_t scope, uint32_t name) {
  constexpr size_t kScopes = 65536;
  std::vector<Process::Scope> &scopes = process(source).scopes;
  if (scopes.empty()) scopes.resize(kScopes);
  scopes[scope % kScopes] = {scope, name};
}

void Objects::object_begins(const MemoryObject &object) {
  if (object.device == UINT32_MAX || object.kind == SONDE_MEMORY_PAGEABLE || object.kind == SONDE_MEMORY_PINNED) {
    ++host_objects_;
    return;
  }
  fragmentation_.begins(object);
  Group &owner = group(object);
  Process &process = *owner.process;
  const uint64_t sequence = ++process.sequence;
  process.first_ns = std::min(process.first_ns, object.begin_ns);
  process.last_ns = std::max(process.last_ns, object.begin_ns);

  uint32_t place = 0;
  if (free_watched_.empty()) {
    place = static_cast<uint32_t>(watched_.size());
    watched_.emplace_back();
  } else {
    place = free_watched_.back();
    free_watched_.pop_back();
  }
  places_.set(object.id, place);
  Watched &mine = watched_[place];
  mine.group = &owner;
  mine.usage.begin_sequence = sequence;
  mine.usage.object = object;
  if (object.scope != 0 && !process.scopes.empty()) {
    const Process::Scope &scope = process.scopes[object.scope % process.scopes.size()];
    if (scope.scope == object.scope) mine.usage.scope_name = scope.name;
  }
  mine.ends_at_begin = owner.ends;
  mine.incomplete_begin = process.incomplete;

  ++owner.begins;
  ++owner.live;
  owner.begun_bytes += object.bytes;
  owner.bytes += object.bytes;
  owner.level_curve.set(axis(object.begin_ns, object.begin_operation), owner.bytes);
  if (owner.bytes > owner.peak_bytes) {
    owner.peak_bytes = owner.bytes;
    owner.peak_sequence = sequence;
    owner.peak_ns = object.begin_ns;
    owner.peak_operation = object.begin_operation;
    owner.ended_since_peak.clear();
  }
  owner.until_last_use.open(sequence);
  owner.until_last_use.use(mine.last_use_place, object.bytes);
  owner.until_last_use.close();
}

bool Objects::is_whole(const MemoryOperation &operation) const {
  return operation.is_complete() || (options_.trust_watched && (operation.launch_flags & SONDE_LAUNCH_WATCHED) != 0);
}

bool Objects::is_use(const MemoryOperation &operation, const MemoryTouch &touch) const {
  switch (operation.kind) {
    case OperationKind::kKernel:
      return touch.is_read() || touch.is_written();
    case OperationKind::kCopy:
    case OperationKind::kSet: {
      if (options_.host_uses == HostUses::kNone) return false;
      if (options_.host_uses == HostUses::kAll || touch.is_read()) return true;
      // What another object of the device is copied into is written by the device.
      return operation.copy_kind == SONDE_COPY_DEVICE_TO_DEVICE || operation.copy_kind == SONDE_COPY_PEER_TO_PEER;
    }
    case OperationKind::kPrefetch:
    case OperationKind::kAdvise:
      return false;
  }
  return false;
}

void Objects::operation(const MemoryOperation &operation, std::span<const MemoryTouch> touches) {
  Process &owner = process(operation.source);
  if (operation.is_late) {
    ++owner.late_operations;
    return late_operation(touches);
  }
  const uint64_t sequence = ++owner.sequence;
  owner.operations = operation.index + 1;
  owner.first_ns = std::min(owner.first_ns, operation.time_ns);
  owner.last_ns = std::max(owner.last_ns, operation.time_ns);
  const bool is_kernel = operation.kind == OperationKind::kKernel;
  if (is_kernel) {
    ++owner.launches;
    owner.outside += operation.outside;
    if ((operation.launch_flags & SONDE_LAUNCH_WATCHED) != 0) ++owner.watched;
  } else if (operation.kind == OperationKind::kCopy || operation.kind == OperationKind::kSet) {
    ++owner.transfers;
  }

  open_groups_.clear();
  for (const MemoryTouch &touch : touches) {
    Watched *const mine = watched(touch.object->id);
    if (mine == nullptr) continue;
    const bool counts = is_use(operation, touch);
    if (is_kernel && counts) {
      ++mine->usage.kernels;
      if (!touch.read_edges.empty() || !touch.write_edges.empty()) ++owner.with_edges;
      if (!touch.pages.empty()) ++owner.with_pages;
    }
    if (!is_kernel && touch.is_read()) mine->usage.is_read_by_host = true;
    if (counts) {
      Group &group = *mine->group;
      if (group.open_sequence != sequence) {
        group.open_sequence = sequence;
        group.touched = 0;
        group.needed.open(sequence);
        group.until_last_use.open(sequence);
        open_groups_.push_back(&group);
      }
      group.touched += mine->usage.object.bytes;
      use(*mine, operation, owner);
      if (is_kernel || touch.is_read()) parts(*mine).intra.touch(touch, options_);
    }
    if (mine->part != UINT32_MAX || (!is_kernel && touch.is_written())) {
      parts(*mine).writes.touch(operation, touch, owner.incomplete);
    }
  }
  for (Group *const group : open_groups_) {
    group->needed.close();
    group->until_last_use.close();
    group->from_first_use_peak = std::max(group->from_first_use_peak, group->from_first_use);
    if (is_kernel && group->touched > group->touched_peak) {
      group->touched_peak = group->touched;
      group->touched_peak_kernel = operation.name;
      group->touched_peak_launch = operation.kernels;
    }
  }
  if (!is_whole(operation)) {
    ++owner.incomplete;
  } else if (!operation.is_complete()) {
    ++owner.trusted;
  }
  if (sink_) sink_(operation);
}

void Objects::late_operation(std::span<const MemoryTouch> touches) {
  // Where it belongs in the order is known no more, so nothing is concluded for what it touched.
  for (const MemoryTouch &touch : touches) {
    if (Watched *const mine = watched(touch.object->id); mine != nullptr) mine->usage.is_touched_late = true;
  }
}

void Objects::note_idle(Watched &mine, const Use &next, Process &process) {
  Usage &usage = mine.usage;
  const uint64_t gap = next.kernels - std::min(next.kernels, usage.last.kernels_after());
  if (!options_.idle_kernels.reached(gap, process.launches)) return;
  const Group &group = *mine.group;
  IdleSlice slice{usage.last, next, gap, group.begins - mine.begins_at_use, 0};
  if (options_.memory_aware && slice.allocated == 0) return;
  if (process.incomplete != mine.incomplete_use) {
    ++usage.idle_uncertain;
    return;
  }
  if (group.peak_sequence > usage.last.sequence) slice.peak = group.peak_sequence;
  if (!options_.idle_kernels.is_share()) {
    ++usage.idle_count;
    usage.idle_ns += slice.held_ns();
    usage.longest_idle = std::max(usage.longest_idle, gap);
    if (slice.peak != 0) usage.idle_peak = slice.peak;
  }
  if (usage.idle.size() < Usage::kMostSlices) {
    usage.idle.push_back(slice);
    return;
  }
  const auto shortest = std::min_element(usage.idle.begin(), usage.idle.end(),
                                         [](const IdleSlice &a, const IdleSlice &b) { return a.gap < b.gap; });
  if (shortest->gap < gap) *shortest = slice;
}

void Objects::use(Watched &mine, const MemoryOperation &operation, Process &process) {
  Usage &usage = mine.usage;
  Group &group = *mine.group;
  Use now;
  now.sequence = process.sequence;
  now.operation = operation.index;
  now.kernels = operation.kernels;
  now.time_ns = operation.time_ns;
  now.stream = operation.stream;
  now.name = operation.name;
  now.kind = operation.kind;
  if (usage.uses == 0) {
    usage.first = now;
    usage.early_gap = now.kernels - std::min(now.kernels, usage.object.begin_kernel);
    usage.freed_meanwhile = group.ends - mine.ends_at_begin;
    usage.is_early_certain = process.incomplete == mine.incomplete_begin;
    group.from_first_use += usage.object.bytes;
  } else {
    note_idle(mine, now, process);
  }
  ++usage.uses;
  usage.last = now;
  mine.begins_at_use = group.begins;
  mine.incomplete_use = process.incomplete + (is_whole(operation) ? 0 : 1);
  group.needed.use(mine.needed_place, usage.object.bytes);
  group.until_last_use.use(mine.last_use_place, usage.object.bytes);
  if (!usage.object.is_stream_ordered) return;
  for (StreamUse &stream : mine.streams) {
    if (stream.stream != now.stream) continue;
    stream.time_ns = now.time_ns;
    stream.name = now.name;
    return;
  }
  mine.streams.push_back({now.stream, now.time_ns, now.name});
}

void Objects::object_ends(const MemoryObject &object) {
  const uint32_t place = places_.find(object.id);
  if (place == toolkit::IdMap::kNone) return;
  Watched *const mine = &watched_[place];
  Usage &usage = mine->usage;
  usage.is_segment = fragmentation_.ends(object);
  Group &group = *mine->group;
  Process &process = *group.process;
  const bool stays = object.end == ObjectEnd::kAlive;
  usage.end_sequence = process.sequence;
  // At the end of the capture nothing happens any more: no new moment, so that "alive at the peak" stays true.
  if (!stays) ++process.sequence;
  usage.object = object;
  if (stays) usage.object.end_ns = std::max(process.last_ns, object.begin_ns);
  process.last_ns = std::max(process.last_ns, usage.object.end_ns);
  usage.is_life_certain = process.incomplete == mine->incomplete_begin;
  if (usage.uses != 0) {
    usage.late_gap = object.end_kernel - std::min(object.end_kernel, usage.last.kernels_after());
    usage.allocated_meanwhile = group.begins - mine->begins_at_use;
    usage.is_late_certain = process.incomplete == mine->incomplete_use;
    if (!stays) group.from_first_use -= usage.object.bytes;
  }
  if (mine->part != UINT32_MAX) {
    Parts &parts = parts_[mine->part];
    usage.writes = parts.writes.result();
    usage.has_intra = true;
    usage.intra = parts.intra.result(usage.object);
    free_parts_.push_back(mine->part);
  }
  ++group.ends;
  --group.live;
  group.bytes -= object.bytes;
  if (stays) {
    ++group.alive_at_end;
    group.alive_bytes_at_end += object.bytes;
  } else {
    group.level_curve.set(axis(object.end_ns, object.end_operation), group.bytes);
  }
  group.needed.leave(mine->needed_place);
  group.until_last_use.leave(mine->last_use_place);

  if (object.is_end_stream_ordered) {
    stream_order_.note_free();
    for (const StreamUse &stream : mine->streams) {
      if (stream.stream == object.end_stream) continue;
      stream_order_.free_elsewhere({object.id, object.source, object.address, object.bytes, object.name, stream,
                                    object.end_stream, object.end_ns, Ordering::kUnknown});
    }
  }

  if (usage.begin_sequence <= group.peak_sequence) group.ended_since_peak.push_back(usage);
  if (is_undecided(usage, process.launches)) {
    undecided_.emplace_back(&group, usage);
    if (undecided_.size() >= undecided_limit_) drop_decided();
  } else {
    decide(group, usage, process.launches);
  }
  places_.erase(object.id);
  free_watched_.push_back(place);
  // The next object that takes this place uses the memory of its lists.
  Watched cleared;
  cleared.usage.idle = std::move(usage.idle);
  cleared.usage.idle.clear();
  cleared.streams = std::move(mine->streams);
  cleared.streams.clear();
  *mine = std::move(cleared);
}

bool Objects::is_undecided(const Usage &usage, uint64_t kernels) const {
  if (usage.uses == 0) return false;
  const auto may_reach = [&](const KernelThreshold &threshold, uint64_t gap) {
    return threshold.is_share() && threshold.reached(gap, kernels);
  };
  return may_reach(options_.early_kernels, usage.early_gap) || may_reach(options_.late_kernels, usage.late_gap) ||
         std::any_of(usage.idle.begin(), usage.idle.end(),
                     [&](const IdleSlice &slice) { return may_reach(options_.idle_kernels, slice.gap); });
}

void Objects::drop_decided() {
  // More kernels raise a share's limit, so what does not reach it now never will. At most (objects alive at one time) /
  // share are left.
  size_t kept = 0;
  for (auto &entry : undecided_) {
    auto &[group, usage] = entry;
    if (is_undecided(usage, group->process->launches)) {
      std::swap(undecided_[kept++], entry);
    } else {
      decide(*group, usage, group->process->launches);
    }
  }
  undecided_.resize(kept);
  undecided_limit_ = std::max<size_t>(1024, kept * 2);
}

void Objects::decide(Group &group, Usage &usage, uint64_t all_kernels) {
  judge(usage, options_, all_kernels);
  for (size_t i = 0; i < kPatterns; ++i) {
    const Pattern pattern = pattern_at(i);
    PatternTotals &totals = group.patterns[i];
    if (usage.uncertain.has(pattern)) ++totals.uncertain;
    if (!usage.patterns.has(pattern)) continue;
    ++totals.objects;
    totals.bytes += usage.object.bytes;
    totals.byte_ns += usage.saved(pattern);
    group.worst_of[i].add(usage);
    const bool is_idle_needed =
        std::any_of(usage.idle.begin(), usage.idle.end(), [](const IdleSlice &slice) { return slice.allocated != 0; });
    if ((pattern == Pattern::kEarlyAllocation && usage.freed_meanwhile != 0) ||
        (pattern == Pattern::kLateDeallocation && usage.allocated_meanwhile != 0) ||
        (pattern == Pattern::kTemporaryIdleness && is_idle_needed)) {
      ++totals.needed;
    }
  }
  group.sharing.add(usage, options_);
  group.worst.add(usage);
}

void Objects::forget_accesses(Group &group) {
  const auto forget = [](Usage &usage) {
    for (size_t i = 0; i < kPatterns; ++i) {
      if (!needs_accesses(pattern_at(i))) continue;
      usage.patterns.remove(pattern_at(i));
      usage.uncertain.remove(pattern_at(i));
    }
  };
  for (size_t i = 0; i < kPatterns; ++i) {
    if (needs_accesses(pattern_at(i))) group.patterns[i] = {};
  }
  for (Usage &usage : group.worst.items()) forget(usage);
  for (Usage &usage : group.ended_since_peak) forget(usage);
}

void Objects::finish() {
  for (auto &[group, usage] : undecided_) decide(*group, usage, group->process->launches);
  undecided_.clear();
  stream_order_.finish();
  for (auto &[key, group] : groups_) {
    for (Usage &usage : group->ended_since_peak) {
      judge(usage, options_, group->process->launches);
      for (size_t i = 0; i < kPatterns; ++i) {
        group->patterns[i].at_peak += usage.saved_at(group->peak_sequence, pattern_at(i));
      }
    }
    std::sort(group->ended_since_peak.begin(), group->ended_since_peak.end(), [](const Usage &a, const Usage &b) {
      return a.object.bytes != b.object.bytes ? a.object.bytes > b.object.bytes : a.object.id < b.object.id;
    });
    if (!group->process->has_accesses()) {
      forget_accesses(*group);
      continue;
    }
    group->shared = group->sharing.finish(options_, group->peak_sequence);
    PatternTotals &totals = group->patterns[index_of(Pattern::kRedundantAllocation)];
    std::map<uint64_t, uint64_t> earlier_of;
    for (const SharedPair &pair : group->shared.pairs) {
      ++totals.objects;
      totals.bytes += pair.bytes;
      totals.byte_ns += pair.byte_ns;
      totals.at_peak += pair.at_peak;
      earlier_of[pair.later] = pair.earlier;
    }
    const auto mark = [&](Usage &usage) {
      const auto found = earlier_of.find(usage.object.id);
      if (found == earlier_of.end()) return;
      usage.shares_with = found->second;
      usage.patterns.add(Pattern::kRedundantAllocation);
    };
    for (Usage &usage : group->worst.items()) mark(usage);
    for (Usage &usage : group->ended_since_peak) mark(usage);
  }
}

PatternTotals Objects::totals(ObjectLevel level, Pattern pattern) const {
  PatternTotals sum;
  for (const auto &[key, group] : groups_) {
    if (group->level != level) continue;
    if (needs_accesses(pattern) && !group->process->has_accesses()) continue;
    const PatternTotals &one = group->patterns[index_of(pattern)];
    sum.objects += one.objects;
    sum.bytes += one.bytes;
    sum.byte_ns += one.byte_ns;
    sum.at_peak += one.at_peak;
    sum.needed += one.needed;
    sum.uncertain += one.uncertain;
  }
  return sum;
}

}  // namespace sonde::memory
