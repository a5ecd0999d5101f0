#include "report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "report/demangle.h"
#include "report/human.h"
#include "report/utf8.h"

namespace sonde::report {
namespace {

constexpr size_t kGap = 2;         // cells between columns
constexpr size_t kLeastText = 16;  // a text column is not narrowed below this

struct ShownColumn {
  uint64_t index = 0;  // in the table
  bool is_number = false;
  std::string head;
  std::vector<std::string> cells;  // numbers without their units
  std::vector<std::string> units;
  std::vector<std::string> raw;  // texts as they came
  size_t number_width = 0;
  size_t unit_width = 0;
  size_t width = 0;
};

// True when `left` comes before `right` in descending order; empty cells come last.
bool is_greater(const sonde_value_t &left, const sonde_value_t &right) {
  if (left.kind == SONDE_VALUE_NONE || right.kind == SONDE_VALUE_NONE) {
    return left.kind != SONDE_VALUE_NONE && right.kind == SONDE_VALUE_NONE;
  }
  switch (left.kind) {
    case SONDE_VALUE_I64:
      return left.as.i64 > right.as.i64;
    case SONDE_VALUE_F64:
      return left.as.f64 > right.as.f64;
    case SONDE_VALUE_TEXT:
      return std::string_view(left.as.text, left.count) > std::string_view(right.as.text, right.count);
    default:
      return left.as.u64 > right.as.u64;
  }
}

std::vector<uint64_t> chosen_rows(const Table &table, uint64_t rows, uint64_t count) {
  std::vector<uint64_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  const auto columns = table.columns();
  const auto sorting = std::find_if(columns.begin(), columns.end(), [](const sonde_column_spec_t &column) {
    return (column.flags & SONDE_COLUMN_SORT_DOWN) != 0;
  });
  const auto shown = order.begin() + static_cast<int64_t>(std::min(rows, count));
  if (sorting != columns.end()) {
    const auto column = static_cast<uint64_t>(sorting - columns.begin());
    std::partial_sort(order.begin(), shown, order.end(), [&](uint64_t left, uint64_t right) {
      const sonde_value_t left_value = *table.cell(left, column);
      const sonde_value_t right_value = *table.cell(right, column);
      if (is_greater(left_value, right_value)) return true;
      if (is_greater(right_value, left_value)) return false;
      return left < right;
    });
  }
  order.erase(shown, order.end());
  return order;
}

// " [2]", " [3]", ... for cells that read like an earlier one though their texts differ, else "".
std::vector<std::string> marks_of(const ShownColumn &column) {
  std::vector<std::string> marks(column.cells.size());
  std::map<std::string_view, std::vector<std::string_view>> seen;  // shown text -> different texts behind it
  for (size_t row = 0; row < column.cells.size(); ++row) {
    std::vector<std::string_view> &others = seen[column.cells[row]];
    const auto known = std::find(others.begin(), others.end(), column.raw[row]);
    const auto number = known - others.begin() + 1;
    if (known == others.end()) others.emplace_back(column.raw[row]);
    if (number > 1) marks[row] = fmt::format(" [{}]", number);
  }
  return marks;
}

ShownColumn fill_column(const Table &table, uint64_t index, const std::vector<uint64_t> &rows) {
  const sonde_column_spec_t &spec = table.columns()[index];
  ShownColumn column;
  column.index = index;
  column.head = spec.name;
  column.is_number = spec.kind == SONDE_VALUE_I64 || spec.kind == SONDE_VALUE_U64 || spec.kind == SONDE_VALUE_F64;
  for (const uint64_t row : rows) {
    const sonde_value_t value = *table.cell(row, index);
    HumanValue human = human_value(value, spec.unit);
    if (value.kind == SONDE_VALUE_TEXT) {
      column.raw.emplace_back(value.as.text, value.count);
      human.text = printable(demangle(column.raw.back()));
    } else {
      column.raw.emplace_back();
    }
    column.number_width = std::max(column.number_width, display_width(human.text));
    column.unit_width = std::max(column.unit_width, display_width(human.unit));
    column.cells.push_back(std::move(human.text));
    column.units.push_back(std::move(human.unit));
  }
  const size_t content = column.number_width + (column.unit_width == 0 ? 0 : column.unit_width + 1);
  column.width = std::max(content, display_width(column.head));
  if (!column.is_number) {
    const std::vector<std::string> marks = marks_of(column);
    for (size_t row = 0; row < marks.size(); ++row) {
      column.width = std::max(column.width, display_width(column.cells[row]) + marks[row].size());
    }
  }
  return column;
}

// Takes cells from the widest text columns until the lines fit, or every text column is at its least width.
void narrow(std::vector<ShownColumn> &columns, size_t limit) {
  size_t total = 0;
  for (const ShownColumn &column : columns) total += column.width + kGap;
  total -= std::min(total, kGap);
  while (total > limit) {
    ShownColumn *widest = nullptr;
    for (ShownColumn &column : columns) {
      const size_t least = std::max(kLeastText, display_width(column.head));
      if (column.is_number || column.width <= least) continue;
      if (widest == nullptr || column.width > widest->width) widest = &column;
    }
    if (widest == nullptr) return;
    // Down to the next narrower one at once would be quicker; a column has at most some thousand cells.
    --widest->width;
    --total;
  }
}

// Takes texts that do not fit to the column's width; marks those that then read alike though they differ.
void shorten(ShownColumn &column) {
  for (size_t row = 0; row < column.cells.size(); ++row) {
    std::string &cell = column.cells[row];
    if (display_width(cell) > column.width) cell = shorten_name(column.raw[row], column.width);
  }
  const std::vector<std::string> marks = marks_of(column);
  for (size_t row = 0; row < column.cells.size(); ++row) {
    const std::string &mark = marks[row];
    if (!mark.empty() && column.width > mark.size()) {
      column.cells[row] = shorten_middle(column.cells[row], column.width - mark.size()) + mark;
    }
  }
}

std::string cell_text(const ShownColumn &column, size_t row, bool is_last) {
  if (!column.is_number) return is_last ? column.cells[row] : pad_right(column.cells[row], column.width);
  std::string text = pad_left(column.cells[row], column.number_width);
  if (column.unit_width != 0) {
    text += ' ';
    text += is_last ? column.units[row] : pad_right(column.units[row], column.unit_width);
  }
  return is_last ? pad_left(text, column.width - column.unit_width + display_width(column.units[row]))
                 : pad_left(text, column.width);
}

void put_line(std::string line, Output &output) {
  line.erase(line.find_last_not_of(' ') + 1);
  output.put(line);
  output.put('\n');
}

}  // namespace

void write_text_table(const Table &table, const TextStyle &style, Output &output) {
  const std::string title = printable(*table.spec().title != '\0' ? table.spec().title : table.spec().name);
  output.put(fmt::format("{}{}{}  {}{}.{}{}\n", style.bold(), title, style.plain(), style.dim(),
                         printable(table.origin()), table.name(), style.plain()));
  const uint64_t rows = table.row_count();
  const std::vector<uint64_t> shown = chosen_rows(table, rows, style.rows != 0 ? style.rows : table.spec().show_rows);

  std::vector<ShownColumn> columns;
  for (uint64_t index = 0; index < table.columns().size(); ++index) {
    if ((table.columns()[index].flags & SONDE_COLUMN_HIDDEN) != 0) continue;
    columns.push_back(fill_column(table, index, shown));
  }
  constexpr size_t kIndent = 2;
  narrow(columns, style.width > kIndent ? style.width - kIndent : 1);
  for (ShownColumn &column : columns) {
    if (!column.is_number) shorten(column);
  }

  std::string head(kIndent, ' ');
  for (const ShownColumn &column : columns) {
    head += column.is_number ? pad_left(column.head, column.width) : pad_right(column.head, column.width);
    head.append(kGap, ' ');
  }
  output.put(style.dim());
  head.erase(head.find_last_not_of(' ') + 1);
  output.put(head);
  output.put(style.plain());
  output.put('\n');
  for (size_t row = 0; row < shown.size() && !output.failed(); ++row) {
    std::string line(kIndent, ' ');
    for (const ShownColumn &column : columns) {
      const bool is_last = &column == &columns.back();
      line += cell_text(column, row, is_last);
      if (!is_last) line.append(kGap, ' ');
    }
    put_line(std::move(line), output);
  }
  if (shown.size() < rows) {
    const uint64_t more = rows - shown.size();
    output.put(
        fmt::format("  {}{} more {}{}\n", style.dim(), grouped(more), more == 1 ? "row" : "rows", style.plain()));
  }
  output.put('\n');
}

}  // namespace sonde::report
