// sonde.claim/1 and sonde.ranges/1.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/claims.h"
#include "core/services.h"

namespace sonde::core {
namespace {

class Claims : public ::testing::Test {
 protected:
  void SetUp() override { install(); }
  const sonde_claim_service_t &claim = claim_service();
};

TEST_F(Claims, OneModeAtATimeSharedByThoseWhoAgree) {
  ASSERT_EQ(claim.take("test.device", "activity", "cuda"), SONDE_OK);
  EXPECT_EQ(claim.take("test.device", "activity", "other"), SONDE_OK);
  EXPECT_EQ(claim.take("test.device", "patches", "cuda_access"), SONDE_E_BUSY);
  EXPECT_NE(std::strstr(host_table()->last_error(), "activity by cuda"), nullptr);
  EXPECT_EQ(claim.take("test.other", "patches", "cuda_access"), SONDE_OK);
  EXPECT_EQ(claim.release("test.other", "patches"), SONDE_OK);
  EXPECT_EQ(claim.release("test.device", "activity"), SONDE_OK);
  EXPECT_EQ(claim.take("test.device", "patches", "cuda_access"), SONDE_E_BUSY) << "one of two holders has released";
  EXPECT_EQ(claim.release("test.device", "activity"), SONDE_OK);
  EXPECT_EQ(claim.take("test.device", "patches", "cuda_access"), SONDE_OK);
  EXPECT_EQ(claim.release("test.device", "activity"), SONDE_E_STATE);
  EXPECT_EQ(claim.release("test.device", "patches"), SONDE_OK);
  EXPECT_EQ(claim.release("test.device", "patches"), SONDE_E_STATE);
}

TEST_F(Claims, EmptyWordsAreRefused) {
  EXPECT_EQ(claim.take("", "activity", "cuda"), SONDE_E_INVALID);
  EXPECT_EQ(claim.take("test.device", nullptr, "cuda"), SONDE_E_INVALID);
  EXPECT_EQ(claim.take("test.device", "activity", ""), SONDE_E_INVALID);
  EXPECT_EQ(claim.release(nullptr, "activity"), SONDE_E_INVALID);
}

TEST_F(Claims, AForkedChildHoldsNone) {
  ASSERT_EQ(claim.take("test.fork", "activity", "cuda"), SONDE_OK);
  const pid_t child = fork();
  if (child == 0) _exit(claim.take("test.fork", "patches", "cuda_access") == SONDE_OK ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(claim.release("test.fork", "activity"), SONDE_OK);
}

struct Change {
  sonde_range_t range;
  uint32_t live;
};

class Ranges : public ::testing::Test {
 protected:
  void SetUp() override {
    install();
    ASSERT_EQ(ranges.watch(record, &changes, nullptr, &watch), SONDE_OK);
  }
  void TearDown() override {
    if (watch != 0) {
      EXPECT_EQ(ranges.unwatch(watch), SONDE_OK);
    }
  }
  static void record(void *user, const sonde_range_t *range, uint32_t live) {
    static_cast<std::vector<Change> *>(user)->push_back({*range, live});
  }
  static sonde_range_t tensor(uint64_t address, uint64_t bytes) {
    return {sizeof(sonde_range_t), SONDE_RANGE_TENSOR, address, bytes, 0, 0, 0};
  }

  const sonde_ranges_service_t &ranges = ranges_service();
  std::vector<Change> changes;
  uint64_t watch = 0;
};

TEST_F(Ranges, AWatcherSeesBeginAndEndWithOneIdentity) {
  uint64_t ordinal = 0;
  const sonde_range_t range = tensor(0x1000, 64);
  ASSERT_EQ(ranges.announce(&range, &ordinal), SONDE_OK);
  ASSERT_EQ(ranges.retire(SONDE_RANGE_TENSOR, 0x1000), SONDE_OK);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].range.ordinal, ordinal);
  EXPECT_EQ(changes[1].range.ordinal, ordinal);
  EXPECT_EQ(changes[1].range.bytes, 64u);
  EXPECT_EQ(changes[0].live, 1u);
  EXPECT_EQ(changes[1].live, 0u);
  EXPECT_EQ(ranges.retire(SONDE_RANGE_TENSOR, 0x1000), SONDE_E_NOT_FOUND);
}

TEST_F(Ranges, AnAddressThatIsUsedAgainIsAnotherRange) {
  uint64_t first = 0;
  uint64_t second = 0;
  const sonde_range_t small = tensor(0x1000, 64);
  const sonde_range_t large = tensor(0x1000, 128);
  ASSERT_EQ(ranges.announce(&small, &first), SONDE_OK);
  ASSERT_EQ(ranges.announce(&large, &second), SONDE_OK);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[1].live, 0u);
  EXPECT_EQ(changes[1].range.ordinal, first);
  EXPECT_EQ(changes[2].range.ordinal, second);
  EXPECT_NE(first, second);
  EXPECT_EQ(ranges.retire(SONDE_RANGE_TENSOR, 0x1000), SONDE_OK);
}

TEST_F(Ranges, ALaterWatcherIsToldWhatLives) {
  const sonde_range_t range = tensor(0x2000, 32);
  ASSERT_EQ(ranges.announce(&range, nullptr), SONDE_OK);
  std::vector<Change> later;
  uint64_t second = 0;
  ASSERT_EQ(ranges.watch(record, &later, nullptr, &second), SONDE_OK);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].range.address, 0x2000u);
  EXPECT_EQ(ranges.unwatch(second), SONDE_OK);
  EXPECT_EQ(ranges.unwatch(second), SONDE_E_NOT_FOUND);
  ASSERT_EQ(ranges.retire(SONDE_RANGE_TENSOR, 0x2000), SONDE_OK);
  EXPECT_EQ(later.size(), 1u);
}

TEST_F(Ranges, WhatIsNoRangeIsRefused) {
  const sonde_range_t empty = tensor(0x1000, 0);
  const sonde_range_t past_the_end = tensor(UINT64_MAX - 7, 16);
  EXPECT_EQ(ranges.announce(&empty, nullptr), SONDE_E_INVALID);
  EXPECT_EQ(ranges.announce(&past_the_end, nullptr), SONDE_E_INVALID);
  EXPECT_EQ(ranges.announce(nullptr, nullptr), SONDE_E_INVALID);
  EXPECT_TRUE(changes.empty());
}

TEST_F(Ranges, WithoutAWatcherNothingIsKept) {
  EXPECT_EQ(ranges.watched(), 1u);
  ASSERT_EQ(ranges.unwatch(watch), SONDE_OK);
  EXPECT_EQ(ranges.watched(), 0u);
  const sonde_range_t range = tensor(0x3000, 32);
  EXPECT_EQ(ranges.announce(&range, nullptr), SONDE_OK);
  EXPECT_TRUE(changes.empty());
  ASSERT_EQ(ranges.watch(record, &changes, nullptr, &watch), SONDE_OK);
  EXPECT_TRUE(changes.empty());
}

}  // namespace
}  // namespace sonde::core
