// The sample scripts on synthetic events, with results worked out by hand.
#include <fstream>
#include <iterator>

#include "script_run.h"

namespace sonde::test {
namespace {

using Cells = std::vector<std::string>;

std::string sample(const char *name) {
  std::ifstream file(std::string(SONDE_TEST_SOURCE_DIR) + "/samples/lua/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(LuaSamples, TopKernelsSortsByTime) {
  ScriptRun run(sample("top_kernels.lua"), "options: {rows: 2}");
  // Lengths are in ticks of the stamp: the script's shares do not depend on the tick.
  for (int index = 0; index < 3; ++index) run.kernel(0, 1'000'000, "short");
  for (int index = 0; index < 2; ++index) run.kernel(0, 3'000'000, "long");
  run.kernel(0, 1'000'000, "rare");
  run.finish();
  ASSERT_EQ(run.finding_count(), 0u) << run.finding().message;
  const Cells first = run.row("top_kernels", 0);
  ASSERT_EQ(first.size(), 5u);
  EXPECT_EQ(first[0], "long");
  EXPECT_EQ(first[1], "2");
  EXPECT_NEAR(std::stod(first[4]), 60, 0.001);
  EXPECT_EQ(run.row("top_kernels", 1).at(0), "short");
  EXPECT_NEAR(std::stod(run.row("top_kernels", 1).at(4)), 30, 0.001);
  EXPECT_TRUE(run.row("top_kernels", 2).empty());
}

TEST(LuaSamples, TopKernelsSaysWhenThereIsNone) {
  ScriptRun run(sample("top_kernels.lua"));
  run.finish();
  ASSERT_EQ(run.finding_count(), 1u);
  EXPECT_STREQ(run.finding().rule, "top_kernels.no_kernels");
  EXPECT_EQ(run.finding().verdict, SONDE_VERDICT_UNSUPPORTED);
}

TEST(LuaSamples, CopySizesCountsByDirectionAndPowerOfTwo) {
  ScriptRun run(sample("copy_sizes.lua"));
  run.copy(0, SONDE_COPY_HOST_TO_DEVICE);
  run.copy(4095, SONDE_COPY_HOST_TO_DEVICE);
  run.copy(2048, SONDE_COPY_HOST_TO_DEVICE);
  run.copy(4096, SONDE_COPY_DEVICE_TO_HOST);
  run.copy(8191, SONDE_COPY_DEVICE_TO_HOST);
  run.finish();
  EXPECT_EQ(run.row("sizes", 0), (Cells{"host_to_device", "0", "0", "1", "0"}));
  EXPECT_EQ(run.row("sizes", 1), (Cells{"host_to_device", "2048", "4095", "2", "6143"}));
  EXPECT_EQ(run.row("sizes", 2), (Cells{"device_to_host", "4096", "8191", "2", "12287"}));
  EXPECT_TRUE(run.row("sizes", 3).empty());
  ASSERT_EQ(run.finding_count(), 1u);
  EXPECT_EQ(run.finding().verdict, SONDE_VERDICT_VIOLATION);  // 3 of 5
  EXPECT_EQ(run.finding().evidence[0].value.as.i64, 3);
}

TEST(LuaSamples, CopySizesIsContentWithLargeCopies) {
  ScriptRun run(sample("copy_sizes.lua"));
  run.copy(1, SONDE_COPY_HOST_TO_DEVICE);
  run.copy(uint64_t{1} << 63, SONDE_COPY_HOST_TO_DEVICE);
  run.finish();
  ASSERT_EQ(run.finding_count(), 1u);
  EXPECT_EQ(run.finding().verdict, SONDE_VERDICT_OK);  // 1 of 2 is not more than half
  EXPECT_EQ(run.row("sizes", 1),
            (Cells{"host_to_device", "9223372036854775808", "18446744073709551615", "1", "9223372036854775808"}));
}

TEST(LuaSamples, CopySizesSaysWhenThereIsNone) {
  ScriptRun run(sample("copy_sizes.lua"));
  run.finish();
  ASSERT_EQ(run.finding_count(), 1u);
  EXPECT_EQ(run.finding().verdict, SONDE_VERDICT_UNSUPPORTED);
}

}  // namespace
}  // namespace sonde::test
