// A CUDA driver and a CUPTI of the tests' own: calls are kept as lines of text, in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace sonde::test {

struct FakePaging {
  using Callback = void (*)(void *user, uint32_t domain, uint32_t point, const void *data);

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> calls;
  Callback callback = nullptr;
  void *user = nullptr;
  std::set<uint32_t> enabled;  // callbacks of the driver
  int32_t subscribe_result = 0;
  int32_t prefetch_result = 0;
  int32_t advise_result = 0;
  uint64_t capturing_stream = 0;  // that is being captured, 0: none
  bool holds_prefetch = false;    // prefetches do not return
  uint64_t streams = 0;
  uint64_t events = 0;

  void reset() {
    const std::lock_guard<std::mutex> hold(mutex);
    calls.clear();
    enabled.clear();
    subscribe_result = prefetch_result = advise_result = 0;
    capturing_stream = streams = events = 0;
    holds_prefetch = false;
  }
  void add(std::string call) {
    const std::lock_guard<std::mutex> hold(mutex);
    calls.push_back(std::move(call));
  }
  void release() {
    const std::lock_guard<std::mutex> hold(mutex);
    holds_prefetch = false;
    changed.notify_all();
  }
};

using FakePagingFunction = FakePaging *(*)();
inline constexpr char kFakePagingName[] = "fake_paging";

}  // namespace sonde::test
