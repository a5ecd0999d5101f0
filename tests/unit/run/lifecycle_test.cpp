#include <sonde/analysis.h>
#include <sonde/delivery.h>
#include <sonde/plugin.h>
#include <sonde/port.h>
#include <sonde/spaces/framework.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "fixture.h"

namespace sonde::run {
namespace {

// An analysis that counts marks and fails where its option says so.
struct Counter {
  sonde_session_t *session = nullptr;
  std::string fails;
  std::atomic<uint64_t> marks{0};
};

std::atomic<int> counters_alive{0};

sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **instance) {
  const char *fails = "";
  service<sonde_config_service_t>(SONDE_CONFIG_SERVICE).get_text(options, "fails", &fails);
  if (std::strcmp(fails, "create") == 0) return fail(SONDE_E_USER, "no counter today");
  auto *const counter = new Counter;
  counter->session = session;
  counter->fails = fails;
  *instance = counter;
  ++counters_alive;
  return SONDE_OK;
}

sonde_status on_batch(void *user, const sonde_batch_t *batch) {
  for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
       record = sonde_batch_next(batch, record)) {
    if (record->space == SONDE_SPACE_FRAMEWORK && record->type == SONDE_FRAMEWORK_MARK) {
      static_cast<Counter *>(user)->marks.fetch_add(1);
    }
  }
  return SONDE_OK;
}

sonde_status start(void *instance) {
  auto &counter = *static_cast<Counter *>(instance);
  if (counter.fails == "start") return fail(SONDE_E_USER, "not started");
  const sonde_interest_t interest{SONDE_SPACE_FRAMEWORK, SONDE_LEVEL_RECORDS, uint64_t{1} << SONDE_FRAMEWORK_MARK};
  sonde_subscription_t subscription{};
  subscription.struct_size = sizeof(subscription);
  subscription.queue_policy = SONDE_QUEUE_WAIT;
  subscription.name = "counter";
  subscription.interests = &interest;
  subscription.interest_count = 1;
  subscription.on_batch = on_batch;
  subscription.user = instance;
  uint64_t id = 0;
  return service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE).subscribe(counter.session, &subscription, &id);
}

sonde_status finish(void *instance) {
  auto &counter = *static_cast<Counter *>(instance);
  if (counter.fails == "finish") return fail(SONDE_E_USER, "not finished");
  const auto &result = service<sonde_result_service_t>(SONDE_RESULT_SERVICE);
  const sonde_column_spec_t column{"marks", "1", "marks seen", SONDE_VALUE_U64, 0};
  sonde_table_spec_t spec{};
  spec.struct_size = sizeof(spec);
  spec.column_count = 1;
  spec.origin = "counter";
  spec.name = "marks";
  spec.title = "Marks";
  spec.help = "";
  spec.columns = &column;
  spec.column_stride = sizeof(column);
  sonde_table_t *table = nullptr;
  if (const sonde_status status = result.create_table(counter.session, &spec, &table); status != SONDE_OK)
    return status;
  sonde_value_t value{};
  value.kind = SONDE_VALUE_U64;
  value.as.u64 = counter.marks.load();
  return result.add_row(table, &value, 1);
}

void destroy(void *instance) {
  delete static_cast<Counter *>(instance);
  --counters_alive;
}

constexpr sonde_analysis_t kAnalysis = {sizeof(sonde_analysis_t), 0, create, start, finish, destroy};

// A port that counts what the run does with it.
struct PortCalls {
  std::atomic<int> starts{0}, flushes{0}, forced{0}, demands{0}, stops{0}, destroyed{0};
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
} port_calls;

sonde_status port_create(sonde_session_t *, const sonde_config_t *, void **instance) {
  *instance = &port_calls;
  return SONDE_OK;
}
sonde_status port_start(void *) { return ++port_calls.starts, SONDE_OK; }
sonde_status port_demand(void *) {
  if (++port_calls.inside != 1) port_calls.overlapped = true;
  ++port_calls.demands;
  --port_calls.inside;
  return SONDE_OK;
}
sonde_status port_flush(void *, uint32_t forced) {
  if (++port_calls.inside != 1) port_calls.overlapped = true;
  ++(forced != 0 ? port_calls.forced : port_calls.flushes);
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  --port_calls.inside;
  return SONDE_OK;
}
sonde_status port_stop(void *) { return ++port_calls.stops, SONDE_OK; }
void port_destroy(void *) { ++port_calls.destroyed; }
sonde_status port_entry(uint32_t which, void *) {
  return which == SONDE_ENTRY_CUDA_INJECTION ? SONDE_OK : SONDE_E_UNIMPLEMENTED;
}
constexpr sonde_port_t kPort = {sizeof(sonde_port_t), 0,         port_create,  port_start, port_demand,
                                port_flush,           port_stop, port_destroy, port_entry};

const void *get_interface(const char *id) {
  if (std::strcmp(id, SONDE_ANALYSIS_INTERFACE) == 0) return &kAnalysis;
  if (std::strcmp(id, SONDE_PORT_INTERFACE) == 0) return &kPort;
  return nullptr;
}

constexpr sonde_option_t kOptions[] = {
    {"fails", "", "where it fails", "", "|create|start|finish", SONDE_OPTION_TEXT, 0}};

class LifecycleTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    static const bool added = [] {
      static sonde_plugin_entry_t entry{};
      entry.struct_size = sizeof(entry);
      entry.abi_major = SONDE_ABI_MAJOR;
      entry.id = "counter";
      entry.version = "1";
      entry.options = kOptions;
      entry.option_count = 1;
      entry.option_stride = sizeof(sonde_option_t);
      entry.get_interface = get_interface;
      return service<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE).add_static(&entry) == SONDE_OK;
    }();
    ASSERT_TRUE(added);
  }
  void TearDown() override {
    EXPECT_EQ(counters_alive.load(), 0);
    RunTest::TearDown();
  }

  void emit_marks(sonde_session_t *session, int count) {
    for (int index = 0; index < count; ++index) {
      sonde_framework_scope_t mark{};
      SONDE_RECORD_INIT(&mark, SONDE_SPACE_FRAMEWORK, SONDE_FRAMEWORK_MARK, sonde_stamp());
      ASSERT_EQ(services_->capture->emit(session, &mark.header), SONDE_OK) << last_error();
    }
  }
  sonde_session_t *session_of(sonde_run_t *run) {
    sonde_session_t *session = nullptr;
    EXPECT_EQ(run_->session(run, &session), SONDE_OK);
    return session;
  }
  std::vector<sonde_finding_t> findings(sonde_session_t *session) {
    uint64_t count = 0;
    services_->result->finding_count(session, &count);
    std::vector<sonde_finding_t> all;
    for (uint64_t index = 0; index < count; ++index) {
      const sonde_finding_t *finding = nullptr;
      services_->result->finding_at(session, index, &finding);
      all.push_back(*finding);
    }
    return all;
  }
};

TEST_F(LifecycleTest, RunsAnalysesAndWritesOutputs) {
  sonde_run_t *const run =
      open("analyses: {counter: {}}\noutputs: [{format: json, path: " + (folder_ / "report.json").string() + "}]\n");
  ASSERT_NE(run, nullptr) << error_;
  ASSERT_EQ(run_->start(run), SONDE_OK) << last_error();
  emit_marks(session_of(run), 100);
  ASSERT_EQ(run_->finish(run), SONDE_OK) << last_error();
  const auto json = nlohmann::json::parse(read(folder_ / "report.json"));
  EXPECT_EQ(json["tables"]["counter.marks"]["rows"][0][0], 100) << json.dump();
  EXPECT_EQ(run_->finish(run), SONDE_E_STATE);
  EXPECT_EQ(run_->start(run), SONDE_E_STATE);
  EXPECT_EQ(run_->close(run), SONDE_OK);
  EXPECT_EQ(run_->close(run), SONDE_E_INVALID);
}

TEST_F(LifecycleTest, RecordsAndReplaysTheSameBytesTwice) {
  const std::string capture = (folder_ / "capture").string();
  sonde_run_t *const run = open("record: {path: " + capture + "}\n");
  ASSERT_NE(run, nullptr) << error_;
  ASSERT_EQ(run_->start(run), SONDE_OK) << last_error();
  emit_marks(session_of(run), 1000);
  ASSERT_EQ(run_->finish(run), SONDE_OK) << last_error();
  ASSERT_EQ(run_->close(run), SONDE_OK);
  EXPECT_TRUE(std::filesystem::exists(capture + "/run.json"));
  std::string reports[2];
  for (std::string &report : reports) {
    const std::string path = (folder_ / "report.json").string();
    sonde_run_t *const replay = open("analyses: {counter: {}}\noutputs: [{format: json, path: " + path + "}]\n");
    ASSERT_NE(replay, nullptr) << error_;
    ASSERT_EQ(run_->replay(replay, capture.c_str(), nullptr, nullptr), SONDE_OK) << last_error();
    ASSERT_EQ(run_->finish(replay), SONDE_OK) << last_error();
    ASSERT_EQ(run_->close(replay), SONDE_OK);
    report = read(path);
  }
  EXPECT_EQ(nlohmann::json::parse(reports[0])["tables"]["counter.marks"]["rows"][0][0], 1000);
  EXPECT_EQ(reports[0], reports[1]);
}

TEST_F(LifecycleTest, ARunWithoutEventsLeavesNoCaptureFile) {
  const std::string capture = (folder_ / "capture").string();
  sonde_run_t *const run = open("record: {path: " + capture + "}\n");
  ASSERT_NE(run, nullptr) << error_;
  EXPECT_EQ(run_->close(run), SONDE_OK);
  for (const auto &entry : std::filesystem::directory_iterator(capture)) ADD_FAILURE() << entry.path();
}

TEST_F(LifecycleTest, AFailingAnalysisIsAFindingAndTheRunGoesOn) {
  for (const std::string function : {"create", "start", "finish"}) {
    sonde_run_t *const run = open("analyses: [{counter: {fails: " + function + "}}, counter]\n");
    ASSERT_NE(run, nullptr) << error_;
    ASSERT_EQ(run_->start(run), SONDE_OK) << last_error();
    emit_marks(session_of(run), 10);
    ASSERT_EQ(run_->finish(run), SONDE_OK) << last_error();
    const auto all = findings(session_of(run));
    ASSERT_EQ(all.size(), 1u) << function;
    EXPECT_STREQ(all[0].rule, "run.analysis_failed");
    EXPECT_EQ(all[0].severity, SONDE_SEVERITY_ERROR);
    EXPECT_EQ(all[0].verdict, SONDE_VERDICT_UNSUPPORTED);
    EXPECT_EQ(std::string(all[0].message), "analysis counter failed in " + function);
    EXPECT_STRNE(all[0].reason, "");
    sonde_table_t *table = nullptr;
    EXPECT_EQ(services_->result->find_table(session_of(run), "counter", "marks", &table), SONDE_OK) << function;
    EXPECT_EQ(run_->close(run), SONDE_OK);
  }
}

TEST_F(LifecycleTest, OpenUndoesEverythingOnAnError) {
  EXPECT_EQ(open("analyses: [counter, nobody]\nrecord: {path: " + (folder_ / "c").string() + "}\n"), nullptr);
  EXPECT_EQ(status_, SONDE_E_NOT_FOUND);
  EXPECT_NE(error_.find("run.yaml:1:21: no plugin 'nobody'; looked in "), std::string::npos) << error_;
  EXPECT_EQ(open("analyses: {counter: {fials: start}}\n"), nullptr);
  EXPECT_NE(error_.find("run.yaml:1:22: unknown option 'fials' of counter; did you mean 'fails'?"), std::string::npos)
      << error_;
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "c"));
  // Sessions are few: leaking one at each error would end here.
  for (int index = 0; index < 40; ++index) EXPECT_EQ(open("analyses: [nobody]\n"), nullptr);
  EXPECT_NE(error_.find("no plugin 'nobody'"), std::string::npos) << error_;
}

TEST_F(LifecycleTest, FlushesPortsAndPassesDemandOnNeverTwoAtATime) {
  sonde_run_t *const run = open("ports: {counter: {}}\nsession: {flush: 2ms}\n");
  ASSERT_NE(run, nullptr) << error_;
  ASSERT_EQ(run_->start(run), SONDE_OK) << last_error();
  EXPECT_EQ(port_calls.starts.load(), 1);
  const int before = port_calls.demands.load();
  const auto &delivery = service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE);
  for (int index = 0; index < 20; ++index) {
    const sonde_interest_t interest{SONDE_SPACE_DEVICE, SONDE_LEVEL_RECORDS, UINT64_MAX};
    sonde_subscription_t subscription{};
    subscription.struct_size = sizeof(subscription);
    subscription.name = "late";
    subscription.interests = &interest;
    subscription.interest_count = 1;
    subscription.on_batch = [](void *, const sonde_batch_t *) -> sonde_status { return SONDE_OK; };
    uint64_t id = 0;
    ASSERT_EQ(delivery.subscribe(session_of(run), &subscription, &id), SONDE_OK);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_EQ(delivery.unsubscribe(session_of(run), id), SONDE_OK);
  }
  EXPECT_GT(port_calls.demands.load(), before);
  EXPECT_GT(port_calls.flushes.load(), 3);
  ASSERT_EQ(run_->finish(run), SONDE_OK) << last_error();
  EXPECT_EQ(port_calls.forced.load(), 1);
  EXPECT_EQ(port_calls.stops.load(), 1);
  EXPECT_FALSE(port_calls.overlapped.load());
  EXPECT_EQ(run_->close(run), SONDE_OK);
  EXPECT_EQ(port_calls.destroyed.load(), 1);
}

TEST_F(LifecycleTest, AnOutputThatCannotBeWrittenIsAnErrorOfFinish) {
  sonde_run_t *const run =
      open("analyses: [counter]\noutputs: [{format: json, path: /nonexistent/r.json}, {format: csv, path: " +
           (folder_ / "r.csv").string() + "}]\n");
  ASSERT_NE(run, nullptr) << error_;
  ASSERT_EQ(run_->start(run), SONDE_OK);
  EXPECT_EQ(run_->finish(run), SONDE_E_IO);
  EXPECT_NE(std::string(last_error()).find("/nonexistent/r.json"), std::string::npos) << last_error();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "r.csv")) << "the others are written all the same";
  EXPECT_EQ(run_->close(run), SONDE_OK);
}

TEST_F(LifecycleTest, ReplayOfNothingIsAnError) {
  sonde_run_t *const run = open("analyses: [counter]\n");
  ASSERT_NE(run, nullptr) << error_;
  EXPECT_LT(run_->replay(run, "/nonexistent/capture", nullptr, nullptr), 0);
  EXPECT_NE(std::string(last_error()).find("/nonexistent/capture"), std::string::npos);
  EXPECT_EQ(run_->close(run), SONDE_OK);
}

TEST_F(LifecycleTest, InjectNeedsTheEnvironment) {
  ::unsetenv("SONDE_RUN");
  EXPECT_EQ(run_->inject(SONDE_ENTRY_CUDA_INJECTION, nullptr), SONDE_E_NOT_FOUND);
  EXPECT_EQ(run_->inject(SONDE_ENTRY_EXIT, nullptr), SONDE_OK);
  EXPECT_EQ(run_->inject(SONDE_ENTRY_FORK, nullptr), SONDE_OK);
}

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Many short sessions must not add up.
TEST_F(LifecycleTest, AThousandShortRunsKeepMemoryFlat) {
  const auto once = [&] {
    sonde_run_t *const run = open("session: {memory: 4Mi, ring: 64Ki}\nanalyses: [counter]\n");
    ASSERT_NE(run, nullptr) << error_;
    ASSERT_EQ(run_->start(run), SONDE_OK) << last_error();
    std::thread([&] { emit_marks(session_of(run), 20); }).join();
    ASSERT_EQ(run_->finish(run), SONDE_OK) << last_error();
    ASSERT_EQ(run_->close(run), SONDE_OK);
  };
  for (int index = 0; index < 100; ++index) once();
  const uint64_t before = resident_bytes();
  for (int index = 0; index < 1000; ++index) once();
  const uint64_t after = resident_bytes();
  EXPECT_LT(after, before + (8u << 20)) << "from " << before << " to " << after << " bytes";
}

}  // namespace
}  // namespace sonde::run
