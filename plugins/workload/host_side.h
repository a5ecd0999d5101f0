// What one process's host did: calls, scopes, and which launch asked for which kernel.
#pragma once

#include <sonde/toolkit/reorder.h>
#include <sonde/sonde.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "measures.h"
#include "options.h"
#include "phases.h"

namespace sonde::workload {

// Names are interned numbers (toolkit::SourceStrings).
struct CallRow {
  Durations durations;
  uint64_t errors = 0;
  uint64_t unfinished = 0;  // begins without an end
};

enum class ScopeKind : uint8_t { kScope, kOperator, kRange, kMark };

struct ScopeRow {
  Durations durations;
  uint64_t unfinished = 0;    // begins without an end
  uint64_t kernels = 0;       // launched while the scope was open
  int64_t device_ns = 0;      // their time, those of inner scopes included
  uint64_t self_kernels = 0;  // launched while it was the innermost
  int64_t self_device_ns = 0;
  uint64_t visit = 0;  // of the walk that counted this row last
};

// A device record that waits for its launch.
struct LaunchedWork {
  uint32_t device = 0;
  bool timed = false;
  bool is_kernel = false;
  bool from_graph = false;
  int64_t begin = 0;
  int64_t length = 0;
};

// Launch to begin of the kernel, for kernels that are not from a graph.
struct LatencyRow {
  toolkit::Statistics latency;
  toolkit::Quantiles quantiles;
};

// Kernels of a phase, by the scopes that were open at their launch.
struct PhaseTime {
  uint64_t kernels = 0;
  int64_t device_ns = 0;
};

// Feed in any order, then finish. Calls and scopes are put in order of time (reorder_records), then each launch knows
// the scopes open on its thread. Launches and device records join by correlation; join_records of either side are
// remembered, oldest forgotten first, so a record whose launch is never seen costs nothing for ever.
class HostSide {
 public:
  // `other_scopes`: the name of the row that scopes beyond name_limit share.
  HostSide(const Options &options, uint32_t other_scopes);

  // A finished call.
  void call(uint32_t domain, uint32_t function, uint64_t thread, uint64_t correlation, int32_t result,
            const Interval &interval, bool measured);
  // A call as two records; they come in order for one thread.
  void call_begin(uint32_t domain, uint32_t function, uint64_t thread, uint64_t correlation, int64_t time);
  void call_end(uint64_t thread, uint64_t correlation, int32_t result, int64_t time);

  void scope_begin(ScopeKind kind, uint32_t domain, uint32_t name, uint64_t thread, uint64_t scope, int64_t time,
                   Phase phase = Phase::kOther);
  void scope_end(ScopeKind kind, uint32_t domain, uint64_t thread, uint64_t scope, int64_t time);

  // A device record; correlation 0 has no launch.
  void device_record(uint64_t correlation, const LaunchedWork &work);

  void finish();

  // (domain, function)
  const std::map<std::tuple<uint32_t, uint32_t>, CallRow> &calls() const { return calls_; }
  // (kind, domain, name)
  const std::map<std::tuple<ScopeKind, uint32_t, uint32_t>, ScopeRow> &scopes() const { return scopes_; }
  // By device.
  const std::map<uint32_t, LatencyRow> &latencies() const { return latencies_; }

  // (device, phase); kernels whose launch is not known are in none.
  const std::map<std::tuple<uint32_t, Phase>, PhaseTime> &phases() const { return phases_; }

  bool any_launch() const { return launches_seen_ != 0; }
  uint64_t unmatched_ends() const { return unmatched_ends_; }
  uint64_t unmatched_pops() const { return unmatched_pops_; }
  // Kernels: without a correlation, and with one whose launch was not seen (or forgotten).
  uint64_t uncorrelated_kernels() const { return uncorrelated_kernels_; }
  uint64_t unlaunched_kernels() const { return unlaunched_kernels_; }
  uint64_t joined_kernels() const { return joined_kernels_; }
  size_t pending() const { return waiting_.size(); }

 private:
  struct Event {
    enum class Type : uint8_t { kLaunch, kBegin, kEnd } type;
    ScopeKind kind;
    uint32_t domain;
    uint32_t name;
    uint64_t thread;
    uint64_t id;  // correlation or scope
    Phase phase = Phase::kOther;
  };
  // Scopes that are open one inside the other: a path in a tree, so that a launch remembers one number.
  struct Node {
    uint32_t parent;
    ScopeRow *row;
    Phase phase;  // of launches in it
  };
  struct OpenScope {
    ScopeKind kind;
    uint32_t domain;
    uint64_t scope;
    int64_t begin;
    uint32_t node;
  };
  struct OpenCall {
    uint64_t correlation;
    int64_t begin;
    CallRow *row;
  };
  struct Launch {
    int64_t begin;
    uint32_t node;
  };

  void push(int64_t time, const Event &event);
  void in_order(int64_t time, const Event &event);
  void open_scope(int64_t time, const Event &event);
  void close_scope(int64_t time, const Event &event);
  void launch(int64_t time, const Event &event);
  void join(const Launch &launch, const LaunchedWork &work);
  void forget(const LaunchedWork &work);
  ScopeRow &scope_row(ScopeKind kind, uint32_t domain, uint32_t name);
  uint32_t child_node(uint32_t parent, ScopeRow *row, Phase phase);

  static constexpr uint32_t kNoNode = 0;  // the root
  static constexpr size_t kNodeLimit = 1u << 20;
  static constexpr size_t kOpenLimit = 1u << 16;  // open calls or scopes of a thread

  const Options *options_;
  uint32_t other_scopes_;
  toolkit::ReorderBuffer<Event> order_;
  std::map<std::tuple<uint32_t, uint32_t>, CallRow> calls_;
  std::map<std::tuple<ScopeKind, uint32_t, uint32_t>, ScopeRow> scopes_;
  std::map<uint32_t, LatencyRow> latencies_;
  std::unordered_map<uint64_t, std::vector<OpenCall>> open_calls_;    // by thread
  std::unordered_map<uint64_t, std::vector<OpenScope>> open_scopes_;  // by thread
  std::unordered_map<uint64_t, OpenScope> open_ranges_;               // by scope id
  std::vector<Node> nodes_;
  std::map<std::tuple<uint32_t, ScopeRow *, Phase>, uint32_t> children_;
  std::map<std::tuple<uint32_t, Phase>, PhaseTime> phases_;
  std::unordered_map<uint64_t, Launch> launches_;  // by correlation
  std::deque<uint64_t> launch_order_;
  std::unordered_multimap<uint64_t, std::pair<uint64_t, LaunchedWork>> waiting_;  // by correlation: number, work
  std::deque<std::pair<uint64_t, uint64_t>> waiting_order_;                       // correlation, number
  uint64_t next_waiting_ = 0;
  uint64_t visit_ = 0;
  uint64_t launches_seen_ = 0;
  uint64_t unmatched_ends_ = 0;
  uint64_t unmatched_pops_ = 0;
  uint64_t uncorrelated_kernels_ = 0;
  uint64_t unlaunched_kernels_ = 0;
  uint64_t joined_kernels_ = 0;
};

}  // namespace sonde::workload
