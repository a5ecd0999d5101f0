#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/results.h"
#include "report/struct_copy.h"

namespace sonde::report {
namespace {

bool is_snake_case(std::string_view name) {
  if (name.empty() || name.front() < 'a' || name.front() > 'z') return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::string_view kind_name(uint32_t kind) {
  switch (kind) {
    case SONDE_VALUE_NONE:
      return "nothing";
    case SONDE_VALUE_I64:
      return "i64";
    case SONDE_VALUE_U64:
      return "u64";
    case SONDE_VALUE_F64:
      return "f64";
    case SONDE_VALUE_TEXT:
      return "text";
    case SONDE_VALUE_BOOL:
      return "bool";
    case SONDE_VALUE_BYTES:
      return "bytes";
    case SONDE_VALUE_I64S:
      return "list of i64";
    case SONDE_VALUE_F64S:
      return "list of f64";
    case SONDE_VALUE_HANDLE:
      return "handle";
    default:
      return "unknown kind";
  }
}

// `value` as the kind of a column; kind NONE when the cell is to stay empty.
Result<sonde_value_t> convert(const sonde_value_t &value, const sonde_column_spec_t &column) {
  sonde_value_t cell{};
  if (value.kind == SONDE_VALUE_NONE) return cell;
  cell = value;
  cell.kind = column.kind;
  const bool from_i64 = value.kind == SONDE_VALUE_I64;
  const bool from_u64 = value.kind == SONDE_VALUE_U64;
  if (value.kind == SONDE_VALUE_TEXT && value.as.text == nullptr && value.count != 0) {
    return Error{SONDE_E_INVALID, fmt::format("column {}: text of {} bytes at NULL", column.name, value.count)};
  }
  if (value.kind == column.kind) {
    if (column.kind == SONDE_VALUE_F64 && !std::isfinite(value.as.f64)) cell.kind = SONDE_VALUE_NONE;
    if (column.kind == SONDE_VALUE_BOOL) cell.as.u64 = value.as.u64 != 0 ? 1 : 0;
    return cell;
  }
  if (column.kind == SONDE_VALUE_U64 && from_i64) {
    if (value.as.i64 >= 0) return cell;
    return Error{SONDE_E_TYPE, fmt::format("column {} is u64, the value is {}", column.name, value.as.i64)};
  }
  if (column.kind == SONDE_VALUE_I64 && from_u64) {
    if (value.as.u64 <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return cell;
    return Error{SONDE_E_TYPE, fmt::format("column {} is i64, the value is {}", column.name, value.as.u64)};
  }
  if (column.kind == SONDE_VALUE_F64 && (from_i64 || from_u64)) {
    cell.as.f64 = from_i64 ? static_cast<double>(value.as.i64) : static_cast<double>(value.as.u64);
    return cell;
  }
  return Error{SONDE_E_TYPE, fmt::format("column {} is {}, the value is {}", column.name, kind_name(column.kind),
                                         kind_name(value.kind))};
}

}  // namespace

Result<std::unique_ptr<Table>> Table::make(const sonde_table_spec_t &given) {
  if (given.struct_size < SONDE_NEED(sonde_table_spec_t, show_rows)) {
    return Error{SONDE_E_INVALID, fmt::format("table spec of {} bytes, {} are needed", given.struct_size,
                                              SONDE_NEED(sonde_table_spec_t, show_rows))};
  }
  if (given.origin == nullptr || *given.origin == '\0') {
    return Error{SONDE_E_INVALID, "a table needs an origin: the id of the plugin or script"};
  }
  if (given.name == nullptr || !is_snake_case(given.name)) {
    return Error{SONDE_E_INVALID, fmt::format("table name \"{}\" of {} is not snake_case",
                                              given.name == nullptr ? "" : given.name, given.origin)};
  }
  if (given.columns == nullptr || given.column_count == 0) {
    return Error{SONDE_E_INVALID, fmt::format("table {}.{} has no columns", given.origin, given.name)};
  }
  if (given.column_stride < SONDE_NEED(sonde_column_spec_t, flags)) {
    return Error{SONDE_E_INVALID, fmt::format("table {}.{}: columns of {} bytes, {} are needed", given.origin,
                                              given.name, given.column_stride, SONDE_NEED(sonde_column_spec_t, flags))};
  }

  std::unique_ptr<Table> table(new Table());
  TextArena &names = table->names_;
  for (uint32_t index = 0; index < given.column_count; ++index) {
    auto column = element_at<sonde_column_spec_t>(given.columns, index, given.column_stride);
    if (column.name == nullptr || !is_snake_case(column.name)) {
      return Error{SONDE_E_INVALID, fmt::format("column {} of table {}.{}: name \"{}\" is not snake_case", index,
                                                given.origin, given.name, column.name == nullptr ? "" : column.name)};
    }
    for (const sonde_column_spec_t &other : table->columns_) {
      if (std::string_view(other.name) == column.name) {
        return Error{SONDE_E_INVALID,
                     fmt::format("table {}.{} has two columns \"{}\"", given.origin, given.name, column.name)};
      }
    }
    if (column.kind < SONDE_VALUE_I64 || column.kind > SONDE_VALUE_BOOL) {
      return Error{SONDE_E_TYPE, fmt::format("column {} of table {}.{}: kind {} is not I64, U64, F64, TEXT or BOOL",
                                             column.name, given.origin, given.name, column.kind)};
    }
    column.name = names.copy_c(column.name);
    column.unit = names.copy_c(column.unit);
    column.help = names.copy_c(column.help);
    table->columns_.push_back(column);
  }
  sonde_table_spec_t &spec = table->spec_;
  spec.struct_size = sizeof(spec);
  spec.column_count = given.column_count;
  spec.origin = names.copy_c(given.origin);
  spec.name = names.copy_c(given.name);
  spec.title = names.copy_c(given.title);
  spec.help = names.copy_c(given.help);
  spec.columns = table->columns_.data();
  spec.column_stride = sizeof(sonde_column_spec_t);
  spec.show_rows = given.show_rows == 0 ? 20 : given.show_rows;
  table->cells_.resize(given.column_count);
  return table;
}

Result<void> Table::add_row(std::span<const sonde_value_t> values) {
  if (values.size() != columns_.size()) {
    return Error{SONDE_E_INVALID, fmt::format("table {}.{} has {} columns, the row has {} values", spec_.origin,
                                              spec_.name, columns_.size(), values.size())};
  }
  std::vector<sonde_value_t> row;
  row.reserve(values.size());
  for (size_t index = 0; index < values.size(); ++index) {
    auto cell = convert(values[index], columns_[index]);
    if (!cell) {
      return Error{cell.error().code, fmt::format("table {}.{}: {}", spec_.origin, spec_.name, cell.error().text)};
    }
    row.push_back(*cell);
  }

  const std::lock_guard lock(mutex_);
  for (size_t index = 0; index < row.size(); ++index) {
    sonde_value_t &value = row[index];
    Cells &cells = cells_[index];
    const bool present = value.kind != SONDE_VALUE_NONE;
    sonde_value_data_t data{};
    if (columns_[index].kind == SONDE_VALUE_TEXT) {
      const std::string_view text =
          present && value.count != 0 ? std::string_view(value.as.text, value.count) : std::string_view();
      data.text = present ? texts_.copy(text).data() : "";
      cells.sizes.push_back(text.size());
    } else if (present) {
      data = value.as;
    }
    cells.data.push_back(data);
    cells.present.push_back(present);
  }
  ++rows_;
  return {};
}

uint64_t Table::row_count() const {
  const std::lock_guard lock(mutex_);
  return rows_;
}

Result<sonde_value_t> Table::cell(uint64_t row, uint64_t column) const {
  const std::lock_guard lock(mutex_);
  if (row >= rows_ || column >= columns_.size()) {
    return Error{SONDE_E_RANGE, fmt::format("table {}.{} has {} rows and {} columns, cell ({}, {}) is outside",
                                            spec_.origin, spec_.name, rows_, columns_.size(), row, column)};
  }
  const Cells &cells = cells_[column];
  sonde_value_t value{};
  if (!cells.present[row]) return value;
  value.kind = columns_[column].kind;
  value.as = cells.data[row];
  if (value.kind == SONDE_VALUE_TEXT) value.count = cells.sizes[row];
  return value;
}

}  // namespace sonde::report
