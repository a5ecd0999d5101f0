// Items of several streams, put in order: against a naive version.
#include <gtest/gtest.h>
#include <sonde/toolkit/reorder.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace sonde::toolkit {
namespace {

using Out = std::vector<std::pair<int64_t, uint64_t>>;

// Looks at all that it holds each time.
class Naive {
 public:
  explicit Naive(size_t capacity) : capacity_(capacity) {}
  void push(int64_t time, uint64_t item, Out &out) {
    held_.emplace_back(time, item);  // items are numbers of arrival, so pairs compare as they should
    while (held_.size() > capacity_) pop(out);
  }
  void release(int64_t time, Out &out) {
    while (!held_.empty() && std::min_element(held_.begin(), held_.end())->first <= time) pop(out);
  }
  void finish(Out &out) {
    while (!held_.empty()) pop(out);
  }

 private:
  void pop(Out &out) {
    const auto first = std::min_element(held_.begin(), held_.end());
    out.push_back(*first);
    held_.erase(first);
  }
  size_t capacity_;
  Out held_;
};

// Streams with clocks of their own, each in order but for some items that come late.
TEST(Reorder, GivesWhatANaiveVersionGives) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const size_t capacity = random() % 64, streams = 1 + random() % 8;
    std::vector<int64_t> now(streams);
    ReorderBuffer<uint64_t> buffer(capacity);
    Naive naive(capacity);
    Out got, expected;
    const auto give = [&](int64_t time, uint64_t item) { got.emplace_back(time, item); };
    for (uint64_t item = 0; item < 600; ++item) {
      int64_t &clock = now[random() % streams];
      clock += static_cast<int64_t>(random() % 4);
      const int64_t time = random() % 10 == 0 ? clock - static_cast<int64_t>(random() % 50) : clock;
      buffer.push(time, item, give);
      naive.push(time, item, expected);
      if (random() % 50 == 0) {
        buffer.release(clock, give);
        naive.release(clock, expected);
      }
    }
    ASSERT_EQ(got, expected) << "round " << round;
    // A copy goes on by itself.
    ReorderBuffer<uint64_t> copy = buffer;
    Out of_copy = got;
    copy.finish([&](int64_t time, uint64_t item) { of_copy.emplace_back(time, item); });
    buffer.finish(give);
    naive.finish(expected);
    ASSERT_EQ(got, expected) << "round " << round;
    ASSERT_EQ(of_copy, expected) << "round " << round;
    EXPECT_EQ(buffer.size(), 0u);
  }
}

TEST(Reorder, ReleasesUpToATimeIncluded) {
  ReorderBuffer<int> buffer(10);
  std::vector<int> got;
  const auto give = [&](int64_t, int item) { got.push_back(item); };
  buffer.push(3, 30, give);
  buffer.push(1, 10, give);
  buffer.push(2, 20, give);
  buffer.release(2, give);
  EXPECT_EQ(got, (std::vector<int>{10, 20}));
  EXPECT_EQ(buffer.size(), 1u);
}

}  // namespace
}  // namespace sonde::toolkit
