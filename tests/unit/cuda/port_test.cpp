// The port from its entry to the session, with a CUPTI of the tests' own.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include <sonde/spaces/host.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>

#include "port_fixture.h"

namespace sonde {
namespace {

TEST(CudaPort, DeliversKernelsOfSeveralBuffersInOrder) {
  Capture capture;
  capture.want_kernels();
  ASSERT_EQ(capture.start(), SONDE_OK);
  emit_kernels(1000);  // 303 of them fill a buffer of 64 KiB
  EXPECT_EQ(capture.flush(), SONDE_OK);
  const auto kernels = capture.kernels();
  ASSERT_EQ(kernels.size(), 1000u);
  for (uint32_t i = 1; i < 1000; ++i) EXPECT_EQ(kernels[i].correlation, kernels[0].correlation + i);
  EXPECT_EQ(test::text_of(kernels[0].name), "kernel");
  EXPECT_EQ(capture.stop(), SONDE_OK);
  EXPECT_TRUE(capture.session.acquired.empty());
  EXPECT_FALSE(capture.session.streams.at(0).open);
  EXPECT_TRUE(capture.session.losses.empty());
  EXPECT_TRUE(capture.session.noted(0, "CUPTI 13.0 update 1"));
}

TEST(CudaPort, HandsOverTheRestWhenItStops) {
  Capture capture;
  capture.want_kernels();
  ASSERT_EQ(capture.start(), SONDE_OK);
  emit_kernels(3);
  EXPECT_EQ(capture.stop(), SONDE_OK);
  EXPECT_EQ(capture.kernels().size(), 3u);
  EXPECT_EQ(cupti().state->enabled_kinds, 0u);
  EXPECT_EQ(cupti().state->zeroed_attribute, 0u);
}

TEST(CudaPort, ASessionThatWantsNothingLeavesCuptiClosed) {
  alone([] {
    Capture capture;
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_EQ(capture.flush(), SONDE_OK);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(dlopen(SONDE_FAKE_CUPTI, RTLD_NOW | RTLD_NOLOAD), nullptr);
    EXPECT_EQ(capture.session.all_notes(), "");
  });
}

TEST(CudaPort, FollowsTheDemandOfItsSession) {
  Capture capture;
  capture.want_kernels();
  ASSERT_EQ(capture.start(), SONDE_OK);
  EXPECT_TRUE(enabled(kind::kConcurrentKernel));
  EXPECT_FALSE(enabled(kind::kMemcpy));
  EXPECT_EQ(cupti().state->runtime_calls, 0u);
  EXPECT_EQ(cupti().state->thread_id_type, kThreadIdSystem);

  capture.session.want(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY);
  capture.session.want(SONDE_SPACE_DEVICE, SONDE_DEVICE_SET);
  capture.session.want(SONDE_SPACE_DEVICE, SONDE_DEVICE_SYNC);
  capture.session.want_all(SONDE_SPACE_MEMORY);
  capture.session.want(SONDE_SPACE_HOST, SONDE_HOST_CALL);
  EXPECT_EQ(capture.demand(), SONDE_OK);
  for (const uint32_t kind : {kind::kConcurrentKernel, kind::kMemcpy, kind::kMemcpyPeer, kind::kMemset,
                              kind::kSynchronization, kind::kMemory, kind::kMemoryPool}) {
    EXPECT_TRUE(enabled(kind)) << kind;
  }
  // Launch calls alone: not the kinds, and not managed memory.
  EXPECT_FALSE(enabled(kind::kRuntime));
  EXPECT_EQ(cupti().state->runtime_calls, std::size(kRuntimeLaunchCalls));
  EXPECT_EQ(cupti().state->driver_calls, std::size(kDriverLaunchCalls));
  EXPECT_FALSE(enabled(kind::kUnifiedMemoryCounter));

  capture.session.unwant_all();
  capture.want_kernels();
  EXPECT_EQ(capture.demand(), SONDE_OK);
  EXPECT_EQ(cupti().state->enabled_kinds, uint64_t{1} << kind::kConcurrentKernel);
  EXPECT_EQ(cupti().state->runtime_calls, 0u);
  EXPECT_EQ(capture.stop(), SONDE_OK);
}

TEST(CudaPort, OptionsChooseWhatIsCollected) {
  Capture capture(
      Options{{"api", "true"}, {"memory", "false"}, {"sync", "false"}, {"graphs", "graph"}, {"managed", "true"}});
  capture.session.want_all(SONDE_SPACE_DEVICE);
  capture.session.want_all(SONDE_SPACE_HOST);
  capture.session.want_all(SONDE_SPACE_MEMORY);
  ASSERT_EQ(capture.start(), SONDE_OK);
  EXPECT_TRUE(enabled(kind::kRuntime));
  EXPECT_TRUE(enabled(kind::kDriver));
  EXPECT_TRUE(enabled(kind::kOverhead));
  EXPECT_TRUE(enabled(kind::kGraphTrace));
  EXPECT_TRUE(enabled(kind::kUnifiedMemoryCounter));
  EXPECT_EQ(cupti().state->configured_counters, 8u);
  EXPECT_FALSE(enabled(kind::kMemory));
  EXPECT_FALSE(enabled(kind::kSynchronization));
  EXPECT_EQ(cupti().state->runtime_calls, 0u);
  EXPECT_EQ(capture.stop(), SONDE_OK);
}

TEST(CudaPort, HandsInZeroedBuffers) {
  Capture capture;
  capture.want_kernels();
  ASSERT_EQ(capture.start(), SONDE_OK);
  EXPECT_EQ(cupti().state->zeroed_attribute, 1u);
  const uint32_t dirty = cupti().state->buffers_dirty;
  for (int round = 0; round < 5; ++round) {
    emit_kernels(400);
    EXPECT_EQ(capture.flush(), SONDE_OK);
  }
  EXPECT_EQ(cupti().state->buffers_dirty, dirty);
  EXPECT_EQ(capture.kernels().size(), 2000u);
  EXPECT_EQ(capture.stop(), SONDE_OK);
}

TEST(CudaPort, TakesBuffersFromSeveralThreads) {
  Capture capture;
  capture.want_kernels();
  ASSERT_EQ(capture.start(), SONDE_OK);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) threads.emplace_back([t] { emit_kernels(2000, t * 2000 + 1); });
  std::thread flusher([&] {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(capture.flush(false), SONDE_OK);
  });
  for (auto &thread : threads) thread.join();
  flusher.join();
  EXPECT_EQ(capture.stop(), SONDE_OK);
  EXPECT_EQ(capture.kernels().size(), 8000u);
}

TEST(CudaPort, FlushesByItselfEveryPeriod) {
  alone([] {
    Capture capture(Options{{"flush_period", "20000000"}});
    capture.want_kernels();
    ASSERT_EQ(capture.start(), SONDE_OK);
    emit_kernels(5);
    for (int i = 0; i < 200 && capture.session.records < 5; ++i) std::this_thread::sleep_for(Milliseconds(10));
    EXPECT_EQ(capture.session.records, 5u);
    EXPECT_EQ(capture.stop(), SONDE_OK);
  });
}

TEST(CudaPort, CountsWhatTheVendorDropped) {
  Capture capture;
  capture.want_kernels();
  ASSERT_EQ(capture.start(), SONDE_OK);
  emit_kernels(4);
  cupti().drop(6);
  EXPECT_EQ(capture.stop(), SONDE_OK);
  EXPECT_EQ(capture.kernels().size(), 4u);
  EXPECT_EQ(capture.session.lost(SONDE_LOSS_VENDOR), 6u);
}

TEST(CudaPort, RefusesBuffersBeyondItsLimitAndCountsTheRecords) {
  alone([] {
    Capture capture(Options{{"pool_bytes", "131072"}});  // two buffers
    capture.want_kernels();
    // The thread that empties buffers is held up, so that both fill.
    capture.session.mutex.lock();
    ASSERT_EQ(cupti().state->version, 130001u);
    std::thread starter([&] { EXPECT_EQ(capture.start(), SONDE_OK); });
    capture.session.mutex.unlock();
    starter.join();
    capture.session.mutex.lock();
    uint32_t taken = 0;
    for (uint32_t i = 0; i < 1000; ++i) taken += emit(test::kernel(1, 2, i + 1, "k")) ? 1 : 0;
    capture.session.mutex.unlock();
    EXPECT_EQ(taken, 606u);  // 303 in each
    EXPECT_GT(cupti().state->buffers_refused, 0u);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(capture.kernels().size(), 606u);
    EXPECT_EQ(capture.session.lost(SONDE_LOSS_VENDOR), 394u);
  });
}

TEST(CudaPort, CountsWhatTheSessionHasNoRoomFor) {
  Capture capture;
  capture.want_kernels();
  ASSERT_EQ(capture.start(), SONDE_OK);
  emit_kernels(10);
  EXPECT_EQ(capture.flush(), SONDE_OK);
  capture.session.room = 0;
  emit_kernels(25);
  EXPECT_EQ(capture.stop(), SONDE_OK);
  EXPECT_EQ(capture.kernels().size(), 10u);
  EXPECT_EQ(capture.session.lost(SONDE_LOSS_MEMORY_CAP), 25u);
}

TEST(CudaPort, CountsCutRecordsAndNotesForeignOnes) {
  Capture capture;
  capture.want_kernels();
  ASSERT_EQ(capture.start(), SONDE_OK);
  emit_kernels(1);
  ActivityHeader foreign = {39};
  EXPECT_TRUE(emit(foreign));
  emit_kernels(1);
  const KernelActivity cut = test::kernel(1, 2, 3, "cut");
  cupti().emit(&cut, 64);
  EXPECT_EQ(capture.stop(), SONDE_OK);
  EXPECT_EQ(capture.kernels().size(), 2u);
  EXPECT_EQ(capture.session.lost(SONDE_LOSS_MALFORMED), 1u);
  EXPECT_TRUE(capture.session.noted(
      0, "1 activity records of kinds that Sonde did not ask for were skipped, the last of kind 39"))
      << capture.session.all_notes();
}

TEST(CudaPort, TwoSessionsBothGetTheirEvents) {
  Capture first;
  Capture second;
  first.want_kernels();
  second.want_kernels();
  second.session.want(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY);
  ASSERT_EQ(first.start(), SONDE_OK);
  emit_kernels(5);
  EXPECT_EQ(first.flush(), SONDE_OK);
  ASSERT_EQ(second.start(), SONDE_OK);
  emit_kernels(7, 6);
  CopyActivity copy = {};
  copy.kind = kind::kMemcpy;
  EXPECT_TRUE(emit(copy));
  EXPECT_EQ(first.stop(), SONDE_OK);
  EXPECT_TRUE(enabled(kind::kConcurrentKernel));
  emit_kernels(3, 13);
  EXPECT_EQ(second.stop(), SONDE_OK);
  EXPECT_EQ(first.kernels().size(), 12u);
  EXPECT_EQ(second.kernels().size(), 10u);
  EXPECT_TRUE(first.session.submitted<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY).empty());
  EXPECT_EQ(second.session.submitted<sonde_device_copy_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY).size(), 1u);
  EXPECT_EQ(cupti().state->enabled_kinds, 0u);
}

TEST(CudaPort, RegistersTheClockOnceWhateverSessionsComeAndGo) {
  alone([] {
    for (int i = 0; i < 3; ++i) {
      Capture capture;
      capture.want_kernels();
      ASSERT_EQ(capture.start(), SONDE_OK);
      const uint64_t before = sonde_stamp();
      emit_kernels(1);
      const uint64_t after = sonde_stamp();
      EXPECT_EQ(capture.stop(), SONDE_OK);
      ASSERT_EQ(capture.kernels().size(), 1u);
      EXPECT_GE(capture.kernels()[0].header.time, before);
      EXPECT_LE(capture.kernels()[0].header.time, after);
      EXPECT_EQ(capture.session.streams.at(0).clock, SONDE_CLOCK_STAMP);
    }
    EXPECT_EQ(cupti().state->timestamp_registrations, 1u);
    EXPECT_EQ(cupti().state->registrations, 3u);
  });
}

TEST(CudaPort, RelatesAClockOfTheVendorsOwnByPairs) {
  alone([] {
    cupti().state->register_timestamp_result = 1;
    Capture capture;
    capture.want_kernels();
    ASSERT_EQ(capture.start(), SONDE_OK);
    emit_kernels(1);
    EXPECT_EQ(capture.flush(), SONDE_OK);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(capture.kernels().size(), 1u);
    EXPECT_EQ(capture.session.streams.back().clock, SONDE_CLOCK_FIRST_FOREIGN);
    ASSERT_GE(capture.session.pairs.size(), 2u);
    for (const auto &pair : capture.session.pairs) {
      EXPECT_EQ(pair.clock, SONDE_CLOCK_FIRST_FOREIGN);
      EXPECT_GT(pair.reading, 1'500'000'000'000'000'000u);  // CLOCK_REALTIME
    }
    EXPECT_TRUE(capture.session.noted(1, "does not take the host's clock"));
  });
}

// A record may begin late_after before the flush that the watermark rests on. One unit of the fake host's stamp
// clock is half a nanosecond.
TEST(CudaPort, PromisesNoRecordFromBeforeTheLastFlushLessTheLag) {
  Capture capture(Options{{"late_after", "1000000"}});
  capture.want_kernels();
  ASSERT_EQ(capture.start(), SONDE_OK);
  emit_kernels(1);
  const uint64_t before = sonde_stamp();
  EXPECT_EQ(capture.flush(), SONDE_OK);
  const uint64_t after = sonde_stamp();
  emit_kernels(1);
  EXPECT_EQ(capture.stop(), SONDE_OK);
  const auto marks = capture.session.all_watermarks();
  ASSERT_EQ(marks.size(), 2u);
  EXPECT_GE(marks[1], before - 2'000'000);
  EXPECT_LE(marks[1], after - 2'000'000);
}

TEST(CudaPort, SaysWhyThereIsNoDataWithoutCupti) {
  alone([] {
    Capture capture(Options{{"cupti", "/nonexistent/libcupti.so"}});
    capture.want_kernels();
    EXPECT_EQ(capture.start(), SONDE_OK);
    EXPECT_EQ(capture.flush(), SONDE_OK);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_TRUE(capture.session.noted(3, "no data because CUPTI was not found")) << capture.session.all_notes();
    EXPECT_TRUE(capture.session.noted(3, "/nonexistent/libcupti.so")) << capture.session.all_notes();
  });
}

TEST(CudaPort, SaysWhyThereIsNoDataWithAnOldCupti) {
  alone([] {
    cupti().state->version = 14;
    Capture capture;
    capture.want_kernels();
    EXPECT_EQ(capture.start(), SONDE_OK);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_TRUE(capture.session.noted(3, "11.6 or later is needed")) << capture.session.all_notes();
  });
}

TEST(CudaPort, NotesAKindThatIsRefusedAndCollectsTheOthers) {
  alone([] {
    cupti().state->refused_kind = kind::kMemory;
    cupti().state->refused_kind_result = 27;
    Capture capture;
    capture.want_kernels();
    capture.session.want_all(SONDE_SPACE_MEMORY);
    ASSERT_EQ(capture.start(), SONDE_OK);
    emit_kernels(2);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(capture.kernels().size(), 2u);
    EXPECT_TRUE(capture.session.noted(3, "no data on allocations because CUPTI refuses it"))
        << capture.session.all_notes();
  });
}

TEST(CudaPort, WorksBesideAnotherSubscriber) {
  alone([] {
    cupti().state->subscribe_result = kCuptiMultipleSubscribers;
    Capture capture;
    capture.want_kernels();
    capture.session.want_all(SONDE_SPACE_OBJECT);
    ASSERT_EQ(capture.start(), SONDE_OK);
    emit_kernels(2);
    EXPECT_TRUE(enabled(kind::kModule));  // the record stands in for the callback
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(capture.kernels().size(), 2u);
    EXPECT_EQ(cupti().state->unsubscriptions, 0u);
    EXPECT_TRUE(capture.session.noted(3, "another profiler holds CUPTI's subscription")) << capture.session.all_notes();
  });
}

TEST(CudaPort, ASubscriptionThatFailsHalfWayIsGivenBackOnce) {
  alone([] {
    cupti().state->enable_callback_result = 1;
    cupti().state->enable_callback_fails_at = 3;
    Capture capture;
    capture.session.want_all(SONDE_SPACE_OBJECT);
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_EQ(cupti().state->subscriptions, 1u);
    EXPECT_EQ(cupti().state->unsubscriptions, 1u);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(cupti().state->subscriptions, 1u);
    EXPECT_EQ(cupti().state->unsubscriptions, 1u);
    EXPECT_TRUE(capture.session.noted(3, "CUPTI refuses its callbacks")) << capture.session.all_notes();
  });
}

void *handle(uintptr_t value) { return reinterpret_cast<void *>(value); }

// A graph's number is used again after its end: both lives are records, and no state of the first is left.
TEST(CudaPort, TellsTheLivesOfARecycledGraphApart) {
  Capture capture;
  capture.want_kernels();
  capture.session.want_all(SONDE_SPACE_OBJECT);
  ASSERT_EQ(capture.start(), SONDE_OK);
  GraphData graph = {};
  graph.graph = handle(3);
  graph.graph_exec = handle(7);
  ResourceData data = {handle(1), nullptr, &graph};
  for (int life = 0; life < 2; ++life) {
    cupti().resource(kResourceGraphExecCreated, &data);
    KernelActivity node = test::kernel(10, 20, 30, "node");
    node.graph = 7;
    node.graph_node = 1;
    EXPECT_TRUE(emit(node));
    if (life == 0) cupti().resource(kResourceGraphExecDestroyStarting, &data);
  }
  EXPECT_EQ(capture.stop(), SONDE_OK);
  const auto graphs = capture.session.emitted_of<sonde_object_graph_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_GRAPH);
  ASSERT_EQ(graphs.size(), 3u);
  EXPECT_EQ(graphs[0].graph, 3u);
  EXPECT_EQ(graphs[0].graph_exec, 7u);
  EXPECT_EQ(graphs[0].state, 0u);
  EXPECT_EQ(graphs[1].state, 1u);
  EXPECT_EQ(graphs[2].state, 0u);
  EXPECT_LE(graphs[0].header.time, graphs[1].header.time);
  EXPECT_EQ(capture.kernels().size(), 2u);
}

TEST(CudaPort, RecordsClonesModulesAndEndsOfStreams) {
  Capture capture;
  capture.session.want_all(SONDE_SPACE_OBJECT);
  ASSERT_EQ(capture.start(), SONDE_OK);
  EXPECT_FALSE(enabled(kind::kModule));  // the callback knows more than the record
  GraphData graph = {};
  graph.graph = handle(4);
  graph.original_graph = handle(3);
  ResourceData data = {handle(1), nullptr, &graph};
  cupti().resource(kResourceGraphCloned, &data);
  const char code[] = "cubin";
  ModuleData module = {12, sizeof(code), code};
  data.descriptor = &module;
  cupti().resource(kResourceModuleLoaded, &data);
  cupti().resource(kResourceModuleUnloadStarting, &data);
  data = {handle(1), handle(13), nullptr};
  cupti().resource(kResourceStreamDestroyStarting, &data);
  cupti().resource(kResourceGraphCreated, &data);  // without a descriptor: nothing to tell
  EXPECT_EQ(capture.stop(), SONDE_OK);

  const auto graphs = capture.session.emitted_of<sonde_object_graph_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_GRAPH);
  ASSERT_EQ(graphs.size(), 1u);
  EXPECT_EQ(graphs[0].graph, 4u);
  EXPECT_EQ(graphs[0].source, 3u);
  EXPECT_EQ(graphs[0].graph_exec, 0u);
  const auto modules = capture.session.emitted_of<sonde_object_module_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_MODULE);
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_EQ(modules[0].module, 12u);
  EXPECT_EQ(modules[0].bytes, sizeof(code));
  EXPECT_NE(modules[0].hash, 0u);
  EXPECT_EQ(modules[0].context, 1u);
  EXPECT_EQ(modules[1].state, 1u);
  const auto streams = capture.session.emitted_of<sonde_object_stream_t>(SONDE_SPACE_OBJECT, SONDE_OBJECT_STREAM);
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].stream, 13u);
  EXPECT_EQ(streams[0].state, 1u);
}

TEST(CudaPort, SurvivesBuffersThatComeAfterTheEnd) {
  alone([] {
    {
      Capture capture;
      capture.want_kernels();
      ASSERT_EQ(capture.start(), SONDE_OK);
      EXPECT_EQ(capture.stop(), SONDE_OK);
    }
    emit_kernels(400);  // CUPTI still holds the callbacks
    cupti().complete();
    Capture next;
    next.want_kernels();
    ASSERT_EQ(next.start(), SONDE_OK);
    emit_kernels(1);
    EXPECT_EQ(next.stop(), SONDE_OK);
    EXPECT_EQ(next.kernels().size(), 1u);
    EXPECT_TRUE(next.session.noted(1, "2 activity buffers came while no session was running"))
        << next.session.all_notes();
  });
}

TEST(CudaPort, AFlushThatHangsCostsADeadlineAndNotTheProgram) {
  alone([] {
    Capture capture;
    capture.want_kernels();
    ASSERT_EQ(capture.start(), SONDE_OK);
    emit_kernels(1);
    cupti().state->hang_flush_ms = 600'000;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(capture.stop(), SONDE_E_TIMEOUT);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, Milliseconds(5000));
    EXPECT_NE(test::last_error().find("in time"), std::string::npos);
    Capture next;
    next.want_kernels();
    EXPECT_EQ(next.start(), SONDE_OK);
    EXPECT_EQ(next.stop(), SONDE_OK);
    EXPECT_TRUE(next.session.noted(3, "did not return")) << next.session.all_notes();
  });
}

TEST(CudaPort, AForkedChildStopsAtOnceAndMayBeginAnew) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not support threads in the child of a process with threads";
#endif
  alone([] {
    Capture capture;
    capture.want_kernels();
    ASSERT_EQ(capture.start(), SONDE_OK);
    const pid_t child = fork();
    if (child == 0) {
      bool good = capture.stop() == SONDE_OK;
      Capture own;
      own.want_kernels();
      good = good && own.start() == SONDE_OK;
      emit_kernels(2);
      good = good && own.stop() == SONDE_OK && own.kernels().size() == 2;
      _exit(good && !::testing::Test::HasFailure() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    emit_kernels(3);
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_EQ(capture.kernels().size(), 3u);
  });
}

TEST(CudaPort, ManagedMemoryWaitsForTheDriver) {
  alone([] {
    cupti().state->configure_result = kCuptiNotInitialized;
    Capture capture(Options{{"managed", "true"}, {"flush_period", "10000000"}});
    capture.session.want(SONDE_SPACE_DEVICE, SONDE_DEVICE_MIGRATION);
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_FALSE(enabled(kind::kUnifiedMemoryCounter));
    cupti().state->configure_result = 0;
    for (int i = 0; i < 200 && !enabled(kind::kUnifiedMemoryCounter); ++i)
      std::this_thread::sleep_for(Milliseconds(10));
    EXPECT_TRUE(enabled(kind::kUnifiedMemoryCounter));
    EXPECT_EQ(capture.stop(), SONDE_OK);
    EXPECT_FALSE(enabled(kind::kUnifiedMemoryCounter));
  });
}

// What CUPTI answers while the driver calls the injected library; and a session that runs asks for flushes all the time,
// so that the collector's own clock never comes round.
TEST(CudaPort, ManagedMemoryWaitsThroughFlushesThatAreAskedFor) {
  alone([] {
    cupti().state->configure_result = kCuptiNotReady;
    Capture capture(Options{{"managed", "true"}, {"flush_period", "60000000000"}});
    capture.session.want(SONDE_SPACE_DEVICE, SONDE_DEVICE_MIGRATION);
    ASSERT_EQ(capture.start(), SONDE_OK);
    EXPECT_FALSE(enabled(kind::kUnifiedMemoryCounter));
    cupti().state->configure_result = 0;
    EXPECT_EQ(capture.flush(false), SONDE_OK);
    EXPECT_TRUE(enabled(kind::kUnifiedMemoryCounter));
    EXPECT_EQ(capture.stop(), SONDE_OK);
  });
}

TEST(CudaPort, AnswersForeignEntries) {
  EXPECT_EQ(port()->entry(SONDE_ENTRY_CUDA_INJECTION, nullptr), SONDE_OK);
  EXPECT_EQ(port()->entry(SONDE_ENTRY_ROCPROFILER, nullptr), SONDE_E_UNIMPLEMENTED);
  EXPECT_EQ(port()->entry(SONDE_ENTRY_NVTX_INJECTION, nullptr), SONDE_E_INVALID);
}

TEST(CudaPort, StartsOnce) {
  Capture capture;
  ASSERT_EQ(capture.start(), SONDE_OK);
  EXPECT_EQ(capture.start(), SONDE_E_STATE);
  EXPECT_EQ(capture.stop(), SONDE_OK);
  EXPECT_EQ(capture.stop(), SONDE_OK);
}

}  // namespace
}  // namespace sonde
