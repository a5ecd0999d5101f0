// What managed memory's events were about: the allocation and tensor that an address meant at that moment, and the
// kernels that ran meanwhile.
//
// Records come in any order and are kept; `join` sorts them. It is a pure function of what was added: no clock, no
// host, no randomness. Memory: all that was added. Times are nanoseconds on one line.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <sonde/record.h>

namespace sonde::toolkit {

enum class ManagedKind : uint8_t { kPageFault, kMigration, kThrash };

// Of devices: none took part (the CPU's faults), or it is not known which.
constexpr uint32_t kCpu = UINT32_MAX;
constexpr uint32_t kAnyDevice = UINT32_MAX - 1;

struct ManagedEvent {
  ManagedKind kind = ManagedKind::kPageFault;
  int64_t begin = 0;
  int64_t end = 0;  // not before begin; the same: a moment
  uint64_t address = 0;
  uint64_t bytes = 0;   // 0: unknown, the page of the address
  uint64_t count = 1;   // faults of the group
  uint32_t device = 0;  // whose kernels may have caused it; kCpu: no kernel did; kAnyDevice
  uint32_t source = 0;  // of a migration: device or kCpu
  uint32_t target = 0;
  uint32_t cause = 0;   // of a migration, as sonde.device.migration has it; of a thrash, its action
  uint64_t record = 0;  // number of the record, in order of add
};

// A range of memory that was something for a while: [begin, end).
struct Lifetime {
  static constexpr int64_t kAlive = INT64_MAX;
  uint64_t id = 0;  // from 1, in order of begin
  uint64_t address = 0;
  uint64_t bytes = 0;
  int64_t begin = 0;
  int64_t end = kAlive;
  uint64_t record = 0;  // number of the record that began it
};

struct KernelSpan {
  int64_t begin = 0;
  int64_t end = 0;
  uint32_t device = 0;
  uint64_t record = 0;
};

// A range that an event touched, and with how many of the event's bytes (1 where the event has none).
struct TouchedRange {
  uint64_t id = 0;  // of a Lifetime
  uint64_t bytes = 0;
};

// A kernel that ran during an event. At each instant the event is shared equally by the kernels that run then;
// `confidence` is this kernel's part of the whole event, 0 to 1. The parts of an event add up to the share of it during
// which any kernel ran: what is missing to 1 was nobody's.
struct RunningKernel {
  uint64_t kernel = 0;  // index in ManagedJoin::kernels
  double overlap = 0;   // share of the event during which it ran
  double confidence = 0;
};

struct ManagedLink {
  uint64_t event = 0;                     // index in ManagedJoin::events
  std::vector<TouchedRange> allocations;  // in order of address
  std::vector<TouchedRange> tensors;
  std::vector<RunningKernel> kernels;  // in order of begin
};

struct ManagedJoin {
  std::vector<ManagedEvent> events;  // in order of begin
  std::vector<ManagedLink> links;    // one an event, in the same order
  std::vector<Lifetime> allocations;
  std::vector<Lifetime> tensors;
  std::vector<KernelSpan> kernels;  // in order of begin
  uint64_t unmatched_frees = 0;     // frees of what was not alive: allocated before the capture began, or lost
  uint64_t replaced = 0;            // ranges ended by a new one over them, because their free was not seen
};

class ManagedRecords {
 public:
  // Takes a record that matters here: sonde.memory allocate, free, sub_allocate, sub_free (these two are tensors);
  // sonde.framework tensor_allocate, tensor_free; sonde.device kernel, page_fault, migration, thrash. `ns` gives the
  // time of a raw stamp of the record's batch. False for any other record, which is left alone.
  bool add(const sonde_record_t *record, const std::function<int64_t(uint64_t)> &ns);

  // The same without records.
  void allocate(uint64_t address, uint64_t bytes, int64_t time);
  void free(uint64_t address, int64_t time);
  void tensor(uint64_t address, uint64_t bytes, int64_t time);
  void end_tensor(uint64_t address, int64_t time);
  void kernel(int64_t begin, int64_t end, uint32_t device);
  void event(ManagedEvent event);

  ManagedJoin join() const;

 private:
  struct Change {
    uint64_t address;
    uint64_t bytes;
    int64_t time;
    uint64_t record;
    bool begins;
  };
  std::vector<Change> allocations_;
  std::vector<Change> tensors_;
  std::vector<KernelSpan> kernels_;
  std::vector<ManagedEvent> events_;
  uint64_t records_ = 0;
};

}  // namespace sonde::toolkit
