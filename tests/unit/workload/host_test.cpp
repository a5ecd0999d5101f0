// Calls, scopes and what they launched.
#include "capture.h"

namespace sonde::workload {
namespace {

class HostTest : public WorkloadTest {};

TEST_F(HostTest, CallsAreSummedByFunction) {
  Capture capture;
  capture.call("cudaLaunchKernel", 0, 5, 1).call("cudaLaunchKernel", 10, 25, 2).call("cudaMalloc", 30, 130, 0, 1, 2);
  run(capture);
  EXPECT_EQ(table("apis").at(0, "function").text, "cudaMalloc") << "sorted by total time";
  EXPECT_EQ(cell("apis", "function", "cudaLaunchKernel", "count"), "2");
  EXPECT_EQ(cell("apis", "function", "cudaLaunchKernel", "total"), "20");
  EXPECT_EQ(cell("apis", "function", "cudaLaunchKernel", "errors"), "0");
  EXPECT_EQ(cell("apis", "function", "cudaMalloc", "errors"), "1");
}

TEST_F(HostTest, ACallThatWasNotMeasuredIsCountedAndNotBlamed) {
  Capture capture;
  capture.call("cudaLaunchKernel", 5, 0, 1);
  run(capture);
  EXPECT_EQ(cell("apis", "function", "cudaLaunchKernel", "count"), "1");
  EXPECT_EQ(cell("apis", "function", "cudaLaunchKernel", "untimed"), "1");
  EXPECT_EQ(finding("invalid_times").verdict, SONDE_VERDICT_OK);
}

TEST_F(HostTest, BeginsAndEndsArePairedByThreadAndCorrelation) {
  Capture capture;
  capture.call_begin("outer", 0, 1, 1).call_begin("inner", 2, 2, 1).call_begin("outer", 3, 9, 2);
  capture.call_end(5, 2, 1).call_end(10, 1, 1);
  capture.call_end(11, 77, 1);  // an end without a begin is data
  run(capture);
  EXPECT_EQ(cell("apis", "function", "outer", "count"), "2");
  EXPECT_EQ(cell("apis", "function", "outer", "total"), "10");
  EXPECT_EQ(cell("apis", "function", "outer", "unfinished"), "1");
  EXPECT_EQ(cell("apis", "function", "outer", "untimed"), "1");
  EXPECT_EQ(cell("apis", "function", "inner", "total"), "3");
  EXPECT_EQ(finding("complete").evidence.at("ends_without_begin").i64, 1);
}

TEST_F(HostTest, LatencyRunsFromTheCallToTheKernel) {
  // 100 - 0 = 100 and 250 - 200 = 50; the kernel of a graph does not count.
  Capture capture;
  capture.call("launch", 0, 5, 1).call("launch", 200, 205, 2).call("graphLaunch", 300, 305, 3);
  capture.kernel("a", 100, 110, {.correlation = 1}).kernel("a", 250, 260, {.correlation = 2});
  capture.kernel("a", 900, 910, {.correlation = 3, .graph = 1});
  run(capture);
  EXPECT_EQ(cell("launches", "device", "0", "joined"), "2");
  EXPECT_EQ(table("launches").at(0, "mean").f64, 75);
  EXPECT_EQ(cell("launches", "device", "0", "min"), "50");
  EXPECT_EQ(cell("launches", "device", "0", "max"), "100");
  EXPECT_EQ(finding("scope_device_time").verdict, SONDE_VERDICT_OK);
}

TEST_F(HostTest, AKernelThatSeemsToBeginBeforeItsLaunchIsKept) {
  Capture capture;
  capture.call("launch", 100, 105, 1).kernel("a", 90, 110, {.correlation = 1});
  run(capture);
  EXPECT_EQ(cell("launches", "device", "0", "min"), "-10");
}

TEST_F(HostTest, LaunchesJoinWhicheverRecordComesFirst) {
  Capture calls, kernels;
  calls.push("step", 0).call("launch", 10, 15, 1).pop(20);
  kernels.kernel("a", 100, 130, {.correlation = 1});
  run({&kernels, &calls});
  EXPECT_EQ(cell("scopes", "scope", "step", "device_time"), "30");
  testing::FakeHost::get().reset();
  Capture calls_again, kernels_again;
  calls_again.push("step", 0).call("launch", 10, 15, 1).pop(20);
  kernels_again.kernel("a", 100, 130, {.correlation = 1});
  run({&calls_again, &kernels_again});
  EXPECT_EQ(cell("scopes", "scope", "step", "device_time"), "30");
}

TEST_F(HostTest, DeviceTimeBelongsToEveryScopeThatWasOpenAndOnceToEach) {
  Capture capture;
  capture.push("train", 0).push("forward", 10).push("forward", 12);  // nested in one of the same name
  capture.call("launch", 15, 16, 1).pop(20).pop(30);
  capture.call("launch", 35, 36, 2).pop(40);
  capture.call("launch", 50, 51, 3);     // outside
  capture.call("launch", 15, 16, 4, 2);  // another thread
  for (uint64_t i = 1; i <= 4; ++i) capture.kernel("k", 100 * i, 100 * i + i, {.correlation = i});
  run(capture);
  EXPECT_EQ(cell("scopes", "scope", "train", "count"), "1");
  EXPECT_EQ(cell("scopes", "scope", "train", "total"), "40");
  EXPECT_EQ(cell("scopes", "scope", "train", "kernels"), "2");
  EXPECT_EQ(cell("scopes", "scope", "train", "device_time"), "3");
  EXPECT_EQ(cell("scopes", "scope", "train", "self_device_time"), "2");
  EXPECT_EQ(cell("scopes", "scope", "forward", "count"), "2");
  EXPECT_EQ(cell("scopes", "scope", "forward", "total"), "28") << "8 + 20";
  EXPECT_EQ(cell("scopes", "scope", "forward", "kernels"), "1") << "not once for each nesting";
  EXPECT_EQ(cell("scopes", "scope", "forward", "device_time"), "1");
}

TEST_F(HostTest, ScopesOfOtherThreadsArriveInAnyOrder) {
  // Each thread's records come in a batch of their own, the launch before the scope that it belongs to.
  Capture launches, scopes;
  launches.call("launch", 15, 16, 1, 5);
  scopes.push("late", 10, 5).pop(20, 5);
  Capture kernels;
  kernels.kernel("k", 50, 57, {.correlation = 1});
  run({&launches, &kernels, &scopes});
  EXPECT_EQ(cell("scopes", "scope", "late", "device_time"), "7");
}

TEST_F(HostTest, WithoutLaunchesScopesSayThatDeviceTimeIsNotKnown) {
  Capture capture;
  capture.push("step", 0).kernel("a", 10, 20).pop(30);
  run(capture);
  EXPECT_EQ(cell("scopes", "scope", "step", "total"), "30");
  EXPECT_EQ(table("scopes").at(0, "device_time").kind, SONDE_VALUE_NONE);
  EXPECT_EQ(finding("scope_device_time").verdict, SONDE_VERDICT_UNSUPPORTED);
}

TEST_F(HostTest, KernelsWithoutCorrelationAreCountedAsSuch) {
  Capture capture;
  capture.call("launch", 0, 5, 1).kernel("a", 10, 20, {.correlation = 1});
  for (uint64_t i = 0; i < 100; ++i) capture.kernel("nccl", 100 + i, 101 + i, {.stream = i % 2});
  capture.kernel("a", 500, 501, {.correlation = 999});
  run(capture);
  const auto joined = finding("scope_device_time");
  EXPECT_EQ(joined.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(joined.evidence.at("joined").i64, 1);
  EXPECT_EQ(joined.evidence.at("without_correlation").i64, 100);
  EXPECT_EQ(joined.evidence.at("launch_not_seen").i64, 1);
  EXPECT_EQ(cell("kernels", "kernel", "nccl", "count"), "100");
}

TEST_F(HostTest, OneLaunchMayOwnManyKernelsAndTwoMayShareAnId) {
  Capture capture;
  capture.push("replay", 0).call("graphLaunch", 5, 6, 7).pop(10);
  for (uint64_t i = 0; i < 24; ++i) {
    capture.kernel("node", 100 + 10 * i, 105 + 10 * i, {.correlation = 7, .graph = 2});
  }
  run(capture);
  EXPECT_EQ(cell("scopes", "scope", "replay", "kernels"), "24");
  EXPECT_EQ(cell("scopes", "scope", "replay", "device_time"), "120");
}

TEST_F(HostTest, PendingJoinsAreForgottenBeyondTheLimit) {
  options.join_records = 10;
  Capture capture;
  for (uint64_t i = 1; i <= 1000; ++i) capture.kernel("k", 10 * i, 10 * i + 5, {.correlation = i});
  workload = std::make_unique<Workload>(options, &WorkloadTest::fetch);
  workload->consume(capture.builder.batch());
  EXPECT_EQ(workload->sources().at(0).host.pending(), 10u);
  finish();
  EXPECT_EQ(workload->sources().at(0).host.pending(), 0u);
  EXPECT_EQ(workload->sources().at(0).host.unlaunched_kernels(), 1000u);
}

TEST_F(HostTest, MorePopsThanPushesAreCounted) {
  Capture capture;
  capture.push("a", 0).pop(10).pop(20);
  run(capture);
  EXPECT_EQ(cell("scopes", "scope", "a", "total"), "10");
  EXPECT_EQ(finding("complete").evidence.at("ends_without_begin").i64, 1);
}

TEST_F(HostTest, ScopesLeftOpenHaveNoLength) {
  Capture capture;
  capture.push("a", 0).push("b", 1).push("c", 2);
  run(capture);
  EXPECT_EQ(cell("scopes", "scope", "b", "count"), "1");
  EXPECT_EQ(cell("scopes", "scope", "b", "untimed"), "1");
}

TEST_F(HostTest, NumbersBehindANameDoNotMakeANewRow) {
  EXPECT_EQ(scope_group("aten::mm, seq = 7"), "aten::mm");
  EXPECT_EQ(scope_group("aten::mm, op_id = 12, sizes = [[2, 3], []]"), "aten::mm");
  EXPECT_EQ(scope_group("copy a, b"), "copy a, b");
  EXPECT_EQ(scope_group("f(x, y = z)"), "f(x, y = z)");
  EXPECT_EQ(scope_group("aten::mm, seq = "), "aten::mm, seq = ");
  EXPECT_EQ(scope_group(""), "");
  Capture capture;
  capture.push("aten::mm, seq = 1", 0).pop(10).push("aten::mm, seq = 2", 20).pop(50);
  run(capture);
  EXPECT_EQ(cell("scopes", "scope", "aten::mm", "count"), "2");
  EXPECT_EQ(cell("scopes", "scope", "aten::mm", "total"), "40");
  testing::FakeHost::get().reset();
  options.group_scopes = false;
  Capture again;
  again.push("aten::mm, seq = 1", 0).pop(10).push("aten::mm, seq = 2", 20).pop(50);
  run(again);
  EXPECT_EQ(table("scopes").rows.size(), 2u);
}

TEST_F(HostTest, ScopesBeyondTheLimitShareARow) {
  options.name_limit = 2;
  Capture capture;
  for (const char *const name : {"a", "b", "c", "d", "a"}) capture.push(name, 0).pop(10);
  run(capture);
  EXPECT_EQ(table("scopes").rows.size(), 3u);
  EXPECT_EQ(cell("scopes", "scope", "(other scopes)", "count"), "2");
  EXPECT_EQ(cell("scopes", "scope", "a", "count"), "2");
}

TEST_F(HostTest, IdentityPairsScopesThatDoNotNest) {
  // A begins, B begins, A ends, B ends.
  Capture capture;
  capture.push("A", 0, 1, 11).push("B", 10, 1, 12).pop(20, 1, 11).pop(50, 1, 12);
  run(capture);
  EXPECT_EQ(cell("scopes", "scope", "A", "total"), "20");
  EXPECT_EQ(cell("scopes", "scope", "B", "total"), "40");
}

TEST_F(HostTest, ARangeMayEndOnAnotherThread) {
  Capture capture;
  capture.begin(SONDE_FRAMEWORK_RANGE_START, "range", 0, 1, 5).end(SONDE_FRAMEWORK_RANGE_END, 30, 2, 5);
  capture.begin(SONDE_FRAMEWORK_MARK, "mark", 7);
  run(capture);
  EXPECT_EQ(cell("scopes", "scope", "range", "total"), "30");
  EXPECT_EQ(cell("scopes", "scope", "range", "kind"), "range");
  EXPECT_EQ(cell("scopes", "scope", "mark", "count"), "1");
}

TEST_F(HostTest, OperatorsAndScopesOfOneThreadDoNotCloseEachOther) {
  Capture capture;
  capture.begin(SONDE_FRAMEWORK_OPERATOR_BEGIN, "aten::mm", 0).push("nvtx", 5);
  capture.end(SONDE_FRAMEWORK_OPERATOR_END, 10).pop(20);
  run(capture);
  EXPECT_EQ(cell("scopes", "scope", "aten::mm", "total"), "10");
  EXPECT_EQ(cell("scopes", "scope", "nvtx", "total"), "15");
}

}  // namespace
}  // namespace sonde::workload
