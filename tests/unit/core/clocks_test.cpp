#include "core/clocks.h"

#include <time.h>

#include <cmath>

#include "support.h"

namespace sonde::test {
namespace {

TEST(Clocks, AStampBecomesTheWallClock) {
  const sonde_clock_t clock = core::calibrate_stamp();
  for (int i = 0; i < 5; ++i) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const int64_t wall = static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
    EXPECT_LT(std::abs(sonde_clock_ns(&clock, sonde_stamp()) - wall), 5'000'000)
        << "5 ms leaves room for a busy machine";
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Hand calculation: 3 units a ns give a multiplier of 2^shift / 3.
TEST(Clocks, TheLineIsExactFarFromItsBase) {
  sonde_clock_t clock{};
  clock.base_raw = 1'000;
  clock.base_ns = 5'000'000'000;
  clock.shift = 32;
  clock.multiplier = (uint64_t{1} << 32) / 2;  // 2 units a ns
  EXPECT_EQ(sonde_clock_ns(&clock, 1'000), 5'000'000'000);
  EXPECT_EQ(sonde_clock_ns(&clock, 3'000), 5'000'001'000);
  EXPECT_EQ(sonde_clock_ns(&clock, 0), 5'000'000'000 - 500);
  EXPECT_EQ(sonde_clock_ns(&clock, 1'000 + (uint64_t{1} << 62)), 5'000'000'000 + (int64_t{1} << 61));
  EXPECT_EQ(sonde_clock_duration_ns(&clock, 3'000, 1'000), -1'000);
}

// faults: offset and drift with a known truth. The foreign clock runs 50 ppm fast and began at 7 000.
TEST(Clocks, AForeignClockIsRecoveredFromPairs) {
  sonde_clock_t host = core::unix_ns_clock();
  const auto reading = [](int64_t ns) {
    return static_cast<uint64_t>(7'000 + std::llround(static_cast<double>(ns) * 1.00005));
  };
  core::ForeignClock foreign;
  EXPECT_FALSE(foreign.line(16).has_value());
  foreign.add_pair(host, 1'000'000'000, reading(1'000'000'000));
  foreign.add_pair(host, 11'000'000'000, reading(11'000'000'000));
  const auto line = foreign.line(16);
  ASSERT_TRUE(line.has_value());
  for (int64_t truth = 0; truth <= 100'000'000'000; truth += 9'999'999'999) {
    EXPECT_NEAR(static_cast<double>(sonde_clock_ns(&*line, reading(truth))), static_cast<double>(truth), 10.0);
  }
}

TEST(Clocks, APairThatGoesBackIsIgnored) {
  sonde_clock_t host = core::unix_ns_clock();
  core::ForeignClock foreign;
  foreign.add_pair(host, 1'000, 1'000);
  foreign.add_pair(host, 2'000, 3'000);
  const auto before = foreign.line(16);
  foreign.add_pair(host, 500, 4'000);
  foreign.add_pair(host, 3'000, 900);
  const auto after = foreign.line(16);
  EXPECT_EQ(before->multiplier, after->multiplier);
}

TEST(Clocks, ASessionConvertsAPortsClock) {
  TestSession session;
  session.start();
  sonde_clock_t line{};
  EXPECT_EQ(api().capture.clock(session.get(), 20, &line), SONDE_E_NOT_FOUND);
  EXPECT_EQ(api().capture.pair_clock(session.get(), 3, 0, 0, 0), SONDE_E_INVALID) << "ids below 16 are the host's";
  ASSERT_EQ(api().capture.pair_clock(session.get(), 20, sonde_stamp(), 123'000, 40), SONDE_OK);
  ASSERT_EQ(api().capture.clock(session.get(), 20, &line), SONDE_OK);
  EXPECT_EQ(line.id, 20u);
  EXPECT_EQ(line.base_raw, 123'000u);
}

}  // namespace
}  // namespace sonde::test
