// The managed allocator with a driver of the tests' own. Each test asks for differences of the process's numbers.
#include "sonde_managed.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <sonde/host.h>
#include <sonde/ranges.h>

// ---- a host with live ranges, found by its symbol as the allocator finds the real one ------------------------------

namespace {

struct Announced {
  uint64_t address;
  uint64_t bytes;
  uint32_t kind;
  uint32_t device;
};
std::vector<Announced> announced;
std::vector<uint64_t> retired;
std::atomic<bool> record_ranges{false};

sonde_status announce(const sonde_range_t *range, uint64_t *) {
  if (record_ranges) announced.push_back({range->address, range->bytes, range->kind, range->device});
  return SONDE_OK;
}
sonde_status retire(uint32_t, uint64_t address) {
  if (record_ranges) retired.push_back(address);
  return SONDE_OK;
}
uint32_t watched() { return 0; }

sonde_status get_service(const char *id, uint32_t min_size, const void **out) {
  static const sonde_ranges_service_t table = {sizeof(table), 0, announce, retire, nullptr, nullptr, watched};
  if (std::string_view(id) != SONDE_RANGES_SERVICE || min_size > sizeof(table)) return SONDE_E_NOT_FOUND;
  *out = &table;
  return SONDE_OK;
}

constexpr uint64_t kMi = 1 << 20;

uint64_t number(uint32_t which) { return sonde_managed_statistic(which); }

// A function of the fake driver, which the allocator opens by the driver's name.
template <typename Function>
Function fake(const char *name) {
  return reinterpret_cast<Function>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name));
}

class Managed : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_NE(dlopen(SONDE_FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror(); }
  void SetUp() override { sonde_managed_set_cap(16 * kMi); }
  void TearDown() override {
    fake<void (*)(int32_t)>("fake_driver_refuse")(0);
    EXPECT_EQ(number(SONDE_MANAGED_LIVE_BLOCKS), 0u);
    EXPECT_EQ(number(SONDE_MANAGED_LIVE_BYTES), 0u);
    EXPECT_EQ(fake<uint64_t (*)()>("fake_driver_live")(), 0u);
    EXPECT_EQ(fake<uint64_t (*)()>("fake_driver_without_context")(), 0u);
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const sonde_host_t *sonde_host(void) {
  static const sonde_host_t host = {sizeof(host), SONDE_ABI_MAJOR, SONDE_ABI_MINOR, get_service,
                                    nullptr,      nullptr,         nullptr};
  return &host;
}

namespace {

TEST_F(Managed, ABlockIsCountedWhileItLives) {
  const uint64_t blocks = number(SONDE_MANAGED_TOTAL_BLOCKS);
  void *block = sonde_managed_malloc(3 * kMi, 0, nullptr);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(number(SONDE_MANAGED_LIVE_BYTES), 3 * kMi);
  EXPECT_EQ(number(SONDE_MANAGED_LIVE_BLOCKS), 1u);
  EXPECT_EQ(number(SONDE_MANAGED_TOTAL_BLOCKS), blocks + 1);
  EXPECT_GE(number(SONDE_MANAGED_PEAK_BYTES), 3 * kMi);
  sonde_managed_free(block, 3 * kMi, 0, nullptr);
}

TEST_F(Managed, AboveTheCapABlockIsRefusedWithTheReason) {
  const uint64_t refused = number(SONDE_MANAGED_REFUSED_BLOCKS);
  const uint64_t refused_bytes = number(SONDE_MANAGED_REFUSED_BYTES);
  void *first = sonde_managed_malloc(10 * kMi, 0, nullptr);
  EXPECT_EQ(sonde_managed_malloc(7 * kMi, 0, nullptr), nullptr);
  EXPECT_STREQ(sonde_managed_last_error(),
               "7340032 bytes of managed memory refused: 10485760 live, the cap is 16777216 (SONDE_MANAGED_CAP)");
  EXPECT_EQ(number(SONDE_MANAGED_REFUSED_BLOCKS), refused + 1);
  EXPECT_EQ(number(SONDE_MANAGED_REFUSED_BYTES), refused_bytes + 7 * kMi);
  void *second = sonde_managed_malloc(6 * kMi, 0, nullptr);  // exactly what is left
  EXPECT_NE(second, nullptr);
  sonde_managed_free(first, 0, 0, nullptr);
  sonde_managed_free(second, 0, 0, nullptr);
}

TEST_F(Managed, ThreadsTogetherStayBelowTheCap) {
  std::atomic<uint64_t> given{0};
  std::vector<std::thread> threads;
  std::vector<std::vector<void *>> blocks(4);
  for (auto &mine : blocks) {
    threads.emplace_back([&given, &mine] {
      for (int i = 0; i < 16; ++i) {
        if (void *block = sonde_managed_malloc(kMi, 0, nullptr)) {
          mine.push_back(block);
          ++given;
        }
      }
    });
  }
  for (auto &thread : threads) thread.join();
  EXPECT_EQ(given, 16u);  // 64 asked, 16 MiB in all
  for (const auto &mine : blocks) {
    for (void *block : mine) sonde_managed_free(block, kMi, 0, nullptr);
  }
}

TEST_F(Managed, ARefusalOfTheDriverGivesTheRoomBack) {
  fake<void (*)(int32_t)>("fake_driver_refuse")(2);
  const uint64_t failed = number(SONDE_MANAGED_FAILED_BLOCKS);
  EXPECT_EQ(sonde_managed_malloc(kMi, 0, nullptr), nullptr);
  EXPECT_STREQ(sonde_managed_last_error(), "1048576 bytes of managed memory: the driver says CUDA_ERROR_OUT_OF_MEMORY");
  EXPECT_EQ(number(SONDE_MANAGED_FAILED_BLOCKS), failed + 1);
}

TEST_F(Managed, AThreadWithoutAContextGetsItsDevicesForTheCall) {
  std::thread([] {
    void *block = sonde_managed_malloc(kMi, 3, nullptr);
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(fake<void *(*)()>("fake_driver_current")(), nullptr);
    sonde_managed_free(block, kMi, 3, nullptr);
  }).join();
}

TEST_F(Managed, WhatIsNoBlockIsLeftAlone) {
  const uint64_t unknown = number(SONDE_MANAGED_UNKNOWN_FREES);
  int here = 0;
  sonde_managed_free(&here, 4, 0, nullptr);
  sonde_managed_free(nullptr, 0, 0, nullptr);
  EXPECT_EQ(number(SONDE_MANAGED_UNKNOWN_FREES), unknown + 1);
  EXPECT_EQ(sonde_managed_malloc(0, 0, nullptr), nullptr);
  EXPECT_EQ(sonde_managed_malloc(-1, 0, nullptr), nullptr);
}

TEST_F(Managed, BlocksAreAnnouncedAsPools) {
  record_ranges = true;
  void *block = sonde_managed_malloc(2 * kMi, 5, nullptr);
  ASSERT_EQ(announced.size(), 1u);
  EXPECT_EQ(announced[0].address, reinterpret_cast<uint64_t>(block));
  EXPECT_EQ(announced[0].bytes, 2 * kMi);
  EXPECT_EQ(announced[0].kind, SONDE_RANGE_POOL);
  EXPECT_EQ(announced[0].device, 5u);
  sonde_managed_free(block, 2 * kMi, 5, nullptr);
  EXPECT_EQ(retired, std::vector<uint64_t>{announced[0].address});
  record_ranges = false;
}

TEST(ManagedNumbers, AnUnknownNumberIsTheGreatest) { EXPECT_EQ(sonde_managed_statistic(99), UINT64_MAX); }

TEST(ManagedCap, TheEnvironmentSetsItBeforeTheFirstUse) {
  const auto cap_with = [](const char *text) {
    setenv("SONDE_MANAGED_CAP", text, 1);
    std::fprintf(stderr, "cap=%llu\n", static_cast<unsigned long long>(sonde_managed_statistic(SONDE_MANAGED_CAP)));
    std::exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has not read the variable yet
  EXPECT_EXIT(cap_with("512Mi"), testing::ExitedWithCode(0), "^cap=536870912\n$");
  EXPECT_EXIT(cap_with("1000"), testing::ExitedWithCode(0), "^cap=1000\n$");
  EXPECT_EXIT(cap_with(""), testing::ExitedWithCode(0), "^cap=2147483648\n$");
  EXPECT_EXIT(cap_with("lots"), testing::ExitedWithCode(0), "is \"lots\", a number of bytes.*\ncap=2147483648\n$");
  EXPECT_EXIT(cap_with("-1"), testing::ExitedWithCode(0), "is \"-1\", a number of bytes.*\ncap=2147483648\n$");
  EXPECT_EXIT(cap_with("99999999999Gi"), testing::ExitedWithCode(0), "a number of bytes.*\ncap=2147483648\n$");
}

}  // namespace
