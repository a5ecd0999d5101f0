// The workload analysis as a module, through the services alone.
#pragma once

#include <gtest/gtest.h>
#include <sonde/sonde.hpp>

#include <map>
#include <string>
#include <vector>

namespace sonde {

inline const Host &host() {
  static const Host table(sonde_host());
  return table;
}

inline const sonde_plugin_entry_t &entry() {
  static const sonde_plugin_entry_t *const loaded = [] {
    const sonde_plugin_entry_t *found = nullptr;
    host().check(host().service<sonde_plugins_service_t>().load(SONDE_WORKLOAD_MODULE, &found));
    return found;
  }();
  return *loaded;
}

// The analysis of one session, with options given as YAML.
class Analysis {
 public:
  Analysis(const Session &session, const char *yaml = "{}") {
    const auto &config = host().service<sonde_config_service_t>();
    sonde_config_t *tree = nullptr;
    host().check(config.parse(yaml, "test.yaml", &tree));
    const sonde_status status =
        config.check(tree, "workload", entry().options, entry().option_count, entry().option_stride, &options_);
    const std::string text = host().table()->last_error();
    config.release(tree);
    if (status < 0) throw Failure(status, text);
    const void *found = nullptr;
    host().check(host().service<sonde_plugins_service_t>().interface(entry().id, SONDE_ANALYSIS_INTERFACE,
                                                                     SONDE_NEED(sonde_analysis_t, destroy), &found));
    table_ = static_cast<const sonde_analysis_t *>(found);
    host().check(table_->create(session.get(), options_, &instance_));
    host().check(table_->start(instance_));
  }
  ~Analysis() {
    table_->destroy(instance_);
    host().service<sonde_config_service_t>().release(options_);
  }
  Analysis(const Analysis &) = delete;
  Analysis &operator=(const Analysis &) = delete;

  void finish() { host().check(table_->finish(instance_)); }

 private:
  const sonde_analysis_t *table_ = nullptr;
  sonde_config_t *options_ = nullptr;
  void *instance_ = nullptr;
};

// One published function.
template <typename Function>
Function *function(const char *name) {
  sonde_export_t found{};
  host().check(host().service<sonde_plugins_service_t>().function("workload", name, &found));
  return reinterpret_cast<Function *>(found.function);
}

using Row = std::map<std::string, sonde_value_t>;

inline std::vector<Row> rows(const Session &session, const char *name) {
  const auto &result = host().service<sonde_result_service_t>();
  sonde_table_t *table = nullptr;
  host().check(result.find_table(session.get(), "workload", name, &table));
  const sonde_table_spec_t *spec = nullptr;
  host().check(result.table_spec(table, &spec));
  uint64_t count = 0;
  host().check(result.row_count(table, &count));
  std::vector<Row> found(count);
  for (uint64_t row = 0; row < count; ++row) {
    for (uint32_t column = 0; column < spec->column_count; ++column) {
      const auto *const description = reinterpret_cast<const sonde_column_spec_t *>(
          reinterpret_cast<const uint8_t *>(spec->columns) + size_t{column} * spec->column_stride);
      host().check(result.cell(table, row, column, &found[row][description->name]));
    }
  }
  return found;
}

inline uint32_t verdict(const Session &session, const std::string &rule) {
  const auto &result = host().service<sonde_result_service_t>();
  uint64_t count = 0;
  host().check(result.finding_count(session.get(), &count));
  for (uint64_t i = 0; i < count; ++i) {
    const sonde_finding_t *finding = nullptr;
    host().check(result.finding_at(session.get(), i, &finding));
    if (rule == finding->rule) return finding->verdict;
  }
  ADD_FAILURE() << "no finding " << rule;
  return UINT32_MAX;
}

}  // namespace sonde
