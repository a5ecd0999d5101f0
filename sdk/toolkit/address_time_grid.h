// Amounts by address and time, in a bounded number of cells.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <sonde/toolkit/bin_axis.h>

namespace sonde::toolkit {

// A heat map: blocks of addresses (a power of two, aligned) by stretches of time. Where an address or a time does not
// fit, blocks or stretches double, so no amount is lost and no cell is added beyond `rows` times `columns`. Rows
// that nothing touched take no cells.
class AddressTimeGrid {
 public:
  // rows, columns >= 2. `block` bytes and `width` ns are the finest.
  AddressTimeGrid(uint32_t rows, uint32_t columns, uint64_t block, uint64_t width = 1)
      : addresses_(rows, block), times_(columns, width) {}

  // Addresses below 2^63.
  void add(uint64_t address, int64_t time, uint64_t amount) {
    BinAxis::Change change;
    const size_t column = times_.fit(time, change);
    if (change.any) {
      for (std::vector<uint64_t> &row : rows_) {
        if (!row.empty()) times_.apply(change, row, [](uint64_t &into, uint64_t from) { into += from; });
      }
    }
    const size_t index = addresses_.fit(static_cast<int64_t>(address), change);
    addresses_.apply(change, rows_, [](std::vector<uint64_t> &into, std::vector<uint64_t> &from) {
      if (into.empty()) {
        into = std::move(from);
        return;
      }
      if (into.size() < from.size()) into.resize(from.size());
      for (size_t i = 0; i < from.size(); ++i) into[i] += from[i];
    });
    std::vector<uint64_t> &row = rows_[index];
    row.resize(times_.count());
    row[column] += amount;
  }

  uint64_t block() const { return addresses_.width(); }
  int64_t width() const { return static_cast<int64_t>(times_.width()); }
  size_t columns() const { return times_.count(); }
  int64_t time_of(size_t column) const { return times_.begin_of(column); }

  // visit(address, amounts) for each block that was touched, in order of addresses; amounts by column.
  template <typename Visit>
  void for_each_row(Visit &&visit) const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!rows_[i].empty()) visit(static_cast<uint64_t>(addresses_.begin_of(i)), rows_[i]);
    }
  }

 private:
  BinAxis addresses_;
  BinAxis times_;
  std::vector<std::vector<uint64_t>> rows_;
};

}  // namespace sonde::toolkit
