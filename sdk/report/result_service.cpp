#include "report/result_service.h"

#include <fmt/format.h>

#include "core/error.h"
#include "report/results.h"
#include "report/struct_copy.h"

namespace sonde::report {
namespace {

// A handle of the interface is a Table.
Table *table_of(sonde_table_t *handle) { return reinterpret_cast<Table *>(handle); }
sonde_table_t *handle_of(Table *table) { return reinterpret_cast<sonde_table_t *>(table); }

sonde_status missing(const char *argument) { return fail(SONDE_E_INVALID, fmt::format("{} is NULL", argument)); }

sonde_status past_the_end(const char *what, uint64_t index, uint64_t count) {
  return fail(SONDE_E_RANGE, fmt::format("{} {} of {}", what, index, count));
}

sonde_status create_table(sonde_session_t *session, const sonde_table_spec_t *spec, sonde_table_t **out) {
  return at_boundary([&]() -> sonde_status {
    if (spec == nullptr) return missing("spec");
    if (out == nullptr) return missing("out");
    *out = nullptr;
    const auto results = results_of(session);
    if (!results) return fail(results.error());
    auto table = Table::make(copy_known(*spec));
    if (!table) return fail(table.error());
    auto added = (*results)->add_table(std::move(*table));
    if (!added) return fail(added.error());
    *out = handle_of(*added);
    return SONDE_OK;
  });
}

sonde_status add_row(sonde_table_t *table, const sonde_value_t *values, uint64_t count) {
  return at_boundary([&]() -> sonde_status {
    if (table == nullptr) return missing("table");
    if (values == nullptr && count != 0) return missing("values");
    const auto added = table_of(table)->add_row({values, count});
    return added ? SONDE_OK : fail(added.error());
  });
}

sonde_status add_finding(sonde_session_t *session, const sonde_finding_t *finding) {
  return at_boundary([&]() -> sonde_status {
    if (finding == nullptr) return missing("finding");
    const auto results = results_of(session);
    if (!results) return fail(results.error());
    auto made = Finding::make(*finding);
    if (!made) return fail(made.error());
    (*results)->add_finding(std::move(*made));
    return SONDE_OK;
  });
}

sonde_status table_count(sonde_session_t *session, uint64_t *out) {
  return at_boundary([&]() -> sonde_status {
    if (out == nullptr) return missing("out");
    const auto results = results_of(session);
    if (!results) return fail(results.error());
    *out = (*results)->table_count();
    return SONDE_OK;
  });
}

sonde_status table_at(sonde_session_t *session, uint64_t index, sonde_table_t **out) {
  return at_boundary([&]() -> sonde_status {
    if (out == nullptr) return missing("out");
    const auto results = results_of(session);
    if (!results) return fail(results.error());
    *out = handle_of((*results)->table_at(index));
    return *out != nullptr ? SONDE_OK : past_the_end("table", index, (*results)->table_count());
  });
}

sonde_status find_table(sonde_session_t *session, const char *origin, const char *name, sonde_table_t **out) {
  return at_boundary([&]() -> sonde_status {
    if (origin == nullptr || name == nullptr) return missing(origin == nullptr ? "origin" : "name");
    if (out == nullptr) return missing("out");
    const auto results = results_of(session);
    if (!results) return fail(results.error());
    *out = handle_of((*results)->find_table(origin, name));
    if (*out != nullptr) return SONDE_OK;
    std::string known;
    for (uint64_t index = 0; const Table *table = (*results)->table_at(index); ++index) {
      known += fmt::format("{}{}.{}", known.empty() ? "" : ", ", table->origin(), table->name());
    }
    return fail(SONDE_E_NOT_FOUND,
                fmt::format("no table {}.{}; there are: {}", origin, name, known.empty() ? "none" : known));
  });
}

sonde_status table_spec(sonde_table_t *table, const sonde_table_spec_t **out) {
  if (table == nullptr) return missing("table");
  if (out == nullptr) return missing("out");
  *out = &table_of(table)->spec();
  return SONDE_OK;
}

sonde_status row_count(sonde_table_t *table, uint64_t *out) {
  return at_boundary([&]() -> sonde_status {
    if (table == nullptr) return missing("table");
    if (out == nullptr) return missing("out");
    *out = table_of(table)->row_count();
    return SONDE_OK;
  });
}

sonde_status cell(sonde_table_t *table, uint64_t row, uint64_t column, sonde_value_t *out) {
  return at_boundary([&]() -> sonde_status {
    if (table == nullptr) return missing("table");
    if (out == nullptr) return missing("out");
    *out = sonde_value_t{};
    const auto value = table_of(table)->cell(row, column);
    if (!value) return fail(value.error());
    *out = *value;
    return SONDE_OK;
  });
}

sonde_status finding_count(sonde_session_t *session, uint64_t *out) {
  return at_boundary([&]() -> sonde_status {
    if (out == nullptr) return missing("out");
    const auto results = results_of(session);
    if (!results) return fail(results.error());
    *out = (*results)->finding_count();
    return SONDE_OK;
  });
}

sonde_status finding_at(sonde_session_t *session, uint64_t index, const sonde_finding_t **out) {
  return at_boundary([&]() -> sonde_status {
    if (out == nullptr) return missing("out");
    const auto results = results_of(session);
    if (!results) return fail(results.error());
    const Finding *const finding = (*results)->finding_at(index);
    *out = finding != nullptr ? &finding->view() : nullptr;
    return finding != nullptr ? SONDE_OK : past_the_end("finding", index, (*results)->finding_count());
  });
}

constexpr sonde_result_service_t kService = {
    sizeof(sonde_result_service_t),
    0,
    create_table,
    add_row,
    add_finding,
    table_count,
    table_at,
    find_table,
    table_spec,
    row_count,
    cell,
    finding_count,
    finding_at,
};

}  // namespace

const sonde_result_service_t &result_service() { return kService; }

}  // namespace sonde::report
