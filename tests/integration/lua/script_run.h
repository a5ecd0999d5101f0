// Runs one script in a session of its own and shows what came of it.
#pragma once

#include <gtest/gtest.h>
#include <sonde/sonde.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

namespace sonde::test {

template <typename Service>
const Service &get(const char *id) {
  const void *table = nullptr;
  if (sonde_host()->get_service(id, sizeof(Service), &table) < 0) {
    std::fprintf(stderr, "no service %s: %s\n", id, sonde_host()->last_error());
    std::abort();
  }
  return *static_cast<const Service *>(table);
}

// Loads the plugins under test once.
inline const sonde_plugin_entry_t &lua_plugin() {
  static const sonde_plugin_entry_t *const entry = [] {
    const auto &plugins = get<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE);
    const sonde_plugin_entry_t *loaded = nullptr;
    if (plugins.load(TEST_EXPORTS_PLUGIN, &loaded) < 0 || plugins.load(TEST_LUA_PLUGIN, &loaded) < 0) {
      std::fprintf(stderr, "cannot load: %s\n", sonde_host()->last_error());
      std::abort();
    }
    return loaded;
  }();
  return *entry;
}

class ScriptRun {
 public:
  // `options` is YAML for the plugin's other options, as in "deadline: 50ms".
  explicit ScriptRun(const std::string &script, const std::string &options = "") {
    const auto &config = get<sonde_config_service_t>(SONDE_CONFIG_SERVICE);
    std::string yaml = "name: script\ntext: |\n";
    size_t begin = 0;
    while (begin <= script.size()) {
      const size_t end = std::min(script.find('\n', begin), script.size());
      yaml += "  " + script.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    yaml += options + "\n";
    sonde_config_t *tree = nullptr;
    EXPECT_EQ(config.parse(yaml.c_str(), "test", &tree), SONDE_OK) << sonde_host()->last_error() << yaml;
    const sonde_plugin_entry_t &plugin = lua_plugin();
    EXPECT_EQ(config.check(tree, "lua", plugin.options, plugin.option_count, plugin.option_stride, &options_), SONDE_OK)
        << sonde_host()->last_error();
    config.release(tree);
    analysis_ = static_cast<const sonde_analysis_t *>(plugin.get_interface(SONDE_ANALYSIS_INTERFACE));
    EXPECT_EQ(sessions_.open(nullptr, &session_), SONDE_OK);
    created = analysis_->create(session_, options_, &instance_);
    if (created < 0) {
      create_error = sonde_host()->last_error();
      return;
    }
    started = analysis_->start(instance_);
    EXPECT_EQ(sessions_.start(session_), SONDE_OK);
  }

  ~ScriptRun() {
    if (instance_ != nullptr) analysis_->destroy(instance_);
    sessions_.close(session_);
    get<sonde_config_service_t>(SONDE_CONFIG_SERVICE).release(options_);
  }

  template <typename Record>
  void emit(const Record &record) {
    EXPECT_EQ(capture_.emit(session_, &record.header), SONDE_OK) << sonde_host()->last_error();
  }

  void kernel(uint64_t begin_after, uint64_t length, const char *name, uint64_t stream = 7) {
    sonde_device_kernel_t record = {};
    SONDE_RECORD_INIT(&record, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, sonde_stamp() + begin_after);
    record.end = record.header.time + length;
    record.stream = stream;
    record.grid[0] = 4;
    capture_.intern(name, UINT64_MAX, &record.name);
    emit(record);
  }

  void copy(uint64_t bytes, uint32_t kind) {
    sonde_device_copy_t record = {};
    SONDE_RECORD_INIT(&record, SONDE_SPACE_DEVICE, SONDE_DEVICE_COPY, sonde_stamp());
    record.end = record.header.time + 100;
    record.bytes = bytes;
    record.kind = kind;
    emit(record);
  }

  void allocate(uint64_t address, uint64_t bytes) {
    sonde_memory_allocate_t record = {};
    SONDE_RECORD_INIT(&record, SONDE_SPACE_MEMORY, SONDE_MEMORY_ALLOCATE, sonde_stamp());
    record.address = address;
    record.bytes = bytes;
    emit(record);
  }

  void flush() { EXPECT_EQ(sessions_.flush(session_, 0), SONDE_OK) << sonde_host()->last_error(); }

  // Ends the session and the script; only then are results whole.
  ScriptRun &finish() {
    EXPECT_EQ(sessions_.stop(session_, 0), SONDE_OK) << sonde_host()->last_error();
    finished = analysis_->finish(instance_);
    return *this;
  }

  uint64_t finding_count() {
    uint64_t count = 0;
    results_.finding_count(session_, &count);
    return count;
  }

  const sonde_finding_t &finding(uint64_t index = 0) {
    const sonde_finding_t *out = nullptr;
    static const sonde_finding_t kNone = {};
    return results_.finding_at(session_, index, &out) < 0 ? kNone : *out;
  }

  // Message of the one finding "lua.script_failed", "" when there is none.
  std::string failure() {
    if (finding_count() == 0) return "";
    EXPECT_EQ(finding_count(), 1u);
    EXPECT_STREQ(finding().rule, "lua.script_failed");
    EXPECT_EQ(finding().severity, SONDE_SEVERITY_ERROR);
    EXPECT_EQ(finding().verdict, SONDE_VERDICT_UNSUPPORTED);
    return finding().message;
  }

  // Cells of a table row as text.
  std::vector<std::string> row(const char *table, uint64_t index) {
    sonde_table_t *found = nullptr;
    std::vector<std::string> cells;
    if (results_.find_table(session_, "script", table, &found) < 0) return cells;
    const sonde_table_spec_t *spec = nullptr;
    results_.table_spec(found, &spec);
    for (uint32_t column = 0; column < spec->column_count; ++column) {
      sonde_value_t value = {};
      if (results_.cell(found, index, column, &value) < 0) return {};
      switch (value.kind) {
        case SONDE_VALUE_I64:
          cells.push_back(std::to_string(value.as.i64));
          break;
        case SONDE_VALUE_U64:
        case SONDE_VALUE_BOOL:
          cells.push_back(std::to_string(value.as.u64));
          break;
        case SONDE_VALUE_F64:
          cells.push_back(std::to_string(value.as.f64));
          break;
        case SONDE_VALUE_TEXT:
          cells.push_back(std::string(value.as.text, value.count));
          break;
        default:
          cells.push_back("-");
          break;
      }
    }
    return cells;
  }

  sonde_session_t *session() { return session_; }

  sonde_status created = SONDE_E_INTERNAL;
  sonde_status started = SONDE_E_INTERNAL;
  sonde_status finished = SONDE_E_INTERNAL;
  std::string create_error;

 private:
  const sonde_session_service_t &sessions_ = get<sonde_session_service_t>(SONDE_SESSION_SERVICE);
  const sonde_capture_service_t &capture_ = get<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
  const sonde_result_service_t &results_ = get<sonde_result_service_t>(SONDE_RESULT_SERVICE);
  const sonde_analysis_t *analysis_ = nullptr;
  sonde_session_t *session_ = nullptr;
  sonde_config_t *options_ = nullptr;
  void *instance_ = nullptr;
};

// Seconds since `begin`.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace sonde::test
