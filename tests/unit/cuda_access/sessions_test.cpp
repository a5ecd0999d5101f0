// Sessions of the port: together, one after the other, and where something stands in the way.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <thread>

#include <sonde/ledger.h>
#include <sonde/toolkit/warp_records.h>

#include "program.h"

namespace sonde::cuda::access::test {
namespace {

using Clock = std::chrono::steady_clock;

void want_objects(Capture &capture) {
  capture.want(SONDE_ACCESS_LAUNCH);
  capture.want(SONDE_ACCESS_OBJECT);
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Memory that this process has resident, KiB. Sanitizers keep freed memory, so nothing can be told of it there.
long resident_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  std::ifstream file("/proc/self/statm");
  long size = 0;
  long resident = 0;
  file >> size >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
#endif
}

TEST(Sessions, TwoSessionsGetWhatEachWants) {
  Capture objects;
  want_objects(objects);
  ASSERT_EQ(objects.start(), SONDE_OK);
  Program program;
  const uint64_t input = program.allocate(64 << 10);
  Capture pages(Options{{"collect", "pages"}});
  pages.want(SONDE_ACCESS_PAGES);
  ASSERT_EQ(pages.start(), SONDE_OK);
  const Function kernel =
      program.kernel("kernel", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
  program.launch(kernel);
  ASSERT_EQ(pages.stop(), SONDE_OK);
  program.launch(kernel);
  ASSERT_EQ(objects.stop(), SONDE_OK);
  EXPECT_EQ(objects.launches().size(), 2u);
  EXPECT_EQ(objects.objects().size(), 2u);
  EXPECT_EQ(objects.all(SONDE_ACCESS_PAGES).size(), 0u) << "it did not want them";
  EXPECT_EQ(pages.all(SONDE_ACCESS_PAGES).size(), 1u);
  EXPECT_EQ(pages.launches().size(), 0u);
  EXPECT_EQ(pages.objects().size(), 0u);
}

TEST(Sessions, DemandThatComesAndGoesIsFollowed) {
  Capture capture;
  ASSERT_EQ(capture.start(), SONDE_OK);
  capture.want(SONDE_ACCESS_LAUNCH);
  ASSERT_EQ(capture.demand(), SONDE_OK);
  Program program;
  const uint64_t input = program.allocate(4096);
  std::atomic<int> patched{0};
  const Function kernel = program.kernel("kernel", [&](PatchPlayer &player) {
    patched += player.patched() ? 1 : 0;
    player.access(side_by_side(input, 4), 4, kRead);
  });
  program.launch(kernel);
  device().synchronize(program.context);
  EXPECT_EQ(patched, 0) << "nothing but launches is wanted";
  capture.want(SONDE_ACCESS_OBJECT);
  ASSERT_EQ(capture.demand(), SONDE_OK);
  program.launch(kernel);
  device().synchronize(program.context);
  EXPECT_EQ(patched, 1);
  capture.session.unwant_all();
  capture.want(SONDE_ACCESS_LAUNCH);
  ASSERT_EQ(capture.demand(), SONDE_OK);
  program.launch(kernel);
  device().synchronize(program.context);
  EXPECT_EQ(patched, 1);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  EXPECT_EQ(capture.launches().size(), 3u);
}

TEST(Sessions, WithoutDemandNothingIsOpened) {
  alone([] {
    Capture capture;
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_EQ(device().counts.subscribers, 0u);
    ASSERT_EQ(capture.stop(), SONDE_OK);
  });
}

TEST(Sessions, ManyShortSessionsLeaveNothingBehind) {
  const auto session = [](Program *program, uint64_t input) {
    Capture capture(Options{{"collect", "objects,pages,intervals,records"}});
    want_objects(capture);
    capture.want(SONDE_ACCESS_WARPS);
    capture.want(SONDE_ACCESS_INTERVALS);
    ASSERT_EQ(capture.start(), SONDE_OK);
    if (program != nullptr) {
      program->run([&](PatchPlayer &player) {
        for (int i = 0; i < 10000; ++i) player.access(side_by_side(input, 4), 4, kRead);
      });
    }
    ASSERT_EQ(capture.stop(), SONDE_OK);
    if (program == nullptr) return;
    ASSERT_EQ(capture.launches().size(), 1u);
    ASSERT_EQ(capture.launches()[0].accesses, 320000u);
  };
  session(nullptr, 0);
  Program program;
  const uint64_t input = program.allocate(4096);
  for (int i = 0; i < 20; ++i) session(&program, input);
  EXPECT_EQ(device().counts.patched, 0u);
  const long resident = resident_memory();
  const uint64_t host_bytes = device().counts.host_bytes;
  const uint64_t device_bytes = device().counts.device_bytes;
  const uint64_t streams = device().counts.streams;
  for (int i = 0; i < 480; ++i) session(&program, input);
  EXPECT_EQ(device().counts.patched, 0u);
  EXPECT_EQ(device().counts.host_bytes, host_bytes);
  EXPECT_EQ(device().counts.device_bytes, device_bytes);
  EXPECT_EQ(device().counts.streams, streams);
  EXPECT_LT(resident_memory() - resident, 8 << 10);
  EXPECT_EQ(device().counts.bad_calls, 0u);
}

TEST(Sessions, AKernelThatNeverEndsIsUnfinished) {
  alone([] {
    Capture capture;
    want_objects(capture);
    ASSERT_EQ(capture.start(), SONDE_OK);
    Program program;
    const uint64_t input = program.allocate(4096);
    Gate never;
    const Stream stream = device().create_stream(program.context);
    program.launch(program.kernel("endless", [&](PatchPlayer &) { never.wait(); }), stream);
    program.launch(
        program.kernel("short", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); }));
    const auto begin = Clock::now();
    EXPECT_EQ(capture.stop(), SONDE_E_TIMEOUT);
    EXPECT_LT(seconds_since(begin), 4.0);
    const auto launches = capture.launches();
    ASSERT_EQ(launches.size(), 2u);
    for (const auto &launch : launches) {
      const bool endless = text_of(launch.name) == "endless";
      EXPECT_EQ(launch.flags, endless ? SONDE_LAUNCH_WATCHED | SONDE_LAUNCH_UNFINISHED : SONDE_LAUNCH_WATCHED);
      EXPECT_EQ(launch.readable != 0, !endless);
    }
    EXPECT_EQ(capture.objects().size(), 1u);
    never.open();
    device().synchronize_all();  // the kernel still holds the gate
  });
}

TEST(Sessions, WhileAnEndlessKernelFillsTheBlocksStopReturns) {
  alone([] {
    Capture capture(Options{{"collect", "records"}});
    capture.want(SONDE_ACCESS_LAUNCH);
    capture.want(SONDE_ACCESS_WARPS);
    ASSERT_EQ(capture.start(), SONDE_OK);
    Program program;
    const uint64_t input = program.allocate(4096);
    std::atomic<bool> end{false};
    program.launch(program.kernel("endless", [&](PatchPlayer &player) {
      while (!end) player.access(side_by_side(input, 4), 4, kRead);
    }));
    const auto begin = Clock::now();
    EXPECT_EQ(capture.stop(), SONDE_E_TIMEOUT);
    EXPECT_LT(seconds_since(begin), 6.0);
    EXPECT_EQ(capture.launches().size(), 1u);
    end = true;
    device().synchronize_all();
  });
}

TEST(Sessions, ThreadsThatLoadModulesDoNotHoldUpTheEnd) {
  alone([] {
    Capture first;
    want_objects(first);
    ASSERT_EQ(first.start(), SONDE_OK);
    Program program;
    std::atomic<bool> done{false};
    std::thread loader([&] {
      while (!done) device().unload_module(device().load_module(program.context));
    });
    for (int i = 0; i < 100; ++i) {
      Capture capture;
      want_objects(capture);
      ASSERT_EQ(capture.start(), SONDE_OK);
      program.run([](PatchPlayer &) {});
      ASSERT_EQ(first.stop(), SONDE_OK);
      ASSERT_EQ(capture.stop(), SONDE_OK);
      ASSERT_EQ(first.start(), SONDE_OK);
    }
    done = true;
    loader.join();
    ASSERT_EQ(first.stop(), SONDE_OK);
  });
}

TEST(Sessions, AContextThatEndsTakesNothingWithIt) {
  alone([] {
    Capture capture(Options{{"collect", "objects,records"}});
    want_objects(capture);
    capture.want(SONDE_ACCESS_WARPS);
    ASSERT_EQ(capture.start(), SONDE_OK);
    for (int i = 0; i < 5; ++i) {
      Program program;
      const uint64_t input = program.allocate(4096);
      program.run([&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
      device().destroy_context(program.context);
    }
    Program program;
    const uint64_t input = program.allocate(4096);
    program.run([&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
    ASSERT_EQ(capture.stop(), SONDE_OK);
    const auto launches = capture.launches();
    ASSERT_EQ(launches.size(), 6u);
    EXPECT_EQ(launches.back().flags, SONDE_LAUNCH_WATCHED);
    EXPECT_EQ(launches.back().accesses, 32u);
  });
}

TEST(Sessions, TheClaimIsTakenAndItsHolderNamed) {
  alone([] {
    (void)port();
    fake_claims().refuse = true;
    Capture capture;
    want_objects(capture);
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_TRUE(capture.session.noted(3, "cuda.device is held by")) << capture.session.all_notes();
    EXPECT_EQ(device().counts.subscribers, 0u);
    ASSERT_EQ(capture.stop(), SONDE_OK);
    fake_claims().refuse = false;
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_EQ(device().counts.subscribers, 1u);
    EXPECT_EQ(fake_claims().calls.back(), "take cuda.device patches cuda_access");
    ASSERT_EQ(capture.stop(), SONDE_OK);
  });
}

TEST(Sessions, WithoutTheLibraryTheReasonNamesThePlaceAndTheClaimIsGivenBack) {
  alone([] {
    Capture capture(Options{{"sanitizer", "/nowhere/libsanitizer-public.so"}});
    want_objects(capture);
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_TRUE(capture.session.noted(3, "/nowhere/libsanitizer-public.so")) << capture.session.all_notes();
    ASSERT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(fake_claims().calls.back(), "release cuda.device patches");
  });
}

TEST(Sessions, WithoutADriverTheReasonSaysSo) {
  alone([] {
    (void)port();
    setenv("SONDE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    Capture capture;
    want_objects(capture);
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_TRUE(capture.session.noted(3, "there is no CUDA driver")) << capture.session.all_notes();
    ASSERT_EQ(capture.stop(), SONDE_OK);
  });
}

TEST(Sessions, ALibraryThatRefusesIsNoted) {
  alone([] {
    device().settings.refuse_subscribing = true;
    Capture capture;
    want_objects(capture);
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_TRUE(capture.session.noted(3, "the fake refuses")) << capture.session.all_notes();
    ASSERT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(fake_claims().calls.back(), "release cuda.device patches");
  });
}

TEST(Sessions, AContextMadeBeforeThePortIsNoted) {
  alone([] {
    Program program;
    const uint64_t input = program.allocate(4096);
    Capture capture;
    want_objects(capture);
    ASSERT_EQ(capture.start(), SONDE_OK);
    program.run([&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
    program.run([&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
    ASSERT_EQ(capture.stop(), SONDE_OK);
    EXPECT_TRUE(capture.session.noted(3, "made before the port started")) << capture.session.all_notes();
    EXPECT_LE(capture.session.notes.size(), 3u) << "one note for each launch:\n" << capture.session.all_notes();
    ASSERT_EQ(capture.launches().size(), 2u);
    EXPECT_EQ(capture.launches()[0].flags, SONDE_LAUNCH_UNPATCHED);
  });
}

TEST(Sessions, WithoutDeviceCodeTheReasonIsNoted) {
  alone([] {
    Capture capture(Options{{"device_code", "/nowhere"}});
    want_objects(capture);
    ASSERT_EQ(capture.start(), SONDE_OK);
    Program program;
    program.run([](PatchPlayer &) {});
    ASSERT_EQ(capture.stop(), SONDE_OK);
    EXPECT_TRUE(capture.session.noted(3, "/nowhere")) << capture.session.all_notes();
    ASSERT_EQ(capture.launches().size(), 1u);
    EXPECT_EQ(capture.launches()[0].flags, SONDE_LAUNCH_UNPATCHED);
  });
}

TEST(Sessions, WithoutDeviceMemoryLaunchesAreMarked) {
  alone([] {
    Capture capture;
    want_objects(capture);
    ASSERT_EQ(capture.start(), SONDE_OK);
    Program program;
    device().settings.refuse_memory = true;
    std::atomic<int> runs{0};
    program.run([&](PatchPlayer &) { ++runs; });
    device().settings.refuse_memory = false;
    program.run([&](PatchPlayer &) { ++runs; });
    ASSERT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(runs, 2);
    ASSERT_EQ(capture.launches().size(), 2u);
    EXPECT_EQ(capture.launches()[0].flags, SONDE_LAUNCH_STATE_FULL);
    EXPECT_EQ(capture.launches()[1].flags, SONDE_LAUNCH_WATCHED);
  });
}

TEST(Sessions, AChildOfForkIsLeftAlone) {
  alone([] {
    Capture capture;
    want_objects(capture);
    ASSERT_EQ(capture.start(), SONDE_OK);
    Program program;
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      bool good = capture.flush() == SONDE_OK && capture.demand() == SONDE_OK;
      good = capture.stop() == SONDE_OK && good;
      // A session of the child's own: the library is the parent's, and says no.
      Capture own;
      want_objects(own);
      good = own.start() == SONDE_OK && good;
      good = own.session.noted(3, "no data on accesses because") && good;
      good = own.stop() == SONDE_OK && good;
      _exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    program.run([](PatchPlayer &) {});
    ASSERT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(capture.launches().size(), 1u);
  });
}

TEST(Sessions, OptionsThatContradictAreRefused) {
  sonde_session_t session;
  sonde_config_t config;
  void *instance = nullptr;
  config.values = {{"collect", "objects,bytes"}};
  EXPECT_EQ(port()->create(&session, &config, &instance), SONDE_E_INVALID);
  EXPECT_NE(sonde::test::last_error().find("'bytes'"), std::string::npos);
  config.values = {{"collect", "records,events"}};
  EXPECT_EQ(port()->create(&session, &config, &instance), SONDE_E_INVALID);
  config.values = {{"page_bytes", "5000"}};
  EXPECT_EQ(port()->create(&session, &config, &instance), SONDE_E_INVALID);
  EXPECT_NE(sonde::test::last_error().find("5000"), std::string::npos);
  EXPECT_EQ(instance, nullptr);
}

TEST(Sessions, OptionsOfALaterSessionHold) {
  alone([] {
    {
      Capture capture;
      want_objects(capture);
      ASSERT_EQ(capture.start(), SONDE_OK);
      ASSERT_EQ(capture.stop(), SONDE_OK);
    }
    Program program;
    const uint64_t input = program.allocate(1 << 20);
    Capture capture(Options{{"collect", "pages"}, {"page_bytes", "65536"}});
    capture.want(SONDE_ACCESS_PAGES);
    ASSERT_EQ(capture.start(), SONDE_OK);
    program.run([&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
    ASSERT_EQ(capture.stop(), SONDE_OK);
    const auto pages = capture.fixed<sonde_access_pages_t>(SONDE_ACCESS_PAGES);
    ASSERT_EQ(pages.size(), 1u);
    EXPECT_EQ(pages[0].page_bytes, 65536u);
  });
}

}  // namespace
}  // namespace sonde::cuda::access::test
