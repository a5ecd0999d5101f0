// The device memory of the port in one CUDA context: tables of live ranges, states of launches, blocks of records.
//
// Device memory comes from the sanitizer, whose calls alone may be made inside a callback: there the driver's would wait
// for the callback to end. The driver does not know that memory, so its copies refuse it, on any thread; kernels reach
// it. The port's threads have a stream of their own, which no launch of the program waits for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/state.h"
#include "live_ranges.h"
#include "patch_images.h"
#include "sanitizer_api.h"

namespace sonde::cuda::access {

constexpr uint32_t kNonBlocking = 1;      // CU_STREAM_NON_BLOCKING
constexpr int32_t kHighestPriority = -5;  // the driver takes the nearest that the device has

struct SpaceOptions {
  uint64_t state_bytes = uint64_t{512} << 20;   // most memory for states without interval maps
  uint64_t interval_bytes = uint64_t{1} << 30;  // of one state's map of touched bytes
  uint32_t interval_states = 2;                 // states with such a map
  uint64_t record_bytes = uint64_t{512} << 20;  // for blocks of records
  uint64_t page_bytes = 4096;
  bool stall = true;  // device code waits for room for records, else drops
};

// An immutable device copy of the live ranges, with what single features need beside it.
struct Table {
  uint64_t version = 0;
  bool without_remainders = false;
  uint32_t page_shift = 0;
  std::vector<LiveRange> ranges;  // position i is ranges[i - 1]
  uint8_t *memory = nullptr;      // DeviceRange[entries], then page offsets, then directory offsets
  uint64_t bytes = 0;
  uint32_t entries = 0;  // a power of two, more than the ranges
  uint64_t page_counters = 0;
  uint64_t directory_entries = 0;
  std::vector<int64_t> page_offsets;
  std::vector<int64_t> directory_offsets;

  const DeviceRange *device_ranges() const { return reinterpret_cast<const DeviceRange *>(memory); }
  const int64_t *device_page_offsets() const {
    return reinterpret_cast<const int64_t *>(memory + uint64_t{entries} * sizeof(DeviceRange));
  }
  const int64_t *device_directory_offsets() const { return device_page_offsets() + ranges.size() + 1; }
};

// Memory of one watched launch at a time: State, open blocks, counters, instructions in one piece, so that one copy
// reads them; pages, directory and map apart.
struct Slot {
  static constexpr uint64_t kOpenBlocks = 512;  // bytes from the begin
  static constexpr uint64_t kCounterBytes = kOpenBlocks + uint64_t{kMostProcessors} * 8;

  uint8_t *memory = nullptr;
  uint64_t bytes = 0;
  uint64_t *pages = nullptr;
  uint64_t page_capacity = 0;
  uint32_t *directory = nullptr;
  uint64_t directory_capacity = 0;
  uint8_t *chunks = nullptr;
  uint32_t chunk_count = 0;
  InvalidAccess *invalid = nullptr;  // pinned
  uint64_t *flag = nullptr;          // pinned: `sequence` when the launch is over
  uint64_t sequence = 0;
  State state = {};
  std::shared_ptr<const Table> table;

  uint64_t counter_bytes() const { return uint64_t{state.copy_mask + 1} * state.copy_stride * sizeof(uint64_t); }
  uint64_t instruction_bytes() const {
    return state.instructions == nullptr
               ? 0
               : uint64_t{state.copy_mask + 1} * kInstructionSlots * sizeof(InstructionCounters);
  }
  bool over() const { return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == sequence; }
};

class Space {
 public:
  Space(const SanitizerApi &api, Context context, int32_t device, const SpaceOptions &options);

  // At the context's creation: streams, patches, hints. False: `reason`. [a callback]
  bool prepare(const std::string &folder, std::string &reason);

  // The live ranges as the device sees them; the last table again where it still holds. Null: no memory.
  // [a callback]
  std::shared_ptr<const Table> table(const LiveRanges &ranges, uint32_t features);

  // Promises a slot for a launch with `features` to come; false when none is free and no more may be made. [any]
  bool promise(uint32_t features);
  // The launch did not come. [any]
  void withdraw(uint32_t features);

  // A slot for a launch with `features` (not 0) over `table`, its State filled in but for the launch itself; null when
  // none is free and no more may be made. `promised`: it takes up a promise. [a callback]
  Slot *take(uint32_t features, const std::shared_ptr<const Table> &table, bool promised);

  // Gives a slot back. Its counters must have been cleared. [any]
  void give_back(Slot *slot);

  // Puts the slot's State on the device, in the order of `stream`. [a callback]
  bool upload(Slot &slot, StreamHandle stream);

  // Makes the slot's flag show when everything before in `stream` is over. [a callback]
  bool mark_end(Slot &slot, StreamHandle stream);

  // Clears what the launch may have written, after it was read. [a thread of the port, in the context]
  bool clear(Slot &slot);

  // Blocks of records, made at first use. Null when there is no memory. [a callback]
  const Exchange *exchange();

  // The number of the next full block, if there is one: called until it says no. One thread at a time per space.
  bool next_full(uint32_t &block);
  bool has_full() const;  // as next_full
  void free_block(uint32_t block);
  uint8_t *block_address(uint32_t block) const { return exchange_.memory + uint64_t{block} * kBlockBytes; }
  // Whether device code waits for room for records; by the options until the next call. [with next_full's lock]
  void stall(bool wait);

  // Options of sessions that come; what has been made already stays. [control]
  void configure(const SpaceOptions &options);

  // The context ends: nothing in it may be used any more. [a callback]
  void end() { ready_ = false; }

  // Stream and staging memory of a thread that carries records, made by that thread.
  struct Carrier {
    StreamHandle stream = nullptr;
    uint8_t *staging = nullptr;
  };
  static constexpr size_t kMostCarriers = 32;
  Carrier &carrier(size_t number) { return carriers_[number]; }

  const SanitizerApi &api() const { return api_; }
  Context context() const { return context_; }
  int32_t device() const { return device_; }
  Stream work_stream() const { return work_; }
  StreamHandle work_handle() const { return work_handle_; }
  const PatchImages &images() const { return images_; }
  const SpaceOptions &options() const { return options_; }
  bool ready() const { return ready_; }

 private:
  struct FreeMemory {
    uint8_t *memory;
    uint64_t bytes;
  };

  Slot *make(uint32_t features, const Table &table);
  bool fit(Slot &slot, uint32_t features, const Table &table);
  uint8_t *allocate(uint64_t bytes);
  void *allocate_host(uint64_t bytes);

  const SanitizerApi &api_;
  Context context_;
  int32_t device_;
  SpaceOptions options_;
  PatchImages images_;
  bool ready_ = false;
  Stream upload_ = nullptr;
  Stream work_ = nullptr;
  StreamHandle upload_handle_ = nullptr;
  StreamHandle work_handle_ = nullptr;
  uint32_t *hints_ = nullptr;

  std::mutex mutex_;                     // what follows, up to the exchange
  std::vector<FreeMemory> free_memory_;  // before the tables, whose end comes here
  std::shared_ptr<const Table> last_table_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot *> free_slots_;
  uint64_t slot_bytes_ = 0;
  uint32_t interval_slots_ = 0;
  uint64_t promised_[2] = {};  // slots without and with interval maps

  Exchange exchange_ = {};
  Exchange *device_exchange_ = nullptr;
  HostWords *host_words_ = nullptr;
  uint32_t *free_blocks_ = nullptr;
  uint64_t *full_blocks_ = nullptr;
  uint64_t next_full_ = 0;
  std::array<Carrier, kMostCarriers> carriers_;
  std::mutex free_block_mutex_;
};

}  // namespace sonde::cuda::access
