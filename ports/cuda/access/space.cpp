#include "space.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <sonde/spaces/access.h>

namespace sonde::cuda::access {

namespace {

constexpr int32_t kCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int32_t kCapabilityMinor = 76;
// Copies of the counters, so that multiprocessors do not wait for each other's atomic operations: up to 32, as long as
// they stay small enough to be cleared and read in some 10 microseconds.
constexpr uint32_t kMostCopies = 32;
constexpr uint64_t kCopiesBytes = uint64_t{1} << 20;
constexpr uint64_t kMostPageCounters = uint64_t{1} << 26;

uint64_t padded(uint64_t bytes) { return (bytes + 255) & ~uint64_t{255}; }

}  // namespace

Space::Space(const SanitizerApi &api, Context context, int32_t device, const SpaceOptions &options)
    : api_(api), context_(context), device_(device), options_(options) {}

uint8_t *Space::allocate(uint64_t bytes) {
  void *out = nullptr;
  return api_.allocate(context_, &out, bytes) == kSanitizerSuccess ? static_cast<uint8_t *>(out) : nullptr;
}

void *Space::allocate_host(uint64_t bytes) {
  void *out = nullptr;
  if (api_.allocate_host(context_, &out, bytes) != kSanitizerSuccess || out == nullptr) return nullptr;
  std::memset(out, 0, bytes);
  return out;
}

bool Space::prepare(const std::string &folder, std::string &reason) {
  int32_t major = 0;
  int32_t minor = 0;
  (void)api_.device_attribute(&major, kCapabilityMajor, device_);
  (void)api_.device_attribute(&minor, kCapabilityMinor, device_);
  if (!find_patch_images(folder, major, minor, images_, reason)) return false;
  SanitizerResult result = api_.add_patches(images_.patches.data(), context_);
  if (result != kSanitizerSuccess) {
    reason = api_.explain("the patches could not be loaded", result);
    return false;
  }
  // The context is being made, so it need not be current yet.
  Context outer = nullptr;
  int32_t status = api_.push_context(context_);
  for (Stream *stream : {&upload_, &work_}) {
    if (status == 0) status = api_.stream_create(stream, kNonBlocking, kHighestPriority);
  }
  if (status != 0) {
    reason = "the driver makes no stream (error " + std::to_string(status) + ")";
    return false;
  }
  (void)api_.pop_context(&outer);
  result = api_.stream_handle(context_, upload_, &upload_handle_);
  if (result == kSanitizerSuccess) result = api_.stream_handle(context_, work_, &work_handle_);
  if (result != kSanitizerSuccess) {
    reason = api_.explain("the streams of the port have no handle", result);
    return false;
  }
  hints_ = reinterpret_cast<uint32_t *>(allocate(uint64_t{kHints} * sizeof(uint32_t)));
  if (hints_ == nullptr) {
    reason = "there is no device memory for the port";
    return false;
  }
  api_.set(hints_, 0, uint64_t{kHints} * sizeof(uint32_t), upload_handle_);
  api_.synchronize(upload_handle_);
  ready_ = true;
  return true;
}

// ---- tables ----------------------------------------------------------------------------------------------------------

std::shared_ptr<const Table> Space::table(const LiveRanges &live, uint32_t features) {
  // Where accesses are checked, what lies between the tensors of a pool is not in use.
  const bool without_remainders = (features & kCheck) != 0;
  std::unique_lock lock(mutex_);
  if (last_table_ != nullptr && last_table_->version == live.version() &&
      last_table_->without_remainders == without_remainders) {
    return last_table_;
  }
  auto made = std::make_unique<Table>();
  Table &table = *made;
  table.version = live.version();
  table.without_remainders = without_remainders;
  if (!without_remainders) {
    table.ranges = live.ranges();
  } else {
    for (const LiveRange &range : live.ranges()) {
      if (range.kind != SONDE_OBJECT_IS_REMAINDER) table.ranges.push_back(range);
    }
  }
  const size_t count = table.ranges.size();
  table.entries = static_cast<uint32_t>(std::bit_ceil(count + 2));
  // Pages: the size that was asked for, or the next that needs no more than a bounded number of counters.
  table.page_shift = static_cast<uint32_t>(std::countr_zero(options_.page_bytes));
  for (;; ++table.page_shift) {
    table.page_counters = 0;
    for (const LiveRange &range : table.ranges) {
      table.page_counters += ((range.end - 1) >> table.page_shift) - (range.begin >> table.page_shift) + 1;
    }
    if (table.page_counters <= kMostPageCounters) break;
  }
  table.page_offsets.assign(count + 1, 0);
  table.directory_offsets.assign(count + 1, 0);
  uint64_t pages = 0;
  for (size_t i = 0; i < count; ++i) {
    const LiveRange &range = table.ranges[i];
    table.page_offsets[i + 1] = static_cast<int64_t>(pages - (range.begin >> table.page_shift));
    pages += ((range.end - 1) >> table.page_shift) - (range.begin >> table.page_shift) + 1;
    table.directory_offsets[i + 1] = static_cast<int64_t>(table.directory_entries - (range.begin >> kChunkShift));
    table.directory_entries += ((range.end - 1) >> kChunkShift) - (range.begin >> kChunkShift) + 1;
  }
  std::vector<uint8_t> image(uint64_t{table.entries} * sizeof(DeviceRange) + 2 * (count + 1) * sizeof(int64_t));
  auto *const ranges = reinterpret_cast<DeviceRange *>(image.data());
  std::fill(ranges, ranges + table.entries, DeviceRange{UINT64_MAX, UINT64_MAX});
  ranges[0].end = 0;
  for (size_t i = 0; i < count; ++i) ranges[i + 1] = {table.ranges[i].begin, table.ranges[i].end};
  uint8_t *const offsets = image.data() + uint64_t{table.entries} * sizeof(DeviceRange);
  std::memcpy(offsets, table.page_offsets.data(), (count + 1) * sizeof(int64_t));
  std::memcpy(offsets + (count + 1) * sizeof(int64_t), table.directory_offsets.data(), (count + 1) * sizeof(int64_t));

  const auto fits = std::find_if(free_memory_.begin(), free_memory_.end(),
                                 [&](const FreeMemory &free) { return free.bytes >= image.size(); });
  if (fits != free_memory_.end()) {
    table.memory = fits->memory;
    table.bytes = fits->bytes;
    free_memory_.erase(fits);
  } else {
    table.bytes = std::bit_ceil(std::max<uint64_t>(image.size(), 4096));
    table.memory = allocate(table.bytes);
    if (table.memory == nullptr) return nullptr;
  }
  // On the port's own stream and waited for, so that launches of all streams may use it.
  if (api_.copy_to_device(table.memory, image.data(), image.size(), upload_handle_) != kSanitizerSuccess ||
      api_.synchronize(upload_handle_) != kSanitizerSuccess) {
    free_memory_.push_back({table.memory, table.bytes});
    return nullptr;
  }
  // Launches keep the table alive; its memory serves again when the last of them has been read.
  std::shared_ptr<const Table> shared(made.release(), [this](const Table *gone) {
    {
      const std::lock_guard hold(mutex_);
      free_memory_.push_back({gone->memory, gone->bytes});
    }
    delete gone;
  });
  std::swap(last_table_, shared);
  std::shared_ptr<const Table> current = last_table_;
  lock.unlock();  // before the old table goes, whose end takes the mutex
  return current;
}

// ---- slots -----------------------------------------------------------------------------------------------------------

// Makes the slot's memory and State large enough for a launch.
bool Space::fit(Slot &slot, uint32_t features, const Table &table) {
  State &state = slot.state;
  state = {};
  state.ranges = table.device_ranges();
  state.hints = hints_;
  state.step = table.entries / 2;
  state.copy_stride = static_cast<uint32_t>((table.ranges.size() + 1) * kCounters);
  state.features = features;
  state.block_period = 1;
  const uint64_t one_copy = uint64_t{state.copy_stride} * sizeof(uint64_t);
  const bool counts = (features & (kObjects | kInstructions)) != 0;
  const uint64_t copies = !counts ? 1 : std::bit_floor(std::clamp<uint64_t>(kCopiesBytes / one_copy, 1, kMostCopies));
  state.copy_mask = static_cast<uint32_t>(copies - 1);
  const uint64_t counter_bytes = (features & kObjects) != 0 ? padded(copies * one_copy) : 0;
  const uint64_t instruction_bytes =
      (features & kInstructions) != 0 ? copies * kInstructionSlots * sizeof(InstructionCounters) : 0;
  const uint64_t bytes = Slot::kCounterBytes + counter_bytes + instruction_bytes;
  bool fresh = false;
  if (slot.bytes < bytes) {
    if (slot.memory != nullptr) api_.free(context_, slot.memory);
    slot_bytes_ -= slot.bytes;
    slot.bytes = std::bit_ceil(bytes);
    slot.memory = allocate(slot.bytes);
    if (slot.memory == nullptr) {
      slot.bytes = 0;
      return false;
    }
    slot_bytes_ += slot.bytes;
    fresh = true;
  }
  if ((features & kPages) != 0 && slot.page_capacity < table.page_counters) {
    if (slot.pages != nullptr) api_.free(context_, slot.pages);
    slot.page_capacity = std::bit_ceil(table.page_counters);
    slot.pages = reinterpret_cast<uint64_t *>(allocate(slot.page_capacity * sizeof(uint64_t)));
    if (slot.pages == nullptr) {
      slot.page_capacity = 0;
      return false;
    }
    api_.set(slot.pages, 0, slot.page_capacity * sizeof(uint64_t), upload_handle_);
    fresh = true;
  }
  if ((features & kIntervals) != 0) {
    if (slot.chunks == nullptr) {
      if (interval_slots_ >= options_.interval_states) return false;
      slot.chunk_count = static_cast<uint32_t>(std::max<uint64_t>(options_.interval_bytes / kChunkBytes, 1));
      slot.chunks = allocate(uint64_t{slot.chunk_count} * kChunkBytes);
      if (slot.chunks == nullptr) return false;
      ++interval_slots_;
      api_.set(slot.chunks, 0, uint64_t{slot.chunk_count} * kChunkBytes, upload_handle_);
      fresh = true;
    }
    if (slot.directory_capacity < table.directory_entries) {
      if (slot.directory != nullptr) api_.free(context_, slot.directory);
      slot.directory_capacity = std::bit_ceil(table.directory_entries);
      slot.directory = reinterpret_cast<uint32_t *>(allocate(slot.directory_capacity * sizeof(uint32_t)));
      if (slot.directory == nullptr) {
        slot.directory_capacity = 0;
        return false;
      }
      api_.set(slot.directory, 0, slot.directory_capacity * sizeof(uint32_t), upload_handle_);
      fresh = true;
    }
  }
  if (slot.flag == nullptr) {
    slot.flag = static_cast<uint64_t *>(allocate_host(sizeof(uint64_t)));
    if (slot.flag == nullptr) return false;
  }
  if ((features & kCheck) != 0 && slot.invalid == nullptr) {
    slot.invalid = static_cast<InvalidAccess *>(allocate_host(sizeof(InvalidAccess) * kInvalidEntries));
    if (slot.invalid == nullptr) return false;
  }
  if (fresh) {
    api_.set(slot.memory, 0, slot.bytes, upload_handle_);
    api_.synchronize(upload_handle_);
  }
  state.open_blocks = reinterpret_cast<uint64_t *>(slot.memory + Slot::kOpenBlocks);
  state.counters = reinterpret_cast<uint64_t *>(slot.memory + Slot::kCounterBytes);
  if (instruction_bytes != 0) {
    state.instructions = reinterpret_cast<InstructionCounters *>(slot.memory + Slot::kCounterBytes + counter_bytes);
  }
  if ((features & kPages) != 0) {
    state.pages = slot.pages;
    state.page_offsets = table.device_page_offsets();
    state.page_shift = table.page_shift;
  }
  if ((features & kIntervals) != 0) {
    state.directory = slot.directory;
    state.directory_offsets = table.device_directory_offsets();
    state.chunks = slot.chunks;
    state.chunk_count = slot.chunk_count;
  }
  state.invalid = slot.invalid;
  if ((features & (kRecords | kEvents)) != 0) {
    state.exchange = exchange();
    if (state.exchange == nullptr) return false;
  }
  return true;
}

bool Space::promise(uint32_t features) {
  const std::lock_guard lock(mutex_);
  const bool maps = (features & kIntervals) != 0;
  auto room = static_cast<uint64_t>(std::count_if(free_slots_.begin(), free_slots_.end(),
                                                  [&](const Slot *slot) { return (slot->chunks != nullptr) == maps; }));
  if (maps) {
    room += options_.interval_states - std::min(interval_slots_, options_.interval_states);
  } else if (slot_bytes_ < options_.state_bytes) {
    // The last promises may go past the limit, by a slot for each thread.
    room = UINT64_MAX;
  }
  if (room <= promised_[maps ? 1 : 0]) return false;
  ++promised_[maps ? 1 : 0];
  return true;
}

void Space::withdraw(uint32_t features) {
  const std::lock_guard lock(mutex_);
  uint64_t &promised = promised_[(features & kIntervals) != 0 ? 1 : 0];
  if (promised != 0) --promised;
}

Slot *Space::take(uint32_t features, const std::shared_ptr<const Table> &table, bool promised) {
  const std::lock_guard lock(mutex_);
  // One that has the large parts already, where they are needed, else one that has not.
  const bool maps = (features & kIntervals) != 0;
  if (promised && promised_[maps ? 1 : 0] != 0) --promised_[maps ? 1 : 0];
  auto found = std::find_if(free_slots_.begin(), free_slots_.end(),
                            [&](const Slot *slot) { return (slot->chunks != nullptr) == maps; });
  const bool may_make =
      maps ? interval_slots_ < options_.interval_states : promised || slot_bytes_ < options_.state_bytes;
  if (found == free_slots_.end() && may_make) {
    slots_.push_back(std::make_unique<Slot>());
    free_slots_.push_back(slots_.back().get());
    found = free_slots_.end() - 1;
  }
  if (found == free_slots_.end()) return nullptr;
  Slot *const slot = *found;
  if (!fit(*slot, features, *table)) return nullptr;
  free_slots_.erase(found);
  slot->table = table;
  return slot;
}

void Space::give_back(Slot *slot) {
  slot->table.reset();
  const std::lock_guard lock(mutex_);
  free_slots_.push_back(slot);
}

bool Space::upload(Slot &slot, StreamHandle stream) {
  static_assert(sizeof(State) <= Slot::kOpenBlocks);
  if ((slot.state.features & (kRecords | kEvents)) == 0) {
    return api_.copy_to_device(slot.memory, &slot.state, sizeof(State), stream) == kSanitizerSuccess;
  }
  alignas(8) uint8_t image[Slot::kCounterBytes] = {};
  std::memcpy(image, &slot.state, sizeof(State));
  auto *const open = reinterpret_cast<uint64_t *>(image + Slot::kOpenBlocks);
  std::fill(open, open + kMostProcessors, uint64_t{kNoBlock} << 32 | kBlockBytes);
  return api_.copy_to_device(slot.memory, image, sizeof(image), stream) == kSanitizerSuccess;
}

bool Space::mark_end(Slot &slot, StreamHandle stream) {
  const uint64_t value = slot.sequence;
  return api_.copy_to_device(slot.flag, &value, sizeof(value), stream) == kSanitizerSuccess;
}

bool Space::clear(Slot &slot) {
  const uint32_t features = slot.state.features;
  bool good = true;
  const auto zero = [&](void *from, uint64_t bytes) {
    if (bytes != 0) good &= api_.set(from, 0, bytes, work_handle_) == kSanitizerSuccess;
  };
  if ((features & kObjects) != 0) zero(slot.state.counters, slot.counter_bytes());
  zero(slot.state.instructions, slot.instruction_bytes());
  if ((features & kPages) != 0) zero(slot.pages, slot.table->page_counters * sizeof(uint64_t));
  if ((features & kIntervals) != 0) {
    zero(slot.directory, slot.table->directory_entries * sizeof(uint32_t));
    zero(slot.chunks, uint64_t{std::min(slot.state.next_chunk, slot.chunk_count)} * kChunkBytes);
  }
  if (slot.invalid != nullptr && slot.state.invalid_count != 0) {
    std::memset(slot.invalid, 0, sizeof(InvalidAccess) * kInvalidEntries);
  }
  return good && api_.synchronize(work_handle_) == kSanitizerSuccess;
}

// ---- blocks of records -----------------------------------------------------------------------------------------------

const Exchange *Space::exchange() {
  if (device_exchange_ != nullptr) return device_exchange_;
  const auto blocks = static_cast<uint32_t>(std::bit_floor(std::max<uint64_t>(options_.record_bytes / kBlockBytes, 2)));
  exchange_.blocks = blocks;
  exchange_.memory = allocate(uint64_t{blocks} * kBlockBytes);
  uint8_t *const words = allocate(uint64_t{blocks} * sizeof(uint32_t) + 2 * 256);
  host_words_ = static_cast<HostWords *>(allocate_host(sizeof(HostWords)));
  free_blocks_ = static_cast<uint32_t *>(allocate_host(uint64_t{blocks} * sizeof(uint32_t)));
  full_blocks_ = static_cast<uint64_t *>(allocate_host(uint64_t{blocks} * sizeof(uint64_t)));
  uint8_t *const device = allocate(sizeof(Exchange));
  if (exchange_.memory == nullptr || words == nullptr || host_words_ == nullptr || free_blocks_ == nullptr ||
      full_blocks_ == nullptr || device == nullptr) {
    return nullptr;
  }
  for (uint32_t i = 0; i < blocks; ++i) free_blocks_[i] = i;
  host_words_->free_tail = blocks;
  host_words_->stall = options_.stall ? 1 : 0;
  exchange_.free_head = reinterpret_cast<uint64_t *>(words);
  exchange_.full_tail = reinterpret_cast<uint64_t *>(words + 256);
  exchange_.committed = reinterpret_cast<uint32_t *>(words + 512);
  exchange_.free_blocks = free_blocks_;
  exchange_.full_blocks = full_blocks_;
  exchange_.host = host_words_;
  api_.set(words, 0, uint64_t{blocks} * sizeof(uint32_t) + 512, upload_handle_);
  api_.copy_to_device(device, &exchange_, sizeof(exchange_), upload_handle_);
  if (api_.synchronize(upload_handle_) != kSanitizerSuccess) return nullptr;
  device_exchange_ = reinterpret_cast<Exchange *>(device);
  return device_exchange_;
}

bool Space::has_full() const {
  if (full_blocks_ == nullptr) return false;
  const uint64_t entry = __atomic_load_n(full_blocks_ + (next_full_ & (exchange_.blocks - 1)), __ATOMIC_ACQUIRE);
  return entry >> 32 == ((next_full_ + 1) & UINT32_MAX);
}

bool Space::next_full(uint32_t &block) {
  if (!has_full()) return false;
  block =
      static_cast<uint32_t>(__atomic_load_n(full_blocks_ + (next_full_ & (exchange_.blocks - 1)), __ATOMIC_RELAXED));
  ++next_full_;
  return true;
}

void Space::free_block(uint32_t block) {
  const std::lock_guard lock(free_block_mutex_);
  const uint64_t tail = host_words_->free_tail;
  __atomic_store_n(free_blocks_ + (tail & (exchange_.blocks - 1)), block, __ATOMIC_RELAXED);
  __atomic_store_n(&host_words_->free_tail, tail + 1, __ATOMIC_RELEASE);
}

void Space::stall(bool wait) {
  if (host_words_ != nullptr) __atomic_store_n(&host_words_->stall, wait ? 1u : 0u, __ATOMIC_RELEASE);
}

void Space::configure(const SpaceOptions &options) {
  std::shared_ptr<const Table> old;  // goes when the mutex is free again
  const std::lock_guard lock(mutex_);
  if (options.page_bytes != options_.page_bytes) old = std::move(last_table_);
  options_ = options;
  stall(options.stall);
}

}  // namespace sonde::cuda::access
