// The controller of budgeted capture against simulated programs: what a launch costs is given, and so is the truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "budget.h"
#include "duty.h"

namespace sonde::cuda {
namespace {

constexpr uint64_t kSlot = 10'000'000;
constexpr double kSecond = 1e9;

// What a launch costs the program at a moment of its own progress (the time it would have taken without a tool).
struct Cost {
  double own_ns;
  double collected_ns;  // added when collected
};
using CostAt = std::function<Cost(double progress_ns)>;

struct Outcome {
  double with_ns = 0;     // time the program took
  double without_ns = 0;  // and would have taken
  double collected_ns = 0;
  uint64_t windows = 0;

  double slowdown() const { return with_ns / without_ns - 1; }
  double collected_share() const { return collected_ns / with_ns; }
};

// Runs a program for `span_ns` of its own time. `standing_ns`: added to each launch whether collected or not, of which
// the controller is told.
Outcome run(DutyCycle &duty, const CostAt &cost_at, double span_ns, double standing_ns = 0, double switch_ns = 0) {
  using Clock = DutyCycle::Clock;
  const auto at = [](double ns) { return Clock::time_point(std::chrono::nanoseconds(static_cast<int64_t>(ns))); };
  Outcome outcome;
  duty.controller().set_standing_cost(standing_ns);
  bool collected = duty.begin(at(0));
  uint64_t launches = 0;
  while (outcome.without_ns < span_ns) {
    const Cost cost = cost_at(outcome.without_ns);
    const double ns = cost.own_ns + standing_ns + (collected ? cost.collected_ns : 0);
    outcome.without_ns += cost.own_ns;
    outcome.with_ns += ns;
    if (collected) outcome.collected_ns += ns;
    ++launches;
    while (at(outcome.with_ns) >= duty.due()) {
      if (duty.next_collected() != collected) outcome.with_ns += switch_ns;  // the program waits meanwhile
      duty.step(at(outcome.with_ns), launches);
      launches = 0;
      collected = duty.collected();
      ++outcome.windows;
    }
  }
  return outcome;
}

// Tiny launches that collection makes 40 % slower.
Cost bound_by_launches(double) { return {5'000, 2'000}; }

// Launch-bound for 5 s, then 5 s of long kernels that hide the cost, then bursts of 30 ms with pauses of 70 ms.
Cost phases(double progress_ns) {
  const double second = std::fmod(progress_ns / kSecond, 15);
  if (second < 5) return {5'000, 2'000};
  if (second < 10) return {400'000, 0};
  const double in_step = std::fmod(progress_ns, 100e6);
  return in_step < 30e6 ? Cost{6'000, 2'000} : Cost{70e6, 0};
}

TEST(Budget, KeepsTheSlowDownWithinTheBudget) {
  double slowdown = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    DutyCycle duty(0.03, kSlot, seed);
    const Outcome outcome = run(duty, bound_by_launches, 60 * kSecond);
    EXPECT_LE(outcome.slowdown(), 0.03) << seed;
    slowdown += outcome.slowdown() / 20;
    EXPECT_NEAR(duty.controller().collecting_slowdown(), outcome.slowdown(), 0.004) << "its own estimate, " << seed;
  }
  EXPECT_GT(slowdown, 0.015) << "the budget is used";
}

TEST(Budget, KeepsItOverPhasesOfTheProgram) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    DutyCycle duty(0.03, kSlot, seed);
    const Outcome outcome = run(duty, phases, 90 * kSecond);
    EXPECT_LE(outcome.slowdown(), 0.03) << seed;
    EXPECT_GT(outcome.collected_share(), 0.01) << seed;
  }
}

TEST(Budget, ChargesForSwitching) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    DutyCycle duty(0.03, kSlot, seed);
    const Outcome outcome = run(duty, bound_by_launches, 60 * kSecond, 0, 500'000);
    EXPECT_LE(outcome.slowdown(), 0.03) << seed;
  }
}

TEST(Budget, TakesWhatStandsFromTheBudgetFirst) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    DutyCycle duty(0.03, kSlot, seed);
    const Outcome outcome = run(duty, bound_by_launches, 60 * kSecond, 75);  // 1.5 %
    EXPECT_LE(outcome.slowdown(), 0.03) << seed;
    EXPECT_NEAR(duty.controller().standing_slowdown(), 0.015, 0.001);
    EXPECT_FALSE(duty.controller().out_of_reach());
  }
}

TEST(Budget, SaysWhenItCannotBeReached) {
  DutyCycle duty(0.03, kSlot, 1);
  const Outcome outcome = run(duty, bound_by_launches, 30 * kSecond, 300);  // 6 %
  EXPECT_TRUE(duty.controller().out_of_reach());
  EXPECT_LT(outcome.collected_share(), 0.02) << "as little as the samples need";
  EXPECT_GT(outcome.collected_ns, 0);
}

TEST(Budget, CollectsHalfWhereThatCostsNothing) {
  DutyCycle duty(0.03, kSlot, 3);
  const Outcome outcome = run(
      duty,
      [](double) {
        return Cost{300'000, 0};
      },
      60 * kSecond);
  EXPECT_GT(outcome.collected_share(), 0.4);
  EXPECT_LE(duty.stratum().duty(), BudgetController::kMostDuty);
}

TEST(Budget, AssumesTheWorstWhereLaunchesAreNotCounted) {
  BudgetController controller(0.03, kSlot, 5);
  double collected = 0;
  double all = 0;
  for (int i = 0; i < 200; ++i) {
    const Stratum stratum = controller.plan();
    const auto on = static_cast<uint64_t>(stratum.chosen.size()) * kSlot;
    const auto off = (stratum.slots - stratum.chosen.size()) * kSlot;
    controller.add(true, on, 0, false);
    controller.add(false, off, 0, false);
    controller.close();
    collected += static_cast<double>(on);
    all += static_cast<double>(on + off);
  }
  // A loss of half the collected time: 0.5 d / (1 - 0.5 d) <= 0.03.
  EXPECT_LE(collected / all, 0.0583);
  EXPECT_GT(collected / all, 0.02);
}

// Every slot of a stratum has the chance m / n: over many strata the counts of 20 slots have a chi-square of 19 degrees
// of freedom, which exceeds 43.8 once in a thousand.
TEST(Budget, EverySlotHasTheSameChance) {
  BudgetController controller(0.03, kSlot, 11);
  std::vector<double> chosen(20);
  double all = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Stratum stratum = controller.plan();
    const uint64_t on = stratum.chosen.size(), off = stratum.slots - on;
    controller.add(true, on * kSlot, on * 1000, true);
    controller.add(false, off * kSlot, off * 1000, true);  // no cost
    controller.close();
    if (stratum.slots != 20) continue;
    EXPECT_GE(stratum.chosen.size(), 2u);
    EXPECT_TRUE(std::is_sorted(stratum.chosen.begin(), stratum.chosen.end()));
    if (stratum.chosen.size() != 10) continue;
    for (const uint32_t slot : stratum.chosen) chosen[slot] += 1;
    all += 1;
  }
  ASSERT_GT(all, 1000);
  double square = 0;
  // Of 10 in 20: the variance of a count is all / 4, and the counts of one stratum exclude each other (19 / 20).
  for (const double count : chosen) square += (count - all / 2) * (count - all / 2) / (all / 4);
  EXPECT_LT(square * 19 / 20, 43.8);
}

TEST(Budget, WindowsFollowThePlanAndNeverShrink) {
  using Clock = DutyCycle::Clock;
  DutyCycle duty(0.03, kSlot, 2);
  Clock::time_point now = {};
  duty.begin(now);
  uint64_t stratum = duty.stratum().number;
  uint64_t collected = 0;
  for (int i = 0; i < 500; ++i) {
    EXPECT_GE(duty.due() - now, std::chrono::nanoseconds(kSlot));
    now = duty.due() + std::chrono::milliseconds(i % 7);  // the thread may be late
    const bool announced = duty.next_collected();
    const size_t planned = duty.stratum().chosen.size();
    collected += duty.collected() ? 1 : 0;
    duty.step(now, 100);
    EXPECT_EQ(duty.collected(), announced);
    if (duty.stratum().number == stratum) continue;
    EXPECT_EQ(collected, planned) << "each chosen slot is a window";
    stratum = duty.stratum().number;
    collected = 0;
  }
}

}  // namespace
}  // namespace sonde::cuda
