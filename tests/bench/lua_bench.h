// Runs a script in a session with synthetic kernel records and gives its tables back.
#pragma once

#include <sonde/sonde.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace sonde::bench {

template <typename Service>
const Service &get(const char *id) {
  const void *table = nullptr;
  if (sonde_host()->get_service(id, sizeof(Service), &table) < 0) {
    std::fprintf(stderr, "no service %s: %s\n", id, sonde_host()->last_error());
    std::exit(2);
  }
  return *static_cast<const Service *>(table);
}

inline void check(sonde_status status, const char *what) {
  if (status >= 0) return;
  std::fprintf(stderr, "%s: %s (status %d)\n", what, sonde_host()->last_error(), static_cast<int>(status));
  std::exit(2);
}

// One script on `batches` batches of `records` kernels; the cell of the first row of its table "result" by column.
class ScriptBench {
 public:
  ScriptBench(const std::string &text, const char *options, uint64_t batches, uint64_t records) {
    const auto &sessions = get<sonde_session_service_t>(SONDE_SESSION_SERVICE);
    const auto &config = get<sonde_config_service_t>(SONDE_CONFIG_SERVICE);
    const sonde_plugin_entry_t *plugin = nullptr;
    check(get<sonde_plugins_service_t>(SONDE_PLUGINS_SERVICE).load("lua", &plugin), "loading the plugin lua");
    sonde_config_t *tree = nullptr;
    std::string yaml = "name: bench\ndeadline: 60s\ntext: |\n";
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      yaml += "  " + text.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
    check(config.parse((yaml + options + "\n").c_str(), "bench", &tree), "options");
    check(config.check(tree, "lua", plugin->options, plugin->option_count, plugin->option_stride, &options_),
          "options");
    config.release(tree);
    analysis_ = static_cast<const sonde_analysis_t *>(plugin->get_interface(SONDE_ANALYSIS_INTERFACE));
    sonde_session_options_t session_options = {};
    session_options.struct_size = sizeof(session_options);
    session_options.memory_cap = uint64_t{512} << 20;
    check(sessions.open(&session_options, &session_), "session");
    check(analysis_->create(session_, options_, &instance_), "create");
    check(analysis_->start(instance_), "start");
    check(sessions.start(session_), "session start");
    submit(batches, records);
    check(sessions.stop(session_, uint64_t{120'000'000'000}), "session stop");
    check(analysis_->finish(instance_), "finish");
    report_findings();
  }

  ~ScriptBench() {
    analysis_->destroy(instance_);
    get<sonde_session_service_t>(SONDE_SESSION_SERVICE).close(session_);
    get<sonde_config_service_t>(SONDE_CONFIG_SERVICE).release(options_);
  }

  double cell(const char *column) const {
    const auto &results = get<sonde_result_service_t>(SONDE_RESULT_SERVICE);
    sonde_table_t *table = nullptr;
    const sonde_table_spec_t *spec = nullptr;
    check(results.find_table(session_, "bench", "result", &table), "table result");
    check(results.table_spec(table, &spec), "table result");
    for (uint32_t index = 0; index < spec->column_count; ++index) {
      if (std::string(spec->columns[index].name) != column) continue;
      sonde_value_t value = {};
      check(results.cell(table, 0, index, &value), "cell");
      return value.kind == SONDE_VALUE_F64 ? value.as.f64 : static_cast<double>(value.as.i64);
    }
    std::fprintf(stderr, "no column %s\n", column);
    std::exit(2);
  }

 private:
  void submit(uint64_t batches, uint64_t records) {
    const auto &capture = get<sonde_capture_service_t>(SONDE_CAPTURE_SERVICE);
    if (batches == 0) return;
    uint64_t stream = 0;
    check(capture.open_stream(session_, "bench", SONDE_CLOCK_STAMP, &stream), "stream");
    sonde_string_t names[16] = {};
    for (int index = 0; index < 16; ++index) {
      check(capture.intern(("kernel_" + std::to_string(index)).c_str(), UINT64_MAX, &names[index]), "intern");
    }
    const uint64_t bytes = records * sizeof(sonde_device_kernel_t);
    for (uint64_t batch = 0; batch < batches; ++batch) {
      uint8_t *buffer = nullptr;
      check(capture.acquire(session_, stream, bytes, &buffer), "acquire");
      auto *kernels = reinterpret_cast<sonde_device_kernel_t *>(buffer);
      for (uint64_t index = 0; index < records; ++index) {
        sonde_device_kernel_t &kernel = kernels[index];
        kernel = {};
        SONDE_RECORD_INIT(&kernel, SONDE_SPACE_DEVICE, SONDE_DEVICE_KERNEL, sonde_stamp());
        kernel.end = kernel.header.time + 1000 + index;
        kernel.name = names[(index * 7) % 16];
        kernel.grid[0] = static_cast<uint32_t>(index);
      }
      check(capture.submit(session_, stream, buffer, bytes, 0), "submit");
    }
  }

  // A failed script has measured nothing.
  void report_findings() const {
    const auto &results = get<sonde_result_service_t>(SONDE_RESULT_SERVICE);
    uint64_t count = 0;
    results.finding_count(session_, &count);
    for (uint64_t index = 0; index < count; ++index) {
      const sonde_finding_t *finding = nullptr;
      results.finding_at(session_, index, &finding);
      std::fprintf(stderr, "%s\n", finding->message);
    }
    if (count != 0) std::exit(2);
  }

  const sonde_analysis_t *analysis_ = nullptr;
  sonde_session_t *session_ = nullptr;
  sonde_config_t *options_ = nullptr;
  void *instance_ = nullptr;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace sonde::bench
