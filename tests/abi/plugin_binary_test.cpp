// Plugin binaries of other times against today's host: those built from released headers run, those that need
// another host are refused and leave nothing behind.
#include <gtest/gtest.h>
#include <sonde/sonde.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

template <typename Service>
const Service *service(const char *id) {
  const void *table = nullptr;
  EXPECT_EQ(sonde_host()->get_service(id, sizeof(Service), &table), SONDE_OK) << id;
  return static_cast<const Service *>(table);
}

// The plugin built from today's headers, and the binaries kept of each release of this interface.
std::vector<std::string> runnable_binaries() {
  std::vector<std::string> binaries = {SONDE_TODAYS_PLUGIN};
  const std::filesystem::path released(SONDE_RELEASED_FOLDER);
  if (!std::filesystem::exists(released)) return binaries;
  for (const auto &release : std::filesystem::directory_iterator(released)) {
    std::ifstream header(release.path() / "include/sonde/version.h");
    std::string line;
    while (std::getline(header, line)) {
      if (line == "#define SONDE_ABI_MAJOR " + std::to_string(SONDE_ABI_MAJOR)) {
        binaries.push_back(release.path() / "plugin.so");
      }
    }
  }
  return binaries;
}

bool is_mapped(const std::string &file) {
  std::ifstream maps("/proc/self/maps");
  const std::string real = std::filesystem::canonical(file);
  for (std::string line; std::getline(maps, line);) {
    if (line.find(real) != std::string::npos) return true;
  }
  return false;
}

sonde_host_call_t host_call(uint64_t begin, uint64_t end) {
  sonde_host_call_t call = {};
  SONDE_RECORD_INIT(&call, SONDE_SPACE_HOST, SONDE_HOST_CALL, begin);
  call.end = end;
  return call;
}

}  // namespace

// One binary in one process (ctest runs each case alone): the id of all of them is the same.
class RunnableBinary : public testing::TestWithParam<std::string> {};

TEST_P(RunnableBinary, CountsThreeCallsAndPublishesThem) {
  const auto *plugins = service<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE);
  const auto *sessions = service<sonde_session_service_t>(SONDE_SESSION_SERVICE);
  const auto *capture = service<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  const auto *results = service<sonde_result_service_t>(SONDE_RESULT_SERVICE);

  const sonde_plugin_entry_t *entry = nullptr;
  ASSERT_EQ(plugins->load(GetParam().c_str(), &entry), SONDE_OK) << sonde_host()->last_error();
  EXPECT_STREQ(entry->id, "oldest");
  const void *interface = nullptr;
  ASSERT_EQ(plugins->interface("oldest", SONDE_ANALYSIS_INTERFACE, SONDE_NEED(sonde_analysis_t, destroy), &interface),
            SONDE_OK);
  const auto *analysis = static_cast<const sonde_analysis_t *>(interface);

  sonde_session_t *session = nullptr;
  ASSERT_EQ(sessions->open(nullptr, &session), SONDE_OK);
  void *instance = nullptr;
  ASSERT_EQ(analysis->create(session, nullptr, &instance), SONDE_OK);
  ASSERT_EQ(analysis->start(instance), SONDE_OK) << sonde_host()->last_error();
  ASSERT_EQ(sessions->start(session), SONDE_OK);

  // A stream in ns, so that the sum of the lengths is known: 10 + 20 + 30.
  uint64_t stream = 0;
  ASSERT_EQ(capture->open_stream(session, "calls", SONDE_CLOCK_UNIX_NS, &stream), SONDE_OK);
  const uint64_t now = 1'800'000'000'000'000'000u;
  const sonde_host_call_t calls[] = {host_call(now, now + 10), host_call(now + 50, now + 70),
                                     host_call(now + 100, now + 130)};
  uint8_t *buffer = nullptr;
  ASSERT_EQ(capture->acquire(session, stream, sizeof(calls), &buffer), SONDE_OK);
  memcpy(buffer, calls, sizeof(calls));
  ASSERT_EQ(capture->submit(session, stream, buffer, sizeof(calls), 0), SONDE_OK);

  ASSERT_EQ(sessions->stop(session, 0), SONDE_OK);
  ASSERT_EQ(analysis->finish(instance), SONDE_OK) << sonde_host()->last_error();
  analysis->destroy(instance);

  sonde_table_t *table = nullptr;
  ASSERT_EQ(results->find_table(session, "oldest", "calls", &table), SONDE_OK);
  sonde_value_t value = {};
  ASSERT_EQ(results->cell(table, 0, 0, &value), SONDE_OK);
  EXPECT_EQ(value.as.u64, 3u);
  ASSERT_EQ(results->cell(table, 0, 1, &value), SONDE_OK);
  EXPECT_EQ(value.as.i64, 60);
  uint64_t findings = 0;
  ASSERT_EQ(results->finding_count(session, &findings), SONDE_OK);
  EXPECT_EQ(findings, 1u);
  EXPECT_EQ(sessions->close(session), SONDE_OK);
}

TEST_P(RunnableBinary, PublishesAFunctionThatIsCalledThroughItsSignature) {
  const auto *plugins = service<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE);
  const sonde_plugin_entry_t *entry = nullptr;
  ASSERT_EQ(plugins->load(GetParam().c_str(), &entry), SONDE_OK) << sonde_host()->last_error();
  sonde_export_t function = {};
  ASSERT_EQ(plugins->function("oldest", "multiply", &function), SONDE_OK);
  EXPECT_STREQ(function.signature, "e(qq&q)");
  int64_t product = 0;
  const auto multiply = reinterpret_cast<sonde_status (*)(int64_t, int64_t, int64_t *)>(function.function);
  EXPECT_EQ(multiply(6, 7, &product), SONDE_OK);
  EXPECT_EQ(product, 42);
}

INSTANTIATE_TEST_SUITE_P(Plugins, RunnableBinary, testing::ValuesIn(runnable_binaries()));

struct Refusal {
  const char *file;
  sonde_status status;
  std::string asked;    // what the plugin needs, as the message says it
  std::string offered;  // what this host has
};

void PrintTo(const Refusal &refusal, std::ostream *out) { *out << refusal.asked; }

class RefusedBinary : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedBinary, IsRefusedWithBothNumbersAndLeavesNothingBehind) {
  const auto *plugins = service<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE);
  const sonde_plugin_entry_t *entry = nullptr;
  EXPECT_EQ(plugins->load(GetParam().file, &entry), GetParam().status);
  const std::string message = sonde_host()->last_error();
  EXPECT_NE(message.find(GetParam().asked), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().offered), std::string::npos) << message;

  EXPECT_EQ(entry, nullptr);
  EXPECT_FALSE(is_mapped(GetParam().file)) << "the module is still mapped";
  const void *interface = nullptr;
  EXPECT_NE(plugins->interface("refused", SONDE_ANALYSIS_INTERFACE, 0, &interface), SONDE_OK);
  uint64_t count = 0;
  ASSERT_EQ(plugins->count(&count), SONDE_OK);
  for (uint64_t index = 0; index < count; ++index) {
    sonde_plugin_info_t info = {};
    info.struct_size = sizeof(info);
    ASSERT_EQ(plugins->at(index, &info), SONDE_OK);
    if (std::string("refused") == info.id) {
      EXPECT_EQ(info.loaded, 0u);
    }
  }
  EXPECT_EQ(std::getenv("SONDE_REFUSED_PLUGIN_RAN"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    Plugins, RefusedBinary,
    testing::Values(Refusal{SONDE_NEWER_PLUGIN, SONDE_E_TOO_OLD,
                            std::to_string(SONDE_ABI_MAJOR) + "." + std::to_string(SONDE_ABI_MINOR + 7),
                            "this host has " + std::to_string(SONDE_ABI_MAJOR) + "." + std::to_string(SONDE_ABI_MINOR)},
                    Refusal{SONDE_OTHER_MAJOR_PLUGIN, SONDE_E_INCOMPATIBLE,
                            "major version " + std::to_string(SONDE_ABI_MAJOR + 1),
                            "this host has " + std::to_string(SONDE_ABI_MAJOR)}));
