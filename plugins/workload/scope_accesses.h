// Accesses by operator, layer and phase: which scopes were open when a kernel was launched.
#pragma once

#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/reorder.h>

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "host_side.h"
#include "options.h"
#include "phases.h"
#include "working_sets.h"

namespace sonde::workload {

struct ScopeKey {
  uint32_t source = 0;
  ScopeKind kind = ScopeKind::kScope;
  uint32_t domain = 0;
  uint32_t name = 0;
  auto operator<=>(const ScopeKey &) const = default;
};

// Sums over launches.
struct AccessSums {
  uint64_t launches = 0;
  uint64_t watched = 0;  // with touches
  uint64_t accesses = 0;
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;

  void add(const LaunchSums &launch) {
    ++launches;
    watched += launch.is_watched ? 1 : 0;
    accesses += launch.accesses;
    read_bytes += launch.whole().read_bytes;
    write_bytes += launch.whole().write_bytes;
  }
};

struct ScopeAccessRow {
  explicit ScopeAccessRow(int64_t exact_values) : objects{Distribution(exact_values), Distribution(exact_values)} {}

  AccessSums sums;  // of launches inside, those of inner scopes included
  uint64_t self_launches = 0;
  uint64_t runs = 0;  // times it was open with a launch inside
  // Of each such time: bytes of the different objects that its launches touched, by level.
  Distribution objects[2];
  uint64_t visit = 0;
};

struct PhaseRow {
  explicit PhaseRow(int64_t exact_values) : objects{Distribution(exact_values), Distribution(exact_values)} {}
  AccessSums sums;
  Distribution objects[2];  // of each launch
};

struct LayerRow {
  AccessSums forward;   // launched inside the layer, not in a backward pass
  AccessSums backward;  // by backward operators of nodes that the layer made
  uint64_t visit = 0;
};

// Feed scopes in any order; they wait until the history tells a launch that is later. A launch record names no thread: it
// belongs to the thread whose innermost scope began last (where autograd runs on a thread of its own, the one that
// started it waits in an older scope). Memory: join_records waiting scopes and as many autograd nodes; the scopes open at
// one time; for each live object the threads that touched it; a row for each name.
class ScopeAccesses {
 public:
  ScopeAccesses(const Options &options, uint32_t other_scopes) : options_(&options), other_scopes_(other_scopes) {}

  void begin(const ScopeKey &key, uint64_t thread, uint64_t scope, int64_t time, const ScopeHint &hint, bool is_layer);
  void end(uint32_t source, ScopeKind kind, uint32_t domain, uint64_t thread, uint64_t scope, int64_t time);

  // In the order of the history.
  void operation(const toolkit::MemoryOperation &operation, const LaunchSums &sums,
                 std::span<const toolkit::MemoryTouch> touches);
  void object_ends(const toolkit::MemoryObject &object);
  void finish();

  const std::map<ScopeKey, ScopeAccessRow> &scopes() const { return rows_; }
  // (source, device, phase)
  const std::map<std::tuple<uint32_t, uint32_t, Phase>, PhaseRow> &phases() const { return phases_; }
  // (source, name)
  const std::map<std::tuple<uint32_t, uint32_t>, LayerRow> &layers() const { return layers_; }
  bool any_scope() const { return any_scope_; }
  // Launches with several threads inside scopes; told after a scope that is later had been taken.
  uint64_t ambiguous() const { return ambiguous_; }
  uint64_t early() const { return early_; }

 private:
  struct Event {
    bool is_begin = false;
    bool is_layer = false;
    ScopeKey key = {};
    uint64_t thread = 0;
    uint64_t scope = 0;
    ScopeHint hint = {};
  };
  struct Maker {
    uint64_t thread;
    uint64_t sequence;
    bool operator==(const Maker &) const = default;
  };
  struct MakerHash {
    // Numbers that follow each other stay side by side.
    size_t operator()(const Maker &maker) const { return maker.sequence + maker.thread * 0x9e3779b97f4a7c15u; }
  };
  // A path of layers that are open inside each other.
  struct LayerNode {
    uint32_t parent;
    LayerRow *row;
  };
  struct Open {
    ScopeKey key;
    uint64_t scope;
    int64_t begin;
    ScopeAccessRow *row;
    Phase phase;
    uint32_t layer;     // node, of the forward pass for a backward operator
    uint64_t position;  // launches of the thread before it
    uint64_t bytes[2];  // of different objects touched within
    bool has_launch;
  };
  struct Thread {
    std::vector<Open> stack;
    uint64_t position = 0;                              // launches
    std::unordered_map<uint64_t, uint64_t> last_touch;  // by object: position
  };
  struct Source {
    explicit Source(size_t capacity) : waiting(capacity) {}
    toolkit::ReorderBuffer<Event> waiting;
    int64_t applied = INT64_MIN;
    std::map<uint64_t, Thread> threads;
    std::unordered_map<Maker, uint32_t, MakerHash> makers;  // layer nodes
    std::deque<Maker> maker_order;
  };

  Source &source_of(uint32_t number);
  void push(Source &source, int64_t time, const Event &event);
  void apply(Source &source, int64_t time, const Event &event);
  void open(Source &source, int64_t time, const Event &event);
  void close(Source &source, const Event &event);
  void close_one(const Open &open);
  uint32_t layer_node(uint32_t parent, LayerRow *row);
  ScopeAccessRow &scope_row(const ScopeKey &key);

  static constexpr size_t kOpenLimit = 1u << 16;
  static constexpr size_t kNodeLimit = 1u << 20;

  const Options *options_;
  uint32_t other_scopes_;
  std::map<uint32_t, Source> sources_;
  std::map<ScopeKey, ScopeAccessRow> rows_;
  std::map<std::tuple<uint32_t, uint32_t, Phase>, PhaseRow> phases_;
  std::map<std::tuple<uint32_t, uint32_t>, LayerRow> layers_;
  std::vector<LayerNode> nodes_{{0, nullptr}};
  std::map<std::pair<uint32_t, LayerRow *>, uint32_t> children_;
  uint64_t visit_ = 0;
  uint64_t ambiguous_ = 0;
  uint64_t early_ = 0;
  bool any_scope_ = false;
};

}  // namespace sonde::workload
