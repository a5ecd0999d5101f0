// What the files that publish tables share.
#pragma once

#include <sonde/sonde.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "publish.h"

namespace sonde::workload {

inline constexpr uint32_t kKey = SONDE_COLUMN_KEY;
inline constexpr uint32_t kHidden = SONDE_COLUMN_HIDDEN;
inline constexpr uint32_t kDown = SONDE_COLUMN_SORT_DOWN;
inline constexpr const char *kNearestRank =
    "nearest rank; exact up to exact_values timed records, beyond that within 1/256";
// Stands for the host in records of memory.
inline constexpr uint32_t kHostDevice = UINT32_MAX;

// Rate in units per second, empty without time.
inline std::optional<double> per_second(uint64_t amount, uint64_t ns) {
  if (ns == 0) return std::nullopt;
  return static_cast<double>(amount) * 1e9 / static_cast<double>(ns);
}

inline std::optional<double> share_of(int64_t part, int64_t whole) {
  if (whole <= 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

// Of counts that may pass 2^63.
inline std::optional<double> ratio_of(uint64_t part, uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

inline std::string triple(const std::array<uint32_t, 3> &value) {
  return "(" + std::to_string(value[0]) + ", " + std::to_string(value[1]) + ", " + std::to_string(value[2]) + ")";
}

// The device of a row; empty for the host.
inline std::optional<uint32_t> device_cell(uint32_t device) {
  return device == kHostDevice ? std::nullopt : std::optional<uint32_t>(device);
}

class TablePublisher {
 public:
  TablePublisher(const Workload &workload, const Host &host, sonde_session_t *session)
      : workload_(workload), host_(host), session_(session) {}

 protected:
  // A table whose rows are first told apart by process; that column shows only when there are several.
  Table table(const char *name, const char *title, const char *help) {
    Table result(host_, session_, kOrigin, name, title, help);
    const uint32_t hidden = workload_.sources().size() > 1 ? 0 : kHidden;
    result.u64("process", "1", "process id, empty when the capture does not name it", hidden);
    result.u64("source", "1", "0: this process; in a replay 1 + the file's index", kKey | kHidden);
    return result;
  }

  // Columns and cells that tables of durations share.
  static void duration_columns(Table &table) {
    table.u64("total", "ns", "sum of the lengths that are known", kDown)
        .f64("mean", "ns", "total / (count - untimed)")
        .i64("min", "ns", "least length", kHidden)
        .i64("p50", "ns", kNearestRank)
        .i64("p90", "ns", kNearestRank, kHidden)
        .i64("p99", "ns", kNearestRank, kHidden)
        .i64("max", "ns", "greatest length")
        .u64("untimed", "1",
             "of count, those without a length: never ended, not measured or stamps that cannot be right", kHidden);
  }

  const Workload &workload_;
  const Host &host_;
  sonde_session_t *session_;
};

// Each publishes the tables of one subject.
void publish_run_tables(const Workload &workload, const Host &host, sonde_session_t *session);
void publish_device_tables(const Workload &workload, const Host &host, sonde_session_t *session);
void publish_host_tables(const Workload &workload, const Host &host, sonde_session_t *session);

}  // namespace sonde::workload
