// Peaks, pools, address reuse, frees that match nothing.
#include "capture.h"

namespace sonde::workload {
namespace {

class MemoryTest : public WorkloadTest {
 protected:
  // The row of a level.
  static std::string level(std::string_view name, std::string_view column) {
    return cell("memory", "level", name, column);
  }
};

constexpr uint64_t kMiB = 1024 * 1024;

TEST_F(MemoryTest, ThePeakIsTheMostAtOneTime) {
  // 100, 300 (peak at 20), 200, 250, 50.
  Capture capture;
  capture.allocate(0x1000, 100, 10)
      .allocate(0x2000, 200, 20)
      .free(0x1000, 30)
      .allocate(0x3000, 50, 40)
      .free(0x2000, 50);
  run(capture);
  EXPECT_EQ(level("allocation", "peak"), "300");
  EXPECT_EQ(level("allocation", "peak_time"), "10") << "since the first record, which is at 10";
  EXPECT_EQ(level("allocation", "allocations"), "3");
  EXPECT_EQ(level("allocation", "frees"), "2");
  EXPECT_EQ(level("allocation", "allocated"), "350");
  EXPECT_EQ(level("allocation", "largest"), "200");
  EXPECT_EQ(level("allocation", "live"), "1");
  EXPECT_EQ(level("allocation", "live_bytes"), "50");
  EXPECT_EQ(workload->peak_bytes(0), 300u);
}

TEST_F(MemoryTest, ThePeakDoesNotDependOnTheOrderOfArrival) {
  // The free comes in a later batch than the allocation that follows it in time.
  Capture allocations, frees;
  allocations.allocate(0x1000, 100, 10).allocate(0x2000, 200, 30);
  frees.free(0x1000, 20).free(0x2000, 40);
  run({&allocations, &frees});
  EXPECT_EQ(level("allocation", "peak"), "200");
  EXPECT_EQ(level("allocation", "live"), "0");
  EXPECT_EQ(finding("live_memory").verdict, SONDE_VERDICT_OK);
}

TEST_F(MemoryTest, BytesAreBinaryUnitsInText) {
  // 81,352,720,384 bytes are 75.77 GiB: an "80 GB" card, not 81 GiB.
  Capture capture;
  capture.allocate(0x1000, 81'352'720'384, 10);
  run(capture);
  EXPECT_EQ(level("allocation", "peak"), "81352720384");
  EXPECT_NE(finding("live_memory").message.find("75.77 GiB"), std::string::npos) << finding("live_memory").message;
}

TEST_F(MemoryTest, AnAddressThatIsUsedAgainIsAnotherRange) {
  Capture capture;
  capture.allocate(0x1000, 1024, 10).free(0x1000, 20).allocate(0x1000, 2048, 30).free(0x1000, 40);
  run(capture);
  EXPECT_EQ(level("allocation", "peak"), "2048");
  EXPECT_EQ(level("allocation", "live_bytes"), "0");
  EXPECT_EQ(level("allocation", "replaced"), "0");
}

TEST_F(MemoryTest, ARangeWhoseFreeWasNotSeenIsReplaced) {
  Capture capture;
  capture.allocate(0x1000, 1024, 10).allocate(0x1000, 2048, 30);
  run(capture);
  EXPECT_EQ(level("allocation", "peak"), "2048") << "not 3072: one address cannot hold both";
  EXPECT_EQ(level("allocation", "replaced"), "1");
  EXPECT_EQ(level("allocation", "live"), "1");
}

TEST_F(MemoryTest, AFreeThatMatchesNothingIsCounted) {
  // The address of a variable was passed instead of the pointer.
  Capture capture;
  capture.allocate(0x1000, 64, 10).free(0x7ffc919e0000, 20).free(0x1000, 30).free(0x1000, 40);
  run(capture);
  EXPECT_EQ(level("allocation", "frees"), "3");
  EXPECT_EQ(level("allocation", "unmatched_frees"), "2");
  EXPECT_EQ(level("allocation", "live"), "0");
}

TEST_F(MemoryTest, AFreeThatNamesAnotherDeviceOrKindFindsItsRange) {
  Capture capture;
  capture.allocate(0x1000, 64, 10, 1).free(0x1000, 20, 0, SONDE_MEMORY_UNKNOWN);
  run(capture);
  ASSERT_EQ(table("memory").rows.size(), 1u);
  EXPECT_EQ(level("allocation", "device"), "1");
  EXPECT_EQ(level("allocation", "live"), "0");
  EXPECT_EQ(level("allocation", "other_device_frees"), "1");
}

TEST_F(MemoryTest, EqualAddressesOfTwoDevicesAreTwoRanges) {
  Capture capture;
  capture.allocate(0x1000, 64, 10, 0).allocate(0x1000, 32, 20, 1).free(0x1000, 30, 1);
  run(capture);
  EXPECT_EQ(cell("memory", "device", "0", "live_bytes"), "64");
  EXPECT_EQ(cell("memory", "device", "0", "replaced"), "0");
  EXPECT_EQ(cell("memory", "device", "1", "live_bytes"), "0");
}

TEST_F(MemoryTest, MappedAndHandedOutBytesAreTwoLevels) {
  // 20 MiB mapped, 1 MiB of it handed out, nothing unmapped.
  Capture capture;
  capture.map(SONDE_MEMORY_MAP, 0x10000000, 20 * kMiB, 10)
      .allocate(0x10000000, kMiB, 20, 0, SONDE_MEMORY_DEVICE, SONDE_MEMORY_SUB_ALLOCATE);
  run(capture);
  EXPECT_EQ(level("mapping", "peak"), std::to_string(20 * kMiB));
  EXPECT_EQ(level("sub_allocation", "peak"), std::to_string(kMiB));
}

TEST_F(MemoryTest, APoolHasUsedAndReservedPeaks) {
  Capture capture;
  capture.pool(SONDE_MEMORY_POOL_CREATE, 1, 0, 0, 5)
      .pool(SONDE_MEMORY_POOL_TRIM, 1, 32 * kMiB, 9 * kMiB, 10)
      .pool(SONDE_MEMORY_POOL_TRIM, 1, 32 * kMiB, 0, 20)  // freed, still held
      .pool(SONDE_MEMORY_POOL_TRIM, 1, 0, 0, 30);
  run(capture);
  EXPECT_EQ(level("pool", "peak"), std::to_string(9 * kMiB));
  EXPECT_EQ(level("pool", "reserved_peak"), std::to_string(32 * kMiB));
  EXPECT_EQ(level("pool", "live"), "1");
}

TEST_F(MemoryTest, ABlockMayBeFreedAfterItsPool) {
  Capture capture;
  capture.pool(SONDE_MEMORY_POOL_CREATE, 1, kMiB, 0, 5)
      .allocate(0x1000, 64, 10)
      .pool(SONDE_MEMORY_POOL_DESTROY, 1, 0, 0, 20)
      .free(0x1000, 30)
      .pool(SONDE_MEMORY_POOL_DESTROY, 9, 0, 0, 40);  // a pool that was never seen
  run(capture);
  EXPECT_EQ(level("allocation", "live"), "0");
  EXPECT_EQ(level("pool", "live"), "0");
  EXPECT_EQ(level("pool", "frees"), "2");
  EXPECT_EQ(level("pool", "unmatched_frees"), "1");
}

TEST_F(MemoryTest, WhatIsLeftAtTheEndIsANoteAndNoLeak) {
  Capture capture;
  capture.allocate(0x1000, 2 * kMiB, 10);
  run(capture);
  const auto live = finding("live_memory");
  EXPECT_EQ(live.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(live.severity, SONDE_SEVERITY_NOTE);
  EXPECT_EQ(live.message, "1 allocation of 2.00 MiB had not been freed when the capture ended.");
}

TEST_F(MemoryTest, HostMemoryIsNotPartOfADevicesPeak) {
  Capture capture;
  capture.allocate(0x1000, 100, 10, 0, SONDE_MEMORY_PINNED).allocate(0x9000, 30, 20, 0, SONDE_MEMORY_MANAGED);
  run(capture);
  EXPECT_EQ(workload->peak_bytes(0), 30u);
  EXPECT_EQ(cell("memory", "kind", "pinned", "peak"), "100");
}

TEST_F(MemoryTest, TheTimelineKeepsItsBoundAndThePeak) {
  options.timeline_rows = 8;
  Capture capture;
  for (uint64_t i = 0; i < 1000; ++i) {
    capture.allocate(0x1000 + i * 0x100, i == 500 ? 777 : 10, 10 * i).free(0x1000 + i * 0x100, 10 * i + 5);
  }
  run(capture);
  const auto &timeline = table("memory_timeline");
  EXPECT_LE(timeline.rows.size(), 8u);
  int64_t peak = 0;
  for (size_t row = 0; row < timeline.rows.size(); ++row) peak = std::max(peak, timeline.at(row, "peak").i64);
  EXPECT_EQ(peak, 777);
  EXPECT_EQ(timeline.at(timeline.rows.size() - 1, "bytes").i64, 0);
}

// A tensor of the host has no device number: UINT32_MAX stands for the host in its records.
TEST_F(MemoryTest, MemoryOfTheHostHasNoDeviceNumber) {
  Capture capture;
  capture.builder.add<sonde_framework_tensor_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_TENSOR_ALLOCATE, kStart + 1,
                                                [](auto &r) {
                                                  r.address = 4096;
                                                  r.bytes = 100;
                                                  r.device = UINT32_MAX;
                                                });
  run(capture);
  EXPECT_EQ(cell("memory", "level", "tensor", "device"), "");
  EXPECT_EQ(cell("memory", "level", "tensor", "kind"), "host");
  EXPECT_EQ(cell("memory_timeline", "level", "tensor", "device"), "");
}

}  // namespace
}  // namespace sonde::workload
