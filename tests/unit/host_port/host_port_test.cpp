// The port `host` as a user meets it: loaded by path, its functions called by name through their signatures.
#include <gtest/gtest.h>
#include <sonde/sonde.h>

#include <mutex>
#include <string>
#include <vector>

namespace {

template <typename Service>
const Service &service(const char *id) {
  const void *table = nullptr;
  if (sonde_host()->get_service(id, sizeof(uint32_t), &table) != SONDE_OK) std::abort();
  return *static_cast<const Service *>(table);
}

struct Seen {
  std::mutex mutex;
  std::vector<std::string> lines;
};

std::string text_of(const sonde_batch_t *batch, sonde_string_t id) {
  const char *text = "?";
  service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE).text(batch->session, batch->source, id, &text);
  return text;
}

template <typename Record>
const Record &as(const sonde_record_t *record) {
  return *reinterpret_cast<const Record *>(record);
}

sonde_status on_batch(void *user, const sonde_batch_t *batch) {
  auto &seen = *static_cast<Seen *>(user);
  const std::lock_guard lock(seen.mutex);
  for (const sonde_record_t *record = sonde_batch_next(batch, nullptr); record != nullptr;
       record = sonde_batch_next(batch, record)) {
    const uint32_t kind = record->space * 100u + record->type;
    switch (kind) {
      case 603: {
        const auto &scope = as<sonde_framework_scope_t>(record);
        seen.lines.push_back("push " + text_of(batch, scope.name) + " " + text_of(batch, scope.domain));
        break;
      }
      case 604:
        seen.lines.push_back("pop " + text_of(batch, as<sonde_framework_scope_end_t>(record).domain));
        break;
      case 601: {
        const auto &scope = as<sonde_framework_scope_t>(record);
        seen.lines.push_back("operator " + text_of(batch, scope.name) + " " + std::to_string(scope.scope));
        break;
      }
      case 602:
        seen.lines.push_back("operator end " + std::to_string(as<sonde_framework_scope_end_t>(record).scope));
        break;
      case 607:
        seen.lines.push_back("mark " + text_of(batch, as<sonde_framework_scope_t>(record).name));
        break;
      case 608: {
        const auto &metric = as<sonde_framework_metric_t>(record);
        seen.lines.push_back("metric " + text_of(batch, metric.name) + " " + std::to_string(metric.value) + " " +
                             text_of(batch, metric.unit) + " " + std::to_string(metric.rule));
        break;
      }
      case 401: {
        const auto &block = as<sonde_memory_allocate_t>(record);
        seen.lines.push_back("allocate " + std::to_string(block.address) + " " + std::to_string(block.bytes));
        break;
      }
      case 402:
        seen.lines.push_back("free " + std::to_string(as<sonde_memory_free_t>(record).address));
        break;
      case 301: {
        const auto &kernel = as<sonde_device_kernel_t>(record);
        seen.lines.push_back("kernel " + text_of(batch, kernel.name) + " " +
                             std::to_string(kernel.end - kernel.header.time) + " " + std::to_string(kernel.stream));
        break;
      }
      default:
        break;
    }
  }
  return SONDE_OK;
}

class HostPort : public testing::Test {
 protected:
  void SetUp() override {
    const sonde_plugin_entry_t *entry = nullptr;
    ASSERT_EQ(plugins_.load(HOST_PORT, &entry), SONDE_OK) << sonde_host()->last_error();
    ASSERT_EQ(sessions_.open(nullptr, &session_), SONDE_OK);
  }
  void TearDown() override { sessions_.close(session_); }

  void subscribe(std::vector<sonde_interest_t> interests) {
    sonde_subscription_t subscription{};
    subscription.struct_size = sizeof(subscription);
    subscription.queue_policy = SONDE_QUEUE_WAIT;
    subscription.name = "test";
    subscription.interests = interests.data();
    subscription.interest_count = static_cast<uint32_t>(interests.size());
    subscription.on_batch = on_batch;
    subscription.user = &seen_;
    uint64_t id = 0;
    ASSERT_EQ(service<sonde_delivery_service_t>(SONDE_DELIVERY_SERVICE).subscribe(session_, &subscription, &id),
              SONDE_OK);
    ASSERT_EQ(sessions_.start(session_), SONDE_OK);
  }

  template <typename... Arguments>
  sonde_status call(const char *name, Arguments... arguments) {
    sonde_export_t function{};
    EXPECT_EQ(plugins_.function("host", name, &function), SONDE_OK) << sonde_host()->last_error();
    return reinterpret_cast<sonde_status (*)(Arguments...)>(function.function)(arguments...);
  }

  const sonde_plugins_service_t &plugins_ = service<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE);
  const sonde_session_service_t &sessions_ = service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
  sonde_session_t *session_ = nullptr;
  Seen seen_;
};

TEST_F(HostPort, EmitsByNameWhatIsWanted) {
  subscribe({{SONDE_SPACE_FRAMEWORK, SONDE_LEVEL_RECORDS, UINT64_MAX},
             {SONDE_SPACE_MEMORY, SONDE_LEVEL_RECORDS, UINT64_MAX},
             {SONDE_SPACE_DEVICE, SONDE_LEVEL_RECORDS, UINT64_MAX}});
  EXPECT_EQ(call("scope_push", session_, "step", "python"), SONDE_OK);
  EXPECT_EQ(call("operator_begin", session_, "add", uint64_t{9}), SONDE_OK);
  EXPECT_EQ(call("operator_end", session_, uint64_t{9}), SONDE_OK);
  EXPECT_EQ(call("metric", session_, "loss", 0.5, "1", uint32_t{2}), SONDE_OK);
  EXPECT_EQ(call("mark", session_, "here", static_cast<const char *>(nullptr)), SONDE_OK);
  EXPECT_EQ(call("allocate", session_, uint64_t{0xffff800012345678}, uint64_t{64}, "block"), SONDE_OK);
  EXPECT_EQ(call("release", session_, uint64_t{0xffff800012345678}), SONDE_OK);
  uint64_t begin = 0;
  EXPECT_EQ(call("now", &begin), SONDE_OK);
  EXPECT_GT(begin, 0u);
  EXPECT_EQ(call("kernel", session_, "work", begin, begin + 100, uint64_t{3}), SONDE_OK);
  EXPECT_EQ(call("scope_pop", session_, "python"), SONDE_OK);
  ASSERT_EQ(sessions_.stop(session_, 0), SONDE_OK);
  EXPECT_EQ(seen_.lines,
            (std::vector<std::string>{"push step python", "operator add 9", "operator end 9",
                                      "metric loss 0.500000 1 2", "mark here", "allocate 18446603336526616184 64",
                                      "free 18446603336526616184", "kernel work 100 3", "pop python"}));
}

TEST_F(HostPort, EmitsNothingThatNobodyWants) {
  subscribe({{SONDE_SPACE_FRAMEWORK, SONDE_LEVEL_RECORDS, uint64_t{1} << SONDE_FRAMEWORK_MARK}});
  EXPECT_EQ(call("allocate", session_, uint64_t{1}, uint64_t{2}, "x"), SONDE_OK);
  EXPECT_EQ(call("mark", session_, "only", ""), SONDE_OK);
  ASSERT_EQ(sessions_.stop(session_, 0), SONDE_OK);
  EXPECT_EQ(seen_.lines, std::vector<std::string>{"mark only"});
}

TEST_F(HostPort, NoSessionMeansTheCurrentOne) {
  subscribe({{SONDE_SPACE_FRAMEWORK, SONDE_LEVEL_RECORDS, UINT64_MAX}});
  sonde_session_t *const none = nullptr;
  EXPECT_EQ(call("mark", none, "lost", ""), SONDE_E_NOT_FOUND);
  ASSERT_EQ(sessions_.set_current(session_), SONDE_OK);
  EXPECT_EQ(call("mark", none, "found", ""), SONDE_OK);
  ASSERT_EQ(sessions_.set_current(nullptr), SONDE_OK);
  ASSERT_EQ(sessions_.stop(session_, 0), SONDE_OK);
  EXPECT_EQ(seen_.lines, std::vector<std::string>{"mark found"});
}

TEST_F(HostPort, RefusesAMetricRuleThatIsNone) {
  subscribe({{SONDE_SPACE_FRAMEWORK, SONDE_LEVEL_RECORDS, UINT64_MAX}});
  EXPECT_EQ(call("metric", session_, "x", 1.0, "", uint32_t{3}), SONDE_E_RANGE);
}

TEST_F(HostPort, IsAPortThatRunsInARun) {
  const auto &run_service = service<sonde_run_service_t>(SONDE_RUN_SERVICE);
  const auto &config = service<sonde_config_service_t>(SONDE_CONFIG_SERVICE);
  sonde_config_t *tree = nullptr;
  ASSERT_EQ(config.parse("ports: {host: {notes: true}}\n", "test", &tree), SONDE_OK);
  sonde_run_t *run = nullptr;
  ASSERT_EQ(run_service.open(tree, &run), SONDE_OK) << sonde_host()->last_error();
  EXPECT_EQ(config.release(tree), SONDE_OK);
  EXPECT_EQ(run_service.start(run), SONDE_OK) << sonde_host()->last_error();
  EXPECT_EQ(run_service.finish(run), SONDE_OK) << sonde_host()->last_error();
  EXPECT_EQ(run_service.close(run), SONDE_OK);
}

}  // namespace
