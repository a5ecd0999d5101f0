// Managed memory's events tied to ranges and kernels, on streams made by hand; the expected numbers are counted beside.
#include <gtest/gtest.h>

#include <random>

#include <sonde/spaces/device.h>
#include <sonde/spaces/framework.h>
#include <sonde/spaces/memory.h>
#include <sonde/toolkit/managed_join.h>

namespace sonde::toolkit {
namespace {

ManagedEvent migration(int64_t begin, int64_t end, uint64_t address, uint64_t bytes, uint32_t device = 0) {
  ManagedEvent event;
  event.kind = ManagedKind::kMigration;
  event.begin = begin;
  event.end = end;
  event.address = address;
  event.bytes = bytes;
  event.device = device;
  return event;
}

std::vector<uint64_t> ids(const std::vector<TouchedRange> &ranges) {
  std::vector<uint64_t> out;
  for (const TouchedRange &range : ranges) out.push_back(range.id);
  return out;
}

TEST(ManagedJoin, AnEventBelongsToWhatItsAddressMeantThen) {
  ManagedRecords records;
  records.allocate(0x1000, 0x1000, 10);
  records.free(0x1000, 20);
  records.allocate(0x1000, 0x1000, 20);  // the same address at once, another allocation
  records.event(migration(15, 16, 0x1800, 0x100));
  records.event(migration(20, 21, 0x1800, 0x100));
  records.event(migration(5, 6, 0x1800, 0x100));  // before both
  const ManagedJoin join = records.join();
  ASSERT_EQ(join.links.size(), 3u);
  EXPECT_TRUE(join.links[0].allocations.empty());
  EXPECT_EQ(ids(join.links[1].allocations), std::vector<uint64_t>{1});
  EXPECT_EQ(ids(join.links[2].allocations), std::vector<uint64_t>{2});
  EXPECT_EQ(join.allocations[0].end, 20);
  EXPECT_EQ(join.allocations[1].end, Lifetime::kAlive);
  EXPECT_EQ(join.unmatched_frees, 0u);
}

TEST(ManagedJoin, APageThatTwoTensorsShareBelongsToBothByBytes) {
  ManagedRecords records;
  records.allocate(0x10000, 0x10000, 0);
  records.tensor(0x10000, 0x1800, 1);
  records.tensor(0x11800, 0x0400, 1);
  records.tensor(0x14000, 0x1000, 1);
  records.event(migration(2, 3, 0x11000, 0x1000));  // 0x11000 to 0x12000
  const ManagedLink link = records.join().links.at(0);
  ASSERT_EQ(link.tensors.size(), 2u);
  EXPECT_EQ(link.tensors[0].id, 1u);
  EXPECT_EQ(link.tensors[0].bytes, 0x800u);
  EXPECT_EQ(link.tensors[1].id, 2u);
  EXPECT_EQ(link.tensors[1].bytes, 0x400u);
  ASSERT_EQ(link.allocations.size(), 1u);
  EXPECT_EQ(link.allocations[0].bytes, 0x1000u);
}

TEST(ManagedJoin, AFaultWithoutBytesBelongsToTheRangeAroundIt) {
  ManagedRecords records;
  records.tensor(0x1000, 0x10, 0);
  records.event(migration(1, 1, 0x100f, 0));
  records.event(migration(2, 2, 0x1010, 0));  // one past the end
  const ManagedJoin join = records.join();
  EXPECT_EQ(ids(join.links[0].tensors), std::vector<uint64_t>{1});
  EXPECT_EQ(join.links[0].tensors[0].bytes, 1u);
  EXPECT_TRUE(join.links[1].tensors.empty());
}

TEST(ManagedJoin, KernelsShareTheTimeThatTheyRunTogether) {
  ManagedRecords records;
  records.kernel(0, 150, 0);    // runs during [100, 150) of the event
  records.kernel(125, 400, 0);  // runs during [125, 200)
  records.kernel(200, 300, 0);  // begins when the event ends
  records.kernel(120, 130, 1);  // another device
  records.event(migration(100, 200, 0, 1));
  const ManagedLink link = records.join().links.at(0);
  ASSERT_EQ(link.kernels.size(), 2u);
  // Alone for 25 of 100, together for 25, then the second alone for 50.
  EXPECT_DOUBLE_EQ(link.kernels[0].overlap, 0.50);
  EXPECT_DOUBLE_EQ(link.kernels[0].confidence, 0.25 + 0.125);
  EXPECT_DOUBLE_EQ(link.kernels[1].overlap, 0.75);
  EXPECT_DOUBLE_EQ(link.kernels[1].confidence, 0.125 + 0.50);
}

TEST(ManagedJoin, TimeWithoutAKernelIsNobodys) {
  ManagedRecords records;
  records.kernel(0, 10, 0);
  records.event(migration(5, 25, 0, 1));
  const ManagedLink link = records.join().links.at(0);
  ASSERT_EQ(link.kernels.size(), 1u);
  EXPECT_DOUBLE_EQ(link.kernels[0].confidence, 0.25);
}

TEST(ManagedJoin, AMomentBelongsToTheKernelsThatRunThen) {
  ManagedRecords records;
  records.kernel(0, 10, 0);
  records.kernel(10, 20, 0);
  records.event(migration(10, 10, 0, 0));
  const ManagedLink link = records.join().links.at(0);
  ASSERT_EQ(link.kernels.size(), 1u);
  EXPECT_EQ(link.kernels[0].kernel, 1u);
  EXPECT_DOUBLE_EQ(link.kernels[0].confidence, 1.0);
}

TEST(ManagedJoin, TheCpusEventsAreNoKernels) {
  ManagedRecords records;
  records.kernel(0, 10, 0);
  records.event(migration(1, 2, 0, 1, kCpu));
  records.event(migration(1, 2, 0, 1, kAnyDevice));
  const ManagedJoin join = records.join();
  EXPECT_TRUE(join.links[0].kernels.empty());
  EXPECT_EQ(join.links[1].kernels.size(), 1u);
}

TEST(ManagedJoin, FreesAndRangesThatDoNotMatchAreCounted) {
  ManagedRecords records;
  records.free(0x9000, 1);
  records.allocate(0x1000, 0x1000, 2);
  records.allocate(0x1800, 0x1000, 3);  // over the first, whose free was lost
  records.end_tensor(0x1000, 4);
  const ManagedJoin join = records.join();
  EXPECT_EQ(join.unmatched_frees, 2u);
  EXPECT_EQ(join.replaced, 1u);
  EXPECT_EQ(join.allocations[0].end, 3);
}

TEST(ManagedJoin, TheLastByteOfTheAddressSpaceDoesNotWrap) {
  ManagedRecords records;
  records.allocate(UINT64_MAX - 15, 16, 0);
  records.event(migration(1, 2, UINT64_MAX - 7, 4096));
  const ManagedLink link = records.join().links.at(0);
  ASSERT_EQ(link.allocations.size(), 1u);
  EXPECT_EQ(link.allocations[0].bytes, 8u);
}

// ---- records -------------------------------------------------------------------------------------------------------

template <typename Record>
Record made(uint16_t space, uint16_t type, uint64_t time) {
  Record record = {};
  SONDE_RECORD_INIT(&record, space, type, time);
  return record;
}

TEST(ManagedJoin, RecordsOfACaptureAreRead) {
  const auto ns = [](uint64_t raw) { return static_cast<int64_t>(raw * 2); };  // a clock of half nanoseconds
  ManagedRecords records;
  auto allocate = made<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, 1);
  allocate.address = 0x100000;
  allocate.bytes = 0x10000;
  EXPECT_TRUE(records.add(&allocate.header, ns));
  auto tensor = made<sonde_framework_tensor_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_TENSOR_ALLOCATE, 2);
  tensor.address = 0x100000;
  tensor.bytes = 0x1000;
  EXPECT_TRUE(records.add(&tensor.header, ns));
  auto kernel = made<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, 10);
  kernel.end = 30;
  EXPECT_TRUE(records.add(&kernel.header, ns));
  auto fault = made<sonde_device_page_fault_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_PAGE_FAULT, 15);
  fault.end = 20;
  fault.address = 0x100800;
  fault.count = 32;
  EXPECT_TRUE(records.add(&fault.header, ns));
  auto there = made<sonde_device_migration_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_MIGRATION, 16);
  there.end = 18;
  there.address = 0x100000;
  there.bytes = 0x1000;
  there.source = UINT32_MAX;
  there.cause = 1;
  EXPECT_TRUE(records.add(&there.header, ns));
  auto evicted = made<sonde_device_migration_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_MIGRATION, 22);
  evicted.end = 24;
  evicted.address = 0x100000;
  evicted.bytes = 0x1000;
  evicted.destination = UINT32_MAX;
  evicted.cause = 3;  // the device needs the room
  EXPECT_TRUE(records.add(&evicted.header, ns));
  auto back = evicted;
  back.header.time = 26;
  back.end = 28;
  back.cause = 1;  // the CPU touched it
  EXPECT_TRUE(records.add(&back.header, ns));
  auto set = made<sonde_device_set_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_SET, 3);
  EXPECT_FALSE(records.add(&set.header, ns));

  const ManagedJoin join = records.join();
  ASSERT_EQ(join.links.size(), 4u);
  EXPECT_EQ(join.events[0].begin, 30);
  EXPECT_EQ(join.events[0].end, 40);
  EXPECT_EQ(join.events[0].count, 32u);
  for (const ManagedLink &link : join.links) EXPECT_EQ(ids(link.tensors), std::vector<uint64_t>{1});
  EXPECT_EQ(join.links[0].kernels.size(), 1u);
  EXPECT_EQ(join.links[1].kernels.size(), 1u);
  EXPECT_EQ(join.links[2].kernels.size(), 1u);
  EXPECT_TRUE(join.links[3].kernels.empty());
}

// ---- against a naive version ---------------------------------------------------------------------------------------

TEST(ManagedJoin, AgreesWithCountingEveryNanosecond) {
  std::mt19937 random(7);
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  for (int round = 0; round < 200; ++round) {
    ManagedRecords records;
    std::vector<KernelSpan> kernels;
    for (int i = 0; i < 6; ++i) {
      const int64_t begin = up_to(50);
      const int64_t end = begin + up_to(20);
      const auto device = static_cast<uint32_t>(up_to(2));
      kernels.push_back({begin, end, device, 0});
      records.kernel(begin, end, device);
    }
    for (int i = 0; i < 6; ++i) {
      const int64_t begin = up_to(60);
      records.event(migration(begin, begin + 1 + up_to(10), 0, 1, static_cast<uint32_t>(up_to(2))));
    }
    const ManagedJoin join = records.join();
    for (const ManagedLink &link : join.links) {
      const ManagedEvent &event = join.events[link.event];
      double all = 0;
      for (const RunningKernel &kernel : link.kernels) all += kernel.confidence;
      double expected = 0;
      for (int64_t at = event.begin; at < event.end; ++at) {
        bool any = false;
        for (const KernelSpan &kernel : kernels) {
          any |= kernel.device == event.device && kernel.begin <= at && at < kernel.end;
        }
        expected += any ? 1.0 / static_cast<double>(event.end - event.begin) : 0;
      }
      EXPECT_NEAR(all, expected, 1e-9);
    }
  }
}

}  // namespace
}  // namespace sonde::toolkit
