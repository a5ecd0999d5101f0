// One table as aligned columns of text.
#pragma once

#include <cstdint>

#include "report/output.h"
#include "report/results.h"

namespace sonde::report {

struct TextStyle {
  uint32_t width = 100;  // cells of a line; tables with many numeric columns may be wider, nothing is left out
  uint32_t rows = 0;     // rows shown of a table; 0: the table's own wish
  bool has_color = false;

  std::string_view bold() const { return has_color ? "\x1b[1m" : ""; }
  std::string_view dim() const { return has_color ? "\x1b[2m" : ""; }
  std::string_view red() const { return has_color ? "\x1b[31m" : ""; }
  std::string_view yellow() const { return has_color ? "\x1b[33m" : ""; }
  std::string_view green() const { return has_color ? "\x1b[32m" : ""; }
  std::string_view plain() const { return has_color ? "\x1b[0m" : ""; }
};

// Title, heads, the first rows (of a table that has some) by the SORT_DOWN column (else in their own order) and how
// many more there are. Numbers stand right, in human units; texts left, C++ names readable and shortened in the
// middle. Rows whose shortened names read alike though they differ are told apart by "[2]", "[3]", ...
void write_text_table(const Table &table, const TextStyle &style, Output &output);

}  // namespace sonde::report
