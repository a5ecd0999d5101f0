#include "report/results.h"

#include <fmt/format.h>

#include <map>

#include "core/session.h"

namespace sonde::report {

Result<Table *> Results::add_table(std::unique_ptr<Table> table) {
  const std::lock_guard lock(mutex_);
  for (const auto &other : tables_) {
    if (other->origin() == table->origin() && other->name() == table->name()) {
      return Error{SONDE_E_EXISTS, fmt::format("{} has a table {} already", table->origin(), table->name())};
    }
  }
  tables_.push_back(std::move(table));
  return tables_.back().get();
}

void Results::add_finding(std::unique_ptr<Finding> finding) {
  const std::lock_guard lock(mutex_);
  findings_.push_back(std::move(finding));
}

uint64_t Results::table_count() const {
  const std::lock_guard lock(mutex_);
  return tables_.size();
}

uint64_t Results::finding_count() const {
  const std::lock_guard lock(mutex_);
  return findings_.size();
}

Table *Results::table_at(uint64_t index) const {
  const std::lock_guard lock(mutex_);
  return index < tables_.size() ? tables_[index].get() : nullptr;
}

const Finding *Results::finding_at(uint64_t index) const {
  const std::lock_guard lock(mutex_);
  return index < findings_.size() ? findings_[index].get() : nullptr;
}

Table *Results::find_table(std::string_view origin, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (const auto &table : tables_) {
    if (table->origin() == origin && table->name() == name) return table.get();
  }
  return nullptr;
}

namespace {

// Results by session. Never destroyed: plugins may publish while the process ends.
struct Registry {
  std::mutex mutex;
  std::map<sonde_session_t *, std::unique_ptr<Results>> results;
};

Registry &registry() {
  static Registry *const instance = new Registry();
  return *instance;
}

void forget(sonde_session_t *session) {
  std::unique_ptr<Results> ended;
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().results.find(session);
  if (found == registry().results.end()) return;
  ended = std::move(found->second);
  registry().results.erase(found);
}

}  // namespace

Result<Results *> results_of(sonde_session_t *session) {
  if (core::find_session(session) == nullptr) return Error{SONDE_E_INVALID, last_error()};
  bool is_new = false;
  Results *results = nullptr;
  {
    const std::lock_guard lock(registry().mutex);
    std::unique_ptr<Results> &place = registry().results[session];
    is_new = place == nullptr;
    if (is_new) place = std::make_unique<Results>();
    results = place.get();
  }
  // Outside the lock: the session calls back under its own.
  if (is_new) core::at_close(session, [session] { forget(session); });
  return results;
}

}  // namespace sonde::report
