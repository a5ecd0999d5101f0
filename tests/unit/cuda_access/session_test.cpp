// The port with the real library: options checked by the host, tensors announced through its ranges, claims, and a
// capture file that is read again.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <sonde/sonde.h>
#include <sonde/toolkit/warp_records.h>

#include "fake_device.h"
#include "patch_player.h"

namespace sonde::cuda::access::test {
namespace {

namespace fs = std::filesystem;

template <typename Service>
const Service *service(const char *id) {
  const void *table = nullptr;
  EXPECT_EQ(sonde_host()->get_service(id, sizeof(uint64_t), &table), SONDE_OK) << sonde_host()->last_error();
  return static_cast<const Service *>(table);
}

FakeDevice &device() {
  static FakeDevice *const made = [] {
    void *const library = dlopen(SONDE_FAKE_DEVICE, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<FakeDeviceFunction>(dlsym(library, kFakeDeviceName))();
  }();
  return *made;
}

const sonde_plugin_entry_t &plugin() {
  static const sonde_plugin_entry_t *const entry = [] {
    setenv("SONDE_CUDA_DRIVER", SONDE_FAKE_DEVICE, 1);
    void *const library = dlopen(SONDE_CUDA_ACCESS_PORT, RTLD_NOW | RTLD_LOCAL);
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
  std::vector<sonde_access_launch_t> launches;
  std::vector<sonde_access_object_t> objects;
  std::vector<uint64_t> first_addresses;  // of each warp access
  std::vector<sonde_session_note_t> notes;
};

sonde_status on_batch(void *user, const sonde_batch_t *batch) {
  auto &received = *static_cast<Received *>(user);
  const std::lock_guard hold(received.mutex);
  for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
       record = sonde_batch_next(batch, record)) {
    ++received.counts[{record->space, record->type}];
    const auto copy = [&](auto &to) {
      to.emplace_back();
      std::memcpy(&to.back(), record, sizeof(to.back()));
    };
    if (record->space == SONDE_SPACE_SESSION && record->type == SONDE_SESSION_NOTE) copy(received.notes);
    if (record->space != SONDE_SPACE_ACCESS) continue;
    if (record->type == SONDE_ACCESS_LAUNCH) copy(received.launches);
    if (record->type == SONDE_ACCESS_OBJECT) copy(received.objects);
    if (record->type != SONDE_ACCESS_WARPS) continue;
    toolkit::WarpRecords entries(record);
    toolkit::WarpAccess access;
    while (entries.next(access)) received.first_addresses.push_back(access.address(0));
    EXPECT_FALSE(entries.damaged());
  }
  return SONDE_OK;
}

class AccessSession : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "sonde-access-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char *name : {"patches.fatbin", "edges.fatbin"}) std::ofstream(folder_ / name) << "code";
    config_ = service<sonde_config_service_t>(SONDE_CONFIG_SERVICE);
    sessions_ = service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
    delivery_ = service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE);
    ASSERT_EQ(sessions_->open(nullptr, &session_), SONDE_OK);
  }

  void TearDown() override {
    if (instance_ != nullptr) port_->destroy(instance_);
    EXPECT_EQ(sessions_->close(session_), SONDE_OK);
    if (options_ != nullptr) config_->release(options_);
    if (tree_ != nullptr) config_->release(tree_);
    fs::remove_all(folder_);
  }

  void subscribe(sonde_session_t *session, uint32_t space) {
    const sonde_interest_t interest = {space, SONDE_LEVEL_RECORDS, UINT64_MAX};
    sonde_subscription_t subscription = {};
    subscription.struct_size = sizeof(subscription);
    subscription.name = "test";
    subscription.interests = &interest;
    subscription.interest_count = 1;
    subscription.on_batch = on_batch;
    subscription.user = &received_;
    uint64_t id = 0;
    ASSERT_EQ(delivery_->subscribe(session, &subscription, &id), SONDE_OK) << sonde_host()->last_error();
  }

  sonde_status check(const std::string &yaml) {
    EXPECT_EQ(config_->parse(yaml.c_str(), "test", &tree_), SONDE_OK) << sonde_host()->last_error();
    return config_->check(tree_, "cuda_access", plugin().options, plugin().option_count, plugin().option_stride,
                          &options_);
  }

  void start(const std::string &more = "") {
    ASSERT_EQ(check("sanitizer: " SONDE_FAKE_DEVICE "\nstate_bytes: 16Mi\nrecord_bytes: 4Mi\ndevice_code: " +
                    folder_.string() + "\n" + more),
              SONDE_OK)
        << sonde_host()->last_error();
    port_ = static_cast<const sonde_port_t *>(plugin().get_interface(SONDE_PORT_INTERFACE));
    ASSERT_EQ(port_->create(session_, options_, &instance_), SONDE_OK) << sonde_host()->last_error();
    ASSERT_EQ(sessions_->start(session_), SONDE_OK);
    ASSERT_EQ(port_->start(instance_), SONDE_OK) << sonde_host()->last_error();
  }

  void stop() {
    EXPECT_EQ(port_->stop(instance_), SONDE_OK) << sonde_host()->last_error();
    EXPECT_EQ(sessions_->stop(session_, 0), SONDE_OK) << sonde_host()->last_error();
  }

  std::string text(sonde_string_t id) const {
    const char *out = nullptr;
    const auto *capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
    EXPECT_EQ(capture->text(session_, 0, id, &out), SONDE_OK);
    return out != nullptr ? out : "";
  }

  fs::path folder_;
  const sonde_config_service_t *config_ = nullptr;
  const sonde_session_service_t *sessions_ = nullptr;
  const sonde_delivery_service_t *delivery_ = nullptr;
  const sonde_port_t *port_ = nullptr;
  sonde_session_t *session_ = nullptr;
  sonde_config_t *tree_ = nullptr;
  sonde_config_t *options_ = nullptr;
  void *instance_ = nullptr;
  Received received_;
};

constexpr uint64_t kPool = uint64_t{1} << 44;

// One launch that reads the tensor and writes behind it.
void run_program(Context context) {
  const Module module = device().load_module(context);
  const Function function = device().add_function(module, "_Z6kernelPf", [](const KernelRun &run) {
    PatchPlayer player(run);
    player.access(side_by_side(kPool + 4096, 4), 4, kRead);
    player.access(side_by_side(kPool, 8), 8, kWrite, 0xff);
  });
  device().launch(context, function);
  device().synchronize(context);
}

TEST_F(AccessSession, TensorsOfTheRangesServiceReachASubscriber) {
  subscribe(session_, SONDE_SPACE_ACCESS);
  start("collect: objects,records");
  const Context context = device().create_context();
  device().tell_allocated(context, kPool, 1 << 20);
  const auto *const ranges = service<sonde_ranges_service_t>(SONDE_RANGES_SERVICE);
  sonde_range_t tensor = {sizeof(tensor), SONDE_RANGE_TENSOR, kPool + 4096, 1000, 0, 0, 0};
  ASSERT_EQ(service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE)->intern("weights", 7, &tensor.name), SONDE_OK);
  uint64_t ordinal = 0;
  ASSERT_EQ(ranges->announce(&tensor, &ordinal), SONDE_OK);
  run_program(context);
  ASSERT_EQ(ranges->retire(SONDE_RANGE_TENSOR, kPool + 4096), SONDE_OK);
  stop();
  device().tell_freed(context, kPool, 1 << 20);
  ASSERT_EQ(received_.launches.size(), 1u);
  EXPECT_EQ(text(received_.launches[0].name), "_Z6kernelPf");
  EXPECT_EQ(received_.launches[0].flags, SONDE_LAUNCH_WATCHED);
  ASSERT_EQ(received_.objects.size(), 2u);
  EXPECT_EQ(received_.objects[0].object_kind, SONDE_OBJECT_IS_REMAINDER);
  EXPECT_EQ(received_.objects[0].write_bytes, 64u);
  EXPECT_EQ(received_.objects[1].object_kind, SONDE_OBJECT_IS_TENSOR);
  EXPECT_EQ(received_.objects[1].ordinal, ordinal);
  EXPECT_EQ(received_.objects[1].read_bytes, 128u);
  EXPECT_EQ(text(received_.objects[1].name), "weights");
  EXPECT_EQ(received_.first_addresses, (std::vector<uint64_t>{kPool + 4096, kPool}));
  sonde_session_status_t status = {};
  status.struct_size = sizeof(status);
  ASSERT_EQ(sessions_->status(session_, &status), SONDE_OK);
  EXPECT_EQ(status.lost_records, 0u);
}

TEST_F(AccessSession, ACaptureFileHoldsWhatWasSeen) {
  const auto *const store = service<sonde_store_service_t>(SONDE_STORE_SERVICE);
  const std::string path = (folder_ / "access.sonde").string();
  sonde_recording_t *recording = nullptr;
  ASSERT_EQ(store->record(session_, path.c_str(), "sonde.access", nullptr, &recording), SONDE_OK)
      << sonde_host()->last_error();
  start("collect: objects,pages,intervals,instructions,records");
  const Context context = device().create_context();
  device().tell_allocated(context, kPool, 1 << 20);
  run_program(context);
  stop();
  device().tell_freed(context, kPool, 1 << 20);
  ASSERT_EQ(store->finish(recording), SONDE_OK) << sonde_host()->last_error();

  sonde_session_t *replayed = nullptr;
  ASSERT_EQ(sessions_->open(nullptr, &replayed), SONDE_OK);
  subscribe(replayed, SONDE_SPACE_ACCESS);
  ASSERT_EQ(sessions_->start(replayed), SONDE_OK);
  sonde_capture_t *capture = nullptr;
  ASSERT_EQ(store->open(path.c_str(), &capture), SONDE_OK) << sonde_host()->last_error();
  ASSERT_EQ(store->replay(capture, replayed, nullptr, nullptr), SONDE_OK) << sonde_host()->last_error();
  ASSERT_EQ(sessions_->stop(replayed, 0), SONDE_OK);
  ASSERT_EQ(store->close(capture), SONDE_OK);
  ASSERT_EQ(sessions_->close(replayed), SONDE_OK);
  for (const uint32_t type : {SONDE_ACCESS_LAUNCH, SONDE_ACCESS_OBJECT, SONDE_ACCESS_PAGES, SONDE_ACCESS_WARPS}) {
    EXPECT_EQ((received_.counts[{SONDE_SPACE_ACCESS, type}]), 1u) << type;
  }
  EXPECT_EQ((received_.counts[{SONDE_SPACE_ACCESS, SONDE_ACCESS_INTERVALS}]), 2u);
  EXPECT_EQ((received_.counts[{SONDE_SPACE_ACCESS, SONDE_ACCESS_INSTRUCTION}]), 2u);
  ASSERT_EQ(received_.objects.size(), 1u);
  EXPECT_EQ(received_.objects[0].read_bytes, 128u);
  EXPECT_EQ(received_.objects[0].write_bytes, 64u);
  EXPECT_EQ(received_.first_addresses, (std::vector<uint64_t>{kPool + 4096, kPool}));
}

TEST_F(AccessSession, TheHostRefusesOptionsThatThePortDoesNotHave) {
  EXPECT_EQ(check("collects: objects"), SONDE_E_INVALID);
  EXPECT_NE(std::string(sonde_host()->last_error()).find("collects"), std::string::npos);
}

TEST_F(AccessSession, TheHostRefusesValuesOutsideTheirRange) {
  EXPECT_EQ(check("when_full: wait\nrecord_threads: 99\npage_bytes: 512"), SONDE_E_INVALID);
  const std::string text = sonde_host()->last_error();
  for (const char *name : {"when_full", "record_threads", "page_bytes"}) {
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
}

// What the session says where another collector has the claim, on standard error; 0 when nothing was opened.
int run_beside_activity() {
  const auto *const claims = service<sonde_claim_service_t>(SONDE_CLAIM_SERVICE);
  const bool held = claims->take("cuda.device", "activity", "cuda") == SONDE_OK;
  const auto *const sessions = service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
  const auto *const config = service<sonde_config_service_t>(SONDE_CONFIG_SERVICE);
  const auto *const delivery = service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE);
  sonde_session_t *session = nullptr;
  (void)sessions->open(nullptr, &session);
  Received received;
  const sonde_interest_t interests[] = {{SONDE_SPACE_ACCESS, SONDE_LEVEL_RECORDS, UINT64_MAX},
                                        {SONDE_SPACE_SESSION, SONDE_LEVEL_RECORDS, UINT64_MAX}};
  sonde_subscription_t subscription = {};
  subscription.struct_size = sizeof(subscription);
  subscription.name = "test";
  subscription.interests = interests;
  subscription.interest_count = 2;
  subscription.on_batch = on_batch;
  subscription.user = &received;
  uint64_t id = 0;
  (void)delivery->subscribe(session, &subscription, &id);
  sonde_config_t *tree = nullptr;
  sonde_config_t *options = nullptr;
  (void)config->parse("sanitizer: " SONDE_FAKE_DEVICE, "test", &tree);
  (void)config->check(tree, "cuda_access", plugin().options, plugin().option_count, plugin().option_stride, &options);
  const auto *port = static_cast<const sonde_port_t *>(plugin().get_interface(SONDE_PORT_INTERFACE));
  void *instance = nullptr;
  (void)port->create(session, options, &instance);
  (void)sessions->start(session);
  const bool started = port->start(instance) == SONDE_OK;
  (void)port->stop(instance);
  (void)sessions->stop(session, 0);
  const auto *const capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  for (const sonde_session_note_t &note : received.notes) {
    const char *words = nullptr;
    if (capture->text(session, 0, note.text, &words) == SONDE_OK) fprintf(stderr, "%u: %s\n", note.severity, words);
  }
  return held && started && device().counts.subscribers == 0 ? 0 : 1;
}

TEST(AccessClaim, AnActivityTraceKeepsThePortOutAndIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(run_beside_activity()), testing::ExitedWithCode(0),
              "3: no data on accesses because .*cuda.*activity");
}

}  // namespace
}  // namespace sonde::cuda::access::test
