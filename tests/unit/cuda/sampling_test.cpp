// Budgeted capture from the option to the records, with a program that launches through a CUPTI of the tests' own.
#include <atomic>
#include <cstring>
#include <thread>

#include <sonde/spaces/memory.h>
#include <sonde/spaces/session.h>

#include "port_fixture.h"

namespace sonde {
namespace {

// A thread that launches kernels, each stamped at its launch, until it ends.
class Program {
 public:
  Program() : thread_([this] { run(); }) {}
  ~Program() { end(); }

  void end() {
    done_ = true;
    if (thread_.joinable()) thread_.join();
  }
  static void sleep(int milliseconds) { std::this_thread::sleep_for(Milliseconds(milliseconds)); }

 private:
  void run() {
    const uint32_t bytes = test::record_bytes(kind::kConcurrentKernel, cupti().state->version);
    std::vector<uint8_t> image(bytes);
    for (uint32_t i = 1; !done_; ++i) {
      const uint64_t stamp = cupti().now();
      const KernelActivity record = test::kernel(stamp, stamp + 10, i, "kernel");
      std::memcpy(image.data(), &record, std::min<size_t>(sizeof(record), bytes));
      cupti().launch(image.data(), bytes);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  std::atomic<bool> done_{false};
  std::thread thread_;
};

std::vector<sonde_session_window_t> windows_of(const Capture &capture) {
  return capture.session.submitted<sonde_session_window_t>(SONDE_SPACE_SESSION, SONDE_SESSION_WINDOW);
}

const Options kBudget = {{"budget", "0.4"}, {"budget_slot", "2000000"}};

// Windows follow each other, and what was collected was launched in the collected ones.
void check_windows(const Capture &capture) {
  const auto windows = windows_of(capture);
  ASSERT_GT(windows.size(), 10u);
  for (size_t i = 0; i + 1 < windows.size(); ++i) {
    EXPECT_EQ(windows[i].end, windows[i + 1].header.time);
    EXPECT_EQ(windows[i].next, windows[i + 1].state);
    EXPECT_LE(windows[i].stratum, windows[i + 1].stratum);
    EXPECT_GE(windows[i].slots, windows[i].collected);
    EXPECT_EQ(test::text_of(windows[i].origin), "cuda");
  }
  size_t left_out = 0;
  for (const auto &window : windows) left_out += window.state == SONDE_WINDOW_LEFT_OUT ? 1 : 0;
  EXPECT_GT(left_out, 3u);
  EXPECT_LT(left_out, windows.size());

  uint64_t outside = 0;
  const auto kernels = capture.kernels();
  for (const auto &kernel : kernels) {
    const auto after = std::upper_bound(windows.begin(), windows.end(), kernel.header.time,
                                        [](uint64_t time, const auto &window) { return time < window.header.time; });
    if (after == windows.begin() || (after - 1)->state != SONDE_WINDOW_COLLECTED) ++outside;
  }
  // A launch that stamped its kernel just before a window began.
  EXPECT_LE(outside, windows.size());
  EXPECT_GT(kernels.size(), 10u);
}

TEST(CudaSampling, CollectsInWindowsAndRecordsAllOfThem) {
  alone([] {
    Capture capture(kBudget);
    capture.want_kernels();
    ASSERT_EQ(capture.start(), SONDE_OK);
    const uint64_t before = cupti().state->launches;
    Program program;
    Program::sleep(1500);
    program.end();
    const uint64_t launches = cupti().state->launches - before;
    EXPECT_EQ(capture.stop(), SONDE_OK);
    check_windows(capture);
    uint64_t counted = 0;
    uint64_t collected = 0;
    for (const auto &window : windows_of(capture)) {
      ASSERT_NE(window.launches, SONDE_LAUNCHES_UNKNOWN) << "the last one is counted too";
      counted += window.launches;
      if (window.state == SONDE_WINDOW_COLLECTED) collected += window.launches;
    }
    // All launches are counted, in whatever window, but for those before the first.
    EXPECT_LE(counted, launches);
    EXPECT_GT(counted, launches * 95 / 100);
    const auto kernels = static_cast<double>(capture.kernels().size());
    EXPECT_NEAR(kernels, static_cast<double>(collected), static_cast<double>(windows_of(capture).size()));
    EXPECT_TRUE(capture.session.noted(1, "sampled to keep the budget of 40 %")) << capture.session.all_notes();
    EXPECT_TRUE(capture.session.noted(1, "measured")) << capture.session.all_notes();
    EXPECT_EQ(cupti().state->enabled_kinds, 0u);
    EXPECT_EQ(cupti().state->enabled_calls, 0u);
  });
}

// Readers assign kernels to windows while they read.
TEST(CudaSampling, AWindowsRecordPrecedesWhatWasLaunchedAfterIt) {
  alone([] {
    Capture capture(kBudget);
    capture.want_kernels();
    ASSERT_EQ(capture.start(), SONDE_OK);
    {
      Program program;
      Program::sleep(800);
    }
    EXPECT_EQ(capture.stop(), SONDE_OK);
    uint64_t known_until = 0;
    bool next_collected = false;
    uint64_t early = 0;
    for (const auto &batch : capture.session.batches) {
      for (size_t at = 0; at < batch.size();) {
        sonde_record_t header;
        std::memcpy(&header, batch.data() + at, sizeof(header));
        if (header.space == SONDE_SPACE_SESSION) {
          sonde_session_window_t window;
          std::memcpy(&window, batch.data() + at, sizeof(window));
          known_until = window.end;
          next_collected = window.next == SONDE_WINDOW_COLLECTED;
        } else if (header.time > known_until && known_until != 0 && !next_collected) {
          ++early;
        }
        at += header.size8 * size_t{8};
      }
    }
    EXPECT_LE(early, windows_of(capture).size());
  });
}

TEST(CudaSampling, AllocationsAreAlwaysCollected) {
  alone([] {
    Capture capture(Options{{"budget", "0.001"}, {"budget_slot", "10000000"}});
    capture.want_kernels();
    capture.session.want_all(SONDE_SPACE_MEMORY);
    ASSERT_EQ(capture.start(), SONDE_OK);
    int left_out = 0;
    for (int i = 0; i < 50; ++i) {
      Program::sleep(2);
      EXPECT_TRUE(enabled(kind::kMemory));
      left_out += enabled(kind::kConcurrentKernel) ? 0 : 1;
    }
    EXPECT_GT(left_out, 20);
    EXPECT_EQ(capture.stop(), SONDE_OK);
  });
}

TEST(CudaSampling, ASessionWithoutABudgetGetsEverything) {
  alone([] {
    Capture sampled(kBudget);
    sampled.want_kernels();
    ASSERT_EQ(sampled.start(), SONDE_OK);
    Program program;
    Program::sleep(400);
    uint64_t launches = 0;
    {
      Capture whole;
      whole.want_kernels();
      ASSERT_EQ(whole.start(), SONDE_OK);
      const uint64_t before = cupti().state->launches;
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(enabled(kind::kConcurrentKernel));
        Program::sleep(4);
      }
      launches = cupti().state->launches - before;
      EXPECT_EQ(whole.stop(), SONDE_OK);
      EXPECT_GE(whole.kernels().size() + 1, launches);
      EXPECT_TRUE(windows_of(whole).empty());
    }
    Program::sleep(400);
    program.end();
    EXPECT_EQ(sampled.stop(), SONDE_OK);
    check_windows(sampled);
    // For the other one that time is a stratum of its own, all of it collected.
    uint64_t certain = 0;
    for (const auto &window : windows_of(sampled)) {
      if (window.slots != 1) continue;
      ++certain;
      EXPECT_EQ(window.collected, 1u);
      EXPECT_EQ(window.state, SONDE_WINDOW_COLLECTED);
      EXPECT_NEAR(static_cast<double>(window.launches), static_cast<double>(launches), 200);
    }
    EXPECT_EQ(certain, 1u);
  });
}

TEST(CudaSampling, SaysWhenABudgetHadToWait) {
  alone([] {
    Capture whole;
    whole.want_kernels();
    ASSERT_EQ(whole.start(), SONDE_OK);
    Capture sampled(kBudget);
    sampled.want_kernels();
    ASSERT_EQ(sampled.start(), SONDE_OK);
    emit_kernels(5);
    EXPECT_EQ(sampled.stop(), SONDE_OK);
    EXPECT_EQ(whole.stop(), SONDE_OK);
    EXPECT_EQ(sampled.kernels().size(), 5u);
    EXPECT_TRUE(windows_of(sampled).empty());
    EXPECT_TRUE(sampled.session.noted(1, "another session of the process collects everything"))
        << sampled.session.all_notes();
  });
}

TEST(CudaSampling, AssumesTheCostWhereLaunchesCannotBeCounted) {
  alone([] {
    cupti().state->subscribe_result = kCuptiMultipleSubscribers;
    Capture capture(kBudget);
    capture.want_kernels();
    ASSERT_EQ(capture.start(), SONDE_OK);
    {
      Program program;
      Program::sleep(500);
    }
    EXPECT_EQ(capture.stop(), SONDE_OK);
    for (const auto &window : windows_of(capture)) EXPECT_EQ(window.launches, SONDE_LAUNCHES_UNKNOWN);
    EXPECT_TRUE(capture.session.noted(1, "launches are not counted")) << capture.session.all_notes();
    EXPECT_TRUE(capture.session.noted(1, "assumed")) << capture.session.all_notes();
  });
}

TEST(CudaSampling, ShortSessionsOfABudgetLeaveNothingBehind) {
  alone([] {
    const auto session = [] {
      Capture capture(kBudget);
      capture.want_kernels();
      EXPECT_EQ(capture.start(), SONDE_OK);
      Program::sleep(1);
      EXPECT_EQ(capture.stop(), SONDE_OK);
    };
    for (int i = 0; i < 40; ++i) session();
    const long memory = resident_memory();
    for (int i = 0; i < 300; ++i) session();
    EXPECT_LE(resident_memory() - memory, 2048);
    EXPECT_EQ(cupti().state->enabled_kinds, 0u);
    EXPECT_EQ(cupti().state->enabled_calls, 0u);
  });
}

}  // namespace
}  // namespace sonde
