// What the port makes of what device code did: objects, pages, intervals, instructions, records, wrong accesses, events.
#include <gtest/gtest.h>

#include <sonde/ledger.h>

#include "program.h"

namespace sonde::cuda::access::test {
namespace {

using Numbers = std::vector<uint64_t>;

// `collect` for one kernel; the records are in the capture afterwards.
template <typename Body>
void collect(Capture &capture, Program &program, Body &&body) {
  ASSERT_EQ(capture.start(), SONDE_OK);
  program.run(std::forward<Body>(body));
  ASSERT_EQ(capture.stop(), SONDE_OK) << sonde::test::last_error();
}

// The port watches from its first start on, so contexts come after it.
void open_port() {
  Capture capture;
  capture.want(SONDE_ACCESS_LAUNCH);
  ASSERT_EQ(capture.start(), SONDE_OK);
  ASSERT_EQ(capture.stop(), SONDE_OK);
}

class Collect : public ::testing::Test {
 protected:
  void SetUp() override { open_port(); }
};

TEST_F(Collect, ALaunchHasItsNameAndShape) {
  Program program;
  Capture capture(Options{{"collect", "none"}});
  capture.want(SONDE_ACCESS_LAUNCH);
  ASSERT_EQ(capture.start(), SONDE_OK);
  const Stream stream = device().create_stream(program.context);
  const Function kernel = program.kernel("_Z3addPf", [](PatchPlayer &) {});
  device().launch(program.context, kernel, stream, 7, 96);
  device().launch(program.context, kernel, stream, 8, 96);
  device().synchronize(program.context, stream);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(text_of(launches[0].name), "_Z3addPf");
  EXPECT_EQ(launches[0].grid[0], 7u);
  EXPECT_EQ(launches[1].grid[0], 8u);
  EXPECT_EQ(launches[0].block[0], 96u);
  EXPECT_EQ(launches[0].stream, reinterpret_cast<uint64_t>(stream));
  EXPECT_EQ(launches[0].module, reinterpret_cast<uint64_t>(program.module));
  EXPECT_EQ(launches[1].launch, launches[0].launch + 1);
  EXPECT_LE(launches[0].header.time, launches[1].header.time);
  EXPECT_EQ(launches[0].graph_node, 0u);
  EXPECT_EQ(launches[0].flags, 0u);
}

TEST_F(Collect, ObjectsCountAccessesByKindAndSize) {
  Program program;
  const uint64_t input = program.allocate(4096);
  const uint64_t output = program.allocate(8192);
  const uint64_t untouched = program.allocate(100);
  Capture capture;
  capture.want(SONDE_ACCESS_LAUNCH);
  capture.want(SONDE_ACCESS_OBJECT);
  collect(capture, program, [&](PatchPlayer &player) {
    for (int i = 0; i < 3; ++i) player.access(side_by_side(input, 4), 4, kRead);
    player.access(side_by_side(input, 16), 16, kRead, 0xffff);
    player.access(side_by_side(output + 4096, 8), 8, kWrite);
    player.access(side_by_side(output, 0), 4, kAtomic, 0x7);
    player.access(side_by_side(output, 1), 1, kWrite, 0x1);
    player.copy_async(side_by_side(input + 1024, 16), 16);
    player.bulk_load(input, 1024);
    player.access(side_by_side(untouched + 4096, 4), 4, kRead, 0x3);  // in no range
    player.access(side_by_side(64, 4), 4, kRead);                     // in shared memory
  });
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].flags, SONDE_LAUNCH_WATCHED);
  EXPECT_EQ(launches[0].accesses, 96u + 16 + 32 + 3 + 1 + 2);
  EXPECT_EQ(launches[0].outside, 2u);
  EXPECT_NE(launches[0].readable, 0u);
  const auto objects = capture.all(SONDE_ACCESS_OBJECT);
  ASSERT_EQ(objects.size(), 2u);
  const auto &first = objects[0].as<sonde_access_object_t>();
  EXPECT_EQ(first.launch, launches[0].launch);
  EXPECT_EQ(first.address, input);
  EXPECT_EQ(first.bytes, 4096u);
  EXPECT_EQ(first.object_kind, SONDE_OBJECT_IS_ALLOCATION);
  EXPECT_EQ(first.reads, 112u);
  EXPECT_EQ(first.read_bytes, 96u * 4 + 16 * 16);
  EXPECT_EQ(first.writes, 0u);
  EXPECT_EQ(first.copies, 33u);
  EXPECT_EQ(first.copy_bytes, 32u * 16 + 1024);
  EXPECT_EQ(objects[0].values<uint64_t>(first.sizes), (Numbers{0, 0, 96, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  const auto &second = objects[1].as<sonde_access_object_t>();
  EXPECT_EQ(second.address, output);
  EXPECT_EQ(second.ordinal, first.ordinal + 1);
  EXPECT_EQ(second.reads, 0u);
  EXPECT_EQ(second.writes, 33u);
  EXPECT_EQ(second.atomics, 3u);
  EXPECT_EQ(second.write_bytes, 32u * 8 + 1 + 3 * 4);
  EXPECT_EQ(objects[1].values<uint64_t>(second.sizes), (Numbers{0, 0, 0, 0, 0, 1, 0, 0, 32, 0, 0, 0, 3, 0, 0}));
}

TEST_F(Collect, CountsBeginAtNothingForEachLaunch) {
  Program program;
  const uint64_t input = program.allocate(4096);
  Capture capture;
  capture.want(SONDE_ACCESS_OBJECT);
  ASSERT_EQ(capture.start(), SONDE_OK);
  for (int i = 0; i < 40; ++i) {
    program.run([&](PatchPlayer &player) { player.access(side_by_side(input, 4), 4, kRead); });
  }
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto objects = capture.objects();
  ASSERT_EQ(objects.size(), 40u);
  for (const auto &object : objects) EXPECT_EQ(object.reads, 32u);
}

TEST_F(Collect, TensorsAreObjectsWithNames) {
  Program program;
  const uint64_t pool = program.allocate(1 << 20);
  Capture capture;
  capture.want(SONDE_ACCESS_OBJECT);
  ASSERT_EQ(capture.start(), SONDE_OK);
  FakeRanges &ranges = FakeRanges::instance();
  ranges.announce(pool + 512, 1000, "weights");
  const uint64_t ordinal = ranges.last();
  program.run([&](PatchPlayer &player) {
    player.access(side_by_side(pool + 512, 4), 4, kRead);
    player.access(side_by_side(pool, 4), 4, kWrite);
  });
  ranges.retire(pool + 512);
  program.run([&](PatchPlayer &player) { player.access(side_by_side(pool + 512, 4), 4, kRead); });
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto objects = capture.objects();
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0].object_kind, SONDE_OBJECT_IS_REMAINDER);
  EXPECT_EQ(objects[0].writes, 32u);
  EXPECT_EQ(objects[1].object_kind, SONDE_OBJECT_IS_TENSOR);
  EXPECT_EQ(objects[1].ordinal, ordinal);
  EXPECT_EQ(objects[1].bytes, 1000u);
  EXPECT_EQ(text_of(objects[1].name), "weights");
  EXPECT_EQ(objects[1].reads, 32u);
  EXPECT_EQ(objects[2].object_kind, SONDE_OBJECT_IS_REMAINDER);
  EXPECT_EQ(objects[2].bytes, uint64_t{1} << 20);
}

TEST_F(Collect, TensorsOfAnEndedWatchAreNotLiveInTheNext) {
  Program program;
  const uint64_t pool = program.allocate(1 << 20);
  FakeRanges &ranges = FakeRanges::instance();
  {
    Capture capture;
    capture.want(SONDE_ACCESS_OBJECT);
    ASSERT_EQ(capture.start(), SONDE_OK);
    ranges.announce(pool, 1000, "first");
    ASSERT_EQ(capture.stop(), SONDE_OK);
  }
  Capture capture;
  capture.want(SONDE_ACCESS_OBJECT);
  collect(capture, program, [&](PatchPlayer &player) { player.access(side_by_side(pool, 4), 4, kRead); });
  const auto objects = capture.objects();
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_NE(objects[0].object_kind, SONDE_OBJECT_IS_TENSOR) << text_of(objects[0].name);
}

TEST_F(Collect, PagesAreAHistogramOfTheTouchedOnes) {
  Program program;
  const uint64_t input = program.allocate(64 << 10);
  const uint64_t output = program.allocate(10000);
  Capture capture(Options{{"collect", "pages"}});
  capture.want(SONDE_ACCESS_PAGES);
  collect(capture, program, [&](PatchPlayer &player) {
    player.access(side_by_side(input, 4), 4, kRead);
    player.access(side_by_side(input + 4096 - 64, 4), 4, kRead);  // 16 lanes on each side of a page's end
    player.access(side_by_side(input + 15 * 4096, 128), 4, kWrite);
    player.access(side_by_side(output + 2 * 4096, 4), 4, kWrite, 1);
  });
  const auto records = capture.all(SONDE_ACCESS_PAGES);
  ASSERT_EQ(records.size(), 2u);
  const auto &first = records[0].as<sonde_access_pages_t>();
  EXPECT_EQ(first.address, input);
  EXPECT_EQ(first.page_bytes, 4096u);
  EXPECT_EQ(records[0].values<uint64_t>(first.pages), (Numbers{input / 4096, input / 4096 + 1, input / 4096 + 15}));
  EXPECT_EQ(records[0].values<uint64_t>(first.counts), (Numbers{48, 16, 32}));
  const auto &second = records[1].as<sonde_access_pages_t>();
  EXPECT_EQ(second.address, output);
  EXPECT_EQ(records[1].values<uint64_t>(second.pages), (Numbers{output / 4096 + 2}));
  EXPECT_EQ(records[1].values<uint64_t>(second.counts), (Numbers{1}));
}

TEST_F(Collect, ManyPagesTakeSeveralRecords) {
  Program program;
  constexpr uint64_t kPages = 40000;
  const uint64_t input = program.allocate(kPages * 4096);
  Capture capture(Options{{"collect", "pages"}});
  capture.want(SONDE_ACCESS_PAGES);
  collect(capture, program, [&](PatchPlayer &player) {
    for (uint64_t page = 0; page < kPages; page += 32) player.access(side_by_side(input + page * 4096, 4096), 4, kRead);
  });
  const auto records = capture.all(SONDE_ACCESS_PAGES);
  ASSERT_EQ(records.size(), 3u);
  uint64_t expected = input / 4096;
  for (const Stored &stored : records) {
    const auto &record = stored.as<sonde_access_pages_t>();
    for (const uint64_t page : stored.values<uint64_t>(record.pages)) ASSERT_EQ(page, expected++);
    for (const uint64_t count : stored.values<uint64_t>(record.counts)) ASSERT_EQ(count, 1u);
  }
  EXPECT_EQ(expected, input / 4096 + kPages);
}

struct Interval {
  uint64_t address;
  uint32_t kind;
  uint64_t touched;
  Numbers edges;
  bool operator==(const Interval &) const = default;
};

std::ostream &operator<<(std::ostream &out, const Interval &interval) {
  out << "range " << interval.address << " kind " << interval.kind << " touched " << interval.touched << ":";
  for (const uint64_t edge : interval.edges) out << " " << edge;
  return out;
}

std::vector<Interval> intervals_of(const Capture &capture) {
  std::vector<Interval> out;
  for (const Stored &stored : capture.all(SONDE_ACCESS_INTERVALS)) {
    const auto &record = stored.as<sonde_access_intervals_t>();
    EXPECT_EQ(record.granule, 1u);
    out.push_back({record.address, record.kind, record.touched, stored.values<uint64_t>(record.edges)});
  }
  return out;
}

TEST_F(Collect, IntervalsAreExactToTheByte) {
  Program program;
  const uint64_t input = program.allocate(200 << 10);
  const uint64_t output = program.allocate(1000);
  Capture capture(Options{{"collect", "intervals"}});
  capture.want(SONDE_ACCESS_INTERVALS);
  collect(capture, program, [&](PatchPlayer &player) {
    player.access(side_by_side(input + 8, 4), 4, kRead);
    player.access(side_by_side(input + 136, 4), 4, kRead);            // goes on where the first ended
    player.access(side_by_side(input + 1001, 2), 1, kRead, 0x3);      // bytes 1001 and 1003
    player.access(side_by_side(input + 65536 - 64, 4), 4, kRead);     // over 64 KiB
    player.access(side_by_side(input + 131072, 4), 4, kAtomic, 0x1);  // written
    player.access(side_by_side(output + 984, 8), 8, kWrite, 0x3);     // to the range's last byte
    player.access(side_by_side(output + 996, 8), 4, kRead, 0x1);
  });
  EXPECT_EQ(intervals_of(capture),
            (std::vector<Interval>{
                {input, 1, 256 + 2 + 128, {8, 264, 1001, 1002, 1003, 1004, 65536 - 64, 65536 + 64}},
                {output, 1, 4, {996, 1000}},
                {input, 2, 4, {131072, 131076}},
                {output, 2, 16, {984, 1000}},
            }));
}

TEST_F(Collect, ARunToTheEndOfTheLast64KiBEndsWithTheRange) {
  Program program;
  const uint64_t input = program.allocate(128 << 10);
  const uint64_t next = input + (128 << 10);
  device().tell_allocated(program.context, next, 4096, 0);
  Capture capture(Options{{"collect", "intervals"}});
  capture.want(SONDE_ACCESS_INTERVALS);
  collect(capture, program, [&](PatchPlayer &player) {
    player.access(side_by_side(input + (128 << 10) - 128, 4), 4, kRead);
    player.access(side_by_side(next, 4), 4, kRead);  // touches it, and belongs to another range
  });
  EXPECT_EQ(intervals_of(capture),
            (std::vector<Interval>{{input, 1, 128, {(128 << 10) - 128, 128 << 10}}, {next, 1, 128, {0, 128}}}));
}

TEST_F(Collect, ManyIntervalsTakeSeveralRecords) {
  Program program;
  const uint64_t input = program.allocate(512 << 10);
  Capture capture(Options{{"collect", "intervals"}});
  capture.want(SONDE_ACCESS_INTERVALS);
  constexpr uint64_t kRuns = 40000;
  collect(capture, program, [&](PatchPlayer &player) {
    for (uint64_t run = 0; run < kRuns; run += 32) player.access(side_by_side(input + run * 12, 12), 4, kWrite);
  });
  const auto intervals = intervals_of(capture);
  ASSERT_EQ(intervals.size(), 3u);
  uint64_t run = 0;
  for (const Interval &interval : intervals) {
    EXPECT_EQ(interval.touched, kRuns * 4);
    ASSERT_EQ(interval.edges.size() % 2, 0u);
    for (size_t i = 0; i < interval.edges.size(); i += 2, ++run) {
      ASSERT_EQ(interval.edges[i], run * 12);
      ASSERT_EQ(interval.edges[i + 1], run * 12 + 4);
    }
  }
  EXPECT_EQ(run, kRuns);
}

TEST_F(Collect, WhereTheMapHasNoRoomTheLaunchSaysSo) {
  Program program;
  // The map holds 64 pieces of 64 KiB (interval_bytes is 2 MiB, 32 KiB a piece).
  const uint64_t input = program.allocate(100 << 16);
  Capture capture(Options{{"collect", "intervals"}});
  capture.want(SONDE_ACCESS_INTERVALS);
  capture.want(SONDE_ACCESS_LAUNCH);
  ASSERT_EQ(capture.start(), SONDE_OK);
  for (const uint64_t pieces : {100, 64}) {
    program.run([&](PatchPlayer &player) {
      for (uint64_t piece = 0; piece < pieces; ++piece) {
        player.access(side_by_side(input + (piece << 16), 4), 4, kRead, 0x1);
      }
    });
  }
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].flags, SONDE_LAUNCH_WATCHED | SONDE_LAUNCH_PAGES_CUT);
  EXPECT_EQ(launches[1].flags, SONDE_LAUNCH_WATCHED);
  const auto intervals = intervals_of(capture);
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[0].touched, 64u * 4);
  EXPECT_EQ(intervals[1].touched, 64u * 4);
}

TEST_F(Collect, InstructionsHaveSectorsAndPasses) {
  Program program;
  const uint64_t input = program.allocate(1 << 20);
  Capture capture(Options{{"collect", "instructions"}});
  capture.want(SONDE_ACCESS_INSTRUCTION);
  capture.want(SONDE_ACCESS_LAUNCH);
  collect(capture, program, [&](PatchPlayer &player) {
    player.at(0x10);
    player.access(side_by_side(input, 4), 4, kRead);  // 128 bytes: 4 sectors
    player.access(side_by_side(input, 4), 4, kRead);
    player.at(0x20);
    player.access(side_by_side(input, 32), 4, kWrite, 0xff);  // 8 sectors where 1 would do
    player.at(0x30);
    player.shared(side_by_side(0, 8), 4, kRead);  // stride 2 words: two to a bank
    player.at(0x40);
    player.shared(side_by_side(0, 128), 4, kRead);  // all in one bank
    player.at(0x50);
    player.shared(side_by_side(0, 0), 4, kRead);  // one word for all
    player.at(0x60);
    player.shared(side_by_side(0, 16), 16, kWrite);  // four phases of eight lanes
  });
  const auto begin = capture.launches().at(0).function_begin;
  const auto found = capture.fixed<sonde_access_instruction_t>(SONDE_ACCESS_INSTRUCTION);
  ASSERT_EQ(found.size(), 6u);
  struct Expected {
    uint64_t pc, threads, warps, bytes, sectors, least_sectors, wavefronts, least_wavefronts;
    uint32_t memory, access, size;
  };
  const Expected expected[] = {
      {0x10, 64, 2, 256, 8, 8, 0, 0, 1, kRead, 4}, {0x20, 8, 1, 32, 8, 1, 0, 0, 1, kWrite, 4},
      {0x30, 32, 1, 128, 0, 0, 2, 1, 2, kRead, 4}, {0x40, 32, 1, 128, 0, 0, 32, 1, 2, kRead, 4},
      {0x50, 32, 1, 128, 0, 0, 1, 1, 2, kRead, 4}, {0x60, 32, 1, 512, 0, 0, 4, 4, 2, kWrite, 16},
  };
  for (size_t i = 0; i < std::size(expected); ++i) {
    const auto &record = found[i];
    const Expected &want = expected[i];
    EXPECT_EQ(record.pc - begin, want.pc);
    EXPECT_EQ(record.threads, want.threads) << i;
    EXPECT_EQ(record.warps, want.warps) << i;
    EXPECT_EQ(record.bytes, want.bytes) << i;
    EXPECT_EQ(record.sectors, want.sectors) << i;
    EXPECT_EQ(record.least_sectors, want.least_sectors) << i;
    EXPECT_EQ(record.wavefronts, want.wavefronts) << i;
    EXPECT_EQ(record.least_wavefronts, want.least_wavefronts) << i;
    EXPECT_EQ(record.memory, want.memory) << i;
    EXPECT_EQ(record.access, want.access) << i;
    EXPECT_EQ(record.size, want.size) << i;
  }
}

TEST_F(Collect, WrongAccessesNameTheNearestRange) {
  Program program;
  const uint64_t input = program.allocate(1000);
  const uint64_t gone = program.allocate(4096);
  Capture capture(Options{{"collect", "check"}});
  capture.want(SONDE_ACCESS_INVALID);
  capture.want(SONDE_ACCESS_LAUNCH);
  ASSERT_EQ(capture.start(), SONDE_OK);
  FakeRanges::instance().announce(input, 1000, "tensor");
  program.free(gone, 4096);
  program.run([&](PatchPlayer &player) {
    player.at(0x10, 3, 1);
    player.access(side_by_side(input + 900, 4), 4, kRead);  // 25 lanes inside, 7 behind the end
    player.at(0x20);
    player.access(side_by_side(gone + 8, 8), 8, kWrite, 0x1);
    player.at(0x30);
    player.access(side_by_side(input + 2, 0), 4, kRead, 0x1);
    player.at(0x40);
    player.access(side_by_side(input + 992, 0), 16, kWrite, 0x1);
    player.at(0x50);
    player.access(side_by_side(input, 4), 4, kRead);  // right
    player.at(0x60);
    player.access(side_by_side(input - 8, 0), 4, kAtomic, 0x1);
  });
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto begin = capture.launches().at(0).function_begin;
  const auto found = capture.fixed<sonde_access_invalid_t>(SONDE_ACCESS_INVALID);
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found[0].pc - begin, 0x10u);
  EXPECT_EQ(found[0].reason, SONDE_INVALID_OUTSIDE);
  EXPECT_EQ(found[0].address, input + 1000);
  EXPECT_EQ(found[0].count, 7u);
  EXPECT_EQ(found[0].nearest, input);
  EXPECT_EQ(found[0].nearest_bytes, 1000u);
  EXPECT_EQ(found[0].distance, 1);
  EXPECT_EQ(found[0].block[0], 3u);
  EXPECT_EQ(found[0].thread[0], 32u + 25);
  EXPECT_EQ(text_of(found[0].object), "tensor");
  EXPECT_EQ(text_of(found[0].function), "kernel");
  EXPECT_EQ(found[1].reason, SONDE_INVALID_FREED);
  EXPECT_EQ(found[1].size, 8u);
  EXPECT_EQ(found[1].access, kWrite);
  EXPECT_EQ(found[2].reason, SONDE_INVALID_MISALIGNED);
  EXPECT_EQ(found[2].distance, 0);
  EXPECT_EQ(found[3].reason, SONDE_INVALID_STRADDLES);
  EXPECT_EQ(found[3].distance, 8);
  EXPECT_EQ(found[4].reason, SONDE_INVALID_OUTSIDE);
  EXPECT_EQ(found[4].distance, -8);
  FakeRanges::instance().retire(input);
}

TEST_F(Collect, AWrongAccessNamesItsSourceLine) {
  std::ifstream file(SONDE_TEST_SOURCE_DIR "/tests/data/cubins/hot_line.cubin", std::ios::binary);
  const std::string code((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_FALSE(code.empty());
  Program program;
  Capture capture(Options{{"collect", "check"}});
  capture.want(SONDE_ACCESS_INVALID);
  capture.want(SONDE_ACCESS_LAUNCH);
  ASSERT_EQ(capture.start(), SONDE_OK);
  program.module = device().load_module(program.context, code);
  // 0x200 behind the begin of `hot` lies code of line 3, in line in it (see the tests of the line reader).
  program.run(
      [](PatchPlayer &player) {
        player.at(0x200);
        player.access(side_by_side(fresh_addresses(4096), 4), 4, kRead, 0x1);
      },
      "hot");
  ASSERT_EQ(capture.stop(), SONDE_OK);
  ASSERT_EQ(capture.launches().at(0).flags, SONDE_LAUNCH_WATCHED) << capture.session.all_notes();
  const auto found = capture.fixed<sonde_access_invalid_t>(SONDE_ACCESS_INVALID);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(text_of(found[0].file), "/tmp/cubins/hot_line.cu");
  EXPECT_EQ(found[0].line, 3u);
  EXPECT_EQ(text_of(found[0].function), "hot");
}

TEST_F(Collect, AnAccessBetweenTheTensorsOfAPoolIsWrong) {
  Program program;
  const uint64_t pool = program.allocate(1 << 20);
  Capture capture(Options{{"collect", "check"}});
  capture.want(SONDE_ACCESS_INVALID);
  ASSERT_EQ(capture.start(), SONDE_OK);
  FakeRanges::instance().announce(pool, 1000, "first");
  FakeRanges::instance().announce(pool + 1024, 1000, "second");
  program.run([&](PatchPlayer &player) { player.access(side_by_side(pool + 1000, 0), 4, kRead, 0x1); });
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto found = capture.fixed<sonde_access_invalid_t>(SONDE_ACCESS_INVALID);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].distance, 1);
  EXPECT_EQ(text_of(found[0].object), "first");
  FakeRanges::instance().retire(pool);
  FakeRanges::instance().retire(pool + 1024);
}

TEST_F(Collect, OneCulpritHasAllThatItDid) {
  Program program;
  const uint64_t input = program.allocate(1000);
  Capture capture(Options{{"collect", "check"}});
  capture.want(SONDE_ACCESS_INVALID);
  collect(capture, program, [&](PatchPlayer &player) {
    for (int i = 0; i < 100; ++i) player.access(side_by_side(input + 4096, 4), 4, kWrite);
  });
  const auto found = capture.fixed<sonde_access_invalid_t>(SONDE_ACCESS_INVALID);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].count, 3200u);
}

TEST_F(Collect, EventsComeInOrderOfTheirProcessor) {
  Program program;
  Capture capture(Options{{"collect", "events"}});
  capture.want(SONDE_ACCESS_EVENTS);
  capture.want(SONDE_ACCESS_LAUNCH);
  collect(capture, program, [&](PatchPlayer &player) {
    player.at(0x10, 2, 1);
    player.event(SONDE_DEVICE_EVENT_BLOCK_ENTER);
    player.event(SONDE_DEVICE_EVENT_BARRIER, 1, 64, 0xff);
    player.at(0x20, 2, 1);
    player.event(SONDE_DEVICE_EVENT_BLOCK_EXIT);
  });
  const auto launch = capture.launches().at(0).launch;
  const auto records = capture.all(SONDE_ACCESS_EVENTS);
  ASSERT_EQ(records.size(), 1u);
  const auto &record = records[0].as<sonde_access_events_t>();
  EXPECT_EQ(record.launch, launch);
  ASSERT_EQ(record.count, 3u);
  EXPECT_EQ(record.data.count, 3 * sizeof(sonde_device_event_t));
  sonde_device_event_t events[3];
  std::memcpy(events, records[0].bytes.data() + record.data.offset, sizeof(events));
  EXPECT_EQ(events[0].kind, SONDE_DEVICE_EVENT_BLOCK_ENTER);
  EXPECT_EQ(events[0].block, 2u);
  EXPECT_EQ(events[0].warp, 1u);
  EXPECT_EQ(events[0].pc, 0x10u);
  EXPECT_EQ(events[1].b, 64u);
  EXPECT_EQ(events[1].mask, 0xffu);
  EXPECT_EQ(events[2].pc, 0x20u);
}

TEST_F(Collect, MoreThan65536RangesAndAnObjectOfMoreThan4GiB) {
  Program program;
  constexpr uint64_t kBytes = uint64_t{48} << 30;
  const uint64_t pool = program.allocate(kBytes);
  const uint64_t large = program.allocate(uint64_t{6} << 30);
  Capture capture;
  capture.want(SONDE_ACCESS_OBJECT);
  capture.want(SONDE_ACCESS_LAUNCH);
  ASSERT_EQ(capture.start(), SONDE_OK);
  constexpr uint64_t kTensors = 70000;
  for (uint64_t i = 0; i < kTensors; ++i) FakeRanges::instance().announce(pool + i * 4096, 2048, "");
  const uint64_t last = FakeRanges::instance().last();
  program.run([&](PatchPlayer &player) {
    player.access(side_by_side(pool + 69999 * 4096 + 1024, 4), 4, kRead);
    player.access(side_by_side(pool + 69999 * 4096 + 2048, 4), 4, kRead);  // the gap behind it
    player.access(side_by_side(large + (uint64_t{6} << 30) - 4, 0), 4, kWrite, 0x1);
    player.access(side_by_side(large + (uint64_t{5} << 30), uint64_t{1} << 24), 4, kWrite);
  });
  ASSERT_EQ(capture.stop(), SONDE_OK);
  const auto launches = capture.launches();
  EXPECT_GE(launches.at(0).ranges, 2 * kTensors);
  EXPECT_EQ(launches[0].flags, SONDE_LAUNCH_WATCHED);
  EXPECT_EQ(launches[0].outside, 0u);
  const auto objects = capture.objects();
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0].ordinal, last);
  EXPECT_EQ(objects[0].reads, 32u);
  EXPECT_EQ(objects[1].object_kind, SONDE_OBJECT_IS_REMAINDER);
  EXPECT_EQ(objects[2].bytes, uint64_t{6} << 30);
  EXPECT_EQ(objects[2].writes, 33u);
  program.free(pool, kBytes);
  program.free(large, uint64_t{6} << 30);
}

// Pairs that are often wanted have patches of their own, which must do what each does alone.
TEST_F(Collect, ObjectsWithOneOtherFeature) {
  constexpr struct {
    const char *collect;
    uint32_t other;
    size_t others;
  } kPairs[] = {{"objects, check", SONDE_ACCESS_INVALID, 1},
                {"objects, pages", SONDE_ACCESS_PAGES, 1},
                {"objects, intervals", SONDE_ACCESS_INTERVALS, 2}};
  for (const auto &pair : kPairs) {
    Program program;
    const uint64_t input = program.allocate(64 << 10);
    Capture capture(Options{{"collect", pair.collect}});
    capture.want(SONDE_ACCESS_LAUNCH);
    capture.want(SONDE_ACCESS_OBJECT);
    capture.want(pair.other);
    collect(capture, program, [&](PatchPlayer &player) {
      player.access(side_by_side(input, 4), 4, kRead);
      player.access(side_by_side(input + 8192, 4), 4, kWrite, 0xf);
      player.access(side_by_side(input + (64 << 10), 0), 4, kRead, 0x1);  // past the end
    });
    EXPECT_EQ(capture.launches().at(0).accesses, 37u) << pair.collect;
    EXPECT_EQ(capture.launches().at(0).outside, 1u) << pair.collect;
    ASSERT_EQ(capture.objects().size(), 1u) << pair.collect;
    EXPECT_EQ(capture.objects()[0].reads, 32u) << pair.collect;
    EXPECT_EQ(capture.objects()[0].writes, 4u) << pair.collect;
    EXPECT_EQ(capture.all(pair.other).size(), pair.others) << pair.collect;
  }
}

TEST_F(Collect, SeveralFeaturesAtOnce) {
  Program program;
  const uint64_t input = program.allocate(64 << 10);
  Capture capture(Options{{"collect", "objects,pages,intervals,instructions,check,records"}});
  for (uint32_t type = SONDE_ACCESS_LAUNCH; type <= SONDE_ACCESS_INVALID; ++type) capture.want(type);
  collect(capture, program, [&](PatchPlayer &player) {
    player.access(side_by_side(input, 4), 4, kRead);
    player.access(side_by_side(input + 8192, 4), 4, kWrite, 0xf);
  });
  EXPECT_EQ(capture.launches().at(0).accesses, 36u);
  ASSERT_EQ(capture.objects().size(), 1u);
  EXPECT_EQ(capture.objects()[0].reads, 32u);
  ASSERT_EQ(capture.all(SONDE_ACCESS_PAGES).size(), 1u);
  EXPECT_EQ(intervals_of(capture), (std::vector<Interval>{{input, 1, 128, {0, 128}}, {input, 2, 16, {8192, 8208}}}));
  EXPECT_EQ(capture.all(SONDE_ACCESS_INSTRUCTION).size(), 2u);
  EXPECT_EQ(capture.all(SONDE_ACCESS_INVALID).size(), 0u);
  ASSERT_EQ(capture.all(SONDE_ACCESS_WARPS).size(), 1u);
  EXPECT_EQ(capture.all(SONDE_ACCESS_WARPS)[0].as<sonde_access_warps_t>().count, 2u);
}

TEST_F(Collect, BlocksAreSampledWithTheirPeriod) {
  Program program;
  const uint64_t input = program.allocate(64 << 10);
  Capture capture(Options{{"block_period", "4"}});
  capture.want(SONDE_ACCESS_OBJECT);
  capture.want(SONDE_ACCESS_LAUNCH);
  ASSERT_EQ(capture.start(), SONDE_OK);
  const Function kernel = program.kernel("kernel", [&](PatchPlayer &player) {
    for (uint32_t block = 0; block < 8; ++block) {
      player.at(0x10, block);
      player.access(side_by_side(input + block * 4096, 4), 4, kRead);
    }
  });
  for (int i = 0; i < 4; ++i) program.launch(kernel);
  device().synchronize(program.context);
  ASSERT_EQ(capture.stop(), SONDE_OK);
  ASSERT_EQ(capture.launches().size(), 4u);
  for (const auto &launch : capture.launches()) EXPECT_EQ(launch.block_period, 4u);
  ASSERT_EQ(capture.objects().size(), 4u);
  for (const auto &object : capture.objects()) EXPECT_EQ(object.reads, 64u);
}

}  // namespace
}  // namespace sonde::cuda::access::test
