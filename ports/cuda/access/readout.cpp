#include "readout.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <sonde/ledger.h>
#include <sonde/spaces/access.h>
#include <sonde/spaces/access_packed.h>

#include "common/services.h"

namespace sonde::cuda::access {

namespace {

constexpr uint64_t kStagingBytes = uint64_t{8} << 20;
// Elements of a span in one record, which holds less than 512 KiB.
constexpr uint64_t kMostPairs = 16384;
constexpr uint64_t kMostEdges = 32768;  // even: begins and ends stay together

template <typename Record>
Record *new_record(RecordWriter &writer, uint32_t type, uint64_t time, uint32_t variable_bytes = 0) {
  static_assert(sizeof(Record) % 8 == 0);
  const auto bytes = static_cast<uint32_t>(sizeof(Record)) + ((variable_bytes + 7) & ~7u);
  auto *const record = static_cast<Record *>(writer.reserve(bytes));
  if (record == nullptr) return nullptr;
  std::memset(static_cast<void *>(record), 0, sizeof(Record));
  // What the caller leaves of the last word.
  if (variable_bytes % 8 != 0) std::memset(reinterpret_cast<uint8_t *>(record) + bytes - 8, 0, 8);
  record->header.size8 = static_cast<uint16_t>(bytes / 8);
  record->header.fixed8 = static_cast<uint16_t>(sizeof(Record) / 8);
  record->header.space = SONDE_SPACE_ACCESS;
  record->header.type = static_cast<uint16_t>(type);
  record->header.time = time;
  return record;
}

template <typename Record>
uint8_t *variable_part(Record *record) {
  return reinterpret_cast<uint8_t *>(record) + sizeof(Record);
}

uint64_t sum(const uint64_t *counters, uint32_t first, uint32_t count) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) total += counters[first + i];
  return total;
}

// Bytes of five counters for sizes 1, 2, 4, 8, 16.
uint64_t sized(const uint64_t *counters, uint32_t first) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < 5; ++i) total += counters[first + i] << i;
  return total;
}

// Where the program counter lies, which is the same in both kinds of entries.
constexpr uint64_t kCounterOffset = offsetof(sonde_warp_access_t, pc);
static_assert(kCounterOffset == offsetof(sonde_device_event_t, pc));

// Walks the entries and counts them, with program counters from the function's begin on; `whole` is where the last one
// ends.
uint64_t settle_entries(uint8_t *data, uint64_t bytes, const BlockHead &head, uint64_t &whole) {
  uint64_t count = 0;
  uint64_t at = 0;
  while (at + sizeof(sonde_warp_access_t) <= bytes) {
    uint16_t size8 = sizeof(sonde_device_event_t) / 8;
    if (head.kind != 1) std::memcpy(&size8, data + at, sizeof(size8));
    if (size8 < sizeof(sonde_warp_access_t) / 8 || at + size8 * uint64_t{8} > bytes) break;
    uint32_t counter = 0;
    std::memcpy(&counter, data + at + kCounterOffset, sizeof(counter));
    counter -= head.function_begin;
    std::memcpy(data + at + kCounterOffset, &counter, sizeof(counter));
    at += size8 * uint64_t{8};
    ++count;
  }
  whole = at;
  return count;
}

}  // namespace

void emit_block(const std::vector<Port *> &ports, uint8_t *block, uint64_t bytes, int64_t number, uint64_t watermark) {
  BlockHead head;
  if (bytes <= sizeof(head)) return;
  std::memcpy(&head, block, sizeof(head));
  uint8_t *const data = block + sizeof(head);
  uint64_t whole = 0;
  const uint64_t count = settle_entries(data, bytes - sizeof(head), head, whole);
  const uint32_t type = head.kind == 1 ? SONDE_ACCESS_EVENTS : SONDE_ACCESS_WARPS;
  for (Port *port : ports) {
    if (!port->wants_access(type)) continue;
    if (whole != bytes - sizeof(head)) port->lose(SONDE_LOSS_MALFORMED, 1, bytes - sizeof(head) - whole);
    if (count == 0) continue;
    const uint64_t stream = number < 0 ? port->stream() : port->record_stream(static_cast<size_t>(number));
    if (stream == 0) continue;
    RecordWriter writer(port->session(), stream, watermark);
    auto *const record = new_record<sonde_access_warps_t>(writer, type, sonde_stamp(), static_cast<uint32_t>(whole));
    if (record == nullptr) continue;
    record->launch = head.launch;
    record->count = count;
    record->data = {sizeof(sonde_access_warps_t), static_cast<uint32_t>(whole)};
    std::memcpy(variable_part(record), data, whole);
  }
}

void lose_block(const std::vector<Port *> &ports) {
  for (const Port *port : ports) {
    const bool wants = port->wants_access(SONDE_ACCESS_WARPS) || port->wants_access(SONDE_ACCESS_EVENTS);
    if (wants) port->lose(SONDE_LOSS_VENDOR, 1, kBlockBytes);
  }
}

bool Readout::copy(Space &space, void *to, const void *from, uint64_t bytes) {
  return api_.copy_to_host(to, from, bytes, space.work_handle()) == kSanitizerSuccess;
}

uint8_t *Readout::staging(uint64_t bytes) {
  if (pinned_.bytes < bytes) {
    void *out = nullptr;
    if (pinned_.memory != nullptr) (void)api_.free_pinned_memory(pinned_.memory);
    pinned_ = {};
    const uint64_t ask = std::max(bytes, kStagingBytes);
    if (api_.pinned_memory(&out, ask) != 0 || out == nullptr) return nullptr;
    pinned_ = {static_cast<uint8_t *>(out), ask};
  }
  return pinned_.memory;
}

void Readout::read(Watcher &watcher, LaunchEntry &entry, const std::vector<Port *> &ports, bool finished,
                   uint64_t watermark) {
  if (forget_.exchange(false)) pinned_ = {};
  accesses_ = outside_ = dropped_ = readable_ = 0;
  totals_.clear();
  instructions_.clear();
  Slot *const slot = entry.slot;
  std::vector<std::unique_ptr<RecordWriter>> writers;
  for (Port *port : ports) {
    writers.push_back(std::make_unique<RecordWriter>(port->session(), port->stream(), watermark));
  }
  bool good = true;
  const bool pushed = slot != nullptr && finished && api_.push_context(entry.space->context()) == 0;
  if (slot != nullptr && finished) {
    good = pushed;
    const uint64_t bytes = Slot::kCounterBytes +
                           (slot->state.features & kObjects ? ((slot->counter_bytes() + 255) & ~uint64_t{255}) : 0) +
                           slot->instruction_bytes();
    uint8_t *const image = good ? staging(bytes) : nullptr;
    good = image != nullptr && copy(*entry.space, image, slot->memory, bytes);
    if (good) {
      read_counters(entry, image);
      if ((slot->state.features & (kRecords | kEvents)) != 0) {
        std::vector<uint64_t> open(kMostProcessors);
        std::memcpy(open.data(), image + Slot::kOpenBlocks, open.size() * sizeof(uint64_t));
        std::vector<uint32_t> blocks;
        std::unordered_map<uint32_t, uint64_t> used;
        for (const uint64_t value : open) {
          const auto block = static_cast<uint32_t>(value >> 32);
          if (block == kNoBlock) continue;
          blocks.push_back(block);
          used[block] = std::min<uint64_t>(static_cast<uint32_t>(value), kBlockBytes);
        }
        for_each_run(blocks, kStagingBytes / kBlockBytes, [&](std::span<const uint32_t> run) {
          const uint64_t whole = (run.size() - 1) * uint64_t{kBlockBytes} + used[run.back()];
          const bool is_read = copy(*entry.space, image, entry.space->block_address(run.front()), whole);
          for (size_t i = 0; i < run.size(); ++i) {
            if (is_read) {
              emit_block(ports, image + i * kBlockBytes, used[run[i]], -1, watermark);
            } else {
              lose_block(ports);
            }
            entry.space->free_block(run[i]);
          }
        });
      }
    } else {
      trouble_ = "the results of a launch could not be read: the device gives an error, perhaps that of the program";
      entry.flags |= SONDE_LAUNCH_UNFINISHED;
    }
  } else if (slot != nullptr) {
    entry.flags |= SONDE_LAUNCH_UNFINISHED;
  }
  readable_ = slot != nullptr && finished && good ? sonde_stamp() : 0;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i]->stream() == 0) continue;
    if (ports[i]->wants_access(SONDE_ACCESS_LAUNCH)) emit_launch(entry, *writers[i]);
    if ((entry.flags & SONDE_LAUNCH_STATE_FULL) != 0) ports[i]->lose(SONDE_LOSS_MEMORY_CAP, 1, 0);
    if (slot == nullptr) continue;
    if (ports[i]->wants_access(SONDE_ACCESS_OBJECT)) emit_objects(entry, *writers[i]);
    if (ports[i]->wants_access(SONDE_ACCESS_INSTRUCTION)) emit_instructions(entry, *writers[i]);
    if (ports[i]->wants_access(SONDE_ACCESS_INVALID)) emit_invalid(watcher, entry, *writers[i]);
    if (dropped_ != 0) ports[i]->lose(SONDE_LOSS_VENDOR, dropped_, 0);
  }
  const auto wanting = [&](uint32_t type) {
    std::vector<RecordWriter *> out;
    for (size_t i = 0; i < ports.size(); ++i) {
      if (ports[i]->stream() != 0 && ports[i]->wants_access(type)) out.push_back(writers[i].get());
    }
    return out;
  };
  if (slot != nullptr && finished && good) {
    if ((slot->state.features & kPages) != 0) read_pages(entry, wanting(SONDE_ACCESS_PAGES));
    if ((slot->state.features & kIntervals) != 0) read_intervals(entry, wanting(SONDE_ACCESS_INTERVALS));
    good = entry.space->clear(*slot);
  }
  Context outer = nullptr;
  if (pushed) (void)api_.pop_context(&outer);
  writers.clear();
  // A slot that cannot be trusted any more is not used again.
  if (slot != nullptr && finished && good) entry.space->give_back(slot);
}

void Readout::read_counters(LaunchEntry &entry, const uint8_t *image) {
  Slot &slot = *entry.slot;
  State device;
  std::memcpy(&device, image, sizeof(device));
  slot.state.invalid_count = device.invalid_count;
  slot.state.dropped = device.dropped;
  slot.state.instructions_cut = device.instructions_cut;
  slot.state.next_chunk = device.next_chunk;
  dropped_ = device.dropped + device.instructions_cut;
  if (device.next_chunk > slot.chunk_count) entry.flags |= SONDE_LAUNCH_PAGES_CUT;
  const uint32_t copies = slot.state.copy_mask + 1;
  if ((slot.state.features & kObjects) != 0) {
    const uint64_t stride = slot.state.copy_stride;
    totals_.assign(stride, 0);
    const auto *const counters = reinterpret_cast<const uint64_t *>(image + Slot::kCounterBytes);
    for (uint32_t c = 0; c < copies; ++c) {
      for (uint64_t i = 0; i < stride; ++i) totals_[i] += counters[c * stride + i];
    }
    for (uint64_t position = 0; position * kCounters < stride; ++position) {
      accesses_ += sum(totals_.data() + position * kCounters, 0, kCopyCounters);
    }
    outside_ = sum(totals_.data(), 0, kCopyCounters);
  } else {
    outside_ = device.invalid_count;
  }
  if (slot.state.instructions != nullptr) {
    const auto offset = reinterpret_cast<const uint8_t *>(slot.state.instructions) - slot.memory;
    const auto *const tables = reinterpret_cast<const InstructionCounters *>(image + offset);
    std::unordered_map<uint64_t, size_t> by_key;
    for (uint64_t i = 0; i < uint64_t{copies} * kInstructionSlots; ++i) {
      if (tables[i].key == 0) continue;
      const auto [place, added] = by_key.try_emplace(tables[i].key, instructions_.size());
      if (added) {
        instructions_.push_back(tables[i]);
        continue;
      }
      InstructionCounters &total = instructions_[place->second];
      total.threads += tables[i].threads;
      total.warps += tables[i].warps;
      total.units += tables[i].units;
      total.least_units += tables[i].least_units;
    }
    std::sort(instructions_.begin(), instructions_.end(),
              [](const InstructionCounters &a, const InstructionCounters &b) { return (a.key << 1) < (b.key << 1); });
  }
}

void Readout::emit_launch(const LaunchEntry &entry, RecordWriter &writer) const {
  auto *const record = new_record<sonde_access_launch_t>(writer, SONDE_ACCESS_LAUNCH, entry.stamp);
  if (record == nullptr) return;
  record->launch = entry.ordinal;
  record->readable = readable_;
  record->correlation = entry.grid_id;
  record->stream = entry.stream;
  record->graph_node = entry.graph_node;
  record->module = entry.function.module;
  record->function_begin = entry.function.begin;
  record->accesses = accesses_;
  record->outside = outside_;
  record->dropped = dropped_;
  record->context = entry.context;
  record->device = entry.device;
  record->graph_exec = entry.graph_exec;
  record->name = entry.function.name;
  std::copy(std::begin(entry.grid), std::end(entry.grid), record->grid);
  std::copy(std::begin(entry.block), std::end(entry.block), record->block);
  record->kernel_period = entry.kernel_period;
  record->block_period = entry.slot != nullptr ? entry.slot->state.block_period : 1;
  record->ranges = entry.slot != nullptr ? static_cast<uint32_t>(entry.slot->table->ranges.size()) : 0;
  record->flags = entry.flags;
  record->counted_in = entry.counted_in;
}

void Readout::emit_objects(const LaunchEntry &entry, RecordWriter &writer) const {
  for (uint64_t position = 1; position * kCounters < totals_.size(); ++position) {
    const uint64_t *const counters = totals_.data() + position * kCounters;
    if (std::all_of(counters, counters + kCounters, [](uint64_t value) { return value == 0; })) continue;
    const LiveRange &range = entry.slot->table->ranges[position - 1];
    auto *const record =
        new_record<sonde_access_object_t>(writer, SONDE_ACCESS_OBJECT, entry.stamp, kCopyCounters * sizeof(uint64_t));
    if (record == nullptr) return;
    record->launch = entry.ordinal;
    record->address = range.begin;
    record->bytes = range.end - range.begin;
    record->ordinal = range.ordinal;
    record->reads = sum(counters, kReadCounters, 5);
    record->writes = sum(counters, kWriteCounters, 5);
    record->atomics = sum(counters, kAtomicCounters, 5);
    record->copies = sum(counters, kCopyCounters, 3) + counters[kBulkCounter];
    record->read_bytes = sized(counters, kReadCounters);
    record->write_bytes = sized(counters, kWriteCounters) + sized(counters, kAtomicCounters);
    record->copy_bytes = counters[kCopyCounters] * 4 + counters[kCopyCounters + 1] * 8 +
                         counters[kCopyCounters + 2] * 16 + counters[kBulkBytesCounter];
    record->sizes = {sizeof(sonde_access_object_t), kCopyCounters};
    record->object_kind = range.kind;
    record->name = range.name;
    std::memcpy(variable_part(record), counters, kCopyCounters * sizeof(uint64_t));
  }
}

void Readout::emit_instructions(const LaunchEntry &entry, RecordWriter &writer) const {
  for (const InstructionCounters &counters : instructions_) {
    auto *const record = new_record<sonde_access_instruction_t>(writer, SONDE_ACCESS_INSTRUCTION, entry.stamp);
    if (record == nullptr) return;
    const bool shared = counters.key >> 63 != 0;
    record->launch = entry.ordinal;
    record->pc = counters.key << 1 >> 9;
    record->threads = counters.threads;
    record->warps = counters.warps;
    record->size = 1u << (counters.key >> 1 & 7);
    record->bytes = counters.threads * record->size;
    (shared ? record->wavefronts : record->sectors) = counters.units;
    (shared ? record->least_wavefronts : record->least_sectors) = counters.least_units;
    record->memory = shared ? 2 : 1;
    record->access = static_cast<uint32_t>(counters.key >> 4 & 15);
  }
}

void Readout::emit_invalid(Watcher &watcher, const LaunchEntry &entry, RecordWriter &writer) const {
  const Slot &slot = *entry.slot;
  if (slot.invalid == nullptr || (slot.state.features & kCheck) == 0) return;
  struct Found {
    InvalidAccess first;
    uint32_t reason;
    uint64_t count;
    uint64_t ordinal;
  };
  std::vector<Found> found;
  const std::vector<LiveRange> &ranges = slot.table->ranges;
  for (uint32_t i = 0; i < kInvalidEntries; ++i) {
    const InvalidAccess &access = slot.invalid[i];
    if (__atomic_load_n(&access.filled, __ATOMIC_ACQUIRE) == 0) continue;
    const size_t at = first_after(ranges, access.address);
    const LiveRange *const around = at < ranges.size() && ranges[at].begin <= access.address ? &ranges[at] : nullptr;
    uint32_t reason = SONDE_INVALID_OUTSIDE;
    uint64_t ordinal = 0;
    if (around != nullptr) {
      reason = access.address + access.size > around->end ? SONDE_INVALID_STRADDLES : SONDE_INVALID_MISALIGNED;
      ordinal = around->ordinal;
    } else if ((ordinal = watcher.freed_ordinal(access.address)) != 0) {
      reason = SONDE_INVALID_FREED;
    }
    const auto same = std::find_if(found.begin(), found.end(), [&](const Found &other) {
      return other.first.pc == access.pc && other.reason == reason;
    });
    if (same != found.end()) {
      ++same->count;
    } else {
      found.push_back({access, reason, 1, ordinal});
    }
  }
  // Past the entries only the number is known; with one culprit it is his.
  if (found.size() == 1 && slot.state.invalid_count > found[0].count) found[0].count = slot.state.invalid_count;
  for (const Found &one : found) {
    auto *const record = new_record<sonde_access_invalid_t>(writer, SONDE_ACCESS_INVALID, entry.stamp);
    if (record == nullptr) return;
    const uint64_t address = one.first.address;
    record->launch = entry.ordinal;
    record->pc = one.first.pc;
    record->address = address;
    record->count = one.count;
    record->ordinal = one.ordinal;
    const size_t at = first_after(ranges, address);
    const LiveRange *nearest = nullptr;
    if (at < ranges.size() && ranges[at].begin <= address) {
      nearest = &ranges[at];
      record->distance =
          one.reason == SONDE_INVALID_STRADDLES ? static_cast<int64_t>(address + one.first.size - nearest->end) : 0;
    } else {
      nearest = nearest_range(ranges, address, &record->distance);
    }
    if (nearest != nullptr) {
      record->nearest = nearest->begin;
      record->nearest_bytes = nearest->end - nearest->begin;
      record->object = nearest->name;
      if (record->ordinal == 0) record->ordinal = nearest->ordinal;
    }
    std::copy(std::begin(one.first.block), std::end(one.first.block), record->block);
    std::copy(std::begin(one.first.thread), std::end(one.first.thread), record->thread);
    record->size = one.first.size;
    record->access = one.first.access & 15;
    record->reason = one.reason;
    const uint64_t offset = one.first.pc - entry.function.begin;
    if (offset >= entry.function.bytes) continue;  // of a function that it called
    record->function = entry.function.name;
    if (entry.function.lines == nullptr) continue;
    const auto frames = entry.function.lines->find(entry.function.plain_name, offset);
    if (frames.empty()) continue;
    (void)services().capture->intern(frames[0].file.c_str(), frames[0].file.size(), &record->file);
    record->line = frames[0].line;
  }
}

void Readout::read_pages(LaunchEntry &entry, const std::vector<RecordWriter *> &writers) {
  if (writers.empty()) return;
  Slot &slot = *entry.slot;
  const Table &table = *slot.table;
  uint8_t *const piece = staging(kStagingBytes);
  if (piece == nullptr) return;
  std::vector<uint64_t> pages;
  std::vector<uint64_t> counts;
  size_t range = 0;
  const auto first_counter = [&](size_t index) {
    return static_cast<uint64_t>(table.page_offsets[index + 1]) + (table.ranges[index].begin >> table.page_shift);
  };
  const auto emit = [&] {
    for (uint64_t from = 0; from < pages.size(); from += kMostPairs) {
      const uint64_t count = std::min<uint64_t>(kMostPairs, pages.size() - from);
      for (auto &writer : writers) {
        auto *const record = new_record<sonde_access_pages_t>(*writer, SONDE_ACCESS_PAGES, entry.stamp,
                                                              static_cast<uint32_t>(count * 2 * sizeof(uint64_t)));
        if (record == nullptr) continue;
        record->launch = entry.ordinal;
        record->address = table.ranges[range].begin;
        record->bytes = table.ranges[range].end - table.ranges[range].begin;
        record->ordinal = table.ranges[range].ordinal;
        record->page_bytes = uint64_t{1} << table.page_shift;
        record->pages = {sizeof(sonde_access_pages_t), static_cast<uint32_t>(count)};
        record->counts = {static_cast<uint32_t>(sizeof(sonde_access_pages_t) + count * sizeof(uint64_t)),
                          static_cast<uint32_t>(count)};
        std::memcpy(variable_part(record), pages.data() + from, count * sizeof(uint64_t));
        std::memcpy(variable_part(record) + count * sizeof(uint64_t), counts.data() + from, count * sizeof(uint64_t));
      }
    }
    pages.clear();
    counts.clear();
  };
  constexpr uint64_t kPiece = kStagingBytes / sizeof(uint64_t);
  for (uint64_t from = 0; from < table.page_counters; from += kPiece) {
    const uint64_t count = std::min(kPiece, table.page_counters - from);
    if (!copy(*entry.space, piece, slot.pages + from, count * sizeof(uint64_t))) {
      trouble_ = "the page counts of a launch could not be read";
      return;
    }
    const auto *const counters = reinterpret_cast<const uint64_t *>(piece);
    for (uint64_t i = 0; i < count; ++i) {
      while (range + 1 < table.ranges.size() && from + i >= first_counter(range + 1)) {
        emit();
        ++range;
      }
      if (counters[i] == 0) continue;
      pages.push_back((table.ranges[range].begin >> table.page_shift) + (from + i - first_counter(range)));
      counts.push_back(counters[i]);
    }
  }
  emit();
}

Readout::Kernels *Readout::kernels(Space &space) {
  Kernels &kernels = kernels_[&space];
  if (kernels.write != nullptr) return &kernels;
  Module module = nullptr;
  if (api_.module_load(&module, space.images().edges.data()) != 0 ||
      api_.module_function(&kernels.count, module, "sonde_count_edges") != 0 ||
      api_.module_function(&kernels.sum, module, "sonde_sum_edges") != 0 ||
      api_.module_function(&kernels.write, module, "sonde_write_edges") != 0) {
    kernels.write = nullptr;
    trouble_ = "the port's own kernels could not be loaded";
    return nullptr;
  }
  return &kernels;
}

void Readout::read_intervals(LaunchEntry &entry, const std::vector<RecordWriter *> &writers) {
  if (writers.empty()) return;
  Space &space = *entry.space;
  Slot &slot = *entry.slot;
  const Table &table = *slot.table;
  uint64_t entries = table.directory_entries;
  Kernels *const code = entries != 0 ? kernels(space) : nullptr;
  if (code == nullptr) return;
  // Scratch: counts, touched, first, then places, starts, edges.
  const uint64_t counts_bytes = (2 * entries * sizeof(uint32_t) + 255) & ~uint64_t{255};
  const uint64_t first_bytes = (entries + 255) & ~uint64_t{255};
  const uint64_t places_bytes = ((2 * entries + 1) * sizeof(uint64_t) + 255) & ~uint64_t{255};
  const uint64_t starts_bytes = (entries * sizeof(int64_t) + 255) & ~uint64_t{255};
  const uint64_t bytes = 2 * counts_bytes + first_bytes + places_bytes + starts_bytes + kStagingBytes;
  if (code->scratch_bytes < bytes) {
    if (code->scratch != nullptr) (void)api_.free(space.context(), code->scratch);
    void *out = nullptr;
    code->scratch_bytes = 0;
    if (api_.allocate(space.context(), &out, bytes) != kSanitizerSuccess) {
      code->scratch = nullptr;
      trouble_ = "there is no device memory to turn a launch's touched bytes into intervals";
      return;
    }
    code->scratch = static_cast<uint8_t *>(out);
    code->scratch_bytes = bytes;
  }
  uint8_t *counts = code->scratch;
  uint8_t *touched = counts + counts_bytes;
  uint8_t *first = touched + counts_bytes;
  uint8_t *places = first + first_bytes;
  uint8_t *starts = places + places_bytes;
  uint8_t *edges = starts + starts_bytes;
  std::vector<uint8_t> first_entries(entries, 0);
  std::vector<int64_t> start_of(entries);
  std::vector<uint64_t> begin_of(table.ranges.size() + 1, entries);  // first entry of each range
  uint64_t at = 0;
  for (size_t i = 0; i < table.ranges.size(); ++i) {
    const LiveRange &range = table.ranges[i];
    begin_of[i] = at;
    first_entries[at] = 1;
    for (uint64_t chunk = range.begin >> kChunkShift; chunk <= (range.end - 1) >> kChunkShift; ++chunk) {
      start_of[at++] = static_cast<int64_t>((chunk << kChunkShift) - range.begin);
    }
  }
  const Stream stream = space.work_stream();
  bool good =
      api_.copy_to_device(first, first_entries.data(), entries, space.work_handle()) == kSanitizerSuccess &&
      api_.copy_to_device(starts, start_of.data(), entries * sizeof(int64_t), space.work_handle()) == kSanitizerSuccess;
  const auto grid = static_cast<uint32_t>(entries);
  void *count_arguments[] = {&slot.directory, &first, &slot.chunks, &entries, &counts, &touched};
  good = good && api_.launch(code->count, grid, 2, 1, 256, 1, 1, 0, stream, count_arguments, nullptr) == 0;
  uint64_t both = 2 * entries;
  void *sum_arguments[] = {&counts, &places, &both};
  good = good && api_.launch(code->sum, 1, 1, 1, 256, 1, 1, 0, stream, sum_arguments, nullptr) == 0;
  std::vector<uint64_t> place_of(both + 1);
  std::vector<uint32_t> touched_of(both);
  good = good && copy(space, place_of.data(), places, place_of.size() * sizeof(uint64_t)) &&
         copy(space, touched_of.data(), touched, touched_of.size() * sizeof(uint32_t));
  uint8_t *const piece = staging(kStagingBytes);
  if (!good || piece == nullptr) {
    trouble_ = "the intervals of a launch could not be read";
    return;
  }
  constexpr uint64_t kPiece = kStagingBytes / sizeof(int64_t);
  uint64_t piece_begin = 1;  // edges [piece_begin, piece_end) lie in the piece; none yet
  uint64_t piece_end = 0;
  std::vector<sonde_access_intervals_t *> records;
  for (uint64_t kind = 0; kind < 2; ++kind) {
    for (size_t i = 0; i < table.ranges.size(); ++i) {
      const uint64_t last = i + 1 < table.ranges.size() ? begin_of[i + 1] : entries;
      const uint64_t from = place_of[kind * entries + begin_of[i]];
      const uint64_t to = place_of[kind * entries + last];
      uint64_t bytes_touched = 0;
      for (uint64_t e = begin_of[i]; e < last; ++e) bytes_touched += touched_of[kind * entries + e];
      if (bytes_touched == 0) continue;
      const LiveRange &range = table.ranges[i];
      // A run that reaches the end of the last 64 KiB has no edge there.
      const bool open = (to - from) % 2 != 0;
      const uint64_t total = to - from + (open ? 1 : 0);
      for (uint64_t done = 0; done < total;) {
        const uint64_t want = std::min(kMostEdges, total - done);
        // Straight from the piece into the records: there may be hundreds of megabytes of edges.
        records.clear();
        for (auto &writer : writers) {
          auto *const record = new_record<sonde_access_intervals_t>(*writer, SONDE_ACCESS_INTERVALS, entry.stamp,
                                                                    static_cast<uint32_t>(want * sizeof(uint64_t)));
          if (record == nullptr) continue;
          record->launch = entry.ordinal;
          record->address = range.begin;
          record->bytes = range.end - range.begin;
          record->ordinal = range.ordinal;
          record->touched = bytes_touched;
          record->edges = {sizeof(sonde_access_intervals_t), 0};
          record->kind = static_cast<uint32_t>(kind + 1);
          record->granule = 1;
          records.push_back(record);
        }
        uint64_t filled = 0;
        const auto fill = [&](const uint64_t *values, uint64_t count) {
          for (sonde_access_intervals_t *const record : records) {
            std::memcpy(variable_part(record) + filled * sizeof(uint64_t), values, count * sizeof(uint64_t));
            record->edges.count += static_cast<uint32_t>(count);
          }
          filled += count;
        };
        while (filled < want && from + done + filled < to) {
          const uint64_t index = from + done + filled;
          if (index < piece_begin || index >= piece_end) {
            piece_begin = index;
            piece_end = std::min(index + kPiece, place_of[both]);
            void *write_arguments[] = {&slot.directory, &first,       &slot.chunks, &entries, &places,
                                       &starts,         &piece_begin, &piece_end,   &edges};
            if (api_.launch(code->write, grid, 2, 1, 256, 1, 1, 0, stream, write_arguments, nullptr) != 0 ||
                !copy(space, piece, edges, (piece_end - piece_begin) * sizeof(int64_t))) {
              trouble_ = "the intervals of a launch could not be read";
              for (sonde_access_intervals_t *const record : records) {
                std::memset(variable_part(record) + filled * sizeof(uint64_t), 0, (want - filled) * sizeof(uint64_t));
              }
              return;
            }
          }
          fill(reinterpret_cast<const uint64_t *>(piece) + (index - piece_begin),
               std::min(std::min(piece_end, to) - index, want - filled));
        }
        const uint64_t range_bytes = range.end - range.begin;
        if (filled < want) fill(&range_bytes, 1);
        done += want;
      }
    }
  }
}

}  // namespace sonde::cuda::access
