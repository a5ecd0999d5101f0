// The port inside a program that runs for long: many records, many sessions, beside others.
#include <sys/wait.h>

#include <cstring>
#include <thread>

#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>

#include "port_fixture.h"

namespace sonde {
namespace {

constexpr long kSlackKiB = 2048;  // what an allocator may keep, over millions of records or a thousand sessions

// A kernel record as CUPTI lays it out, made once.
class KernelImage {
 public:
  KernelImage() : bytes_(test::record_bytes(kind::kConcurrentKernel, cupti().state->version)) {}

  void launch(uint32_t correlation, uint32_t graph, uint64_t node) {
    KernelActivity record = test::kernel(1000, 2000, correlation, graph != 0 ? "node" : "plain");
    record.graph = graph;
    record.graph_node = node;
    std::memcpy(bytes_.data(), &record, std::min(sizeof(record), bytes_.size()));
    cupti().emit(bytes_.data(), bytes_.size());
  }

 private:
  std::vector<uint8_t> bytes_;
};

// Plain launches, and replays of graphs of which nobody ever told that they were made: they were there before.
TEST(CudaEmbedding, TenMillionLaunchesLeaveMemoryFlat) {
  alone([] {
    Capture capture(Options{{"buffer_bytes", "1048576"}, {"pool_bytes", "8388608"}});
    capture.want_kernels();
    capture.session.keep = false;
    ASSERT_EQ(capture.start(), SONDE_OK);
    KernelImage image;
    uint32_t correlation = UINT32_MAX - 1'000'000;  // wraps on the way
    uint64_t sent = 0;
    const auto pass = [&](uint64_t launches) {
      for (uint64_t i = 0; i < launches; ++i) {
        const bool replay = i % 2 == 1;
        if (i % 100 == 0) ++correlation;
        image.launch(++correlation, replay ? static_cast<uint32_t>(1 + i % 7) : 0, replay ? i % 100 : 0);
        ++sent;
        if (sent % 20'000 == 0) {
          EXPECT_EQ(capture.flush(false), SONDE_OK);
        }
      }
    };
    pass(500'000);
    const long before = resident_memory();
    for (int part = 0; part < 10; ++part) {
      pass(1'000'000);
      // The pool may reach its size at any time; that is less than a byte a launch.
      EXPECT_LE(resident_memory() - before, 8192) << "after " << sent << " launches";
    }
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(capture.session.records + capture.session.lost(SONDE_LOSS_VENDOR), sent);
    EXPECT_EQ(capture.session.lost(SONDE_LOSS_VENDOR), 0u);
  });
}

TEST(CudaEmbedding, AThousandShortSessionsLeaveNothingBehind) {
  alone([] {
    const auto session = [](int i) {
      Capture capture;
      capture.want_kernels();
      if (i % 2 == 1) capture.session.want_all(SONDE_SPACE_OBJECT);
      if (i % 3 == 1) capture.session.want_all(SONDE_SPACE_MEMORY);
      EXPECT_EQ(capture.start(), SONDE_OK);
      const uint64_t before = sonde_stamp();
      emit_kernels(3);
      EXPECT_EQ(capture.stop(), SONDE_OK);
      const auto kernels = capture.kernels();
      ASSERT_EQ(kernels.size(), 3u);
      // The clock is still the host's.
      EXPECT_GE(kernels[0].header.time, before);
      EXPECT_LE(kernels[2].header.time, sonde_stamp());
    };
    for (int i = 0; i < 60; ++i) session(i);
    const long memory = resident_memory();
    const long files = open_files();
    for (int i = 0; i < 1000; ++i) session(i);
    EXPECT_LE(resident_memory() - memory, kSlackKiB);
    EXPECT_EQ(open_files(), files);
    EXPECT_EQ(cupti().state->timestamp_registrations, 1u) << "CUPTI is given the clock once for the process";
    EXPECT_EQ(cupti().state->subscriptions, cupti().state->unsubscriptions);
    EXPECT_EQ(cupti().state->enabled_kinds, 0u);
  });
}

TEST(CudaEmbedding, ThousandsOfChangesOfDemandLeaveNothingBehind) {
  alone([] {
    Capture capture;
    capture.want_kernels();
    capture.session.keep = false;
    ASSERT_EQ(capture.start(), SONDE_OK);
    const auto change = [&](int i) {
      capture.session.unwant_all();
      capture.want_kernels();
      if (i % 2 == 1) capture.session.want_all(SONDE_SPACE_OBJECT);
      if (i % 3 == 1) capture.session.want(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY);
      EXPECT_EQ(capture.demand(), SONDE_OK);
      EXPECT_TRUE(enabled(kind::kConcurrentKernel));
      EXPECT_EQ(enabled(kind::kMemcpy), i % 3 == 1);
      emit_kernels(1);
    };
    for (int i = 0; i < 100; ++i) change(i);
    const long memory = resident_memory();
    for (int i = 0; i < 5000; ++i) change(i);
    EXPECT_LE(resident_memory() - memory, kSlackKiB);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(capture.session.records, 5100u) << "none is lost by a change";
    EXPECT_EQ(cupti().state->timestamp_registrations, 1u);
  });
}

TEST(CudaEmbedding, ShortSessionsBesideALongOneTakeNothingFromIt) {
  alone([] {
    Capture lasting;
    lasting.want_kernels();
    ASSERT_EQ(lasting.start(), SONDE_OK);
    uint64_t copies = 0;
    for (uint32_t i = 0; i < 500; ++i) {
      Capture other;
      other.session.want(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY);
      ASSERT_EQ(other.start(), SONDE_OK);
      EXPECT_TRUE(enabled(kind::kMemcpy));
      emit_kernels(2, 2 * i + 1);
      CopyActivity copy = {};
      copy.kind = kind::kMemcpy;
      EXPECT_TRUE(emit(copy));
      EXPECT_EQ(other.stop(), SONDE_OK);
      EXPECT_FALSE(enabled(kind::kMemcpy));
      EXPECT_TRUE(enabled(kind::kConcurrentKernel));
      copies += other.session.submitted<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY).size();
      EXPECT_TRUE(other.kernels().empty()) << "each session gets what it asked for";
    }
    EXPECT_EQ(lasting.stop(), SONDE_OK);
    EXPECT_EQ(copies, 500u);
    EXPECT_EQ(lasting.kernels().size(), 1000u);
    EXPECT_TRUE(lasting.session.submitted<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY).empty());
  });
}

TEST(CudaEmbedding, ConcurrentSessionsOfManyThreadsAllEnd) {
  alone([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 50; ++i) {
          Capture capture;
          capture.want_kernels();
          EXPECT_EQ(capture.start(), SONDE_OK);
          emit_kernels(1);
          EXPECT_EQ(capture.stop(), SONDE_OK);
          EXPECT_GE(capture.kernels().size(), 1u);
        }
      });
    }
    for (std::thread &thread : threads) thread.join();
    EXPECT_EQ(cupti().state->enabled_kinds, 0u);
  });
}

TEST(CudaEmbedding, LeavesTheSubscriptionToOthersWhenNoSessionRuns) {
  alone([] {
    {
      Capture capture;
      capture.session.want_all(SONDE_SPACE_OBJECT);
      ASSERT_EQ(capture.start(), SONDE_OK);
      EXPECT_EQ(cupti().state->subscriptions, 1u);
      EXPECT_EQ(capture.stop(), SONDE_OK);
      EXPECT_EQ(cupti().state->unsubscriptions, 1u);
    }
    // Another client holds it now: the next session says so, and has its kernels.
    cupti().state->subscribe_result = kCuptiMultipleSubscribers;
    Capture next;
    next.want_kernels();
    next.session.want_all(SONDE_SPACE_OBJECT);
    ASSERT_EQ(next.start(), SONDE_OK);
    emit_kernels(2);
    EXPECT_EQ(next.stop(), SONDE_OK);
    EXPECT_EQ(next.kernels().size(), 2u);
    EXPECT_TRUE(next.session.noted(3, "another profiler holds CUPTI's subscription")) << next.session.all_notes();
    // It has gone: the one after is whole again.
    cupti().state->subscribe_result = 0;
    Capture last;
    last.session.want_all(SONDE_SPACE_OBJECT);
    ASSERT_EQ(last.start(), SONDE_OK);
    EXPECT_EQ(cupti().state->subscriptions, 3u);
    EXPECT_EQ(last.stop(), SONDE_OK);
    EXPECT_EQ(last.session.all_notes().find("another profiler"), std::string::npos);
  });
}

TEST(CudaEmbedding, AChildThatForksHasSessionsOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not support threads in the child of a process with threads";
#endif
  alone([] {
    Capture capture(Options{{"budget", "0.5"}, {"budget_slot", "1000000"}});
    capture.want_kernels();
    ASSERT_EQ(capture.start(), SONDE_OK);
    const pid_t child = fork();
    if (child == 0) {
      bool good = capture.stop() == SONDE_OK;
      test::fake_claims().calls.clear();
      for (int i = 0; i < 100; ++i) {
        Capture own;
        own.want_kernels();
        good = good && own.start() == SONDE_OK;
        emit_kernels(2);
        good = good && own.stop() == SONDE_OK && own.kernels().size() == 2;
      }
      good = good && test::fake_claims().calls.size() == 1;  // a child inherits no claim
      _exit(good && !::testing::Test::HasFailure() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_EQ(capture.stop(), SONDE_OK);
  });
}

// ---- the claim on the device ---------------------------------------------------------------------------------------

TEST(CudaClaim, IsTakenBeforeCuptiIsOpenedAndKept) {
  alone([] {
    for (int i = 0; i < 3; ++i) {
      Capture capture;
      capture.want_kernels();
      ASSERT_EQ(capture.start(), SONDE_OK);
      EXPECT_EQ(capture.stop(), SONDE_OK);
    }
    EXPECT_EQ(test::fake_claims().calls, std::vector<std::string>{"take cuda.device activity cuda"});
  });
}

TEST(CudaClaim, IsNotTakenWhereNothingIsWanted) {
  alone([] {
    Capture capture;
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_TRUE(test::fake_claims().calls.empty());
  });
}

TEST(CudaClaim, RefusedLeavesCuptiClosedAndSaysWhoHoldsIt) {
  alone([] {
    test::fake_claims().refuse = true;
    Capture capture;
    capture.want_kernels();
    EXPECT_EQ(capture.start(), SONDE_OK);
    EXPECT_EQ(capture.flush(), SONDE_OK);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_TRUE(capture.session.noted(3, "no data because cuda.device is held by cuda_access for patches"))
        << capture.session.all_notes();
    EXPECT_EQ(dlopen(SONDE_FAKE_CUPTI, RTLD_NOW | RTLD_NOLOAD), nullptr);
    // The holder is gone: the next session works.
    test::fake_claims().refuse = false;
    Capture next;
    next.want_kernels();
    ASSERT_EQ(next.start(), SONDE_OK);
    emit_kernels(1);
    EXPECT_EQ(next.stop(), SONDE_OK);
    EXPECT_EQ(next.kernels().size(), 1u);
  });
}

TEST(CudaClaim, IsGivenBackWhereThereIsNoCupti) {
  alone([] {
    Capture capture(Options{{"cupti", "/nonexistent/libcupti.so"}});
    capture.want_kernels();
    EXPECT_EQ(capture.start(), SONDE_OK);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    const std::vector<std::string> calls = {"take cuda.device activity cuda", "release cuda.device activity"};
    EXPECT_EQ(test::fake_claims().calls, calls);
  });
}

TEST(CudaClaim, WorksWithAHostThatHasNoClaims) {
  alone([] {
    test::fake_claims().present = false;
    Capture capture;
    capture.want_kernels();
    ASSERT_EQ(capture.start(), SONDE_OK);
    emit_kernels(1);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(capture.kernels().size(), 1u);
  });
}

}  // namespace
}  // namespace sonde
