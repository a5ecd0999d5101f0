// The readers of packed accesses: bytes written by hand, then damaged ones.
#include <gtest/gtest.h>
#include <sonde/toolkit/warp_records.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "cases.h"

namespace sonde::toolkit {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes join(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes &part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

// size8 4, affine, no values; lanes 0 to 3; base 0x1000, stride 8; block 5, pc 0x70, warp 2, 8 bytes, read.
const Bytes kAffine = {4, 0, 0, 0, 0x0f, 0, 0, 0, 0x00, 0x10, 0, 0, 0, 0, 0, 0,
                       8, 0, 0, 0, 5,    0, 0, 0, 0x70, 0,    0, 0, 2, 0, 8, 1};
// Lanes 1, 2 and 31 at base 0x2000 with offsets 0, -4 and 0x100; 12 bytes of offsets, then 4 of padding; write.
const Bytes kOffsets = {6, 0, 1, 0, 0x06, 0,    0,    0x80, 0x00, 0x20, 0, 0, 0, 0, 0, 0,
                        0, 0, 0, 0, 0,    0,    0,    0,    0,    0,    0, 0, 0, 0, 4, 2,
                        0, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff, 0x00, 0x01, 0, 0, 0, 0, 0, 0};
// Lanes 0 and 4 at 0x3000 and 0x7f0000000001, 2 bytes each with values 0x1122 and 0x3344; atomic in global memory.
const Bytes kAddresses = {7, 0, 2, 1, 0x11, 0, 0, 0,    0x00, 0x30, 0,    0,    0,    0,    0,    0, 0, 0, 0,
                          0, 0, 0, 0, 0,    0, 0, 0,    0,    0,    0,    2,    3,    0,    0x30, 0, 0, 0, 0,
                          0, 0, 1, 0, 0,    0, 0, 0x7f, 0,    0,    0x22, 0x11, 0x44, 0x33, 0,    0, 0, 0};

TEST(WarpRecords, AnAffineAccessGivesEachLanesAddress) {
  WarpRecords records{std::span(kAffine)};
  WarpAccess access;
  ASSERT_TRUE(records.next(access));
  EXPECT_EQ(access.lanes(), 4u);
  EXPECT_EQ(access.address(0), 0x1000u);
  EXPECT_EQ(access.address(3), 0x1018u);
  EXPECT_EQ(access.address(4), 0u);
  EXPECT_EQ(access.address(32), 0u);
  EXPECT_EQ(access.kind(), 1u);
  EXPECT_EQ(access.memory(), 0u);
  EXPECT_EQ(access.head().block, 5u);
  EXPECT_EQ(access.head().pc, 0x70u);
  EXPECT_EQ(access.head().warp, 2u);
  EXPECT_EQ(access.head().size, 8u);
  EXPECT_TRUE(access.value(0).empty());
  EXPECT_FALSE(records.next(access));
  EXPECT_FALSE(records.damaged());
  EXPECT_EQ(records.unread(), 0u);
}

TEST(WarpRecords, AnAffineAccessMayGoDownAndLeaveLanesOut) {
  Bytes bytes = kAffine;
  bytes[4] = 0x0a;  // lanes 1 and 3
  const int32_t stride = -16;
  std::memcpy(bytes.data() + 16, &stride, sizeof(stride));
  WarpRecords records{std::span(bytes)};
  WarpAccess access;
  ASSERT_TRUE(records.next(access));
  EXPECT_FALSE(access.has(0));
  EXPECT_EQ(access.address(1), 0xff0u);
  EXPECT_EQ(access.address(3), 0xfd0u);
}

TEST(WarpRecords, OffsetsAreOfTheLanesOfTheMask) {
  WarpRecords records{std::span(kOffsets)};
  WarpAccess access;
  ASSERT_TRUE(records.next(access));
  std::vector<std::pair<uint32_t, uint64_t>> seen;
  access.for_each_lane([&](uint32_t lane, uint64_t address) { seen.emplace_back(lane, address); });
  EXPECT_EQ(seen, (std::vector<std::pair<uint32_t, uint64_t>>{{1, 0x2000}, {2, 0x1ffc}, {31, 0x2100}}));
  EXPECT_EQ(access.address(31), 0x2100u);
  EXPECT_EQ(access.kind(), 2u);
}

TEST(WarpRecords, ValuesFollowTheAddresses) {
  WarpRecords records{std::span(kAddresses)};
  WarpAccess access;
  ASSERT_TRUE(records.next(access));
  EXPECT_EQ(access.address(0), 0x3000u);
  EXPECT_EQ(access.address(4), 0x7f0000000001u);
  EXPECT_EQ(Bytes(access.value(0).begin(), access.value(0).end()), (Bytes{0x22, 0x11}));
  EXPECT_EQ(Bytes(access.value(4).begin(), access.value(4).end()), (Bytes{0x44, 0x33}));
  EXPECT_TRUE(access.value(1).empty());
  EXPECT_EQ(access.kind(), 3u);
}

TEST(WarpRecords, EntriesOfAllFormsFollowOneAnother) {
  const Bytes all = join({kOffsets, kAffine, kAddresses, kAffine});
  WarpRecords records{std::span(all)};
  WarpAccess access;
  std::vector<uint32_t> forms;
  while (records.next(access)) forms.push_back(access.head().form);
  EXPECT_EQ(forms, (std::vector<uint32_t>{1, 0, 2, 0}));
  EXPECT_FALSE(records.damaged());
}

TEST(WarpRecords, AnEntryMayBeLongerThanItNeeds) {
  Bytes longer = kAffine;
  longer[0] = 6;
  longer.resize(48);
  const Bytes all = join({longer, kOffsets});
  WarpRecords records{std::span(all)};
  WarpAccess access;
  ASSERT_TRUE(records.next(access));
  ASSERT_TRUE(records.next(access));
  EXPECT_EQ(access.head().form, SONDE_WARP_OFFSETS32);
}

// How many entries there are before the damage.
uint64_t good_entries(const Bytes &bytes, bool &damaged) {
  WarpRecords records{std::span(bytes)};
  WarpAccess access;
  uint64_t count = 0;
  while (records.next(access)) ++count;
  EXPECT_FALSE(records.next(access)) << "a walk that ended goes on";
  damaged = records.damaged();
  return count;
}

TEST(WarpRecords, DamageEndsTheWalk) {
  bool damaged = false;
  Bytes bytes = join({kAffine, kAffine});
  bytes[32] = 3;  // shorter than a head
  EXPECT_EQ(good_entries(bytes, damaged), 1u);
  EXPECT_TRUE(damaged);
  bytes[32] = 5;  // past the end
  EXPECT_EQ(good_entries(bytes, damaged), 1u);
  EXPECT_TRUE(damaged);
  bytes[32] = 4;
  bytes[34] = 3;  // no form
  EXPECT_EQ(good_entries(bytes, damaged), 1u);
  EXPECT_TRUE(damaged);
  bytes[34] = 1;  // offsets that have no room
  EXPECT_EQ(good_entries(bytes, damaged), 1u);
  EXPECT_TRUE(damaged);
  bytes[34] = 0;
  bytes[35] = 1;  // values that have no room
  EXPECT_EQ(good_entries(bytes, damaged), 1u);
  EXPECT_TRUE(damaged);
  bytes[35] = 0;
  EXPECT_EQ(good_entries(bytes, damaged), 2u);
  EXPECT_FALSE(damaged);
  bytes.pop_back();
  EXPECT_EQ(good_entries(bytes, damaged), 1u);
  EXPECT_TRUE(damaged);
}

// A record with `data` and the span in it.
std::vector<uint64_t> record_of(uint32_t type, const Bytes &data) {
  std::vector<uint64_t> words((sizeof(sonde_access_warps_t) + data.size() + 7) / 8);
  sonde_access_warps_t record = {};
  SONDE_RECORD_INIT(&record, SONDE_SPACE_ACCESS, type, 0);
  record.header.size8 = static_cast<uint16_t>(words.size());
  record.data = {sizeof(record), static_cast<uint32_t>(data.size())};
  std::memcpy(words.data(), &record, sizeof(record));
  std::memcpy(reinterpret_cast<uint8_t *>(words.data()) + sizeof(record), data.data(), data.size());
  return words;
}

TEST(WarpRecords, ARecordGivesItsEntries) {
  const auto words = record_of(SONDE_ACCESS_WARPS, join({kAffine, kOffsets}));
  WarpRecords records(reinterpret_cast<const sonde_record_t *>(words.data()));
  WarpAccess access;
  EXPECT_TRUE(records.next(access));
  EXPECT_TRUE(records.next(access));
  EXPECT_FALSE(records.next(access));
  EXPECT_FALSE(records.damaged());
}

TEST(WarpRecords, ARecordWhoseSpanLiesOutsideGivesNothing) {
  for (const sonde_span_t span :
       {sonde_span_t{sizeof(sonde_access_warps_t), 40}, sonde_span_t{8, 32}, sonde_span_t{UINT32_MAX - 7, 32},
        sonde_span_t{sizeof(sonde_access_warps_t), UINT32_MAX}}) {
    auto words = record_of(SONDE_ACCESS_WARPS, kAffine);
    std::memcpy(reinterpret_cast<uint8_t *>(words.data()) + offsetof(sonde_access_warps_t, data), &span, sizeof(span));
    WarpRecords records(reinterpret_cast<const sonde_record_t *>(words.data()));
    WarpAccess access;
    EXPECT_FALSE(records.next(access)) << span.offset << " " << span.count;
    EXPECT_TRUE(records.damaged());
  }
  const auto other = record_of(SONDE_ACCESS_EVENTS, kAffine);
  EXPECT_TRUE(WarpRecords(reinterpret_cast<const sonde_record_t *>(other.data())).damaged());
}

TEST(WarpRecords, DamagedBytesAreReadWithinTheirBounds) {
  std::mt19937_64 random(4);
  const Bytes good = join({kOffsets, kAffine, kAddresses, kAddresses, kOffsets});
  for (int round = 0; round < testing::cases(); ++round) {
    const size_t size = random() % (good.size() + 1);
    // Exactly as long as the data, so that a sanitizer sees a byte read past it.
    const auto bytes = std::make_unique<uint8_t[]>(size);
    std::memcpy(bytes.get(), good.data(), size);
    for (uint64_t flips = random() % 6; flips != 0 && size != 0; --flips) {
      bytes[random() % size] = static_cast<uint8_t>(random());
    }
    WarpRecords records{std::span<const uint8_t>(bytes.get(), size)};
    WarpAccess access;
    uint64_t sum = 0;
    while (records.next(access)) {
      access.for_each_lane([&](uint32_t lane, uint64_t address) {
        EXPECT_EQ(access.address(lane), address);
        for (const uint8_t byte : access.value(lane)) sum += byte;
      });
    }
    EXPECT_EQ(records.damaged(), records.unread() != 0);
  }
}

TEST(DeviceEvents, EntriesFollowOneAnother) {
  // a 0x1000, b 64, mask 0xff, block 3, pc 0x20, warp 1, kind 5 (malloc)
  const Bytes one = {0,    0x10, 0, 0, 0, 0, 0, 0, 64,   0, 0, 0, 0, 0, 0, 0,
                     0xff, 0,    0, 0, 3, 0, 0, 0, 0x20, 0, 0, 0, 1, 0, 5, 0};
  const auto words = record_of(SONDE_ACCESS_EVENTS, join({one, one}));
  DeviceEvents events(reinterpret_cast<const sonde_record_t *>(words.data()));
  sonde_device_event_t event;
  ASSERT_TRUE(events.next(event));
  EXPECT_EQ(event.a, 0x1000u);
  EXPECT_EQ(event.b, 64u);
  EXPECT_EQ(event.mask, 0xffu);
  EXPECT_EQ(event.block, 3u);
  EXPECT_EQ(event.pc, 0x20u);
  EXPECT_EQ(event.warp, 1u);
  EXPECT_EQ(event.kind, SONDE_DEVICE_EVENT_MALLOC);
  ASSERT_TRUE(events.next(event));
  EXPECT_FALSE(events.next(event));
  EXPECT_FALSE(events.damaged());
}

TEST(DeviceEvents, APartOfAnEntryIsDamage) {
  const Bytes bytes(40);
  DeviceEvents events{std::span(bytes)};
  sonde_device_event_t event;
  EXPECT_TRUE(events.next(event));
  EXPECT_FALSE(events.next(event));
  EXPECT_TRUE(events.damaged());
  EXPECT_EQ(events.unread(), 8u);
}

}  // namespace
}  // namespace sonde::toolkit
