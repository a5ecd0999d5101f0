#include "memory_history.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory_resource>
#include <string>
#include <unordered_map>
#include <utility>

#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/memory.h>

#include "id_map.h"
#include "lifetime_map.h"
#include "memory_touches.h"
#include "reorder.h"

namespace sonde::toolkit {
namespace {

constexpr uint32_t kFlawed = SONDE_LAUNCH_INCOMPLETE | SONDE_LAUNCH_UNPATCHED | SONDE_LAUNCH_RANGES_CUT |
                             SONDE_LAUNCH_PAGES_CUT | SONDE_LAUNCH_UNFINISHED | SONDE_LAUNCH_SHARED |
                             SONDE_LAUNCH_STATE_FULL | SONDE_LAUNCH_DEVICE_GRAPH;

// Which records told of an object. Two writers may tell of the same one.
enum Family : uint8_t { kAllocate = 1, kMap = 2, kSubAllocate = 4, kFrameworkTensor = 8 };

// Rows of a copy beyond these count as one range from the first to the last.
constexpr uint64_t kMostRows = 4096;

// Edges and pages of one launch whose memory is kept for the next.
constexpr size_t kMostWordsKept = 65536;

struct Tracked {
  MemoryObject object;
  uint8_t families = 0;
  std::shared_ptr<Tracked> parent;  // the allocation that a tensor was cut from
};
using Held = std::shared_ptr<Tracked>;
using Lives = LifetimeMap<Held>;

// Begin or end of a life.
struct Change {
  MemoryObject object;
  Family family = kAllocate;
  bool is_end = false;
  bool is_range = false;  // ends all that lies within
};

struct Operation {
  MemoryOperation operation;
  uint64_t dropped = 0;
  uint64_t source_address = 0;  // of the host's operations
  uint64_t target_address = 0;
  uint64_t width = 0, rows = 0, source_pitch = 0, target_pitch = 0;
  std::vector<TouchPiece> pieces;
  std::vector<uint64_t> words;
};

// Things by number, reused.
template <typename Thing>
class Slab {
 public:
  uint32_t take() {
    if (free_.empty()) {
      things_.emplace_back();
      return static_cast<uint32_t>(things_.size() - 1);
    }
    const uint32_t at = free_.back();
    free_.pop_back();
    return at;
  }
  void give(uint32_t at) { free_.push_back(at); }
  Thing &operator[](uint32_t at) { return things_[at]; }

 private:
  std::deque<Thing> things_;
  std::vector<uint32_t> free_;
};

struct Event {
  uint32_t slot = 0;
  bool is_operation = false;
};

struct Told {
  uint64_t launch = 0;
  MemoryOperation operation;
};

// Live objects by the address of their begin, which is what most records name.
class BeginIndex {
 public:
  void add(Tracked *tracked) {
    const uint64_t address = tracked->object.address;
    if (address == 0) return;
    uint32_t place = 0;
    if (free_.empty()) {
      place = static_cast<uint32_t>(tracked_.size());
      tracked_.push_back(tracked);
    } else {
      place = free_.back();
      free_.pop_back();
      tracked_[place] = tracked;
    }
    places_.set(address, place);
  }
  void erase(uint64_t address) {
    const uint32_t place = address == 0 ? IdMap::kNone : places_.find(address);
    if (place == IdMap::kNone) return;
    places_.erase(address);
    free_.push_back(place);
  }
  Tracked *find(uint64_t address) const {
    const uint32_t place = address == 0 ? IdMap::kNone : places_.find(address);
    return place == IdMap::kNone ? nullptr : tracked_[place];
  }

 private:
  IdMap places_;
  std::vector<Tracked *> tracked_;
  std::vector<uint32_t> free_;
};

struct SourceState {
  explicit SourceState(size_t remembered) : allocations(remembered), tensors(remembered) {}

  Lives allocations;
  Lives tensors;
  std::map<std::pair<uint8_t, uint64_t>, uint32_t> echoes;  // frees that a second writer will tell again
  BeginIndex begins[2];                                     // by level
  IdMap pending;                                            // launches held back, by their number
  std::vector<Told> told;                                   // launches that were told, by number modulo its size
  uint64_t last_launch = 0;                                 // of `pending`, so that its records find it at once
  uint32_t last_slot = 0;
  bool has_last = false;
  uint64_t operations = 0;
  uint64_t kernels = 0;
  int64_t now_ns = INT64_MIN;

  Lives &lives(ObjectLevel level) { return level == ObjectLevel::kAllocation ? allocations : tensors; }
};

}  // namespace

bool MemoryOperation::is_complete() const {
  if (kind != OperationKind::kKernel) return true;
  return (launch_flags & SONDE_LAUNCH_WATCHED) != 0 && (launch_flags & kFlawed) == 0 && block_period <= 1 && !is_cut;
}

class MemoryHistory::Impl {
 public:
  Impl(const MemoryHistoryOptions &options, SourceStrings::Fetch fetch, MemoryListener &listener)
      : options_(options), strings_(std::move(fetch)), listener_(listener), order_(options.reorder) {}

  void consume(const sonde_batch_t &batch);
  void finish();

  const MemoryHistoryOptions options_;
  SourceStrings strings_;
  MemoryHistoryCounts counts_;
  std::pmr::unsynchronized_pool_resource pool_;  // of objects; outlives them
  std::map<uint32_t, SourceState> sources_;

 private:
  SourceState &source(uint32_t number) {
    if (last_source_ == nullptr || last_number_ != number) {
      last_source_ = &sources_.try_emplace(number, options_.remembered).first->second;
      last_number_ = number;
    }
    return *last_source_;
  }
  Held new_tracked() { return std::allocate_shared<Tracked>(std::pmr::polymorphic_allocator<Tracked>(&pool_)); }

  void memory_record(uint32_t source, const Record &record);
  void framework_record(uint32_t source, const Record &record);
  void access_record(uint32_t source, const Record &record);
  void launch(uint32_t source, const Record &record);
  void transfer(uint32_t source, const Record &record);
  void push_change(int64_t time_ns, Change change);
  void push_operation(int64_t time_ns, uint32_t slot);
  uint32_t new_operation();
  void add_piece(uint32_t source, uint64_t launch, const TouchPiece &piece, std::span<const uint64_t> words,
                 std::span<const uint64_t> more_words = {});

  void leave(int64_t time_ns, const Event &event);
  void begin(SourceState &state, int64_t time_ns, const Change &change);
  void live(SourceState &state, const Held &held, int64_t time_ns);
  void end(SourceState &state, int64_t time_ns, const Change &change);
  void end_one(SourceState &state, int64_t time_ns, const Change &change, uint64_t address);
  void told_end(SourceState &state, const Held &held, int64_t time_ns, ObjectEnd how);
  void tell(SourceState &state, Operation &operation);
  void gather(SourceState &state, const MemoryOperation &operation, const TouchPiece &piece,
              std::span<const uint64_t> words);
  void gather_rows(SourceState &state, const Operation &operation, uint64_t address, uint64_t pitch, bool is_write);
  void gather_range(SourceState &state, uint64_t address, uint64_t bytes, bool is_write);
  const MemoryObject &implicit(SourceState &state, const MemoryOperation &operation, const TouchPiece &piece);
  const Tracked *find(const SourceState &state, ObjectLevel level, uint64_t address, int64_t time_ns) const;

  SourceState *last_source_ = nullptr;
  uint32_t last_number_ = 0;
  MemoryListener &listener_;
  ReorderBuffer<Event> order_;
  Slab<Change> changes_;
  Slab<Operation> operations_;
  TouchGatherer gatherer_;
  uint64_t last_id_ = 0;
  std::vector<uint64_t> row_edges_;
};

void MemoryHistory::Impl::consume(const sonde_batch_t &raw) {
  for (const Record record : Batch(&raw)) {
    switch (record.header()->space) {
      case SONDE_SPACE_MEMORY:
        memory_record(raw.source, record);
        break;
      case SONDE_SPACE_FRAMEWORK:
        framework_record(raw.source, record);
        break;
      case SONDE_SPACE_ACCESS:
        access_record(raw.source, record);
        break;
      default:
        break;
    }
  }
}

void MemoryHistory::Impl::finish() {
  order_.finish([this](int64_t time_ns, const Event &event) { leave(time_ns, event); });
  for (auto &[number, state] : sources_) {
    for (const ObjectLevel level : {ObjectLevel::kTensor, ObjectLevel::kAllocation}) {
      state.lives(level).for_each_live([&](const Lives::Object &life) {
        MemoryObject &object = life.value->object;
        object.end = ObjectEnd::kAlive;
        object.end_operation = state.operations;
        object.end_kernel = state.kernels;
        listener_.object_ends(object);
      });
    }
  }
}

void MemoryHistory::Impl::push_change(int64_t time_ns, Change change) {
  const uint32_t slot = changes_.take();
  changes_[slot] = std::move(change);
  order_.push(time_ns, {slot, false}, [this](int64_t ns, const Event &event) { leave(ns, event); });
}

void MemoryHistory::Impl::push_operation(int64_t time_ns, uint32_t slot) {
  operations_[slot].operation.time_ns = time_ns;
  order_.push(time_ns, {slot, true}, [this](int64_t ns, const Event &event) { leave(ns, event); });
}

uint32_t MemoryHistory::Impl::new_operation() {
  const uint32_t slot = operations_.take();
  Operation &operation = operations_[slot];
  operation.operation = MemoryOperation{};
  operation.pieces.clear();
  operation.words.clear();
  operation.source_address = operation.target_address = 0;
  operation.width = operation.rows = operation.source_pitch = operation.target_pitch = 0;
  return slot;
}

void MemoryHistory::Impl::memory_record(uint32_t source, const Record &record) {
  const uint32_t type = record.header()->type;
  Change change;
  change.object.source = source;
  switch (type) {
    case SONDE_MEMORY_ALLOCATE:
    case SONDE_MEMORY_SUB_ALLOCATE: {
      sonde_memory_allocate_t storage;
      const auto &typed = record.as(storage);
      change.family = type == SONDE_MEMORY_ALLOCATE ? kAllocate : kSubAllocate;
      change.object.address = typed.address;
      change.object.bytes = typed.bytes;
      change.object.pool = typed.pool;
      change.object.stream = typed.stream;
      change.object.device = typed.device;
      change.object.kind = typed.kind;
      change.object.is_stream_ordered = (typed.flags & 1u) != 0;
      change.object.name = strings_.resolve(source, typed.name);
      change.object.call_path = strings_.resolve(source, typed.call_path);
      return push_change(record.time_ns(), std::move(change));
    }
    case SONDE_MEMORY_FREE:
    case SONDE_MEMORY_SUB_FREE: {
      sonde_memory_free_t storage;
      const auto &typed = record.as(storage);
      change.family = type == SONDE_MEMORY_FREE ? kAllocate : kSubAllocate;
      change.is_end = true;
      change.object.address = typed.address;
      change.object.bytes = typed.bytes;
      change.object.pool = typed.pool;
      change.object.device = typed.device;
      change.object.kind = typed.kind;
      change.object.end_stream = typed.stream;
      change.object.is_end_stream_ordered = (typed.flags & 1u) != 0;
      return push_change(record.time_ns(), std::move(change));
    }
    case SONDE_MEMORY_MAP:
    case SONDE_MEMORY_UNMAP: {
      sonde_memory_map_t storage;
      const auto &typed = record.as(storage);
      change.family = kMap;
      change.is_end = type == SONDE_MEMORY_UNMAP;
      change.is_range = change.is_end;
      change.object.address = typed.address;
      change.object.bytes = typed.bytes;
      change.object.device = typed.device;
      change.object.kind = SONDE_MEMORY_DEVICE;
      return push_change(record.time_ns(), std::move(change));
    }
    case SONDE_MEMORY_ADVISE:
    case SONDE_MEMORY_PREFETCH: {
      sonde_memory_advise_t storage;
      const auto &typed = record.as(storage);
      const uint32_t slot = new_operation();
      Operation &operation = operations_[slot];
      operation.operation.kind = type == SONDE_MEMORY_ADVISE ? OperationKind::kAdvise : OperationKind::kPrefetch;
      operation.operation.source = source;
      operation.operation.device = static_cast<uint32_t>(typed.device);
      operation.operation.stream = typed.stream;
      operation.operation.correlation = typed.correlation;
      operation.operation.bytes = typed.bytes;
      operation.operation.advice = typed.advice;
      operation.target_address = typed.address;
      return push_operation(record.time_ns(), slot);
    }
    default:
      return;
  }
}

void MemoryHistory::Impl::framework_record(uint32_t source, const Record &record) {
  const uint32_t type = record.header()->type;
  if (type != SONDE_FRAMEWORK_TENSOR_ALLOCATE && type != SONDE_FRAMEWORK_TENSOR_FREE) return;
  sonde_framework_tensor_t storage;
  const auto &typed = record.as(storage);
  Change change;
  change.family = kFrameworkTensor;
  change.is_end = type == SONDE_FRAMEWORK_TENSOR_FREE;
  change.object.source = source;
  change.object.level = ObjectLevel::kTensor;
  change.object.address = typed.address;
  change.object.bytes = typed.bytes;
  change.object.device = typed.device;
  change.object.kind = typed.device == UINT32_MAX ? SONDE_MEMORY_PAGEABLE : SONDE_MEMORY_DEVICE;
  change.object.pool = typed.pool;
  change.object.stream = typed.stream;
  change.object.end_stream = typed.stream;
  change.object.scope = typed.scope;
  change.object.is_before_capture = (typed.flags & 1u) != 0;
  push_change(record.time_ns(), std::move(change));
}

void MemoryHistory::Impl::access_record(uint32_t source, const Record &record) {
  switch (record.header()->type) {
    case SONDE_ACCESS_LAUNCH:
      return launch(source, record);
    case SONDE_ACCESS_TRANSFER:
      return transfer(source, record);
    case SONDE_ACCESS_OBJECT: {
      sonde_access_object_t storage;
      const auto &typed = record.as(storage);
      TouchPiece piece;
      piece.is_tensor = typed.object_kind == SONDE_OBJECT_IS_TENSOR;
      piece.address = typed.address;
      piece.bytes = typed.bytes;
      piece.name = typed.name;
      piece.reads = typed.reads;
      piece.writes = typed.writes;
      piece.atomics = typed.atomics;
      piece.copies = typed.copies;
      piece.read_bytes = typed.read_bytes;
      piece.write_bytes = typed.write_bytes;
      piece.copy_bytes = typed.copy_bytes;
      return add_piece(source, typed.launch, piece, {});
    }
    case SONDE_ACCESS_INTERVALS: {
      sonde_access_intervals_t storage;
      const auto &typed = record.as(storage);
      TouchPiece piece;
      piece.kind = typed.kind == 1 ? TouchPiece::Kind::kRead : TouchPiece::Kind::kWritten;
      piece.address = typed.address;
      piece.bytes = typed.bytes;
      piece.granule = typed.granule;
      return add_piece(source, typed.launch, piece, record.elements<uint64_t>(typed.edges));
    }
    case SONDE_ACCESS_PAGES: {
      sonde_access_pages_t storage;
      const auto &typed = record.as(storage);
      const auto pages = record.elements<uint64_t>(typed.pages);
      const auto page_counts = record.elements<uint64_t>(typed.counts);
      if (pages.size() != page_counts.size()) {
        ++counts_.lost_touches;
        return;
      }
      TouchPiece piece;
      piece.kind = TouchPiece::Kind::kPages;
      piece.address = typed.address;
      piece.bytes = typed.bytes;
      piece.page_bytes = static_cast<uint32_t>(typed.page_bytes);
      return add_piece(source, typed.launch, piece, pages, page_counts);
    }
    default:
      return;
  }
}

void MemoryHistory::Impl::launch(uint32_t number, const Record &record) {
  sonde_access_launch_t storage;
  const auto &typed = record.as(storage);
  ++counts_.launches;
  if ((typed.flags & SONDE_LAUNCH_WATCHED) != 0) ++counts_.watched;
  const uint32_t slot = new_operation();
  MemoryOperation &operation = operations_[slot].operation;
  operation.source = number;
  operation.device = typed.device;
  operation.context = typed.context;
  operation.name = strings_.resolve(number, typed.name);
  operation.stream = typed.stream;
  operation.correlation = typed.correlation;
  operation.graph_node = typed.graph_node;
  operation.graph_exec = typed.graph_exec;
  operation.launch = typed.launch;
  operation.launch_flags = typed.flags;
  operation.is_cut = typed.dropped != 0;
  operation.kernel_period = std::max(typed.kernel_period, 1u);
  operation.block_period = std::max(typed.block_period, 1u);
  std::copy(std::begin(typed.grid), std::end(typed.grid), operation.grid);
  std::copy(std::begin(typed.block), std::end(typed.block), operation.block);
  operation.accesses = typed.accesses;
  operation.outside = typed.outside;
  SourceState &state = source(number);
  if (typed.launch != 0) state.pending.set(typed.launch, slot);
  state.last_launch = typed.launch;
  state.last_slot = slot;
  state.has_last = true;
  push_operation(record.time_ns(), slot);
}

void MemoryHistory::Impl::transfer(uint32_t number, const Record &record) {
  sonde_access_transfer_t storage;
  const auto &typed = record.as(storage);
  ++counts_.transfers;
  const uint32_t slot = new_operation();
  Operation &operation = operations_[slot];
  const bool is_set = (typed.flags & SONDE_TRANSFER_SET) != 0;
  operation.operation.kind = is_set ? OperationKind::kSet : OperationKind::kCopy;
  operation.operation.source = number;
  operation.operation.device = typed.device;
  operation.operation.context = typed.context;
  operation.operation.stream = typed.stream;
  operation.operation.correlation = typed.correlation;
  operation.operation.graph_node = typed.graph_node;
  operation.operation.graph_exec = typed.graph_exec;
  operation.operation.bytes = typed.bytes;
  operation.operation.copy_kind = typed.kind;
  operation.source_address = is_set ? 0 : typed.source;
  operation.target_address = typed.target;
  operation.width = typed.width;
  operation.rows = typed.rows;
  operation.source_pitch = typed.source_pitch;
  operation.target_pitch = typed.target_pitch;
  push_operation(record.time_ns(), slot);
}

void MemoryHistory::Impl::add_piece(uint32_t number, uint64_t launch, const TouchPiece &given,
                                    std::span<const uint64_t> words, std::span<const uint64_t> more_words) {
  ++counts_.touch_records;
  SourceState &state = source(number);
  TouchPiece piece = given;
  piece.words = static_cast<uint32_t>(words.size() + more_words.size());
  if (!state.has_last || state.last_launch != launch) {
    const uint32_t found = launch == 0 ? IdMap::kNone : state.pending.find(launch);
    if (found == IdMap::kNone) {
      const Told *const told = state.told.empty() ? nullptr : &state.told[launch % state.told.size()];
      if (told == nullptr || told->launch != launch) {
        ++counts_.lost_touches;
        return;
      }
      ++counts_.late_touches;
      MemoryOperation operation = told->operation;
      operation.is_late = true;
      row_edges_.assign(words.begin(), words.end());
      row_edges_.insert(row_edges_.end(), more_words.begin(), more_words.end());
      gatherer_.clear();
      gather(state, operation, piece, row_edges_);
      listener_.operation(operation, gatherer_.finish(false));
      return;
    }
    state.last_launch = launch;
    state.last_slot = found;
    state.has_last = true;
  }
  Operation &operation = operations_[state.last_slot];
  piece.first_word = static_cast<uint32_t>(operation.words.size());
  operation.words.insert(operation.words.end(), words.begin(), words.end());
  operation.words.insert(operation.words.end(), more_words.begin(), more_words.end());
  operation.pieces.push_back(piece);
}

void MemoryHistory::Impl::leave(int64_t time_ns, const Event &event) {
  if (event.is_operation) {
    Operation &operation = operations_[event.slot];
    SourceState &state = source(operation.operation.source);
    if (time_ns < state.now_ns) ++counts_.late_records;
    state.now_ns = std::max(state.now_ns, time_ns);
    tell(state, operation);
    if (operation.words.capacity() > kMostWordsKept) std::vector<uint64_t>().swap(operation.words);
    operations_.give(event.slot);
    return;
  }
  const Change &change = changes_[event.slot];
  SourceState &state = source(change.object.source);
  if (time_ns < state.now_ns) ++counts_.late_records;
  state.now_ns = std::max(state.now_ns, time_ns);
  if (change.is_end) {
    end(state, time_ns, change);
  } else {
    begin(state, time_ns, change);
  }
  changes_.give(event.slot);
}

void MemoryHistory::Impl::begin(SourceState &state, int64_t time_ns, const Change &change) {
  const ObjectLevel level = change.family == kSubAllocate || change.family == kFrameworkTensor
                                ? ObjectLevel::kTensor
                                : ObjectLevel::kAllocation;
  Lives &lives = state.lives(level);
  // A second writer that tells of the same object, or the begin of one that was touched before.
  if (const Lives::Object *const live = lives.find_live(change.object.address);
      live != nullptr && live->address == change.object.address && live->bytes == change.object.bytes &&
      (live->value->families & change.family) == 0) {
    live->value->families |= change.family;
    return;
  }
  const Held held = new_tracked();
  held->families = change.family;
  MemoryObject &object = held->object;
  object = change.object;
  object.id = ++last_id_;
  object.level = level;
  object.begin_ns = time_ns;
  object.begin_operation = state.operations;
  object.begin_kernel = state.kernels;
  if (level == ObjectLevel::kTensor) {
    if (const Lives::Object *const outer = state.allocations.find_live(object.address); outer != nullptr) {
      object.parent = outer->value->object.id;
      held->parent = outer->value;
    }
  }
  live(state, held, time_ns);
}

// Puts an object among those that live, ends what it replaces and tells of both.
void MemoryHistory::Impl::live(SourceState &state, const Held &held, int64_t time_ns) {
  const MemoryObject &object = held->object;
  for (const Lives::Object &replaced : state.lives(object.level).begin(object.address, object.bytes, time_ns, held)) {
    ++counts_.replaced;
    told_end(state, replaced.value, time_ns, ObjectEnd::kReplaced);
  }
  state.begins[static_cast<size_t>(object.level)].add(held.get());
  listener_.object_begins(object);
}

void MemoryHistory::Impl::end(SourceState &state, int64_t time_ns, const Change &change) {
  if (!change.is_range) return end_one(state, time_ns, change, change.object.address);
  bool ended = false;
  const uint64_t past = change.object.address + change.object.bytes;
  for (uint64_t at = change.object.address; at < past;) {
    const Lives::Object *const life = state.allocations.next_live(at);
    if (life == nullptr || life->address >= past) break;
    const uint64_t address = life->address;
    at = std::max(at + 1, address + std::max<uint64_t>(life->bytes, 1));
    end_one(state, time_ns, change, address);
    ended = true;
  }
  if (!ended) end_one(state, time_ns, change, change.object.address);
}

void MemoryHistory::Impl::end_one(SourceState &state, int64_t time_ns, const Change &change, uint64_t address) {
  const bool is_tensor = change.family == kSubAllocate || change.family == kFrameworkTensor;
  Lives &lives = state.lives(is_tensor ? ObjectLevel::kTensor : ObjectLevel::kAllocation);
  const std::pair<uint8_t, uint64_t> echo{change.family, address};
  if (const auto found = state.echoes.find(echo); found != state.echoes.end()) {
    if (--found->second == 0) state.echoes.erase(found);
    return;
  }
  const auto life = lives.end(address, time_ns);
  if (!life) {
    ++counts_.unmatched_frees;
    MemoryObject nothing = change.object;
    nothing.level = is_tensor ? ObjectLevel::kTensor : ObjectLevel::kAllocation;
    nothing.address = address;
    nothing.end_ns = time_ns;
    listener_.unmatched_free(nothing);
    return;
  }
  const uint8_t others = life->value->families & static_cast<uint8_t>(~change.family);
  for (uint8_t family = 1; family <= kFrameworkTensor; family <<= 1) {
    if ((others & family) != 0) ++state.echoes[{family, address}];
  }
  MemoryObject &object = life->value->object;
  object.end_stream = change.object.end_stream;
  object.is_end_stream_ordered = change.object.is_end_stream_ordered;
  told_end(state, life->value, time_ns, ObjectEnd::kFreed);
}

void MemoryHistory::Impl::told_end(SourceState &state, const Held &held, int64_t time_ns, ObjectEnd how) {
  MemoryObject &object = held->object;
  state.begins[static_cast<size_t>(object.level)].erase(object.address);
  object.end = how;
  object.end_ns = std::max(time_ns, object.begin_ns);
  object.end_operation = state.operations;
  object.end_kernel = state.kernels;
  listener_.object_ends(object);
}

const Tracked *MemoryHistory::Impl::find(const SourceState &state, ObjectLevel level, uint64_t address,
                                         int64_t time_ns) const {
  const Lives &lives = level == ObjectLevel::kAllocation ? state.allocations : state.tensors;
  const Lives::Object *life = nullptr;
  if (time_ns >= state.now_ns) {
    // In order, what is alive now is what was alive then.
    if (const Tracked *const known = state.begins[static_cast<size_t>(level)].find(address)) return known;
    life = lives.find_live(address);
  } else {
    life = lives.find(address, time_ns);
  }
  return life == nullptr ? nullptr : life->value.get();
}

const MemoryObject &MemoryHistory::Impl::implicit(SourceState &state, const MemoryOperation &operation,
                                                  const TouchPiece &piece) {
  ++counts_.implicit;
  const Held held = new_tracked();
  MemoryObject &object = held->object;
  object.id = ++last_id_;
  object.level = piece.is_tensor ? ObjectLevel::kTensor : ObjectLevel::kAllocation;
  object.is_implicit = true;
  object.source = operation.source;
  object.device = operation.device;
  object.address = piece.address;
  object.bytes = piece.bytes;
  object.name = strings_.resolve(operation.source, piece.name);
  object.begin_ns = operation.time_ns;
  object.begin_operation = operation.index;
  object.begin_kernel = operation.kernels;
  if (piece.is_tensor) {
    if (const Lives::Object *const outer = state.allocations.find_live(piece.address); outer != nullptr) {
      object.parent = outer->value->object.id;
      held->parent = outer->value;
    }
  }
  live(state, held, operation.time_ns);
  return object;
}

void MemoryHistory::Impl::gather(SourceState &state, const MemoryOperation &operation, const TouchPiece &piece,
                                 std::span<const uint64_t> words) {
  const auto add = [&](const MemoryObject &object) {
    gatherer_.add(object, static_cast<int64_t>(piece.address - object.address), piece, words);
  };
  const auto holds = [&](const Tracked *tracked) {
    return tracked != nullptr && piece.address - tracked->object.address + piece.bytes <= tracked->object.bytes;
  };
  // Edges and pages do not say what their range is: a tensor where one begins there that holds it.
  const Tracked *tensor = nullptr;
  if (piece.is_tensor || piece.kind != TouchPiece::Kind::kCounts) {
    tensor = find(state, ObjectLevel::kTensor, piece.address, operation.time_ns);
    if (!holds(tensor)) tensor = nullptr;
  }
  const bool is_tensor = piece.kind == TouchPiece::Kind::kCounts
                             ? piece.is_tensor
                             : tensor != nullptr && tensor->object.address == piece.address;
  const Tracked *allocation = nullptr;
  if (tensor != nullptr && tensor->parent != nullptr && !operation.is_late &&
      tensor->parent->object.end == ObjectEnd::kAlive) {
    allocation = tensor->parent.get();
  } else {
    allocation = find(state, ObjectLevel::kAllocation, piece.address, operation.time_ns);
  }
  const Tracked *const known = is_tensor ? tensor : allocation;
  if (known == nullptr && operation.is_late) {
    ++counts_.lost_touches;
    return;
  }
  add(known != nullptr ? known->object : implicit(state, operation, piece));
  if (is_tensor && allocation != nullptr) add(allocation->object);
}

void MemoryHistory::Impl::gather_range(SourceState &state, uint64_t address, uint64_t bytes, bool is_write) {
  const uint64_t past = bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes;
  for (const ObjectLevel level : {ObjectLevel::kAllocation, ObjectLevel::kTensor}) {
    const Lives &lives = state.lives(level);
    for (uint64_t at = address; at < past;) {
      const Lives::Object *const life = lives.next_live(at);
      if (life == nullptr || life->address >= past) break;
      const MemoryObject &object = life->value->object;
      const uint64_t begin = std::max(address, object.address) - object.address;
      const uint64_t end = std::min(past - object.address, object.bytes);
      if (begin < end) {
        TouchPiece piece;
        piece.kind = is_write ? TouchPiece::Kind::kWritten : TouchPiece::Kind::kRead;
        (is_write ? piece.write_bytes : piece.read_bytes) = end - begin;
        const uint64_t edges[] = {begin, end};
        gatherer_.add(object, 0, piece, edges);
      }
      at = object.address + std::max<uint64_t>(object.bytes, 1);
    }
  }
}

void MemoryHistory::Impl::gather_rows(SourceState &state, const Operation &operation, uint64_t address, uint64_t pitch,
                                      bool is_write) {
  if (address == 0) return;
  const bool is_dense = pitch == 0 || pitch == operation.width || operation.rows <= 1 || operation.width == 0;
  if (is_dense) return gather_range(state, address, operation.operation.bytes, is_write);
  if (operation.rows > kMostRows) {
    return gather_range(state, address, pitch * (operation.rows - 1) + operation.width, is_write);
  }
  for (uint64_t row = 0; row < operation.rows; ++row) {
    gather_range(state, address + row * pitch, operation.width, is_write);
  }
}

void MemoryHistory::Impl::tell(SourceState &state, Operation &held) {
  MemoryOperation &operation = held.operation;
  operation.index = state.operations++;
  operation.kernels = state.kernels;
  gatherer_.clear();
  switch (operation.kind) {
    case OperationKind::kKernel: {
      ++state.kernels;
      for (const TouchPiece &piece : held.pieces) {
        gather(state, operation, piece, std::span(held.words).subspan(piece.first_word, piece.words));
      }
      if (operation.launch != 0) state.pending.erase(operation.launch);
      if (state.last_launch == operation.launch) state.has_last = false;
      if (state.told.size() < options_.remembered && operation.launch >= state.told.size()) {
        // Numbers keep their place only while the size stays, so it grows rarely and what was there moves.
        std::vector<Told> grown(std::min(options_.remembered, std::max<size_t>(1024, state.told.size() * 4)));
        for (Told &told : state.told) {
          if (told.launch != 0) grown[told.launch % grown.size()] = told;
        }
        state.told = std::move(grown);
      }
      if (!state.told.empty()) state.told[operation.launch % state.told.size()] = {operation.launch, operation};
      break;
    }
    case OperationKind::kCopy:
      gather_rows(state, held, held.source_address, held.source_pitch, false);
      gather_rows(state, held, held.target_address, held.target_pitch, true);
      break;
    case OperationKind::kSet:
      gather_rows(state, held, held.target_address, held.target_pitch, true);
      break;
    case OperationKind::kPrefetch:
    case OperationKind::kAdvise: {
      TouchPiece nothing;
      const uint64_t past = held.target_address + std::max<uint64_t>(operation.bytes, 1);
      for (const ObjectLevel level : {ObjectLevel::kAllocation, ObjectLevel::kTensor}) {
        for (uint64_t at = held.target_address; at < past;) {
          const Lives::Object *const life = state.lives(level).next_live(at);
          if (life == nullptr || life->address >= past) break;
          gatherer_.add(life->value->object, 0, nothing, {});
          at = life->address + std::max<uint64_t>(life->bytes, 1);
        }
      }
      break;
    }
  }
  listener_.operation(operation, gatherer_.finish(operation.kind != OperationKind::kKernel));
}

MemoryHistory::MemoryHistory(const MemoryHistoryOptions &options, SourceStrings::Fetch fetch, MemoryListener &listener)
    : impl_(std::make_unique<Impl>(options, std::move(fetch), listener)) {}
MemoryHistory::~MemoryHistory() = default;

std::vector<sonde_interest_t> MemoryHistory::interests(uint64_t types) {
  std::vector<sonde_interest_t> interests{
      only(SONDE_SPACE_MEMORY,
           {SONDE_MEMORY_ALLOCATE, SONDE_MEMORY_FREE, SONDE_MEMORY_SUB_ALLOCATE, SONDE_MEMORY_SUB_FREE,
            SONDE_MEMORY_MAP, SONDE_MEMORY_UNMAP, SONDE_MEMORY_ADVISE, SONDE_MEMORY_PREFETCH}),
      only(SONDE_SPACE_FRAMEWORK, {SONDE_FRAMEWORK_TENSOR_ALLOCATE, SONDE_FRAMEWORK_TENSOR_FREE}),
      only(SONDE_SPACE_ACCESS, {SONDE_ACCESS_LAUNCH, SONDE_ACCESS_TRANSFER})};
  const auto add = [&](uint32_t type, uint32_t level) {
    if ((types >> type & 1u) != 0) {
      interests.push_back({SONDE_SPACE_ACCESS, level, uint64_t{1} << type});
    }
  };
  add(SONDE_ACCESS_OBJECT, SONDE_LEVEL_OBJECT_SUMMARY);
  add(SONDE_ACCESS_PAGES, SONDE_LEVEL_PAGE_SUMMARY);
  add(SONDE_ACCESS_INTERVALS, SONDE_LEVEL_INTERVALS);
  return interests;
}

void MemoryHistory::consume(const sonde_batch_t &batch) { impl_->consume(batch); }
void MemoryHistory::finish() { impl_->finish(); }
const std::string &MemoryHistory::text(uint32_t name) const { return impl_->strings_.text(name); }
uint32_t MemoryHistory::resolve(uint32_t source, sonde_string_t id) { return impl_->strings_.resolve(source, id); }
const MemoryHistoryCounts &MemoryHistory::counts() const { return impl_->counts_; }

uint64_t MemoryHistory::live() const {
  uint64_t sum = 0;
  for (const auto &[number, state] : impl_->sources_)
    sum += state.allocations.live_count() + state.tensors.live_count();
  return sum;
}

}  // namespace sonde::toolkit
