// Instructions, counters and the roofline, by hand.
#include "roofline.h"

#include <gtest/gtest.h>

#include "counters.h"
#include "instructions.h"

namespace sonde::workload {
namespace {

constexpr uint32_t kOther = 1;

sonde_access_instruction_t instruction(uint32_t memory, uint64_t pc, uint64_t warps, uint64_t units, uint64_t least) {
  sonde_access_instruction_t record{};
  record.pc = pc;
  record.memory = memory;
  record.access = 1;
  record.size = 4;
  record.warps = warps;
  record.threads = 32 * warps;
  record.bytes = 4 * record.threads;
  (memory == kSharedMemory ? record.wavefronts : record.sectors) = units;
  (memory == kSharedMemory ? record.least_wavefronts : record.least_sectors) = least;
  return record;
}

TEST(Instructions, SectorsAreComparedWithTheFewestPossible) {
  const Options options;
  Instructions instructions(options, kOther);
  LaunchFacts launch;
  launch.launch = 1;
  launch.kernel = {0, 0, 5};
  launch.function_begin = 0x1000;
  instructions.add(launch, instruction(kGlobalMemory, 0x1010, 10, 320, 40));  // 32 lanes in 32 sectors: stride 32 B
  instructions.add(launch, instruction(kGlobalMemory, 0x1020, 10, 40, 40));
  instructions.add(launch, instruction(kSharedMemory, 0x1030, 10, 20, 10));
  const KernelUnits &kernel = *instructions.kernels().find({0, 0, 5});
  EXPECT_EQ(kernel.launches, 1u);
  EXPECT_EQ(kernel.global.units, 360u);
  EXPECT_EQ(*kernel.global.ratio(), 4.5);  // 360 / 80
  EXPECT_EQ(kernel.global.excess(), 280u);
  EXPECT_EQ(*kernel.shared.ratio(), 2.0);
  EXPECT_EQ(instructions.instructions().size(), 3u);
  EXPECT_EQ(*instructions.instructions().at({{0, 0, 5}, 0x10, kGlobalMemory, 1, 4}).ratio(), 8.0);
}

TEST(Instructions, ModulesAtOtherAddressesHaveTheSameOffsets) {
  const Options options;
  Instructions instructions(options, kOther);
  LaunchFacts first, second;
  first.launch = 1;
  second.launch = 2;
  first.kernel = second.kernel = {0, 0, 5};
  first.function_begin = 0x1000;
  second.function_begin = 0x9000;
  instructions.add(first, instruction(kGlobalMemory, 0x1010, 1, 4, 4));
  instructions.add(second, instruction(kGlobalMemory, 0x9010, 1, 4, 4));
  EXPECT_EQ(instructions.instructions().size(), 1u);
  EXPECT_EQ(instructions.kernels().find({0, 0, 5})->launches, 2u);
}

TEST(Instructions, BeyondTheLimitOnlyKernelsAreSummed) {
  Options options;
  options.instruction_limit = 1;
  Instructions instructions(options, kOther);
  LaunchFacts launch;
  launch.launch = 1;
  launch.kernel = {0, 0, 5};
  instructions.add(launch, instruction(kGlobalMemory, 1, 1, 4, 4));
  instructions.add(launch, instruction(kGlobalMemory, 2, 1, 4, 4));
  EXPECT_EQ(instructions.instructions().size(), 1u);
  EXPECT_EQ(instructions.left_out(), 1u);
  EXPECT_EQ(instructions.kernels().find({0, 0, 5})->global.units, 8u);
}

TEST(UnitSums, HaveNoRatioWithoutAccesses) { EXPECT_FALSE(UnitSums().ratio()); }

TEST(Metrics, AreOperationsOrBytes) {
  const auto amount = [](const char *name) {
    const auto meaning = metric_meaning(name, 2);
    return meaning ? meaning->amount : -1;
  };
  EXPECT_EQ(amount("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"), 1);
  EXPECT_EQ(amount("sm__sass_thread_inst_executed_op_ffma_pred_on.sum"), 2);
  EXPECT_EQ(amount("smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"), 2);
  EXPECT_EQ(amount("smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"), 4);  // two halves, two operations each
  EXPECT_EQ(amount("sm__ops_path_tensor_src_bf16_dst_fp32.sum"), 1);
  EXPECT_EQ(amount("dram__bytes_read.sum"), 1);
  EXPECT_EQ(amount("lts__t_sectors.sum"), 32);
  EXPECT_EQ(amount("sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum"), -1) << "a part of the whole";
  EXPECT_EQ(amount("sm__ops_path_tensor_src_int8.sum"), -1) << "no floating point";
  EXPECT_EQ(amount("smsp__sass_thread_inst_executed_op_ffma_pred_on.avg"), -1) << "no sum";
  EXPECT_EQ(amount("sm__cycles_elapsed.max"), -1);
  EXPECT_EQ(metric_meaning("sm__ops_path_tensor_src_bf16_dst_fp32.sum", 2)->work, Work::kTensor);
  EXPECT_EQ(metric_meaning("sm__ops_path_tensor_src_fp64.sum", 2)->work, Work::kTensorFp64);
}

class CountersTest : public ::testing::Test {
 protected:
  // Metric numbers stand for their texts, as an interner gives them.
  void add(uint64_t launch, const char *metric, double value) {
    const auto [it, is_new] = numbers.try_emplace(metric, static_cast<uint32_t>(numbers.size() + 1));
    counters.add(kKernel, launch, it->second, metric, value);
  }
  const CounterRow &row() { return *counters.kernels().find(kKernel); }

  static constexpr KernelKey kKernel{0, 0, 5};
  Options options;
  Counters counters{options, kOther};
  std::map<std::string, uint32_t> numbers;
};

TEST_F(CountersTest, WorkIsSummedOverMetricsAndLaunches) {
  for (uint64_t launch = 1; launch <= 2; ++launch) {
    add(launch, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 100);
    add(launch, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 50);
    add(launch, "dram__bytes_read.sum", 64);
    add(launch, "dram__bytes_write.sum", 32);
  }
  EXPECT_EQ(row().launches, 2u);
  EXPECT_EQ(row().work[static_cast<size_t>(Work::kFp32)], 400);  // 2 * (100 + 2 * 50)
  EXPECT_EQ(row().traffic[0], 192);
}

TEST_F(CountersTest, AMetricInTwoSpellingsCountsOnce) {
  add(1, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 100);
  add(1, "sm__sass_thread_inst_executed_op_fadd_pred_on.sum", 100);
  EXPECT_EQ(row().work[static_cast<size_t>(Work::kFp32)], 100);
  EXPECT_EQ(counters.other_metrics(), 1u);
}

TEST_F(CountersTest, TheSumOfBothDirectionsIsNoThirdOne) {
  add(1, "dram__bytes_read.sum", 64);
  add(1, "dram__bytes_write.sum", 32);
  add(1, "dram__bytes.sum", 96);
  EXPECT_EQ(row().traffic[0], 96);
}

Ceilings ceilings() {
  Ceilings out;
  out.work[static_cast<size_t>(Work::kFp32)] = 1000;
  out.work[static_cast<size_t>(Work::kTensor)] = 10000;
  out.traffic[static_cast<size_t>(Traffic::kDram)] = 100;
  out.traffic[static_cast<size_t>(Traffic::kL2)] = 400;
  return out;
}

KernelCost cost(double seconds, double fp32, double dram) {
  KernelCost out;
  out.seconds = seconds;
  out.work[static_cast<size_t>(Work::kFp32)] = fp32;
  out.traffic[static_cast<size_t>(Traffic::kDram)] = dram;
  return out;
}

TEST(Roofline, BelowTheRidgeMemoryIsTheBound) {
  // The ridge is 1000 / 100 = 10 operations a byte. 90 operations on 10 bytes take at least 0.1 s for the bytes.
  const RooflinePoint point = place(cost(0.2, 90, 10), ceilings());
  EXPECT_EQ(*point.dram_intensity, 9);
  EXPECT_EQ(*point.rate, 450);
  EXPECT_EQ(point.bound, Bound::kDram);
  EXPECT_DOUBLE_EQ(point.least_seconds, 0.1);
  EXPECT_DOUBLE_EQ(*point.attained, 0.5);
}

TEST(Roofline, AboveTheRidgeWorkIsTheBound) {
  const RooflinePoint point = place(cost(0.22, 110, 10), ceilings());
  EXPECT_EQ(point.bound, Bound::kWork);
  EXPECT_DOUBLE_EQ(point.least_seconds, 0.11);
  EXPECT_DOUBLE_EQ(*point.attained, 0.5);
}

TEST(Roofline, KindsOfWorkAddUpTheirTimes) {
  KernelCost mixed = cost(1, 500, 1);
  mixed.work[static_cast<size_t>(Work::kTensor)] = 2000;
  const RooflinePoint point = place(mixed, ceilings());
  EXPECT_EQ(*point.operations, 2500);
  EXPECT_DOUBLE_EQ(point.least_seconds, 0.7);  // 500 / 1000 + 2000 / 10000
}

TEST(Roofline, L2MayBeTheBound) {
  KernelCost cached = cost(1, 10, 10);
  cached.traffic[static_cast<size_t>(Traffic::kL2)] = 200;
  const RooflinePoint point = place(cached, ceilings());
  EXPECT_EQ(point.bound, Bound::kL2);
  EXPECT_DOUBLE_EQ(point.least_seconds, 0.5);
  EXPECT_DOUBLE_EQ(*point.l2_intensity, 0.05);
}

TEST(Roofline, WorkWithoutACeilingBoundsNothing) {
  KernelCost strange = cost(1, 10, 10);
  strange.work[static_cast<size_t>(Work::kFp64)] = 1e9;
  const RooflinePoint point = place(strange, ceilings());
  EXPECT_EQ(point.bound, Bound::kDram);
  EXPECT_DOUBLE_EQ(point.least_seconds, 0.1);
}

TEST(Roofline, WithoutTimeNothingIsAttained) {
  const RooflinePoint point = place(cost(0, 90, 10), ceilings());
  EXPECT_FALSE(point.rate);
  EXPECT_FALSE(point.attained);
  EXPECT_EQ(*point.dram_intensity, 9);
}

TEST(Roofline, WithoutBytesThereIsNoIntensity) {
  const RooflinePoint point = place(cost(1, 90, 0), ceilings());
  EXPECT_FALSE(point.dram_intensity);
  EXPECT_EQ(point.bound, Bound::kWork);
}

}  // namespace
}  // namespace sonde::workload
