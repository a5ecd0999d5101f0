// The port with the real library: options checked by the host, records through a session to a subscriber.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <time.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <sonde/sonde.h>

#include "activity.h"
#include "fake_cupti.h"

namespace sonde {
namespace {

using namespace cuda;

template <typename Service>
const Service *service(const char *id) {
  const void *table = nullptr;
  EXPECT_EQ(sonde_host()->get_service(id, sizeof(uint64_t), &table), SONDE_OK) << sonde_host()->last_error();
  return static_cast<const Service *>(table);
}

const FakeCuptiControl &cupti() {
  static const FakeCuptiControl *const control = [] {
    void *library = dlopen(SONDE_FAKE_CUPTI, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<decltype(&fake_cupti_control)>(dlsym(library, "fake_cupti_control"))();
  }();
  return *control;
}

const sonde_plugin_entry_t &plugin() {
  static const sonde_plugin_entry_t *const entry = [] {
    void *library = dlopen(SONDE_CUDA_PORT, RTLD_NOW | RTLD_LOCAL);
    const auto *found = static_cast<const sonde_plugin_entry_t *>(dlsym(library, "sonde_plugin_entry"));
    EXPECT_EQ(found->init(sonde_host()), SONDE_OK) << sonde_host()->last_error();
    return found;
  }();
  return *entry;
}

// What a subscriber received.
struct Received {
  std::mutex mutex;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> counts;  // (space, type) -> records
  std::vector<sonde_device_kernel_t> kernels;
  std::vector<int64_t> durations_ns;
  uint64_t repairs = 0;

  uint64_t count(uint32_t space, uint32_t type) {
    std::lock_guard<std::mutex> hold(mutex);
    return counts[{space, type}];
  }
};

sonde_status on_batch(void *user, const sonde_batch_t *batch) {
  auto &received = *static_cast<Received *>(user);
  std::lock_guard<std::mutex> hold(received.mutex);
  received.repairs += batch->repair_count;
  for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
       record = sonde_batch_next(batch, record)) {
    ++received.counts[{record->space, record->type}];
    if (record->space != SONDE_SPACE_DEVICE || record->type != SONDE_DEVICE_KERNEL) continue;
    sonde_device_kernel_t kernel;
    std::memcpy(&kernel, record, sizeof(kernel));
    received.kernels.push_back(kernel);
    received.durations_ns.push_back(sonde_clock_duration_ns(batch->clock, kernel.header.time, kernel.end));
  }
  return SONDE_OK;
}

class CudaSession : public ::testing::Test {
 protected:
  void SetUp() override {
    config_service_ = service<sonde_config_service_t>(SONDE_CONFIG_SERVICE);
    session_service_ = service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
    delivery_ = service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE);
    ASSERT_EQ(session_service_->open(nullptr, &session_), SONDE_OK);
  }

  void TearDown() override {
    if (instance_ != nullptr) port_->destroy(instance_);
    if (session_ != nullptr) {
      EXPECT_EQ(session_service_->close(session_), SONDE_OK);
    }
    if (options_ != nullptr) config_service_->release(options_);
    if (tree_ != nullptr) config_service_->release(tree_);
  }

  void subscribe(uint32_t space) {
    const sonde_interest_t interest = {space, SONDE_LEVEL_RECORDS, UINT64_MAX};
    sonde_subscription_t subscription = {};
    subscription.struct_size = sizeof(subscription);
    subscription.name = "test";
    subscription.interests = &interest;
    subscription.interest_count = 1;
    subscription.on_batch = on_batch;
    subscription.user = &received_;
    uint64_t id = 0;
    ASSERT_EQ(delivery_->subscribe(session_, &subscription, &id), SONDE_OK) << sonde_host()->last_error();
  }

  sonde_status check(const std::string &yaml) {
    EXPECT_EQ(config_service_->parse(yaml.c_str(), "test", &tree_), SONDE_OK) << sonde_host()->last_error();
    return config_service_->check(tree_, "cuda", plugin().options, plugin().option_count, plugin().option_stride,
                                  &options_);
  }

  void start(const std::string &more = "") {
    ASSERT_EQ(check("cupti: " SONDE_FAKE_CUPTI "\nbuffer_bytes: 64Ki\n" + more), SONDE_OK)
        << sonde_host()->last_error();
    port_ = static_cast<const sonde_port_t *>(plugin().get_interface(SONDE_PORT_INTERFACE));
    ASSERT_EQ(port_->create(session_, options_, &instance_), SONDE_OK) << sonde_host()->last_error();
    ASSERT_EQ(session_service_->start(session_), SONDE_OK);
    ASSERT_EQ(port_->start(instance_), SONDE_OK) << sonde_host()->last_error();
  }

  void stop() {
    EXPECT_EQ(port_->stop(instance_), SONDE_OK) << sonde_host()->last_error();
    EXPECT_EQ(session_service_->stop(session_, 0), SONDE_OK) << sonde_host()->last_error();
  }

  template <typename Record>
  void emit(const Record &record) {
    std::vector<uint8_t> padded(test::record_bytes(record.kind, cupti().state->version));
    std::memcpy(padded.data(), &record, std::min(sizeof(record), padded.size()));
    ASSERT_EQ(cupti().emit(padded.data(), padded.size()), 1);
  }

  const sonde_config_service_t *config_service_ = nullptr;
  const sonde_session_service_t *session_service_ = nullptr;
  const sonde_delivery_service_t *delivery_ = nullptr;
  const sonde_port_t *port_ = nullptr;
  sonde_session_t *session_ = nullptr;
  sonde_config_t *tree_ = nullptr;
  sonde_config_t *options_ = nullptr;
  void *instance_ = nullptr;
  Received received_;
};

TEST_F(CudaSession, KernelsReachASubscriberInOneClockWithTheHost) {
  subscribe(SONDE_SPACE_DEVICE);
  start();
  constexpr uint32_t kKernels = 5000;
  for (uint32_t i = 0; i < kKernels; ++i) {
    const uint64_t stamp = sonde_stamp();
    emit(test::kernel(stamp, stamp + 3000, i + 1, "_Z6kernelv"));
  }
  stop();
  ASSERT_EQ(received_.kernels.size(), kKernels);
  sonde_session_status_t status = {};
  status.struct_size = sizeof(status);
  ASSERT_EQ(session_service_->status(session_, &status), SONDE_OK);
  EXPECT_EQ(status.lost_records, 0u);
  EXPECT_EQ(received_.repairs, 0u);
  for (uint32_t i = 0; i < kKernels; ++i) {
    EXPECT_EQ(received_.kernels[i].correlation, i + 1);
    // 3000 units of a cycle counter between 0.1 and 10 GHz.
    EXPECT_GT(received_.durations_ns[i], 300);
    EXPECT_LT(received_.durations_ns[i], 30'000);
  }
  const char *name = nullptr;
  const auto *capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  ASSERT_EQ(capture->text(session_, 0, received_.kernels[0].name, &name), SONDE_OK);
  EXPECT_STREQ(name, "_Z6kernelv");
}

TEST_F(CudaSession, ImpossibleStampsAreRepairedBesideTheRawValue) {
  subscribe(SONDE_SPACE_DEVICE);
  start();
  const uint64_t stamp = sonde_stamp();
  for (uint32_t i = 0; i < 10; ++i) emit(test::kernel(stamp + i, stamp + i + 10, i + 1, "good"));
  for (uint32_t i = 0; i < 3; ++i) emit(test::kernel(0, 0, 100 + i, "zero"));
  emit(test::kernel(stamp + 100, stamp + 50, 200, "reversed"));
  stop();
  ASSERT_EQ(received_.kernels.size(), 14u);
  EXPECT_EQ(received_.repairs, 4u);
  EXPECT_EQ(received_.kernels[10].header.time, 0u);
  EXPECT_EQ(received_.kernels[13].end, stamp + 50);
}

TEST_F(CudaSession, AllSpacesOfThePortAreDelivered) {
  for (const uint32_t space : {SONDE_SPACE_DEVICE, SONDE_SPACE_MEMORY, SONDE_SPACE_HOST, SONDE_SPACE_OBJECT}) {
    subscribe(space);
  }
  start("api: true");
  MemoryActivity memory = {};
  memory.kind = kind::kMemory;
  memory.operation = kMemoryOperationAllocate;
  memory.timestamp = sonde_stamp();
  emit(memory);
  ApiActivity call = {};
  call.kind = kind::kRuntime;
  call.callback = 211;
  call.start = sonde_stamp(), call.end = call.start + 10;
  emit(call);
  DeviceActivity device = {};
  device.kind = kind::kDevice;
  device.name = "device";
  emit(device);
  GraphData graph = {};
  graph.graph_exec = reinterpret_cast<void *>(5);
  const ResourceData data = {nullptr, nullptr, &graph};
  cupti().resource(kResourceGraphExecCreated, &data);
  stop();
  // Four subscriptions into one counter: each batch is counted by each of them.
  EXPECT_GE(received_.count(SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE), 1u);
  EXPECT_GE(received_.count(SONDE_SPACE_HOST, SONDE_HOST_CALL), 1u);
  EXPECT_GE(received_.count(SONDE_SPACE_OBJECT, SONDE_OBJECT_DEVICE), 1u);
  EXPECT_GE(received_.count(SONDE_SPACE_OBJECT, SONDE_OBJECT_GRAPH), 1u);
}

TEST_F(CudaSession, WindowsOfABudgetReachASubscriberInOrder) {
  subscribe(SONDE_SPACE_DEVICE);
  subscribe(SONDE_SPACE_SESSION);
  start("budget: 30%\nbudget_slot: 1ms");
  for (int i = 0; i < 200; ++i) {
    const uint64_t stamp = sonde_stamp();
    const KernelActivity kernel = test::kernel(stamp, stamp + 10, static_cast<uint32_t>(i + 1), "kernel");
    std::vector<uint8_t> padded(test::record_bytes(kernel.kind, cupti().state->version));
    std::memcpy(padded.data(), &kernel, std::min(sizeof(kernel), padded.size()));
    cupti().launch(padded.data(), padded.size());
    timespec wait = {0, 1'000'000};
    nanosleep(&wait, nullptr);
  }
  stop();
  EXPECT_GT(received_.count(SONDE_SPACE_SESSION, SONDE_SESSION_WINDOW), 2u);
  EXPECT_GT(received_.kernels.size(), 0u);
  EXPECT_LT(received_.kernels.size(), 200u);
}

// What `sonde run --budget 20%` hands to the program: the run gives it to each port that can keep one.
TEST_F(CudaSession, ARunsBudgetReachesThePort) {
  const auto *runs = service<sonde_run_service_t>(SONDE_RUN_SERVICE);
  for (const std::string &options : {std::string("buffer_bytes: 65536, "), std::string("budget: 0, ")}) {
    const std::string yaml = "session: {budget: 20%}\nplugins: {path: [" SONDE_CUDA_PORT "]}\nports: {cuda: {" +
                             options + "budget_slot: 1ms, cupti: \"" SONDE_FAKE_CUPTI "\"}}\n";
    sonde_config_t *tree = nullptr;
    ASSERT_EQ(config_service_->parse(yaml.c_str(), "test", &tree), SONDE_OK) << sonde_host()->last_error();
    sonde_run_t *run = nullptr;
    const sonde_status opened = runs->open(tree, &run);
    config_service_->release(tree);
    ASSERT_EQ(opened, SONDE_OK) << sonde_host()->last_error();
    Received received;
    sonde_session_t *session = nullptr;
    ASSERT_EQ(runs->session(run, &session), SONDE_OK);
    const sonde_interest_t interests[] = {{SONDE_SPACE_DEVICE, SONDE_LEVEL_RECORDS, UINT64_MAX},
                                          {SONDE_SPACE_SESSION, SONDE_LEVEL_RECORDS, UINT64_MAX}};
    sonde_subscription_t subscription = {};
    subscription.struct_size = sizeof(subscription);
    subscription.name = "test";
    subscription.interests = interests;
    subscription.interest_count = 2;
    subscription.on_batch = on_batch;
    subscription.user = &received;
    uint64_t id = 0;
    ASSERT_EQ(delivery_->subscribe(session, &subscription, &id), SONDE_OK) << sonde_host()->last_error();
    ASSERT_EQ(runs->start(run), SONDE_OK) << sonde_host()->last_error();
    timespec wait = {0, 100'000'000};
    nanosleep(&wait, nullptr);
    EXPECT_EQ(runs->finish(run), SONDE_OK) << sonde_host()->last_error();
    const bool own = options.starts_with("budget");
    EXPECT_EQ(received.count(SONDE_SPACE_SESSION, SONDE_SESSION_WINDOW) == 0, own) << "the port's own option stands";
    EXPECT_EQ(runs->close(run), SONDE_OK);
  }
}

TEST_F(CudaSession, TheHostRefusesOptionsThatThePortDoesNotHave) {
  EXPECT_EQ(check("apis: true"), SONDE_E_INVALID);
  EXPECT_NE(std::string(sonde_host()->last_error()).find("apis"), std::string::npos);
}

TEST_F(CudaSession, TheHostRefusesValuesOutsideTheirRange) {
  EXPECT_EQ(check("graphs: nodes\nbuffer_bytes: 1\nflush_period: 1us"), SONDE_E_INVALID);
  const std::string text = sonde_host()->last_error();
  EXPECT_NE(text.find("graphs"), std::string::npos) << text;
  EXPECT_NE(text.find("buffer_bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("flush_period"), std::string::npos) << text;
}

}  // namespace
}  // namespace sonde
