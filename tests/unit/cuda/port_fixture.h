// What tests of the port share: the plugin as a host loads it, a CUPTI of the tests' own, and a session with its port.
//
// CUPTI is opened once in a process, and a port that hangs or forks leaves traces; so tests that set it up in another
// way run in a process of their own (`alone`, which executes this program again).
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <sonde/plugin.h>
#include <sonde/port.h>
#include <sonde/spaces/device.h>

#include "activity.h"
#include "fake_cupti.h"
#include "fake_host.h"

namespace sonde {

using namespace cuda;
using Milliseconds = std::chrono::milliseconds;

// The plugin as a host loads it.
inline const sonde_port_t *port() {
  static const sonde_port_t *const table = [] {
    void *library = dlopen(SONDE_CUDA_PORT, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto *entry = static_cast<const sonde_plugin_entry_t *>(dlsym(library, "sonde_plugin_entry"));
    if (entry->init(test::fake_host()) != SONDE_OK) throw std::runtime_error("init failed");
    return static_cast<const sonde_port_t *>(entry->get_interface(SONDE_PORT_INTERFACE));
  }();
  return table;
}

inline const FakeCuptiControl &cupti() {
  static const FakeCuptiControl *const control = [] {
    void *library = dlopen(SONDE_FAKE_CUPTI, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<decltype(&fake_cupti_control)>(dlsym(library, "fake_cupti_control"))();
  }();
  return *control;
}

using Options = std::map<std::string, std::string>;

// A session with its port.
class Capture {
 public:
  explicit Capture(const Options &options = {}) {
    config_.values = {{"cupti", SONDE_FAKE_CUPTI}, {"buffer_bytes", "65536"}, {"flush_period", "3600000000000"}};
    for (const auto &[key, value] : options) config_.values[key] = value;
    EXPECT_EQ(port()->create(&session, &config_, &instance_), SONDE_OK);
  }
  ~Capture() { port()->destroy(instance_); }

  void want_kernels() { session.want(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL); }
  sonde_status start() { return port()->start(instance_); }
  sonde_status demand() { return port()->demand(instance_); }
  sonde_status flush(bool forced = true) { return port()->flush(instance_, forced ? 1 : 0); }
  sonde_status stop() { return port()->stop(instance_); }

  std::vector<sonde_device_kernel_t> kernels() const {
    return session.submitted<sonde_device_kernel_t>(SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL);
  }

  sonde_session_t session;

 private:
  sonde_config_t config_;
  void *instance_ = nullptr;
};

template <typename Record>
bool emit(const Record &record) {
  const uint32_t bytes = test::record_bytes(record.kind, cupti().state->version);
  std::vector<uint8_t> padded(bytes);
  std::memcpy(padded.data(), &record, std::min<size_t>(sizeof(record), bytes));
  return cupti().emit(padded.data(), bytes) != 0;
}

inline void emit_kernels(uint32_t count, uint32_t first = 1) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t stamp = cupti().now();
    EXPECT_TRUE(emit(test::kernel(stamp, stamp + 10, first + i, "kernel")));
  }
}

inline bool enabled(uint32_t kind) { return (cupti().state->enabled_kinds >> kind) & 1u; }

// Memory that this process has resident now, KiB. Sanitizers keep freed memory, so nothing can be told of it there.
inline long resident_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  long size = 0;
  long resident = 0;
  FILE *file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
#endif
}

// File descriptors that this process has open.
inline long open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

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

}  // namespace sonde
