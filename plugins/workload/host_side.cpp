#include "host_side.h"

#include <algorithm>
#include <utility>

namespace sonde::workload {

HostSide::HostSide(const Options &options, uint32_t other_scopes)
    : options_(&options), other_scopes_(other_scopes), order_(static_cast<size_t>(options.reorder_records)) {
  nodes_.push_back({kNoNode, nullptr, Phase::kOther});
}

void HostSide::call(uint32_t domain, uint32_t function, uint64_t thread, uint64_t correlation, int32_t result,
                    const Interval &interval, bool measured) {
  CallRow &row = calls_.try_emplace({domain, function}, CallRow{Durations(options_->exact_values)}).first->second;
  if (measured) {
    row.durations.add(interval);
  } else {
    row.durations.add_untimed();
  }
  row.errors += result != 0 ? 1 : 0;
  if (correlation != 0) {
    push(interval.begin_ns, {Event::Type::kLaunch, ScopeKind::kScope, domain, function, thread, correlation});
  }
}

void HostSide::call_begin(uint32_t domain, uint32_t function, uint64_t thread, uint64_t correlation, int64_t time) {
  CallRow &row = calls_.try_emplace({domain, function}, CallRow{Durations(options_->exact_values)}).first->second;
  row.durations.add_untimed();
  ++row.unfinished;
  std::vector<OpenCall> &open = open_calls_[thread];
  if (open.size() >= kOpenLimit) open.erase(open.begin());
  open.push_back({correlation, time, &row});
  if (correlation != 0) {
    push(time, {Event::Type::kLaunch, ScopeKind::kScope, domain, function, thread, correlation});
  }
}

void HostSide::call_end(uint64_t thread, uint64_t correlation, int32_t result, int64_t time) {
  const auto calls = open_calls_.find(thread);
  std::vector<OpenCall> *const open = calls == open_calls_.end() ? nullptr : &calls->second;
  const auto it = open == nullptr ? decltype(open->rbegin()){}
                                  : std::find_if(open->rbegin(), open->rend(), [&](const OpenCall &candidate) {
                                      return candidate.correlation == correlation;
                                    });
  if (open == nullptr || it == open->rend()) {
    ++unmatched_ends_;
    return;
  }
  CallRow &row = *it->row;
  --row.unfinished;
  --row.durations.count;  // counted at the begin; add counts it again
  row.durations.add({it->begin, time, time < it->begin ? SONDE_REPAIR_REVERSED : 0});
  row.errors += result != 0 ? 1 : 0;
  open->erase(std::next(it).base());
}

void HostSide::scope_begin(ScopeKind kind, uint32_t domain, uint32_t name, uint64_t thread, uint64_t scope,
                           int64_t time, Phase phase) {
  push(time, {Event::Type::kBegin, kind, domain, name, thread, scope, phase});
}

void HostSide::scope_end(ScopeKind kind, uint32_t domain, uint64_t thread, uint64_t scope, int64_t time) {
  push(time, {Event::Type::kEnd, kind, domain, 0, thread, scope});
}

void HostSide::device_record(uint64_t correlation, const LaunchedWork &work) {
  if (correlation == 0) {
    uncorrelated_kernels_ += work.is_kernel ? 1 : 0;
    return;
  }
  const auto launch = launches_.find(correlation);
  if (launch != launches_.end()) {
    join(launch->second, work);
    return;
  }
  waiting_.emplace(correlation, std::pair(next_waiting_, work));
  waiting_order_.emplace_back(correlation, next_waiting_++);
  while (waiting_order_.size() > static_cast<size_t>(options_->join_records)) {
    const auto [oldest, number] = waiting_order_.front();
    waiting_order_.pop_front();
    const auto [first, last] = waiting_.equal_range(oldest);
    for (auto it = first; it != last; ++it) {
      if (it->second.first != number) continue;
      forget(it->second.second);
      waiting_.erase(it);
      break;
    }
  }
}

void HostSide::finish() {
  order_.finish([this](int64_t time, const Event &event) { in_order(time, event); });
  for (const auto &[correlation, entry] : waiting_) forget(entry.second);
  waiting_.clear();
  waiting_order_.clear();
  for (const auto &[thread, open] : open_scopes_) {
    for (const OpenScope &scope : open) ++nodes_[scope.node].row->unfinished;
  }
  for (const auto &[id, range] : open_ranges_) ++nodes_[range.node].row->unfinished;
  open_scopes_.clear();
  open_ranges_.clear();
}

void HostSide::push(int64_t time, const Event &event) {
  order_.push(time, event, [this](int64_t at, const Event &next) { in_order(at, next); });
}

void HostSide::in_order(int64_t time, const Event &event) {
  switch (event.type) {
    case Event::Type::kLaunch:
      launch(time, event);
      break;
    case Event::Type::kBegin:
      open_scope(time, event);
      break;
    case Event::Type::kEnd:
      close_scope(time, event);
      break;
  }
}

ScopeRow &HostSide::scope_row(ScopeKind kind, uint32_t domain, uint32_t name) {
  if (const auto known = scopes_.find({kind, domain, name}); known != scopes_.end()) return known->second;
  const bool is_full = scopes_.size() >= static_cast<size_t>(options_->name_limit);
  return scopes_
      .try_emplace({kind, domain, is_full ? other_scopes_ : name},
                   ScopeRow{.durations = Durations(options_->exact_values)})
      .first->second;
}

uint32_t HostSide::child_node(uint32_t parent, ScopeRow *row, Phase own) {
  const Phase phase = inner_phase(nodes_[parent].phase, own);
  const auto [it, is_new] = children_.try_emplace({parent, row, phase}, static_cast<uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({parent, row, phase});
  return it->second;
}

void HostSide::open_scope(int64_t time, const Event &event) {
  ScopeRow &row = scope_row(event.kind, event.domain, event.name);
  if (event.kind == ScopeKind::kMark) {
    row.durations.add_untimed();
    return;
  }
  std::vector<OpenScope> &stack = open_scopes_[event.thread];
  // Beyond the limit of the tree a path hangs below the root: outer scopes then miss its kernels.
  const bool nested = event.kind != ScopeKind::kRange && !stack.empty() && nodes_.size() < kNodeLimit;
  const uint32_t node = child_node(nested ? stack.back().node : kNoNode, &row, event.phase);
  const OpenScope open{event.kind, event.domain, event.id, time, node};
  row.durations.add_untimed();
  if (event.kind == ScopeKind::kRange) {
    // A range without identity is matched by its thread and domain.
    const uint64_t id = event.id != 0 ? event.id : event.thread ^ (uint64_t{event.domain} << 40);
    const auto [it, is_new] = open_ranges_.try_emplace(id, open);
    if (!is_new) {
      ++nodes_[it->second.node].row->unfinished;
      it->second = open;
    }
    return;
  }
  if (stack.size() >= kOpenLimit) {
    ++nodes_[stack.front().node].row->unfinished;
    stack.erase(stack.begin());
  }
  stack.push_back(open);
}

void HostSide::close_scope(int64_t time, const Event &event) {
  const auto finish_one = [&](const OpenScope &open) {
    Durations &durations = nodes_[open.node].row->durations;
    --durations.count;  // counted at the begin; add counts it again
    durations.add({open.begin, time, time < open.begin ? SONDE_REPAIR_REVERSED : 0});
  };
  if (event.kind == ScopeKind::kRange) {
    const uint64_t id = event.id != 0 ? event.id : event.thread ^ (uint64_t{event.domain} << 40);
    const auto it = open_ranges_.find(id);
    if (it == open_ranges_.end()) {
      ++unmatched_pops_;
      return;
    }
    finish_one(it->second);
    open_ranges_.erase(it);
    return;
  }
  std::vector<OpenScope> &stack = open_scopes_[event.thread];
  // By identity where there is one, else the innermost of the same kind and domain.
  const auto it = std::find_if(stack.rbegin(), stack.rend(), [&](const OpenScope &open) {
    return open.kind == event.kind &&
           (event.id != 0 ? open.scope == event.id : open.scope == 0 && open.domain == event.domain);
  });
  if (it == stack.rend()) {
    ++unmatched_pops_;
    return;
  }
  finish_one(*it);
  stack.erase(std::next(it).base());
}

void HostSide::launch(int64_t time, const Event &event) {
  ++launches_seen_;
  const auto stack = open_scopes_.find(event.thread);
  const uint32_t node = stack == open_scopes_.end() || stack->second.empty() ? kNoNode : stack->second.back().node;
  // A driver call inside a runtime call has the same correlation and comes later: the outer one stands.
  const auto [it, is_new] = launches_.try_emplace(event.id, Launch{time, node});
  if (!is_new) return;
  launch_order_.push_back(event.id);
  const auto [first, last] = waiting_.equal_range(event.id);
  for (auto waiting = first; waiting != last; ++waiting) join(it->second, waiting->second.second);
  waiting_.erase(first, last);
  while (launch_order_.size() > static_cast<size_t>(options_->join_records)) {
    launches_.erase(launch_order_.front());
    launch_order_.pop_front();
  }
}

void HostSide::join(const Launch &launch, const LaunchedWork &work) {
  if (!work.is_kernel) return;
  ++joined_kernels_;
  if (work.timed && !work.from_graph) {
    LatencyRow &row = latencies_[work.device];
    row.latency.add(work.begin - launch.begin);
    row.quantiles.add(work.begin - launch.begin);
  }
  PhaseTime &phase = phases_[{work.device, nodes_[launch.node].phase}];
  ++phase.kernels;
  phase.device_ns += work.length;
  ++visit_;
  for (uint32_t node = launch.node; node != kNoNode; node = nodes_[node].parent) {
    ScopeRow &row = *nodes_[node].row;
    if (node == launch.node) {
      ++row.self_kernels;
      row.self_device_ns += work.length;
    }
    // A scope inside one of the same name counts the kernel once.
    if (std::exchange(row.visit, visit_) == visit_) continue;
    ++row.kernels;
    row.device_ns += work.length;
  }
}

void HostSide::forget(const LaunchedWork &work) { unlaunched_kernels_ += work.is_kernel ? 1 : 0; }

}  // namespace sonde::workload
