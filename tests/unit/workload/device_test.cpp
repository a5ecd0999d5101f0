// Busy and idle time, gaps, overlap, streams.
#include "capture.h"

namespace sonde::workload {
namespace {

class DeviceTest : public WorkloadTest {};

TEST_F(DeviceTest, BusyTimeCountsEachInstantOnceAndIdleIsTheRest) {
  // Union of [0,100) [50,150) [200,250): 150 + 50 = 200 of a span of 250; the one gap is [150,200).
  Capture capture;
  capture.kernel("a", 0, 100).kernel("b", 50, 150, {.stream = 8}).kernel("a", 200, 250);
  run(capture);
  EXPECT_EQ(cell("devices", "device", "0", "span"), "250");
  EXPECT_EQ(cell("devices", "device", "0", "busy"), "200");
  EXPECT_EQ(cell("devices", "device", "0", "idle"), "50");
  EXPECT_EQ(table("devices").at(0, "idle_share").f64, 0.2);
  EXPECT_EQ(cell("devices", "device", "0", "gaps"), "1");
  EXPECT_EQ(cell("gaps", "rank", "1", "begin"), "150");
  EXPECT_EQ(cell("gaps", "rank", "1", "length"), "50");
  EXPECT_EQ(cell("gaps", "rank", "1", "before"), "b");
  EXPECT_EQ(cell("gaps", "rank", "1", "after"), "a");
  EXPECT_DOUBLE_EQ(workload->idle_share(0), 0.2);
}

TEST_F(DeviceTest, ConcurrencySaysHowLongHowManyKernelsRan) {
  Capture capture;
  capture.kernel("a", 0, 100).kernel("b", 50, 150, {.stream = 8}).kernel("a", 200, 250);
  run(capture);
  // One: [0,50) [100,150) [200,250); two: [50,100); none: [150,200).
  EXPECT_EQ(cell("concurrency", "kernels", "0", "time"), "50");
  EXPECT_EQ(cell("concurrency", "kernels", "1", "time"), "150");
  EXPECT_EQ(cell("concurrency", "kernels", "2", "time"), "50");
  EXPECT_EQ(table("concurrency").rows.size(), 3u);
}

TEST_F(DeviceTest, OrderOfArrivalDoesNotMatter) {
  Capture capture;
  capture.kernel("a", 200, 250).kernel("b", 50, 150, {.stream = 8}).kernel("a", 0, 100);
  run(capture);
  EXPECT_EQ(cell("devices", "device", "0", "busy"), "200");
  EXPECT_EQ(cell("devices", "device", "0", "late"), "0");
}

TEST_F(DeviceTest, WhatComesTooLateIsCountedNotHidden) {
  options.reorder_records = 1;
  Capture capture;
  // When [10,30) comes, [100,200) has been put in order already: all 20 are missing from busy time.
  capture.kernel("a", 100, 200).kernel("a", 300, 400).kernel("a", 500, 600).kernel("late", 10, 30);
  run(capture);
  EXPECT_EQ(cell("devices", "device", "0", "late"), "1");
  EXPECT_EQ(cell("devices", "device", "0", "late_time"), "20");
  EXPECT_EQ(cell("devices", "device", "0", "busy"), "300");
  EXPECT_EQ(finding("complete").verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(finding("complete").evidence["late"].i64, 1);
}

TEST_F(DeviceTest, AKernelThatRunsPastTheNextOnItsStreamIsNotCountedTwice) {
  // 1.6 s and, on the same stream, a kernel from 100 us to 200 us: busy is 1.6 s, the overlap 100 us.
  Capture capture;
  capture.kernel("stalled", 0, 1'600'000'000).kernel("next", 100'000, 200'000);
  run(capture);
  EXPECT_EQ(cell("devices", "device", "0", "busy"), "1600000000");
  EXPECT_EQ(cell("streams", "stream", "7", "total"), "1600100000");
  EXPECT_EQ(cell("streams", "stream", "7", "busy"), "1600000000");
  EXPECT_EQ(cell("streams", "stream", "7", "overlap"), "100000");
  const auto overlap = finding("stream_overlap");
  EXPECT_EQ(overlap.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(overlap.severity, SONDE_SEVERITY_NOTE) << "overlap on one stream is legal";
  EXPECT_EQ(overlap.evidence.at("overlap").i64, 100'000);
}

TEST_F(DeviceTest, ADeviceIsNotBusyBeforeItsFirstKernel) {
  // The host's task begins at 0, the first kernel at 10 ms.
  Capture capture;
  capture.push("task", 0).kernel("a", 10'000'000, 11'000'000).pop(12'000'000);
  run(capture);
  EXPECT_EQ(cell("devices", "device", "0", "busy"), "1000000");
  EXPECT_EQ(cell("devices", "device", "0", "span"), "1000000");
  EXPECT_EQ(cell("devices", "device", "0", "before_first"), "10000000");
}

TEST_F(DeviceTest, LengthZeroIsATimeAndImpossibleStampsAreNone) {
  Capture capture;
  capture.kernel("zero", 50, 50).kernel("zero", 60, 80);
  capture.kernel_at("none", 0, 0).builder.repaired(kStart, kStart, SONDE_REPAIR_ZERO);
  capture.kernel("none", 90, 70);  // reversed, the host has no entry for it
  capture.kernel("none", 100, 130);
  run(capture);
  EXPECT_EQ(cell("kernels", "kernel", "zero", "count"), "2");
  EXPECT_EQ(cell("kernels", "kernel", "zero", "untimed"), "0");
  EXPECT_EQ(cell("kernels", "kernel", "zero", "min"), "0");
  EXPECT_EQ(cell("kernels", "kernel", "none", "count"), "3");
  EXPECT_EQ(cell("kernels", "kernel", "none", "untimed"), "2");
  EXPECT_EQ(cell("kernels", "kernel", "none", "total"), "30");
  EXPECT_EQ(cell("kernels", "kernel", "none", "min"), "30");
  EXPECT_EQ(cell("devices", "device", "0", "busy"), "50");
  const auto invalid = finding("invalid_times");
  EXPECT_EQ(invalid.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(invalid.evidence.at("zero").i64, 1);
  EXPECT_EQ(invalid.evidence.at("reversed").i64, 1);
  EXPECT_EQ(invalid.evidence.at("device_records").i64, 2);
}

TEST_F(DeviceTest, AKernelWithoutAnyTimeHasEmptyTimes) {
  Capture capture;
  for (int i = 0; i < 3; ++i) capture.kernel_at("untimed", 0, 0).builder.repaired(kStart, kStart, SONDE_REPAIR_ZERO);
  run(capture);
  EXPECT_EQ(cell("kernels", "kernel", "untimed", "count"), "3");
  EXPECT_EQ(cell("kernels", "kernel", "untimed", "total"), "0");
  for (const char *const column : {"mean", "min", "p50", "p99", "max", "share"}) {
    EXPECT_EQ(table("kernels").at(0, column).kind, SONDE_VALUE_NONE) << column;
  }
  EXPECT_EQ(finding("idle_device").verdict, SONDE_VERDICT_UNSUPPORTED);
  EXPECT_FALSE(finding("idle_device").reason.empty());
}

TEST_F(DeviceTest, TwoDevicesAndTwoProcessesAreKeptApart) {
  Capture first(1), second(2);
  first.process(100).kernel("a", 0, 10, {.device = 0}).kernel("a", 0, 30, {.device = 1});
  second.process(200).kernel("a", 0, 50, {.device = 0});
  run({&first, &second});
  const auto &kernels = table("kernels");
  ASSERT_EQ(kernels.rows.size(), 3u);
  // By total time: 50, 30, 10.
  EXPECT_EQ(kernels.at(0, "process").str(), "200");
  EXPECT_EQ(kernels.at(1, "process").str(), "100");
  EXPECT_EQ(kernels.at(1, "device").str(), "1");
  EXPECT_EQ(kernels.at(2, "total").str(), "10");
  for (size_t row = 0; row < 3; ++row) EXPECT_EQ(kernels.at(row, "share").f64, 1.0);
  EXPECT_EQ(kernels.columns[kernels.column("process")].flags & SONDE_COLUMN_HIDDEN, 0u);
  EXPECT_EQ(table("devices").rows.size(), 3u);
  EXPECT_EQ(workload->kernel_count(), 3u);
  EXPECT_EQ(workload->kernel_ns(), 90);
}

TEST_F(DeviceTest, EqualProcessIdsOfTwoSourcesAreTwoRows) {
  Capture first(1), second(2);
  first.process(10001).kernel("a", 0, 10);
  second.process(10001).kernel("a", 0, 20);
  run({&first, &second});
  EXPECT_EQ(table("kernels").rows.size(), 2u);
  EXPECT_EQ(table("processes").rows.size(), 2u);
}

TEST_F(DeviceTest, DevicesAndStreamsShowTheirNames) {
  Capture capture;
  capture.device_named(0, "NVIDIA H200")
      .stream_named(7, "compute")
      .kernel("a", 0, 10)
      .kernel("a", 0, 10, {.stream = 8});
  run(capture);
  EXPECT_EQ(cell("devices", "device", "0", "name"), "NVIDIA H200");
  EXPECT_EQ(cell("streams", "stream", "7", "name"), "compute");
  EXPECT_EQ(cell("streams", "stream", "8", "name"), "");
}

TEST_F(DeviceTest, TheReplayingProcessIsNoPartOfTheRun) {
  Capture own(0), captured(1);
  own.process(1);
  captured.process(100).kernel("a", 0, 10);
  run({&own, &captured});
  ASSERT_EQ(table("processes").rows.size(), 1u);
  EXPECT_EQ(table("processes").at(0, "process").str(), "100");
}

TEST_F(DeviceTest, AProcessThatDidNothingIsShownWhenItIsAlone) {
  Capture own(0);
  own.process(1);
  run(own);
  EXPECT_EQ(table("processes").rows.size(), 1u);
}

TEST_F(DeviceTest, LongestGapsAreLimitedAndOrdered) {
  options.longest_gaps = 2;
  Capture capture;
  // Gaps of 10, 40, 20, 40.
  capture.kernel("a", 0, 10).kernel("a", 20, 30).kernel("a", 70, 80).kernel("a", 100, 110).kernel("a", 150, 160);
  run(capture);
  const auto &gaps = table("gaps");
  ASSERT_EQ(gaps.rows.size(), 2u);
  EXPECT_EQ(gaps.at(0, "begin").str(), "30") << "of equal ones the earlier comes first";
  EXPECT_EQ(gaps.at(1, "begin").str(), "110");
  // [8,16): 10; [16,32): 20; [32,64): 40 and 40.
  EXPECT_EQ(cell("gap_histogram", "from", "8", "gaps"), "1");
  EXPECT_EQ(cell("gap_histogram", "from", "16", "gaps"), "1");
  EXPECT_EQ(cell("gap_histogram", "from", "32", "gaps"), "2");
  EXPECT_EQ(cell("gap_histogram", "from", "32", "time"), "80");
}

TEST_F(DeviceTest, CopiesAndSetsKeepADeviceBusyToo) {
  Capture capture;
  capture.kernel("a", 0, 10).copy(SONDE_COPY_HOST_TO_DEVICE, 64, 10, 30, true).set(32, 30, 35).kernel("a", 40, 50);
  run(capture);
  EXPECT_EQ(cell("devices", "device", "0", "busy"), "45");
  EXPECT_EQ(cell("devices", "device", "0", "kernel_busy"), "20");
  EXPECT_EQ(cell("gaps", "rank", "1", "before"), "set");
  EXPECT_EQ(cell("streams", "stream", "7", "copies"), "1");
}

}  // namespace
}  // namespace sonde::workload
