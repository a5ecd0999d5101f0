// Accesses from records to tables and findings; and that memory does not grow with the capture.
#include <malloc.h>
#include <unistd.h>
#include <sonde/sonde.hpp>

#include <cstdlib>
#include <fstream>
#include <string>

#include "capture.h"
#include "pictures.h"
#include "scripted.h"

namespace sonde::workload {
namespace {

// Records of a port that watches accesses.
class AccessCapture : public Capture {
 public:
  using Capture::Capture;

  AccessCapture &launch(uint64_t number, std::string_view name, uint64_t at, uint32_t device = 0,
                        uint32_t flags = SONDE_LAUNCH_WATCHED, uint64_t accesses = 0) {
    builder.add<sonde_access_launch_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_LAUNCH, kStart + at, [&](auto &r) {
      r.launch = number;
      r.name = testing::FakeHost::get().intern(name);
      r.device = device;
      r.flags = flags;
      r.kernel_period = r.block_period = 1;
      r.function_begin = 0x1000;
      r.accesses = accesses;
      r.grid[0] = r.grid[1] = r.grid[2] = 1;
      r.block[0] = 32;
      r.block[1] = r.block[2] = 1;
    });
    return *this;
  }
  AccessCapture &object(uint64_t launch, uint64_t address, uint64_t bytes, uint64_t reads, uint64_t writes, uint64_t at,
                        uint32_t kind = SONDE_OBJECT_IS_ALLOCATION) {
    builder.add<sonde_access_object_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_OBJECT, kStart + at, [&](auto &r) {
      r.launch = launch;
      r.address = address;
      r.bytes = bytes;
      r.reads = reads;
      r.writes = writes;
      r.read_bytes = 4 * reads;
      r.write_bytes = 4 * writes;
      r.object_kind = kind;
    });
    return *this;
  }
  AccessCapture &instruction(uint64_t launch, uint64_t pc, uint64_t units, uint64_t least, uint64_t at,
                             uint32_t memory = 1) {
    builder.add<sonde_access_instruction_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_INSTRUCTION, kStart + at, [&](auto &r) {
      r.launch = launch;
      r.pc = pc;
      r.memory = memory;
      r.access = 1;
      r.size = 4;
      r.warps = 1;
      r.threads = 32;
      r.bytes = 128;
      (memory == 2 ? r.wavefronts : r.sectors) = units;
      (memory == 2 ? r.least_wavefronts : r.least_sectors) = least;
    });
    return *this;
  }
  AccessCapture &warps(uint64_t launch, const std::vector<WarpEntry> &entries, uint64_t at) {
    const std::vector<uint64_t> data = packed(entries);
    std::vector<uint64_t> words(sizeof(sonde_access_warps_t) / 8 + data.size());
    sonde_access_warps_t head{};
    head.header = {static_cast<uint16_t>(words.size()), sizeof(head) / 8, SONDE_SPACE_ACCESS, SONDE_ACCESS_WARPS,
                   kStart + at};
    head.launch = launch;
    head.count = entries.size();
    head.data = {sizeof(head), static_cast<uint32_t>(data.size() * 8)};
    std::memcpy(words.data(), &head, sizeof(head));
    std::copy(data.begin(), data.end(), words.begin() + sizeof(head) / 8);
    builder.append(words.data(), words.size() * 8);
    return *this;
  }
  AccessCapture &counter(uint64_t launch, std::string_view kernel, std::string_view metric, double value) {
    builder.add<sonde_sample_counter_t>(SONDE_SPACE_SAMPLE, SONDE_SAMPLE_COUNTER, kStart, [&](auto &r) {
      r.launch = launch;
      r.function = testing::FakeHost::get().intern(kernel);
      r.metric = testing::FakeHost::get().intern(metric);
      r.value = value;
    });
    return *this;
  }
};

class AccessesTest : public WorkloadTest {
 protected:
  static bool has_table(std::string_view name) {
    for (const testing::FakeTable &found : testing::FakeHost::get().tables) {
      if (found.name == name) return true;
    }
    return false;
  }
};

TEST_F(AccessesTest, WithoutRecordsOfAccessesTheRulesSayWhyTheyCouldNotLook) {
  Capture capture;
  capture.kernel("a", 0, 10);
  run(capture);
  for (const char *const rule : {"working_set", "uncoalesced", "bank_conflicts", "block_divergence", "hot_block",
                                 "access_patterns", "accesses_complete"}) {
    EXPECT_EQ(finding(rule).verdict, SONDE_VERDICT_UNSUPPORTED) << rule;
    EXPECT_NE(finding(rule).reason.find("no records of accesses"), std::string::npos) << finding(rule).reason;
  }
  EXPECT_NE(finding("roofline").reason.find("ceilings"), std::string::npos);
  EXPECT_FALSE(has_table("working_sets"));
  EXPECT_EQ(cell("kernel_frequency", "kernel", "a", "launches"), "1") << "known from the device's records";
}

TEST_F(AccessesTest, LaunchesThatWereNotWatchedAreAnotherReason) {
  AccessCapture capture;
  capture.launch(1, "a", 10, 0, SONDE_LAUNCH_SKIPPED);
  run(capture);
  EXPECT_NE(finding("working_set").reason.find("none of the 1 launches"), std::string::npos)
      << finding("working_set").reason;
  EXPECT_EQ(finding("accesses_complete").verdict, SONDE_VERDICT_VIOLATION);
}

TEST_F(AccessesTest, WorkingSetsAndFootprintsComeFromRecords) {
  AccessCapture capture;
  capture.allocate(0x10000, 1000, 1).allocate(0x20000, 3000, 2);
  capture.launch(1, "a", 10).object(1, 0x10000, 1000, 5, 0, 10);
  capture.launch(2, "a", 20).object(2, 0x20000, 3000, 0, 7, 20);
  run(capture);
  EXPECT_EQ(cell("working_sets", "kernel", "a", "min"), "1000");
  EXPECT_EQ(cell("working_sets", "kernel", "a", "max"), "3000");
  EXPECT_EQ(table("working_sets").at(0, "mean").f64, 2000);
  EXPECT_EQ(cell("working_sets", "kernel", "a", "tensor_max"), "") << "no tensors in the capture";
  EXPECT_EQ(cell("footprints", "level", "allocation", "footprint"), "4000");
  EXPECT_EQ(cell("footprints", "level", "allocation", "max"), "3000");
  EXPECT_EQ(cell("traffic", "kernel", "a", "read"), "20");
  EXPECT_EQ(cell("traffic", "kernel", "a", "written"), "28");
  EXPECT_EQ(cell("kernel_frequency", "kernel", "a", "launches"), "2");
  EXPECT_EQ(finding("working_set").verdict, SONDE_VERDICT_OK) << "4000 / 3000 is below 2";
  EXPECT_EQ(workload->working_set(0), 3000u);
  EXPECT_EQ(workload->footprint(0), 4000u);
}

TEST_F(AccessesTest, AFootprintOfTwiceTheWorkingSetIsReported) {
  AccessCapture capture;
  capture.allocate(0x10000, 1000, 1).allocate(0x20000, 1000, 2);
  capture.launch(1, "a", 10).object(1, 0x10000, 1000, 5, 0, 10);
  run(capture);
  const auto found = finding("working_set");
  EXPECT_EQ(found.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(found.evidence.at("footprint").i64, 2000);
  EXPECT_EQ(found.evidence.at("working_set").i64, 1000);
  EXPECT_EQ(found.evidence.at("ratio").f64, 2);
}

TEST_F(AccessesTest, DevicesStandSideBySide) {
  AccessCapture capture;
  capture.allocate(0x10000, 1000, 1, 0).allocate(0x90000, 500, 2, 1);
  capture.launch(1, "a", 10, 0).object(1, 0x10000, 1000, 1, 0, 10);
  capture.launch(2, "a", 20, 1).object(2, 0x90000, 500, 1, 0, 20);
  run(capture);
  EXPECT_EQ(cell("footprints", "device", "0", "max"), "1000");
  EXPECT_EQ(cell("footprints", "device", "1", "max"), "500");
  EXPECT_EQ(cell("working_sets", "device", "1", "max"), "500");
}

TEST_F(AccessesTest, HotObjectsAndBlocksAreShown) {
  AccessCapture capture;
  capture.allocate(0x10000, 10, 1).allocate(0x20000, 1000, 2);
  capture.launch(1, "a", 10).object(1, 0x10000, 10, 90, 0, 10).object(1, 0x20000, 1000, 10, 0, 10);
  run(capture);
  EXPECT_EQ(cell("hot_objects", "object", "0x10000", "accesses"), "90");
  EXPECT_EQ(table("hot_blocks").at(0, "share").f64, 0.9);
  EXPECT_EQ(cell("heat_map", "object", "0x20000", "accesses"), "10");
  // 90 % of the accesses go to 10 of 1,010 touched bytes.
  const auto found = finding("hot_block");
  EXPECT_EQ(found.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(found.evidence.at("share").f64, 0.9);
  const std::string picture = draw_heat_map(*workload);
  EXPECT_NE(picture.find("<title>90 accesses"), std::string::npos);
  EXPECT_NE(picture.find("</svg>"), std::string::npos);
}

TEST_F(AccessesTest, ABlockThatIsNoSmallPartIsNotHot) {
  AccessCapture capture;
  capture.allocate(0x10000, 100, 1).allocate(0x20000, 1000, 2);
  capture.launch(1, "a", 10).object(1, 0x10000, 100, 90, 0, 10).object(1, 0x20000, 1000, 10, 0, 10);
  run(capture);
  EXPECT_EQ(finding("hot_block").verdict, SONDE_VERDICT_OK) << "100 of 1,100 bytes are more than 5 %";
}

TEST_F(AccessesTest, UncoalescedKernelsAreReportedFromTheThresholdOn) {
  AccessCapture capture;
  capture.launch(1, "strided", 10).instruction(1, 0x1010, 8, 4, 10);
  capture.launch(2, "fine", 20).instruction(2, 0x1010, 7, 4, 20);
  run(capture);
  const auto found = finding("uncoalesced");
  EXPECT_EQ(found.verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_EQ(found.evidence.at("sectors").i64, 8);
  EXPECT_EQ(found.evidence.at("ratio").f64, 2);
  EXPECT_EQ(cell("coalescing", "kernel", "strided", "excess"), "4");
  EXPECT_EQ(cell("memory_instructions", "kernel", "strided", "offset"), "0x10");
  EXPECT_EQ(finding("bank_conflicts").verdict, SONDE_VERDICT_UNSUPPORTED) << "no access to shared memory";
}

TEST_F(AccessesTest, ExcessThatIsASmallPartOfAllIsNot) {
  AccessCapture capture;
  // 4 of 4 + 76 + 4 sectors are excess: 4 / 84 is below 5 %.
  capture.launch(1, "strided", 10).instruction(1, 0x1010, 8, 4, 10);
  capture.launch(2, "fine", 20).instruction(2, 0x1010, 76, 76, 20);
  run(capture);
  EXPECT_EQ(finding("uncoalesced").verdict, SONDE_VERDICT_OK);
}

TEST_F(AccessesTest, BankConflictsAreReported) {
  AccessCapture capture;
  capture.launch(1, "transpose", 10).instruction(1, 0x1010, 32, 1, 10, 2);
  run(capture);
  EXPECT_EQ(finding("bank_conflicts").evidence.at("wavefronts").i64, 32);
  EXPECT_EQ(cell("bank_conflicts", "kernel", "transpose", "excess"), "31");
}

TEST_F(AccessesTest, WarpRecordsGiveDivergenceReuseAndWords) {
  AccessCapture capture;
  WarpEntry first;
  first.pc = 0x10;
  WarpEntry other = first;
  other.block = 1;
  capture.warps(1, {first, first, other}, 10).launch(1, "a", 10);
  run(capture);
  // 64 and 32 accesses: mean 48, deviation 16.
  EXPECT_DOUBLE_EQ(table("block_divergence").at(0, "worst_variation").f64, 16.0 / 48);
  EXPECT_EQ(finding("block_divergence").verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_DOUBLE_EQ(table("reuse_scopes").at(0, "cold").f64, 1.0 / 3);
  EXPECT_DOUBLE_EQ(table("reuse_scopes").at(0, "thread").f64, 1.0 / 3);
  EXPECT_DOUBLE_EQ(table("reuse_scopes").at(0, "grid").f64, 1.0 / 3);
  EXPECT_EQ(cell("reuse_edges", "from", "0x10", "words"), "64");
  EXPECT_EQ(table("word_heat").rows.size(), 4u);
  EXPECT_EQ(cell("word_heat", "sector", "0x0", "accesses"), "16");  // block 0 alone: 8 lanes, twice
}

TEST_F(AccessesTest, TheRooflineJoinsTimesAndCounters) {
  options.ceilings.work[static_cast<size_t>(Work::kFp32)] = 1e9;
  options.ceilings.traffic[static_cast<size_t>(Traffic::kDram)] = 1e9;
  AccessCapture capture;
  capture.kernel("a", 0, 1000).kernel("a", 2000, 3000);  // 1 us each
  capture.counter(1, "a", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 50)
      .counter(1, "a", "dram__bytes_read.sum", 250)
      .counter(2, "a", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 50)
      .counter(2, "a", "dram__bytes_read.sum", 250);
  capture.allocate(0x10000, 1000, 1);
  capture.launch(1, "a", 10).object(1, 0x10000, 1000, 100, 0, 10).instruction(1, 0x1010, 25, 13, 10);
  run(capture);
  const testing::FakeTable &rows = table("roofline");
  EXPECT_EQ(rows.at(0, "requested_intensity").f64, 0.25);  // 100 / (4 * 100)
  EXPECT_EQ(rows.at(0, "sector_intensity").f64, 0.125);    // 100 / (32 * 25)
  EXPECT_EQ(rows.at(0, "operations").f64, 100);            // 2 * 50 a launch
  EXPECT_EQ(rows.at(0, "intensity").f64, 0.4);             // 100 / 250
  EXPECT_EQ(rows.at(0, "bound").str(), "dram");            // 0.25 us for the bytes, 0.1 us for the work
  EXPECT_NEAR(rows.at(0, "attained").f64, 0.25, 1e-12);
  EXPECT_NEAR(rows.at(0, "rate").f64, 1e8, 1e-3);
  EXPECT_EQ(finding("roofline").verdict, SONDE_VERDICT_VIOLATION);
  EXPECT_NEAR(finding("roofline").gain_seconds, 1.5e-6, 1e-12);
  EXPECT_NE(draw_roofline(*workload).find("<circle"), std::string::npos);
}

TEST_F(AccessesTest, WorkMayBeGivenWhereNothingCountsIt) {
  options.ceilings.work[static_cast<size_t>(Work::kTensor)] = 1e12;
  options.flops.push_back({"gemm", Work::kTensor, 1e6});
  AccessCapture capture;
  capture.kernel("my_gemm_kernel", 0, 1000).kernel("other", 1000, 2000);
  run(capture);
  ASSERT_EQ(table("roofline").rows.size(), 1u);
  EXPECT_NEAR(table("roofline").at(0, "attained").f64, 1, 1e-9);  // 1 us of 1 us
  EXPECT_EQ(finding("roofline").verdict, SONDE_VERDICT_OK);
}

TEST_F(AccessesTest, PhasesAndLayersFollowOperators) {
  const auto operation = [](AccessCapture &capture, std::string_view name, uint64_t at, uint64_t thread, uint32_t link,
                            uint64_t sequence, uint64_t forward_thread) {
    capture.builder.add<sonde_framework_operator_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_OPERATOR_BEGIN, kStart + at,
                                                    [&](auto &r) {
                                                      r.name = testing::FakeHost::get().intern(name);
                                                      r.domain = testing::FakeHost::get().intern("torch");
                                                      r.thread = thread;
                                                      r.scope = at;
                                                      r.link = link;
                                                      r.sequence = sequence;
                                                      r.forward_thread = forward_thread;
                                                    });
  };
  const auto layer = [](AccessCapture &capture, std::string_view name, uint64_t at) {
    capture.builder.add<sonde_framework_scope_t>(SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_SCOPE_PUSH, kStart + at,
                                                 [&](auto &r) {
                                                   r.name = testing::FakeHost::get().intern(name);
                                                   r.domain = testing::FakeHost::get().intern("torch.nn");
                                                   r.thread = 1;
                                                   r.scope = at;
                                                 });
  };
  AccessCapture capture;
  capture.allocate(0x10000, 1000, 1);
  layer(capture, "model.linear", 5);
  operation(capture, "aten::linear", 6, 1, SONDE_LINK_FORWARD, 9, 0);
  capture.launch(1, "forward_kernel", 10).object(1, 0x10000, 1000, 10, 0, 10);
  capture.call("launch", 10, 11, 1).kernel("forward_kernel", 12, 20, {.correlation = 1});
  capture.end(SONDE_FRAMEWORK_OPERATOR_END, 15, 1, 6).pop(16, 1, 5);
  operation(capture, "LinearBackward", 20, 2, SONDE_LINK_BACKWARD, 9, 1);
  capture.launch(2, "backward_kernel", 25).object(2, 0x10000, 1000, 20, 5, 25);
  capture.end(SONDE_FRAMEWORK_OPERATOR_END, 30, 2, 20);
  capture.push("Optimizer.step#SGD.step", 40, 1, 40);
  capture.launch(3, "step_kernel", 45).object(3, 0x10000, 1000, 30, 30, 45);
  capture.pop(50, 1, 40);
  run(capture);
  EXPECT_EQ(cell("phases", "phase", "forward", "accesses"), "0") << "the launch record's own count, which is not set";
  EXPECT_EQ(cell("phases", "phase", "forward", "read"), "40");
  EXPECT_EQ(cell("phases", "phase", "forward", "kernels"), "1");
  EXPECT_EQ(cell("phases", "phase", "forward", "device_time"), "8");
  EXPECT_EQ(cell("phases", "phase", "backward", "read"), "80");
  EXPECT_EQ(cell("phases", "phase", "backward", "written"), "20");
  EXPECT_EQ(cell("phases", "phase", "optimizer", "written"), "120");
  EXPECT_EQ(cell("layers", "layer", "model.linear", "forward_bytes"), "40");
  EXPECT_EQ(cell("layers", "layer", "model.linear", "backward_bytes"), "100");
  EXPECT_EQ(cell("scope_accesses", "scope", "aten::linear", "read"), "40");
}

TEST_F(AccessesTest, AnAddressThatIsUsedAgainIsAnotherObject) {
  AccessCapture capture;
  capture.allocate(0x10000, 1000, 1);
  capture.launch(1, "a", 10).object(1, 0x10000, 1000, 5, 0, 10);
  capture.free(0x10000, 20).allocate(0x10000, 200, 30);
  capture.launch(2, "b", 40).object(2, 0x10000, 200, 3, 0, 40);
  run(capture);
  EXPECT_EQ(table("hot_objects").rows.size(), 2u);
  EXPECT_EQ(cell("working_sets", "kernel", "b", "max"), "200");
  EXPECT_FALSE(has_table("kernel_reuse")) << "the second object has no earlier reader";
}

TEST_F(AccessesTest, AWorkingSetIsTakenApartByObject) {
  AccessCapture capture;
  capture.allocate(0x10000, 1000, 1).allocate(0x20000, 3000, 2);
  capture.allocate(0x20100, 64, 3, 0, SONDE_MEMORY_DEVICE, SONDE_MEMORY_SUB_ALLOCATE);
  capture.launch(1, "a", 10).object(1, 0x10000, 1000, 5, 0, 10);
  capture.object(1, 0x20100, 64, 9, 0, 10, SONDE_OBJECT_IS_TENSOR);
  capture.launch(2, "a", 20).object(2, 0x10000, 1000, 1, 2, 20);
  run(capture);
  const testing::FakeTable &rows = table("kernel_objects");
  ASSERT_EQ(rows.rows.size(), 2u) << "the allocation around the tensor is no object of its own";
  EXPECT_EQ(rows.at(0, "object").str(), "0x20100");
  EXPECT_EQ(rows.at(0, "level").str(), "tensor");
  EXPECT_EQ(rows.at(0, "accesses").str(), "9");
  EXPECT_EQ(rows.at(1, "object").str(), "0x10000");
  EXPECT_EQ(rows.at(1, "accesses").str(), "8");  // 5 + 1 + 2
  EXPECT_EQ(rows.at(1, "launches").str(), "2");
  EXPECT_EQ(cell("working_sets", "kernel", "a", "tensor_max"), "64");
  EXPECT_EQ(cell("working_sets", "kernel", "a", "max"), "4000");
}

TEST_F(AccessesTest, FreesWithoutAllocationsAndAllocationsWithoutFreesAreNoTrouble) {
  AccessCapture capture;
  capture.free(0x10000, 1).allocate(0x10000, 100, 2);
  capture.launch(1, "a", 10).object(1, 0x10000, 100, 5, 0, 10);
  run(capture);
  EXPECT_EQ(workload->accesses().counts().unmatched_frees, 1u);
  EXPECT_EQ(cell("hot_objects", "object", "0x10000", "accesses"), "5") << "it lived to the end";
  EXPECT_EQ(cell("footprints", "level", "allocation", "footprint"), "100");
}

TEST_F(AccessesTest, AnObjectThatNobodyAllocatedBeginsWithItsTouch) {
  AccessCapture capture;
  capture.launch(1, "a", 10).object(1, 0x10000, 100, 5, 0, 10);
  run(capture);
  EXPECT_EQ(cell("working_sets", "kernel", "a", "max"), "100");
  EXPECT_EQ(workload->accesses().counts().implicit, 1u);
}

TEST_F(AccessesTest, AnAllocationAtTheStampOfALaunchIsThereForIt) {
  AccessCapture capture;
  capture.allocate(0x10000, 100, 10);
  capture.launch(1, "a", 10).object(1, 0x10000, 100, 5, 0, 10);
  capture.free(0x10000, 10);
  run(capture);
  EXPECT_EQ(cell("working_sets", "kernel", "a", "max"), "100");
  EXPECT_EQ(table("hot_objects").rows.size(), 1u);
}

TEST_F(AccessesTest, PicturesAreWrittenWhereOptionsSay) {
  const std::string path = ::testing::TempDir() + "heat-{process}.svg";
  options.heat_map_picture = path;
  AccessCapture capture;
  capture.allocate(0x10000, 1000, 1);
  capture.launch(1, "a", 10).object(1, 0x10000, 1000, 5, 0, 10);
  run(capture);
  write_pictures(*workload, Host(testing::FakeHost::table()));
  const std::string written = ::testing::TempDir() + "heat-" + std::to_string(getpid()) + ".svg";
  std::ifstream file(written);
  std::string first;
  std::getline(file, first);
  EXPECT_EQ(first.substr(0, 4), "<svg");
  std::remove(written.c_str());
}

// A run of that many launches over a few objects that come and go.
void feed_launches(Workload &workload, uint64_t from, uint64_t to) {
  constexpr uint64_t kBatch = 1000;
  for (uint64_t begin = from; begin < to; begin += kBatch) {
    AccessCapture capture;
    for (uint64_t i = begin; i < begin + kBatch; ++i) {
      const uint64_t at = 100 * i, address = 0x100000 + 0x1000 * (i % 16);
      const char *const names[] = {"a", "b", "c", "d"};
      if (i >= 16) capture.free(address, at);
      capture.allocate(address, 1000 + i % 100, at + 1);
      capture.push("step", at + 2, 1, i + 1);
      capture.launch(i + 1, names[i % 4], at + 10).object(i + 1, address, 1000 + i % 100, i % 50 + 1, 1, at + 10);
      capture.instruction(i + 1, 0x1000 + 16 * (i % 64), 8, 4, at + 10);
      capture.pop(at + 50, 1, i + 1);
    }
    workload.consume(capture.builder.batch());
  }
}

// Bytes that the process holds from the allocator.
size_t heap_bytes() { return mallinfo2().uordblks; }

TEST_F(AccessesTest, MemoryDoesNotGrowFromAHundredThousandToAMillionLaunches) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the allocator's own figures are not kept";
#endif
  options.exact_values = 64;
  options.reorder_records = 1024;
  options.join_records = 1024;
  options.remembered_launches = 1024;
  workload = std::make_unique<Workload>(options, &WorkloadTest::fetch);
  const uint64_t few = 100'000, many = 1'000'000;
  feed_launches(*workload, 0, few);
  const size_t before = heap_bytes();
  feed_launches(*workload, few, many);
  const size_t after = heap_bytes();
  // Nine times as many launches more; a byte for each would be 900,000. Histograms may still find new buckets.
  EXPECT_LT(after, before + 300'000) << before << " bytes held after a hundred thousand";
  EXPECT_LE(workload->accesses().held(), 64u);
  workload->finish();
  EXPECT_EQ(workload->accesses().seen().launches, many);
  EXPECT_EQ(workload->accesses().counts().lost_touches, 0u);
}

}  // namespace
}  // namespace sonde::workload
