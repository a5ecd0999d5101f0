// What a program did to its memory, told from records that come in any order.
#include <gtest/gtest.h>
#include <sonde/toolkit/memory_history.h>
#include <sonde/toolkit/memory_touches.h>

#include <sonde/spaces/framework.h>
#include <sonde/spaces/memory.h>

#include <map>
#include <string>
#include <vector>

#include "fake_host.h"

namespace sonde::toolkit {
namespace {

constexpr uint64_t kStart = 1'000'000'000;  // stamps of 0 mean "no time"

std::string edges_text(std::span<const uint64_t> edges) {
  std::string text;
  for (size_t at = 0; at + 1 < edges.size(); at += 2) {
    text += (at == 0 ? "" : ",") + std::to_string(edges[at]) + "-" + std::to_string(edges[at + 1]);
  }
  return text;
}

// The story as lines: "+1" and "-1" for an object's begin and end, "kernel 0: 1 r8 w4" for what a kernel did.
class Story : public MemoryListener {
 public:
  void object_begins(const MemoryObject &object) override {
    lines.push_back("+" + std::to_string(object.id));
    objects[object.id] = object;
  }
  void object_ends(const MemoryObject &object) override {
    static const char *const kEnds[] = {"alive ", "", "replaced "};
    lines.push_back(kEnds[static_cast<size_t>(object.end)] + ("-" + std::to_string(object.id)));
    objects[object.id] = object;
  }
  void operation(const MemoryOperation &operation, std::span<const MemoryTouch> touches) override {
    static const char *const kKinds[] = {"kernel", "copy", "set", "prefetch", "advise"};
    std::string line = operation.is_late ? "late " : "";
    line += kKinds[static_cast<size_t>(operation.kind)] + (" " + std::to_string(operation.kernels));
    for (const MemoryTouch &touch : touches) {
      line += ": " + std::to_string(touch.object->id) + " r" + std::to_string(touch.reads) + " w" +
              std::to_string(touch.writes);
      if (touch.atomics != 0) line += " a" + std::to_string(touch.atomics);
      if (!touch.read_edges.empty()) line += " read " + edges_text(touch.read_edges);
      if (!touch.write_edges.empty()) line += " written " + edges_text(touch.write_edges);
      for (size_t at = 0; at < touch.pages.size(); ++at) {
        line += " p" + std::to_string(touch.pages[at]) + "=" + std::to_string(touch.page_counts[at]);
      }
    }
    lines.push_back(line);
    operations.push_back(operation);
  }

  std::vector<std::string> lines;
  std::vector<MemoryOperation> operations;
  std::map<uint64_t, MemoryObject> objects;
};

class Records {
 public:
  explicit Records(uint32_t source = 0) : builder(source) {}

  Records &allocate(uint64_t at, uint64_t address, uint64_t bytes, uint32_t type = SONDE_MEMORY_ALLOCATE) {
    builder.add<sonde_memory_allocate_t>(SONDE_SPACE_MEMORY, type, kStart + at, [&](auto &r) {
      r.address = address;
      r.bytes = bytes;
    });
    return *this;
  }
  Records &free(uint64_t at, uint64_t address, uint32_t type = SONDE_MEMORY_FREE) {
    builder.add<sonde_memory_free_t>(SONDE_SPACE_MEMORY, type, kStart + at, [&](auto &r) { r.address = address; });
    return *this;
  }
  Records &map(uint64_t at, uint64_t address, uint64_t bytes, bool ends = false) {
    builder.add<sonde_memory_map_t>(SONDE_SPACE_MEMORY, ends ? SONDE_MEMORY_UNMAP : SONDE_MEMORY_MAP, kStart + at,
                                    [&](auto &r) {
                                      r.address = address;
                                      r.bytes = bytes;
                                    });
    return *this;
  }
  Records &tensor(uint64_t at, uint64_t address, uint64_t bytes, bool ends = false) {
    builder.add<sonde_framework_tensor_t>(SONDE_SPACE_FRAMEWORK,
                                          ends ? SONDE_FRAMEWORK_TENSOR_FREE : SONDE_FRAMEWORK_TENSOR_ALLOCATE,
                                          kStart + at, [&](auto &r) {
                                            r.address = address;
                                            r.bytes = bytes;
                                          });
    return *this;
  }
  Records &launch(uint64_t at, uint64_t number, uint32_t flags = SONDE_LAUNCH_WATCHED) {
    builder.add<sonde_access_launch_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_LAUNCH, kStart + at, [&](auto &r) {
      r.launch = number;
      r.flags = flags;
    });
    return *this;
  }
  Records &object(uint64_t number, uint64_t address, uint64_t bytes, uint64_t reads, uint64_t writes,
                  uint32_t kind = SONDE_OBJECT_IS_ALLOCATION, uint64_t atomics = 0) {
    builder.add<sonde_access_object_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_OBJECT, kStart, [&](auto &r) {
      r.launch = number;
      r.address = address;
      r.bytes = bytes;
      r.reads = reads;
      r.writes = writes;
      r.atomics = atomics;
      r.object_kind = kind;
    });
    return *this;
  }
  Records &intervals(uint64_t number, uint64_t address, uint64_t bytes, uint32_t kind,
                     const std::vector<uint64_t> &edges) {
    std::vector<uint64_t> words(sizeof(sonde_access_intervals_t) / 8 + edges.size());
    auto &record = *reinterpret_cast<sonde_access_intervals_t *>(words.data());
    SONDE_RECORD_INIT(&record, SONDE_SPACE_ACCESS, SONDE_ACCESS_INTERVALS, kStart);
    record.header.size8 = static_cast<uint16_t>(words.size());
    record.launch = number;
    record.address = address;
    record.bytes = bytes;
    record.kind = kind;
    record.granule = 1;
    record.edges = {sizeof(sonde_access_intervals_t), static_cast<uint32_t>(edges.size())};
    std::copy(edges.begin(), edges.end(), words.begin() + sizeof(sonde_access_intervals_t) / 8);
    builder.append(words.data(), words.size() * 8);
    return *this;
  }
  Records &pages(uint64_t number, uint64_t address, uint64_t bytes, const std::vector<uint64_t> &numbers,
                 const std::vector<uint64_t> &counts) {
    constexpr size_t kHead = sizeof(sonde_access_pages_t);
    std::vector<uint64_t> words(kHead / 8 + numbers.size() + counts.size());
    auto &record = *reinterpret_cast<sonde_access_pages_t *>(words.data());
    SONDE_RECORD_INIT(&record, SONDE_SPACE_ACCESS, SONDE_ACCESS_PAGES, kStart);
    record.header.size8 = static_cast<uint16_t>(words.size());
    record.launch = number;
    record.address = address;
    record.bytes = bytes;
    record.page_bytes = 4096;
    record.pages = {kHead, static_cast<uint32_t>(numbers.size())};
    record.counts = {static_cast<uint32_t>(kHead + numbers.size() * 8), static_cast<uint32_t>(counts.size())};
    std::copy(numbers.begin(), numbers.end(), words.begin() + kHead / 8);
    std::copy(counts.begin(), counts.end(), words.begin() + static_cast<ptrdiff_t>(kHead / 8 + numbers.size()));
    builder.append(words.data(), words.size() * 8);
    return *this;
  }
  template <typename Fill>
  Records &transfer(uint64_t at, Fill &&fill) {
    builder.add<sonde_access_transfer_t>(SONDE_SPACE_ACCESS, SONDE_ACCESS_TRANSFER, kStart + at, fill);
    return *this;
  }

  sonde::testing::BatchBuilder builder;
};

class History {
 public:
  explicit History(const MemoryHistoryOptions &options = {})
      : history(
            options, [](uint32_t, sonde_string_t) { return "name"; }, story) {}
  void tell(Records &records) { history.consume(records.builder.batch()); }
  const std::vector<std::string> &all() {
    history.finish();
    return story.lines;
  }

  Story story;
  MemoryHistory history;
};

using Lines = std::vector<std::string>;

TEST(MemoryHistory, AnAddressMeansWhatItMeantWhenTheKernelWasLaunched) {
  Records records;
  records.allocate(10, 0x1000, 64).free(30, 0x1000).allocate(40, 0x1000, 128);
  // Results are read long after.
  records.launch(20, 1).object(1, 0x1000, 64, 8, 0).launch(50, 2).object(2, 0x1000, 128, 0, 4);
  History history;
  history.tell(records);
  EXPECT_EQ(history.all(), (Lines{"+1", "kernel 0: 1 r8 w0", "-1", "+2", "kernel 1: 2 r0 w4", "alive -2"}));
  EXPECT_EQ(history.story.objects.at(1).begin_kernel, 0u);
  EXPECT_EQ(history.story.objects.at(1).end_kernel, 1u) << "one kernel was launched before it was freed";
  EXPECT_EQ(history.story.objects.at(2).begin_operation, 1u);
  EXPECT_EQ(history.story.objects.at(2).end_kernel, 2u);
}

TEST(MemoryHistory, EqualStampsKeepTheOrderOfTheRecords) {
  Records records;
  records.allocate(10, 0x1000, 64).launch(10, 1).free(10, 0x1000).object(1, 0x1000, 64, 1, 0);
  History history;
  history.tell(records);
  EXPECT_EQ(history.all(), (Lines{"+1", "kernel 0: 1 r1 w0", "-1"}));
}

TEST(MemoryHistory, WhatTouchesATensorTouchesItsAllocation) {
  Records records;
  records.allocate(1, 0x1000, 4096).tensor(2, 0x1100, 256).tensor(3, 0x1400, 256);
  records.launch(5, 1)
      .object(1, 0x1100, 256, 10, 0, SONDE_OBJECT_IS_TENSOR)
      .object(1, 0x1400, 256, 0, 20, SONDE_OBJECT_IS_TENSOR)
      .object(1, 0x1000, 4096, 3, 0, SONDE_OBJECT_IS_REMAINDER);
  History history;
  history.tell(records);
  EXPECT_EQ(history.all()[3], "kernel 0: 2 r10 w0: 1 r13 w20: 3 r0 w20") << "10 + 3 reads of the whole";
  EXPECT_EQ(history.story.objects.at(2).parent, 1u);
}

TEST(MemoryHistory, EdgesOfTensorsMoveIntoTheirAllocationAndJoin) {
  Records records;
  records.allocate(1, 0x1000, 4096).tensor(2, 0x1000, 256).tensor(3, 0x1100, 256);
  // The two tensors lie side by side: 0 to 256 and 256 to 512 of the allocation.
  records.launch(5, 1)
      .intervals(1, 0x1100, 256, 1, {0, 16})
      .intervals(1, 0x1000, 256, 1, {128, 256})
      .intervals(1, 0x1000, 256, 2, {0, 8});
  History history;
  history.tell(records);
  EXPECT_EQ(history.all()[3],
            "kernel 0: 3 r0 w0 read 0-16: 1 r0 w0 read 128-272 written 0-8: 2 r0 w0 read 128-256 written 0-8");
}

TEST(MemoryHistory, IntervalsSplitOverRecordsAreOne) {
  Records records;
  records.allocate(1, 0x1000, 4096);
  records.launch(5, 1).intervals(1, 0x1000, 4096, 2, {0, 64}).intervals(1, 0x1000, 4096, 2, {64, 100, 200, 300});
  History history;
  history.tell(records);
  EXPECT_EQ(history.all()[1], "kernel 0: 1 r0 w0 written 0-100,200-300");
}

TEST(MemoryHistory, APageThatTwoTensorsShareIsOnePageOfTheirAllocation) {
  Records records;
  records.allocate(1, 0x10000, 8192).tensor(2, 0x10000, 6000).tensor(3, 0x11800, 2000);
  records.launch(5, 1).pages(1, 0x11800, 2000, {0x11}, {5}).pages(1, 0x10000, 6000, {0x10, 0x11}, {1, 2});
  History history;
  history.tell(records);
  // Pages 16 and 17; page 17 of the allocation has 5 + 2.
  EXPECT_EQ(history.all()[3], "kernel 0: 3 r0 w0 p17=5: 1 r0 w0 p16=1 p17=7: 2 r0 w0 p16=1 p17=2");
}

TEST(MemoryHistory, ObjectsBeyond4GiBKeepTheirOffsets) {
  constexpr uint64_t kBytes = uint64_t{6} << 30;
  Records records;
  records.allocate(1, uint64_t{1} << 40, kBytes)
      .launch(5, 1)
      .intervals(1, uint64_t{1} << 40, kBytes, 1, {kBytes - 4, kBytes});
  History history;
  history.tell(records);
  EXPECT_EQ(history.all()[1], "kernel 0: 1 r0 w0 read 6442450940-6442450944");
}

TEST(MemoryHistory, CopiesReadTheirSourceAndWriteTheirTarget) {
  Records records;
  records.allocate(1, 0x1000, 256).allocate(2, 0x2000, 256);
  records.transfer(3, [](auto &r) {
    r.source = 0x1000;
    r.target = 0x2040;
    r.bytes = r.width = 64;
    r.rows = 1;
  });
  History history;
  history.tell(records);
  EXPECT_EQ(history.all()[2], "copy 0: 1 r1 w0 read 0-64: 2 r0 w1 written 64-128");
}

TEST(MemoryHistory, RowsOfACopyLeaveTheGapsBetweenThemAlone) {
  Records records;
  records.allocate(1, 0x1000, 1024);
  // Three rows of 16 bytes, 64 apart, out of host memory that nobody knows.
  records.transfer(3, [](auto &r) {
    r.source = 0x999;
    r.target = 0x1000;
    r.width = 16;
    r.rows = 3;
    r.bytes = 48;
    r.target_pitch = 64;
  });
  History history;
  history.tell(records);
  EXPECT_EQ(history.all()[1], "copy 0: 1 r0 w1 written 0-16,64-80,128-144");
}

TEST(MemoryHistory, ASetMayCoverSeveralTensorsAndEndsWithItsAllocation) {
  Records records;
  records.allocate(1, 0x1000, 512).tensor(2, 0x1000, 256).tensor(3, 0x1100, 256);
  records.transfer(4, [](auto &r) {
    r.target = 0x1080;
    r.bytes = r.width = 1024;
    r.rows = 1;
    r.flags = SONDE_TRANSFER_SET;
  });
  History history;
  history.tell(records);
  EXPECT_EQ(history.all()[3], "set 0: 1 r0 w1 written 128-512: 2 r0 w1 written 128-256: 3 r0 w1 written 0-256");
}

TEST(MemoryHistory, TouchesThatComeAfterTheirLaunchWasToldAreLate) {
  MemoryHistoryOptions options;
  options.reorder = 1;
  History history(options);
  Records first;
  first.allocate(1, 0x1000, 64).launch(2, 7).free(3, 0x1000).allocate(4, 0x1000, 64).allocate(5, 0x9000, 1);
  history.tell(first);
  Records second;
  second.object(7, 0x1000, 64, 9, 0).object(8, 0x1000, 64, 1, 0);
  history.tell(second);
  EXPECT_EQ(history.all(),
            (Lines{"+1", "kernel 0", "-1", "+2", "late kernel 0: 1 r9 w0", "+3", "alive -2", "alive -3"}))
      << "of the first life of the address";
  EXPECT_EQ(history.history.counts().late_touches, 1u);
  EXPECT_EQ(history.history.counts().lost_touches, 1u) << "launch 8 was never seen";
}

TEST(MemoryHistory, AFreeOfNothingIsCountedAndAReplacedObjectEnds) {
  Records records;
  records.free(1, 0x5000).allocate(2, 0x1000, 256).allocate(3, 0x1080, 256);
  History history;
  history.tell(records);
  EXPECT_EQ(history.all(), (Lines{"+1", "replaced -1", "+2", "alive -2"}));
  EXPECT_EQ(history.history.counts().unmatched_frees, 1u);
  EXPECT_EQ(history.history.counts().replaced, 1u);
}

TEST(MemoryHistory, WhatWasTouchedBeforeItWasKnownBeginsThere) {
  Records records;
  records.launch(5, 1).object(1, 0x1000, 64, 1, 0).launch(6, 2).object(2, 0x1000, 64, 0, 1);
  History history;
  history.tell(records);
  EXPECT_EQ(history.all(), (Lines{"+1", "kernel 0: 1 r1 w0", "kernel 1: 1 r0 w1", "alive -1"}));
  EXPECT_TRUE(history.story.objects.at(1).is_implicit);
}

TEST(MemoryHistory, TwoWritersMayTellOfOneObject) {
  // An allocator's own record and the framework's: one life, one end, no free without an object.
  Records records;
  records.allocate(1, 0x1000, 4096);
  records.allocate(2, 0x1100, 64, SONDE_MEMORY_SUB_ALLOCATE).tensor(2, 0x1100, 64);
  records.tensor(4, 0x1100, 64, true).free(4, 0x1100, SONDE_MEMORY_SUB_FREE);
  History history;
  history.tell(records);
  EXPECT_EQ(history.all(), (Lines{"+1", "+2", "-2", "alive -1"}));
  EXPECT_EQ(history.history.counts().unmatched_frees, 0u);
}

TEST(MemoryHistory, AnUnmapEndsAllMappingsWithin) {
  Records records;
  records.map(1, 0x200000, 0x200000).map(2, 0x400000, 0x200000).map(3, 0x200000, 0x400000, true);
  History history;
  history.tell(records);
  EXPECT_EQ(history.all(), (Lines{"+1", "+2", "-1", "-2"}));
}

TEST(MemoryHistory, AZeroSizedAllocationLivesAndIsNotTouchedByNeighbours) {
  Records records;
  records.allocate(1, 0x1000, 0).allocate(2, 0x1010, 64);
  records.transfer(3, [](auto &r) {
    r.target = 0x1010;
    r.bytes = r.width = 64;
    r.rows = 1;
    r.flags = SONDE_TRANSFER_SET;
  });
  records.free(4, 0x1000);
  History history;
  history.tell(records);
  EXPECT_EQ(history.all(), (Lines{"+1", "+2", "set 0: 2 r0 w1 written 0-64", "-1", "alive -2"}));
}

TEST(MemoryHistory, ManyTensorsOfOneKernelAreAllFound) {
  constexpr uint64_t kTensors = 70'000;
  Records records;
  records.allocate(1, uint64_t{1} << 40, kTensors * 512);
  for (uint64_t i = 0; i < kTensors; ++i) records.tensor(2, (uint64_t{1} << 40) + i * 512, 512);
  records.launch(3, 1);
  for (uint64_t i = 0; i < kTensors; ++i) {
    records.object(1, (uint64_t{1} << 40) + i * 512, 512, 1, 0, SONDE_OBJECT_IS_TENSOR);
  }
  class Counter : public MemoryListener {
   public:
    void operation(const MemoryOperation &, std::span<const MemoryTouch> touches) override {
      for (const MemoryTouch &touch : touches) {
        (touch.object->level == ObjectLevel::kTensor ? tensors : allocation_reads) += touch.reads;
      }
    }
    uint64_t tensors = 0;
    uint64_t allocation_reads = 0;
  } counter;
  MemoryHistory history(
      {200'000, 1024}, [](uint32_t, sonde_string_t) { return ""; }, counter);
  history.consume(records.builder.batch());
  history.finish();
  EXPECT_EQ(counter.tensors, kTensors);
  EXPECT_EQ(counter.allocation_reads, kTensors);
}

TEST(MemoryHistory, OnlyAWholeWatchedLaunchIsComplete) {
  Records records;
  records.launch(1, 1).launch(2, 2, SONDE_LAUNCH_SKIPPED).launch(3, 3, SONDE_LAUNCH_WATCHED | SONDE_LAUNCH_INCOMPLETE);
  History history;
  history.tell(records);
  (void)history.all();
  ASSERT_EQ(history.story.operations.size(), 3u);
  EXPECT_TRUE(history.story.operations[0].is_complete());
  EXPECT_FALSE(history.story.operations[1].is_complete());
  EXPECT_FALSE(history.story.operations[2].is_complete());
}

TEST(MemoryHistory, SourcesAreApart) {
  Records a(0);
  Records b(1);
  a.allocate(1, 0x1000, 64).launch(2, 1).object(1, 0x1000, 64, 1, 0);
  b.allocate(1, 0x1000, 64).launch(3, 1).object(1, 0x1000, 64, 2, 0);
  History history;
  history.tell(a);
  history.tell(b);
  EXPECT_EQ(history.all(), (Lines{"+1", "+2", "kernel 0: 1 r1 w0", "kernel 0: 2 r2 w0", "alive -1", "alive -2"}));
}

TEST(NormalizeEdges, JoinsNeighboursAndDropsWhatIsEmpty) {
  std::vector<uint64_t> edges{10, 20, 0, 5, 5, 8, 15, 30, 40, 40};
  normalize_edges(edges);
  EXPECT_EQ(edges, (std::vector<uint64_t>{0, 8, 10, 30}));
}

}  // namespace
}  // namespace sonde::toolkit
