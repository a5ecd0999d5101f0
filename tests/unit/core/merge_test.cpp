// The merge: order over streams, late records, a bounded window.
#include <sonde/merge.h>
#include <sonde/spaces/device.h>

#include <random>

#include "core/clocks.h"
#include "core/feed.h"
#include "support.h"

namespace sonde::test {
namespace {

struct Merged {
  uint64_t stream;
  int64_t begin_ns;
  int64_t end_ns;
  uint32_t repair;
  uint32_t late;
};

// A session that is fed by hand and merged.
class MergeTest : public ::testing::Test {
 protected:
  void open(uint64_t window_bytes = 0) {
    session_.emplace();
    const auto &merge = service<sonde_merge_service_t>(SONDE_MERGE_SERVICE);
    const sonde_interest_t interest = {SONDE_SPACE_DEVICE, SONDE_LEVEL_RECORDS, UINT64_MAX};
    sonde_merge_options_t options{};
    options.struct_size = sizeof(options);
    options.interests = &interest;
    options.interest_count = 1;
    options.window_bytes = window_bytes;
    options.on_record = [](void *user, const sonde_merged_t *merged) {
      static_cast<MergeTest *>(user)->out_.push_back(
          {merged->stream, merged->begin_ns, merged->end_ns, merged->repair, merged->late});
      return SONDE_OK;
    };
    options.user = this;
    uint64_t id = 0;
    ASSERT_EQ(merge.subscribe(session_->get(), &options, &id), SONDE_OK);
    session_->start();
    feed_.emplace(session_->get());
    source_ = feed_->add_source();
  }

  void give(uint64_t stream, const std::vector<std::pair<uint64_t, uint64_t>> &intervals, uint64_t watermark = 0) {
    core::FedBatch batch;
    batch.source = source_;
    batch.stream = stream;
    batch.watermark = watermark;
    batch.clock = core::unix_ns_clock();
    batch.bytes = intervals.size() * sizeof(sonde_device_kernel_t);
    batch.buffer = feed_->acquire(batch.bytes);
    auto *kernels = reinterpret_cast<sonde_device_kernel_t *>(batch.buffer.data());
    for (const auto &[begin, end] : intervals) {
      *kernels = {};
      SONDE_RECORD_INIT(kernels, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, begin);
      kernels->end = end;
      ++kernels;
    }
    feed_->deliver(std::move(batch));
    feed_->drain();
  }

  std::vector<int64_t> begins() const {
    std::vector<int64_t> result;
    for (const Merged &merged : out_) result.push_back(merged.begin_ns);
    return result;
  }

  std::optional<TestSession> session_;
  std::optional<core::Feed> feed_;
  uint32_t source_ = 0;
  std::vector<Merged> out_;
};

constexpr uint64_t kSecond = 1'000'000'000;

TEST_F(MergeTest, TwoStreamsComeOutInOrder) {
  open();
  give(1, {{1 * kSecond, 2 * kSecond}, {3 * kSecond, 4 * kSecond}, {5 * kSecond, 6 * kSecond}});
  give(2, {{4 * kSecond, 4 * kSecond}, {9 * kSecond, 9 * kSecond}}, 4 * kSecond);
  const auto seconds = [&] {
    std::vector<int64_t> result;
    for (const int64_t begin : begins()) result.push_back(begin / 1'000'000'000);
    return result;
  };
  EXPECT_EQ(seconds(), (std::vector<int64_t>{1, 3, 4})) << "stream 2 promises nothing beyond 4";
  give(2, {{9 * kSecond, 9 * kSecond}}, 9 * kSecond);
  EXPECT_EQ(seconds(), (std::vector<int64_t>{1, 3, 4, 5})) << "9 is held for half a second of progress";
  session_->stop();
  EXPECT_EQ(seconds(), (std::vector<int64_t>{1, 3, 4, 5, 9, 9}));
}

// fault 29: 10, 30, 20 on one lane.
TEST_F(MergeTest, AnUnsortedStreamIsSorted) {
  open();
  give(1, {{10, 11}, {30, 31}, {20, 21}}, 10);
  session_->stop();
  EXPECT_EQ(begins(), (std::vector<int64_t>{10, 20, 30}));
}

TEST_F(MergeTest, WhatComesTooLateSaysSoAndIsCounted) {
  open();
  give(1, {{1'000'000'000, 1'000'000'001}}, 1'000'000'000);
  give(1, {{3'000'000'000, 3'000'000'001}}, 3'000'000'000);
  give(2, {{500'000'000, 500'000'001}});
  session_->stop();
  ASSERT_EQ(out_.size(), 3u);
  EXPECT_EQ(out_[0].late, 0u);
  EXPECT_EQ(std::count_if(out_.begin(), out_.end(), [](const Merged &merged) { return merged.late == 1; }), 1);
  EXPECT_EQ(session_->lost(SONDE_LOSS_LATE), 1u);
}

TEST_F(MergeTest, ARepairedRecordStandsAtItsRepairedTime) {
  open();
  give(1, {{100, 200}, {0, 0}, {300, 250}});
  session_->stop();
  ASSERT_EQ(out_.size(), 3u);
  EXPECT_EQ(out_[1].begin_ns, 200);
  EXPECT_EQ(out_[1].repair, SONDE_REPAIR_ZERO);
  EXPECT_EQ(out_[2].end_ns, 300);
  EXPECT_EQ(out_[2].repair, SONDE_REPAIR_REVERSED);
}

TEST_F(MergeTest, TheWindowIsBounded) {
  open(64 * 1024);
  give(2, {{1, 2}}, 1);
  for (uint64_t i = 0; i < 100; ++i) {
    std::vector<std::pair<uint64_t, uint64_t>> intervals;
    for (uint64_t k = 0; k < 100; ++k) intervals.emplace_back(1000 + i * 100 + k, 1000 + i * 100 + k);
    give(1, intervals, 1000 + i * 100);
  }
  EXPECT_GT(out_.size(), 9'000u) << "stream 2 promises nothing, but memory is bounded";
  session_->stop();
  EXPECT_EQ(out_.size(), 10'001u);
}

TEST_F(MergeTest, RandomStreamsWithTrueWatermarksAreOrdered) {
  open();
  std::mt19937_64 random(3);
  constexpr uint64_t kStreams = 5;
  std::vector<std::vector<uint64_t>> pending(kStreams);
  uint64_t total = 0;
  for (uint32_t round = 0; round < cases(); ++round) {
    for (uint64_t stream = 0; stream < kStreams; ++stream) {
      const uint64_t base = kSecond + uint64_t{round} * 10'000'000;
      std::vector<std::pair<uint64_t, uint64_t>> intervals;
      for (uint64_t k = 0; k < random() % 20; ++k) {
        const uint64_t begin = base + random() % 10'000'000;
        intervals.emplace_back(begin, begin + random() % 50);
      }
      total += intervals.size();
      if (!intervals.empty()) give(stream + 1, intervals, base);
    }
  }
  session_->stop();
  ASSERT_EQ(out_.size(), total);
  const auto times = begins();
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(session_->lost(SONDE_LOSS_LATE), 0u);
}

}  // namespace
}  // namespace sonde::test
