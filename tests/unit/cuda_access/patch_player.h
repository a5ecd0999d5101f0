// Plays the port's patches on the processor, over the State that a launch got: what device/state.h and
// access_packed.h say of their effect, one warp access at a time. Kernels of the tests call it for what they would do.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sonde/spaces/access_packed.h>

#include "device/state.h"
#include "fake_device.h"

namespace sonde::cuda::access::test {

constexpr uint32_t kRead = 1;
constexpr uint32_t kWrite = 2;
constexpr uint32_t kAtomic = 3;
constexpr uint32_t kAllLanes = 0xffffffff;

using Lanes = std::array<uint64_t, 32>;

inline Lanes side_by_side(uint64_t base, int64_t stride) {
  Lanes lanes;
  for (int64_t i = 0; i < 32; ++i) lanes[static_cast<size_t>(i)] = base + static_cast<uint64_t>(stride * i);
  return lanes;
}

// Addresses below this are in the windows of shared and local memory.
constexpr uint64_t kGlobalBegin = 1 << 24;

class PatchPlayer {
 public:
  explicit PatchPlayer(const KernelRun &run)
      : run_(run), state_(static_cast<State *>(run.state)), processor_(run.processor % kMostProcessors) {}

  // Where in the code and in the grid the next calls are.
  void at(uint64_t pc_offset, uint32_t block = 0, uint32_t warp = 0) {
    pc_ = run_.begin + pc_offset;
    block_ = block;
    warp_ = warp;
  }

  // `values`: `size` bytes for each lane, what a write stores.
  void access(const Lanes &lanes, uint32_t size, uint32_t flags, uint32_t mask = kAllLanes,
              const void *values = nullptr) {
    const std::string patch = patch_of(instruction::kGlobalAccess);
    if (patch.empty() || state_ == nullptr || (flags & 3) == 0) return;
    if (patch == "sonde_objects") return apply(kObjects, lanes, size, flags, mask, values);
    if (patch == "sonde_pages") return apply(kPages, lanes, size, flags, mask, values);
    if (patch == "sonde_intervals") return apply(kIntervals, lanes, size, flags, mask, values);
    if (patch == "sonde_records") return apply(kRecords, lanes, size, flags, mask, values);
    if (patch == "sonde_check") return apply(kCheck, lanes, size, flags, mask, values);
    if (patch == "sonde_objects_check") return apply(kObjects | kCheck, lanes, size, flags, mask, values);
    if (patch == "sonde_objects_pages") return apply(kObjects | kPages, lanes, size, flags, mask, values);
    if (patch == "sonde_objects_intervals") return apply(kObjects | kIntervals, lanes, size, flags, mask, values);
    if (patch == "sonde_several" && watches_block()) {
      apply(state_->features & ~kEvents, lanes, size, flags, mask, values);
    }
  }

  void shared(const Lanes &lanes, uint32_t size, uint32_t flags, uint32_t mask = kAllLanes) {
    if (patch_of(instruction::kSharedAccess) != "sonde_shared" || state_ == nullptr) return;
    if ((state_->features & kInstructions) == 0 || !watches_block()) return;
    // Lanes that fill the banks once go together; a bank serves one word after the other.
    const uint32_t lanes_of_phase = 128 / std::max(size, 4u);
    std::map<uint32_t, std::map<uint32_t, std::set<uint64_t>>> words;  // phase, bank -> words
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      const uint64_t word = lanes[lane] / std::max(size, 4u);
      words[lane / lanes_of_phase][static_cast<uint32_t>(word % lanes_of_phase)].insert(word);
    }
    uint32_t passes = 0;
    for (const auto &[phase, banks] : words) {
      size_t most = 0;
      for (const auto &[bank, distinct] : banks) most = std::max(most, distinct.size());
      passes += static_cast<uint32_t>(most);
    }
    count_instruction(key(size, flags) | uint64_t{1} << 63, std::popcount(mask), passes,
                      static_cast<uint32_t>(words.size()));
  }

  // A copy to shared memory by each lane.
  void copy_async(const Lanes &lanes, uint32_t size, uint32_t mask = kAllLanes) {
    if (patch_of(instruction::kMemcpyAsync) != "sonde_copy_async" || state_ == nullptr) return;
    if (watches_block()) apply(state_->features & ~kEvents, lanes, size, kRead, mask, nullptr, true);
    event(SONDE_DEVICE_EVENT_COPY_ASYNC, lanes[0], size, mask);
  }

  void bulk_load(uint64_t address, uint64_t bytes) {
    if (patch_of(instruction::kBulkGlobalToShared) != "sonde_bulk_load" || state_ == nullptr) return;
    if (watches_block() && (state_->features & kObjects) != 0) {
      uint64_t *const counters = counters_of(locate(address));
      ++counters[kBulkCounter];
      counters[kBulkBytesCounter] += bytes;
    }
    event(SONDE_DEVICE_EVENT_BULK_LOAD, address, bytes, 1);
  }

  void event(uint32_t kind, uint64_t a = 0, uint64_t b = 0, uint32_t mask = kAllLanes) {
    if (state_ == nullptr || (state_->features & kEvents) == 0 || !watches_block()) return;
    sonde_device_event_t entry = {};
    entry.a = a;
    entry.b = b;
    entry.mask = mask;
    entry.block = block_;
    entry.pc = static_cast<uint32_t>(pc_);
    entry.warp = static_cast<uint16_t>(warp_);
    entry.kind = static_cast<uint16_t>(kind);
    put(&entry, sizeof(entry), 1);
  }

  bool patched() const { return !run_.patches.empty() && state_ != nullptr; }
  const State *state() const { return state_; }

 private:
  std::string patch_of(uint32_t instruction) const {
    const auto found = run_.patches.find(instruction);
    return found != run_.patches.end() ? found->second : "";
  }

  bool watches_block() const { return block_ % state_->block_period == state_->block_offset; }

  // As on the device: the last position that begins at or before the address.
  uint32_t locate(uint64_t address) const {
    uint32_t position = 0;
    for (uint32_t step = state_->step; step != 0; step >>= 1) {
      if (state_->ranges[position + step].begin <= address) position += step;
    }
    return address < state_->ranges[position].end ? position : 0;
  }

  uint64_t *counters_of(uint32_t position) const {
    return state_->counters + (processor_ & state_->copy_mask) * uint64_t{state_->copy_stride} + position * kCounters;
  }

  uint64_t key(uint32_t size, uint32_t flags) const {
    return pc_ << 8 | (flags & 15) << 4 | static_cast<uint64_t>(std::countr_zero(size)) << 1 | 1;
  }

  void apply(uint32_t features, const Lanes &lanes, uint32_t size, uint32_t flags, uint32_t mask, const void *values,
             bool copies = false) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) != 0 && lanes[lane] < kGlobalBegin) mask &= ~(1u << lane);
    }
    if (mask == 0) return;
    if ((features & kRecords) != 0) {
      const bool with_values =
          (state_->features & kValues) != 0 && patch_of(instruction::kGlobalAccess) == "sonde_several";
      record(lanes, size, flags, mask, values, with_values && !copies);
    }
    if ((features & kInstructions) != 0) {
      std::set<uint64_t> sectors;
      for (uint32_t lane = 0; lane < 32; ++lane) {
        if ((mask >> lane & 1) != 0) sectors.insert(lanes[lane] / 32);
      }
      const auto count = static_cast<uint32_t>(std::popcount(mask));
      count_instruction(key(size, flags), count, static_cast<uint32_t>(sectors.size()), (count * size + 31) / 32);
    }
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      const uint64_t address = lanes[lane];
      const uint32_t position = locate(address);
      if ((features & kObjects) != 0) {
        const auto log = static_cast<uint32_t>(std::countr_zero(size));
        ++counters_of(position)[copies ? kCopyCounters + log - 2 : ((flags & 3) - 1) * 5 + log];
      }
      if ((features & kCheck) != 0) check(position, address, size, flags, lane);
      if (position == 0) continue;
      if ((features & kPages) != 0) {
        ++state_->pages[static_cast<int64_t>(address >> state_->page_shift) + state_->page_offsets[position]];
      }
      if ((features & kIntervals) != 0) touch(position, address, size, (flags & 2) != 0 ? 1 : 0);
    }
  }

  void check(uint32_t position, uint64_t address, uint32_t size, uint32_t flags, uint32_t lane) {
    if (position != 0 && address + size <= state_->ranges[position].end && address % size == 0) return;
    const uint64_t number = state_->invalid_count++;
    if (number >= kInvalidEntries) return;
    InvalidAccess &entry = state_->invalid[number];
    entry.pc = pc_;
    entry.address = address;
    entry.block[0] = block_;
    entry.thread[0] = warp_ * 32 + lane;
    entry.size = size;
    entry.access = flags;
    __atomic_store_n(&entry.filled, 1u, __ATOMIC_RELEASE);
  }

  void touch(uint32_t position, uint64_t address, uint32_t size, uint32_t kind) {
    for (uint64_t byte = address; byte < address + size; ++byte) {
      uint32_t &entry =
          state_->directory[static_cast<int64_t>(byte >> kChunkShift) + state_->directory_offsets[position]];
      if (entry == 0) {
        const uint32_t next = state_->next_chunk++;
        entry = next < state_->chunk_count ? next + 1 : kChunkRefused;
      }
      if (entry == kChunkRefused) continue;
      uint8_t *const map = state_->chunks + (entry - 1) * uint64_t{kChunkBytes} + kind * kMapBytes;
      map[(byte & ((1u << kChunkShift) - 1)) / 4] |= static_cast<uint8_t>(1u << byte % 4);
    }
  }

  void count_instruction(uint64_t key, uint32_t threads, uint32_t units, uint32_t least) {
    InstructionCounters *const table =
        state_->instructions + uint64_t{processor_ & state_->copy_mask} * kInstructionSlots;
    for (uint32_t probe = 0; probe < kInstructionSlots; ++probe) {
      InstructionCounters &entry = table[(key * 0x9E3779B97F4A7C15ull + probe) % kInstructionSlots];
      if (entry.key != 0 && entry.key != key) continue;
      entry.key = key;
      entry.threads += threads;
      entry.warps += 1;
      entry.units += units;
      entry.least_units += least;
      return;
    }
    ++state_->instructions_cut;
  }

  void record(const Lanes &lanes, uint32_t size, uint32_t flags, uint32_t mask, const void *values, bool with_values) {
    const auto first = static_cast<uint32_t>(std::countr_zero(mask));
    std::vector<uint8_t> addresses;
    std::vector<uint8_t> stored;
    const bool next = first < 31 && (mask >> (first + 1) & 1) != 0;
    const auto stride = next ? static_cast<int32_t>(lanes[first + 1] - lanes[first]) : 0;
    bool affine = true;
    bool near = true;
    for (uint32_t lane = first; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      const auto offset = static_cast<int64_t>(lanes[lane] - lanes[first]);
      near = near && offset == static_cast<int32_t>(offset);
      affine = affine && offset == int64_t{stride} * (lane - first);
    }
    affine = affine && near;
    for (uint32_t lane = first; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      const auto offset = static_cast<int32_t>(lanes[lane] - lanes[first]);
      if (!affine && near) append(addresses, &offset, sizeof(offset));
      if (!affine && !near) append(addresses, &lanes[lane], sizeof(uint64_t));
      if (with_values) {
        const uint64_t zero[2] = {};
        const bool has = values != nullptr && (flags & kWrite) != 0;
        append(stored,
               has ? static_cast<const uint8_t *>(values) + lane * size : reinterpret_cast<const uint8_t *>(zero),
               size);
      }
    }
    addresses.resize((addresses.size() + 7) & ~size_t{7});
    stored.resize((stored.size() + 7) & ~size_t{7});
    sonde_warp_access_t head = {};
    head.size8 = static_cast<uint16_t>((sizeof(head) + addresses.size() + stored.size()) / 8);
    head.form = affine ? SONDE_WARP_AFFINE : near ? SONDE_WARP_OFFSETS32 : SONDE_WARP_ADDRESS64;
    head.values = with_values ? 1 : 0;
    head.mask = mask;
    head.base = lanes[first] - (affine ? static_cast<uint64_t>(int64_t{stride} * first) : 0);
    head.stride = affine ? stride : 0;
    head.block = block_;
    head.pc = static_cast<uint32_t>(pc_);
    head.warp = static_cast<uint16_t>(warp_);
    head.size = static_cast<uint8_t>(size);
    head.access = static_cast<uint8_t>(flags & 15);
    std::vector<uint8_t> entry(reinterpret_cast<const uint8_t *>(&head), reinterpret_cast<const uint8_t *>(&head + 1));
    entry.insert(entry.end(), addresses.begin(), addresses.end());
    entry.insert(entry.end(), stored.begin(), stored.end());
    put(entry.data(), static_cast<uint32_t>(entry.size()), 0);
  }

  static void append(std::vector<uint8_t> &to, const void *from, size_t bytes) {
    const auto *const begin = static_cast<const uint8_t *>(from);
    to.insert(to.end(), begin, begin + bytes);
  }

  uint8_t *memory_of(uint32_t block) const { return state_->exchange->memory + uint64_t{block} * kBlockBytes; }

  // Into this processor's open block; a full one is handed over.
  void put(const void *entry, uint32_t bytes, uint32_t kind) {
    uint64_t &open = state_->open_blocks[processor_];
    auto block = static_cast<uint32_t>(open >> 32);
    auto offset = static_cast<uint32_t>(open);
    if (offset + bytes > kBlockBytes) {
      if (block != kNoBlock) {
        reinterpret_cast<BlockHead *>(memory_of(block))->used = offset;
        commit(block, kBlockBytes - offset + static_cast<uint32_t>(sizeof(BlockHead)));
      }
      block = take_block();
      if (block == kNoBlock) {
        ++state_->dropped;
        open = uint64_t{kNoBlock} << 32 | kBlockBytes;
        return;
      }
      state_->exchange->committed[block] = 0;
      auto *const head = reinterpret_cast<BlockHead *>(memory_of(block));
      head->launch = state_->launch;
      head->kind = kind;
      head->function_begin = state_->function_begin;
      offset = sizeof(BlockHead);
    }
    std::memcpy(memory_of(block) + offset, entry, bytes);
    open = uint64_t{block} << 32 | (offset + bytes);
    commit(block, bytes);
  }

  void commit(uint32_t block, uint32_t bytes) {
    const Exchange &exchange = *state_->exchange;
    if ((exchange.committed[block] += bytes) != kBlockBytes) return;
    const uint64_t number = __atomic_fetch_add(exchange.full_tail, uint64_t{1}, __ATOMIC_RELAXED);
    __atomic_store_n(exchange.full_blocks + (number & (exchange.blocks - 1)), (number + 1) << 32 | block,
                     __ATOMIC_RELEASE);
  }

  uint32_t take_block() const {
    const Exchange &exchange = *state_->exchange;
    for (;;) {
      uint64_t number = __atomic_load_n(exchange.free_head, __ATOMIC_ACQUIRE);
      if (number >= __atomic_load_n(&exchange.host->free_tail, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&exchange.host->stall, __ATOMIC_ACQUIRE) == 0) return kNoBlock;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      } else if (__atomic_compare_exchange_n(exchange.free_head, &number, number + 1, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE)) {
        return __atomic_load_n(exchange.free_blocks + (number & (exchange.blocks - 1)), __ATOMIC_ACQUIRE);
      }
    }
  }

  const KernelRun &run_;
  State *state_;
  uint32_t processor_;
  uint64_t pc_ = 0;
  uint32_t block_ = 0;
  uint32_t warp_ = 0;
};

}  // namespace sonde::cuda::access::test
