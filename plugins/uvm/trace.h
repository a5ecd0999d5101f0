// What a program's launches touched, as the simulator and the planner read it.
//
// Memory is counted in pages of 64 KiB, the least that a GPU's fault migrates, and in blocks of 2 MiB, the unit that the
// driver keeps track of and evicts (open-gpu-kernel-modules, uvm_va_block). Launches that touch the same pages share one
// touch set, so a loop costs 40 bytes an iteration and launch, whatever it touches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

namespace sonde::uvm {

inline constexpr uint64_t kPageBytes = 64 << 10;
inline constexpr uint64_t kBlockBytes = 2 << 20;
inline constexpr uint32_t kBlockPages = kBlockBytes / kPageBytes;  // a block's pages are the bits of one word
static_assert(kBlockPages == 32);

inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
inline constexpr uint64_t kNobody = std::numeric_limits<uint64_t>::max();

// Pages that hold `bytes` bytes from an address that is a multiple of a page.
constexpr uint64_t pages_of(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }
constexpr uint64_t blocks_of(uint64_t pages) { return (pages + kBlockPages - 1) / kBlockPages; }

// Where an allocation's pages are before the first step.
enum class Home : uint8_t {
  kHost,     // written by the host: a device's first touch moves them
  kNowhere,  // nobody has touched them: a device's first touch makes them there, and nothing is moved
  kDevice,   // there already
};

struct Allocation {
  uint64_t ordinal = 0;  // of the program's managed allocations, from 0, in order of begin
  uint64_t bytes = 0;
  uint64_t address = 0;
  Home home = Home::kHost;
  uint32_t begin_step = 0;    // first step after it began
  uint32_t end_step = kNone;  // first step after its end; kNone: never freed
  uint64_t device_touches = 0;
  uint64_t host_touches = 0;  // moments at which the host touched what the device had had, or the other way round
  std::string name;
};

// Pages of one allocation.
struct PageSpan {
  uint32_t allocation = 0;
  uint32_t first = 0;
  uint32_t count = 0;
  bool is_written = false;
  bool is_read = true;
  float traffic = 1;  // bytes that were asked for, by byte of the span: what access over the link would cost

  friend bool operator==(const PageSpan &, const PageSpan &) = default;
};

using TouchSet = std::vector<PageSpan>;  // ascending by allocation and first page, disjoint

struct Step {
  uint32_t touches = 0;       // index of a touch set
  uint32_t kernel = kNone;    // index of a kernel; kNone: the host touched
  uint32_t occurrence = 0;    // launches of that kernel before it
  uint32_t gap_ns = 0;        // time before it in which the device ran nothing
  int64_t duration_ns = 0;    // with all pages on the device
  uint64_t launch = kNobody;  // ordinal of the launch call in its process; kNobody: the host touched
  uint64_t stream = 0;
  bool is_graph = false;      // a node of a graph launch; its nodes share one launch ordinal
  bool is_estimated = false;  // the duration: it was never seen with its pages on the device

  bool is_host() const { return kernel == kNone; }
};

// One process on one device.
struct Trace {
  std::vector<Allocation> allocations;
  std::vector<TouchSet> sets{TouchSet{}};  // 0: touches nothing
  std::vector<std::string> kernels;        // names as the runtime gives them; "" for a graph
  std::vector<Step> steps;
  uint32_t device = 0;
  uint32_t source = 0;

  // Number of a set with these spans, made when there is none.
  uint32_t intern(const TouchSet &set);
  // Appends a launch; its ordinal and occurrence are the next.
  Step &launch(uint32_t kernel, uint32_t touches, int64_t duration_ns);
  Step &host_touch(uint32_t touches);
  uint32_t kernel(const std::string &name);
  uint32_t allocate(uint64_t bytes, Home home = Home::kHost);

  uint64_t launches() const { return launches_; }
  void set_launches(uint64_t launches) { launches_ = launches; }
  uint64_t footprint() const;      // bytes of pages that any step touches, over all allocations
  uint64_t greatest_step() const;  // bytes of pages that one step touches, at most
  int64_t resident_ns() const;     // sum of durations and gaps: the run with all pages on the device
  // Block accesses of the first `steps` steps.
  uint64_t block_accesses(size_t steps = SIZE_MAX) const;
  // The first steps, as many as have at most `accesses` block accesses together, at least one.
  Trace beginning(uint64_t accesses) const;
  bool has_kernel_times() const;  // any step takes time
  const std::string &kernel_name(const Step &step) const;

 private:
  std::unordered_multimap<uint64_t, uint32_t> set_of_hash_;
  std::unordered_map<std::string, uint32_t> kernel_of_name_;
  std::vector<uint32_t> occurrences_;
  uint64_t launches_ = 0;
};

// A step's touches by block: `mask` has the touched pages of the block.
struct BlockAccess {
  uint32_t block = 0;  // number over all allocations, see BlockMap
  uint32_t mask = 0;
  uint32_t span = 0;  // index in the touch set
  float share = 0;    // of the step's duration
  float traffic = 1;  // as the span's
  bool is_written = false;
};

// Numbers blocks over all allocations; each allocation has blocks of its own.
class BlockMap {
 public:
  explicit BlockMap(const Trace &trace);

  uint32_t first(uint32_t allocation) const { return first_[allocation]; }
  uint32_t count() const { return static_cast<uint32_t>(allocation_.size()); }
  uint32_t allocation(uint32_t block) const { return allocation_[block]; }
  // Pages of the block that the allocation has.
  uint32_t whole(uint32_t block) const { return whole_[block]; }

 private:
  std::vector<uint32_t> first_;
  std::vector<uint32_t> allocation_;
  std::vector<uint32_t> whole_;
};

// The accesses of a set in the order in which a kernel makes them: spans side by side, each from its begin to its end,
// as kernels do that walk over several arrays with one index.
std::vector<BlockAccess> accesses_of(const TouchSet &set, const BlockMap &map);

}  // namespace sonde::uvm
