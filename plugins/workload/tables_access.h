// What the tables of accesses share.
#pragma once

#include <sonde/toolkit/names.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel_map.h"
#include "tables.h"

namespace sonde::workload {

class AccessTablePublisher : public TablePublisher {
 public:
  using TablePublisher::TablePublisher;

 protected:
  const Accesses &accesses() const { return workload_.accesses(); }

  // Empty where the capture does not name it.
  std::optional<uint64_t> process(uint32_t source) const {
    const auto it = workload_.sources().find(source);
    return it == workload_.sources().end() ? std::nullopt : it->second.process;
  }

  static Table &kernel_columns(Table &table) {
    return table.text("kernel", "name without return type, parameters and template arguments")
        .text("symbol", "name as the runtime gives it", kKey | kHidden)
        .u64("device", "1", "the runtime's number", kKey);
  }

  // Rows by weight, greatest first, ties by name, process and device.
  template <typename Row, typename Weight>
  std::vector<std::pair<KernelKey, const Row *>> by_weight(const KernelMap<Row> &map, Weight &&weight) const {
    std::vector<std::pair<KernelKey, const Row *>> rows;
    for (const auto &[key, row] : map.rows()) rows.emplace_back(key, &row);
    std::sort(rows.begin(), rows.end(), [&](const auto &a, const auto &b) {
      const auto x = weight(*a.second), y = weight(*b.second);
      if (x != y) return x > y;
      const int order = workload_.text(a.first.name).compare(workload_.text(b.first.name));
      if (order != 0) return order < 0;
      return std::tie(a.first.source, a.first.device) < std::tie(b.first.source, b.first.device);
    });
    return rows;
  }

  std::string short_name(uint32_t name) const { return toolkit::shorten_kernel_name(workload_.text(name)); }

  // Name of an object, or its address.
  std::string object_name(uint32_t name, uint64_t address) const {
    const std::string &text = accesses().object_text(name);
    return text.empty() ? hexadecimal(address) : text;
  }

  static std::string hexadecimal(uint64_t value) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    do {
      text.insert(text.begin(), kDigits[value & 15]);
      value >>= 4;
    } while (value != 0);
    return "0x" + text;
  }
};

inline const char *level_name(toolkit::ObjectLevel level) {
  return level == toolkit::ObjectLevel::kTensor ? "tensor" : "allocation";
}

// Each publishes the tables of one subject, where the capture holds anything about it.
void publish_working_set_tables(const Workload &workload, const Host &host, sonde_session_t *session);
void publish_heat_tables(const Workload &workload, const Host &host, sonde_session_t *session);
void publish_instruction_tables(const Workload &workload, const Host &host, sonde_session_t *session);
void publish_warp_tables(const Workload &workload, const Host &host, sonde_session_t *session);
void publish_scope_access_tables(const Workload &workload, const Host &host, sonde_session_t *session);
void publish_roofline_tables(const Workload &workload, const Host &host, sonde_session_t *session);

}  // namespace sonde::workload
