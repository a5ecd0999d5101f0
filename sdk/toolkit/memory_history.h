// What a program did to its memory, in program order: which objects lived, which operations touched them.
//
//   class Peak : public toolkit::MemoryListener { void object_begins(const MemoryObject &object) override { ... } };
//   toolkit::MemoryHistory history({}, fetch, listener);
//   ... history.consume(batch);   // of sonde.memory, sonde.access and sonde.framework, in any interleaving
//   history.finish();
//
// Records come by stream and late: the results of a launch may be read long after memory that it used was freed. The
// history holds records back, puts them in order of the host's stamps, finds out what each address meant when the launch was
// made, and tells the listener one story. Memory: what is held back, what is alive, `remembered` ended objects and
// launches; it does not grow with the capture.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <sonde/spaces/access.h>
#include <sonde/sonde.hpp>

#include <sonde/toolkit/strings.h>

namespace sonde::toolkit {

// Levels lie inside each other, so their bytes are never added up.
enum class ObjectLevel : uint8_t {
  kAllocation,  // of the runtime: allocate, map
  kTensor,      // cut out of one by an allocator above: sub_allocate, a framework's tensor
};

enum class ObjectEnd : uint8_t {
  kAlive,  // at the end of the capture
  kFreed,
  kReplaced,  // its address was handed out again before a free was seen
};

// A range of addresses during one life. Valid until the call that ends it returns.
struct MemoryObject {
  static constexpr int64_t kAlive = std::numeric_limits<int64_t>::max();

  uint64_t id = 0;  // from 1, in order of begin, over all sources and levels
  ObjectLevel level = ObjectLevel::kAllocation;
  ObjectEnd end = ObjectEnd::kAlive;
  bool is_implicit = false;        // its begin was not seen: it begins with its first touch
  bool is_before_capture = false;  // it lived when the capture began
  bool is_stream_ordered = false;
  bool is_end_stream_ordered = false;
  uint32_t source = 0;
  uint32_t device = 0;  // UINT32_MAX: the host
  uint32_t kind = 0;    // SONDE_MEMORY_*
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t parent = 0;      // id of the allocation that a tensor was cut from, 0: unknown or none
  uint64_t pool = 0;        // the runtime's or the framework's, 0: none
  uint64_t stream = 0;      // that it was allocated for
  uint64_t end_stream = 0;  // that it was freed on
  uint64_t scope = 0;       // operator or scope that a framework had open, 0: none
  uint32_t name = 0;        // numbers of the history's strings
  uint32_t call_path = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = kAlive;       // exclusive
  uint64_t begin_operation = 0;  // operations of its source before its begin and before its end
  uint64_t end_operation = 0;
  uint64_t begin_kernel = 0;  // launches of its source before its begin and before its end
  uint64_t end_kernel = 0;
};

enum class OperationKind : uint8_t { kKernel, kCopy, kSet, kPrefetch, kAdvise };

// A kernel launch, or something that the host asked for.
struct MemoryOperation {
  OperationKind kind = OperationKind::kKernel;
  bool is_late = false;  // told before without its touches, which came too late to be put in order
  bool is_cut = false;   // records of a kernel were dropped
  uint32_t source = 0;
  uint32_t device = 0;  // of an advice or prefetch the target, UINT32_MAX: the CPU
  uint32_t context = 0;
  uint32_t name = 0;     // of a kernel, as the runtime gives it; a number of the history's strings
  uint64_t index = 0;    // operations of its source before it
  uint64_t kernels = 0;  // launches of its source before it, watched or not
  int64_t time_ns = 0;   // of the host's call
  uint64_t stream = 0;
  uint64_t correlation = 0;  // joins sonde.device records, 0: unknown
  uint64_t graph_node = 0;
  uint32_t graph_exec = 0;
  uint64_t launch = 0;        // `launch` of the access space, 0: not a kernel
  uint32_t launch_flags = 0;  // SONDE_LAUNCH_*
  uint32_t kernel_period = 1;
  uint32_t block_period = 1;
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint64_t accesses = 0;   // thread accesses to global memory
  uint64_t outside = 0;    // of these, in no live range
  uint64_t bytes = 0;      // of a copy, set, prefetch or advice
  uint32_t copy_kind = 0;  // SONDE_COPY_*
  uint32_t advice = 0;     // the runtime's number

  // Its touches are all there are: watched as a whole, nothing dropped or cut.
  bool is_complete() const;
};

// What one operation did to one object. Counts are thread accesses; an operation of the host counts once.
struct MemoryTouch {
  const MemoryObject *object = nullptr;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t atomics = 0;
  uint64_t copies = 0;  // asynchronous copies of device code, out of the object or into it
  uint64_t read_bytes = 0;
  uint64_t write_bytes = 0;
  uint64_t copy_bytes = 0;
  // Begin and end in turn, bytes from the object's begin, ascending, disjoint; empty: not collected. A copy or set of
  // the host always has them.
  std::span<const uint64_t> read_edges;
  std::span<const uint64_t> write_edges;
  uint32_t granule = 1;  // bytes that edges are exact to
  // Touched pages, ascending (address / page_bytes), and thread accesses of each; empty: not collected.
  std::span<const uint64_t> pages;
  std::span<const uint64_t> page_counts;
  uint64_t page_bytes = 0;

  bool is_read() const { return reads != 0 || atomics != 0 || copies != 0 || !read_edges.empty(); }
  bool is_written() const { return writes != 0 || atomics != 0 || !write_edges.empty(); }
};

// Called in order of time within a source, except for operations with `is_late`.
class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  virtual void object_begins(const MemoryObject &) {}
  // Each level is complete by itself: what touched a tensor is a touch of its allocation too (edges and pages moved
  // along), so a listener looks at one level or at both apart. At most one touch for each object.
  virtual void operation(const MemoryOperation &, std::span<const MemoryTouch>) {}
  // Also at finish, for what is alive.
  virtual void object_ends(const MemoryObject &) {}
  // A free of nothing that lives: source, level, device, kind, pool, address, bytes (0: unknown), end_ns and end_stream are set.
  virtual void unmatched_free(const MemoryObject &) {}
};

struct MemoryHistoryOptions {
  size_t reorder = 16384;     // records held back to put them in order
  size_t remembered = 16384;  // ended objects, and launches whose touches may still come
};

struct MemoryHistoryCounts {
  uint64_t launches = 0;
  uint64_t watched = 0;  // launches with SONDE_LAUNCH_WATCHED
  uint64_t touch_records = 0;
  uint64_t transfers = 0;
  uint64_t late_touches = 0;  // came after their launch had been told
  uint64_t lost_touches = 0;  // of launches that are not known (any more)
  uint64_t unmatched_frees = 0;
  uint64_t replaced = 0;
  uint64_t implicit = 0;
  uint64_t late_records = 0;  // allocations, frees, operations that came too late to be put in order
};

// Not thread-safe.
class MemoryHistory {
 public:
  MemoryHistory(const MemoryHistoryOptions &options, SourceStrings::Fetch fetch, MemoryListener &listener);
  ~MemoryHistory();

  // What to subscribe to. `types`: which records of sonde.access are wanted beside launches and transfers, a bit each
  // (1 << SONDE_ACCESS_OBJECT, _PAGES, _INTERVALS).
  static std::vector<sonde_interest_t> interests(uint64_t types);

  // Records of other kinds are left alone.
  void consume(const sonde_batch_t &batch);
  void finish();

  const std::string &text(uint32_t name) const;
  // The number of a text of `source`, as names of objects and operations have it.
  uint32_t resolve(uint32_t source, sonde_string_t id);
  const MemoryHistoryCounts &counts() const;
  // Objects alive now.
  uint64_t live() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sonde::toolkit
