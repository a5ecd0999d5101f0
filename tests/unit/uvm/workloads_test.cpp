// Plans on synthetic workloads at 3x oversubscription, in simulation: printed as a table, and held to the bars that the
// analysis is built for. All of it is extrapolation: the simulator is calibrated without oversubscription.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "options.h"
#include "uvm.h"

namespace sonde::uvm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TouchSet whole(const Trace &trace, std::initializer_list<std::pair<uint32_t, bool>> objects) {
  TouchSet set;
  for (const auto &[object, writes] : objects) {
    set.push_back({object, 0, static_cast<uint32_t>(pages_of(trace.allocations[object].bytes)), writes, !writes, 1});
  }
  std::sort(set.begin(), set.end(),
            [](const PageSpan &left, const PageSpan &right) { return left.allocation < right.allocation; });
  return set;
}

// Eight pairs of objects of 128 MiB, 20 launches each: the workload that was measured on an H200.
Trace streaming() {
  Trace trace;
  for (int object = 0; object < 16; ++object) trace.allocate(128 * kMiB);
  const uint32_t kernel = trace.kernel("stream");
  for (uint32_t pair = 0; pair < 8; ++pair) {
    const uint32_t set = trace.intern(whole(trace, {{2 * pair, false}, {2 * pair + 1, true}}));
    for (int launch = 0; launch < 20; ++launch) trace.launch(kernel, set, 120'000);
  }
  return trace;
}

// A device's step over a large state, with a small buffer that the host reads and writes between steps.
Trace ping_pong() {
  Trace trace;
  for (int object = 0; object < 12; ++object) trace.allocate(64 * kMiB);
  const uint32_t buffer = trace.allocate(4 * kMiB);
  const uint32_t kernel = trace.kernel("step");
  TouchSet exchanged = whole(trace, {{buffer, true}});
  exchanged[0].traffic = 0.25f;
  const uint32_t host = trace.intern(whole(trace, {{buffer, true}}));
  for (uint32_t step = 0; step < 48; ++step) {
    TouchSet set = whole(trace, {{step % 12, true}, {(step + 1) % 12, false}});
    set.insert(set.end(), exchanged.begin(), exchanged.end());
    trace.launch(kernel, trace.intern(std::move(set)), 2'000'000);
    trace.host_touch(host);
  }
  return trace;
}

// Layers whose weights serve every time step before the next layer comes; hidden states are small and always in use.
Trace recurrent() {
  Trace trace;
  constexpr uint32_t kLayers = 12;
  for (uint32_t layer = 0; layer < kLayers; ++layer) trace.allocate(96 * kMiB);
  const uint32_t hidden = trace.allocate(8 * kMiB, Home::kNowhere);
  const uint32_t kernel = trace.kernel("cell");
  for (int pass = 0; pass < 3; ++pass) {
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      const uint32_t set = trace.intern(whole(trace, {{layer, false}, {hidden, true}}));
      for (int time = 0; time < 40; ++time) trace.launch(kernel, set, 150'000);
    }
  }
  return trace;
}

// Forward through the layers, keeping activations, and backward through both.
Trace transformer() {
  Trace trace;
  constexpr uint32_t kLayers = 16;
  for (uint32_t layer = 0; layer < kLayers; ++layer) trace.allocate(48 * kMiB);
  for (uint32_t layer = 0; layer < kLayers; ++layer) trace.allocate(32 * kMiB, Home::kNowhere);
  const uint32_t forward = trace.kernel("forward");
  const uint32_t backward = trace.kernel("backward");
  for (int step = 0; step < 3; ++step) {
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      for (int kernel = 0; kernel < 4; ++kernel) {
        trace.launch(forward, trace.intern(whole(trace, {{layer, false}, {kLayers + layer, true}})), 700'000);
      }
    }
    for (uint32_t layer = kLayers; layer-- != 0;) {
      for (int kernel = 0; kernel < 8; ++kernel) {
        trace.launch(backward, trace.intern(whole(trace, {{layer, true}, {kLayers + layer, false}})), 700'000);
      }
    }
  }
  return trace;
}

// Pages here and there in one large pool: whole allocations are much more than what a launch touches.
Trace scattered() {
  Trace trace;
  trace.allocate(1024 * kMiB);
  trace.allocate(1024 * kMiB);
  const uint32_t kernel = trace.kernel("gather");
  std::mt19937 random(3);
  for (int launch = 0; launch < 150; ++launch) {
    TouchSet set;
    for (uint32_t pool = 0; pool < 2; ++pool) {
      std::vector<uint32_t> places;
      for (int piece = 0; piece < 12; ++piece) places.push_back(static_cast<uint32_t>(random() % 63) * 256);
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      for (const uint32_t place : places) set.push_back({pool, place, 64, pool == 1, pool == 0, 1});
    }
    trace.launch(kernel, trace.intern(std::move(set)), 1'000'000);
  }
  return trace;
}

struct Case {
  const char *name;
  Trace trace;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  cases.push_back({"streaming", streaming()});
  cases.push_back({"ping-pong", ping_pong()});
  cases.push_back({"recurrent", recurrent()});
  cases.push_back({"transformer", transformer()});
  cases.push_back({"scattered", scattered()});
  return cases;
}

TEST(SyntheticWorkloads, PlansAt3xOversubscriptionHoldTheirBars) {
  std::printf("3x oversubscription, simulated (extrapolation), ms\n%-12s %9s %11s %9s %9s %9s %7s %10s\n", "workload",
              "none", "each launch", "object", "plan", "optimum", "gain", "to optimum");
  const PagingParameters parameters;
  Options options;
  size_t faster = 0;
  const std::vector<Case> cases = all_cases();
  for (const Case &one : cases) {
    const uint64_t capacity = one.trace.footprint() / 3;
    const Outcome outcome = plan_and_predict(one.trace, parameters, capacity, options, nullptr);
    ASSERT_TRUE(outcome.optimum) << one.name;
    const auto ms = [](int64_t ns) { return static_cast<double>(ns) / 1e6; };
    const int64_t planned = outcome.chosen_result().total_ns;
    const double gain = 1 - ms(planned) / ms(outcome.none.total_ns);
    const double ratio = ms(planned) / ms(outcome.optimum->total_ns);
    std::printf("%-12s %9.1f %11.1f %9.1f %9.1f %9.1f %6.1f%% %10.2f\n", one.name, ms(outcome.none.total_ns),
                ms(outcome.each_launch.total_ns), ms(outcome.object.total_ns), ms(planned),
                ms(outcome.optimum->total_ns), 100 * gain, ratio);
    EXPECT_LE(planned, outcome.none.total_ns) << one.name << ": slower than without a plan";
    EXPECT_TRUE(outcome.is_extrapolated);
    if (gain >= 0.1) ++faster;
    if (std::string(one.name) == "streaming") {
      EXPECT_LE(ratio, 1.3);
    }
  }
  EXPECT_GE(2 * faster, cases.size()) << "at least 10 % faster on half of the workloads";
}

TEST(SyntheticWorkloads, WithRoomForAllThePlanIsNearTheBound) {
  const PagingParameters parameters;
  const Trace trace = streaming();
  const Outcome outcome = plan_and_predict(trace, parameters, UINT64_MAX, Options(), nullptr);
  EXPECT_EQ(outcome.chosen, Chosen::kTensor);
  EXPECT_FALSE(outcome.is_extrapolated);
  EXPECT_LE(static_cast<double>(outcome.chosen_result().total_ns), 1.1 * static_cast<double>(outcome.bound_ns));
  EXPECT_GE(1 - static_cast<double>(outcome.chosen_result().total_ns) / static_cast<double>(outcome.none.total_ns),
            0.75);
}

TEST(SyntheticWorkloads, WholeAllocationsThatHurtAreRefused) {
  const Trace trace = scattered();
  Options options;
  options.level = "object";
  const Outcome outcome = plan_and_predict(trace, PagingParameters(), trace.footprint() / 3, options, nullptr);
  EXPECT_TRUE(outcome.objects_hurt());
  EXPECT_EQ(outcome.chosen, Chosen::kNothing);
  EXPECT_NE(outcome.reason.find("longer"), std::string::npos) << outcome.reason;
  options.level = "auto";
  EXPECT_EQ(plan_and_predict(trace, PagingParameters(), trace.footprint() / 3, options, nullptr).chosen,
            Chosen::kTensor);
}

TEST(SyntheticWorkloads, ABufferThatGoesBackAndForthIsKeptOnTheHost) {
  const Trace trace = ping_pong();
  const Outcome outcome = plan_and_predict(trace, PagingParameters(), UINT64_MAX, Options(), nullptr);
  EXPECT_EQ(outcome.tensor_plan.facts.kept_on_host_bytes, 4 * kMiB);
  EXPECT_LT(outcome.tensor.host_fault_ns, outcome.none.host_fault_ns);
}

TEST(SyntheticWorkloads, OfALongRunTheBeginningIsSimulatedAndAllIsPlanned) {
  const Trace trace = streaming();
  Options options;
  options.most_accesses = trace.block_accesses() / 2;
  const Outcome outcome = plan_and_predict(trace, PagingParameters(), UINT64_MAX, options, nullptr);
  EXPECT_TRUE(outcome.is_cut);
  EXPECT_EQ(outcome.simulated_steps, trace.steps.size() / 2);
  EXPECT_EQ(outcome.plan.schedule.bytes(false), trace.footprint());
  options.most_accesses = trace.block_accesses();
  EXPECT_FALSE(plan_and_predict(trace, PagingParameters(), UINT64_MAX, options, nullptr).is_cut);
}

TEST(SyntheticWorkloads, APlanThatSavesTooLittleIsNotMade) {
  const Trace trace = streaming();
  Options options;
  options.least_gain = 0.99;
  const Outcome outcome = plan_and_predict(trace, PagingParameters(), UINT64_MAX, options, nullptr);
  EXPECT_EQ(outcome.chosen, Chosen::kNothing);
  EXPECT_TRUE(outcome.plan.schedule.is_empty());
  EXPECT_NE(outcome.reason.find("least_gain"), std::string::npos);
}

}  // namespace
}  // namespace sonde::uvm
