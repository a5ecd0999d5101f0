// Blocks of PyTorch's allocators: the caching allocator of CUDA, and the plain one of the CPU.
//
// The CUDA allocator calls a tracker under its own lock; the tracker takes no lock but that of sonde.ranges and never
// asks for Python's. There is no way to detach it, so it stays and looks at one word. The CPU allocator is replaced by
// one that passes everything on, and stays too: blocks that it marked are freed through it.
#include <c10/core/Allocator.h>
#ifdef SONDE_TORCH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

#include <cstdio>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "native.h"

namespace sonde_torch {
namespace {

constexpr uint32_t kDevices = 64;

struct Totals {
  std::atomic<int64_t> allocated{0};
  std::atomic<int64_t> reserved{0};
};
Totals cuda_totals[kDevices];
Totals cpu_totals;

struct Block {
  uint32_t type;  // SONDE_FRAMEWORK_TENSOR_*
  uint64_t address;
  uint64_t bytes;
  uint64_t pool;
  uint64_t stream;
  uint32_t device;
  uint32_t flags;
  const char *allocator;
  uint32_t option;  // that a sink must have
};

void emit(const Block &block, const Totals &totals) {
  ThreadState *const state = this_thread();
  if (state == nullptr) return;
  const uint64_t stamp = sonde_stamp();
  for_each_sink(*state, block.type, block.option, [&](sonde_writer_t &writer, uint32_t, uint64_t) {
    sonde_framework_tensor_t record{};
    SONDE_RECORD_INIT(&record, SONDE_SPACE_FRAMEWORK, block.type, stamp);
    record.address = block.address;
    record.bytes = block.bytes;
    record.allocated = static_cast<uint64_t>(std::max<int64_t>(totals.allocated.load(std::memory_order_relaxed), 0));
    record.reserved_bytes =
        static_cast<uint64_t>(std::max<int64_t>(totals.reserved.load(std::memory_order_relaxed), 0));
    record.thread = state->thread;
    record.device = block.device;
    record.name = intern_cached(*state, block.allocator);
    record.pool = block.pool;
    record.stream = block.stream;
    record.scope = state->scope;
    record.flags = block.flags;
    sonde_write(capture, &writer, &record, sizeof(record));
  });
}

bool announcing() {
  return (active.load(std::memory_order_relaxed) & kAnnounce) != 0 && ranges != nullptr && ranges->watched() != 0;
}

void announce(uint32_t kind, uint64_t address, uint64_t bytes, uint32_t device) {
  if (!announcing() || bytes == 0) return;
  sonde_range_t range{};
  range.struct_size = sizeof(range);
  range.kind = kind;
  range.address = address;
  range.bytes = bytes;
  range.device = device;
  (void)ranges->announce(&range, nullptr);
}

[[maybe_unused]] void retire(uint32_t kind, uint64_t address) {
  if (announcing()) (void)ranges->retire(kind, address);
}

#ifdef SONDE_TORCH_CUDA

namespace allocator = c10::cuda::CUDACachingAllocator;

// The common pool is (0, 0); the first number is set for pools of graph captures, the second for pools made by a call.
uint64_t pool_of(const allocator::TraceEntry &entry) {
#ifdef SONDE_TORCH_MEMPOOL
  return entry.mempool_.first != 0 ? entry.mempool_.first : entry.mempool_.second << 32;
#else
  (void)entry;
  return 0;
#endif
}

void on_cuda(const allocator::TraceEntry &entry) {
  if ((active.load(std::memory_order_relaxed) & kCudaTensors) == 0) return;
  const auto device = static_cast<uint32_t>(entry.device_);
  Totals &totals = cuda_totals[device % kDevices];
  const auto address = static_cast<uint64_t>(entry.addr_);
  const auto bytes = static_cast<int64_t>(entry.size_);
  Block block{};
  block.address = address;
  block.bytes = static_cast<uint64_t>(bytes);
  block.pool = pool_of(entry);
  block.stream = reinterpret_cast<uint64_t>(entry.stream_);
  block.device = device;
  block.allocator = "cuda";
  block.option = kCudaTensors;
  using Entry = allocator::TraceEntry;
  switch (entry.action_) {
    case Entry::ALLOC:
      totals.allocated.fetch_add(bytes, std::memory_order_relaxed);
      block.type = SONDE_FRAMEWORK_TENSOR_ALLOCATE;
      emit(block, totals);
      announce(SONDE_RANGE_TENSOR, address, block.bytes, device);
      return;
    case Entry::FREE_REQUESTED:
      totals.allocated.fetch_sub(bytes, std::memory_order_relaxed);
      block.type = SONDE_FRAMEWORK_TENSOR_FREE;
      emit(block, totals);
      return;
    case Entry::FREE_COMPLETED:
      // Until now work on another stream may have used it.
      retire(SONDE_RANGE_TENSOR, address);
      return;
    case Entry::SEGMENT_ALLOC:
    case Entry::SEGMENT_MAP:
      totals.reserved.fetch_add(bytes, std::memory_order_relaxed);
      announce(SONDE_RANGE_POOL, address, block.bytes, device);
      return;
    case Entry::SEGMENT_FREE:
    case Entry::SEGMENT_UNMAP:
      totals.reserved.fetch_sub(bytes, std::memory_order_relaxed);
      retire(SONDE_RANGE_POOL, address);
      return;
    default:
      return;
  }
}

#endif

// Blocks of the CPU that were allocated while somebody watched; a free tells no size.
struct CpuBlocks {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint64_t> bytes;
  std::atomic<uint64_t> count{0};
};
CpuBlocks &cpu_blocks() {
  static auto *const all = new CpuBlocks;
  return *all;
}

c10::Allocator *inner_allocator = nullptr;
c10::DeleterFnPtr inner_deleter = nullptr;

void cpu_block(uint32_t type, uint64_t address, uint64_t bytes) {
  Block block{};
  block.type = type;
  block.address = address;
  block.bytes = bytes;
  block.device = UINT32_MAX;
  block.allocator = "cpu";
  block.option = kCpuTensors;
  emit(block, cpu_totals);
}

void on_cpu_allocate(void *memory, size_t bytes) {
  if ((active.load(std::memory_order_relaxed) & kCpuTensors) == 0 || memory == nullptr) return;
  CpuBlocks &blocks = cpu_blocks();
  const auto address = reinterpret_cast<uint64_t>(memory);
  {
    const std::lock_guard<std::mutex> lock(blocks.mutex);
    blocks.bytes[address] = bytes;
    blocks.count.store(blocks.bytes.size(), std::memory_order_relaxed);
  }
  cpu_totals.allocated.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  cpu_block(SONDE_FRAMEWORK_TENSOR_ALLOCATE, address, bytes);
}

void on_cpu_free(void *memory) {
  CpuBlocks &blocks = cpu_blocks();
  if (blocks.count.load(std::memory_order_relaxed) == 0) return;
  const auto address = reinterpret_cast<uint64_t>(memory);
  uint64_t bytes = 0;
  {
    const std::lock_guard<std::mutex> lock(blocks.mutex);
    const auto found = blocks.bytes.find(address);
    if (found == blocks.bytes.end()) return;
    bytes = found->second;
    blocks.bytes.erase(found);
    blocks.count.store(blocks.bytes.size(), std::memory_order_relaxed);
  }
  cpu_totals.allocated.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  cpu_block(SONDE_FRAMEWORK_TENSOR_FREE, address, bytes);
}

void free_on_cpu(void *memory) {
  on_cpu_free(memory);  // before: the address may be another's as soon as it is free
  inner_deleter(memory);
}

struct CpuAllocator final : c10::Allocator {
#ifdef SONDE_TORCH_CONST_ALLOCATE
  c10::DataPtr allocate(size_t bytes) const override{
#else
  c10::DataPtr allocate(size_t bytes) override {
#endif
      c10::DataPtr block = inner_allocator->allocate(bytes);
  if (!block.compare_exchange_deleter(inner_deleter, free_on_cpu)) return block;
  try {
    on_cpu_allocate(block.get(), bytes);
  } catch (...) {
    // No memory for the table: the block is not seen.
  }
  return block;
}

c10::DeleterFnPtr
raw_deleter() const override {
  return free_on_cpu;
}

#ifdef SONDE_TORCH_COPY_DATA
void copy_data(void *to, const void *from, std::size_t bytes) const override {
  inner_allocator->copy_data(to, from, bytes);
}
#endif
};  // namespace

}  // namespace sonde_torch

// Another thread may have held the lock when the process forked.
void forget_blocks_after_fork() noexcept { new (&cpu_blocks().mutex) std::mutex; }

}  // namespace sonde_torch

using namespace sonde_torch;

extern "C" {

// 1: with the CUDA allocator; the rest of the text on failure goes to `error`.
SONDE_EXPORTED int32_t sonde_torch_attach_cuda(char *error, uint64_t capacity) {
#ifdef SONDE_TORCH_CUDA
  static bool attached = false;
  if (attached) return 1;
  try {
    allocator::attachAllocatorTraceTracker(on_cuda);
    attached = true;
    return 1;
  } catch (const std::exception &failure) {
    std::snprintf(error, capacity, "%s", failure.what());
    return 0;
  }
#else
  std::snprintf(error, capacity, "%s", "the adapter was built without CUDA's headers");
  return 0;
#endif
}

// 1: CPU blocks are watched from now on.
SONDE_EXPORTED int32_t sonde_torch_attach_cpu(char *error, uint64_t capacity) {
  if (inner_allocator != nullptr) return 1;
  c10::Allocator *const inner = c10::GetAllocator(c10::DeviceType::CPU);
  if (inner == nullptr || inner->raw_deleter() == nullptr) {
    std::snprintf(error, capacity, "%s", "the program's own CPU allocator has no plain way to free");
    return 0;
  }
  static CpuAllocator passing_on;
  inner_deleter = inner->raw_deleter();
  inner_allocator = inner;
  c10::SetAllocator(c10::DeviceType::CPU, &passing_on);
  if (c10::GetAllocator(c10::DeviceType::CPU) == &passing_on) return 1;
  inner_allocator = nullptr;
  std::snprintf(error, capacity, "%s", "the program's own CPU allocator has a higher priority");
  return 0;
}

// What a CUDA device held before: totals in bytes.
SONDE_EXPORTED void sonde_torch_set_totals(uint32_t device, int64_t allocated, int64_t reserved) {
  cuda_totals[device % kDevices].allocated.store(allocated, std::memory_order_relaxed);
  cuda_totals[device % kDevices].reserved.store(reserved, std::memory_order_relaxed);
}

// A block or segment of CUDA that lived before. kind: SONDE_RANGE_*.
SONDE_EXPORTED void sonde_torch_announce(uint32_t kind, uint64_t address, uint64_t bytes, uint32_t device,
                                         uint64_t pool, uint64_t stream) {
  if (kind == SONDE_RANGE_TENSOR) {
    Block block{};
    block.type = SONDE_FRAMEWORK_TENSOR_ALLOCATE;
    block.address = address;
    block.bytes = bytes;
    block.pool = pool;
    block.stream = stream;
    block.device = device;
    block.flags = 1;
    block.allocator = "cuda";
    block.option = kCudaTensors;
    emit(block, cuda_totals[device % kDevices]);
  }
  announce(kind, address, bytes, device);
}

}  // extern "C"
