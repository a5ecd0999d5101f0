// Decodes what RecordEncoder wrote. The input may be damaged or hostile: every size is checked before it is used.
//
// The rows are made block by block (256 records): the dictionary entry of a record is copied as a whole row, then the
// words of the columns are put over it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "store/blocks.h"
#include "store/columns.h"

namespace sonde::store {

// Numbers of spaces in a file to those of this process; the identity by default.
class SpaceMap {
 public:
  SpaceMap();
  void set(uint32_t in_file, uint32_t here);
  uint32_t here(uint32_t in_file) const { return in_file < numbers_.size() ? numbers_[in_file] : 0; }
  bool identity() const { return identity_; }

 private:
  std::array<uint16_t, 256> numbers_;
  bool identity_ = true;
};

class RecordDecoder {
 public:
  // Decodes into `rows`, which has room for exactly the record bytes that the chunk states. Spaces are renumbered; a
  // space the map does not know becomes padding (space 0). False when the input contradicts itself; `rows` then
  // holds anything.
  bool decode_columns(std::span<const uint8_t> encoded, const SpaceMap &spaces, std::span<uint8_t> rows,
                      uint64_t record_count);

  // The same for Codec::kRows.
  static bool decode_rows(std::span<const uint8_t> encoded, const SpaceMap &spaces, std::span<uint8_t> rows,
                          uint64_t record_count);

 private:
  static constexpr uint32_t kBlock = 256;  // records made at once: rows and columns of them fit the first-level cache

  struct Shape {
    uint64_t header;  // as in this process
    uint32_t words;
    uint64_t count;
    bool by_columns;
    uint32_t *offsets;  // part of offsets_; unused when there is one shape
  };
  struct Planes {
    uint64_t constant = 0;
    uint32_t count = 0;
    std::array<const uint8_t *, 8> bytes{};
    std::array<uint8_t, 8> shifts{};
  };
  struct Column {
    uint32_t word;
    Predictor predictor;
    uint64_t first;
    Planes planes;
    std::vector<uint64_t> last_of_entry;
    uint64_t previous;  // of kPrevious, and the end of the interval before for kPreviousEnd
    std::array<uint64_t, kBlock> values;
  };

  bool read_shapes(ByteReader &in, const SpaceMap &spaces, uint64_t record_bytes, uint64_t record_count);
  bool read_runs(ByteReader &in);
  bool read_rows(ByteReader &in, const Shape &shape, uint8_t *rows);
  bool read_columns(ByteReader &in, const Shape &shape, uint8_t *rows);
  bool read_dictionary(ByteReader &in, const Shape &shape);
  bool read_column(ByteReader &in, const Shape &shape, uint32_t word);
  bool read_planes(ByteReader &in, uint64_t count, bool with_constant, Planes &out);
  uint8_t *scratch(uint64_t bytes);

  void make_rows(const Shape &shape, uint8_t *rows);
  void make_differences(Column &column, uint64_t from, uint32_t count, const uint16_t *entries);
  void make_times(Column &column, const Column *interval, uint32_t count);

  BlockReader blocks_;
  std::vector<Shape> shapes_;
  std::vector<uint32_t> offsets_;

  // Of the shape at work.
  uint32_t entries_ = 0;
  std::vector<uint64_t> templates_;  // rows of the dictionary
  std::array<bool, kMaxColumnWords> static_words_{};
  Planes entry_planes_;
  std::vector<Column> columns_;
  uint32_t column_count_ = 0;

  std::vector<Bytes> arena_;  // decompressed planes of the shape at work
  size_t arena_used_ = 0;
};

}  // namespace sonde::store
