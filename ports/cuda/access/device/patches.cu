// Device functions that the Compute Sanitizer calls before instructions of the watched program, by the lanes that
// execute them. See state.h for what they cost and why they look the way they do.
#include "state.h"

namespace sonde::cuda::access {
namespace {

// ---- memory, in the global space, so that no generic access with its window checks is made --------------------------

__device__ __forceinline__ uint64_t global(const volatile void *pointer) {
  uint64_t address;
  asm("cvta.to.global.u64 %0, %1;" : "=l"(address) : "l"(pointer));
  return address;
}

__device__ __forceinline__ uint64_t load64(const volatile void *from) {
  uint64_t value;
  asm volatile("ld.global.nc.u64 %0, [%1];" : "=l"(value) : "l"(global(from)));
  return value;
}

__device__ __forceinline__ uint32_t load32(const volatile void *from) {
  uint32_t value;
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(global(from)));
  return value;
}

// Of what others write meanwhile; may be old.
__device__ __forceinline__ uint32_t peek32(const volatile void *from) {
  uint32_t value;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(global(from)));
  return value;
}

__device__ __forceinline__ uint32_t fresh32(const volatile void *from) {
  uint32_t value;
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(global(from)));
  return value;
}

__device__ __forceinline__ uint64_t fresh64(const volatile void *from) {
  uint64_t value;
  asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(value) : "l"(global(from)));
  return value;
}

__device__ __forceinline__ void store8(volatile void *to, uint32_t value) {
  asm volatile("st.global.u8 [%0], %1;" ::"l"(global(to)), "r"(value) : "memory");
}

__device__ __forceinline__ void store16(volatile void *to, uint32_t value) {
  asm volatile("st.global.u16 [%0], %1;" ::"l"(global(to)), "h"(static_cast<uint16_t>(value)) : "memory");
}

__device__ __forceinline__ void store32(volatile void *to, uint32_t value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(global(to)), "r"(value) : "memory");
}

__device__ __forceinline__ void store64(volatile void *to, uint64_t value) {
  asm volatile("st.global.u64 [%0], %1;" ::"l"(global(to)), "l"(value) : "memory");
}

__device__ __forceinline__ void add64(volatile void *to, uint64_t value) {
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(global(to)), "l"(value) : "memory");
}

__device__ __forceinline__ uint32_t fetch_add32(volatile void *to, uint32_t value) {
  uint32_t before;
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(global(to)), "r"(value) : "memory");
  return before;
}

// After all that the caller wrote before.
__device__ __forceinline__ uint32_t release_add32(volatile void *to, uint32_t value) {
  uint32_t before;
  asm volatile("atom.release.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(global(to)), "r"(value) : "memory");
  return before;
}

__device__ __forceinline__ uint64_t fetch_add64(volatile void *to, uint64_t value) {
  uint64_t before;
  asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(global(to)), "l"(value) : "memory");
  return before;
}

__device__ __forceinline__ uint64_t swap64(volatile void *to, uint64_t expected, uint64_t value) {
  uint64_t before;
  asm volatile("atom.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(before)
               : "l"(global(to)), "l"(expected), "l"(value)
               : "memory");
  return before;
}

template <typename Pointer>
__device__ __forceinline__ Pointer load_pointer(Pointer const *from) {
  return reinterpret_cast<Pointer>(load64(from));
}

// ---- who calls -------------------------------------------------------------------------------------------------------

__device__ __forceinline__ uint32_t lane() {
  uint32_t value;
  asm("mov.u32 %0, %%laneid;" : "=r"(value));
  return value;
}

__device__ __forceinline__ uint32_t processor() {
  uint32_t value;
  asm("mov.u32 %0, %%smid;" : "=r"(value));
  return value;
}

__device__ __forceinline__ uint32_t linear_block() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

__device__ __forceinline__ uint32_t linear_warp() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) >> 5;
}

__device__ __forceinline__ bool leads(uint32_t lanes) { return static_cast<uint32_t>(__ffs(lanes)) == lane() + 1; }

__device__ __forceinline__ bool watches_block(const State *state) {
  return linear_block() % load32(&state->block_period) == load32(&state->block_offset);
}

__device__ __forceinline__ bool is_global(uint64_t address) {
  return __isGlobal(reinterpret_cast<const void *>(address)) != 0;
}

// ---- which range -----------------------------------------------------------------------------------------------------

__device__ __forceinline__ const DeviceRange *range(const State *state, uint32_t position) {
  return load_pointer(&state->ranges) + position;
}

// The last position that begins at or before the address.
__device__ __forceinline__ uint32_t search(const State *state, uint64_t address) {
  uint32_t position = 0;
  const DeviceRange *const ranges = load_pointer(&state->ranges);
#pragma unroll 1
  for (uint32_t step = load32(&state->step); step != 0; step >>= 1) {
    if (load64(&ranges[position + step].begin) <= address) position += step;
  }
  return position;
}

__device__ __forceinline__ uint32_t *hint(const State *state, uint32_t pc) {
  return load_pointer(&state->hints) + (processor() * kHintsOfProcessor + (pc >> 4 & (kHintsOfProcessor - 1)));
}

// The range that contains the address, 0 when none does.
__device__ __forceinline__ uint32_t locate(const State *state, uint32_t pc, uint64_t address) {
  // A table of another launch may have been longer.
  uint32_t position = peek32(hint(state, pc)) & (load32(&state->step) * 2 - 1);
  if (load64(&range(state, position)->begin) <= address && address < load64(&range(state, position)->end)) {
    return position;
  }
  position = search(state, address);
  if (address >= load64(&range(state, position)->end)) return 0;
  store32(hint(state, pc), position);
  return position;
}

// ---- totals of ranges ------------------------------------------------------------------------------------------------

__device__ __forceinline__ void count_object(const State *state, uint32_t position, uint32_t counter) {
  const uint32_t same = __match_any_sync(__activemask(), position);
  if (!leads(same)) return;
  const uint32_t index =
      (processor() & load32(&state->copy_mask)) * load32(&state->copy_stride) + position * kCounters + counter;
  add64(load_pointer(&state->counters) + index, __popc(same));
}

// Of an access by its flags (1 read, 2 write, both: atomic) and size.
__device__ __forceinline__ uint32_t access_counter(uint32_t size, uint32_t flags) {
  return ((flags & 3) - 1) * 5 + (31 - __clz(size));
}

__device__ __forceinline__ void count_page(const State *state, uint32_t position, uint64_t address) {
  const auto page = static_cast<uint32_t>((address >> load32(&state->page_shift)) +
                                          load64(load_pointer(&state->page_offsets) + position));
  const uint32_t same = __match_any_sync(__activemask(), page);
  if (leads(same)) add64(load_pointer(&state->pages) + page, __popc(same));
}

// ---- touched bytes ---------------------------------------------------------------------------------------------------

// Where the map byte of an address lies, 0 when there is no room for it.
__device__ __forceinline__ uint8_t *map_byte(State *state, uint32_t position, uint64_t address, uint32_t written) {
  uint32_t *const entry =
      load_pointer(&state->directory) +
      static_cast<int64_t>((address >> kChunkShift) + load64(load_pointer(&state->directory_offsets) + position));
  // From the second-level cache: an old 0 in the first-level one would cost an atomic operation each time.
  uint32_t chunk = fresh32(entry);
  if (chunk == 0 || chunk == kChunkPending) {
    // One lane for all that need this entry: lanes that waited for another lane of their warp would hold it up.
    const uint32_t same = __match_any_sync(__activemask(), static_cast<uint32_t>(reinterpret_cast<uint64_t>(entry)));
    if (leads(same)) {
      asm volatile("atom.global.cas.b32 %0, [%1], 0, 0xffffffff;" : "=r"(chunk) : "l"(global(entry)) : "memory");
      if (chunk == 0) {
        chunk = fetch_add32(&state->next_chunk, 1);
        chunk = chunk < load32(&state->chunk_count) ? chunk + 1 : kChunkRefused;
        store32(entry, chunk);
      }
      while (chunk == kChunkPending) {
        __nanosleep(50);
        chunk = fresh32(entry);
      }
    }
    chunk = __shfl_sync(same, chunk, __ffs(same) - 1);
  }
  if (chunk == kChunkRefused) return nullptr;
  return load_pointer(&state->chunks) + (static_cast<uint64_t>(chunk - 1) * kChunkBytes + written * kMapBytes) +
         (static_cast<uint32_t>(address) >> 2 & (kMapBytes - 1));
}

__device__ __forceinline__ void touch(State *state, uint32_t position, uint64_t address, uint32_t size,
                                      uint32_t written) {
  uint8_t *const to = map_byte(state, position, address, written);
  if (to == nullptr) return;
  // An access is aligned to its size, so those of 4 bytes and more own their map bytes.
  if (size == 4) {
    store8(to, 0x0f);
  } else if (size == 16) {
    store32(to, 0x0f0f0f0f);
  } else if (size == 8) {
    store16(to, 0x0f0f);
  } else {
    const uint32_t shift = (static_cast<uint32_t>(address) & 3) | (static_cast<uint32_t>(address) & 12) << 1;
    asm volatile("red.global.or.b32 [%0], %1;" ::"l"(global(to) & ~uint64_t{3}), "r"((size * 2 - 1) << shift)
                 : "memory");
  }
}

// ---- wrong accesses --------------------------------------------------------------------------------------------------

__device__ __forceinline__ void report(State *state, uint64_t pc, uint64_t address, uint32_t size, uint32_t access) {
  const uint64_t number = fetch_add64(&state->invalid_count, 1);
  if (number >= kInvalidEntries) return;
  InvalidAccess *const entry = load_pointer(&state->invalid) + number;
  store64(&entry->pc, pc);
  store64(&entry->address, address);
  store32(&entry->size, size);
  store32(&entry->access, access);
  store32(&entry->block[0], blockIdx.x);
  store32(&entry->block[1], blockIdx.y);
  store32(&entry->block[2], blockIdx.z);
  store32(&entry->thread[0], threadIdx.x);
  store32(&entry->thread[1], threadIdx.y);
  store32(&entry->thread[2], threadIdx.z);
  __threadfence_system();
  store32(&entry->filled, 1);
}

__device__ __forceinline__ void check(State *state, uint32_t position, uint64_t pc, uint64_t address, uint32_t size,
                                      uint32_t access) {
  if (position != 0 && address + size <= load64(&range(state, position)->end) && (address & (size - 1)) == 0) return;
  report(state, pc, address, size, access);
}

// ---- records ---------------------------------------------------------------------------------------------------------

// Accounts for `bytes` of a block; whoever completes it hands it over. What was written before is released with the count: a
// __threadfence() would also empty the first-level cache, where the program's data and the patches' stacks lie.
__device__ __forceinline__ void commit(const State *state, uint32_t block, uint32_t bytes) {
  uint32_t *const committed = load_pointer(&load_pointer(&state->exchange)->committed) + block;
  if (release_add32(committed, bytes) + bytes != kBlockBytes) return;
  __threadfence_system();
  const Exchange *const exchange = load_pointer(&state->exchange);
  const uint64_t number = fetch_add64(load_pointer(&exchange->full_tail), 1);
  store64(load_pointer(&exchange->full_blocks) + (number & (load32(&exchange->blocks) - 1)),
          (number + 1) << 32 | block);
}

// A free block, or kNoBlock.
__device__ __forceinline__ uint32_t take_block(const State *state) {
  const Exchange *const exchange = load_pointer(&state->exchange);
  for (;;) {
    uint64_t *const head = load_pointer(&exchange->free_head);
    const uint64_t number = fresh64(head);
    if (number >= fresh64(&load_pointer(&exchange->host)->free_tail)) {
      if (fresh32(&load_pointer(&exchange->host)->stall) == 0) return kNoBlock;
      __nanosleep(1000);
    } else if (swap64(head, number, number + 1) == number) {
      return fresh32(load_pointer(&exchange->free_blocks) + (number & (load32(&exchange->blocks) - 1)));
    }
  }
}

__device__ __forceinline__ uint8_t *block_memory(const State *state, uint32_t block) {
  return load_pointer(&load_pointer(&state->exchange)->memory) + static_cast<uint64_t>(block) * kBlockBytes;
}

// Room when a block's end was reached at `seen` (block << 32 | bytes reserved before). Returns as reserve.
__device__ __forceinline__ uint64_t reserve_slowly(State *state, uint64_t seen, uint32_t bytes) {
  uint64_t *const open = load_pointer(&state->open_blocks) + processor();
  for (;;) {
    const auto offset = static_cast<uint32_t>(seen);
    const auto block = static_cast<uint32_t>(seen >> 32);
    if (offset + bytes <= kBlockBytes) return seen;
    if (offset <= kBlockBytes) {
      // The one that crosses the end closes the block and opens the next; those behind it wait for that.
      if (block != kNoBlock) {
        auto *const head = reinterpret_cast<BlockHead *>(block_memory(state, block));
        store32(&head->used, offset);
        commit(state, block, kBlockBytes - offset + static_cast<uint32_t>(sizeof(BlockHead)));
      }
      const uint32_t next = take_block(state);
      if (next == kNoBlock) {
        // None is open: the next one tries again.
        add64(&state->dropped, 1);
        store64(open, static_cast<uint64_t>(kNoBlock) << 32 | kBlockBytes);
        return ~uint64_t{0};
      }
      store32(load_pointer(&load_pointer(&state->exchange)->committed) + next, 0);
      auto *const head = reinterpret_cast<BlockHead *>(block_memory(state, next));
      store64(&head->launch, load64(&state->launch));
      store32(&head->function_begin, load32(&state->function_begin));
      store32(&head->kind, (load32(&state->features) & kEvents) != 0 ? 1 : 0);
      __threadfence();
      store64(open, static_cast<uint64_t>(next) << 32 | (sizeof(BlockHead) + bytes));
      return static_cast<uint64_t>(next) << 32 | sizeof(BlockHead);
    }
    do {
      __nanosleep(200);
      seen = fresh64(open);
    } while (static_cast<uint32_t>(seen) > kBlockBytes);
    seen = fetch_add64(open, bytes);
  }
}

// Room for `bytes` (a multiple of 8) in this multiprocessor's block: block << 32 | offset; ~0 when it was dropped.
__device__ __forceinline__ uint64_t reserve(State *state, uint32_t bytes) {
  const uint64_t seen = fetch_add64(load_pointer(&state->open_blocks) + processor(), bytes);
  if (static_cast<uint32_t>(seen) + bytes <= kBlockBytes) return seen;
  return reserve_slowly(state, seen, bytes);
}

// Sizes of what follows the 32 bytes of a warp access: addresses by form, values.
__device__ __forceinline__ uint32_t address_bytes(uint32_t mask, uint32_t form) {
  return (__popc(mask) * 4 * form + 7) & ~7u;
}

template <bool kWithValues>
__device__ __forceinline__ uint32_t record_bytes(uint32_t mask, uint32_t form, uint32_t size) {
  return 32 + address_bytes(mask, form) + (kWithValues ? (__popc(mask) * size + 7) & ~7u : 0);
}

// Number of this lane among those of the mask.
__device__ __forceinline__ uint32_t rank(uint32_t mask) { return __popc(mask & ((1u << lane()) - 1)); }

// One warp access as sonde_warp_access_t.
template <bool kWithValues>
__device__ __forceinline__ void record(State *state, uint32_t pc, uint64_t address, uint32_t size, uint32_t access,
                                       const void *value) {
  const uint32_t mask = __activemask();
  const auto offset = static_cast<int32_t>(static_cast<uint32_t>(address) -
                                           __shfl_sync(mask, static_cast<uint32_t>(address), __ffs(mask) - 1));
  const uint64_t by_offset =
      __shfl_sync(mask, address, __ffs(mask) - 1) + static_cast<uint64_t>(static_cast<int64_t>(offset));
  uint32_t form = __all_sync(mask, by_offset == address) != 0 ? 1 : 2;
  // The stride is that of the lane after the first, where it takes part.
  const int32_t stride = __shfl_sync(mask, offset, __ffs(mask) - 1 + (mask >> (__ffs(mask) - 1) >> 1 & 1));
  // In 64 bits: a large stride times a lane would wrap.
  const int64_t by_stride = static_cast<int64_t>(stride) * (static_cast<int32_t>(lane()) + 1 - __ffs(mask));
  if (__all_sync(mask, form == 1 && offset == by_stride) != 0) form = 0;
  uint64_t room = 0;
  if (leads(mask)) room = reserve(state, record_bytes<kWithValues>(mask, form, size));
  room = __shfl_sync(mask, room, __ffs(mask) - 1);
  if (room == ~uint64_t{0}) return;
  uint8_t *const to = block_memory(state, static_cast<uint32_t>(room >> 32)) + static_cast<uint32_t>(room);
  if (form == 1) store32(to + 32 + 4 * rank(mask), static_cast<uint32_t>(offset));
  if (form == 2) store64(to + 32 + 8 * rank(mask), address);
  if (kWithValues) {
    const auto *const from = static_cast<const uint8_t *>(value);
    uint8_t *const place = to + 32 + address_bytes(mask, form) + rank(mask) * size;
    for (uint32_t i = 0; i < size; ++i) store8(place + i, from == nullptr ? 0 : from[i]);
  }
  if (leads(mask)) {
    store32(to, record_bytes<kWithValues>(mask, form, size) >> 3 | form << 16 | (kWithValues ? 1u << 24 : 0));
    store32(to + 4, mask);
    // Of lane 0, also where it takes no part.
    store64(
        to + 8,
        address - (form == 0 ? static_cast<uint64_t>(static_cast<int64_t>(stride) * static_cast<int32_t>(lane())) : 0));
    store32(to + 16, form == 0 ? static_cast<uint32_t>(stride) : 0);
    store32(to + 20, linear_block());
    store32(to + 24, pc);
    store32(to + 28, linear_warp() | size << 16 | access << 24);
  }
  __syncwarp(mask);
  if (leads(mask)) {
    commit(state, static_cast<uint32_t>(room >> 32), record_bytes<kWithValues>(mask, form, size));
  }
}

// One device event as sonde_device_event_t (32 bytes), by one lane for all that do it together.
__device__ __forceinline__ void event(void *user, uint64_t pc, uint32_t kind, uint64_t a, uint64_t b) {
  auto *const state = static_cast<State *>(user);
  if (state == nullptr || (load32(&state->features) & kEvents) == 0) return;
  if (load32(&state->block_period) > 1 && !watches_block(state)) return;
  const uint32_t mask = __activemask();
  if (!leads(mask)) return;
  const uint64_t room = reserve(state, 32);
  if (room == ~uint64_t{0}) return;
  uint8_t *const to = block_memory(state, static_cast<uint32_t>(room >> 32)) + static_cast<uint32_t>(room);
  store64(to, a);
  store64(to + 8, b);
  store32(to + 16, mask);
  store32(to + 20, linear_block());
  store32(to + 24, static_cast<uint32_t>(pc));
  store32(to + 28, linear_warp() | kind << 16);
  commit(state, static_cast<uint32_t>(room >> 32), 32);
}

// ---- instructions ----------------------------------------------------------------------------------------------------

__device__ __forceinline__ void count_instruction(State *state, uint64_t key, uint32_t lanes, uint32_t units,
                                                  uint32_t least) {
  InstructionCounters *entry =
      load_pointer(&state->instructions) + (processor() & load32(&state->copy_mask)) * kInstructionSlots;
  auto slot = static_cast<uint32_t>((key * 0x9E3779B97F4A7C15ull) >> 54);
  for (uint32_t probe = 0; probe < kInstructionSlots; ++probe) {
    slot &= kInstructionSlots - 1;
    uint64_t seen = fresh64(&entry[slot].key);
    if (seen == 0) seen = swap64(&entry[slot].key, 0, key);
    if (seen == 0 || seen == key) {
      add64(&entry[slot].threads, lanes);
      add64(&entry[slot].warps, 1);
      add64(&entry[slot].units, units);
      add64(&entry[slot].least_units, least);
      return;
    }
    ++slot;
  }
  add64(&state->instructions_cut, 1);
}

__device__ __forceinline__ uint64_t instruction_key(uint64_t pc, uint32_t size, uint32_t flags) {
  return pc << 8 | (flags & 15) << 4 | (31 - __clz(size)) << 1 | 1;
}

__device__ __forceinline__ void count_sectors(State *state, uint64_t pc, uint64_t address, uint32_t size,
                                              uint32_t flags) {
  const uint32_t mask = __activemask();
  const uint32_t same = __match_any_sync(mask, address >> 5);
  const uint32_t sectors = __popc(__ballot_sync(mask, leads(same)));
  if (leads(mask)) {
    count_instruction(state, instruction_key(pc, size, flags), __popc(mask), sectors, (__popc(mask) * size + 31) / 32);
  }
}

// The greatest value (at most 32) over the lanes, which all get it. Patches may not use the reduction instruction.
__device__ __forceinline__ uint32_t greatest(uint32_t mask, uint32_t value) {
  uint32_t result = 0;
  bool in = true;
  for (int bit = 5; bit >= 0; --bit) {
    const bool set = in && (value >> bit & 1) != 0;
    if (__ballot_sync(mask, set) != 0) {
      result |= 1u << bit;
      in = set;
    }
  }
  return result;
}

// Passes over 32 banks of 4 bytes: a warp is served in phases of as many lanes as fill the banks once, and a bank serves
// one word a pass.
__device__ __forceinline__ void count_passes(State *state, uint64_t pc, uint32_t address, uint32_t size,
                                             uint32_t flags) {
  const uint32_t mask = __activemask();
  const uint32_t phase_lanes = 128 / max(size, 4u);
  const uint32_t unit = address / max(size, 4u);
  const uint32_t phase = lane() / phase_lanes;
  const uint32_t same = __match_any_sync(mask, static_cast<uint64_t>(phase) << 32 | unit);
  const uint32_t firsts = __ballot_sync(mask, leads(same));
  const uint32_t rivals = __match_any_sync(mask, phase << 8 | (unit & (phase_lanes - 1)));
  const uint32_t passes = __popc(rivals & firsts);
  uint32_t all = 0;
  uint32_t phases = 0;
  for (uint32_t p = 0; p < 32 / phase_lanes; ++p) {
    const uint32_t most = greatest(mask, phase == p ? passes : 0);
    all += most;
    phases += most != 0 ? 1 : 0;
  }
  if (leads(mask)) {
    count_instruction(state, instruction_key(pc, size, flags) | uint64_t{1} << 63, __popc(mask), all, phases);
  }
}

// ---- accesses to global memory ---------------------------------------------------------------------------------------

// The features that the patch was made for, or (kFeatures == 0) those of the state one after the other.
template <uint32_t kFeatures>
__device__ __forceinline__ void global_access(void *user, uint64_t pc, uint64_t address, uint32_t size, uint32_t flags,
                                              const void *value) {
  auto *const state = static_cast<State *>(user);
  if (kFeatures == kRecords) {
    if (is_global(address)) record<false>(state, static_cast<uint32_t>(pc), address, size, flags & 15, nullptr);
    return;
  }
  if (kFeatures != 0) {
    const uint32_t position = locate(state, static_cast<uint32_t>(pc), address);
    // A generic instruction may go to shared or local memory, whose windows no range covers.
    if (position == 0 && !is_global(address)) return;
    if ((kFeatures & kObjects) != 0) count_object(state, position, access_counter(size, flags));
    if ((kFeatures & kCheck) != 0) check(state, position, pc, address, size, flags);
    if ((kFeatures & kPages) != 0 && position != 0) count_page(state, position, address);
    if ((kFeatures & kIntervals) != 0 && position != 0) touch(state, position, address, size, flags >> 1 & 1);
    return;
  }
  if (!is_global(address)) return;
  if (load32(&state->block_period) > 1 && !watches_block(state)) return;
  const uint32_t features = load32(&state->features);
  if ((features & kRecords) != 0) {
    if ((features & kValues) != 0) {
      record<true>(state, static_cast<uint32_t>(pc), address, size, flags & 15, (flags & 2) != 0 ? value : nullptr);
    } else {
      record<false>(state, static_cast<uint32_t>(pc), address, size, flags & 15, nullptr);
    }
  }
  if ((features & kInstructions) != 0) count_sectors(state, pc, address, size, flags);
  if ((features & (kObjects | kPages | kIntervals | kCheck)) == 0) return;
  const uint32_t position = locate(state, static_cast<uint32_t>(pc), address);
  if ((features & kObjects) != 0) count_object(state, position, access_counter(size, flags));
  if ((features & kCheck) != 0) check(state, position, pc, address, size, flags);
  if (position == 0) return;
  if ((features & kPages) != 0) count_page(state, position, address);
  if ((features & kIntervals) != 0) touch(state, position, address, size, flags >> 1 & 1);
}

// An asynchronous copy from global to shared memory by each lane.
__device__ __forceinline__ void async_copy(void *user, uint64_t pc, uint64_t address, uint32_t size) {
  auto *const state = static_cast<State *>(user);
  if (address == 0 || size == 0) return;  // nothing is read: the destination is filled with zeros
  if (load32(&state->block_period) > 1 && !watches_block(state)) return;
  const uint32_t features = load32(&state->features);
  if ((features & kRecords) != 0) record<false>(state, static_cast<uint32_t>(pc), address, size, 1, nullptr);
  if ((features & kInstructions) != 0) count_sectors(state, pc, address, size, 1);
  const uint32_t position = locate(state, static_cast<uint32_t>(pc), address);
  if ((features & kObjects) != 0) count_object(state, position, kCopyCounters + (31 - __clz(size)) - 2);
  if ((features & kCheck) != 0) check(state, position, pc, address, size, 1);
  if (position == 0) return;
  if ((features & kPages) != 0) count_page(state, position, address);
  if ((features & kIntervals) != 0) touch(state, position, address, size, 0);
}

// A bulk copy: all lanes carry the same values, one of them reports.
__device__ __forceinline__ void bulk_copy(void *user, uint64_t pc, uint64_t address, uint64_t bytes, uint32_t written) {
  auto *const state = static_cast<State *>(user);
  if (!leads(__activemask()) || bytes == 0) return;
  if (load32(&state->block_period) > 1 && !watches_block(state)) return;
  const uint32_t features = load32(&state->features);
  const uint32_t position = locate(state, static_cast<uint32_t>(pc), address);
  if ((features & kObjects) != 0) {
    uint64_t *const counters = load_pointer(&state->counters) +
                               (processor() & load32(&state->copy_mask)) * load32(&state->copy_stride) +
                               position * kCounters;
    add64(counters + kBulkCounter, 1);
    add64(counters + kBulkBytesCounter, bytes);
  }
  const uint64_t range_end = load64(&range(state, position)->end);
  if ((features & kCheck) != 0 && (position == 0 || address + bytes > range_end)) {
    report(state, pc, address, static_cast<uint32_t>(bytes), written + 1);
  }
  if (position == 0) return;
  const uint64_t end = min(address + bytes, range_end);
  if ((features & kPages) != 0) {
    const uint32_t shift = load32(&state->page_shift);
    uint64_t *const pages =
        load_pointer(&state->pages) + static_cast<int64_t>(load64(load_pointer(&state->page_offsets) + position));
    for (uint64_t page = address >> shift; page <= (end - 1) >> shift; ++page) add64(pages + page, 1);
  }
  if ((features & kIntervals) != 0) {
    // Bulk copies are multiples of 16 bytes and aligned to them.
    while (address < end) {
      // A range may end within 16 bytes.
      const uint32_t size = end - address >= 16 ? 16 : end - address >= 4 ? 4 : 1;
      touch(state, position, address, size, written);
      address += size;
    }
  }
}

}  // namespace
}  // namespace sonde::cuda::access

using namespace sonde::cuda::access;

#define SONDE_PATCH extern "C" __device__ __noinline__ int

#define SONDE_ACCESS_PATCH(name, features)                                                                     \
  SONDE_PATCH name(void *user, uint64_t pc, void *address, uint32_t size, uint32_t flags, const void *value) { \
    if (user != nullptr && (flags & 3) != 0) {                                                                 \
      global_access<features>(user, pc, reinterpret_cast<uint64_t>(address), size, flags, value);              \
    }                                                                                                          \
    return 0;                                                                                                  \
  }

// The floor: what patching costs by itself.
SONDE_PATCH sonde_empty(void *, uint64_t, void *, uint32_t, uint32_t, const void *) { return 0; }

// What many a tool does, for comparison: one aggregated atomic for each warp access.
SONDE_PATCH sonde_naive(void *user, uint64_t, void *, uint32_t, uint32_t, const void *) {
  const uint32_t mask = __activemask();
  if (user != nullptr && leads(mask)) add64(load_pointer(&static_cast<State *>(user)->counters), __popc(mask));
  return 0;
}

SONDE_ACCESS_PATCH(sonde_objects, kObjects)
SONDE_ACCESS_PATCH(sonde_pages, kPages)
SONDE_ACCESS_PATCH(sonde_intervals, kIntervals)
SONDE_ACCESS_PATCH(sonde_records, kRecords)
SONDE_ACCESS_PATCH(sonde_check, kCheck)
SONDE_ACCESS_PATCH(sonde_objects_check, kObjects | kCheck)
SONDE_ACCESS_PATCH(sonde_objects_pages, kObjects | kPages)
SONDE_ACCESS_PATCH(sonde_objects_intervals, kObjects | kIntervals)
SONDE_ACCESS_PATCH(sonde_several, 0)

SONDE_PATCH sonde_shared(void *user, uint64_t pc, void *address, uint32_t size, uint32_t flags, const void *) {
  auto *const state = static_cast<State *>(user);
  if (state == nullptr || (flags & 3) == 0 || (load32(&state->features) & kInstructions) == 0) return 0;
  if (load32(&state->block_period) > 1 && !watches_block(state)) return 0;
  count_passes(state, pc, static_cast<uint32_t>(reinterpret_cast<uint64_t>(address)), size, flags);
  return 0;
}

SONDE_PATCH sonde_copy_async(void *user, uint64_t pc, void *source, uint32_t, uint32_t size) {
  if (user != nullptr) async_copy(user, pc, reinterpret_cast<uint64_t>(source), size);
  event(user, pc, 11, reinterpret_cast<uint64_t>(source), size);
  return 0;
}

SONDE_PATCH sonde_bulk_load(void *user, uint64_t pc, uint64_t source, uint32_t, uint32_t, uint32_t data, uint32_t) {
  if (user != nullptr) bulk_copy(user, pc, source, static_cast<uint64_t>(data & 0xffff) * 16, 0);
  event(user, pc, 12, source, static_cast<uint64_t>(data & 0xffff) * 16);
  return 0;
}

SONDE_PATCH sonde_bulk_store(void *user, uint64_t pc, uint64_t destination, uint32_t, uint32_t blocks) {
  if (user != nullptr) bulk_copy(user, pc, destination, static_cast<uint64_t>(blocks) * 16, 1);
  event(user, pc, 13, destination, static_cast<uint64_t>(blocks) * 16);
  return 0;
}

SONDE_PATCH sonde_bulk_reduce(void *user, uint64_t pc, uint64_t destination, uint32_t, uint32_t blocks) {
  if (user != nullptr) bulk_copy(user, pc, destination, static_cast<uint64_t>(blocks) * 16, 1);
  event(user, pc, 14, destination, static_cast<uint64_t>(blocks) * 16);
  return 0;
}

// ---- events ----------------------------------------------------------------------------------------------------------

SONDE_PATCH sonde_block_enter(void *user, uint64_t pc) {
  event(user, pc, 1, 0, 0);
  return 0;
}
SONDE_PATCH sonde_block_exit(void *user, uint64_t pc) {
  event(user, pc, 2, 0, 0);
  return 0;
}
SONDE_PATCH sonde_barrier(void *user, uint64_t pc, uint32_t index, uint32_t threads, uint32_t) {
  event(user, pc, 3, index, threads);
  return 0;
}
SONDE_PATCH sonde_warp_barrier(void *user, uint64_t pc, uint32_t mask) {
  event(user, pc, 4, mask, 0);
  return 0;
}
SONDE_PATCH sonde_malloc(void *user, uint64_t pc, void *address, uint64_t bytes) {
  event(user, pc, 5, reinterpret_cast<uint64_t>(address), bytes);
  return 0;
}
SONDE_PATCH sonde_free(void *user, uint64_t pc, void *address) {
  event(user, pc, 6, reinterpret_cast<uint64_t>(address), 0);
  return 0;
}
SONDE_PATCH sonde_pipeline_commit(void *user, uint64_t pc) {
  event(user, pc, 7, 0, 0);
  return 0;
}
SONDE_PATCH sonde_pipeline_wait(void *user, uint64_t pc, uint32_t groups) {
  event(user, pc, 8, groups, 0);
  return 0;
}
SONDE_PATCH sonde_cluster_arrive(void *user, uint64_t pc) {
  event(user, pc, 9, 0, 0);
  return 0;
}
SONDE_PATCH sonde_cluster_wait(void *user, uint64_t pc) {
  event(user, pc, 10, 0, 0);
  return 0;
}
SONDE_PATCH sonde_call(void *user, uint64_t pc, uint64_t target, uint32_t) {
  event(user, pc, 15, target, 0);
  return 0;
}
SONDE_PATCH sonde_return(void *user, uint64_t pc) {
  event(user, pc, 16, 0, 0);
  return 0;
}
SONDE_PATCH sonde_shared_barrier(void *user, uint64_t pc, void *barrier, uint32_t kind, uint32_t) {
  event(user, pc, 17, reinterpret_cast<uint64_t>(barrier), kind);
  return 0;
}
