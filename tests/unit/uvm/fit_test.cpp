// Parameters from measurements: what a card with known costs would show gives those costs back.
#include <gtest/gtest.h>

#include "fit.h"
#include "round_numbers.h"

namespace sonde::uvm {
namespace {

// What calibrate.cu would measure on a card of round numbers (a page: 1 us in, 2 us out), by hand.
Measurements of_round_numbers() {
  Measurements out;
  out["small_bytes"] = kBlockBytes;
  out["large_bytes"] = 256 * kBlockBytes;
  out["to_device_small"] = 5'000 + 32'000;
  out["to_device_large"] = 5'000 + 256 * 32'000;
  out["to_host_small"] = 3'000 + 64'000;
  out["to_host_large"] = 3'000 + 256 * 64'000;
  out["fault_count"] = 64;
  out["fault_alone"] = 64 * (10'000 + 1'000 + 1'000);
  out["fault_together"] = 10'000 + 64 * (1'000 + 1'000);
  // One window a block and half: with two spans half of 32 pages each, see the test of the window.
  out["stream_bytes"] = 64 * kBlockBytes;
  out["stream_resident"] = 50'000;
  out["host_fault_bytes"] = 32 * kBlockBytes;
  out["host_fault_one_each"] = 32 * 7'000;
  out["host_fault_all"] = 32 * (7'000 + 32 * 4'000);
  out["remote_bytes"] = 64 * kBlockBytes;
  out["remote"] = 64 * 32 * 10'000;
  out["populate_bytes"] = 64 * kBlockBytes;
  out["populate"] = 64 * 16'000 + 700;
  out["populate_resident"] = 700;
  out["launch"] = 2'500;
  return out;
}

int64_t streaming_ns(const PagingParameters &parameters) {
  Trace trace;
  trace.allocate(32 * kBlockBytes);
  trace.allocate(32 * kBlockBytes);
  const uint32_t set = trace.intern({{0, 0, 1024, false, true, 1}, {1, 0, 1024, true, false, 1}});
  trace.launch(trace.kernel("stream"), set, 50'000);
  return simulate(trace, parameters, kUnlimited).total_ns;
}

TEST(Fit, GivesBackTheCostsOfACard) {
  for (const uint64_t pages : {1, 4, 32}) {
    PagingParameters card = round_numbers();
    card.window_bytes = pages * kPageBytes;
    Measurements measured = of_round_numbers();
    measured["stream"] = static_cast<double>(streaming_ns(card));
    const Fit fit = fit_parameters(measured);
    ASSERT_EQ(fit.error, "");
    EXPECT_NEAR(fit.parameters.to_device, 65.536e9, 1);
    EXPECT_NEAR(fit.parameters.to_host, 32.768e9, 1);
    EXPECT_EQ(fit.parameters.prefetch_call_ns, 5'000);
    EXPECT_EQ(fit.parameters.evict_ns, 3'000);
    EXPECT_NEAR(static_cast<double>(fit.parameters.batch_ns), 10'000, 20);
    EXPECT_NEAR(static_cast<double>(fit.parameters.block_ns), 1'000, 1);
    EXPECT_EQ(streaming_ns(fit.parameters) / 1000, streaming_ns(card) / 1000) << "windows of " << pages;
    EXPECT_EQ(fit.parameters.host_fault_ns, 7'000);
    EXPECT_NEAR(fit.parameters.host_fault_rate, 16.384e9, 1);
    EXPECT_NEAR(fit.parameters.remote_rate, 6.5536e9, 1);
    EXPECT_NEAR(fit.parameters.populate_rate, 131.072e9, 1);
    EXPECT_EQ(fit.parameters.launch_ns, 2'500);
  }
}

TEST(Fit, MakesStreamingAgreeWhateverASingleFaultCosts) {
  Measurements measured = of_round_numbers();
  // Twice what the card of round numbers takes at its slowest.
  PagingParameters slow = round_numbers();
  slow.window_bytes = kPageBytes;
  measured["stream"] = 2.0 * static_cast<double>(streaming_ns(slow));
  const Fit fit = fit_parameters(measured);
  EXPECT_NEAR(static_cast<double>(streaming_ns(fit.parameters)), measured["stream"], 0.001 * measured["stream"]);
}

TEST(Fit, NamesTheMeasurementThatIsMissing) {
  for (const char *name : {"to_device_large", "stream", "fault_together"}) {
    Measurements measured = of_round_numbers();
    measured["stream"] = 1e7;
    measured.erase(name);
    EXPECT_NE(fit_parameters(measured).error.find(name), std::string::npos) << name;
    measured[name] = 0;
    EXPECT_NE(fit_parameters(measured).error, "") << name;
  }
}

TEST(Fit, IsWrittenAsParametersThatCanBeReadBack) {
  Measurements measured = of_round_numbers();
  measured["stream"] = 1e7;
  const std::string text = fit_text(fit_parameters(measured), "A card");
  EXPECT_NE(text.find("# fitted to measurements on A card\nparameters:\n  to_device: 6.5536e+10\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("stream"), std::string::npos);
}

TEST(Parameters, AreSetByNameWithinTheirRange) {
  PagingParameters parameters;
  for (const std::string &name : parameter_names()) {
    const double value = get_parameter(parameters, name);
    EXPECT_TRUE(set_parameter(parameters, name, value)) << name;
    EXPECT_EQ(get_parameter(parameters, name), value) << name;
  }
  EXPECT_FALSE(set_parameter(parameters, "to_device", 0));
  EXPECT_TRUE(set_parameter(parameters, "to_device", 1));
  EXPECT_FALSE(set_parameter(parameters, "batch_ns", -1));
  EXPECT_TRUE(set_parameter(parameters, "batch_ns", 0));
  EXPECT_FALSE(set_parameter(parameters, "nothing", 1));
}

}  // namespace
}  // namespace sonde::uvm
