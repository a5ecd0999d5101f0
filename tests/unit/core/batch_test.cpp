// Surveys and repairs: the time faults that a runtime can bring.
#include "core/batch.h"

#include <sonde/spaces/device.h>

#include <random>

#include "core/clocks.h"
#include "support.h"

namespace sonde::test {
namespace {

sonde_device_kernel_t kernel(uint64_t begin, uint64_t end) {
  sonde_device_kernel_t record{};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, begin);
  record.end = end;
  return record;
}

std::vector<sonde_repair_t> repairs_of(const std::vector<sonde_device_kernel_t> &kernels) {
  const sonde_clock_t clock = core::unix_ns_clock();
  return core::find_repairs(reinterpret_cast<const uint8_t *>(kernels.data()), kernels.size() * sizeof(kernels[0]),
                            clock);
}

// faults 1, 2: three records without times among ten good ones.
TEST(Repair, ZeroTimesArePutWhereTheNeighbourEnded) {
  std::vector<sonde_device_kernel_t> kernels;
  for (uint64_t i = 0; i < 10; ++i) kernels.push_back(kernel(100 + i * 10, 105 + i * 10));
  for (const size_t at : {3u, 6u, 9u}) kernels.insert(kernels.begin() + static_cast<std::ptrdiff_t>(at), kernel(0, 0));
  const auto repairs = repairs_of(kernels);
  ASSERT_EQ(repairs.size(), 3u);
  EXPECT_EQ(repairs[0].offset, 3 * sizeof(sonde_device_kernel_t));
  EXPECT_EQ(repairs[0].reason, SONDE_REPAIR_ZERO);
  EXPECT_EQ(repairs[0].begin, 125u) << "the third good kernel ended at 125";
  EXPECT_EQ(repairs[0].end, repairs[0].begin) << "its length is unknown";
  EXPECT_EQ(kernels[3].header.time, 0u) << "the record keeps its raw value";
}

// faults 8, 22, 27, 48: end before begin.
TEST(Repair, AReversedIntervalKeepsItsBegin) {
  const auto repairs = repairs_of({kernel(100, 200), kernel(500, 400)});
  ASSERT_EQ(repairs.size(), 1u);
  EXPECT_EQ(repairs[0].reason, SONDE_REPAIR_REVERSED);
  EXPECT_EQ(repairs[0].begin, 500u);
  EXPECT_EQ(repairs[0].end, 500u);
}

// fault 28: both times are INT64_MIN.
TEST(Repair, SentinelsAreSeen) {
  const auto repairs = repairs_of({kernel(uint64_t{1} << 63, uint64_t{1} << 63), kernel(10, UINT64_MAX)});
  ASSERT_EQ(repairs.size(), 2u);
  EXPECT_EQ(repairs[0].reason, SONDE_REPAIR_SENTINEL);
  EXPECT_EQ(repairs[1].reason, SONDE_REPAIR_SENTINEL);
}

// faults 5, 7, 29: equal stamps and unsorted records are legal.
TEST(Repair, ZeroLengthAndUnsortedAreNotFaults) {
  std::vector<sonde_device_kernel_t> kernels(30, kernel(77, 77));
  kernels.push_back(kernel(30, 40));
  kernels.push_back(kernel(20, 60));
  EXPECT_TRUE(repairs_of(kernels).empty());
}

// faults 24, 4: another clock's reading lies far from the session.
TEST(Repair, ATimeOfAnotherClockIsSeen) {
  sonde_clock_t clock = core::unix_ns_clock();
  clock.base_raw = clock.base_ns = 1'700'000'000'000'000'000;
  const std::vector<sonde_device_kernel_t> kernels = {kernel(clock.base_raw + 10, clock.base_raw + 20),
                                                      kernel(5'000, 6'000),
                                                      kernel(clock.base_raw - 1'000'000, clock.base_raw)};
  const auto repairs =
      core::find_repairs(reinterpret_cast<const uint8_t *>(kernels.data()), kernels.size() * sizeof(kernels[0]), clock);
  ASSERT_EQ(repairs.size(), 1u) << "a millisecond before the base is no fault";
  EXPECT_EQ(repairs[0].offset, sizeof(sonde_device_kernel_t));
  EXPECT_EQ(repairs[0].reason, SONDE_REPAIR_OUTSIDE);
}

TEST(Repair, WildStampsAreNoUndefinedSum) {
  sonde_clock_t clock = core::unix_ns_clock();
  clock.base_ns = INT64_MAX - 5;
  EXPECT_LT(sonde_clock_ns(&clock, 100), 0) << "it wraps; the sanitized build checks that it may";
}

// fault 8: the last tenth of a million records of one graph is zero or inverted; all are kept, all are counted.
TEST(Repair, AMillionRecordsWithABadTail) {
  std::vector<sonde_device_kernel_t> kernels;
  for (uint64_t i = 0; i < 1'000'000; ++i) {
    kernels.push_back(i < 900'000 ? kernel(i + 1, i + 2) : i % 2 == 0 ? kernel(0, 0) : kernel(i + 2, i + 1));
  }
  EXPECT_EQ(repairs_of(kernels).size(), 100'000u);
}

TEST(Survey, CountsAndBounds) {
  std::vector<Numbered> records = {numbered(1), numbered(2), numbered(3)};
  records[0].header.time = 30;
  records[1].header.time = 10;
  records[2].header.time = 20;
  const auto totals = core::survey(reinterpret_cast<const uint8_t *>(records.data()), 3 * sizeof(Numbered), UINT64_MAX);
  EXPECT_EQ(totals.count, 3u);
  EXPECT_EQ(totals.first_time, 10u);
  EXPECT_EQ(totals.last_time, 30u);
  EXPECT_EQ(totals.spaces, 1u) << "a registered space shows as bit 0";
  const auto some = core::survey(reinterpret_cast<const uint8_t *>(records.data()), 3 * sizeof(Numbered), 1);
  EXPECT_EQ(some.count, 1u) << "it stops after the record that passes enough";
}

// Whatever the bytes are, a survey ends within them and what it accepts is well formed.
TEST(Survey, NeverTrustsBytes) {
  std::mt19937_64 random(11);
  for (uint32_t i = 0; i < cases() * 20; ++i) {
    std::vector<uint64_t> words(1 + random() % 40);
    for (uint64_t &word : words) word = random() & (random() % 2 == 0 ? 0x0003000300030003u : UINT64_MAX);
    const uint64_t bytes = words.size() * 8 - random() % 8;
    const auto totals = core::survey(reinterpret_cast<const uint8_t *>(words.data()), bytes, UINT64_MAX);
    ASSERT_LE(totals.bytes, bytes);
    ASSERT_EQ(totals.malformed, totals.bytes != bytes);
  }
}

}  // namespace
}  // namespace sonde::test
