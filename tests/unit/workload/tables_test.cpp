// Kernels, copies, sets, graphs: the numbers of each row.
#include "capture.h"

namespace sonde::workload {
namespace {

class TablesTest : public WorkloadTest {};

TEST_F(TablesTest, AKernelRowSumsItsLaunches) {
  // Lengths 10, 20, 30, 40: total 100, mean 25; nearest ranks of 4: p50 the 2nd, p90 and p99 the 4th.
  Capture capture;
  uint64_t at = 0;
  for (const uint64_t length : {40u, 10u, 30u, 20u}) {
    capture.kernel("_Z9vectorAddPfS_i", at, at + length, {.grid = length == 10u ? 2u : 8u});
    at += 100;
  }
  capture.kernel("other", at, at + 300);
  run(capture);
  const auto &kernels = table("kernels");
  const size_t row = kernels.row_where("symbol", "_Z9vectorAddPfS_i");
  EXPECT_EQ(row, 1u) << "rows are sorted by total time";
  EXPECT_EQ(kernels.at(row, "kernel").text, "vectorAdd");
  EXPECT_EQ(kernels.at(row, "name").text, "vectorAdd(float*, float*, int)");
  EXPECT_EQ(kernels.at(row, "count").str(), "4");
  EXPECT_EQ(kernels.at(row, "total").str(), "100");
  EXPECT_EQ(kernels.at(row, "mean").f64, 25);
  EXPECT_EQ(kernels.at(row, "min").str(), "10");
  EXPECT_EQ(kernels.at(row, "p50").str(), "20");
  EXPECT_EQ(kernels.at(row, "p90").str(), "40");
  EXPECT_EQ(kernels.at(row, "p99").str(), "40");
  EXPECT_EQ(kernels.at(row, "max").str(), "40");
  EXPECT_EQ(kernels.at(row, "share").f64, 0.25);
  EXPECT_EQ(kernels.at(row, "grid").text, "(8, 1, 1)") << "the most frequent shape";
  EXPECT_EQ(kernels.at(row, "block").text, "(32, 1, 1)");
  EXPECT_EQ(kernels.at(row, "shapes").str(), "2");
  EXPECT_EQ(kernels.at(row, "registers").str(), "40");
}

TEST_F(TablesTest, NamesAreNotClassifiedByPrefix) {
  Capture capture;
  capture.kernel("ncclDevKernel_AllReduce_Sum_f32", 0, 10, {.stream = 118});
  capture.kernel("ncclKernel_AllReduce", 20, 30, {.stream = 0x7f1234567890});
  capture.kernel("Stream #118(...)", 40, 50);
  run(capture);
  EXPECT_EQ(table("kernels").rows.size(), 3u);
  EXPECT_EQ(cell("kernels", "kernel", "Stream #118(...)", "count"), "1");
  EXPECT_EQ(cell("streams", "stream", "139716164221072", "kernels"), "1") << "stream numbers have 64 bits";
}

TEST_F(TablesTest, NamesThatDemangleAlikeAreTwoRows) {
  Capture capture;
  capture.kernel("_ZN3fooC1Ev", 0, 10).kernel("_ZN3fooC2Ev", 20, 40);
  run(capture);
  const auto &kernels = table("kernels");
  ASSERT_EQ(kernels.rows.size(), 2u);
  EXPECT_EQ(kernels.at(0, "name").text, kernels.at(1, "name").text);
  EXPECT_EQ(kernels.at(0, "symbol").text, "_ZN3fooC2Ev");
}

TEST_F(TablesTest, EqualTimesAreOrderedByName) {
  Capture capture;
  capture.kernel("b", 0, 10).kernel("a", 20, 30).kernel("c", 40, 50);
  run(capture);
  EXPECT_EQ(table("kernels").at(0, "symbol").text, "a");
  EXPECT_EQ(table("kernels").at(1, "symbol").text, "b");
  EXPECT_EQ(table("kernels").at(2, "symbol").text, "c");
}

TEST_F(TablesTest, NamesBeyondTheLimitShareARow) {
  options.name_limit = 2;
  Capture capture;
  capture.kernel("a", 0, 10).kernel("b", 10, 20).kernel("c", 20, 30).kernel("d", 30, 40).kernel("a", 40, 50);
  run(capture);
  EXPECT_EQ(table("kernels").rows.size(), 3u);
  EXPECT_EQ(cell("kernels", "symbol", "(other kernels)", "count"), "2");
  EXPECT_EQ(cell("kernels", "symbol", "a", "count"), "2");
  EXPECT_EQ(workload->kernel_count(), 5u);
}

TEST_F(TablesTest, TopKernelsAddUpDevicesAndProcesses) {
  Capture first(1), second(2);
  first.kernel("a", 0, 10).kernel("b", 10, 25);
  second.kernel("a", 0, 10, {.device = 1}).kernel("c", 10, 15);
  run({&first, &second});
  const auto top = workload->top_kernels(2);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].name, "a");
  EXPECT_EQ(top[0].count, 2u);
  EXPECT_EQ(top[0].total_ns, 20);
  EXPECT_EQ(top[1].name, "b");
}

TEST_F(TablesTest, ACopyRowGivesBytesAndBandwidth) {
  // 1,000 and 3,000 bytes in 100 and 300 ns: 4,000 bytes in 400 ns are 10^10 bytes/s.
  Capture capture;
  capture.copy(SONDE_COPY_HOST_TO_DEVICE, 1000, 0, 100, true)
      .copy(SONDE_COPY_HOST_TO_DEVICE, 3000, 200, 500, true)
      .copy(SONDE_COPY_DEVICE_TO_HOST, 8, 600, 610, false, SONDE_MEMORY_PAGEABLE);
  run(capture);
  const auto &copies = table("copies");
  ASSERT_EQ(copies.rows.size(), 2u);
  EXPECT_EQ(copies.at(0, "direction").text, "host_to_device");
  EXPECT_EQ(copies.at(0, "from").text, "pinned");
  EXPECT_EQ(copies.at(0, "to").text, "device");
  EXPECT_EQ(copies.at(0, "asynchronous").str(), "true");
  EXPECT_EQ(copies.at(0, "count").str(), "2");
  EXPECT_EQ(copies.at(0, "bytes").str(), "4000");
  EXPECT_DOUBLE_EQ(copies.at(0, "bandwidth").f64, 1e10);
  EXPECT_EQ(copies.at(0, "min_size").str(), "1000");
  EXPECT_EQ(copies.at(0, "median_size").str(), "1000");
  EXPECT_EQ(copies.at(0, "max_size").str(), "3000");
  EXPECT_EQ(copies.at(1, "from").text, "device");
  EXPECT_EQ(copies.at(1, "to").text, "pageable");
  EXPECT_EQ(copies.at(1, "asynchronous").str(), "false");
}

TEST_F(TablesTest, ACopyOfLengthZeroHasNoBandwidth) {
  Capture capture;
  capture.copy(SONDE_COPY_HOST_TO_DEVICE, 1000, 5, 5, true);
  run(capture);
  EXPECT_EQ(table("copies").at(0, "bandwidth").kind, SONDE_VALUE_NONE);
}

TEST_F(TablesTest, BytesOfUntimedCopiesDoNotEnterTheBandwidth) {
  Capture capture;
  capture.copy(SONDE_COPY_HOST_TO_DEVICE, 1000, 0, 100, true).copy(SONDE_COPY_HOST_TO_DEVICE, 5000, 300, 200, true);
  run(capture);
  EXPECT_EQ(table("copies").at(0, "bytes").str(), "6000");
  EXPECT_DOUBLE_EQ(table("copies").at(0, "bandwidth").f64, 1e10);
  EXPECT_EQ(table("copies").at(0, "untimed").str(), "1");
}

TEST_F(TablesTest, SetsHaveTheirOwnTable) {
  Capture capture;
  capture.set(4096, 0, 8).set(4096, 10, 18);
  run(capture);
  EXPECT_EQ(table("sets").at(0, "count").str(), "2");
  EXPECT_EQ(table("sets").at(0, "bytes").str(), "8192");
  EXPECT_DOUBLE_EQ(table("sets").at(0, "bandwidth").f64, 8192 * 1e9 / 16);
}

TEST_F(TablesTest, AGraphCountsLaunchesAndNodes) {
  // Two launches (correlations 5 and 6) of three kernels each; the nodes' records come interleaved.
  Capture capture;
  capture.graph_made(3, 3, 0);
  uint64_t at = 10;
  for (int i = 0; i < 3; ++i) {
    for (const uint64_t launch : {5u, 6u}) {
      capture.kernel("node", at, at + 2, {.correlation = launch, .graph = 3});
      at += 10;
    }
  }
  run(capture);
  EXPECT_EQ(cell("graphs", "graph", "3", "launches"), "2");
  EXPECT_EQ(cell("graphs", "graph", "3", "declared_nodes"), "3");
  EXPECT_EQ(table("graphs").at(0, "nodes_per_launch").f64, 3);
  EXPECT_EQ(cell("graphs", "graph", "3", "kernels"), "6");
  EXPECT_EQ(cell("graphs", "graph", "3", "node_time"), "12");
  EXPECT_EQ(cell("kernels", "kernel", "node", "from_graphs"), "6");
}

TEST_F(TablesTest, AGraphIdThatIsUsedAgainIsAnotherGraph) {
  Capture capture;
  capture.graph_made(7, 2, 0).kernel("old", 10, 12, {.correlation = 1, .graph = 7}).graph_made(7, 0, 20, 1);
  capture.graph_made(7, 1, 30).kernel("new", 40, 43, {.correlation = 2, .graph = 7});
  run(capture);
  const auto &graphs = table("graphs");
  ASSERT_EQ(graphs.rows.size(), 2u);
  EXPECT_EQ(graphs.at(0, "generation").str(), "1");
  EXPECT_EQ(graphs.at(0, "node_time").str(), "2");
  EXPECT_EQ(graphs.at(1, "declared_nodes").str(), "1");
  EXPECT_EQ(graphs.at(1, "node_time").str(), "3");
}

TEST_F(TablesTest, AnEmptyCaptureHasEmptyTablesAndSaysWhyNothingWasFound) {
  Capture capture;
  run(capture);
  EXPECT_TRUE(table("kernels").rows.empty());
  for (const char *const rule : {"idle_device", "launch_bound", "blocking_copies", "tiny_copies", "low_concurrency",
                                 "stream_overlap", "invalid_times", "live_memory", "scope_device_time"}) {
    EXPECT_EQ(finding(rule).verdict, SONDE_VERDICT_UNSUPPORTED) << rule;
    EXPECT_FALSE(finding(rule).reason.empty()) << rule;
  }
}

TEST_F(TablesTest, EveryColumnAndFindingIsDocumented) {
  Capture capture;
  capture.kernel("a", 0, 10);
  run(capture);
  for (const auto &made : testing::FakeHost::get().tables) {
    EXPECT_EQ(made.origin, "workload");
    EXPECT_FALSE(made.help.empty()) << made.name;
    for (const auto &column : made.columns) {
      EXPECT_FALSE(column.help.empty()) << made.name << "." << column.name;
      if (column.kind != SONDE_VALUE_TEXT && column.kind != SONDE_VALUE_BOOL) {
        EXPECT_FALSE(column.unit.empty()) << made.name << "." << column.name;
      }
    }
  }
  for (const auto &made : testing::FakeHost::get().findings) {
    EXPECT_FALSE(made.formula.empty()) << made.rule;
    EXPECT_FALSE(made.message.empty()) << made.rule;
    for (const auto &[name, unit] : made.units) EXPECT_FALSE(unit.empty()) << made.rule << "." << name;
    if (made.verdict == SONDE_VERDICT_UNSUPPORTED) {
      EXPECT_FALSE(made.reason.empty()) << made.rule;
    }
  }
}

TEST_F(TablesTest, TheSameCaptureGivesTheSameResults) {
  const auto once = [&] {
    testing::FakeHost::get().reset();
    Capture first(1), second(2);
    first.process(100).allocate(0x1000, 64, 1).call("launch", 5, 8, 1).push("scope", 2);
    for (uint32_t i = 0; i < 40; ++i) {
      first.kernel("k" + std::to_string(i % 7), 10 + i * 5, 13 + i * 5, {.stream = i % 3, .correlation = i});
      second.kernel("k" + std::to_string(i % 5), 10 + i * 5, 14 + i * 5, {.device = i % 2});
    }
    run({&first, &second});
    std::string text;
    for (const auto &made : testing::FakeHost::get().tables) {
      for (const auto &row : made.rows) {
        for (const auto &value : row) text += value.str() + ",";
        text += "\n";
      }
    }
    for (const auto &made : testing::FakeHost::get().findings) text += made.rule + made.message + "\n";
    return text;
  };
  const std::string first = once();
  EXPECT_EQ(first, once());
  EXPECT_GT(first.size(), 1000u);
}

}  // namespace
}  // namespace sonde::workload
