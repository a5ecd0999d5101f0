// A layout as a grid of cells: which elements are drawn, who holds each, its text and colour. The renderers (text, SVG,
// JSON) only write down what is here.
//
// The tensor's last dim runs along the columns, the one before along the rows; each value of the others is a slice. A
// tensor of one dim is broken into lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/layout_facts.h"

namespace sonde::cli {

// From begin up to, not including, end.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t count() const { return end - begin; }
  bool operator==(const Range &) const = default;
};
// "2:8", ":8", "2:" of `size` values; CommandError with the flag's name.
Range read_range(const std::string &text, uint64_t size, const char *flag);

enum class ShownBy { kThread, kRegister, kLane, kWarp, kBlock, kOffset, kBank, kAll };

struct DrawingOptions {
  ShownBy by = ShownBy::kThread;
  uint32_t banks = 32;  // of 32 bits
  std::string rows;     // --rows, --columns, --slices; "": as many as fit
  std::string columns;
  std::string slices;
  uint64_t most_rows = 0;        // that fit, of all slices together
  uint64_t most_characters = 0;  // of one row's cells in text; 0: most_columns counts
  uint64_t most_columns = 0;
};

struct DrawnCell {
  std::vector<uint64_t> index;    // of the element, for each out dim in the layout's order
  std::optional<uint64_t> owner;  // the least flattened input that holds it
  std::vector<uint64_t> values;   // the owner's, for each in dim
  std::string label;
  uint64_t color = 0;  // value of the dim that it is coloured by
};

struct DrawnSlice {
  std::string title;             // "dim0 = 1", "" where there is one slice only
  std::vector<DrawnCell> cells;  // row by row
};

struct Drawing {
  std::string title;
  LayoutFacts facts;
  std::string label_form;  // "lane:register"
  std::string color_name;  // "warp", "bank", ""
  uint64_t color_count = 1;
  std::string row_name;  // of the axes; "" for lines of one dim
  std::string column_name;
  uint64_t line_elements = 0;  // of a tensor of one dim, in each row; otherwise 0
  Range rows;
  Range columns;
  Range slices;
  uint64_t all_rows = 1;
  uint64_t all_columns = 1;
  uint64_t all_slices = 1;
  std::vector<DrawnSlice> drawn;

  bool is_cut() const {
    return rows.count() != all_rows || columns.count() != all_columns || slices.count() != all_slices;
  }
  // "rows 0:16 of 128, columns 0:32 of 64"; what is shown and which flags show the rest.
  std::string cut_note() const;
  uint64_t row_label(uint64_t row) const { return line_elements == 0 ? row : row * line_elements; }
};

Drawing draw(const LayoutArena &arena, const NamedLayout &named, const DrawingOptions &options);

}  // namespace sonde::cli
