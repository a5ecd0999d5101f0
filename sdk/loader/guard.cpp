#include "loader/guard.h"

#include <fmt/format.h>
#include <sonde/capture.h>
#include <time.h>

#include <array>
#include <cstring>
#include <utility>

#include "core/services.h"

namespace sonde::loader {

namespace {

const sonde_capture_service_t *capture() {
  static const auto *const table = [] {
    const void *found = nullptr;
    get_service(SONDE_CAPTURE_SERVICE, SONDE_NEED(sonde_capture_service_t, leave), &found);
    return static_cast<const sonde_capture_service_t *>(found);
  }();
  return table;
}

struct Slot {
  Guard *guard = nullptr;
  const sonde_analysis_t *analysis = nullptr;
  const sonde_port_t *port = nullptr;
};
std::array<Slot, kGuardSlots> slots;

// A function of a plugin's table that may lie past the end of it, or be NULL.
template <typename Table, typename Function>
Function member(const Table *table, Function Table::*function) {
  const auto offset = static_cast<uint32_t>(reinterpret_cast<const char *>(&(table->*function)) -
                                            reinterpret_cast<const char *>(table));
  if (table->struct_size < offset + sizeof(Function)) return nullptr;
  return table->*function;
}

sonde_status absent(uint32_t slot, const char *what) {
  return fail(SONDE_E_UNIMPLEMENTED, fmt::format("plugin {} has no {}", slots[slot].guard->id(), what));
}

// One set of functions a slot, because the interfaces have no user pointer to find the plugin by.
template <uint32_t kSlot>
struct AnalysisThunks {
  static const sonde_analysis_t *table() { return slots[kSlot].analysis; }

  static sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **instance) {
    const auto function = member(table(), &sonde_analysis_t::create);
    if (function == nullptr) return absent(kSlot, "analysis.create");
    return slots[kSlot].guard->run("analysis.create", false, [&] { return function(session, options, instance); });
  }
  static sonde_status start(void *instance) {
    const auto function = member(table(), &sonde_analysis_t::start);
    if (function == nullptr) return SONDE_OK;
    return slots[kSlot].guard->run("analysis.start", false, [&] { return function(instance); });
  }
  static sonde_status finish(void *instance) {
    const auto function = member(table(), &sonde_analysis_t::finish);
    if (function == nullptr) return SONDE_OK;
    return slots[kSlot].guard->run("analysis.finish", false, [&] { return function(instance); });
  }
  static void destroy(void *instance) {
    const auto function = member(table(), &sonde_analysis_t::destroy);
    if (function == nullptr) return;
    slots[kSlot].guard->run("analysis.destroy", true, [&] { return function(instance), SONDE_OK; });
  }
  static constexpr sonde_analysis_t kTable = {sizeof(sonde_analysis_t), 0, create, start, finish, destroy};
};

template <uint32_t kSlot>
struct PortThunks {
  static const sonde_port_t *table() { return slots[kSlot].port; }

  static sonde_status create(sonde_session_t *session, const sonde_config_t *options, void **instance) {
    const auto function = member(table(), &sonde_port_t::create);
    if (function == nullptr) return absent(kSlot, "port.create");
    return slots[kSlot].guard->run("port.create", false, [&] { return function(session, options, instance); });
  }
  static sonde_status start(void *instance) {
    const auto function = member(table(), &sonde_port_t::start);
    if (function == nullptr) return SONDE_OK;
    return slots[kSlot].guard->run("port.start", false, [&] { return function(instance); });
  }
  static sonde_status demand(void *instance) {
    const auto function = member(table(), &sonde_port_t::demand);
    if (function == nullptr) return SONDE_OK;
    return slots[kSlot].guard->run("port.demand", false, [&] { return function(instance); });
  }
  static sonde_status flush(void *instance, uint32_t forced) {
    const auto function = member(table(), &sonde_port_t::flush);
    if (function == nullptr) return SONDE_OK;
    return slots[kSlot].guard->run("port.flush", false, [&] { return function(instance, forced); });
  }
  static sonde_status stop(void *instance) {
    const auto function = member(table(), &sonde_port_t::stop);
    if (function == nullptr) return SONDE_OK;
    return slots[kSlot].guard->run("port.stop", true, [&] { return function(instance); });
  }
  static void destroy(void *instance) {
    const auto function = member(table(), &sonde_port_t::destroy);
    if (function == nullptr) return;
    slots[kSlot].guard->run("port.destroy", true, [&] { return function(instance), SONDE_OK; });
  }
  static sonde_status entry(uint32_t which, void *argument) {
    const auto function = member(table(), &sonde_port_t::entry);
    if (function == nullptr) return absent(kSlot, "port.entry");
    return slots[kSlot].guard->run("port.entry", false, [&] { return function(which, argument); });
  }
  static constexpr sonde_port_t kTable = {sizeof(sonde_port_t), 0, create, start, demand, flush, stop, destroy, entry};
};

template <uint32_t... kSlots>
constexpr std::array<const sonde_analysis_t *, sizeof...(kSlots)> analysis_tables(
    std::integer_sequence<uint32_t, kSlots...>) {
  return {&AnalysisThunks<kSlots>::kTable...};
}
template <uint32_t... kSlots>
constexpr std::array<const sonde_port_t *, sizeof...(kSlots)> port_tables(std::integer_sequence<uint32_t, kSlots...>) {
  return {&PortThunks<kSlots>::kTable...};
}

constexpr auto kAnalysisTables = analysis_tables(std::make_integer_sequence<uint32_t, kGuardSlots>());
constexpr auto kPortTables = port_tables(std::make_integer_sequence<uint32_t, kGuardSlots>());

}  // namespace

uint64_t guard_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void enter_tool() {
  if (capture() != nullptr) capture()->enter();
}

void leave_tool() {
  if (capture() != nullptr) capture()->leave();
}

Guard::Statistics Guard::statistics() const {
  Statistics result;
  result.calls = calls_.load(std::memory_order_relaxed);
  result.errors = errors_.load(std::memory_order_relaxed);
  result.busy_ns = busy_ns_.load(std::memory_order_relaxed);
  result.longest_ns = longest_ns_.load(std::memory_order_relaxed);
  result.quarantined = quarantined_.load(std::memory_order_relaxed);
  return result;
}

bool Guard::refuses(const char *what) {
  if (!quarantined_.load(std::memory_order_acquire)) return false;
  fail(SONDE_E_STATE, fmt::format("plugin {} is in quarantine after {} errors in a row; {} was not called", id_,
                                  kQuarantineErrors, what));
  return true;
}

void Guard::finish(const char *what, sonde_status status, uint64_t begin_ns) {
  const uint64_t spent = guard_clock_ns() - begin_ns;
  calls_.fetch_add(1, std::memory_order_relaxed);
  busy_ns_.fetch_add(spent, std::memory_order_relaxed);
  uint64_t longest = longest_ns_.load(std::memory_order_relaxed);
  while (spent > longest && !longest_ns_.compare_exchange_weak(longest, spent, std::memory_order_relaxed)) {
  }
  // "Not for me" is an answer, not a failure.
  if (status >= 0 || status == SONDE_E_UNIMPLEMENTED || status == SONDE_E_STOP) {
    if (status >= 0) errors_in_row_.store(0, std::memory_order_relaxed);
    return;
  }
  errors_.fetch_add(1, std::memory_order_relaxed);
  if (errors_in_row_.fetch_add(1, std::memory_order_relaxed) + 1 == kQuarantineErrors) {
    quarantined_.store(true, std::memory_order_release);
    const std::string text = fmt::format("plugin {} is in quarantine: {} errors in a row, the last in {}: {}", id_,
                                         kQuarantineErrors, what, last_error());
    host_table()->log(SONDE_LOG_ERROR, "plugins", text.c_str());
  }
}

const void *guarded_interface(uint32_t slot, Guard &guard, const char *name, const void *table) {
  if (slot >= kGuardSlots || table == nullptr) return table;
  Slot &own = slots[slot];
  // Written once, before the table is given out; later calls must not write under those that are running.
  if (own.guard == nullptr) own.guard = &guard;
  if (std::strcmp(name, SONDE_ANALYSIS_INTERFACE) == 0) {
    if (own.analysis == nullptr) own.analysis = static_cast<const sonde_analysis_t *>(table);
    return own.analysis == table ? kAnalysisTables[slot] : table;
  }
  if (std::strcmp(name, SONDE_PORT_INTERFACE) == 0) {
    if (own.port == nullptr) own.port = static_cast<const sonde_port_t *>(table);
    return own.port == table ? kPortTables[slot] : table;
  }
  return table;
}

}  // namespace sonde::loader
