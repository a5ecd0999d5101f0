#include "scope_accesses.h"

#include <algorithm>
#include <utility>

namespace sonde::workload {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;

void ScopeAccesses::begin(const ScopeKey &key, uint64_t thread, uint64_t scope, int64_t time, const ScopeHint &hint,
                          bool is_layer) {
  any_scope_ = true;
  if (key.kind == ScopeKind::kMark || key.kind == ScopeKind::kRange) return;  // no nesting of a thread
  push(source_of(key.source), time, {true, is_layer, key, thread, scope, hint});
}

void ScopeAccesses::end(uint32_t source, ScopeKind kind, uint32_t domain, uint64_t thread, uint64_t scope,
                        int64_t time) {
  if (kind == ScopeKind::kMark || kind == ScopeKind::kRange) return;
  push(source_of(source), time, {false, false, {source, kind, domain, 0}, thread, scope, {}});
}

ScopeAccesses::Source &ScopeAccesses::source_of(uint32_t number) {
  return sources_.try_emplace(number, static_cast<size_t>(options_->join_records)).first->second;
}

void ScopeAccesses::push(Source &source, int64_t time, const Event &event) {
  source.waiting.push(time, event, [&](int64_t at, const Event &next) { apply(source, at, next); });
}

void ScopeAccesses::apply(Source &source, int64_t time, const Event &event) {
  source.applied = std::max(source.applied, time);
  event.is_begin ? open(source, time, event) : close(source, event);
}

ScopeAccessRow &ScopeAccesses::scope_row(const ScopeKey &key) {
  if (const auto known = rows_.find(key); known != rows_.end()) return known->second;
  ScopeKey placed = key;
  if (rows_.size() >= static_cast<size_t>(options_->name_limit)) placed.name = other_scopes_;
  return rows_.try_emplace(placed, options_->exact_values).first->second;
}

uint32_t ScopeAccesses::layer_node(uint32_t parent, LayerRow *row) {
  const auto known = children_.find({parent, row});
  if (known != children_.end()) return known->second;
  if (nodes_.size() >= kNodeLimit) return parent;
  nodes_.push_back({parent, row});
  return children_[{parent, row}] = static_cast<uint32_t>(nodes_.size() - 1);
}

void ScopeAccesses::open(Source &source, int64_t time, const Event &event) {
  Thread &thread = source.threads[event.thread];
  const bool is_inner = !thread.stack.empty();
  Open open{event.key,
            event.scope,
            time,
            &scope_row(event.key),
            inner_phase(is_inner ? thread.stack.back().phase : Phase::kOther, event.hint.phase),
            is_inner ? thread.stack.back().layer : 0,
            thread.position,
            {0, 0},
            false};
  if (event.is_layer) {
    const auto key = std::tuple(event.key.source, event.key.name);
    auto layer = layers_.find(key);
    if (layer == layers_.end() && layers_.size() < static_cast<size_t>(options_->name_limit)) {
      layer = layers_.try_emplace(key).first;
    }
    if (layer != layers_.end()) open.layer = layer_node(open.layer, &layer->second);
  }
  if (event.hint.phase == Phase::kForward && open.layer != 0) {
    // Of several operators with one number the last one makes the node.
    const Maker key{event.thread, event.hint.sequence};
    const auto [it, is_new] = source.makers.insert_or_assign(key, open.layer);
    if (is_new) source.maker_order.push_back(key);
    if (source.maker_order.size() > static_cast<size_t>(options_->join_records)) {
      source.makers.erase(source.maker_order.front());
      source.maker_order.pop_front();
    }
  } else if (event.hint.phase == Phase::kBackward) {
    const auto maker = source.makers.find({event.hint.forward_thread, event.hint.sequence});
    if (maker != source.makers.end()) open.layer = maker->second;
  }
  if (thread.stack.size() >= kOpenLimit) {
    close_one(thread.stack.front());
    thread.stack.erase(thread.stack.begin());
  }
  thread.stack.push_back(open);
}

void ScopeAccesses::close_one(const Open &open) {
  if (!open.has_launch) return;
  ++open.row->runs;
  for (size_t level = 0; level < 2; ++level) open.row->objects[level].add(open.bytes[level]);
}

void ScopeAccesses::close(Source &source, const Event &event) {
  const auto thread = source.threads.find(event.thread);
  if (thread == source.threads.end()) return;
  std::vector<Open> &stack = thread->second.stack;
  // By identity where there is one, else the innermost of the same kind and domain.
  const auto it = std::find_if(stack.rbegin(), stack.rend(), [&](const Open &open) {
    return open.key.kind == event.key.kind &&
           (event.scope != 0 ? open.scope == event.scope : open.scope == 0 && open.key.domain == event.key.domain);
  });
  if (it == stack.rend()) return;
  close_one(*it);
  stack.erase(std::next(it).base());
  if (stack.empty()) source.threads.erase(thread);
}

void ScopeAccesses::operation(const MemoryOperation &operation, const LaunchSums &sums,
                              std::span<const MemoryTouch> touches) {
  if (operation.kind != toolkit::OperationKind::kKernel || operation.is_late) return;
  Source &source = source_of(operation.source);
  early_ += any_scope_ && operation.time_ns < source.applied ? 1 : 0;
  source.waiting.release(operation.time_ns, [&](int64_t at, const Event &next) { apply(source, at, next); });
  Thread *owner = nullptr;
  uint32_t inside = 0;
  for (auto &[number, thread] : source.threads) {
    if (thread.stack.empty()) continue;
    ++inside;
    if (owner == nullptr || thread.stack.back().begin > owner->stack.back().begin) owner = &thread;
  }
  ambiguous_ += inside > 1 ? 1 : 0;
  const Phase phase = owner == nullptr ? Phase::kOther : owner->stack.back().phase;
  PhaseRow &phase_row =
      phases_.try_emplace({operation.source, operation.device, phase}, options_->exact_values).first->second;
  phase_row.sums.add(sums);
  if (sums.is_watched) {
    for (size_t level = 0; level < 2; ++level) phase_row.objects[level].add(sums.levels[level].bytes);
  }
  if (owner == nullptr) return;

  ++visit_;
  ++owner->stack.back().row->self_launches;
  for (Open &open : owner->stack) {
    open.has_launch = true;
    // A scope inside one of the same name counts the launch once.
    if (std::exchange(open.row->visit, visit_) != visit_) open.row->sums.add(sums);
  }
  for (uint32_t node = owner->stack.back().layer; node != 0; node = nodes_[node].parent) {
    LayerRow &layer = *nodes_[node].row;
    if (std::exchange(layer.visit, visit_) == visit_) continue;
    (phase == Phase::kBackward ? layer.backward : layer.forward).add(sums);
  }
  ++owner->position;
  for (const MemoryTouch &touch : touches) {
    uint64_t &last = owner->last_touch[touch.object->id];
    // Outer scopes began no later, so the first one that has seen the object ends the walk.
    for (auto open = owner->stack.rbegin(); open != owner->stack.rend() && last <= open->position; ++open) {
      open->bytes[static_cast<size_t>(touch.object->level)] += touch.object->bytes;
    }
    last = owner->position;
  }
}

void ScopeAccesses::object_ends(const MemoryObject &object) {
  const auto source = sources_.find(object.source);
  if (source == sources_.end()) return;
  for (auto &[number, thread] : source->second.threads) thread.last_touch.erase(object.id);
}

void ScopeAccesses::finish() {
  for (auto &[number, source] : sources_) {
    source.waiting.finish([&](int64_t at, const Event &next) { apply(source, at, next); });
    for (auto &[id, thread] : source.threads) {
      for (const Open &open : thread.stack) close_one(open);
    }
    source.threads.clear();
  }
}

}  // namespace sonde::workload
