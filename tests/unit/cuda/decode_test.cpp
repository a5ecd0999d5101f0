// The decoder on synthetic buffers, for every kind of record and every layout.
#include "decode.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <sonde/spaces/device.h>
#include <sonde/spaces/host.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>

#include "activity.h"
#include "fake_host.h"

namespace sonde::cuda {
namespace {

using test::ActivityBuffer;
using test::text_of;

// The version whose layout the walker of the running test uses.
uint32_t walked_version = kCupti13_0;

CuptiResult walk(uint8_t *buffer, size_t valid_bytes, ActivityHeader **record) {
  return test::next_record(walked_version, buffer, valid_bytes, record);
}

CuptiResult callback_name(uint32_t domain, uint32_t callback, const char **name) {
  if (domain == kDomainRuntime && callback == 211) *name = "cudaLaunchKernel_v7000";
  if (domain == kDomainDriver && callback == 442) *name = "cuLaunchKernel_ptsz";
  return *name != nullptr ? kCuptiSuccess : 1;
}

class MemoryOutput final : public RecordOutput {
 public:
  std::vector<std::vector<uint8_t>> runs;
  size_t run_bytes = 4096;
  uint64_t lost = 0;
  bool full = false;

  template <typename Record>
  std::vector<Record> all(uint32_t space, uint32_t type) {
    trim();
    std::vector<Record> out;
    for (const auto &run : runs) {
      for (size_t at = 0; at < run.size();) {
        const auto *header = reinterpret_cast<const sonde_record_t *>(run.data() + at);
        if (header->space == space && header->type == type) out.push_back(*reinterpret_cast<const Record *>(header));
        at += header->size8 * size_t{8};
      }
    }
    return out;
  }

 private:
  bool refill(uint32_t bytes) override {
    trim();
    if (full) {
      ++lost;
      return false;
    }
    runs.emplace_back(std::max<size_t>(run_bytes, bytes));
    cursor_ = runs.back().data();
    limit_ = cursor_ + runs.back().size();
    return true;
  }
  void trim() {
    if (!runs.empty() && cursor_ != nullptr) runs.back().resize(static_cast<size_t>(cursor_ - runs.back().data()));
    cursor_ = limit_ = nullptr;
  }
};

Wants everything() {
  Wants wants;
  for (auto &types : wants.types) types = ~uint64_t{0};
  return wants;
}

class Decode : public ::testing::TestWithParam<uint32_t> {
 protected:
  Decode() : Decode(kCupti13_0) {}
  explicit Decode(uint32_t version) { use(version); }

  void use(uint32_t version) {
    walked_version = version;
    api_.version = version;
    api_.activity_get_next_record = walk;
    api_.get_callback_name = callback_name;
    decoder_ = std::make_unique<Decoder>(&api_, test::fake_capture());
  }

  DecodeCounts run(ActivityBuffer &buffer, const Wants &wants = everything()) {
    return decoder_->decode(buffer.data(), buffer.size(), wants, 777, out_);
  }

  CuptiApi api_;
  std::unique_ptr<Decoder> decoder_;
  MemoryOutput out_;
};

KernelActivity full_kernel() {
  KernelActivity in = test::kernel(1000, 2500, 42, "_Z3addPfS_i");
  in.registers = 32;
  in.device = 1;
  in.context = 2;
  in.stream = 7;
  in.grid_x = 100, in.grid_y = 20, in.grid_z = 3;
  in.block_x = 256, in.block_y = 2, in.block_z = 1;
  in.static_shared = 1024;
  in.dynamic_shared = 2048;
  in.local_per_thread = 16;
  in.graph = 9;
  in.graph_node = (uint64_t{9} << 32) | 4;
  in.cluster_x = 2, in.cluster_y = 1, in.cluster_z = 1;
  return in;
}

class DecodeVersions : public Decode {};

// Two records behind each other show that each is read to its own length.
TEST_P(DecodeVersions, AKernelKeepsItsFields) {
  use(GetParam());
  ActivityBuffer buffer(GetParam());
  buffer.add(full_kernel());
  buffer.add(full_kernel());
  EXPECT_EQ(run(buffer).records, 2u);
  const auto kernels = out_.all<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL);
  ASSERT_EQ(kernels.size(), 2u);
  for (const auto &kernel : kernels) {
    EXPECT_EQ(kernel.header.time, 1000u);
    EXPECT_EQ(kernel.end, 2500u);
    EXPECT_EQ(kernel.correlation, 42u);
    EXPECT_EQ(kernel.stream, 7u);
    EXPECT_EQ(kernel.context, 2u);
    EXPECT_EQ(kernel.device, 1u);
    EXPECT_EQ(text_of(kernel.name), "_Z3addPfS_i");
    EXPECT_EQ(kernel.graph_exec, 9u);
    EXPECT_EQ(kernel.graph_node, (uint64_t{9} << 32) | 4);
    EXPECT_EQ(kernel.grid[0], 100u);
    EXPECT_EQ(kernel.grid[1], 20u);
    EXPECT_EQ(kernel.grid[2], 3u);
    EXPECT_EQ(kernel.block[0], 256u);
    EXPECT_EQ(kernel.block[1], 2u);
    EXPECT_EQ(kernel.block[2], 1u);
    EXPECT_EQ(kernel.static_shared, 1024u);
    EXPECT_EQ(kernel.dynamic_shared, 2048u);
    EXPECT_EQ(kernel.registers, 32u);
    EXPECT_EQ(kernel.local, 16u);
    // Clusters came with 11.8; before it there is nothing to read.
    EXPECT_EQ(kernel.cluster[0], GetParam() >= kCupti11_8 ? 2u : 0u);
    EXPECT_EQ(kernel.cluster[2], GetParam() >= kCupti11_8 ? 1u : 0u);
  }
}

TEST_P(DecodeVersions, CopiesSetsAndSynchronisationsKeepTheirFields) {
  use(GetParam());
  ActivityBuffer buffer(GetParam());
  CopyActivity copy = {};
  copy.kind = kind::kMemcpy;
  copy.copy_kind = 1;  // host to device
  copy.source_kind = SONDE_MEMORY_PINNED;
  copy.destination_kind = SONDE_MEMORY_DEVICE;
  copy.flags = kFlagCopyAsynchronous;
  copy.bytes = uint64_t{5} << 32;
  copy.start = 10, copy.end = 20;
  copy.device = 3, copy.context = 4, copy.stream = 5, copy.correlation = 6;
  copy.graph = 11, copy.graph_node = 12;
  buffer.add(copy);
  PeerCopyActivity peer = {};
  peer.kind = kind::kMemcpyPeer;
  peer.copy_kind = 10;
  peer.bytes = 99;
  peer.device = 0, peer.source_device = 0, peer.destination_device = 2, peer.correlation = 7;
  buffer.add(peer);
  SetActivity set = {};
  set.kind = kind::kMemset;
  set.value = 0xAB;
  set.bytes = 4096;
  set.start = 30, set.end = 31;
  set.memory_kind = SONDE_MEMORY_MANAGED;
  set.correlation = 8;
  buffer.add(set);
  SynchronizationActivity sync = {};
  sync.kind = kind::kSynchronization;
  sync.type = SONDE_SYNC_CONTEXT;
  sync.start = 40, sync.end = 41;
  sync.context = 1;
  sync.stream = kInvalidSynchronizationValue;
  sync.event = kInvalidSynchronizationValue;
  buffer.add(sync);
  sync.type = SONDE_SYNC_STREAM;
  sync.stream = 13;
  buffer.add(sync);
  EXPECT_EQ(run(buffer).records, 5u);

  const auto copies = out_.all<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].header.time, 10u);
  EXPECT_EQ(copies[0].end, 20u);
  EXPECT_EQ(copies[0].bytes, uint64_t{5} << 32);
  EXPECT_EQ(copies[0].kind, SONDE_COPY_HOST_TO_DEVICE);
  EXPECT_EQ(copies[0].source_memory, SONDE_MEMORY_PINNED);
  EXPECT_EQ(copies[0].destination_memory, SONDE_MEMORY_DEVICE);
  EXPECT_EQ(copies[0].flags, 1u);
  EXPECT_EQ(copies[0].device, 3u);
  EXPECT_EQ(copies[0].peer_device, 3u);
  EXPECT_EQ(copies[0].graph_exec, 11u);
  EXPECT_EQ(copies[0].graph_node, 12u);
  EXPECT_EQ(copies[1].kind, SONDE_COPY_PEER_TO_PEER);
  EXPECT_EQ(copies[1].device, 0u);
  EXPECT_EQ(copies[1].peer_device, 2u);

  const auto sets = out_.all<sonde_device_set_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_SET);
  ASSERT_EQ(sets.size(), 1u);
  EXPECT_EQ(sets[0].value, 0xABu);
  EXPECT_EQ(sets[0].bytes, 4096u);
  EXPECT_EQ(sets[0].memory, SONDE_MEMORY_MANAGED);
  EXPECT_EQ(sets[0].flags, 0u);

  const auto syncs = out_.all<sonde_device_sync_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_SYNC);
  ASSERT_EQ(syncs.size(), 2u);
  EXPECT_EQ(syncs[0].kind, SONDE_SYNC_CONTEXT);
  EXPECT_EQ(syncs[0].stream, UINT64_MAX);
  EXPECT_EQ(syncs[0].event, UINT64_MAX);
  EXPECT_EQ(syncs[1].stream, 13u);
}

TEST_P(DecodeVersions, AllocationsAndPoolsKeepTheirFields) {
  use(GetParam());
  ActivityBuffer buffer(GetParam());
  MemoryActivity memory = {};
  memory.kind = kind::kMemory;
  memory.operation = kMemoryOperationAllocate;
  memory.memory_kind = SONDE_MEMORY_DEVICE;
  memory.correlation = 21;
  memory.address = 0x7f0000001000;
  memory.bytes = 1 << 20;
  memory.timestamp = 500;
  memory.device = 1, memory.context = 2, memory.stream = 7;
  memory.asynchronous = 1;
  memory.pool_type = kPoolTypeLocal;
  memory.pool_address = 0xBEEF;
  buffer.add(memory);
  memory.operation = kMemoryOperationRelease;
  memory.asynchronous = 0;
  memory.pool_type = kPoolTypeInvalid;
  buffer.add(memory);
  MemoryPoolActivity pool = {};
  pool.kind = kind::kMemoryPool;
  pool.operation = kPoolOperationTrimmed;
  pool.pool_type = kPoolTypeImported;
  pool.address = 0xBEEF;
  pool.size = 1 << 22;
  pool.used = 1 << 21;
  pool.release_threshold = 77;
  pool.timestamp = 600;
  buffer.add(pool);
  EXPECT_EQ(run(buffer).records, 3u);

  const auto allocations = out_.all<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE);
  ASSERT_EQ(allocations.size(), 1u);
  EXPECT_EQ(allocations[0].header.time, 500u);
  EXPECT_EQ(allocations[0].address, 0x7f0000001000u);
  EXPECT_EQ(allocations[0].bytes, 1u << 20);
  EXPECT_EQ(allocations[0].pool, 0xBEEFu);
  EXPECT_EQ(allocations[0].stream, 7u);
  EXPECT_EQ(allocations[0].flags, 3u);
  EXPECT_EQ(allocations[0].correlation, 21u);
  const auto frees = out_.all<sonde_memory_free_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE);
  ASSERT_EQ(frees.size(), 1u);
  EXPECT_EQ(frees[0].flags, 0u);
  EXPECT_EQ(frees[0].pool, 0u);
  EXPECT_EQ(frees[0].stream, 0u);
  const auto pools = out_.all<sonde_memory_pool_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_POOL_TRIM);
  ASSERT_EQ(pools.size(), 1u);
  EXPECT_EQ(pools[0].pool, 0xBEEFu);
  EXPECT_EQ(pools[0].reserved_bytes, 1u << 22);
  EXPECT_EQ(pools[0].used_bytes, 1u << 21);
  EXPECT_EQ(pools[0].release_threshold, 77u);
  EXPECT_EQ(pools[0].kind, 1u);
}

TEST_P(DecodeVersions, ObjectsKeepTheirFields) {
  use(GetParam());
  ActivityBuffer buffer(GetParam());
  DeviceActivity device = {};
  device.kind = kind::kDevice;
  device.bandwidth = 4'800'000'000;  // kB/s
  device.memory = uint64_t{141} << 30;
  device.l2_bytes = 50 << 20;
  device.warp = 32;
  device.core_clock = 1980000;
  device.multiprocessors = 132;
  device.capability_major = 9;
  device.id = 3;
  for (int i = 0; i < 16; ++i) device.uuid[i] = static_cast<uint8_t>(i * 17);
  device.name = "NVIDIA H200";
  buffer.add(device);
  ContextActivity context = {};
  context.kind = kind::kContext;
  context.context = 1, context.device = 3, context.null_stream = 7;
  buffer.add(context);
  StreamActivity stream = {};
  stream.kind = kind::kStream;
  stream.context = 1, stream.stream = 13;
  stream.priority = static_cast<uint32_t>(-5);
  stream.flag = kStreamFlagNonBlocking;
  buffer.add(stream);
  stream.stream = 7;
  stream.flag = kStreamFlagNull;
  buffer.add(stream);
  ModuleActivity module = {};
  module.kind = kind::kModule;
  module.context = 1, module.id = 55, module.bytes = 1234;
  buffer.add(module);
  FunctionActivity function = {};
  function.kind = kind::kFunction;
  function.id = 66, function.module = 55, function.context = 1;
  function.name = "f";
  buffer.add(function);
  EXPECT_EQ(run(buffer).records, 6u);

  const auto devices = out_.all<sonde_object_device_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_DEVICE);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].header.time, 777u);
  EXPECT_EQ(devices[0].memory_bandwidth, 4'800'000'000'000u);
  EXPECT_EQ(devices[0].memory_bytes, uint64_t{141} << 30);
  EXPECT_EQ(devices[0].device, 3u);
  EXPECT_EQ(devices[0].processors, 132u);
  EXPECT_EQ(devices[0].core_clock_khz, 1980000u);
  EXPECT_EQ(text_of(devices[0].name), "NVIDIA H200");
  EXPECT_EQ(text_of(devices[0].uuid), "GPU-00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(text_of(devices[0].runtime), "cuda");
  const auto contexts = out_.all<sonde_object_context_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_CONTEXT);
  ASSERT_EQ(contexts.size(), 1u);
  EXPECT_EQ(contexts[0].null_stream, 7u);
  const auto streams = out_.all<sonde_object_stream_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_STREAM);
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams[0].priority, -5);
  EXPECT_EQ(streams[0].flags, 2u);
  EXPECT_EQ(streams[1].flags, 1u);
  const auto modules = out_.all<sonde_object_module_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE);
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].module, 55u);
  EXPECT_EQ(modules[0].bytes, 1234u);
  const auto functions = out_.all<sonde_object_function_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_FUNCTION);
  ASSERT_EQ(functions.size(), 1u);
  EXPECT_EQ(functions[0].function, 66u);
  EXPECT_EQ(text_of(functions[0].name), "f");
}

TEST_P(DecodeVersions, ManagedMemoryKeepsItsFields) {
  use(GetParam());
  ActivityBuffer buffer(GetParam());
  UnifiedMemoryActivity in = {};
  in.kind = kind::kUnifiedMemoryCounter;
  in.counter = kCounterBytesHostToDevice;
  in.value = 65536;
  in.start = 1, in.end = 2;
  in.address = 0x1000;
  in.source = 9, in.destination = 2, in.process = 123;
  in.flags = 3;  // prefetch
  buffer.add(in);
  in.counter = kCounterBytesDeviceToHost;
  in.source = 2;
  in.flags = 4;  // eviction
  buffer.add(in);
  in.counter = kCounterCpuPageFault;
  in.value = 0xDEADBEEF;  // a program counter, not a count
  buffer.add(in);
  in.counter = kCounterGpuPageFault;
  in.value = 5;
  in.flags = 2;  // write
  buffer.add(in);
  in.counter = kCounterThrashing;
  in.flags = kFlagThrashingInCpu;
  in.value = 4096;
  buffer.add(in);
  in.counter = kCounterRemoteMap;
  in.destination = 1;
  buffer.add(in);
  EXPECT_EQ(run(buffer).records, 6u);

  const auto moves = out_.all<sonde_device_migration_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_MIGRATION);
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].source, UINT32_MAX);
  EXPECT_EQ(moves[0].destination, 2u);
  EXPECT_EQ(moves[0].bytes, 65536u);
  EXPECT_EQ(moves[0].cause, 2u);
  EXPECT_EQ(moves[1].source, 2u);
  EXPECT_EQ(moves[1].destination, UINT32_MAX);
  EXPECT_EQ(moves[1].cause, 3u);
  const auto faults = out_.all<sonde_device_page_fault_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_PAGE_FAULT);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].processor, UINT32_MAX);
  EXPECT_EQ(faults[0].count, 1u);
  EXPECT_EQ(faults[1].processor, 2u);
  EXPECT_EQ(faults[1].count, 5u);
  EXPECT_EQ(faults[1].access, 2u);
  const auto thrashes = out_.all<sonde_device_thrash_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_THRASH);
  ASSERT_EQ(thrashes.size(), 2u);
  EXPECT_EQ(thrashes[0].action, 0u);
  EXPECT_EQ(thrashes[0].processor, UINT32_MAX);
  EXPECT_EQ(thrashes[1].action, 2u);
  EXPECT_EQ(thrashes[1].processor, 1u);
}

INSTANTIATE_TEST_SUITE_P(Layouts, DecodeVersions,
                         ::testing::Values(kCupti11_6, kCupti11_8, kCupti12_0, kCupti12_8, kCupti13_0, kCupti13_1),
                         [](const auto &version) { return "Version" + std::to_string(version.param); });

TEST_F(Decode, ACallCarriesThePlainNameOfItsFunction) {
  ActivityBuffer buffer(kCupti13_0);
  ApiActivity call = {};
  call.kind = kind::kRuntime;
  call.callback = 211;
  call.start = 5, call.end = 9;
  call.thread = 4321, call.correlation = 77, call.result = 700;
  buffer.add(call);
  call.kind = kind::kDriver;
  call.callback = 442;
  buffer.add(call);
  call.callback = 9999;  // a call that the library has no name for
  buffer.add(call);
  EXPECT_EQ(run(buffer).records, 3u);
  const auto calls = out_.all<sonde_host_call_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(text_of(calls[0].function), "cudaLaunchKernel");
  EXPECT_EQ(text_of(calls[0].domain), "cuda.runtime");
  EXPECT_EQ(calls[0].thread, 4321u);
  EXPECT_EQ(calls[0].correlation, 77u);
  EXPECT_EQ(calls[0].result, 700);
  EXPECT_EQ(calls[0].header.time, 5u);
  EXPECT_EQ(calls[0].end, 9u);
  EXPECT_EQ(text_of(calls[1].function), "cuLaunchKernel");
  EXPECT_EQ(text_of(calls[1].domain), "cuda.driver");
  EXPECT_EQ(text_of(calls[2].function), "cuda.driver#9999");
}

TEST_F(Decode, AnOverheadIsACallOfItsOwnDomain) {
  ActivityBuffer buffer(kCupti13_0);
  OverheadActivity in = {};
  in.kind = kind::kOverhead;
  in.overhead = 7u << 16;
  in.object_kind = kObjectThread;
  in.object[0] = 1, in.object[1] = 99;
  in.start = 10, in.end = 30;
  buffer.add(in);
  EXPECT_EQ(run(buffer).records, 1u);
  const auto calls = out_.all<sonde_host_call_t>(SONDE_SPACE_HOST, SONDE_HOST_CALL);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(text_of(calls[0].domain), "cuda.overhead");
  EXPECT_EQ(text_of(calls[0].function), "activity_buffer_request");
  EXPECT_EQ(calls[0].thread, 99u);
}

TEST(PlainFunctionName, DropsWhatCuptiAddsAndKeepsWhatBelongsToTheName) {
  EXPECT_EQ(plain_function_name("cudaLaunchKernel_v7000", true), "cudaLaunchKernel");
  EXPECT_EQ(plain_function_name("cudaLaunchKernel_ptsz_v7000", true), "cudaLaunchKernel");
  EXPECT_EQ(plain_function_name("cudaLaunchKernelExC_v11060", true), "cudaLaunchKernelExC");
  EXPECT_EQ(plain_function_name("cuMemcpyHtoD_v2", false), "cuMemcpyHtoD_v2");
  EXPECT_EQ(plain_function_name("cuGraphLaunch_ptsz", false), "cuGraphLaunch");
  EXPECT_EQ(plain_function_name("_v1", true), "_v1");
}

TEST_F(Decode, AGraphLaunchKeepsA64BitStream) {
  ActivityBuffer buffer(kCupti13_0);
  GraphTraceActivity graph = {};
  graph.kind = kind::kGraphTrace;
  graph.correlation = 3, graph.start = 1, graph.end = 2, graph.graph = 8, graph.stream = 7;
  buffer.add(graph);
  DeviceGraphTraceActivity device = {};
  device.kind = kind::kDeviceGraphTrace;
  device.graph = 9;
  device.stream = 0x7f1234567890;
  buffer.add(device);
  EXPECT_EQ(run(buffer).records, 2u);
  const auto launches = out_.all<sonde_device_graph_launch_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_GRAPH_LAUNCH);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].correlation, 3u);
  EXPECT_EQ(launches[0].graph_exec, 8u);
  EXPECT_EQ(launches[1].stream, 0x7f1234567890u);
}

TEST_F(Decode, ImpossibleStampsPassThroughUnchanged) {
  ActivityBuffer buffer(kCupti13_0);
  buffer.add(test::kernel(0, 0, 1, "k"));                                    // the vendor could not take the time
  buffer.add(test::kernel(2000, 1000, 2, "k"));                              // reversed
  buffer.add(test::kernel(0x8000000000000000, 0x8000000000000000, 3, "k"));  // a sentinel
  buffer.add(test::kernel(500, 500, 4, "k"));                                // of no length
  EXPECT_EQ(run(buffer).records, 4u);
  const auto kernels = out_.all<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL);
  ASSERT_EQ(kernels.size(), 4u);
  EXPECT_EQ(kernels[0].header.time, 0u);
  EXPECT_EQ(kernels[0].end, 0u);
  EXPECT_EQ(kernels[0].correlation, 1u);
  EXPECT_EQ(kernels[1].header.time, 2000u);
  EXPECT_EQ(kernels[1].end, 1000u);
  EXPECT_EQ(kernels[2].header.time, 0x8000000000000000u);
  EXPECT_EQ(kernels[3].end, 500u);
}

TEST_F(Decode, AForeignKindIsSkippedAndCounted) {
  ActivityBuffer buffer(kCupti13_0);
  buffer.add(test::kernel(1, 2, 1, "k"));
  ActivityHeader foreign = {39};
  buffer.add(foreign);
  buffer.add(test::kernel(3, 4, 2, "k"));
  const DecodeCounts counts = run(buffer);
  EXPECT_EQ(counts.records, 2u);
  EXPECT_EQ(counts.unknown, 1u);
  EXPECT_EQ(counts.unknown_kind, 39u);
  EXPECT_EQ(counts.malformed, 0u);
}

TEST_F(Decode, AKindThatCannotBeWalkedEndsTheBufferAndIsCounted) {
  ActivityBuffer buffer(kCupti13_0);
  buffer.add(test::kernel(1, 2, 1, "k"));
  buffer.add(test::kernel(3, 4, 2, "k"));
  reinterpret_cast<ActivityHeader *>(buffer.data() + 216)->kind = 60;
  const DecodeCounts counts = run(buffer);
  EXPECT_EQ(counts.records, 1u);
  EXPECT_EQ(counts.unknown, 1u);
  EXPECT_EQ(counts.malformed, 1u);
}

TEST_F(Decode, ARecordThatIsCutOffIsCountedAndNotRead) {
  for (const size_t kept : {216u + 8u, 216u + 64u, 216u + 184u}) {
    ActivityBuffer buffer(kCupti13_0);
    buffer.add(test::kernel(1, 2, 1, "k"));
    buffer.add(test::kernel(3, 4, 2, "k"));
    buffer.cut(kept);
    const DecodeCounts counts = run(buffer);
    EXPECT_EQ(counts.records, 1u) << kept;
    EXPECT_EQ(counts.malformed, 1u) << kept;
  }
}

TEST_F(Decode, AnEmptyBufferGivesNothing) {
  ActivityBuffer buffer(kCupti13_0);
  uint64_t none = 0;
  const DecodeCounts counts = decoder_->decode(reinterpret_cast<uint8_t *>(&none), 0, everything(), 0, out_);
  EXPECT_EQ(counts.records + counts.unknown + counts.malformed, 0u);
}

// 24 kernels and 7 copies of one graph launch share its correlation and have no launch of their own.
TEST_F(Decode, NodesOfAGraphShareTheCorrelationOfTheirLaunch) {
  ActivityBuffer buffer(kCupti13_0);
  for (uint32_t i = 0; i < 24; ++i) {
    KernelActivity node = test::kernel(100 + i, 101 + i, 900, "node");
    node.graph = 5;
    node.graph_node = i + 1;
    buffer.add(node);
  }
  for (uint32_t i = 0; i < 7; ++i) {
    CopyActivity node = {};
    node.kind = kind::kMemcpy;
    node.correlation = 900;
    node.graph = 5;
    node.graph_node = 100 + i;
    buffer.add(node);
  }
  EXPECT_EQ(run(buffer).records, 31u);
  const auto kernels = out_.all<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL);
  ASSERT_EQ(kernels.size(), 24u);
  for (uint32_t i = 0; i < 24; ++i) {
    EXPECT_EQ(kernels[i].correlation, 900u);
    EXPECT_EQ(kernels[i].graph_exec, 5u);
    EXPECT_EQ(kernels[i].graph_node, i + 1);
  }
  const auto copies = out_.all<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY);
  ASSERT_EQ(copies.size(), 7u);
  EXPECT_EQ(copies[6].correlation, 900u);
}

TEST_F(Decode, KernelsMayShareACorrelationOrHaveNone) {
  ActivityBuffer buffer(kCupti13_0);
  buffer.add(test::kernel(1, 2, 6, "a"));
  buffer.add(test::kernel(3, 4, 6, "b"));
  buffer.add(test::kernel(5, 6, 0, "c"));
  EXPECT_EQ(run(buffer).records, 3u);
  const auto kernels = out_.all<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL);
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].correlation, 6u);
  EXPECT_EQ(kernels[1].correlation, 6u);
  EXPECT_EQ(kernels[2].correlation, 0u);
}

TEST_F(Decode, WhatTheSessionDoesNotWantIsNotWritten) {
  ActivityBuffer buffer(kCupti13_0);
  buffer.add(test::kernel(1, 2, 1, "k"));
  CopyActivity copy = {};
  copy.kind = kind::kMemcpy;
  buffer.add(copy);
  Wants wants;
  wants.add(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY);
  const DecodeCounts counts = run(buffer, wants);
  EXPECT_EQ(counts.records, 1u);
  EXPECT_EQ(counts.unwanted, 1u);
  EXPECT_TRUE(out_.all<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL).empty());
}

TEST_F(Decode, RecordsWithoutRoomAreLeftToTheOutputToCount) {
  out_.full = true;
  ActivityBuffer buffer(kCupti13_0);
  for (uint32_t i = 0; i < 5; ++i) buffer.add(test::kernel(i, i + 1, i, "k"));
  EXPECT_EQ(run(buffer).records, 5u);
  EXPECT_EQ(out_.lost, 5u);
}

TEST_F(Decode, ARecordOfAnUnknownOperationIsMalformed) {
  ActivityBuffer buffer(kCupti13_0);
  MemoryActivity memory = {};
  memory.kind = kind::kMemory;
  memory.operation = 7;
  buffer.add(memory);
  MemoryPoolActivity pool = {};
  pool.kind = kind::kMemoryPool;
  pool.operation = 9;
  buffer.add(pool);
  const DecodeCounts counts = run(buffer);
  EXPECT_EQ(counts.records, 0u);
  EXPECT_EQ(counts.malformed, 2u);
}

// A library that keeps tables of launches or nodes grows here; this one holds one name.
TEST_F(Decode, AMillionGraphKernelsNeedNoMemory) {
  constexpr uint32_t kPerBuffer = 10'000;
  ActivityBuffer buffer(kCupti13_0);
  for (uint32_t i = 0; i < kPerBuffer; ++i) {
    // The last tenth has zero or reversed stamps, as after the vendor's failure.
    const bool bad = i >= kPerBuffer / 10 * 9;
    KernelActivity node = test::kernel(bad && i % 2 == 0 ? 0 : 1000 + i, bad ? 0 : 1001 + i, 17, "node");
    node.graph = 5;
    node.graph_node = i;
    buffer.add(node);
  }
  struct CountingOutput final : RecordOutput {
    std::vector<uint8_t> run = std::vector<uint8_t>(1 << 16);
    bool refill(uint32_t) override {
      cursor_ = run.data();
      limit_ = cursor_ + run.size();
      return true;
    }
  } out;
  uint64_t records = 0;
  const auto pass = [&] { records += decoder_->decode(buffer.data(), buffer.size(), everything(), 0, out).records; };
  pass();
  rusage before = {};
  getrusage(RUSAGE_SELF, &before);
  for (int i = 1; i < 100; ++i) pass();
  rusage after = {};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(records, 1'000'000u);
  EXPECT_EQ(decoder_->names(), 1u);
  EXPECT_LE(after.ru_maxrss - before.ru_maxrss, 1024);  // KiB
}

TEST(NameCache, TellsANewTextAtAnOldAddress) {
  NameCache cache(test::fake_capture());
  char text[] = "first";
  const sonde_string_t first = cache.find(text);
  EXPECT_EQ(text_of(first), "first");
  cache.begin_buffer();
  EXPECT_EQ(cache.find(text), first);
  std::memcpy(text, "other", sizeof(text));
  cache.begin_buffer();
  EXPECT_EQ(text_of(cache.find(text)), "other");
  EXPECT_EQ(cache.size(), 1u);
}

TEST(NameCache, GivesOneIdToOneTextAtTwoAddresses) {
  NameCache cache(test::fake_capture());
  const std::string a = "same";
  const std::string b = "same";
  EXPECT_EQ(cache.find(a.c_str()), cache.find(b.c_str()));
  EXPECT_EQ(cache.find(nullptr), 0u);
}

TEST(NameCache, KeepsALongName) {
  NameCache cache(test::fake_capture());
  const std::string name = "_Z" + std::string(30'000, 'x');
  EXPECT_EQ(text_of(cache.find(name.c_str())), name);
}

TEST(NameCache, StaysBoundedWhenAProgramLoadsMoreAndMore) {
  NameCache cache(test::fake_capture());
  std::vector<char> names(4 * NameCache::kMostNames);
  for (size_t i = 0; i + 1 < names.size(); i += 2) {
    names[i] = 'n';
    cache.find(&names[i]);
  }
  EXPECT_LE(cache.size(), NameCache::kMostNames);
  EXPECT_EQ(text_of(cache.find(&names[0])), "n");
}

TEST(CorrelationWidener, CountsOnWhenTheCounterWraps) {
  CorrelationWidener widener;
  EXPECT_EQ(widener.widen(0xFFFFFFF0u), 0xFFFFFFF0u);
  EXPECT_EQ(widener.widen(0xFFFFFFFFu), 0xFFFFFFFFu);
  EXPECT_EQ(widener.widen(5), 0x100000005u);
  // A record that finished late still belongs before the wrap.
  EXPECT_EQ(widener.widen(0xFFFFFFF8u), 0xFFFFFFF8u);
  EXPECT_EQ(widener.widen(6), 0x100000006u);
  EXPECT_EQ(widener.widen(0), 0u);
}

TEST(CorrelationWidener, KeepsIdsFromBeforeTheFirstOneSeen) {
  CorrelationWidener widener;
  EXPECT_EQ(widener.widen(100), 100u);
  EXPECT_EQ(widener.widen(3), 3u);
  EXPECT_EQ(widener.widen(101), 101u);
}

}  // namespace
}  // namespace sonde::cuda
