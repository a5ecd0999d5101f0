// Two runs of one program: which launch and which allocation of one run is which of the other.
//
// Neither addresses, nor handles, nor times of two runs are comparable. What is: the order of launches on a stream and
// of allocations on a device. Run A is the one whose names for things stay, run B the one that is translated.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace sonde::toolkit {

inline constexpr uint32_t kNoPartner = std::numeric_limits<uint32_t>::max();

// A sequence within which order means the same in both runs: the launches of a stream, those of an executable graph,
// the allocations of a device.
struct JoinLane {
  uint32_t device = 0;
  uint32_t context = 0;
  uint64_t stream = 0;    // or the number of the executable graph
  bool is_graph = false;  // else a stream
  int64_t first_ns = 0;   // of its first item
  uint64_t items = 0;

  friend bool operator==(const JoinLane &, const JoinLane &) = default;
};

struct JoinLaunch {
  int64_t time_ns = 0;
  uint64_t id = 0;          // ascending where times are equal
  uint64_t graph_node = 0;  // within the lane of a graph
  uint32_t key = 0;         // the same for launches that may be the same: name, grid, block
  uint32_t lane = 0;        // index
};

// Launches of one run. 32 bytes a launch; joining takes 20 more of each run for a while.
class JoinLaunches {
 public:
  // `lane` without first_ns and items.
  void add(const JoinLane &lane, int64_t time_ns, uint64_t id, uint64_t graph_node, uint32_t key);

  const std::vector<JoinLaunch> &launches() const { return launches_; }
  const std::vector<JoinLane> &lanes() const { return lanes_; }

  // By lane: indices of its launches in order. Launches of one graph launch (no node comes twice) stand in the order of
  // their keys, because branches of a graph may run in any order.
  std::vector<std::vector<uint32_t>> in_order() const;

 private:
  std::vector<JoinLaunch> launches_;
  std::vector<JoinLane> lanes_;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t, bool>, uint32_t> lane_of_;
};

struct JoinOptions {
  size_t most_edits = 1024;  // window of the alignment, see sequence_alignment.h
  size_t most_apart = 256;   // places in a lane between which two left over with one key are partners, out of order
};

// Partners by index; kNoPartner where there is none.
struct Join {
  std::vector<uint32_t> b_of_a;
  std::vector<uint32_t> a_of_b;
  std::vector<uint32_t> lane_a_of_b;
  uint64_t matched = 0;
  uint64_t out_of_order = 0;  // of these
  uint64_t size_differs = 0;  // of these, allocations
  uint64_t only_a = 0;
  uint64_t only_b = 0;
  bool is_exact = true;  // false: somewhere the window was too small, and more might have been matched

  uint64_t mismatches() const { return only_a + only_b + size_differs; }
};

// Lanes are matched within a device: the most similar mixtures of keys first, in sixteenths, then the closest in order
// of first use. Within a lane: a longest common subsequence of the keys, then what is left by key within `most_apart`.
// Time: lanes squared (for up to 512 each, else neighbours in order), n log n, and the alignment's.
Join join_launches(const JoinLaunches &a, const JoinLaunches &b, const JoinOptions &options = {});

// An address range with its life.
struct JoinRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = std::numeric_limits<int64_t>::max();  // exclusive
  uint32_t group = 0;  // only ranges of one group are partners: device, and whether cut out of another
};

// Per group in order of begin: a longest common subsequence of sizes, then by size within `most_apart`; of what is
// left between the same neighbours, the first with the first, their sizes differ.
Join join_ranges(std::span<const JoinRange> a, std::span<const JoinRange> b, const JoinOptions &options = {});

// Turns allocations and frees into lives. Ranges of one layer that live at one time do not overlap: a new one ends
// those that it overlaps, because their free was not seen.
class RangeLives {
 public:
  // In any order. `layer`: 0 allocations, 1 ranges cut out of them.
  void allocate(int64_t time_ns, uint32_t layer, uint64_t address, uint64_t bytes, uint32_t group, uint64_t tag);
  void release(int64_t time_ns, uint32_t layer, uint64_t address);

  struct Life {
    JoinRange range;
    uint32_t layer = 0;
    uint64_t tag = 0;  // the caller's
  };
  // Lives in order of begin; what was added is used up. *unmatched counts frees of nothing.
  std::vector<Life> take(uint64_t *unmatched);

 private:
  struct Event {
    int64_t time_ns;
    uint64_t address;
    uint64_t bytes;
    uint64_t tag;
    uint32_t group;
    uint8_t layer;
    bool is_release;
  };
  std::vector<Event> events_;
};

// Times of run B on the time line of run A: through the moments that both have, straight between them, of slope 1
// outside. Moments that would turn the order around are left out (the least number of them). Never descends.
class TimeWarp {
 public:
  // Pairs of (ns in b, ns in a), in any order; `offset_ns` is a - b where there are none.
  TimeWarp(std::vector<std::pair<int64_t, int64_t>> moments, int64_t offset_ns);

  int64_t operator()(int64_t b_ns) const;
  size_t moments() const { return moments_.size(); }

 private:
  std::vector<std::pair<int64_t, int64_t>> moments_;  // both ascend
  int64_t offset_ns_;
};

// Addresses of run B as addresses of run A.
class AddressTranslation {
 public:
  enum class Kind { kTranslated, kOnlyInB, kPastSmaller, kNoRange };
  struct Place {
    uint64_t address = 0;
    Kind kind = Kind::kNoRange;
    bool is_moved = false;  // no partner, and the address means something else in run A: kElsewhere is set
  };
  // The bit of addresses that have no counterpart and would be mistaken for something of run A.
  static constexpr uint64_t kElsewhere = uint64_t{1} << 63;

  // `layers` (as in RangeLives) and `ranges` of run B; `a_of_b` as join_ranges made it, kNoPartner beyond its end.
  AddressTranslation(std::vector<RangeLives::Life> b, std::vector<uint32_t> a_of_b, std::vector<JoinRange> a);

  // The address in the innermost range that lived at `time_ns` and holds `bytes` from there (or in the outer one, where
  // none holds all of them). Cheap when calls come about in order of time.
  Place translate(uint64_t address, int64_t time_ns, uint64_t bytes = 1);

 private:
  struct Change {
    int64_t time_ns;
    uint32_t range;
    bool is_end;
  };
  void move_to(int64_t time_ns);
  void apply(const Change &change, bool is_undone);
  const RangeLives::Life *live_at(uint32_t layer, uint64_t address) const;
  bool is_known_in_a(uint64_t begin, uint64_t bytes) const;

  std::vector<RangeLives::Life> b_;
  std::vector<uint32_t> a_of_b_;
  std::vector<JoinRange> a_;
  std::vector<Change> changes_;
  size_t next_change_ = 0;
  std::map<uint64_t, uint32_t> live_[2];                   // by address, of each layer
  std::vector<std::pair<uint64_t, uint64_t>> known_in_a_;  // begin and last byte of all that ever lived, merged
};

}  // namespace sonde::toolkit
