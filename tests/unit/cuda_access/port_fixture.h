// What tests of the port share: the plugin as a host loads it, the tests' own device, and a session with its port.
//
// The sanitizer's library is opened once in a process and its options stay with a context; tests that need others, or that
// leave a kernel running, have a process of their own (`alone`, which executes this program again).
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <sonde/plugin.h>
#include <sonde/port.h>
#include <sonde/ranges.h>
#include <sonde/spaces/access.h>
#include <sonde/spaces/access_packed.h>
#include <sonde/spaces/memory.h>
#include <sonde/spaces/object.h>

#include "fake_device.h"
#include "fake_host.h"
#include "patch_player.h"

namespace sonde::cuda::access::test {

using sonde::test::fake_claims;
using sonde::test::fake_host;
using sonde::test::text_of;

inline FakeDevice &device() {
  static FakeDevice *const made = [] {
    void *const library = dlopen(SONDE_FAKE_DEVICE, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<FakeDeviceFunction>(dlsym(library, kFakeDeviceName))();
  }();
  return *made;
}

// The service sonde.ranges/1 of these tests.
class FakeRanges {
 public:
  void announce(uint64_t address, uint64_t bytes, const char *name) {
    sonde_range_t range = {sizeof(range), SONDE_RANGE_TENSOR, address, bytes, 0, 0, 0};
    (void)sonde::test::fake_capture()->intern(name, UINT64_MAX, &range.name);
    const std::lock_guard hold(mutex_);
    if (changed_ == nullptr) return;
    range.ordinal = ++last_;
    live_[address] = range;
    changed_(user_, &range, 1);
  }
  void retire(uint64_t address) {
    const std::lock_guard hold(mutex_);
    const auto found = live_.find(address);
    if (changed_ == nullptr || found == live_.end()) return;
    changed_(user_, &found->second, 0);
    live_.erase(found);
  }
  uint64_t last() const { return last_; }

  static FakeRanges &instance() {
    static FakeRanges ranges;
    return ranges;
  }
  static const sonde_ranges_service_t *table() {
    static constexpr sonde_ranges_service_t kTable = {
        sizeof(sonde_ranges_service_t), 0, nullptr, nullptr, watch, unwatch, nullptr};
    return &kTable;
  }

 private:
  static sonde_status watch(void (*changed)(void *, const sonde_range_t *, uint32_t), void *user, sonde_drop_user_t,
                            uint64_t *out) {
    FakeRanges &self = instance();
    const std::lock_guard hold(self.mutex_);
    self.changed_ = changed;
    self.user_ = user;
    *out = 1;
    for (const auto &[address, range] : self.live_) changed(user, &range, 1);
    return SONDE_OK;
  }
  // What is announced and retired while nobody watches is not known.
  static sonde_status unwatch(uint64_t) {
    FakeRanges &self = instance();
    const std::lock_guard hold(self.mutex_);
    self.changed_ = nullptr;
    self.live_.clear();
    return SONDE_OK;
  }

  std::mutex mutex_;
  void (*changed_)(void *, const sonde_range_t *, uint32_t) = nullptr;
  void *user_ = nullptr;
  std::map<uint64_t, sonde_range_t> live_;
  uint64_t last_ = 5000;
};

inline const sonde_host_t *host_with_ranges() {
  static const sonde_host_t table = [] {
    sonde_host_t made = *fake_host();
    made.get_service = [](const char *id, uint32_t min_size, const void **out) -> sonde_status {
      if (std::strcmp(id, SONDE_RANGES_SERVICE) != 0) return fake_host()->get_service(id, min_size, out);
      *out = FakeRanges::table();
      return SONDE_OK;
    };
    return made;
  }();
  return &table;
}

// The plugin as a host loads it.
inline const sonde_port_t *port() {
  static const sonde_port_t *const table = [] {
    setenv("SONDE_CUDA_DRIVER", SONDE_FAKE_DEVICE, 1);
    void *const library = dlopen(SONDE_CUDA_ACCESS_PORT, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto *entry = static_cast<const sonde_plugin_entry_t *>(dlsym(library, "sonde_plugin_entry"));
    if (entry->init(host_with_ranges()) != SONDE_OK) throw std::runtime_error("init failed");
    return static_cast<const sonde_port_t *>(entry->get_interface(SONDE_PORT_INTERFACE));
  }();
  return table;
}

// A folder with device code that nobody runs.
inline std::string device_code() {
  static const std::string folder = [] {
    const std::filesystem::path path = std::filesystem::path(SONDE_TEST_BINARY_DIR) / "fake_device_code";
    std::filesystem::create_directories(path);
    // Whole at once, because other tests may be reading.
    for (const char *name : {"patches.fatbin", "edges.fatbin"}) {
      const std::filesystem::path part = path / (name + std::to_string(getpid()));
      std::ofstream(part) << "code";
      std::filesystem::rename(part, path / name);
    }
    return path.string();
  }();
  return folder;
}

using Options = std::map<std::string, std::string>;

struct Stored {
  std::vector<uint8_t> bytes;

  template <typename Record>
  const Record &as() const {
    return *reinterpret_cast<const Record *>(bytes.data());
  }
  template <typename Value>
  std::vector<Value> values(const sonde_span_t &span) const {
    std::vector<Value> out(span.count);
    EXPECT_LE(span.offset + span.count * sizeof(Value), bytes.size());
    std::memcpy(out.data(), bytes.data() + span.offset, out.size() * sizeof(Value));
    return out;
  }
};

// A session with its port.
class Capture {
 public:
  explicit Capture(const Options &options = {}) {
    config_.values = {{"sanitizer", SONDE_FAKE_DEVICE}, {"device_code", device_code()}, {"state_bytes", "16777216"},
                      {"interval_bytes", "2097152"},    {"record_bytes", "4194304"},    {"record_threads", "2"}};
    for (const auto &[key, value] : options) config_.values[key] = value;
    EXPECT_EQ(port()->create(&session, &config_, &instance_), SONDE_OK) << sonde::test::last_error();
  }
  ~Capture() { port()->destroy(instance_); }

  void want(uint32_t type) { session.want(SONDE_SPACE_ACCESS, type); }
  sonde_status start() { return port()->start(instance_); }
  sonde_status demand() { return port()->demand(instance_); }
  sonde_status flush() { return port()->flush(instance_, 1); }
  sonde_status stop() { return port()->stop(instance_); }

  // Whole records of a type, in the order of their submission.
  std::vector<Stored> all(uint32_t type) const {
    const std::lock_guard hold(session.mutex);
    std::vector<Stored> out;
    for (const auto &batch : session.batches) {
      for (size_t at = 0; at < batch.size();) {
        sonde_record_t header;
        std::memcpy(&header, batch.data() + at, sizeof(header));
        const size_t bytes = header.size8 * size_t{8};
        if (header.space == SONDE_SPACE_ACCESS && header.type == type) {
          out.push_back({std::vector<uint8_t>(batch.begin() + static_cast<ptrdiff_t>(at),
                                              batch.begin() + static_cast<ptrdiff_t>(at + bytes))});
        }
        at += bytes;
      }
    }
    return out;
  }
  // In the order of launches; they are submitted as they end.
  std::vector<sonde_access_launch_t> launches() const { return ordered<sonde_access_launch_t>(SONDE_ACCESS_LAUNCH); }
  std::vector<sonde_access_object_t> objects() const { return ordered<sonde_access_object_t>(SONDE_ACCESS_OBJECT); }

  template <typename Record>
  std::vector<Record> ordered(uint32_t type) const {
    std::vector<Record> out = fixed<Record>(type);
    std::stable_sort(out.begin(), out.end(), [](const Record &a, const Record &b) { return a.launch < b.launch; });
    return out;
  }
  template <typename Record>
  std::vector<Record> fixed(uint32_t type) const {
    return session.submitted<Record>(SONDE_SPACE_ACCESS, type);
  }

  sonde_session_t session;

 private:
  sonde_config_t config_;
  void *instance_ = nullptr;
};

// A gate that a kernel waits at.
class Gate {
 public:
  void open() {
    const std::lock_guard hold(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// Runs `body` in a process of its own and expects it to end well.
inline void alone(const std::function<void()> &body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        body();
        // The parent shows what this process says on standard error.
        const auto &result = *::testing::UnitTest::GetInstance()->current_test_info()->result();
        for (int i = 0; i < result.total_part_count(); ++i) {
          const auto &part = result.GetTestPartResult(i);
          std::fprintf(stderr, "line %d: %s\n", part.line_number(), part.message());
        }
        _exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace sonde::cuda::access::test
