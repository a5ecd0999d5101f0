// From records to traces: which memory each launch touched and how long it took, one trace for each process.
//
// Listens to the history of memory for launches and their touches; takes kernels' times and migrations from
// sonde.device. Touches by byte edges or pages are taken where they are, else the tensors that were touched, else whole
// allocations.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <sonde/spaces/device.h>
#include <sonde/toolkit/memory_history.h>
#include <sonde/sonde.hpp>

#include "trace.h"

namespace sonde::uvm {

enum class Memory : uint8_t { kAutomatic, kManaged, kAll };
enum class HomeRule : uint8_t { kAutomatic, kHost, kNowhere };

struct ProfileOptions {
  Memory memory = Memory::kAutomatic;    // what is taken for managed; automatic: managed where there is any, else all
  HomeRule home = HomeRule::kAutomatic;  // automatic: by migrations where the capture has any and all, else the host
  uint64_t trusted_migrations = 4096;    // of a process; of more some may not have been reported
  uint32_t device = kNone;               // kNone: the one with the most launches that touch such memory
  uint32_t most_spans = 64;              // of one launch and allocation; more are joined over their smallest gaps
  uint64_t most_launches = 262'144;      // of a process; later ones are left out
  double device_rate = 2e12;             // bytes/s, for launches that were never seen without faults
};

// Half-open.
struct PageRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct ProfileCounts {
  uint64_t launches = 0;    // kernels, graph nodes one by one
  uint64_t watched = 0;     // of these, with touches
  uint64_t incomplete = 0;  // touches that are not all there
  uint64_t late = 0;        // whose touches came too late
  uint64_t left_out = 0;    // beyond most_launches
  uint64_t kernels = 0;     // kernel times
  uint64_t timed = 0;       // launches that have one
  uint64_t estimated = 0;   // launches whose time without faults was estimated from their bytes
  uint64_t touches = 0;     // of planned memory
  uint64_t by_edges = 0;    // of these, by bytes or pages
  uint64_t by_tensors = 0;
  uint64_t whole = 0;         // neither: the whole allocation
  uint64_t joined_spans = 0;  // over gaps, because of most_spans
  uint64_t migrations = 0;
  uint64_t other_devices = 0;  // launches on devices that are not planned for
  bool is_all_memory = false;  // there is no managed memory: all device memory stands for it
  bool has_access_records = false;
};

class Profile final : public toolkit::MemoryListener {
 public:
  // `text` resolves numbers of the history's strings; it is called in finish too.
  Profile(const ProfileOptions &options, std::function<const std::string &(uint32_t)> text);

  static std::vector<sonde_interest_t> interests();

  // sonde.device records.
  void consume(const sonde_batch_t &batch);

  void object_begins(const toolkit::MemoryObject &object) override;
  void operation(const toolkit::MemoryOperation &operation, std::span<const toolkit::MemoryTouch> touches) override;
  void object_ends(const toolkit::MemoryObject &object) override;

  // Joins and makes the traces. Called once, after the history's finish.
  void finish();

  // Processes that touched such memory, the one with the most touched bytes first.
  const std::vector<Trace> &traces() const { return traces_; }
  const ProfileCounts &counts() const { return counts_; }

  // For tests and other feeders: what a kernel record says.
  void kernel(uint32_t source, uint64_t correlation, uint64_t graph_node, int64_t begin_ns, int64_t end_ns);
  void migration(uint32_t source, int64_t time_ns, uint64_t address, uint64_t bytes, bool to_host, bool is_eviction);

 private:
  struct Launch {
    int64_t time_ns = 0;
    uint64_t number = 0;  // `launch` of the access space
    uint64_t correlation = 0;
    uint64_t graph_node = 0;
    uint64_t ordinal = 0;
    uint64_t stream = 0;
    uint32_t touches = 0;
    uint32_t name = 0;
    uint32_t shape = 0;
    uint32_t device = 0;
    bool is_graph = false;
    bool is_host = false;
  };
  struct Kernel {
    uint64_t correlation;
    uint64_t graph_node;
    int64_t begin_ns;
    int64_t end_ns;
  };
  struct Moved {
    int64_t time_ns;
    uint64_t address;
    uint64_t bytes;
    bool to_host;
  };
  struct Life {
    uint64_t address;
    uint64_t bytes;
    int64_t begin_ns;
    int64_t end_ns;
  };
  struct Source {
    Trace trace;                  // sets and allocations; steps are made in finish
    std::deque<Launch> launches;  // deques: growing does not copy
    std::deque<Kernel> kernels;
    std::vector<Moved> moved;
    uint64_t migrations = 0;                         // records
    std::vector<Life> lives;                         // parallel to the trace's allocations
    std::unordered_map<uint64_t, uint32_t> managed;  // object id to allocation
    std::unordered_map<uint64_t, uint32_t> unmanaged;
    Trace other;  // the same for memory that is not managed
    std::vector<Life> other_lives;
    std::deque<uint32_t> other_touches;  // by launch, its set in `other`
    uint64_t launches_counted = 0;
    uint64_t last_graph = 0;
    uint64_t last_correlation = 0;
    int64_t last_time_ns = 0;
    bool was_graph = false;
  };

  void add_allocation(Source &source, const toolkit::MemoryObject &object);
  uint32_t touch_set(Source &source, std::span<const toolkit::MemoryTouch> touches, bool is_managed);
  void add_spans(const toolkit::MemoryTouch &touch, std::span<const toolkit::MemoryTouch> all, uint32_t allocation,
                 TouchSet &set);
  uint64_t ordinal_of(Source &source, const toolkit::MemoryOperation &operation);
  void make_trace(uint32_t number, Source &source);
  void find_homes(const Source &source, Trace &trace, const std::vector<Life> &lives, std::vector<Launch> &launches);
  void set_times(Source &source, const std::vector<Launch> &launches, Trace &trace);

  const ProfileOptions options_;
  std::function<const std::string &(uint32_t)> text_;
  std::map<uint32_t, Source> sources_;
  std::unordered_map<uint64_t, uint32_t> shapes_;
  std::vector<Trace> traces_;
  ProfileCounts counts_;
  // Of one operation, kept so that a launch allocates nothing.
  TouchSet set_;
  std::vector<PageRange> read_;
  std::vector<PageRange> written_;
  std::vector<uint64_t> cuts_;
};

}  // namespace sonde::uvm
