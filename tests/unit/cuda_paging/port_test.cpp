// The port with the real library: a plan through the host's configuration, a program played by callbacks, and the calls
// that the driver got.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sonde/sonde.h>

#include "cupti_types.h"
#include "fake_paging.h"
#include "paging_types.h"

namespace sonde::test {
namespace {

using namespace cuda::paging;

constexpr uint64_t kBase = 0x100000;  // of the first allocation; the next ones lie 1 MiB apart

template <typename Service>
const Service *service(const char *id) {
  const void *table = nullptr;
  EXPECT_EQ(sonde_host()->get_service(id, sizeof(uint64_t), &table), SONDE_OK) << sonde_host()->last_error();
  return static_cast<const Service *>(table);
}

FakePaging &fake() {
  static FakePaging *const instance = [] {
    void *library = dlopen(SONDE_FAKE_PAGING, RTLD_NOW | RTLD_GLOBAL);
    return reinterpret_cast<FakePagingFunction>(dlsym(library, kFakePagingName))();
  }();
  return *instance;
}

const sonde_plugin_entry_t &plugin() {
  static const sonde_plugin_entry_t *const entry = [] {
    void *library = dlopen(SONDE_PAGING_PORT, RTLD_NOW | RTLD_LOCAL);
    const auto *found = static_cast<const sonde_plugin_entry_t *>(dlsym(library, "sonde_plugin_entry"));
    EXPECT_EQ(found->init(sonde_host()), SONDE_OK) << sonde_host()->last_error();
    return found;
  }();
  return *entry;
}

struct Received {
  std::mutex mutex;
  const sonde_capture_service_t *capture = nullptr;
  sonde_session_t *session = nullptr;
  std::vector<std::string> notes;  // "severity: text"
  std::vector<sonde_memory_advise_t> moves;
  std::vector<sonde_memory_advise_t> advice;
};

sonde_status on_batch(void *user, const sonde_batch_t *batch) {
  auto &received = *static_cast<Received *>(user);
  const std::lock_guard<std::mutex> hold(received.mutex);
  for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
       record = sonde_batch_next(batch, record)) {
    if (record->space == SONDE_SPACE_SESSION && record->type == SONDE_SESSION_NOTE) {
      const auto *note = reinterpret_cast<const sonde_session_note_t *>(record);
      const char *text = "?";
      (void)received.capture->text(received.session, batch->source, note->text, &text);
      received.notes.push_back(std::to_string(note->severity) + ": " + text);
    }
    if (record->space == SONDE_SPACE_MEMORY && record->type == SONDE_MEMORY_PREFETCH) {
      received.moves.push_back(*reinterpret_cast<const sonde_memory_advise_t *>(record));
    }
    if (record->space == SONDE_SPACE_MEMORY && record->type == SONDE_MEMORY_ADVISE) {
      received.advice.push_back(*reinterpret_cast<const sonde_memory_advise_t *>(record));
    }
  }
  return SONDE_OK;
}

class PagingPort : public ::testing::Test {
 protected:
  void SetUp() override {
    fake().reset();
    config_ = service<sonde_config_service_t>(SONDE_CONFIG_SERVICE);
    sessions_ = service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
    ASSERT_EQ(sessions_->open(nullptr, &session_), SONDE_OK);
    received_.capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
    received_.session = session_;
    const sonde_interest_t interests[] = {{SONDE_SPACE_SESSION, SONDE_LEVEL_RECORDS, UINT64_MAX},
                                          {SONDE_SPACE_MEMORY, SONDE_LEVEL_RECORDS, UINT64_MAX}};
    sonde_subscription_t subscription = {};
    subscription.struct_size = sizeof(subscription);
    subscription.name = "test";
    subscription.interests = interests;
    subscription.interest_count = 2;
    subscription.on_batch = on_batch;
    subscription.user = &received_;
    uint64_t id = 0;
    ASSERT_EQ(service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE)->subscribe(session_, &subscription, &id),
              SONDE_OK);
  }

  void TearDown() override {
    fake().release();
    if (instance_ != nullptr) port_->destroy(instance_);
    EXPECT_EQ(sessions_->close(session_), SONDE_OK);
    if (options_ != nullptr) config_->release(options_);
    if (tree_ != nullptr) config_->release(tree_);
  }

  sonde_status create(const std::string &yaml) {
    EXPECT_EQ(config_->parse(yaml.c_str(), "plan.yaml", &tree_), SONDE_OK) << sonde_host()->last_error();
    EXPECT_EQ(config_->check(tree_, "cuda_paging", plugin().options, plugin().option_count, plugin().option_stride,
                             &options_),
              SONDE_OK)
        << sonde_host()->last_error();
    port_ = static_cast<const sonde_port_t *>(plugin().get_interface(SONDE_PORT_INTERFACE));
    return port_->create(session_, options_, &instance_);
  }

  // The plan's lines stand below `plan:`. Without a thread calls come in the order of the launches.
  void start(const std::string &plan, const std::string &more = "thread: false\n") {
    ASSERT_EQ(create("cupti: \"" SONDE_FAKE_PAGING "\"\n" + more + "plan:\n  version: 1\n" + plan), SONDE_OK)
        << sonde_host()->last_error();
    ASSERT_EQ(sessions_->start(session_), SONDE_OK);
    ASSERT_EQ(port_->start(instance_), SONDE_OK) << sonde_host()->last_error();
  }

  void stop() {
    EXPECT_EQ(port_->stop(instance_), SONDE_OK) << sonde_host()->last_error();
    EXPECT_EQ(sessions_->stop(session_, 0), SONDE_OK) << sonde_host()->last_error();
  }

  static void call(uint32_t callback, uint32_t site, const void *parameters, const char *symbol, int32_t result = 0) {
    if (fake().callback == nullptr || fake().enabled.count(callback) == 0) return;
    CallData data = {};
    data.site = site;
    data.parameters = parameters;
    data.symbol = symbol;
    data.result = &result;
    data.context = reinterpret_cast<void *>(7);
    fake().callback(fake().user, cuda::kDomainDriver, callback, &data);
  }

  // A kernel into a stream of the program.
  static void launch(const char *kernel, uint64_t stream = 1) {
    alignas(8) uint8_t parameters[64] = {};
    std::memcpy(parameters + 40, &stream, sizeof(stream));
    call(307, kCallEnters, parameters, kernel);
    fake().add(std::string("launch ") + kernel);
    call(307, kCallLeaves, parameters, kernel);
  }

  void allocate(uint64_t bytes, int32_t result = 0) {
    uint64_t address = kBase + (allocated_++ << 20);
    const AllocateParameters parameters = {&address, bytes, 1};
    call(kMemAllocManaged, kCallEnters, &parameters, nullptr);
    call(kMemAllocManaged, kCallLeaves, &parameters, nullptr, result);
  }

  static void release(uint64_t address) {
    const FreeParameters parameters = {address};
    call(kMemFree, kCallEnters, &parameters, nullptr);
  }

  static std::vector<std::string> calls() {
    const std::lock_guard<std::mutex> hold(fake().mutex);
    return fake().calls;
  }

  bool noted(const std::string &part) {
    const std::lock_guard<std::mutex> hold(received_.mutex);
    return std::any_of(received_.notes.begin(), received_.notes.end(),
                       [&](const std::string &note) { return note.find(part) != std::string::npos; });
  }

  const sonde_config_service_t *config_ = nullptr;
  const sonde_session_service_t *sessions_ = nullptr;
  const sonde_port_t *port_ = nullptr;
  sonde_session_t *session_ = nullptr;
  sonde_config_t *tree_ = nullptr;
  sonde_config_t *options_ = nullptr;
  void *instance_ = nullptr;
  uint64_t allocated_ = 0;
  Received received_;
};

using Calls = std::vector<std::string>;

TEST_F(PagingPort, ALaunchWaitsForTheMovesThatItNeeds) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}, {allocation: 1, bytes: 8Ki}]
  steps:
    - launch: 0
      kernel: first
      moves:
        - {prefetch: 0, offset: 0, bytes: 4096, needed: 0}
        - {prefetch: 1, offset: 4Ki, bytes: 4Ki, needed: 1}
)");
  allocate(4096);
  allocate(8192);
  launch("first");
  launch("second", 2);
  stop();
  EXPECT_EQ(calls(),
            (Calls{"in 100000 4096 on 101", "record 1017 on 101", "in 201000 4096 on 101", "record 1016 on 101",
                   "1 waits for 1017", "launch first", "2 waits for 1016", "launch second"}));
  ASSERT_EQ(received_.moves.size(), 2u);
  EXPECT_EQ(received_.moves[1].address, 0x201000u);
  EXPECT_EQ(received_.moves[1].bytes, 4096u);
  EXPECT_EQ(received_.moves[1].device, 0);
  EXPECT_TRUE(
      noted("applied: 1 of 1 planned launches came (0 shifted), 2 of 2 moves were made: 8192 bytes to the "
            "device, 0 to the host; 2 waits"));
}

TEST_F(PagingPort, MovesThatWaitForTheDeviceBeginBehindTheLaunchesBefore) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}, {allocation: 1, bytes: 4096}]
  steps:
    - launch: 1
      kernel: second
      when: device
      moves:
        - {evict: 0}
        - {prefetch: 1}
)");
  allocate(4096);
  allocate(4096);
  launch("first");
  launch("second");
  stop();
  // Both streams wait for the program's; the prefetch waits for the eviction before it.
  EXPECT_EQ(calls(), (Calls{"launch first", "record 1017 on 1", "101 waits for 1017", "102 waits for 1017",
                            "out 100000 4096 on 102", "record 1001 on 102", "101 waits for 1001",
                            "in 200000 4096 on 101", "launch second"}));
  ASSERT_EQ(received_.moves.size(), 2u);
  EXPECT_EQ(received_.moves[0].device, -1);
}

TEST_F(PagingPort, OnItsThreadTheSameMovesAreMade) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0, needed: 1}]}
)",
        "thread: true\n");
  allocate(4096);
  launch("first");
  launch("second");
  stop();
  const Calls all = calls();
  const auto at = [&](const std::string &one) { return std::find(all.begin(), all.end(), one) - all.begin(); };
  ASSERT_EQ(all.size(), 5u);
  EXPECT_LT(at("in 100000 4096 on 101"), at("record 1017 on 101"));
  EXPECT_LT(at("record 1017 on 101"), at("1 waits for 1017")) << "not before the event is recorded";
  EXPECT_LT(at("1 waits for 1017"), at("launch second"));
}

TEST_F(PagingPort, AdviceIsGivenWhenTheAllocationIsMade) {
  start(R"(
  device: 1
  allocations:
    - allocation: 0
      bytes: 8192
      advise:
        - {advice: prefer_host}
        - {advice: accessed_by, offset: 4096, bytes: 4096}
        - {advice: read_mostly}
        - {advice: prefer_device}
  steps: []
)");
  allocate(8192);
  stop();
  // Numbers of the driver: 3 preferred location, 5 accessed by, 1 read mostly. Devices are shown plus one: 0 the host.
  EXPECT_EQ(calls(), (Calls{"advise 100000 8192 advice 3 device 0", "advise 101000 4096 advice 5 device 2",
                            "advise 100000 8192 advice 1 device 2", "advise 100000 8192 advice 3 device 2"}));
  ASSERT_EQ(received_.advice.size(), 4u);
  EXPECT_EQ(received_.advice[0].device, -1);
  EXPECT_EQ(received_.advice[1].advice, 5u);
}

TEST_F(PagingPort, AnAllocationThatFailedDoesNotCount) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0}]}
)");
  allocate(4096, 2);
  allocate(4096);
  launch("first");
  stop();
  EXPECT_EQ(calls(), (Calls{"in 200000 4096 on 101", "launch first"}));
}

TEST_F(PagingPort, AProgramThatDepartsFromThePlanIsLeftAlone) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0}]}
    - {launch: 1, kernel: second, moves: [{prefetch: 0}]}
)",
        "thread: false\nmismatches: 0\n");
  allocate(4096);
  launch("other");
  launch("second");
  stop();
  EXPECT_EQ(calls(), (Calls{"launch other", "launch second"}));
  EXPECT_TRUE(
      noted("1: the program departs from the plan, which was given up: 1 planned launches did not come (at 1 "
            "another kernel was launched), 0 allocations have another size; the first: launch 0 should be of "
            "first, it is of other"));
}

TEST_F(PagingPort, AnAllocationOfAnotherSizeIsNotMoved) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0}]}
)");
  allocate(4097);
  launch("first");
  stop();
  EXPECT_EQ(calls(), (Calls{"launch first"}));
  EXPECT_TRUE(
      noted("1 allocations have another size; the first: managed allocation 0 should have 4096 bytes, it has "
            "4097"));
  EXPECT_TRUE(noted("1 moves were of memory that was not there"));
}

TEST_F(PagingPort, MemoryThatWasFreedIsNotMoved) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0, needed: 0}]}
)");
  allocate(4096);
  release(kBase);
  launch("first");
  stop();
  EXPECT_EQ(calls(), (Calls{"record 1017 on 101", "1 waits for 1017", "launch first"})) << "an event behind nothing";
  EXPECT_TRUE(noted("1 moves were of memory that was not there"));
}

TEST_F(PagingPort, LaunchesIntoACapturedStreamDoNotCount) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0}]}
)");
  allocate(4096);
  fake().capturing_stream = 9;
  launch("first", 9);
  launch("first", 1);
  stop();
  EXPECT_EQ(calls(), (Calls{"launch first", "in 100000 4096 on 101", "launch first"}));
  EXPECT_TRUE(noted("1 launches into streams that were being captured were left alone"));
}

TEST_F(PagingPort, AGraphLaunchIsALaunchWithoutAName) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 1, kernel: "", moves: [{prefetch: 0, needed: 1}]}
)");
  allocate(4096);
  launch("first");
  struct {
    uint64_t graph = 3;
    uint64_t stream = 4;
  } parameters;
  call(514, kCallEnters, &parameters, "");
  stop();
  EXPECT_EQ(calls(), (Calls{"launch first", "in 100000 4096 on 101", "record 1017 on 101", "4 waits for 1017"}));
}

TEST_F(PagingPort, TheStreamOfAConfigurationIsFound) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0, needed: 0}]}
)");
  allocate(4096);
  alignas(8) uint8_t configuration[64] = {};
  const uint64_t stream = 6;
  std::memcpy(configuration + 32, &stream, sizeof(stream));
  const void *parameters[] = {configuration};
  call(652, kCallEnters, parameters, "first");
  stop();
  EXPECT_EQ(calls().back(), "6 waits for 1017");
}

TEST_F(PagingPort, AThreadsOwnDefaultStreamIsNotTheLegacyOne) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0, needed: 0}]}
)");
  allocate(4096);
  alignas(8) uint8_t parameters[64] = {};
  call(442, kCallEnters, parameters, "first");
  stop();
  EXPECT_EQ(calls().back(), "2 waits for 1017");
}

TEST_F(PagingPort, ALaunchDoesNotWaitForeverForAThreadThatIsStuck) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0, needed: 0}]}
)",
        "thread: true\npatience: 20ms\n");
  allocate(4096);
  {
    const std::lock_guard<std::mutex> hold(fake().mutex);
    fake().holds_prefetch = true;
  }
  const auto begin = std::chrono::steady_clock::now();
  launch("first");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(calls(), (Calls{"launch first"}));
  fake().release();
  stop();
  EXPECT_TRUE(noted("1 launches did not wait for their moves"));
}

TEST_F(PagingPort, CallsThatTheDriverRefusesAreCounted) {
  start(R"(
  allocations: [{allocation: 0, bytes: 4096, advise: [{advice: read_mostly}]}]
  steps:
    - {launch: 0, kernel: first, moves: [{prefetch: 0}]}
)");
  fake().prefetch_result = 1;
  fake().advise_result = 1;
  allocate(4096);
  launch("first");
  stop();
  EXPECT_TRUE(received_.moves.empty());
  EXPECT_TRUE(
      noted("1 calls failed, 0 moves were of memory that was not there, 0 steps were dropped at the end, 1 pieces "
            "of advice were refused, 0 waits; the first: moving memory to the device: CUDA_ERROR_OF_THE_TEST"));
}

TEST_F(PagingPort, WithoutCallbacksThereIsAReason) {
  fake().subscribe_result = cuda::kCuptiMultipleSubscribers;
  start("  steps: []\n");
  stop();
  EXPECT_TRUE(noted("3: the plan is not applied because another profiler holds CUPTI's subscription"));
}

TEST_F(PagingPort, WhileAnotherCollectorHoldsTheDeviceThePlanIsNotApplied) {
  const auto *claims = service<sonde_claim_service_t>(SONDE_CLAIM_SERVICE);
  ASSERT_EQ(claims->take("cuda.device", "activity", "cuda"), SONDE_OK);
  start("  steps: []\n");
  stop();
  EXPECT_EQ(claims->release("cuda.device", "activity"), SONDE_OK);
  EXPECT_TRUE(noted("3: the plan is not applied because"));
}

TEST_F(PagingPort, BesideTracingItIsAppliedWhereThatIsAskedFor) {
  const auto *claims = service<sonde_claim_service_t>(SONDE_CLAIM_SERVICE);
  ASSERT_EQ(claims->take("cuda.device", "activity", "cuda"), SONDE_OK);
  start("  steps: []\n", "beside_activity: true\n");
  stop();
  EXPECT_EQ(claims->release("cuda.device", "activity"), SONDE_OK);
  EXPECT_TRUE(noted("0: applied: 0 of 0 planned launches"));
}

TEST_F(PagingPort, APlanThatSaysNothingIsRefused) {
  EXPECT_EQ(create("thread: true\n"), SONDE_E_INVALID);
  EXPECT_NE(std::string(sonde_host()->last_error()).find("there is no plan"), std::string::npos);
}

TEST_F(PagingPort, AFaultInThePlanIsNamedWithItsPlace) {
  EXPECT_EQ(create("plan:\n  version: 1\n  allocations: [{allocation: 0, bytes: 4096}]\n  steps:\n"
                   "    - {launch: 0, kernel: a, moves: [{prefetch: 1}]}\n"),
            SONDE_E_INVALID);
  const std::string text = sonde_host()->last_error();
  EXPECT_NE(text.find("plan.yaml:5:"), std::string::npos) << text;
  EXPECT_NE(text.find("allocation 1 is not among the plan's allocations"), std::string::npos) << text;
}

}  // namespace
}  // namespace sonde::test
