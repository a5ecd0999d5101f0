// Which operation reads what an earlier one wrote or read, by hand.
#include "producers.h"

#include <gtest/gtest.h>

#include "scripted.h"

namespace sonde::workload {
namespace {

using toolkit::MemoryObject;
using toolkit::MemoryOperation;
using toolkit::MemoryTouch;

constexpr uint32_t kOther = 1, kA = 10, kB = 11, kC = 12;

class ProducersTest : public ::testing::Test {
 protected:
  void launch(uint32_t name, const MemoryObject &object, std::vector<uint64_t> read, std::vector<uint64_t> written) {
    MemoryTouch touch = Script::touch(object, read.empty() ? 0 : 1, written.empty() ? 0 : 1);
    touch.read_edges = read;
    touch.write_edges = written;
    producers.operation(script.launch(), name, std::vector<MemoryTouch>{touch});
  }
  const ReuseRow *pair(uint32_t producer, uint32_t consumer, ReuseKind kind) {
    const auto it = producers.pairs().find({0, 0, producer, consumer, kind});
    return it == producers.pairs().end() ? nullptr : &it->second;
  }
  uint64_t bytes(uint32_t producer, uint32_t consumer, ReuseKind kind = ReuseKind::kReadAfterWrite) {
    const ReuseRow *const row = pair(producer, consumer, kind);
    return row == nullptr ? 0 : row->bytes;
  }

  Options options;
  Producers producers{options, kOther};
  Script script;
};

TEST_F(ProducersTest, BytesGoFromTheirLastWriterToTheReader) {
  const MemoryObject a = script.object(0x1000, 100);
  launch(kA, a, {}, {0, 60});
  launch(kB, a, {}, {40, 100});
  launch(kC, a, {0, 100}, {});
  EXPECT_EQ(bytes(kA, kC), 40u);  // [0, 40): the rest was overwritten
  EXPECT_EQ(bytes(kB, kC), 60u);
  EXPECT_EQ(pair(kA, kC, ReuseKind::kReadAfterWrite)->distance.min(), 2);
  EXPECT_EQ(pair(kB, kC, ReuseKind::kReadAfterWrite)->distance.min(), 1);
}

TEST_F(ProducersTest, AWriteInTheMiddleLeavesBothSides) {
  const MemoryObject a = script.object(0x1000, 100);
  launch(kA, a, {}, {0, 100});
  launch(kB, a, {}, {30, 50});
  launch(kC, a, {10, 90}, {});
  EXPECT_EQ(bytes(kA, kC), 60u);  // [10, 30) and [50, 90)
  EXPECT_EQ(bytes(kB, kC), 20u);
}

TEST_F(ProducersTest, EveryReaderGetsTheProducersBytes) {
  const MemoryObject a = script.object(0x1000, 100);
  launch(kA, a, {}, {0, 100});
  launch(kB, a, {0, 100}, {});
  launch(kC, a, {50, 100}, {});
  EXPECT_EQ(bytes(kA, kB), 100u);
  EXPECT_EQ(bytes(kA, kC), 50u);
  EXPECT_EQ(bytes(kB, kC, ReuseKind::kReadAfterRead), 50u);
}

TEST_F(ProducersTest, AWriteEndsReadAfterRead) {
  const MemoryObject a = script.object(0x1000, 100);
  launch(kA, a, {0, 100}, {});
  launch(kB, a, {}, {0, 30});
  launch(kC, a, {0, 100}, {});
  EXPECT_EQ(bytes(kA, kC, ReuseKind::kReadAfterRead), 70u);
  EXPECT_EQ(bytes(kB, kC), 30u);
  EXPECT_EQ(producers.unknown_bytes(), 170u);  // all that kA read, and the 70 that nobody ever wrote
}

TEST_F(ProducersTest, AKernelThatUpdatesInPlaceReadsItsEarlierRun) {
  const MemoryObject a = script.object(0x1000, 8);
  launch(kA, a, {0, 8}, {0, 8});
  launch(kA, a, {0, 8}, {0, 8});
  EXPECT_EQ(bytes(kA, kA), 8u);
  EXPECT_EQ(pair(kA, kA, ReuseKind::kReadAfterWrite)->operations, 1u);
}

TEST_F(ProducersTest, WithoutIntervalsAnObjectIsTakenAsAWhole) {
  const MemoryObject a = script.object(0x1000, 100);
  producers.operation(script.launch(), kA, std::vector<MemoryTouch>{Script::touch(a, 0, 1)});
  producers.operation(script.launch(), kB, std::vector<MemoryTouch>{Script::touch(a, 1)});
  EXPECT_EQ(bytes(kA, kB), 100u);
  EXPECT_EQ(producers.whole_touches(), 2u);
}

TEST_F(ProducersTest, ACopyOfTheHostIsAProducer) {
  const MemoryObject a = script.object(0x1000, 100);
  MemoryTouch written = Script::touch(a, 0, 1);
  const uint64_t edges[] = {0, 100};
  written.write_edges = edges;
  producers.operation(script.copy(), kA, std::vector<MemoryTouch>{written});
  launch(kB, a, {0, 10}, {});
  EXPECT_EQ(bytes(kA, kB), 10u);
}

TEST_F(ProducersTest, AnAddressThatIsUsedAgainHasNoProducer) {
  const MemoryObject a = script.object(0x1000, 100), again = script.object(0x1000, 100);
  launch(kA, a, {}, {0, 100});
  producers.object_ends(a);
  launch(kB, again, {0, 100}, {});
  EXPECT_TRUE(producers.pairs().empty());
  EXPECT_EQ(producers.unknown_bytes(), 100u);
}

TEST_F(ProducersTest, AnObjectInTooManyPiecesIsTakenAsAWhole) {
  options.reuse_intervals = 2;
  Producers few(options, kOther);
  const MemoryObject a = script.object(0x1000, 100);
  const auto write = [&](uint32_t name, uint64_t begin, uint64_t end) {
    const uint64_t edges[] = {begin, end};
    MemoryTouch touch = Script::touch(a, 0, 1);
    touch.write_edges = edges;
    few.operation(script.launch(), name, std::vector<MemoryTouch>{touch});
  };
  write(kA, 0, 10);
  write(kB, 20, 30);  // two pieces still fit
  EXPECT_EQ(few.collapsed(), 0u);
  write(kC, 40, 50);  // the third does not: [0, 50) was written by the newest
  EXPECT_EQ(few.collapsed(), 1u);
}

TEST_F(ProducersTest, NeighboursWithOneStoryAreOnePiece) {
  options.reuse_intervals = 1;
  Producers one(options, kOther);
  const MemoryObject a = script.object(0x1000, 100);
  const uint64_t edges[] = {0, 50, 50, 100};
  MemoryTouch touch = Script::touch(a, 0, 1);
  touch.write_edges = edges;
  one.operation(script.launch(), kA, std::vector<MemoryTouch>{touch});
  EXPECT_EQ(one.collapsed(), 0u);
}

TEST_F(ProducersTest, PairsBeyondTheLimitShareARow) {
  options.reuse_pairs = 1;
  const MemoryObject a = script.object(0x1000, 10);
  launch(kA, a, {}, {0, 10});
  launch(kB, a, {0, 10}, {});
  launch(kC, a, {0, 10}, {});
  EXPECT_EQ(bytes(kA, kB), 10u);
  EXPECT_EQ(bytes(kOther, kOther), 10u);
}

TEST_F(ProducersTest, BeyondFourGibibytesNothingWraps) {
  constexpr uint64_t kGi = uint64_t{1} << 30;
  const MemoryObject a = script.object(0x1000, 6 * kGi);
  launch(kA, a, {}, {0, 6 * kGi});
  launch(kB, a, {kGi, 6 * kGi}, {});
  EXPECT_EQ(bytes(kA, kB), 5 * kGi);
}

}  // namespace
}  // namespace sonde::workload
