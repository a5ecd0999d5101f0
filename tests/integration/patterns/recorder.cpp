#include "recorder.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <tuple>

// Begin and end of the section that __shared__ variables lie in; absent where no program has any.
extern "C" {
extern char __start_standin_shared[] __attribute__((weak));
extern char __stop_standin_shared[] __attribute__((weak));
}

namespace standin {
namespace {

constexpr size_t kWarpBytesOfRecord = 256 << 10;
constexpr size_t kEdgesOfRecord = 32768;  // an even number

template <typename T>
sonde_span_t append(std::vector<uint8_t> &variable, size_t fixed_bytes, const std::vector<T> &values) {
  if (values.empty()) return {0, 0};
  const auto offset = static_cast<uint32_t>(fixed_bytes + variable.size());
  const auto *const bytes = reinterpret_cast<const uint8_t *>(values.data());
  variable.insert(variable.end(), bytes, bytes + values.size() * sizeof(T));
  variable.resize((variable.size() + 7) / 8 * 8);
  return {offset, static_cast<uint32_t>(values.size())};
}

template <typename T>
T record(uint32_t space, uint32_t type) {
  T result = {};
  SONDE_RECORD_INIT(&result, space, type, sonde_stamp());
  return result;
}

// By instruction and single accesses only where they are asked for: they take longer.
bool collects_instructions() {
  static const bool wanted = std::getenv("STANDIN_INSTRUCTIONS") != nullptr;
  return wanted;
}

bool is_shared(uint64_t address) {
  return address >= reinterpret_cast<uint64_t>(__start_standin_shared) &&
         address < reinterpret_cast<uint64_t>(__stop_standin_shared);
}

}  // namespace

Recorder &recorder() {
  static Recorder instance;
  return instance;
}

sonde::Session *Recorder::session() {
  if (!tried_) {
    tried_ = true;
    const sonde::Host host(sonde_host());
    sonde_session_t *current = nullptr;
    if (host.service<sonde_session_service_t>().current(&current) == SONDE_OK && current != nullptr) {
      session_.emplace(sonde::Session::borrow(host, current));
    }
  }
  return session_ ? &*session_ : nullptr;
}

void Recorder::emit(const void *fixed, size_t fixed_bytes, const std::vector<uint8_t> &variable) {
  if (session() == nullptr) return;
  std::vector<uint64_t> whole((fixed_bytes + variable.size()) / 8);
  auto *const bytes = reinterpret_cast<uint8_t *>(whole.data());
  std::memcpy(bytes, fixed, fixed_bytes);
  if (!variable.empty()) std::memcpy(bytes + fixed_bytes, variable.data(), variable.size());
  auto *const header = reinterpret_cast<sonde_record_t *>(whole.data());
  header->size8 = static_cast<uint16_t>(whole.size());
  session_->writer().emit(header);
}

void Recorder::allocated(uint64_t address, uint64_t bytes, uint32_t kind, uint64_t pool, uint64_t stream) {
  Object object;
  object.bytes = bytes;
  object.ordinal = ++ordinals_;
  object.kind = kind;
  live_[address] = object;
  auto allocate = record<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE);
  allocate.address = address;
  allocate.bytes = bytes;
  allocate.pool = pool;
  allocate.stream = stream;
  allocate.kind = kind;
  allocate.flags = pool != 0 ? 3 : 0;
  emit(&allocate, sizeof allocate, {});
}

void Recorder::freed(uint64_t address, uint64_t pool, uint64_t stream) {
  const auto found = live_.find(address);
  if (found == live_.end()) return;
  auto record_of_free = record<sonde_memory_free_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE);
  record_of_free.address = address;
  record_of_free.bytes = found->second.bytes;
  record_of_free.pool = pool;
  record_of_free.stream = stream;
  record_of_free.kind = found->second.kind;
  record_of_free.flags = pool != 0 ? 3 : 0;
  emit(&record_of_free, sizeof record_of_free, {});
  live_.erase(found);
}

void Recorder::transferred(const Transfer &transfer) {
  auto made = record<sonde_access_transfer_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_TRANSFER);
  made.source = transfer.is_set ? 0 : transfer.source;
  made.target = transfer.target;
  made.bytes = transfer.width * transfer.rows;
  made.width = transfer.width;
  made.rows = transfer.rows;
  made.source_pitch = transfer.source_pitch;
  made.target_pitch = transfer.target_pitch;
  made.stream = transfer.stream;
  if (!transfer.is_set) {
    made.kind = transfer.is_from_device
                    ? (transfer.is_to_device ? SONDE_COPY_DEVICE_TO_DEVICE : SONDE_COPY_DEVICE_TO_HOST)
                    : (transfer.is_to_device ? SONDE_COPY_HOST_TO_DEVICE : SONDE_COPY_HOST_TO_HOST);
  }
  made.value = transfer.value;
  made.flags = (transfer.is_set ? SONDE_TRANSFER_SET : 0u) | (transfer.is_async ? SONDE_TRANSFER_ASYNC : 0u);
  emit(&made, sizeof made, {});
}

void Recorder::synchronised(uint32_t kind, uint64_t stream, uint64_t event) {
  auto made = record<sonde_device_sync_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_SYNC);
  made.end = sonde_stamp();
  made.stream = stream;
  made.kind = kind;
  made.event = event;
  emit(&made, sizeof made, {});
}

void Recorder::begin_launch(const void *kernel, uint64_t stream, uint32_t grid, uint32_t block) {
  launch_ = record<sonde_access_launch_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_LAUNCH);
  launch_.launch = ++launches_;
  launch_.correlation = launches_;
  launch_.stream = stream;
  launch_.function_begin = reinterpret_cast<uint64_t>(kernel);
  if (session() != nullptr) {
    launch_.name = session_->intern("kernel" + std::to_string(reinterpret_cast<uint64_t>(kernel) & 0xffffffu));
  }
  launch_.grid[0] = grid;
  launch_.block[0] = block;
  launch_.grid[1] = launch_.grid[2] = launch_.block[1] = launch_.block[2] = 1;
  launch_.kernel_period = launch_.block_period = 1;
  launch_.ranges = static_cast<uint32_t>(live_.size());
  launch_.flags = SONDE_LAUNCH_WATCHED;
  for (auto &[address, object] : live_) {
    object.reads = object.writes = object.read_bytes = object.write_bytes = 0;
    object.touched.assign(object.bytes, 0);
    object.page_counts.assign((address + object.bytes - 1) / kPageBytes - address / kPageBytes + 1, 0);
  }
  instructions_.clear();
  last_ = nullptr;
  in_launch_ = true;
}

void Recorder::begin_thread(uint32_t block, uint32_t thread) {
  if (thread % 32 == 0) flush_warp();
  block_ = block;
  warp_ = thread / 32;
  lane_ = thread % 32;
  if (collects_instructions()) occurrences_.clear();
}

void Recorder::access(uint64_t pc, uint64_t address, uint32_t bytes, bool is_write) {
  if (!in_launch_) return;
  const bool shared = is_shared(address);
  if (!shared) {
    Object *const object = find(address);
    if (object == nullptr) return;  // the kernel's own stack
    const uint64_t offset = address - last_begin_;
    ++launch_.accesses;
    (is_write ? object->writes : object->reads) += 1;
    (is_write ? object->write_bytes : object->read_bytes) += bytes;
    for (uint64_t i = offset; i < std::min(offset + bytes, object->bytes); ++i) {
      object->touched[i] |= static_cast<uint8_t>(is_write ? kWrite : kRead);
    }
    ++object->page_counts[address / kPageBytes - last_begin_ / kPageBytes];
  }
  if (collects_instructions()) {
    lanes_.push_back({pc, address, occurrences_[pc]++, lane_, bytes, is_write, shared});
  }
}

// The live object that `address` lies in; most accesses are to the one before.
Recorder::Object *Recorder::find(uint64_t address) {
  if (last_ != nullptr && address - last_begin_ < last_->bytes) return last_;
  auto found = live_.upper_bound(address);
  if (found == live_.begin()) return nullptr;
  --found;
  if (address - found->first >= found->second.bytes) return nullptr;
  last_begin_ = found->first;
  return last_ = &found->second;
}

void Recorder::flush_warp() {
  std::sort(lanes_.begin(), lanes_.end(), [](const LaneAccess &a, const LaneAccess &b) {
    return std::tie(a.pc, a.occurrence, a.lane) < std::tie(b.pc, b.occurrence, b.lane);
  });
  for (size_t begin = 0, end = 0; begin < lanes_.size(); begin = end) {
    while (end < lanes_.size() && lanes_[end].pc == lanes_[begin].pc &&
           lanes_[end].occurrence == lanes_[begin].occurrence) {
      ++end;
    }
    warp_access(lanes_.data() + begin, end - begin);
  }
  lanes_.clear();
}

// Sectors are the distinct 32 bytes of all lanes; passes over the banks the most distinct words that one of 32 banks has to give.
void Recorder::warp_access(const LaneAccess *lanes, size_t count) {
  const LaneAccess &first = lanes[0];
  sonde_access_instruction_t &sum = instructions_[first.pc];
  sum.pc = first.pc;
  sum.memory = first.is_shared ? 2 : 1;
  sum.access = first.is_write ? kWrite : kRead;
  sum.size = first.bytes;
  sum.threads += count;
  sum.warps += 1;
  sum.bytes += count * first.bytes;
  if (first.is_shared) {
    std::array<std::set<uint64_t>, 32> banks;
    for (size_t i = 0; i < count; ++i) banks[lanes[i].address / 4 % 32].insert(lanes[i].address / 4);
    size_t most = 0;
    for (const auto &words : banks) most = std::max(most, words.size());
    sum.wavefronts += most;
    sum.least_wavefronts += (count * first.bytes + 127) / 128;
  } else {
    std::set<uint64_t> sectors;
    for (size_t i = 0; i < count; ++i) sectors.insert(lanes[i].address / 32);
    sum.sectors += sectors.size();
    sum.least_sectors += (count * first.bytes + 31) / 32;
  }
  sonde_warp_access_t head = {};
  head.size8 = static_cast<uint16_t>(sizeof head / 8 + count);
  head.form = SONDE_WARP_ADDRESS64;
  head.base = first.address;
  head.block = block_;
  head.pc = static_cast<uint32_t>(first.pc - launch_.function_begin);
  head.warp = static_cast<uint16_t>(warp_);
  head.size = static_cast<uint8_t>(first.bytes);
  head.access = static_cast<uint8_t>((first.is_write ? kWrite : kRead) | (first.is_shared ? 1u << 4 : 0u));
  for (size_t i = 0; i < count; ++i) head.mask |= 1u << lanes[i].lane;
  const auto *const bytes = reinterpret_cast<const uint8_t *>(&head);
  warps_.insert(warps_.end(), bytes, bytes + sizeof head);
  for (size_t i = 0; i < count; ++i) {
    const auto *const address = reinterpret_cast<const uint8_t *>(&lanes[i].address);
    warps_.insert(warps_.end(), address, address + 8);
  }
  ++warp_count_;
  if (warps_.size() >= kWarpBytesOfRecord) emit_warps();
}

void Recorder::end_launch() {
  flush_warp();
  in_launch_ = false;
  launch_.readable = sonde_stamp();
  emit(&launch_, sizeof launch_, {});
  for (const auto &[address, object] : live_) {
    if (object.reads + object.writes == 0) continue;
    emit_object(address, object);
    emit_pages(address, object);
    emit_intervals(address, object, 1);
    emit_intervals(address, object, 2);
  }
  emit_instructions();
  emit_warps();
}

void Recorder::emit_object(uint64_t address, const Object &object) {
  auto made = record<sonde_access_object_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_OBJECT);
  made.header.time = launch_.header.time;
  made.launch = launch_.launch;
  made.address = address;
  made.bytes = object.bytes;
  made.ordinal = object.ordinal;
  made.reads = object.reads;
  made.writes = object.writes;
  made.read_bytes = object.read_bytes;
  made.write_bytes = object.write_bytes;
  made.object_kind = SONDE_OBJECT_IS_ALLOCATION;
  emit(&made, sizeof made, {});
}

void Recorder::emit_pages(uint64_t address, const Object &object) {
  std::vector<uint64_t> pages, counts;
  for (size_t i = 0; i < object.page_counts.size(); ++i) {
    if (object.page_counts[i] == 0) continue;
    pages.push_back(address / kPageBytes + i);
    counts.push_back(object.page_counts[i]);
  }
  auto made = record<sonde_access_pages_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_PAGES);
  made.header.time = launch_.header.time;
  made.launch = launch_.launch;
  made.address = address;
  made.bytes = object.bytes;
  made.ordinal = object.ordinal;
  made.page_bytes = kPageBytes;
  std::vector<uint8_t> variable;
  made.pages = append(variable, sizeof made, pages);
  made.counts = append(variable, sizeof made, counts);
  emit(&made, sizeof made, variable);
}

void Recorder::emit_intervals(uint64_t address, const Object &object, uint32_t kind) {
  auto made = record<sonde_access_intervals_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_INTERVALS);
  std::vector<uint64_t> edges;
  bool before = false;
  for (uint64_t i = 0; i <= object.bytes; ++i) {
    const bool now = i < object.bytes && (object.touched[i] & kind) != 0;
    made.touched += now ? 1 : 0;
    if (now != before) edges.push_back(i);
    before = now;
  }
  made.header.time = launch_.header.time;
  made.launch = launch_.launch;
  made.address = address;
  made.bytes = object.bytes;
  made.ordinal = object.ordinal;
  made.kind = kind;
  made.granule = 1;
  // A record holds less than 512 KiB.
  for (size_t begin = 0; begin < edges.size(); begin += kEdgesOfRecord) {
    const size_t end = std::min(begin + kEdgesOfRecord, edges.size());
    std::vector<uint8_t> variable;
    made.edges = append(variable, sizeof made,
                        std::vector<uint64_t>(edges.begin() + static_cast<std::ptrdiff_t>(begin),
                                              edges.begin() + static_cast<std::ptrdiff_t>(end)));
    emit(&made, sizeof made, variable);
  }
}

void Recorder::emit_instructions() {
  for (auto &[pc, sum] : instructions_) {
    SONDE_RECORD_INIT(&sum, SONDE_SPACE_ACCESS, SONDE_ACCESS_INSTRUCTION, launch_.header.time);
    sum.launch = launch_.launch;
    emit(&sum, sizeof sum, {});
  }
}

void Recorder::emit_warps() {
  if (warp_count_ == 0) return;
  auto made = record<sonde_access_warps_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_WARPS);
  made.header.time = launch_.header.time;
  made.launch = launch_.launch;
  made.count = warp_count_;
  std::vector<uint8_t> variable;
  made.data = append(variable, sizeof made, warps_);
  emit(&made, sizeof made, variable);
  warps_.clear();
  warp_count_ = 0;
}

}  // namespace standin

// What the compiler calls for each load and store.
namespace {
void note(const void *pc, const void *address, uint32_t bytes, bool is_write) {
  standin::recorder().access(reinterpret_cast<uint64_t>(pc), reinterpret_cast<uint64_t>(address), bytes, is_write);
}
}  // namespace
extern "C" {
#define STANDIN_ACCESS(bytes)                                                                                    \
  void __tsan_read##bytes(void *address) { note(__builtin_return_address(0), address, bytes, false); }           \
  void __tsan_write##bytes(void *address) { note(__builtin_return_address(0), address, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void *address) { note(__builtin_return_address(0), address, bytes, false); } \
  void __tsan_unaligned_write##bytes(void *address) { note(__builtin_return_address(0), address, bytes, true); } \
  void __tsan_volatile_read##bytes(void *address) { note(__builtin_return_address(0), address, bytes, false); }  \
  void __tsan_volatile_write##bytes(void *address) { note(__builtin_return_address(0), address, bytes, true); }
STANDIN_ACCESS(1)
STANDIN_ACCESS(2)
STANDIN_ACCESS(4)
STANDIN_ACCESS(8)
STANDIN_ACCESS(16)
#undef STANDIN_ACCESS
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_read_range(void *, size_t) {}
void __tsan_write_range(void *, size_t) {}
}
