// The port with the real library: options checked by the host, claims, records through a session to a subscriber.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <sonde/sonde.h>
#include <sonde/toolkit/code_store.h>

#include "driving.h"

namespace sonde::test {
namespace {

template <typename Service>
const Service *service(const char *id) {
  const void *table = nullptr;
  EXPECT_EQ(sonde_host()->get_service(id, sizeof(uint64_t), &table), SONDE_OK) << sonde_host()->last_error();
  return static_cast<const Service *>(table);
}

const sonde_plugin_entry_t &plugin() {
  static const sonde_plugin_entry_t *const entry = [] {
    void *library = dlopen(SONDE_SAMPLING_PORT, RTLD_NOW | RTLD_LOCAL);
    const auto *found = static_cast<const sonde_plugin_entry_t *>(dlsym(library, "sonde_plugin_entry"));
    EXPECT_EQ(found->init(sonde_host()), SONDE_OK) << sonde_host()->last_error();
    return found;
  }();
  return *entry;
}

// What a subscriber received, with its texts.
struct Received {
  const sonde_capture_service_t *capture = nullptr;
  sonde_session_t *session = nullptr;
  std::mutex mutex;
  uint64_t samples = 0;
  std::set<std::string> stalls;
  std::vector<std::string> frames;  // of all lines, innermost first
  std::vector<std::string> notes;   // "severity: text"
  std::vector<std::string> counters;
  std::vector<double> values;
  toolkit::CodeStore codes;

  std::string text(const sonde_batch_t *batch, sonde_string_t id) const {
    const char *found = nullptr;
    return capture->text(session, batch->source, id, &found) == SONDE_OK ? found : "?";
  }
};

void take_in(Received &received, const sonde_batch_t *batch, const sonde_record_t *record) {
  if (record->space == SONDE_SPACE_OBJECT && record->type == SONDE_OBJECT_CODE) {
    EXPECT_TRUE(received.codes.add(record));
  }
  if (record->space == SONDE_SPACE_SESSION && record->type == SONDE_SESSION_NOTE) {
    const auto *note = reinterpret_cast<const sonde_session_note_t *>(record);
    received.notes.push_back(std::to_string(note->severity) + ": " + received.text(batch, note->text));
  }
  if (record->space != SONDE_SPACE_SAMPLE) return;
  if (record->type == SONDE_SAMPLE_PC) {
    const auto *pc = reinterpret_cast<const sonde_sample_pc_t *>(record);
    received.samples += pc->samples;
    received.stalls.insert(received.text(batch, pc->stall));
  } else if (record->type == SONDE_SAMPLE_LINE) {
    const auto *line = reinterpret_cast<const sonde_sample_line_t *>(record);
    const auto *ids =
        reinterpret_cast<const sonde_string_t *>(reinterpret_cast<const char *>(record) + line->frames.offset);
    for (uint32_t i = 0; i < line->frames.count; ++i) received.frames.push_back(received.text(batch, ids[i]));
  } else if (record->type == SONDE_SAMPLE_COUNTER) {
    const auto *counter = reinterpret_cast<const sonde_sample_counter_t *>(record);
    received.counters.push_back(received.text(batch, counter->function) + " " + received.text(batch, counter->metric) +
                                " " + received.text(batch, counter->unit));
    received.values.push_back(counter->value);
  }
}

sonde_status on_batch(void *user, const sonde_batch_t *batch) {
  auto &received = *static_cast<Received *>(user);
  std::lock_guard<std::mutex> hold(received.mutex);
  for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
       record = sonde_batch_next(batch, record)) {
    take_in(received, batch, record);
  }
  return SONDE_OK;
}

class SamplingSession : public testing::Test {
 protected:
  void SetUp() override {
    fake().reset();
    config_service_ = service<sonde_config_service_t>(SONDE_CONFIG_SERVICE);
    session_service_ = service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
    claims_ = service<sonde_claim_service_t>(SONDE_CLAIM_SERVICE);
    ASSERT_EQ(session_service_->open(nullptr, &session_), SONDE_OK);
    received_.capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
    received_.session = session_;
    subscribe();
  }

  void TearDown() override {
    if (instance_ != nullptr) port_->destroy(instance_);
    EXPECT_EQ(session_service_->close(session_), SONDE_OK);
    if (options_ != nullptr) config_service_->release(options_);
    if (tree_ != nullptr) config_service_->release(tree_);
  }

  void subscribe() {
    const sonde_interest_t interests[] = {{SONDE_SPACE_SAMPLE, SONDE_LEVEL_RECORDS, UINT64_MAX},
                                          {SONDE_SPACE_OBJECT, SONDE_LEVEL_RECORDS, UINT64_MAX},
                                          {SONDE_SPACE_SESSION, SONDE_LEVEL_RECORDS, UINT64_MAX}};
    sonde_subscription_t subscription = {};
    subscription.struct_size = sizeof(subscription);
    subscription.name = "test";
    subscription.interests = interests;
    subscription.interest_count = 3;
    subscription.on_batch = on_batch;
    subscription.user = &received_;
    uint64_t id = 0;
    ASSERT_EQ(service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE)->subscribe(session_, &subscription, &id),
              SONDE_OK);
  }

  sonde_status check(const std::string &yaml) {
    EXPECT_EQ(config_service_->parse(yaml.c_str(), "test", &tree_), SONDE_OK) << sonde_host()->last_error();
    return config_service_->check(tree_, "cuda_sampling", plugin().options, plugin().option_count,
                                  plugin().option_stride, &options_);
  }

  void start(const std::string &more) {
    ASSERT_EQ(check("cupti: " SONDE_FAKE_SAMPLING "\n" + more), SONDE_OK) << sonde_host()->last_error();
    port_ = static_cast<const sonde_port_t *>(plugin().get_interface(SONDE_PORT_INTERFACE));
    ASSERT_EQ(port_->create(session_, options_, &instance_), SONDE_OK) << sonde_host()->last_error();
    ASSERT_EQ(session_service_->start(session_), SONDE_OK);
    ASSERT_EQ(port_->start(instance_), SONDE_OK) << sonde_host()->last_error();
  }

  void stop() {
    EXPECT_EQ(port_->stop(instance_), SONDE_OK) << sonde_host()->last_error();
    EXPECT_EQ(session_service_->stop(session_, 0), SONDE_OK) << sonde_host()->last_error();
  }

  const sonde_config_service_t *config_service_ = nullptr;
  const sonde_session_service_t *session_service_ = nullptr;
  const sonde_claim_service_t *claims_ = nullptr;
  const sonde_port_t *port_ = nullptr;
  sonde_session_t *session_ = nullptr;
  sonde_config_t *tree_ = nullptr;
  sonde_config_t *options_ = nullptr;
  void *instance_ = nullptr;
  Received received_;
  void *const context_ = handle(0x2000);
};

TEST_F(SamplingSession, SamplesLinesAndCodeReachASubscriber) {
  start("mode: continuous\n");
  make_context(context_, 7);
  const auto cubin = read_file("hot_line.cubin");
  add_sample(context_, sample_at(load_module(context_, cubin), 0xa0, 0, 5));
  stop();
  EXPECT_EQ(received_.samples, 5u);
  EXPECT_EQ(received_.stalls, std::set<std::string>{"long_scoreboard"});
  EXPECT_EQ(received_.frames,
            (std::vector<std::string>{"/tmp/cubins/hot_line.cu:3@_Z5innerfi", "/tmp/cubins/hot_line.cu:6@_Z6middlefi",
                                      "/tmp/cubins/hot_line.cu:10@hot"}));
  ASSERT_EQ(received_.codes.hashes().size(), 1u);
  const auto stored = received_.codes.find(received_.codes.hashes().front());
  EXPECT_TRUE(std::equal(stored.begin(), stored.end(), cubin.begin(), cubin.end()));
}

TEST_F(SamplingSession, MetricsComeFromAListOfTheConfiguration) {
  {
    std::lock_guard<std::recursive_mutex> hold(fake().mutex);
    fake().contexts[context_].id = 7;
  }
  start("metrics: [sm__cycles_elapsed.max, dram__bytes_read.sum]\n");
  DriverCallData call = {};
  call.symbol = "kernel";
  call.context = context_;
  for (const uint32_t site : {0u, kCallLeaves}) {
    call.site = site;
    fake().callback(fake().user, kDomainDriver, kDriverLaunchCalls[3], &call);
  }
  stop();
  EXPECT_EQ(received_.counters,
            (std::vector<std::string>{"kernel sm__cycles_elapsed.max cycle", "kernel dram__bytes_read.sum byte"}));
  EXPECT_EQ(received_.values, (std::vector<double>{1000, 1001}));
}

TEST_F(SamplingSession, WhileTheDeviceIsTracedItIsNotSampled) {
  ASSERT_EQ(claims_->take("cuda.device", "activity", "cuda"), SONDE_OK);
  start("");
  stop();
  EXPECT_EQ(claims_->release("cuda.device", "activity"), SONDE_OK);
  const std::string begin = "3: no PC samples because 'cuda.device' is in use for activity by cuda";
  bool noted = false;
  for (const std::string &note : received_.notes) noted |= note.compare(0, begin.size(), begin) == 0;
  EXPECT_TRUE(noted);
  EXPECT_EQ(fake().subscribes, 0u);
}

TEST_F(SamplingSession, ClaimsAreGivenBack) {
  start("");
  EXPECT_EQ(claims_->take("cuda.device", "activity", "cuda"), SONDE_E_BUSY);
  stop();
  EXPECT_EQ(claims_->take("cuda.device", "activity", "cuda"), SONDE_OK);
  EXPECT_EQ(claims_->release("cuda.device", "activity"), SONDE_OK);
}

TEST(SamplingExports, AnInstructionOfAFileHasItsSource) {
  ASSERT_EQ(plugin().export_count, 1u);
  ASSERT_STREQ(plugin().exports[0].name, "source_of");
  const auto source_of = reinterpret_cast<sonde_status (*)(const char *, const char *, uint64_t, const char **)>(
      plugin().exports[0].function);
  const std::string folder = SONDE_TEST_SOURCE_DIR "/tests/data/cubins/";
  const char *text = nullptr;
  ASSERT_EQ(source_of((folder + "hot_line.cubin").c_str(), "hot", 0x830, &text), SONDE_OK);
  EXPECT_STREQ(text, "/tmp/cubins/hot_line.cu:6@_Z6middlefi < /tmp/cubins/hot_line.cu:10@hot");
  ASSERT_EQ(source_of((folder + "hot_line.cubin").c_str(), "cold", 0, &text), SONDE_OK);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(source_of((folder + "hot_line.cu").c_str(), "hot", 0, &text), SONDE_E_PARSE);
  EXPECT_EQ(source_of((folder + "nothing").c_str(), "hot", 0, &text), SONDE_E_IO);
}

TEST_F(SamplingSession, AModeThatIsNoneIsRefused) { EXPECT_EQ(check("mode: sometimes\n"), SONDE_E_INVALID); }

}  // namespace
}  // namespace sonde::test
