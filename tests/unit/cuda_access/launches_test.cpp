// Launches: streams, threads, graphs, samples and filters; memory while they run; records on their way.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include <sonde/ledger.h>
#include <sonde/toolkit/warp_records.h>

#include "program.h"

namespace sonde::cuda::access::test {
namespace {

constexpr uint64_t kManyBlocks = 24;  // of records, where there is room for 16

class Launches : public ::testing::Test {
 protected:
  void SetUp() override {
    Capture capture;
    capture.want(SONDE_ACCESS_LAUNCH);
    ASSERT_EQ(capture.start(), SONDE_OK);
    ASSERT_EQ(capture.stop(), SONDE_OK);
  }
};

void want_objects(Capture &capture) {
  capture.want(SONDE_ACCESS_LAUNCH);
  capture.want(SONDE_ACCESS_OBJECT);
}

// A flush ends after two seconds, which may be too few for many launches under a sanitizer.
void flush_all(Capture &capture) {
  for (int i = 0; i < 30 && capture.flush() != SONDE_OK; ++i) {
  }
}

TEST_F(Launches, StreamsMayEndInAnotherOrder) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  Gate gate;
  const Stream slow = device().create_stream(program.context);
  const Stream fast = device().create_stream(program.context);
  program.launch(program.kernel("slow",
                                [&](PatchPlayer &player) {
                                  gate.wait();
                                  player.access(side_by_side(input, 4), 4, kRead);
                                }),
                 slow);
  const Function second =
      program.kernel("fast", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kWrite, 0xff); });
  for (int i = 0; i < 5; ++i) program.launch(second, fast);
  device().synchronize(program.context, fast);
  gate.open();
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 6u);
  const auto objects = capture.objects();
  ASSERT_EQ(objects.size(), 6u);
  for (const auto &object : objects) {
    const auto launch =
        std::find_if(launches.begin(), launches.end(), [&](const auto &one) { return one.launch == object.launch; });
    ASSERT_NE(launch, launches.end());
    const bool is_slow = text_of(launch->name) == "slow";
    EXPECT_EQ(object.reads, is_slow ? 32u : 0u);
    EXPECT_EQ(object.writes, is_slow ? 0u : 8u);
  }
}

TEST_F(Launches, CopiesAndSetsOfTheHostComeWithTheirAddresses) {
  Program program;
  const uint64_t object = program.allocate(4096);
  Capture capture;
  capture.want(SONDE_ACCESS_TRANSFER);
  ASSERT_EQ(capture.start(), SONDE_OK);
  MemcpyData copy = {};
  copy.api_context = program.context;
  copy.api_stream = reinterpret_cast<Stream>(0x77);
  copy.source = 0x1234;
  copy.target = object;
  copy.bytes = 4096;
  copy.width = 4096;
  copy.height = 1;
  copy.depth = 1;
  copy.source_pitch = 4096;
  copy.is_async = 1;
  copy.direction = 2;
  device().tell_copy(copy);
  // Two slices of three rows of 16 bytes, 64 apart.
  copy.source = object;
  copy.target = 0x1234;
  copy.bytes = 0;
  copy.width = 16;
  copy.height = 3;
  copy.depth = 2;
  copy.source_pitch = 64;
  copy.target_pitch = 16;
  copy.is_async = 0;
  copy.direction = 3;
  device().tell_copy(copy);
  MemsetData set = {};
  set.context = program.context;
  set.address = object + 256;
  set.width = 10;
  set.height = 1;
  set.element_bytes = 4;
  set.value = 0xabcdef01;
  device().tell_set(set);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto transfers = capture.session.emitted_of<sonde_access_transfer_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_TRANSFER);
  ASSERT_EQ(transfers.size(), 3u);
  EXPECT_EQ(transfers[0].source, 0x1234u);
  EXPECT_EQ(transfers[0].target, object);
  EXPECT_EQ(transfers[0].bytes, 4096u);
  EXPECT_EQ(transfers[0].rows, 1u);
  EXPECT_EQ(transfers[0].source_pitch, 0u) << "one row has no pitch";
  EXPECT_EQ(transfers[0].stream, 0x77u);
  EXPECT_EQ(transfers[0].kind, SONDE_COPY_HOST_TO_DEVICE);
  EXPECT_EQ(transfers[0].flags, SONDE_TRANSFER_ASYNC);
  EXPECT_EQ(transfers[1].bytes, 96u) << "2 x 3 rows of 16 bytes";
  EXPECT_EQ(transfers[1].rows, 6u);
  EXPECT_EQ(transfers[1].source_pitch, 64u);
  EXPECT_EQ(transfers[1].kind, SONDE_COPY_DEVICE_TO_HOST);
  EXPECT_EQ(transfers[1].flags, 0u);
  EXPECT_EQ(transfers[2].target, object + 256);
  EXPECT_EQ(transfers[2].source, 0u);
  EXPECT_EQ(transfers[2].bytes, 40u) << "ten elements of 4 bytes";
  EXPECT_EQ(transfers[2].value, 0xabcdef01u);
  EXPECT_EQ(transfers[2].flags, SONDE_TRANSFER_SET);
}

TEST_F(Launches, MemoryOfTheRuntimeIsNoAllocationOfTheProgram) {
  Program program;
  Capture capture;
  want_objects(capture);
  capture.session.want_all(SONDE_SPACE_MEMORY);
  ASSERT_EQ(capture.start(), SONDE_OK);
  constexpr uint32_t kCooperativeGroups = 0x40;
  const uint64_t own = program.allocate(512, kCooperativeGroups);
  const uint64_t input = program.allocate(4096);
  program.run([&](PatchPlayer &player) {
    player.access(side_by_side(own, 4), 4, kRead);
    player.access(side_by_side(input, 4), 4, kRead);
  });
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto allocations =
      capture.session.emitted_of<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE);
  ASSERT_EQ(allocations.size(), 1u);
  EXPECT_EQ(allocations[0].address, input);
  ASSERT_EQ(capture.launches().size(), 1u);
  EXPECT_EQ(capture.launches()[0].outside, 0u) << "it is no wrong access either";
}

TEST_F(Launches, AKernelThatRunsDoesNotHoldUpTheResultsOfOthers) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  Gate gate;
  const Stream slow = device().create_stream(program.context);
  program.launch(program.kernel("slow", [&](PatchPlayer &) { gate.wait(); }), slow);
  program.launch(program.kernel("fast", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); }));
  for (int i = 0; i < 200 && capture.objects().empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(capture.objects().size(), 1u);
  gate.open();
  ASSERT_EQ(capture.stop(), SONDE_OK);
  EXPECT_EQ(capture.launches().size(), 2u);
}

TEST_F(Launches, ALaunchKeepsItsVersionOfTheRanges) {
  Program program;
  const uint64_t address = program.allocate(4096);
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  Gate gate;
  const Stream slow = device().create_stream(program.context);
  const Function kernel = program.kernel("slow", [&](PatchPlayer &player) {
    gate.wait();
    player.access(side_by_side(address, 4), 4, kRead);
  });
  program.launch(kernel, slow);
  // Freed and made again under the running kernel; a second launch knows the new one.
  program.free(address, 4096);
  device().tell_allocated(program.context, address, 1024);
  program.launch(kernel, slow);
  gate.open();
  device().synchronize(program.context, slow);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto objects = capture.objects();
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0].bytes, 4096u);
  EXPECT_EQ(objects[1].bytes, 1024u);
  EXPECT_EQ(objects[1].ordinal, objects[0].ordinal + 1);
}

TEST_F(Launches, ThreadsLaunchWhileMemoryComesAndGoes) {
  Program program;
  const uint64_t input = program.allocate(4096);
  const uint64_t reused = fresh_addresses(1 << 20);
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  constexpr int kLaunches = 150;
  const Function kernel =
      program.kernel("kernel", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      const Stream stream = device().create_stream(program.context);
      for (int i = 0; i < kLaunches; ++i) program.launch(kernel, stream);
      device().synchronize(program.context, stream);
    });
  }
  std::thread allocator([&] {
    for (uint64_t i = 0; !done; ++i) {
      device().tell_allocated(program.context, reused, 4096 + i % 7 * 512);
      FakeRanges::instance().announce(reused, 512, "tensor");
      FakeRanges::instance().retire(reused);
      device().tell_freed(program.context, reused, 4096);
    }
  });
  for (std::thread &thread : threads) thread.join();
  done = true;
  allocator.join();
  flush_all(capture);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 2u * kLaunches);
  std::set<uint64_t> ordinals;
  for (const auto &launch : launches) {
    EXPECT_EQ(launch.flags, SONDE_LAUNCH_WATCHED);
    EXPECT_EQ(launch.accesses, 32u);
    EXPECT_EQ(launch.outside, 0u);
    ordinals.insert(launch.launch);
  }
  EXPECT_EQ(ordinals.size(), launches.size());
  EXPECT_EQ(capture.objects().size(), launches.size());
}

TEST_F(Launches, NoRecordIsEarlierThanAWatermarkBeforeIt) {
  Program program;
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  const Function kernel = program.kernel("kernel", [](PatchPlayer &) {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      const Stream stream = device().create_stream(program.context);
      for (int i = 0; i < 200; ++i) program.launch(kernel, stream);
      device().synchronize(program.context, stream);
    });
  }
  for (std::thread &thread : threads) thread.join();
  flush_all(capture);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const std::lock_guard hold(capture.session.mutex);
  uint64_t promised = 0;
  for (size_t i = 0; i < capture.session.batches.size(); ++i) {
    sonde_record_t header;
    std::memcpy(&header, capture.session.batches[i].data(), sizeof(header));
    ASSERT_GE(header.time, promised);
    promised = std::max(promised, capture.session.watermarks[i]);
  }
}

TEST_F(Launches, EachNodeOfAGraphIsALaunch) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  const Function read =
      program.kernel("read", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
  const Function write =
      program.kernel("write", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kWrite, 0xf); });
  const GraphExec graph = device().create_graph();
  const Stream stream = device().create_stream(program.context);
  for (int i = 0; i < 3; ++i) device().launch_graph(program.context, graph, {{read, 11}, {write, 12}}, stream);
  device().synchronize(program.context, stream);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 6u);
  for (size_t i = 0; i < launches.size(); ++i) {
    EXPECT_EQ(launches[i].graph_node, 11 + i % 2);
    EXPECT_EQ(launches[i].graph_exec, launches[0].graph_exec);
    EXPECT_EQ(launches[i].stream, reinterpret_cast<uint64_t>(stream));
    EXPECT_EQ(launches[i].flags, SONDE_LAUNCH_WATCHED);
    EXPECT_EQ(launches[i].accesses, i % 2 == 1 ? 4u : 32u);
  }
  EXPECT_NE(launches[0].graph_exec, 0u);
  EXPECT_EQ(capture.objects().size(), 6u);
}

TEST_F(Launches, NodesThatRunOneFunctionAreCountedTogether) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  const Function read =
      program.kernel("read", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
  const Function write =
      program.kernel("write", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kWrite, 0xf); });
  const GraphExec graph = device().create_graph();
  for (int i = 0; i < 2; ++i) device().launch_graph(program.context, graph, {{read, 1}, {write, 2}, {read, 3}});
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 6u);
  for (size_t i = 0; i < launches.size(); ++i) {
    const bool shares = i % 3 == 2;
    EXPECT_EQ(launches[i].accesses, i % 3 == 0 ? 64u : i % 3 == 1 ? 4u : 0u) << i;
    EXPECT_EQ(launches[i].counted_in, shares ? launches[i - 2].launch : 0u) << i;
    EXPECT_EQ(launches[i].flags, shares ? SONDE_LAUNCH_WATCHED | SONDE_LAUNCH_SHARED : SONDE_LAUNCH_WATCHED) << i;
  }
  EXPECT_EQ(capture.objects().size(), 4u);
}

TEST_F(Launches, AKernelOfAGraphCountsForItselfWhenItIsLaunchedAlone) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  const Function read =
      program.kernel("read", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
  const Function write =
      program.kernel("write", [&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kWrite, 0xf); });
  const GraphExec graph = device().create_graph();
  device().launch_graph(program.context, graph, {{read, 1}, {write, 2}, {read, 3}});
  program.launch(read);
  device().launch_graph(program.context, graph, {{write, 2}});
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 5u);
  const uint64_t expected[] = {64, 4, 0, 32, 4};
  for (size_t i = 0; i < launches.size(); ++i) EXPECT_EQ(launches[i].accesses, expected[i]) << i;
}

TEST_F(Launches, AGraphThatLaunchesFromDeviceCodeIsNoted) {
  Program program;
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  device().create_graph(true);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  EXPECT_TRUE(capture.session.noted(3, "graphs that device code launches")) << capture.session.all_notes();
}

TEST_F(Launches, OneLaunchOfEachPeriodIsWatchedAndTheFirst) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture(Options{{"kernel_period", "4"}});
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  std::atomic<uint64_t> patched_runs{0};
  const auto body = [&](PatchPlayer &player) {
    patched_runs += player.patched() ? 1 : 0;
    player.access(side_by_side(input, 4), 4, kRead);
  };
  const Function first = program.kernel("first", body);
  const Function second = program.kernel("second", body);
  for (int i = 0; i < 20; ++i) {
    program.launch(first);
    program.launch(second);
  }
  device().synchronize(program.context);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  std::map<std::string, std::vector<int>> watched;
  std::map<std::string, int> seen;
  for (const auto &launch : capture.launches()) {
    const std::string name = text_of(launch.name);
    EXPECT_EQ(launch.kernel_period, seen[name] == 0 ? 1u : 4u) << "the first stands for itself";
    if ((launch.flags & SONDE_LAUNCH_WATCHED) != 0) {
      EXPECT_EQ(launch.accesses, 32u);
      watched[name].push_back(seen[name]);
    } else {
      EXPECT_EQ(launch.flags, SONDE_LAUNCH_SKIPPED);
      EXPECT_EQ(launch.accesses, 0u);
    }
    ++seen[name];
  }
  EXPECT_EQ(seen["first"], 20);
  EXPECT_EQ(seen["second"], 20);
  uint64_t total = 0;
  for (const char *name : {"first", "second"}) {
    ASSERT_GE(watched[name].size(), 5u) << name;
    EXPECT_EQ(watched[name][0], 0) << name;
    for (size_t i = 2; i < watched[name].size(); ++i) EXPECT_EQ(watched[name][i] - watched[name][i - 1], 4) << name;
    total += watched[name].size();
  }
  EXPECT_EQ(patched_runs, total) << "code is unpatched between";
}

TEST_F(Launches, FiltersChooseKernelsByParts) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture(Options{{"kernels", "gemm, !small"}});
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  for (const char *name : {"gemm_large", "gemm_small", "add"}) {
    program.run([&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); }, name);
  }
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_EQ(launches[0].flags, SONDE_LAUNCH_WATCHED);
  EXPECT_EQ(launches[1].flags, SONDE_LAUNCH_SKIPPED);
  EXPECT_EQ(launches[2].flags, SONDE_LAUNCH_SKIPPED);
}

TEST_F(Launches, AModuleThatCannotBePatchedIsMarked) {
  device().settings.refuse_patching = true;
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  program.run([&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
  device().settings.refuse_patching = false;
  ASSERT_EQ(capture.stop(), SONDE_OK);
  ASSERT_EQ(capture.launches().size(), 1u);
  EXPECT_EQ(capture.launches()[0].flags, SONDE_LAUNCH_UNPATCHED);
  EXPECT_TRUE(capture.session.noted(2, "could not be patched")) << capture.session.all_notes();
}

TEST_F(Launches, CopiesThroughTensorMapsMakeAKernelIncomplete) {
  std::ifstream file(SONDE_TEST_SOURCE_DIR "/tests/data/cubins/access/copies.cubin", std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ASSERT_FALSE(code.empty());
  Program program;
  program.module = device().load_module(program.context, code);
  Capture capture;
  want_objects(capture);
  ASSERT_EQ(capture.start(), SONDE_OK);
  for (const char *name : {"plain_add", "tensor_load"}) program.run([](PatchPlayer &) {}, name);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].flags, SONDE_LAUNCH_WATCHED);
  EXPECT_EQ(launches[1].flags, SONDE_LAUNCH_WATCHED | SONDE_LAUNCH_INCOMPLETE);
}

// ---- records ---------------------------------------------------------------------------------------------------------

// Entries of all records, in order of their blocks' arrival; each checked.
uint64_t count_warps(const Capture &capture, uint64_t launch) {
  uint64_t count = 0;
  for (const Stored &stored : capture.all(SONDE_ACCESS_WARPS)) {
    const auto &record = stored.as<sonde_access_warps_t>();
    EXPECT_EQ(record.launch, launch);
    toolkit::WarpRecords entries(&record.header);
    toolkit::WarpAccess access;
    uint64_t here = 0;
    while (entries.next(access)) ++here;
    EXPECT_FALSE(entries.damaged());
    EXPECT_EQ(here, record.count);
    count += here;
  }
  return count;
}

TEST_F(Launches, RecordsHaveTheAddressOfEachLane) {
  Program program;
  const uint64_t input = program.allocate(1 << 20);
  Capture capture(Options{{"collect", "values"}});
  capture.want(SONDE_ACCESS_WARPS);
  ASSERT_EQ(capture.start(), SONDE_OK);
  Lanes gather;
  Lanes far;
  for (uint64_t lane = 0; lane < 32; ++lane) {
    gather[lane] = input + (lane * 37 % 32) * 64;
    far[lane] = lane == 9 ? input : input + (uint64_t{1} << 40) * lane;
  }
  std::array<uint32_t, 32> values;
  for (uint32_t lane = 0; lane < 32; ++lane) values[lane] = lane * 1000;
  program.run([&](PatchPlayer &player) {
    player.at(0x10, 4, 2);
    player.access(side_by_side(input, 4), 4, kWrite, kAllLanes, values.data());
    player.access(gather, 8, kRead, 0xffff0000);
    player.access(far, 1, kAtomic, 0x00000300);
    player.access(side_by_side(input + 4096, -16), 16, kRead, 0x0000fff8);
    player.access(far, 2, kRead, kAllLanes);
  });
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto stored = capture.all(SONDE_ACCESS_WARPS);
  ASSERT_EQ(stored.size(), 1u);
  toolkit::WarpRecords entries(&stored[0].as<sonde_access_warps_t>().header);
  toolkit::WarpAccess access;
  const struct {
    Lanes lanes;
    uint32_t mask, size, kind, form;
  } expected[] = {{side_by_side(input, 4), kAllLanes, 4, kWrite, SONDE_WARP_AFFINE},
                  {gather, 0xffff0000, 8, kRead, SONDE_WARP_OFFSETS32},
                  {far, 0x300, 1, kAtomic, SONDE_WARP_ADDRESS64},
                  {side_by_side(input + 4096, -16), 0xfff8, 16, kRead, SONDE_WARP_AFFINE},
                  {far, kAllLanes, 2, kRead, SONDE_WARP_ADDRESS64}};
  for (const auto &want : expected) {
    ASSERT_TRUE(entries.next(access));
    EXPECT_EQ(access.head().mask, want.mask);
    EXPECT_EQ(access.head().size, want.size);
    EXPECT_EQ(access.kind(), want.kind);
    EXPECT_EQ(access.head().form, want.form);
    EXPECT_EQ(access.head().block, 4u);
    EXPECT_EQ(access.head().warp, 2u);
    EXPECT_EQ(access.head().pc, 0x10u);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((want.mask >> lane & 1) != 0) {
        EXPECT_EQ(access.address(lane), want.lanes[lane]) << lane;
      }
      if (want.kind == kWrite) {
        uint32_t value = 0;
        ASSERT_EQ(access.value(lane).size(), sizeof(value));
        std::memcpy(&value, access.value(lane).data(), sizeof(value));
        EXPECT_EQ(value, lane * 1000);
      }
    }
  }
  EXPECT_FALSE(entries.next(access));
  EXPECT_FALSE(entries.damaged());
}

// More than fits into the blocks, written as fast as it goes.
void write_blocks(PatchPlayer &player, uint64_t input, uint64_t accesses) {
  for (uint64_t i = 0; i < accesses; ++i) player.access(side_by_side(input, 4), 4, kRead);
}
constexpr uint64_t kAccesses = kManyBlocks * kBlockBytes / sizeof(sonde_warp_access_t);

TEST_F(Launches, AllRecordsArriveWhereDeviceCodeWaits) {
  Program program;
  const uint64_t input = program.allocate(4096);
  for (int round = 0; round < 3; ++round) {
    Capture capture(Options{{"collect", "records"}});
    capture.want(SONDE_ACCESS_LAUNCH);
    capture.want(SONDE_ACCESS_WARPS);
    ASSERT_EQ(capture.start(), SONDE_OK);
    program.run([&](PatchPlayer &player) { write_blocks(player, input, kAccesses); });
    ASSERT_EQ(capture.stop(), SONDE_OK);
    ASSERT_EQ(capture.launches().size(), 1u);
    EXPECT_EQ(capture.launches()[0].dropped, 0u) << "round " << round;
    EXPECT_EQ(count_warps(capture, capture.launches()[0].launch), kAccesses) << "round " << round;
  }
}

TEST_F(Launches, AFlushHandsOutTheRecordsToo) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture(Options{{"collect", "records"}});
  capture.want(SONDE_ACCESS_LAUNCH);
  capture.want(SONDE_ACCESS_WARPS);
  ASSERT_EQ(capture.start(), SONDE_OK);
  program.run([&](PatchPlayer &player) { write_blocks(player, input, kAccesses / 2); });
  ASSERT_EQ(capture.flush(), SONDE_OK);
  EXPECT_EQ(count_warps(capture, capture.launches().at(0).launch), kAccesses / 2);
  ASSERT_EQ(capture.stop(), SONDE_OK);
}

TEST(LaunchesAlone, RecordsWithoutRoomAreDroppedAndCounted) {
  alone([] {
    Capture capture(Options{{"collect", "records"}, {"when_full", "drop"}, {"record_bytes", "1048576"}});
    capture.want(SONDE_ACCESS_LAUNCH);
    capture.want(SONDE_ACCESS_WARPS);
    ASSERT_EQ(capture.start(), SONDE_OK);
    device().settings.copy_delay = 100;
    Program program;
    const uint64_t input = program.allocate(4096);
    program.run([&](PatchPlayer &player) { write_blocks(player, input, 4 * kAccesses); });
    ASSERT_EQ(capture.stop(), SONDE_OK);
    ASSERT_EQ(capture.launches().size(), 1u);
    const auto launch = capture.launches()[0];
    EXPECT_EQ(count_warps(capture, launch.launch) + launch.dropped, 4 * kAccesses);
    EXPECT_GT(launch.dropped, 0u) << "the kernel was not faster than the port";
    EXPECT_EQ(capture.session.lost(SONDE_LOSS_VENDOR), launch.dropped);
  });
}

TEST(LaunchesAlone, UnpatchingDoesNotWaitForAKernelThatWaitsForRoom) {
  alone([] {
    // With samples the second launch is unpatched, under the driver's lock, while the first still writes records.
    Capture capture(Options{{"collect", "records"}, {"kernel_period", "5"}, {"record_bytes", "1048576"}});
    capture.want(SONDE_ACCESS_LAUNCH);
    capture.want(SONDE_ACCESS_WARPS);
    ASSERT_EQ(capture.start(), SONDE_OK);
    Program program;
    const uint64_t input = program.allocate(4096);
    Gate gate;
    const Function kernel = program.kernel("kernel", [&](PatchPlayer &player) {
      gate.wait();
      write_blocks(player, input, kAccesses);
    });
    program.launch(kernel);
    std::thread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      gate.open();
    });
    program.launch(kernel);
    opener.join();
    device().synchronize(program.context);
    ASSERT_EQ(capture.stop(), SONDE_OK);
    ASSERT_EQ(capture.launches().size(), 2u);
    const auto first =
        capture.launches()[0].flags == SONDE_LAUNCH_SKIPPED ? capture.launches()[1] : capture.launches()[0];
    EXPECT_EQ(count_warps(capture, first.launch) + first.dropped, kAccesses);
  });
}

TEST(LaunchesAlone, LaunchesWithoutAStateAreMarkedWherePortsDoNotWait) {
  alone([] {
    Capture capture(Options{{"collect", "intervals"}, {"when_full", "drop"}});
    capture.want(SONDE_ACCESS_LAUNCH);
    capture.want(SONDE_ACCESS_INTERVALS);
    ASSERT_EQ(capture.start(), SONDE_OK);
    Program program;
    const uint64_t input = program.allocate(4096);
    Gate gate;
    const Function kernel = program.kernel("kernel", [&](PatchPlayer &player) {
      gate.wait();
      player.access(side_by_side(input, 4), 4, kRead);
    });
    // There are two states with a map.
    for (int i = 0; i < 5; ++i) program.launch(kernel);
    gate.open();
    ASSERT_EQ(capture.stop(), SONDE_OK);
    const auto launches = capture.launches();
    ASSERT_EQ(launches.size(), 5u);
    for (size_t i = 0; i < launches.size(); ++i) {
      EXPECT_EQ(launches[i].flags, i < 2 ? SONDE_LAUNCH_WATCHED : SONDE_LAUNCH_STATE_FULL) << i;
    }
    EXPECT_EQ(capture.all(SONDE_ACCESS_INTERVALS).size(), 2u);
  });
}

TEST_F(Launches, WherePortsWaitEveryLaunchIsWatched) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture(Options{{"collect", "intervals"}});
  capture.want(SONDE_ACCESS_LAUNCH);
  capture.want(SONDE_ACCESS_INTERVALS);
  ASSERT_EQ(capture.start(), SONDE_OK);
  const Function kernel = program.kernel("kernel", [&](PatchPlayer &player) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    player.access(side_by_side(input, 4), 4, kRead);
  });
  for (int i = 0; i < 20; ++i) program.launch(kernel);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  ASSERT_EQ(capture.launches().size(), 20u);
  for (const auto &launch : capture.launches()) EXPECT_EQ(launch.flags, SONDE_LAUNCH_WATCHED);
  EXPECT_EQ(capture.all(SONDE_ACCESS_INTERVALS).size(), 20u);
}

// ---- memory ----------------------------------------------------------------------------------------------------------

TEST_F(Launches, MemoryOfTheProgramIsReported) {
  Program program;
  Capture capture;
  want_objects(capture);
  capture.session.want_all(SONDE_SPACE_MEMORY);
  ASSERT_EQ(capture.start(), SONDE_OK);
  void *const plain = device().allocate(program.context, 1000);
  void *const managed = device().allocate(program.context, 2000, kMemoryManaged);
  const Stream stream = device().create_stream(program.context);
  void *const ordered = device().allocate(program.context, 3000, 0, stream);
  device().free(plain);
  device().free(ordered, stream);
  device().free(managed);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto made = capture.session.emitted_of<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE);
  ASSERT_EQ(made.size(), 3u);
  EXPECT_EQ(made[0].bytes, 1000u);
  EXPECT_EQ(made[0].kind, SONDE_MEMORY_DEVICE);
  EXPECT_EQ(made[1].kind, SONDE_MEMORY_MANAGED);
  EXPECT_EQ(made[2].flags, 3u);
  EXPECT_EQ(made[2].stream, reinterpret_cast<uint64_t>(stream));
  const auto gone = capture.session.emitted_of<sonde_memory_free_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE);
  ASSERT_EQ(gone.size(), 3u);
  EXPECT_EQ(gone[0].address, reinterpret_cast<uint64_t>(plain));
  EXPECT_EQ(gone[0].bytes, 1000u);
  EXPECT_EQ(gone[1].flags, 3u);
}

TEST_F(Launches, MappedMemoryLivesUntilItIsUnmapped) {
  Program program;
  const uint64_t reserved = fresh_addresses(uint64_t{8} << 30);
  Capture capture;
  want_objects(capture);
  capture.session.want_all(SONDE_SPACE_MEMORY);
  ASSERT_EQ(capture.start(), SONDE_OK);
  constexpr uint64_t kPiece = 2 << 20;
  for (uint64_t i = 0; i < 3; ++i) device().map(program.context, reserved + i * kPiece, kPiece);
  FakeRanges::instance().announce(reserved + 4096, 4096, "tensor");
  const auto touch_all = [&](PatchPlayer &player) { player.access(side_by_side(reserved, kPiece), 4, kRead, 0x7); };
  program.run(touch_all);
  device().unmap(program.context, reserved, 2 * kPiece);
  program.run(touch_all);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].outside, 0u);
  EXPECT_EQ(launches[1].outside, 2u);
  const auto gone = capture.session.emitted_of<sonde_memory_free_t>(SONDE_SPACE_MEMORY, SONDE_MEMORY_FREE);
  ASSERT_EQ(gone.size(), 2u);
  EXPECT_EQ(gone[0].address, reserved);
  EXPECT_EQ(gone[0].bytes, kPiece);
  EXPECT_EQ(gone[1].address, reserved + kPiece);
  EXPECT_EQ(gone[1].bytes, kPiece);
}

}  // namespace
}  // namespace sonde::cuda::access::test
