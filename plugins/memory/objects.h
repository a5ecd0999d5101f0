// Watches objects live, and judges each when its life is over.
#pragma once

#include <sonde/toolkit/growing_peak.h>
#include <sonde/toolkit/id_map.h>
#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/timeline.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "fragmentation.h"
#include "intra_object.h"
#include "options.h"
#include "sharing.h"
#include "stream_order.h"
#include "usage.h"

namespace sonde::memory {

// A process.
struct Process {
  struct Scope {
    uint64_t scope = 0;
    uint32_t name = 0;
  };
  std::vector<Scope> scopes;  // by number modulo its size; empty where none was told

  uint64_t sequence = 0;  // begins, ends and operations so far
  uint64_t operations = 0;
  uint64_t launches = 0;
  uint64_t watched = 0;
  uint64_t incomplete = 0;  // launches not watched as a whole
  uint64_t trusted = 0;     // nor these, which count as if they were (trust_watched)
  uint64_t transfers = 0;   // copies and sets with addresses
  uint64_t late_operations = 0;
  uint64_t outside = 0;     // thread accesses in no live range
  uint64_t with_edges = 0;  // uses that named their bytes
  uint64_t with_pages = 0;
  int64_t first_ns = INT64_MAX;
  int64_t last_ns = INT64_MIN;

  bool has_accesses() const { return watched != 0; }
};

struct PatternTotals {
  uint64_t objects = 0;
  uint64_t bytes = 0;
  double byte_ns = 0;
  uint64_t at_peak = 0;    // bytes
  uint64_t needed = 0;     // objects whose space another one could have used meanwhile
  uint64_t uncertain = 0;  // objects that could not be judged
};

// Keeps the worst objects of a stream: those that waste most bytes times time (with `by`: that mending this pattern frees),
// then those that hold most, then the earlier.
class Worst {
 public:
  explicit Worst(size_t limit, std::optional<Pattern> by = std::nullopt) : limit_(limit), by_(by) {}
  void add(const Usage &usage);
  // Worst first.
  std::vector<const Usage *> sorted() const;
  std::vector<Usage> &items() { return heap_; }
  uint64_t left_out() const { return left_out_; }
  double left_out_wasted() const { return left_out_wasted_; }
  uint64_t left_out_bytes() const { return left_out_bytes_; }

 private:
  bool is_worse(const Usage &a, const Usage &b) const;

  size_t limit_;
  std::optional<Pattern> by_;
  uint64_t left_out_ = 0;
  uint64_t left_out_bytes_ = 0;
  double left_out_wasted_ = 0;
  std::vector<Usage> heap_;  // its front is the least bad
};

// Objects of one process, level and device: what lives together.
struct Group {
  explicit Group(const Options &options)
      : level_curve(static_cast<uint32_t>(options.timeline_rows)),
        worst(static_cast<size_t>(options.object_rows)),
        sharing(static_cast<size_t>(options.pack_objects)) {
    for (size_t i = 0; i < kPatterns; ++i) {
      worst_of.emplace_back(static_cast<size_t>(options.findings_of_rule), pattern_at(i));
    }
  }

  Process *process = nullptr;
  uint32_t source = 0;
  toolkit::ObjectLevel level = toolkit::ObjectLevel::kAllocation;
  uint32_t device = 0;

  uint64_t bytes = 0;
  uint64_t live = 0;
  uint64_t begins = 0;
  uint64_t ends = 0;
  uint64_t begun_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t peak_sequence = 0;
  int64_t peak_ns = 0;
  uint64_t peak_operation = 0;
  uint64_t alive_at_end = 0;
  uint64_t alive_bytes_at_end = 0;
  toolkit::Timeline level_curve;  // bytes, along the axis of the pictures

  // Lower peaks. Bytes of objects from their begin, or first use, to their end, or last use.
  uint64_t from_first_use = 0;
  uint64_t from_first_use_peak = 0;
  toolkit::GrowingPeak until_last_use;
  toolkit::GrowingPeak needed;
  // The most that one kernel touched: what the peer calls the optimal peak.
  uint64_t touched_peak = 0;
  uint32_t touched_peak_kernel = 0;
  uint64_t touched_peak_launch = 0;

  // What lived at the peak and has ended since; the rest is still alive.
  std::vector<Usage> ended_since_peak;
  std::array<PatternTotals, kPatterns> patterns{};
  Worst worst;
  std::vector<Worst> worst_of;  // by pattern
  Sharing sharing;
  SharingResult shared;  // after finish

  // Of the operation under way.
  uint64_t open_sequence = 0;
  uint64_t touched = 0;

  uint64_t needed_peak() const { return needed.greatest().value; }
};

// Told of operations in order, for the trace file.
using OperationSink = std::function<void(const toolkit::MemoryOperation &)>;

// Memory: a few hundred bytes a live object, what lived at the peak, and bounded lists. Not thread-safe.
class Objects : public toolkit::MemoryListener {
 public:
  using GroupKey = std::tuple<uint32_t, toolkit::ObjectLevel, uint32_t>;  // source, level, device

  explicit Objects(const Options &options) : options_(options), fragmentation_(options) {}

  void object_begins(const toolkit::MemoryObject &object) override;
  void operation(const toolkit::MemoryOperation &operation, std::span<const toolkit::MemoryTouch> touches) override;
  void object_ends(const toolkit::MemoryObject &object) override;
  // After the last object ended.
  void finish();

  void set_sink(OperationSink sink) { sink_ = std::move(sink); }
  // An operator or scope of a framework, so that objects made in it can be told apart. The last 65,536 are remembered.
  void note_scope(uint32_t source, uint64_t scope, uint32_t name);
  StreamOrder &stream_order() { return stream_order_; }

  const Options &options() const { return options_; }
  const std::map<GroupKey, std::unique_ptr<Group>> &groups() const { return groups_; }
  const std::map<uint32_t, Process> &processes() const { return processes_; }
  const Fragmentation &fragmentation() const { return fragmentation_; }
  const StreamOrder &stream_order() const { return stream_order_; }
  uint64_t host_objects() const { return host_objects_; }
  // Over all processes and devices. Redundant allocations are known after finish.
  PatternTotals totals(toolkit::ObjectLevel level, Pattern pattern) const;

 private:
  // A live object.
  struct Watched {
    Usage usage;
    Group *group = nullptr;
    uint64_t ends_at_begin = 0;     // of the group
    uint64_t begins_at_use = 0;     // of the group, at the last use
    uint64_t incomplete_begin = 0;  // of the process
    uint64_t incomplete_use = 0;
    uint32_t needed_place = toolkit::GrowingPeak::kNever;
    uint32_t last_use_place = toolkit::GrowingPeak::kNever;
    uint32_t part = UINT32_MAX;  // of parts_
    std::vector<StreamUse> streams;
  };
  struct Parts {
    IntraObject intra;
    HostWrites writes;
  };

  Process &process(uint32_t source);
  Group &group(const toolkit::MemoryObject &object);
  Watched *watched(uint64_t id);
  Parts &parts(Watched &watched);
  // Touched nothing that was not seen, or is taken for that.
  bool is_whole(const toolkit::MemoryOperation &operation) const;
  bool is_use(const toolkit::MemoryOperation &operation, const toolkit::MemoryTouch &touch) const;
  void use(Watched &watched, const toolkit::MemoryOperation &operation, Process &process);
  void note_idle(Watched &watched, const Use &next, Process &process);
  void late_operation(std::span<const toolkit::MemoryTouch> touches);
  // Some pattern that depends on all kernels may still hold.
  bool is_undecided(const Usage &usage, uint64_t kernels) const;
  void decide(Group &group, Usage &usage, uint64_t all_kernels);
  void drop_decided();
  // Where no kernel was watched, an object that was not touched says nothing.
  static void forget_accesses(Group &group);
  int64_t axis(int64_t time_ns, uint64_t operation) const {
    return options_.time_axis ? time_ns : static_cast<int64_t>(operation);
  }

  Options options_;
  std::map<uint32_t, Process> processes_;
  std::map<GroupKey, std::unique_ptr<Group>> groups_;
  Fragmentation fragmentation_;
  StreamOrder stream_order_;
  OperationSink sink_;
  uint64_t host_objects_ = 0;

  toolkit::IdMap places_;
  std::deque<Watched> watched_;
  std::vector<uint32_t> free_watched_;
  std::deque<Parts> parts_;
  std::vector<uint32_t> free_parts_;
  std::vector<Group *> open_groups_;
  std::vector<std::pair<Group *, Usage>> undecided_;
  size_t undecided_limit_ = 1024;
};

}  // namespace sonde::memory
